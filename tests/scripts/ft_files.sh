#!/usr/bin/env bash
# Collective calls on files in which a rank dies: the others get MPIX_ERR_PROC_FAILED, close the file, shrink and go on.
#   ft_files.sh [JOBS [SEED [OPTIONS OF ulfmrun...]]]     every seed is a job of five ranks and three deaths
# The long form: ULFM_STAGE=$PWD/build/stage tests/scripts/ft_files.sh 500
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
jobs=${1:-12} seed=${2:-1}
over=("${@:3}")
here=$(dirname "${BASH_SOURCE[0]}")

"$mpicc" -O1 "$here/ft_files.c" -o "$work/ft_files" || fail "mpicc cannot compile ft_files.c"
for ((job = seed; job < seed + jobs; job++)); do
    status=0
    timeout "$patience" "$stage/bin/ulfmrun" --ft "${over[@]}" -n 5 "$work/ft_files" "$job" "$work/file" >"$work/out" 2>&1 ||
        status=$?
    ((status != 124)) || fail "seed $job hangs"
    ! grep -q WRONG "$work/out" || fail "seed $job is wrong"
    (($(grep -c 'went on 3 times$' "$work/out") == 2)) || fail "seed $job: not everybody went on (status $status)"
done
echo "$jobs jobs from seed $seed on: ranks died in calls on files, the others went on"
