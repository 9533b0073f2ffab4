#!/usr/bin/env bash
# MPI programs over boards in the slots of a PC: the same results for all numbers of boards and both modes, with a bad network,
# with boards and hosts that die, and with the host as a process; many senders to one do not exceed the host's memory.
set -uo pipefail
# shellcheck source=fabric_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/fabric_common.bash"

# Fang and Lei 2017, section 4: 8, 64 and 128 processes, the same result each time.
for mode in store cut-through; do
    for processes in 8 64 128; do
        over "trapezoid, 8 boards, $processes processes, $mode" "processsize:$processes,ourestimation=$answer" \
            --transport "pcie,mode=$mode" --topology boards:8x16 -n $processes "$programs/trapezoid"
    done
    over "trapezoid, 2 boards, $mode" "$answer" --transport "pcie,mode=$mode" --topology boards:2x2 -n 4 "$programs/trapezoid"
    over "trapezoid, 4 boards, $mode" "$answer" --transport "pcie,mode=$mode" --topology boards:4x4 -n 16 "$programs/trapezoid"
    over "bad network, $mode" "$answer" --transport "pcie,mode=$mode" --topology boards:4x4 --fault "$bad_network" -n 8 \
        "$programs/trapezoid"
    over "halo in small fragments, $mode" '' --transport "pcie,mode=$mode,frame=1024,fragment=64,pool=4096,memory=8192" \
        --topology boards:2x2 -n 4 "$programs/halo"
    ULFM_ENGINE=process over "the host as a process, $mode" "$answer" --transport "pcie,mode=$mode" -n 8 "$programs/trapezoid"
done
over "all of the host are neighbours" "$answer" -genv ULFM_SHARE host --transport pcie --topology boards:4x2 -n 8 \
    "$programs/trapezoid"
# What is dead stays dead: its processes are given up, with a sentence.
ULFM_GIVE_UP=2s refused "a board is dead" 'is given up' --transport pcie --topology boards:2x2 --fault 'node 1 dead at 0s' -n 4 \
    "$programs/trapezoid"
ULFM_GIVE_UP=2s refused "the host is dead" 'is given up' --transport pcie --topology boards:2x2 \
    --fault 'switch 0 dead at 0s' -n 4 "$programs/trapezoid"

ULFM_STATS=1 over "statistics" "$answer" --transport pcie --topology boards:2x2 -n 4 "$programs/trapezoid"
grep -q 'stats pcie: turns [1-9].*messages entered [1-9].*present 0,.*stored 0,' err || fail statistics "no totals"
grep -q 'stats pcie board 0: control packets [1-9]' err || fail statistics "no line for a board"
grep -q 'stats pcie slot 0: stored 0' err || fail statistics "no line for a slot"
grep -q 'stats pcie pool [0-9]*\.1: messages [1-9]' err || fail statistics "no line for a pool"

refused "no such shape" 'write boards:BxP' --transport pcie --topology mesh:2x2 -n 2 "$programs/trapezoid"
refused "no boards between switches" 'take --transport pcie' --transport xswitch --topology boards:2x2 -n 2 "$programs/trapezoid"
refused "no such option" 'mode=store|cut-through' --transport pcie,mod=store -n 2 "$programs/trapezoid"
refused "no such mode" 'needs mode=store|cut-through' --transport pcie,mode=direct -n 2 "$programs/trapezoid"
refused "too little memory" 'memory=2048 has no room' --transport pcie,memory=2048 -n 2 "$programs/trapezoid"
over "more processes than the boards were built for" "$answer" --transport pcie --topology boards:2x2 -n 9 "$programs/trapezoid"

# ---- many to one ----------------------------------------------------------------------------------------------------

cat >incast.c <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* Everybody sends `bytes` to rank 0, which begins late and checks them all. */
int main(int argc, char **argv)
{
    int rank, size, i;
    size_t bytes = (size_t)atol(argv[1]), at, wrong = 0;
    unsigned char *data = malloc(bytes);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank != 0) {
        memset(data, rank, bytes);
        MPI_Send(data, (int)bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
    for (i = 1; rank == 0 && i < size; i++) {
        MPI_Recv(data, (int)bytes, MPI_BYTE, i, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (at = 0; at < bytes; at++)
            wrong += data[at] != (unsigned char)i;
    }
    if (rank == 0)
        printf("incast of %d: wrong %zu\n", size - 1, wrong);
    MPI_Finalize();
    return 0;
}
C
# incast MODE SENDERS BYTES MEMORY EAGER: the bytes arrive, and the host never stores more than MEMORY.
incast() {
    local mode=$1 senders=$2 bytes=$3 memory=$4 eager=$5 name="incast of $2, $1, eager up to $5"
    ULFM_STATS=1 ULFM_EAGER=$eager over "$name" "incast of $senders: wrong 0" --transport "pcie,mode=$mode,memory=$memory" \
        --topology boards:8x16 -n $((senders + 1)) ./incast "$bytes"
    local used
    used=$(sed -n 's/.*most stored \([0-9]*\) most reserved \([0-9]*\) of.*/\1 \2/p' err)
    [[ -n $used ]] || fail "$name" "no statistics"
    ((${used% *} > 0 && ${used% *} <= memory && ${used#* } <= memory)) || fail "$name" "memory: $used of $memory"
}
if [[ -x $stage/bin/mpicc ]] && "$stage/bin/mpicc" -O2 incast.c -o incast; then
    incast store 127 4194304 1048576 65536
    incast cut-through 127 4194304 131072 65536
    # All at once, with nothing asked first: the senders' boards hold what the pool has no room for.
    incast store 63 1000000 65536 8000000
fi

# Without any network, not even loopback, there is nothing to warn about.
if unshare -n true 2>/dev/null; then
    timeout 250 unshare -n "$run" --transport pcie -n 4 "$programs/trapezoid" </dev/null >out 2>err || fail 'no network' "exit code $?"
    [[ ! -s err ]] || fail 'no network' 'something on standard error'
fi

((failures == 0)) || exit 1
