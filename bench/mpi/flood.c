/* flood name|any SIZE...: every rank but 0 sends 50,000 messages of each size with MPI_Send, rank 0 receives them all,
 * by name in
 * turn or from whoever comes; the median of floods. Lines "size ms". */
#include "bench.h"

enum { kMessages = 50000, kFloods = 7 };

static double flood(char* buffer, int size, int rank, int ranks, int any) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  if (rank != 0)
    for (int i = 0; i < kMessages; ++i) MPI_Send(buffer, size, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
  else
    for (int i = 0; i < kMessages * (ranks - 1); ++i)
      MPI_Recv(buffer, size, MPI_BYTE, any ? MPI_ANY_SOURCE : 1 + i % (ranks - 1), 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  return (MPI_Wtime() - start) * 1e3;
}

int main(int argc, char** argv) {
  int rank, ranks;
  bench_needs(argc, 2, "flood name|any SIZE...");
  bench_pin();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int any = strcmp(argv[1], "any") == 0;
  for (int arg = 2; arg < argc; ++arg) {
    const size_t size = bench_number(argv[arg]);
    char* buffer = bench_buffer(size);
    double times[kFloods];
    flood(buffer, (int)size, rank, ranks, any);
    for (int i = 0; i < kFloods; ++i) times[i] = flood(buffer, (int)size, rank, ranks, any);
    if (rank == 0) printf("%zu %.3f\n", size, bench_median(times, kFloods));
    free(buffer);
  }
  MPI_Finalize();
  return 0;
}
