#!/usr/bin/env bash
# The size of /dev/shm does not matter: 16 ranks send messages of 1 MB with 64 MB of it, and with none.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

namespace=(unshare -m)
if ! "${namespace[@]}" mount -t tmpfs -o size=64m none /dev/shm 2>/dev/null; then
    namespace=(unshare -r -m)
    if ! "${namespace[@]}" mount -t tmpfs -o size=64m none /dev/shm 2>/dev/null; then
        echo "no rights to mount another /dev/shm"
        exit 77
    fi
fi

compile big <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    enum { bytes = 1 << 20, rounds = 4 };
    MPI_Init(&argc, &argv);
    int rank, size, wrong = 0, all = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    unsigned char *out = malloc(bytes), *in = malloc(bytes);
    for (int distance = 1; distance <= rounds; ++distance) {
        const int to = (rank + distance) % size, from = (rank - distance + size) % size;
        for (int i = 0; i < bytes; ++i) out[i] = (unsigned char)(rank * 13 + i + distance);
        MPI_Sendrecv(out, bytes, MPI_BYTE, to, 1, in, bytes, MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < bytes; ++i) wrong += in[i] != (unsigned char)(from * 13 + i + distance);
    }
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%d bytes wrong\n", all);
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
C

# in_world COMMAND: the program with /dev/shm as COMMAND makes it.
in_world() {
    timeout -k 10 "$patience" "${namespace[@]}" bash -c "$1 && exec \"\$@\"" world "$mpiexec" -n 16 "$work/big" >"$work/out" 2>&1 ||
        fail "$1: exit code $?"
    grep -qx "0 bytes wrong" "$work/out" || fail "$1: wrong result"
}
in_world "mount -t tmpfs -o size=64m none /dev/shm"
in_world "mount -t tmpfs -o ro,size=4k none /dev/shm"
in_world "mkdir -p '$work/empty' && mount --bind '$work/empty' /dev/shm && mount -o remount,bind,ro /dev/shm"
echo "16 ranks send 1 MB with a /dev/shm of 64 MB and with none"
