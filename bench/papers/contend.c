/* contend MESSAGES SIZE: ranks 1 and up send to rank 0, which reads, or with a third argument computes for so many
 * microseconds behind each message. Lines "rank seconds": when its last message was there. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  int rank, ranks;
  if (argc < 3) return fprintf(stderr, "usage: contend MESSAGES SIZE [MICROSECONDS]\n"), 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int messages = atoi(argv[1]), size = atoi(argv[2]);
  const double pause = argc > 3 ? atof(argv[3]) * 1e-6 : 0;
  char* data = calloc(1, (size_t)size);
  double* last = calloc((size_t)ranks, sizeof *last);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < messages * (rank == 0 ? ranks - 1 : 1); ++i) {
    MPI_Status status;
    if (rank != 0) {
      MPI_Send(data, size, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
      continue;
    }
    MPI_Recv(data, size, MPI_CHAR, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &status);
    last[status.MPI_SOURCE] = MPI_Wtime() - begin;
    if (pause > 0)
      for (const double until = MPI_Wtime() + pause; MPI_Wtime() < until;) continue;
  }
  for (int other = 1; rank == 0 && other < ranks; ++other) printf("%d %.9f\n", other, last[other]);
  free(data);
  free(last);
  return MPI_Finalize();
}
