#!/usr/bin/env bash
# Floods: a sender that only sends, to a receiver that only receives, over every interconnect. All arrives, in order. That nobody sleeps
# meanwhile is counted in tests/unit/netmod_test.cpp: here a machine that is busy with other things makes waits sleep.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
messages=20000

compile flood <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, ranks, wrong = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int messages = atoi(argv[1]), size = atoi(argv[2]), any = strcmp(argv[3], "any") == 0;
    int *const buffer = calloc(1, (size_t)size), *const next = calloc((size_t)ranks, sizeof *next);
    const long before = faults();
    memset(buffer, 0, (size_t)size);
    if (rank != 0)
        for (int i = 0; i < messages; ++i) {
            *buffer = i;
            MPI_Send(buffer, size, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        }
    else
        for (int i = 0; i < messages * (ranks - 1); ++i) {
            MPI_Status status;
            MPI_Recv(buffer, size, MPI_BYTE, any ? MPI_ANY_SOURCE : 1 + i % (ranks - 1), 1, MPI_COMM_WORLD, &status);
            wrong += *buffer != next[status.MPI_SOURCE]++;
        }
    if (rank == 0) printf("%s\nfaults %ld\n", wrong ? "wrong" : "all in order", faults() - before);
    MPI_Finalize();
    return 0;
}
C

# flood RANKS SIZE SOURCE [ULFMRUN OPTION...]
flood() {
    local ranks=$1 size=$2 source=$3
    shift 3
    timeout -k 10 "$patience" "$stage/bin/ulfmrun" "$@" -n "$ranks" "$work/flood" "$messages" "$size" "$source" >"$work/out" 2>&1 ||
        fail "$ranks ranks, $size bytes, by $source $*: exit code $?"
    grep -qx "all in order" "$work/out" || fail "$ranks ranks, $size bytes, by $source $*: not in order"
}

flood 2 4 name
flood 2 64 name
flood 2 1024 any
flood 4 64 name
ULFM_LANES=0 flood 2 64 name
flood 2 64 name --transport xswitch --topology th8
flood 2 64 name --transport dcm --topology cube:2
flood 2 64 name --transport pcie --topology boards:2x2

# A long message whose receive is about to be posted goes to its place. In memory of its own each would fault in its pages: 0.4 a message
# of 32000 bytes within a host, 50 of one of 256 KB between hosts.
# faults_of SIZE MOST [ULFMRUN OPTION...]
faults_of() {
    local size=$1 most=$2
    shift 2
    flood 2 "$size" name "$@"
    read -r _ faults < <(grep '^faults ' "$work/out")
    ((faults < most)) ||
        fail "$messages messages of $size bytes were received with $faults page faults $*: they were kept in memory in between"
}
messages=30000
faults_of 24576 2500
faults_of 32000 2500
messages=300
faults_of 262144 $((16 * messages)) --transport tcp
for size in 40000 65536 131072 262144 1000000; do
    flood 2 $size any --transport tcp
    flood 3 $size name --transport tcp
    flood 4 $size any --transport tcp
done
echo "floods arrive in order"
