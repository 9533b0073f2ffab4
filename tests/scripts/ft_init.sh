#!/usr/bin/env bash
# Fault tolerance (--ft): a rank that is killed before or in MPI_Init, or ends before it by exit, does not keep the
# others there. They get MPIX_ERR_PROC_FAILED from it, and go on without it.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

"$mpicc" -O1 "$(dirname "${BASH_SOURCE[0]}")/ft_init.c" -o "$work/init"

cd "$work"

# dies HOW [NUMBER]: all others go on, over each of these networks.
dies() {
    local network
    for network in 'direct' 'xswitch --topology th8' 'ideal'; do
        # shellcheck disable=SC2086
        timeout 60 "$stage/bin/ulfmrun" --ft --transport $network -n 4 ./init 2 "$@" >out 2>err || true
        if [[ $(grep -c '^one of 3 goes on$' out || true) == 3 ]]; then
            echo "ok   $network, $*"
        else
            cat err >&2
            fail "FAIL $network, $*"
        fi
    done
}
dies kill
dies exit 0
dies exit 3
for after in 500 2000 5000 10000 20000; do
    dies fork $after
done
