#!/usr/bin/env bash
# A rank dies while two threads of each rank are in calls of their own communicators (threads), in the midst of
# nonblocking and persistent collectives that all of the others start and wait for (started), or while all use a window
# (windows).
#   ft_killed.sh [PROGRAM [SEEDS [RANKS [OPTIONS OF ulfmrun...]]]]   without arguments a few seeds over several networks
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
for program in threads started windows; do
    "$mpicc" -O1 "$(dirname "${BASH_SOURCE[0]}")/ft_$program.c" -o "$work/ft_$program" -lpthread ||
        fail "mpicc cannot compile ft_$program.c"
done

# dies PROGRAM SEEDS RANKS OPTION...
dies() {
    local seed status
    for ((seed = 1; seed <= $2; seed++)); do
        status=0
        timeout "$patience" "$stage/bin/ulfmrun" --ft "${@:4}" -n "$3" "$work/ft_$1" "$seed" >"$work/out" 2>&1 ||
            status=$?
        ((status != 124)) || fail "$1 with seed $seed over ${*:4} hangs"
        grep -qx "over: $(($3 - 1)) left" "$work/out" ||
            fail "$1 with seed $seed over ${*:4} is wrong (status $status): $(grep -m 1 '^rank' "$work/out")"
    done
    echo "ok   $1: $2 seeds, $3 ranks over ${*:4}"
}

if (($#)); then
    dies "$1" "${2:-10}" "${3:-4}" "${@:4}"
    exit
fi
dies threads 10 4 --transport direct
dies threads 4 4 --transport xswitch --topology th8
dies threads 4 3 --transport tcp
dies started 10 5 --transport direct
dies started 4 5 --transport xswitch --topology th8
dies started 4 4 --transport tcp
dies windows 10 4 --transport direct
dies windows 4 4 --transport xswitch --topology th8
dies windows 4 4 --transport tcp
