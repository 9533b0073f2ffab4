/* latency FIRST LAST [SHARE]: ping-pong between ranks 0 and 1, half a round trip; the median of batches.
 * Lines "size us". SHARE divides the number of round trips. */
#include "bench.h"

enum { kBatches = 9 };

static double half_trip(char* buffer, int size, int rank, int count) {
  const double start = MPI_Wtime();
  for (int i = 0; i < count; ++i) {
    if (rank == 0) {
      MPI_Send(buffer, size, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
      MPI_Recv(buffer, size, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(buffer, size, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(buffer, size, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
  }
  return (MPI_Wtime() - start) / count / 2 * 1e6;
}

int main(int argc, char** argv) {
  int rank;
  bench_needs(argc, 2, "latency FIRST LAST [SHARE]");
  bench_pin();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const size_t first = bench_number(argv[1]), last = bench_number(argv[2]);
  char* buffer = bench_buffer(last);
  for (size_t size = first; size <= last && rank < 2; size = bench_next(size)) {
    const int all = size <= 4096 ? 2000 : size <= 65536 ? 300 : size <= 1048576 ? 30 : 4;
    const int count = bench_share(all, argc, argv, 3);
    double batch[kBatches];
    half_trip(buffer, (int)size, rank, count);
    for (int i = 0; i < kBatches; ++i) batch[i] = half_trip(buffer, (int)size, rank, count);
    if (rank == 0) printf("%zu %.5f\n", size, bench_median(batch, kBatches));
  }
  MPI_Finalize();
  return 0;
}
