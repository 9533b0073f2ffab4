#!/usr/bin/env bash
# Fault tolerance without a fault: communicators and windows that follow each other have the same context id, and each agreement
# has a decision of its own, also when a member asks while the coordinator still has that of the one before.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

compile again <<'C'
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
static int rank, size, wrong;

static void look_around(void)
{
    int found;
    for (int i = 0; i < 20; i++) {
        usleep(100);
        MPI_Iprobe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    }
}
static void agree(int turn)
{
    MPI_Comm comm;
    const int want = ~(1 << turn % 30);
    int flag = want;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (rank == turn % size) look_around();
    MPIX_Comm_agree(comm, &flag);
    if (flag != want && wrong++ == 0) printf("rank %d, turn %d: %x instead of %x\n", rank, turn, flag, want);
    MPI_Comm_free(&comm);
}
static void window(int turn)
{
    char memory[100];
    int got;
    MPI_Win win;
    MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    MPI_Win_fence(0, win);
    if (rank == turn % size) look_around();
    MPI_Win_free(&win);
    MPI_Sendrecv(&turn, 1, MPI_INT, (rank + 1) % size, 1, &got, 1, MPI_INT, (rank + size - 1) % size, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    wrong += got != turn;
}
int main(int argc, char **argv)
{
    int all;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 60; i++) agree(i);
    for (int i = 0; i < 60; i++) window(i);
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) puts(all ? "wrong" : "right");
    MPI_Finalize();
    return all != 0;
}
C

for transport in direct xswitch; do
    for ranks in 2 3 5; do
        timeout "$patience" "$stage/bin/ulfmrun" --ft --transport $transport -n $ranks "$work/again" >"$work/out" 2>&1 ||
            fail "$transport, $ranks ranks: exit status $?"
        grep -qx right "$work/out" || fail "$transport, $ranks ranks: no result"
        echo "ok   $transport, $ranks ranks"
    done
done
