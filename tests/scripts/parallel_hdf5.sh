#!/usr/bin/env bash
# Debian's parallel HDF5 (libhdf5-mpich) over ULFM: chunked, compressed and growing sets written collectively and one by one,
# read back in another pattern, and the same file as one process writes.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if ! command -v h5dump >/dev/null || ! pkg-config --exists hdf5-mpich; then
    echo "no parallel HDF5 (Debian packages libhdf5-mpich-dev, hdf5-tools)"
    exit 77
fi
# shellcheck disable=SC2034 # of fabric_common.bash
patience=120
. "$here/fabric_common.bash"
# Only HDF5's own folders: Debian's mpi.h is not for us.
read -ra include < <(pkg-config --cflags-only-I hdf5-mpich | tr ' ' '\n' | grep hdf5 | tr '\n' ' ')
read -ra library < <(pkg-config --libs-only-L hdf5-mpich)
"$stage/bin/mpicc" -O1 "${include[@]}" "$here/parallel_hdf5.c" -o parallel_hdf5 "${library[@]}" -lhdf5 || exit 1

check() { # PROCESSES OPTIONS...
    rm -f set.h5 out err
    over "-n $*" ' 0 wrong values' "${@:2}" -n "$1" ./parallel_hdf5 set.h5 100
    h5dump set.h5 >"dump.$1" && cmp "dump.$1" dump.1 >>err || fail "-n $*" "not the file of one process"
}

check 1
check 3
check 6
check 4 --transport xswitch --topology th8 --fault drop=1e-3
check 3 --transport tcp
check 3 --ft
exit $((failures > 0))
