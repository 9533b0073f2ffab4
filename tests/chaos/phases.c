/* A job whose ranks can be killed at a place that is known: the victim makes a file when it is there and goes on.
 *   phases PLACE VICTIM FILE [ft]
 * PLACE: init, messages, finalize, or one collective. With `ft` the living shrink and say that they went on. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LARGE = 2000000, SMALL = 8, MOST = 64 };
static int rank, size, ft;
static char *in, *out;

static void mark(const char* file, int here) {
  if (here) close(open(file, O_CREAT | O_WRONLY, 0600));
}

static int messages(MPI_Comm comm) {
  int to = (rank + 1) % size, from = (rank + size - 1) % size, rc;
  MPI_Request r[2];
  rc = MPI_Irecv(in, LARGE, MPI_CHAR, from, 1, comm, &r[0]);
  if (rc) return rc;
  rc = MPI_Isend(out, LARGE, MPI_CHAR, to, 1, comm, &r[1]);
  if (rc) return rc;
  rc = MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  if (rc) return rc;
  return MPI_Sendrecv(out, SMALL, MPI_CHAR, to, 2, in, SMALL, MPI_CHAR, from, 2, comm, MPI_STATUS_IGNORE);
}

static int collective(const char* what, MPI_Comm comm) {
  int counts[MOST];
  for (int i = 0; i < MOST; i++) counts[i] = 1;
  if (strcmp(what, "barrier") == 0) return MPI_Barrier(comm);
  if (strcmp(what, "bcast") == 0) return MPI_Bcast(out, SMALL, MPI_CHAR, 0, comm);
  if (strcmp(what, "reduce") == 0) return MPI_Reduce(out, in, 2, MPI_INT, MPI_SUM, 0, comm);
  if (strcmp(what, "allreduce") == 0) return MPI_Allreduce(out, in, 2, MPI_INT, MPI_SUM, comm);
  if (strcmp(what, "reduce_scatter") == 0) return MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, comm);
  if (strcmp(what, "reduce_scatter_block") == 0) return MPI_Reduce_scatter_block(out, in, 1, MPI_INT, MPI_SUM, comm);
  if (strcmp(what, "scan") == 0) return MPI_Scan(out, in, 2, MPI_INT, MPI_SUM, comm);
  if (strcmp(what, "exscan") == 0) return MPI_Exscan(out, in, 2, MPI_INT, MPI_SUM, comm);
  if (strcmp(what, "gather") == 0) return MPI_Gather(out, SMALL, MPI_CHAR, in, SMALL, MPI_CHAR, 0, comm);
  if (strcmp(what, "allgather") == 0) return MPI_Allgather(out, SMALL, MPI_CHAR, in, SMALL, MPI_CHAR, comm);
  if (strcmp(what, "scatter") == 0) return MPI_Scatter(out, SMALL, MPI_CHAR, in, SMALL, MPI_CHAR, 0, comm);
  if (strcmp(what, "alltoall") == 0) return MPI_Alltoall(out, SMALL, MPI_CHAR, in, SMALL, MPI_CHAR, comm);
  if (strcmp(what, "large") == 0) return MPI_Allreduce(out, in, LARGE / 4, MPI_INT, MPI_MAX, comm);
  fprintf(stderr, "phases: no place %s\n", what);
  exit(2);
}

/* What the living do: all of them find out, and shrink until the sum is right. */
static int go_on(MPI_Comm comm) {
  MPI_Comm small;
  int one = 1, sum = 0, n = 0, rc;
  for (int turn = 0; turn < 10; turn++) {
    MPIX_Comm_revoke(comm);
    if (MPIX_Comm_shrink(comm, &small) != MPI_SUCCESS) return 1;
    MPI_Comm_set_errhandler(small, MPI_ERRORS_RETURN);
    MPI_Comm_size(small, &n);
    rc = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, small);
    int fine = rc == MPI_SUCCESS && sum == n;
    MPIX_Comm_agree(small, &fine);
    if (fine) {
      MPI_Comm_free(&small);
      return 0;
    }
    comm = small;
  }
  return 1;
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const char *place = argv[1], *file = argv[3], *number = getenv("PMI_RANK");
  const int victim = atoi(argv[2]);
  ft = argc > 4;
  mark(file, strcmp(place, "init") == 0 && number && atoi(number) == victim);
  MPI_Init(&argc, &argv);
  MPI_Comm comm;
  int rc = MPI_SUCCESS;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  in = calloc(1, LARGE), out = calloc(1, LARGE);
  if (ft) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  rc = MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (strcmp(place, "messages") == 0 || strcmp(place, "finalize") == 0 || strcmp(place, "init") == 0)
    for (int i = 0; !rc && (i < 50 || strcmp(place, "messages") == 0); i++) {
      rc = messages(comm);
      if (i == 10 && strcmp(place, "messages") == 0) mark(file, rank == victim);
    }
  else
    for (int i = 0; !rc; i++) {
      rc = collective(place, comm);
      if (i == 20) mark(file, rank == victim);
    }
  if (rc && go_on(comm) == 0) printf("went on\n"), fflush(stdout);
  if (strcmp(place, "finalize") == 0) mark(file, rank == victim);
  MPI_Finalize();
  return 0;
}
