#!/usr/bin/env bash
# Coarray Fortran by Debian's prebuilt OpenCoarrays (linked with Debian's libmpich.so.12) runs unmodified over ULFM: its
# own tests check themselves: windows with passive targets, accumulates, atomics, events, locks, teams, collectives.
# Some of them fail or hang over Debian's own MPICH 4.0.2.
set -uo pipefail
tests=$(compgen -G '/usr/lib/*/open-coarrays/mpich/bin/OpenCoarrays-*-tests' | head -n 1)
[[ -n $tests ]] || {
    echo "OpenCoarrays' tests are not installed (Debian package libcoarrays-mpich-dev)"
    exit 77
}
# shellcheck disable=SC2034 # of fabric_common.bash
patience=120
. "$(dirname "${BASH_SOURCE[0]}")/fabric_common.bash"

# check IMAGES TEST OPTIONS...: the test's exit code is its result.
check() {
    [[ ! -x $tests/$2 ]] || over "${*:3} -n $1 $2" '' "${@:3}" -n "$1" "$tests/$2"
}

few=(atomics allocatable_p2p_event_post asynchronous_hello_world co_reduce_test co_sum_test coarray_burgers_pde
    coarray_distributed_transpose convert-before-put syncimages teams_coarray_get teams_coarray_sendget
    increment_my_neighbor async_comp_alloc strided_sendget issue-422-send-get)
for name in "${few[@]}"; do check 4 "$name"; done
check 8 sync_team
check 8 team_number
for name in get_array send_array alloc_comp_multidim_shape; do check 2 "$name"; done
for name in atomics coarray_burgers_pde coarray_distributed_transpose teams_coarray_get; do
    check 4 "$name" --transport xswitch --topology th8 --fault drop=1e-3
    check 4 "$name" --transport dcm --topology cube:3
    check 4 "$name" --transport tcp
done
exit $((failures > 0))
