#!/usr/bin/env bash
# Revocations nobody died for: of a communicator that other members are still making, again and again, and of one between
# two groups, while others receive in it or are in a collective of it. Takes the options of ulfmrun for the interconnect.
set -uo pipefail
# shellcheck source=mpi_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
cd "$work" || exit 1
over=("$@")

compile revoke <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int rank, size, wrong;

static void want_revoked(const char *what, int rc)
{
    int class;
    MPI_Error_class(rc, &class);
    if (class == MPIX_ERR_REVOKED) return;
    printf("rank %d: %s: class %d\n", rank, what, class), fflush(stdout);
    wrong = 1;
}

/* Who is through with making a communicator revokes it at once. */
static void early(void)
{
    for (int i = 0; i < 60; i++) {
        MPI_Comm comm;
        int one = 1, sum;
        if (i % 3) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        else MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        if (i % size == rank) MPIX_Comm_revoke(comm);
        want_revoked("collective of a new communicator", i % 2 ? MPI_Barrier(comm) : MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
        MPI_Comm_free(&comm);
    }
}

/* The groups are the even and the odd ranks, and have other ids of communicators. */
static void between(int collective)
{
    MPI_Comm half, inter, others[3];
    int got, flag = 0;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    for (int i = 0; rank % 2 && i < 3; i++) MPI_Comm_dup(half, &others[i]);
    for (int revoker = 0; revoker < size; revoker++) {
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 5, &inter);
        MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
        if (collective) MPI_Barrier(inter);
        if (rank == revoker) MPIX_Comm_revoke(inter);
        want_revoked("between groups", collective ? MPI_Barrier(inter) : MPI_Recv(&got, 1, MPI_INT, 0, 3, inter, MPI_STATUS_IGNORE));
        MPIX_Comm_is_revoked(inter, &flag);
        if (!flag) printf("rank %d: not revoked\n", rank), wrong = 1;
        MPI_Comm_free(&inter);
    }
    for (int i = 0; rank % 2 && i < 3; i++) MPI_Comm_free(&others[i]);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(argv[1], "early") == 0) early();
    else between(strcmp(argv[1], "collective") == 0);
    if (!wrong) printf("right\n"), fflush(stdout);
    MPI_Finalize();
    return wrong;
}
C

for what in early receive collective; do
    for n in 2 5; do
        timeout "$patience" "$stage/bin/ulfmrun" --ft "${over[@]}" -n "$n" ./revoke "$what" </dev/null >out 2>&1 ||
            fail "$what, $n ranks: ended with status $?"
        (($(grep -cx right out) == n)) || fail "$what, $n ranks: not all were told"
    done
done
echo "who is told of a revocation stops waiting"
