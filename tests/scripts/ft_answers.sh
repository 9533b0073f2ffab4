#!/usr/bin/env bash
# With --ft: what a rank has asked for before it died is no failure of whoever finds its packet, and who could not make a
# communicator keeps nobody waiting in it.
set -euo pipefail
# shellcheck source=mpi_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

compile asked <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
/* The last rank asks rank 0 for a lock and writes into its window, or reads and adds there, and dies before rank 0 looks;
 * rank 0 has never sent to it. Then rank 0 is in a barrier, and the others go on without the dead: asked lock|add|get */
static int window[4];

static int has_ended(pid_t process) {
  char file[64], state = 'Z';
  snprintf(file, sizeof file, "/proc/%d/stat", (int)process);
  FILE* stat = fopen(file, "r");
  if (!stat) return 1;
  if (fscanf(stat, "%*d %*s %c", &state) != 1) state = 'Z';
  fclose(stat);
  return state == 'Z' || state == 'X';
}

static void ask_and_die(const char* what, MPI_Win win) {
  int one = 1, got, done;
  MPI_Request request;
  MPI_Win_lock(strcmp(what, "lock") == 0 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0,
               strcmp(what, "lock") == 0 ? 0 : MPI_MODE_NOCHECK, win);
  if (strcmp(what, "lock") == 0) MPI_Rput(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, win, &request);
  else if (strcmp(what, "get") == 0) MPI_Rget(&got, 1, MPI_INT, 0, 0, 1, MPI_INT, win, &request);
  else MPI_Rget_accumulate(&one, 1, MPI_INT, &got, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win, &request);
  for (int i = 0; i < 1000; ++i) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  raise(SIGKILL);
}

int main(int argc, char** argv) {
  int rank, size, left, class;
  MPI_Comm comm, rest;
  MPI_Win win;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  int own = getpid(), *all = malloc((size_t)size * sizeof *all);
  MPI_Allgather(&own, 1, MPI_INT, all, 1, MPI_INT, comm);
  MPI_Win_create(window, sizeof window, 4, MPI_INFO_NULL, comm, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  if (rank == size - 1) ask_and_die(argv[1], win);
  while (rank == 0 && !has_ended(all[size - 1])) usleep(1000);
  MPI_Error_class(MPI_Barrier(comm), &class);
  if (class != MPIX_ERR_PROC_FAILED && class != MPIX_ERR_REVOKED) return fprintf(stderr, "barrier: class %d\n", class), 3;
  MPIX_Comm_revoke(comm);
  MPIX_Comm_shrink(comm, &rest);
  MPI_Comm_size(rest, &left);
  if (left != size - 1 || MPI_Barrier(rest) != MPI_SUCCESS) return fprintf(stderr, "shrink: %d left\n", left), 3;
  MPI_Win_free(&win);
  if (rank == 0) printf("went on\n");
  free(all);
  return MPI_Finalize();
}
C

compile made <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>
/* Grids and collectives of neighbours, during which rank 0 dies after so many microseconds; the others shrink and go on,
 * until one is left: made MICROSECONDS */
static void die(int signal) { kill(getpid(), signal ? SIGKILL : SIGKILL); }

/* Grids until something fails. */
static void grids(MPI_Comm comm, int rank, int size) {
  int rc = MPI_SUCCESS;
  while (rc == MPI_SUCCESS) {
    const int dims[1] = {size}, around[1] = {1}, sent[2] = {rank, rank};
    int got[2] = {-1, -1};
    MPI_Comm grid;
    rc = MPI_Cart_create(comm, 1, dims, around, 0, &grid);
    if (rc != MPI_SUCCESS) return;
    rc = MPI_Neighbor_alltoall(sent, 1, MPI_INT, got, 1, MPI_INT, grid);
    if (rc == MPI_SUCCESS && (got[0] != (rank + size - 1) % size || got[1] != (rank + 1) % size)) exit(3);
    if (rc != MPI_SUCCESS) MPIX_Comm_revoke(comm);
    MPI_Comm_free(&grid);
  }
}

int main(int argc, char** argv) {
  int rank, size = 0, flag = 1;
  MPI_Comm comm, rest;
  MPI_Init(&argc, &argv);
  signal(SIGALRM, die);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int round = 0;; ++round) {
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    if (size == 1) break;
    if (rank == 0) {
      const struct itimerval timer = {{0, 0}, {0, atoi(argv[1]) + round * 777}};
      setitimer(ITIMER_REAL, &timer, NULL);
    }
    grids(comm, rank, size);
    MPIX_Comm_revoke(comm);
    MPIX_Comm_agree(comm, &flag);
    MPIX_Comm_shrink(comm, &rest);
    MPI_Comm_free(&comm);
    comm = rest;
  }
  printf("the last one\n");
  fflush(stdout);
  MPI_Comm_free(&comm);
  return MPI_Finalize();
}
C

for what in lock add get; do
    for over in direct ofi tcp; do survives 'went on' --transport $over -n 4 "$work/asked" $what; done
    survives 'went on' --transport xswitch --topology th8 -n 4 "$work/asked" $what
    echo "ok   $what"
done
for microseconds in 3000 4100 5300 6800; do
    survives 'the last one' --transport xswitch --topology th8 -n 6 "$work/made" $microseconds
    survives 'the last one' --transport dcm --topology cube:3 -n 6 "$work/made" $microseconds
    survives 'the last one' --transport direct -n 6 "$work/made" $microseconds
done
echo "ok   made"
