/* messages KIND COUNT: messages for two simulators. pingpong: 8 bytes between ranks 0 and 1; alltoall: 1000 bytes
   between all; look: rank 1 tests until a message comes. Rank 0 prints the time that COUNT rounds took by MPI_Wtime. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void pingpong(int rank, int count) {
  char ball[8] = {0};
  for (int i = 0; i < count && rank < 2; i++) {
    if (rank == i % 2) MPI_Send(ball, sizeof ball, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD);
    else MPI_Recv(ball, sizeof ball, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

/* Every pair by itself, so that no library's own algorithm is compared. */
static void alltoall(int rank, int size, int count) {
  static char data[1000], got[1000];
  for (int i = 0; i < count; i++)
    for (int step = 1; step < size; step++)
      MPI_Sendrecv(data, sizeof data, MPI_CHAR, (rank + step) % size, 0, got, sizeof got, MPI_CHAR,
                   (rank + size - step) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void look(int rank, int count) {
  int flag = 0, ball = 0;
  if (rank == 1)
    for (int i = 0; i < count; i++) MPI_Iprobe(0, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(&ball, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  if (rank == 0) MPI_Recv(&ball, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int count = argc > 2 ? atoi(argv[2]) : 0;
  const double began = MPI_Wtime();
  if (argc > 1 && strcmp(argv[1], "pingpong") == 0) pingpong(rank, count);
  if (argc > 1 && strcmp(argv[1], "alltoall") == 0) alltoall(rank, size, count);
  if (argc > 1 && strcmp(argv[1], "look") == 0) look(rank, count);
  if (rank == 0) printf("%.9f\n", MPI_Wtime() - began);
  return MPI_Finalize();
}
