#!/usr/bin/env bash
# Data with gaps come as they were sent, whatever the length of their blocks: they are packed and unpacked in pieces.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
# GCC 12 warns of MPICH's MPI_STATUSES_IGNORE.
"$mpicc" -O1 -Wno-stringop-overflow "$(dirname "${BASH_SOURCE[0]}")/gaps.c" -o "$work/gaps" || fail "mpicc cannot compile gaps.c"

# travel SEED ROUNDS OPTIONS...
travel() {
    timeout -k 10 "$patience" "$stage/bin/ulfmrun" "${@:3}" -n 2 "$work/gaps" "$1" "$2" >"$work/out" 2>&1 ||
        fail "seed $1, ${*:3}: exit status $?"
    grep -qx "gaps: $2 rounds from seed $1" "$work/out" || fail "seed $1, ${*:3}: no result"
}

seed=${GAPS_SEED:-$((RANDOM * 1000))}
echo "seed $seed"
travel "$seed" 200
travel "$((seed + 200))" 60 -genv ULFM_ONE_COPY off
travel "$((seed + 300))" 60 --transport tcp
travel "$((seed + 400))" 40 --ft
travel "$((seed + 450))" 15 --transport xswitch
echo "data with gaps come as they were sent"

# More than 2 GB in one message: places in it do not fit an int.
"$mpicc" -O1 "$(dirname "${BASH_SOURCE[0]}")/long_gaps.c" -o "$work/long_gaps" || fail "mpicc cannot compile long_gaps.c"
long=("1" "3 --transport tcp")
[[ -z ${TESTS_ALL:-} ]] || long+=("2" "3")  # each moves gigabytes, most of which is time for page faults
for options in "${long[@]}"; do
    read -ra words <<<"$options"
    timeout -k 10 "$patience" "$stage/bin/ulfmrun" "${words[@]:1}" -n 2 "$work/long_gaps" "${words[0]}" >"$work/out" 2>&1 ||
        fail "2 GB, ranks $options: exit status $?"
    grep -qx "long_gaps ${words[0]}: right" "$work/out" || fail "2 GB, ranks $options: no result"
done
echo "more than 2 GB come as they were sent"
