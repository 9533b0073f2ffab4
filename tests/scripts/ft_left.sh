#!/usr/bin/env bash
# Collectives over messages in which a rank dies, and nobody revokes anything: the others all return with MPIX_ERR_PROC_FAILED, also those
# who wait for one of the living that has left, and go on.
#   ft_left.sh [SEEDS [FIRST [RANKS [OPTIONS OF ulfmrun...]]]]   with all operations; without arguments a selection over several networks
# The long form: ULFM_STAGE=$PWD/build/stage tests/scripts/ft_left.sh 50 1 6 --transport xswitch --topology th8
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
here=$(dirname "${BASH_SOURCE[0]}")
all=(split dup idup create create_group create_late barrier bcast reduce allreduce scan gather allgatherv alltoall alltoallv
    reduce_scatter neighbor ineighbor ibarrier ibcast iallreduce ialltoallv persistent window file inter intermerge intercreate
    used_dup used_group)
export FT_LEFT_FILE=$work/file

"$mpicc" -O1 "$here/ft_left.c" -o "$work/ft_left" -lrt || fail "mpicc cannot compile ft_left.c"

# run SEED RANKS OPERATION OPTION...
run() {
    local status=0 what="$3 with seed $1, $2 ranks over ${*:4}"
    timeout "$patience" "$stage/bin/ulfmrun" --ft "${@:4}" -n "$2" "$work/ft_left" "$3" "$1" >"$work/out" 2>&1 || status=$?
    ((status != 124)) || fail "$what hangs"
    grep -qx "$3: right" "$work/out" || fail "$what is wrong (status $status)"
}

# some SEED RANKS COUNT OPTION...: so many of the operations, others with each seed
some() {
    local i
    for ((i = 0; i < $3; i++)); do run "$1" "$2" "${all[($1 + i * 5) % ${#all[@]}]}" "${@:4}"; done
    echo "ok   $3 operations, seed $1, $2 ranks over ${*:4}"
}

if (($#)); then
    for ((seed = ${2:-1}; seed < ${2:-1} + $1; seed++)); do some "$seed" "${3:-5}" ${#all[@]} "${@:4}"; done
    exit
fi
for seed in 1 2 3; do
    for operation in split idup bcast alltoallv; do run $seed 6 $operation --transport xswitch --topology th8; done
    some $seed 5 5 --transport direct
    some $seed $((seed + 1)) 4 --transport xswitch --topology th8
done
# Long messages of a schedule that the one who dies has announced.
run 32 6 ialltoallv --transport xswitch --topology th8
# The one who dies is the root of others that send without a pause: its end is noticed nevertheless.
run 232 6 gather --transport ofi
# Others revoke the window while some make it: they find a failure in it nevertheless, not a revocation.
for _ in $(seq 12); do run 107 6 window --transport direct; done
# Nonblocking and blocking calls in the segment: who fails there leaves the communicator.
for _ in 1 2 3 4 5 6 7 8; do run 851 8 intercreate --transport direct; done
# Seeds with which somebody dies in the middle of a call.
for seed in 8 9 10 11 20 21 22 23; do run $seed 6 create_late --transport xswitch --topology th8; done
some 4 8 4 --transport dcm --topology cube:3
some 5 7 4 --transport pcie --topology boards:2x4
export ULFM_COLLECTIVES=off
for seed in 6 7; do some $seed 6 5 --transport direct; done
unset ULFM_COLLECTIVES
some 8 4 3 --transport ofi
