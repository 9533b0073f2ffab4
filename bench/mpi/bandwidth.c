/* bandwidth FIRST LAST: rank 0 has a window of 64 messages on their way to rank 1, which answers each window, as osu_bw
 * does; the median of batches. Lines "size MB/s". */
#include "bench.h"

enum { kWindow = 64, kBatches = 7 };

static double stream(char* buffer, int size, int rank, int count) {
  MPI_Request requests[kWindow];
  const double start = MPI_Wtime();
  for (int i = 0; i < count; ++i) {
    for (int w = 0; w < kWindow; ++w) {
      if (rank == 0) MPI_Isend(buffer, size, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[w]);
      else MPI_Irecv(buffer, size, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[w]);
    }
    MPI_Waitall(kWindow, requests, MPI_STATUSES_IGNORE);
    if (rank == 0) MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else MPI_Send(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
  }
  return (double)size * kWindow * count / (MPI_Wtime() - start) / 1e6;
}

int main(int argc, char** argv) {
  int rank;
  bench_pin();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const size_t first = bench_number(argv[1]), last = bench_number(argv[2]);
  char* buffer = bench_buffer(last);
  for (size_t size = first; size <= last && rank < 2; size = bench_next(size)) {
    const int count = size <= 4096 ? 200 : size <= 65536 ? 30 : size <= 524288 ? 4 : 1;
    double batch[kBatches];
    stream(buffer, (int)size, rank, count);
    for (int i = 0; i < kBatches; ++i) batch[i] = stream(buffer, (int)size, rank, count);
    if (rank == 0) printf("%zu %.4f\n", size, bench_median(batch, kBatches));
  }
  MPI_Finalize();
  return 0;
}
