#!/usr/bin/env bash
# How long a receive waits for a rank of the same host that is killed: a rank after the other kills itself, and says when.
# The median of the kills is printed; on a quiet machine it is below 100 ms. What fails the test is no figure of merit but a
# bound that loaded machines keep: nobody waits for a keepalive or a time-out.
#   ft_detect.sh [OPTIONS OF ulfmrun...]
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
compile detect <<'C'
#include <mpi.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
static int by_size(const void *a, const void *b)
{
    return (*(const double *) a > *(const double *) b) - (*(const double *) a < *(const double *) b);
}
int main(int argc, char **argv)
{
    int rank, size, i, word = 0, class;
    double waited[64];
    int file = open(argv[1], O_RDWR);
    volatile double *when = mmap(NULL, 64 * sizeof *when, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank > 0) {
        MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        usleep(20000);
        when[rank] = now();
        kill(getpid(), SIGKILL);
    }
    for (i = 1; i < size; i++) {
        int error;
        MPI_Send(&word, 1, MPI_INT, i, 0, MPI_COMM_WORLD);
        error = MPI_Recv(&word, 1, MPI_INT, i, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        waited[i - 1] = (now() - when[i]) * 1000;
        MPI_Error_class(error, &class);
        if (class != MPIX_ERR_PROC_FAILED) printf("rank %d: class %d\n", i, class);
    }
    qsort(waited, size - 1, sizeof *waited, by_size);
    printf("found after %.1f ms (median of %d kills, %.1f to %.1f)\n", waited[(size - 1) / 2], size - 1, waited[0],
           waited[size - 2]);
    MPI_Finalize();
    return 0;
}
C

# detects RANKS OPTION...
detects() {
    local median
    truncate -s 0 "$work/when" && truncate -s 4096 "$work/when"
    timeout "$patience" "$stage/bin/ulfmrun" --ft "${@:2}" -n "$1" "$work/detect" "$work/when" >"$work/out" 2>&1 || true
    median=$(sed -nE 's/^found after ([0-9]+)\.[0-9] ms.*/\1/p' "$work/out")
    [[ -n $median ]] || fail "over ${*:2} the others do not go on"
    ! grep -q ': class ' "$work/out" || fail "over ${*:2} a receive from the dead has another error"
    ((median < 5000)) || fail "over ${*:2} a death is found after $median ms"
    echo "over ${*:2}: $(grep '^found after' "$work/out")"
}

if (($#)); then
    detects 10 "$@"
else
    detects 10 --transport direct
    detects 8 --transport xswitch --topology th8
fi
