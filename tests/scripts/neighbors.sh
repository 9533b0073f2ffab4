#!/usr/bin/env bash
# Collectives of neighbours bring each block to its place: random graphs and sizes, with a core for each rank and
# with fewer, over shared memory, an emulated network and TCP. neighbors.sh [SEED ROUNDS]: one seed, over all of them.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
rounds=${2:-40}
compile neighbors <"$(dirname "${BASH_SOURCE[0]}")/neighbors.c"

# run SEED RANKS OPTION...
run() {
    timeout "$patience" "$stage/bin/ulfmrun" "${@:3}" -n "$2" "$work/neighbors" "$1" "$rounds" >"$work/out" 2>&1 ||
        fail "seed $1, $2 ranks, ${*:3}: exit status $?"
    grep -q 'calls right' "$work/out" || fail "seed $1, $2 ranks, ${*:3}: no result"
}

for seed in ${1:-1 2}; do
    for ranks in 1 2 3 5; do run "$seed" "$ranks" --transport direct; done
    run "$seed" 4 --transport xswitch --topology th8
    run "$seed" 3 --transport tcp
    run "$seed" 3 --transport xswitch --topology th8 --time virtual
    timeout "$patience" "$mpiexec" -n 4 "$work/neighbors" "$seed" "$rounds" threads >"$work/out" 2>&1 ||
        fail "seed $seed, with MPI_THREAD_MULTIPLE: exit status $?"
done
echo "neighbours' blocks arrived"
