/* Random messages between all ranks, every byte checked, and collectives in between. The same seed is the same program.
 *   storm SEED ROUNDS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned long long state;
static unsigned draw(unsigned below) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (unsigned)(state >> 33) % below;
}
static unsigned char byte_of(int round, int from, int to, int i) {
  return (unsigned char)(round * 7 + from * 3 + to * 5 + i);
}

int main(int argc, char** argv) {
  int rank, size, rounds = argc > 2 ? atoi(argv[2]) : 20, wrong = 0, all = 0;

  state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int round = 0; round < rounds; round++) {
    static const int scale[] = {1, 48, 2000, 40000, 300000};
    int shift = (int)draw((unsigned)size), length = 1 + (int)draw((unsigned)scale[draw(5)]), what = (int)draw(4);
    int to = (rank + shift) % size, from = (rank - shift + size) % size;
    unsigned char *out = malloc((size_t)length), *in = malloc((size_t)length);
    MPI_Request r;

    if (!out || !in) { /* it runs with limits, too */
      fprintf(stderr, "storm: rank %d has no memory for 2 times %d bytes\n", rank, length);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int i = 0; i < length; i++) out[i] = byte_of(round, rank, to, i);
    MPI_Irecv(in, length, MPI_BYTE, from, round, MPI_COMM_WORLD, &r);
    if (what & 1) MPI_Ssend(out, length, MPI_BYTE, to, round, MPI_COMM_WORLD);
    else MPI_Send(out, length, MPI_BYTE, to, round, MPI_COMM_WORLD);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    for (int i = 0; i < length; i++) wrong += in[i] != byte_of(round, from, rank, i);
    if (what >= 2) {
      long mine = rank + round, sum = 0;
      MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
      wrong += sum != (long)size * (size - 1) / 2 + (long)size * round;
    }
    free(out);
    free(in);
  }
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("storm: %s\n", all == 0 ? "right" : "WRONG");
  MPI_Finalize();
  return all != 0;
}
