#!/usr/bin/env bash
# Messages that come before their receive: what they wait in is kept for the next ones, and given back when it was much.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

# early SIZE MESSAGES ROUNDS: rank 0 sends MESSAGES, and one of another tag, before rank 1 receives the first.
compile early <<'C'
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
static long resident(void)
{
    long kilobytes = -1;
    char line[200];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "RssAnon: %ld", &kilobytes) == 1) break;
    if (status) fclose(status);
    return kilobytes;
}
static int wrong;
static void burst(int rank, int size, int messages, int round)
{
    static MPI_Request requests[10000];
    char *const data = malloc((size_t)size);
    if (rank == 0) {
        memset(data, round, (size_t)size);
        for (int i = 0; i < messages; ++i) MPI_Isend(data, size, MPI_BYTE, 1, i % 7, MPI_COMM_WORLD, &requests[i]);
        MPI_Send(NULL, 0, MPI_BYTE, 1, 100, MPI_COMM_WORLD);
        for (int i = 0; i < messages; ++i) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 101, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 100, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int tag = 6; tag >= 0; --tag)
            for (int i = tag; i < messages; i += 7) {
                MPI_Recv(data, size, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                wrong += data[0] != (char)round || data[size - 1] != (char)round;
            }
        MPI_Send(NULL, 0, MPI_BYTE, 0, 101, MPI_COMM_WORLD);
    }
    free(data);
}
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int size = atoi(argv[1]), messages = atoi(argv[2]), rounds = atoi(argv[3]);
    const long before = resident();
    for (int i = 0; i < 10; ++i) burst(rank, size, messages, i);
    const long warm = faults();
    for (int i = 0; i < rounds; ++i) burst(rank, size, messages, i);
    if (rank == 1) printf("wrong %d\nfaults %ld\nkept %ld\n", wrong, faults() - warm, resident() - before);
    MPI_Finalize();
    return 0;
}
C

# early SIZE MESSAGES ROUNDS [ULFMRUN OPTION...]: sets faults and kept.
early() {
    timeout -k 10 "$patience" "$stage/bin/ulfmrun" "${@:4}" -n 2 "$work/early" "${@:1:3}" >"$work/out" 2>&1 || fail "$*: exit code $?"
    grep -qx "wrong 0" "$work/out" || fail "$*: wrong data"
    read -r _ faults < <(grep '^faults ' "$work/out")
    read -r _ kept < <(grep '^kept ' "$work/out")
}

# 6400 took 18,000 faults at 16 KB, and 41,000 at 32,000 bytes.
for size in 5000 16384 32000 60000; do
    early $size 64 100
    ((faults < 2000)) || fail "6400 early messages of $size bytes: $faults page faults"
done
early 200000 20 100 --transport tcp
((faults < 4000)) || fail "2000 early messages of 200000 bytes over tcp: $faults page faults"

# 60 MB wait at once; 8 MB of them are kept.
early 60000 1000 1
((kept < 20000)) || fail "$kept KB are kept after messages of 60 MB"
echo "early messages wait in memory that is kept"
