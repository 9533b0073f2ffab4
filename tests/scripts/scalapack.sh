#!/usr/bin/env bash
# ScaLAPACK by Debian's prebuilt tests (linked with Debian's libmpich.so.12) runs unmodified over ULFM, within a host and on
# two: the tests check their residuals themselves. Those of the Cholesky factorization are left out: now and then they do
# not end, with Open MPI and MPICH's ch3:nemesis as with ULFM.
set -uo pipefail
tests=$(compgen -G '/usr/lib/*/scalapack/mpich-tests' | head -n 1)
[[ -n $tests && -d /usr/share/scalapack ]] || {
    echo "ScaLAPACK's tests are not installed (Debian package scalapack-mpi-test)"
    exit 77
}
# shellcheck disable=SC2034 # of fabric_common.bash
patience=240
. "$(dirname "${BASH_SOURCE[0]}")/hosts_common.bash"
export OPENBLAS_NUM_THREADS=1
cd "$scratch" && cp /usr/share/scalapack/*.dat . || exit 1

# check TEST WHERE... -- OPTIONS...: no residual is too large, and some were computed. WHERE is `over`, or `on` with a
# number of hosts.
check() {
    local name=$1 where=()
    shift
    while [[ $1 != -- ]]; do where+=("$1") && shift; done
    shift
    "${where[@]}" "$name $*" ' 0 tests completed and failed' "$@" -n 4 "$tests/$name"
    ! grep -q FAILED out || fail "$name $*" "a residual is too large"
    grep -q PASSED out || fail "$name $*" "nothing was computed"
}
for name in xdlu xclu xdqr xzhrd xdbrd xdtrd xsls; do check "$name" over -- --transport direct; done
hosts_up 2
for name in xdlu xclu xzhrd xdtrd; do
    check "$name" on 2 -- -ppn 2
    check "$name" on 2 -- -ppn 1
done
check xdlu over -- --transport xswitch --topology th8
exit $((failures != 0))
