#!/usr/bin/env bash
# 18 of 20 ranks die one after the other: the two that live go on, with a heap as it was (the list of the dead is long).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
ulimit -c 0

compile dead <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
/* Argument: how many live. */
int main(int argc, char **argv)
{
    enum { blocks = 64 };
    const int living = atoi(argv[1]);
    int rank, size, flag, dead = 0, one = 1, sum = 0;
    void *near[blocks];
    MPI_Comm small;
    MPI_Group failed;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < blocks; i++)
        near[i] = malloc(8);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank >= living) {
        usleep(10000 * rank);
        _exit(1);
    }
    while (dead < size - living) {
        MPI_Iprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        MPIX_Comm_get_failed(MPI_COMM_WORLD, &failed);
        MPI_Group_size(failed, &dead);
        MPI_Group_free(&failed);
        usleep(1000);
    }
    MPIX_Comm_revoke(MPI_COMM_WORLD);
    MPIX_Comm_shrink(MPI_COMM_WORLD, &small);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, small);
    for (int i = 0; i < blocks; i++)
        free(near[i]);
    MPI_Comm_free(&small);
    MPI_Finalize();
    printf("rank %d: %d live\n", rank, sum);
    return 0;
}
C
timeout -k 5 "$patience" "$stage/bin/ulfmrun" --ft -n 20 "$work/dead" 2 >"$work/out" 2>&1 </dev/null || true
(($(grep -c '^rank [01]: 2 live$' "$work/out") == 2)) || fail "the living did not go on"
! grep -q 'rank [01] .*killed by signal' "$work/out" || fail "a living rank was killed"
echo "18 of 20 ranks die, and two go on"
