#!/usr/bin/env bash
# The size of /dev/shm does not matter: 16 ranks send messages of 1 MB, and share 256 MB of windows, with 64 MB of it, with
# none, and when it is full; over an emulated interconnect and ofi, between ports and on a cube of NX/2 too. Nothing is left in it.
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
#include <string.h>
/* Bytes of the left neighbour that are wrong in a window of 16 MB of each rank. */
static int in_windows(int rank, int size, int shared)
{
    enum { bytes = 16 << 20 };
    unsigned char *mine, *data = malloc(bytes);
    int wrong = 0;
    MPI_Win window;
    if (shared) MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &window);
    else MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &window);
    for (int i = 0; i < bytes; i += 4096) wrong += mine[i] != 0;
    memset(data, rank + 1, bytes);
    MPI_Win_fence(0, window);
    MPI_Put(data, bytes, MPI_BYTE, (rank + 1) % size, 0, bytes, MPI_BYTE, window);
    MPI_Win_fence(0, window);
    for (int i = 0; i < bytes; ++i) wrong += mine[i] != (rank + size - 1) % size + 1;
    MPI_Win_free(&window);
    free(data);
    return wrong;
}
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
    if (argc > 1) wrong += in_windows(rank, size, 0) + in_windows(rank, size, 1);
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%d bytes wrong\n", all);
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
C

full='mount -t tmpfs -o size=64k none /dev/shm && ! head -c 1M /dev/zero 2>/dev/null >/dev/shm/others'
none='mount -t tmpfs -o ro,size=4k none /dev/shm'

# in_world SETTING SAYS COMMAND...: the command with /dev/shm as SETTING makes it; says that, and leaves nothing there.
in_world() {
    local setting=$1 says=$2
    shift 2
    # shellcheck disable=SC2016 # the inner shell's
    timeout -k 10 "$patience" "${namespace[@]}" bash -c "$setting"' || exit 98
        before=$(ls -A /dev/shm)
        "$@" || exit
        [[ $(ls -A /dev/shm) == "$before" ]] || { echo "left in /dev/shm: $(ls -A /dev/shm)" && exit 99; }
        ' world "$@" >"$work/out" 2>&1 </dev/null || fail "$setting: $*: exit code $?"
    grep -q -- "$says" "$work/out" || fail "$setting: $*: wrong result"
}
in_world "mount -t tmpfs -o size=64m none /dev/shm" '^0 bytes wrong$' "$mpiexec" -n 16 "$work/big" windows
in_world "mkdir -p '$work/empty' && mount --bind '$work/empty' /dev/shm && mount -o remount,bind,ro /dev/shm" \
    '^0 bytes wrong$' "$mpiexec" -n 16 "$work/big" windows
for world in "$full" "$none"; do
    in_world "$world" '^0 bytes wrong$' "$mpiexec" -n 16 "$work/big" windows
    in_world "$world" '^0 bytes wrong$' "$stage/bin/ulfmrun" --transport xswitch --topology mesh:2x2 -n 4 "$work/big"
    in_world "$world" '^0 bytes wrong$' "$stage/bin/ulfmrun" --transport ofi -n 4 "$work/big"
    for transport in direct xswitch; do
        in_world "$world" 'kB_at_the_end' "$stage/bin/ulfm_perf" soak --transport $transport --size 0:1M --iterations 300
    done
done
echo "16 ranks send 1 MB and share 256 MB with a /dev/shm of 64 MB, with none, and when it is full; so do other interconnects and ports"

[[ -x $stage/bin/nxcc ]] || exit 0
for program in host host_node; do "$stage/bin/nxcc" -std=gnu11 -O1 "${ULFM_SOURCE:?}/tests/nx2/$program.c" -o "$work/$program"; done
for options in "" "--transport xswitch --topology mesh:2x2" "--transport dcm"; do
    # shellcheck disable=SC2086 # words
    in_world "$full" ': ok$' "$stage/bin/nxhost" -n 3 $options "$work/host" "$work/host_node"
done
echo "cubes of NX/2 run when /dev/shm is full"
