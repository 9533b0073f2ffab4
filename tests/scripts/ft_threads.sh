#!/usr/bin/env bash
# A rank dies while two threads of each rank are in calls of their own communicators (MPI_THREAD_MULTIPLE).
#   ft_threads.sh [SEEDS [RANKS [OPTIONS OF ulfmrun...]]]   without arguments a few seeds over several networks
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
"$mpicc" -O1 "$(dirname "${BASH_SOURCE[0]}")/ft_threads.c" -o "$work/ft_threads" -lpthread ||
    fail "mpicc cannot compile ft_threads.c"

# dies SEEDS RANKS OPTION...
dies() {
    local seed status
    for ((seed = 1; seed <= $1; seed++)); do
        status=0
        timeout "$patience" "$stage/bin/ulfmrun" --ft "${@:3}" -n "$2" "$work/ft_threads" "$seed" >"$work/out" 2>&1 ||
            status=$?
        ((status != 124)) || fail "seed $seed over ${*:3} hangs"
        grep -qx 'threads: over' "$work/out" ||
            fail "seed $seed over ${*:3} is wrong (status $status): $(grep -m 1 '^rank' "$work/out")"
    done
    echo "ok   $1 seeds, $2 ranks over ${*:3}"
}

if (($#)); then
    dies "$1" "${2:-4}" "${@:3}"
    exit
fi
dies 10 4 --transport direct
dies 4 4 --transport xswitch --topology th8
dies 4 3 --transport tcp
