#!/usr/bin/env bash
# With --ft: a message in a communicator that its receiver could not make is not taken for one in the next communicator,
# which has the same context id.
set -euo pipefail
# shellcheck source=mpi_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

compile ft_stale <"$(dirname "${BASH_SOURCE[0]}")/ft_stale.c"

# run HOW OPTION...: the new communicators, made by HOW, bring what is sent in them.
run() {
    local how=$1 status=0
    shift
    rm -f "$work/steps"
    truncate -s 4096 "$work/steps"
    timeout -s KILL "$patience" "$stage/bin/ulfmrun" --ft "$@" -genv MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM recursive_doubling \
        -genv ULFM_COLLECTIVES off -n 4 "$work/ft_stale" "$work/steps" "$how" >"$work/out" 2>&1 || status=$?
    grep -qx 'made by some, right' "$work/out" || fail "$how $*: exit status $status"
}

for how in dup split idup group self shrink; do
    for over in direct tcp ofi; do run $how --transport $over; done
    run $how --transport xswitch --topology th8
    run $how --transport dcm --topology cube:2
    run $how --transport pointdesign
    echo "ok   $how"
done
