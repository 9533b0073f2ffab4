#!/usr/bin/env bash
# Coarray Fortran by Debian's prebuilt OpenCoarrays (linked with Debian's libmpich.so.12) runs unmodified over ULFM: its
# own tests check themselves: windows with passive targets, accumulates, atomics, events, locks, teams, collectives.
# Some of them fail or hang over Debian's own MPICH 4.0.2.
set -uo pipefail
: "${ULFM_STAGE:?stage folder}"
tests=$(compgen -G '/usr/lib/*/open-coarrays/mpich/bin/OpenCoarrays-*-tests' | head -n 1)
[[ -n $tests ]] || {
    echo "OpenCoarrays' tests are not installed (Debian package libcoarrays-mpich-dev)"
    exit 77
}
stage=$(cd "$ULFM_STAGE" && pwd -P) || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
unset "${!ULFM_@}"
failures=0

# check IMAGES TEST OPTIONS...
check() {
    local images=$1 name=$2 code=0
    shift 2
    [[ -x $tests/$name ]] || return 0
    timeout -k 10 120 "$stage/bin/ulfmrun" "$@" -n "$images" "$tests/$name" </dev/null >out 2>err || code=$?
    ((code == 0)) && return
    echo "FAIL exit code $code: ulfmrun $* -n $images $name"
    tail -n 10 out err | sed 's/^/     | /'
    failures=$((failures + 1))
}

few=(atomics allocatable_p2p_event_post asynchronous_hello_world co_reduce_test co_sum_test coarray_burgers_pde
    coarray_distributed_transpose convert-before-put syncimages teams_coarray_get teams_coarray_sendget
    increment_my_neighbor async_comp_alloc strided_sendget issue-422-send-get)
for name in "${few[@]}"; do check 4 "$name"; done
check 8 sync_team
check 8 team_number
for name in get_array send_array alloc_comp_multidim_shape; do check 2 "$name"; done
echo "on one host: $failures failures"
for name in atomics coarray_burgers_pde coarray_distributed_transpose teams_coarray_get; do
    check 4 "$name" --transport xswitch --topology th8 --fault drop=1e-3
    check 4 "$name" --transport dcm --topology cube:3
    check 4 "$name" --transport tcp
done
exit $((failures > 0))
