#!/usr/bin/env bash
# A job that hangs says who waits for whom, by itself and when it is asked.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

compile hang <<'C'
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
/* Each receives from the other before it sends: a deadlock, behind some messages that came. */
int main(int argc, char **argv)
{
    int rank, x = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Recv(&x, 1, MPI_INT, 1 - rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&x, 1, MPI_INT, 1 - rank, 9, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
C

# until PATTERN COUNT: the output has so many lines of it.
until_there() {
    local end=$((SECONDS + 60))
    until (($(grep -cE "$1" "$work/out" || true) >= $2)); do
        ((SECONDS < end)) || fail "no line like '$1' has come"
        sleep 0.1
    done
}

ULFM_STALL_REPORT=1 "$mpiexec" -n 2 "$work/hang" >"$work/out" 2>&1 &
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
echo "two ranks that wait for each other say so"
