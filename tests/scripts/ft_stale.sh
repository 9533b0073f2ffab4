#!/usr/bin/env bash
# With --ft: a message in a communicator that its receiver could not make is not taken for one in the next communicator,
# which has the same context id.
set -euo pipefail
# shellcheck source=mpi_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

compile ft_stale <"$(dirname "${BASH_SOURCE[0]}")/ft_stale.c"

# run RANKS HOW OPTION...: the new communicators, made by HOW, bring what is sent in them. A loaded machine may stop rank 3
# too soon: then it is done again.
run() {
    local ranks=$1 how=$2 status tries
    shift 2
    for tries in 1 2 3 4 5; do
        once "$@"
        grep -q 'not as it was meant' "$work/out" || break
    done
    grep -qx 'made by some, right' "$work/out" || fail "$how $*: exit status $status, $tries tries"
}
once() {
    status=0
    rm -f "$work/steps"
    truncate -s 4096 "$work/steps"
    timeout -s KILL "$patience" "$stage/bin/ulfmrun" --ft "$@" -genv MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM recursive_doubling \
        -genv ULFM_COLLECTIVES off -n "$ranks" "$work/ft_stale" "$work/steps" "$how" >"$work/out" 2>&1 || status=$?
}

for how in dup split idup group self shrink; do
    for over in direct tcp ofi; do run 4 $how --transport $over; done
    run 4 $how --transport xswitch --topology th8
    run 4 $how --transport dcm --topology cube:2
    run 4 $how --transport pointdesign
    echo "ok   $how"
done
for over in direct tcp ofi 'xswitch --topology th8' 'dcm --topology cube:3' pointdesign; do
    # shellcheck disable=SC2086
    run 5 other --transport $over
done
echo "ok   other"
