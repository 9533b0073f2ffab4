#!/usr/bin/env bash
# ScaLAPACK by Debian's prebuilt tests (linked with Debian's libmpich.so.12) runs unmodified over ULFM, within a host and on
# two: the tests check their residuals themselves. Those of the Cholesky factorization are left out, which now and then
# do not end with any MPI library here.
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

# check OPTIONS... TEST: no residual is too large, and some were computed.
check() {
    local words=("${@:1:$#-1}") name=${!#}
    if [[ $1 == hosts ]]; then
        on 2 "$*" ' 0 tests completed and failed' "${words[@]:1}" -n 4 "$tests/$name"
    else
        over "$*" ' 0 tests completed and failed' "${words[@]}" -n 4 "$tests/$name"
    fi
    ! grep -q FAILED out || fail "$*" "a residual is too large"
    grep -q PASSED out || fail "$*" "nothing was computed"
}
for name in xdlu xclu xdqr xzhrd xdbrd xdtrd xsls; do check --transport direct "$name"; done
hosts_up 2
for name in xdlu xclu xzhrd xdtrd; do
    check hosts -ppn 2 "$name"
    check hosts -ppn 1 "$name"
done
check --transport xswitch --topology th8 xdlu
exit $((failures != 0))
