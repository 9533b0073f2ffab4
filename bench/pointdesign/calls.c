/* calls WHAT:BYTES...: in virtual time, how long after a moment at which all ranks come to a collective the last one
 * leaves it. Lines "what bytes us". The clocks of all ranks begin with the job. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void call(const char* what, char* in, char* out, int bytes) {
  if (strcmp(what, "bcast") == 0) MPI_Bcast(in, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
  else if (strcmp(what, "reduce") == 0) MPI_Reduce(in, out, bytes / 8, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  else if (strcmp(what, "allreduce") == 0) MPI_Allreduce(in, out, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  else if (strcmp(what, "allgather") == 0) MPI_Allgather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, MPI_COMM_WORLD);
  else if (strcmp(what, "barrier") == 0) MPI_Barrier(MPI_COMM_WORLD);
  else MPI_Abort(MPI_COMM_WORLD, 2);
}

static void sleep_until(double moment) {
  const double left = moment - MPI_Wtime();
  const struct timespec rest = {0, (long)(left * 1e9)};
  if (left > 0) nanosleep(&rest, NULL);
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int a = 1; a < argc; ++a) {
    char* colon = strchr(argv[a], ':');
    const int bytes = colon ? atoi(colon + 1) : 0;
    if (colon) *colon = '\0';
    char *in = calloc((size_t)bytes + 8, 1), *out = calloc((size_t)bytes * (size_t)ranks + 8, 1);
    double now, together, latest;
    call(argv[a], in, out, bytes); /* connections are made */
    now = MPI_Wtime();
    MPI_Allreduce(&now, &together, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    together += 1e-3; /* everybody has heard of it by then */
    sleep_until(together);
    call(argv[a], in, out, bytes);
    now = MPI_Wtime();
    sleep_until(together + 1e-3); /* who leaves early sends nothing to those who have not left */
    MPI_Allreduce(&now, &latest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) printf("%s %d %.2f\n", argv[a], bytes, (latest - together) * 1e6);
    free(in);
    free(out);
  }
  MPI_Finalize();
  return 0;
}
