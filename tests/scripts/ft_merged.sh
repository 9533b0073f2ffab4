#!/usr/bin/env bash
# With --ft: a rank dies before MPI_Intercomm_merge, after others that went well. Its leader's partner fails and tells its
# own group, which waits for it.
set -euo pipefail
# shellcheck source=mpi_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

compile ft_merged <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
/* Two groups merge so many times, and each time the communicators are freed. Then a rank dies: ft_merged RANK TIMES */
int main(int argc, char** argv) {
  int rank, size, one = 1, sum, rc = MPI_SUCCESS, class, flag = 1, left;
  MPI_Comm comm, half, both, merged, rest;
  MPI_Init(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int round = 0; round <= atoi(argv[2]); ++round) {
    MPI_Comm_split(comm, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, comm, (rank + 1) % 2, 5, &both);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, both);
    if (round == atoi(argv[2]) && rank == atoi(argv[1])) kill(getpid(), SIGKILL);
    rc = MPI_Intercomm_merge(both, rank % 2, &merged);
    if (rc == MPI_SUCCESS) MPI_Comm_free(&merged);
    MPI_Comm_free(&half); /* first, so that the next one is in the place of `both` */
    MPI_Comm_free(&both);
  }
  MPI_Error_class(rc, &class);
  if (class != MPIX_ERR_PROC_FAILED) return fprintf(stderr, "rank %d: merge: class %d\n", rank, class), 3;
  MPIX_Comm_agree(comm, &flag);
  MPIX_Comm_shrink(comm, &rest);
  MPI_Comm_size(rest, &left);
  if (left != size - 1 || MPI_Barrier(rest) != MPI_SUCCESS) return fprintf(stderr, "shrink: %d left\n", left), 3;
  if (rank == 2) printf("went on\n");
  fflush(stdout);
  MPI_Comm_free(&rest);
  MPI_Comm_free(&comm);
  return MPI_Finalize();
}
C

for victim in 0 1 3; do
    for times in 1 2 3 4; do
        for over in direct tcp ofi; do survives 'went on' --transport $over -n 7 "$work/ft_merged" $victim $times; done
        survives 'went on' --transport xswitch --topology th8 -n 7 "$work/ft_merged" $victim $times
    done
    echo "ok   rank $victim"
done
