#!/usr/bin/env bash
# MPI_Comm_join: over one socket again and again, and when the process at the other end closes it, dies or fails.
set -euo pipefail
# shellcheck source=mpi_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
compile joins <"$(dirname "${BASH_SOURCE[0]}")/joins.c"

# joins LIVING HOW OPTIONS...: so many ranks of two say that nothing is wrong.
joins() {
    local living=$1 how=$2
    shift 2
    timeout "$patience" "$stage/bin/ulfmrun" "$@" -n 2 "$work/joins" "$how" "$work/socket" </dev/null >"$work/out" 2>&1 || true
    rm -f "$work/socket"
    [[ $(grep -cx "$how: wrong 0" "$work/out") == "$living" ]] || fail "$how $*"
}

for transport in direct tcp; do
    joins 2 well --transport $transport
    joins 2 failed --transport $transport
    for how in closed named_closed; do
        joins 2 $how --transport $transport
        grep -q 'the process at the other end of the socket has ended, or has closed it' "$work/out" || fail "$how: no such word"
    done
    for how in dead named_dead; do
        joins 1 $how --ft --transport $transport
    done
done
echo 'joins end'
