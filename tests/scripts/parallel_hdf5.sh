#!/usr/bin/env bash
# Debian's parallel HDF5 (libhdf5-mpich) over ULFM: chunked, compressed and growing sets written collectively and one by one,
# read back in another pattern, and the same file as one process writes.
set -uo pipefail
: "${ULFM_STAGE:?stage folder}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
stage=$(cd "$ULFM_STAGE" && pwd -P) || exit 1
if ! command -v h5dump >/dev/null || ! pkg-config --exists hdf5-mpich; then
    echo "no parallel HDF5 (Debian packages libhdf5-mpich-dev, hdf5-tools)"
    exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
unset "${!ULFM_@}"
failures=0
# Only HDF5's own folders: Debian's mpi.h is not for us.
read -ra include < <(pkg-config --cflags-only-I hdf5-mpich | tr ' ' '\n' | grep hdf5 | tr '\n' ' ')
read -ra library < <(pkg-config --libs-only-L hdf5-mpich)
"$stage/bin/mpicc" -O1 "${include[@]}" "$here/parallel_hdf5.c" -o parallel_hdf5 "${library[@]}" -lhdf5 || exit 1

check() { # PROCESSES OPTIONS...
    local code=0
    rm -f set.h5
    timeout -k 10 120 "$stage/bin/ulfmrun" "${@:2}" -n "$1" ./parallel_hdf5 set.h5 100 </dev/null >out 2>err || code=$?
    ((code)) || { h5dump set.h5 >"dump.$1" && grep -q ' 0 wrong values' out; } || code=1
    ((code)) || cmp "dump.$1" dump.1 >>err || code=1
    if ((code)); then
        echo "FAIL $code: -n $*"
        tail -n 10 out err | sed 's/^/     | /'
        failures=$((failures + 1))
    else
        echo "ok   -n $*"
    fi
}

check 1
check 3
check 6
check 4 --transport xswitch --topology th8 --fault drop=1e-3
check 3 --transport tcp
check 3 --ft
exit $((failures > 0))
