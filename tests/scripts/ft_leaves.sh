#!/usr/bin/env bash
# A rank that leaves right after a collective call does not make it fail for the others, whose messages are there or come
# from the living: MPI_Comm_dup, _idup and _split by ranks of whom one leaves after each.
#   ft_leaves.sh [SEEDS [RANKS [OPTIONS OF ulfmrun...]]]   without arguments a few seeds over several networks
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
"$mpicc" -O1 "$(dirname "${BASH_SOURCE[0]}")/ft_leaves.c" -o "$work/ft_leaves" || fail "mpicc cannot compile ft_leaves.c"

# leaves SEEDS RANKS OPTION...
leaves() {
    local seed operation status
    for ((seed = 1; seed <= $1; seed++)); do
        for operation in dup idup split; do
            status=0
            timeout "$patience" "$stage/bin/ulfmrun" --ft "${@:3}" -n "$2" "$work/ft_leaves" "$operation" "$seed" \
                >"$work/out" 2>&1 || status=$?
            ((status != 124)) || fail "$operation with seed $seed over ${*:3} hangs"
            grep -qx "$operation: right" "$work/out" || fail "$operation with seed $seed over ${*:3} is wrong (status $status)"
        done
    done
    echo "ok   $1 seeds, $2 ranks over ${*:3}"
}

if (($#)); then
    leaves "$1" "${2:-6}" "${@:3}"
    exit
fi
"$mpicc" -O1 "$(dirname "${BASH_SOURCE[0]}")/ft_announced.c" -o "$work/ft_announced" ||
    fail "mpicc cannot compile ft_announced.c"
# announced OPTION...: long messages that a rank has announced before its end
announced() {
    local how
    for how in nonblocking blocking; do
        timeout "$patience" "$stage/bin/ulfmrun" --ft "$@" -n 4 "$work/ft_announced" "$how" >"$work/out" 2>&1 ||
            [[ $? != 124 ]] || fail "announced long messages, $how, over $*: hangs"
        [[ $(grep -v ended "$work/out") == "$how: over" ]] || fail "announced long messages, $how, over $*: wrong"
    done
    echo "ok   announced long messages over $*"
}

leaves 20 6 --transport direct
leaves 6 5 --transport xswitch --topology th8
leaves 3 5 --transport tcp
announced --transport direct
announced --transport xswitch --topology th8
announced --transport tcp
