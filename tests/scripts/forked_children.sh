#!/usr/bin/env bash
# Children that ranks fork in the midst of MPI: one that calls MPI ends with a sentence, and the job is as it was; one that
# ends, waits or runs another program harms nobody.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

compile forked <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static int rank, ranks;
static void child(const char *what)
{
    int number = 5, flag;
    MPI_Request request;
    MPI_Comm other;
    const int next = (rank + 1) % ranks;
    if (!strcmp(what, "barrier")) MPI_Barrier(MPI_COMM_WORLD);
    if (!strcmp(what, "allreduce")) MPI_Allreduce(MPI_IN_PLACE, &number, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (!strcmp(what, "ibarrier")) MPI_Ibarrier(MPI_COMM_WORLD, &request), MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (!strcmp(what, "send")) for (int i = 0; i < 20; ++i) MPI_Send(&number, 1, MPI_INT, next, 3, MPI_COMM_WORLD);
    if (!strcmp(what, "ssend")) MPI_Ssend(&number, 1, MPI_INT, next, 3, MPI_COMM_WORLD);
    if (!strcmp(what, "recv")) MPI_Recv(&number, 1, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!strcmp(what, "probe")) MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    if (!strcmp(what, "dup")) MPI_Comm_dup(MPI_COMM_WORLD, &other);
    if (!strcmp(what, "finalize")) MPI_Finalize();
    if (!strcmp(what, "exec")) execlp("sh", "sh", "-c", "exit 0", NULL);
    if (!strcmp(what, "quick")) _exit(0);
    exit(0);
}
/* forked WHAT STATUS: the children of ranks 0 and 1 do WHAT and end so. */
int main(int argc, char **argv)
{
    int status = 0, sum = 1, wrong = 0, got = -1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int round = 0; round < 3; ++round) {
        sum = 1;
        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        wrong += sum != ranks;
        if (rank < 2) {
            const pid_t pid = fork();
            if (pid == 0) child(argv[1]);
            wrong += waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != atoi(argv[2]);
        }
        MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % ranks, 4, &got, 1, MPI_INT, (rank + ranks - 1) % ranks, 4, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        wrong += got != (rank + ranks - 1) % ranks;
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("forked: %s\n", wrong ? "wrong" : "right");
    MPI_Finalize();
    return 0;
}
C

# forked WHAT STATUS OPTIONS...
forked() {
    says_right forked "$1, ${*:3}" "${@:3}" -n 3 "$work/forked" "$1" "$2"
    if (($2 == 0)); then
        ! grep -q 'MPI was called' "$work/out" || fail "$1: refused"
    else
        (($(grep -c 'MPI was called in process [0-9]*, a child that the rank has forked' "$work/out") >= 6)) || fail "$1: not told"
    fi
}
for transport in direct ofi; do
    for what in barrier allreduce ibarrier send ssend recv probe dup finalize; do forked $what 1 --transport $transport; done
    for what in nothing quick exec; do forked $what 0 --transport $transport; done
done
for what in barrier send recv; do forked $what 1 --transport xswitch --topology mesh:2x2; done
forked nothing 0 --transport xswitch --topology mesh:2x2
