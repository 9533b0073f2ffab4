#!/usr/bin/env bash
# A job that hangs says who waits for whom, by itself and when it is asked.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

compile hang <<'C'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
/* Everybody waits for somebody else, behind some messages that came. */
int main(int argc, char **argv)
{
    static char large[3000000];
    int rank, size, x = 0;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 10; i++) MPI_Barrier(MPI_COMM_WORLD);
    printf("all wait\n");
    fflush(stdout);
    if (strcmp(argv[1], "send") == 0)
        MPI_Send(large, sizeof large, MPI_CHAR, (rank + 1) % size, 9, MPI_COMM_WORLD);
    if (strcmp(argv[1], "compute") == 0 && rank == 0)
        for (volatile int i = 0;; i++) continue;
    if (strcmp(argv[1], "agree") == 0 && rank != 1) MPIX_Comm_agree(MPI_COMM_WORLD, &x);
    if ((strstr(argv[1], "barrier") || strcmp(argv[1], "agree") == 0) && rank == 1)
        MPI_Recv(&x, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (strcmp(argv[1], "ibarrier") == 0) {
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (strcmp(argv[1], "wait") != 0 && strcmp(argv[1], "ring") != 0) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Recv(&x, 1, MPI_INT, (rank + size - 1) % size, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
C

# lines PATTERN: how many the output has. Each job below finds it empty: it may be looked at before the job has opened it.
lines() { grep -cE "$1" "$work/out" || true; }

# until PATTERN COUNT: the output has so many lines of it.
until_there() {
    local end=$((SECONDS + 60))
    until [[ $(lines "$1") -ge $2 ]]; do
        ((SECONDS < end)) || fail "no line like '$1' has come"
        sleep 0.1
    done
}

# Without ulfmrun there is no table, and each process reports for itself.
: >"$work/out"
ULFM_STALL_REPORT=1 "$mpiexec" -n 2 "$work/hang" wait >"$work/out" 2>&1 &
job=$!
for rank in 0 1; do
    until_there "^ulfm: stall rank $rank \(process [0-9]+\): nothing has come since [0-9.]+ s in an MPI call that waits" 1
    until_there "^ulfm: stall rank $rank .*has a connection to process [0-9]+, which runs" 1
done
pid=$(sed -nE 's/^ulfm: stall rank 1 \(process ([0-9]+)\).*/\1/p' "$work/out" | head -n 1)
before=$(grep -cE "^ulfm: stall rank 1 .*nothing has come" "$work/out")
kill -USR2 "$pid"
until_there "^ulfm: stall rank 1 .*nothing has come" $((before + 1))
kill -0 "$pid" || fail "SIGUSR2 has ended the process"
kill "$job"
wait "$job" || true

# The table of the job, with the cycle. hung WHAT PATTERN...: a line like each has come.
hung() {
    local what=$1 pattern
    shift
    : >"$work/out"
    ULFM_STALL_REPORT=1 "$stage/bin/ulfmrun" -n 3 "$work/hang" "$what" >"$work/out" 2>&1 &
    job=$!
    for pattern in "$@"; do until_there "^ulfm: stall: +$pattern" 1; done
    kill "$job"
    wait "$job" || true
}
in_world='in MPI_COMM_WORLD'
hung wait '0 +[0-9]+ +waits +[0-9.]+ s +a message from rank 2, tag 9 '"$in_world"' +waits +1 posted, 0 arrived, 0 unsent' \
    "deadlock: rank 0 waits for a message from rank 2, tag 9 $in_world; rank 2 .*rank 1, tag 9 $in_world; rank 1 .*rank 0"
hung send "deadlock: rank 0 waits for rank 1 to receive 3000000 bytes, tag 9 $in_world; rank 1 .*; rank 2"
hung barrier 'deadlock: rank 0 waits for rank 1 to come to MPI_Barrier; rank 1 waits for a message from rank 0'
hung ibarrier 'deadlock: rank 0 waits for rank 1 to come to MPI_Ibarrier; rank 1 waits for a message from rank 0'
hung agree 'deadlock: rank 0 waits for rank 1 to come to an agreement; rank 1 waits for a message from rank 0' \
    '2 +[0-9]+ +waits +[0-9.]+ s +rank 0 to come to an agreement +waits'
hung compute '0 +[0-9]+ +computes +- +it makes no calls' '1 +[0-9]+ +waits .*rank 0 to come to MPI_Barrier +computes'

# It is also made when ulfmrun is asked, and nobody ends of it.
: >"$work/out"
"$stage/bin/ulfmrun" -n 3 "$work/hang" ring >"$work/out" 2>&1 &
job=$!
until_there '^all wait$' 3
until [[ $(lines '^ulfm: stall: deadlock') -ge 1 ]]; do
    kill -USR2 "$job" || fail "SIGUSR2 has ended the job"
    sleep 0.2
done
kill "$job"
wait "$job" || true
echo "two ranks that wait for each other say so"
