/* bandwidth FIRST LAST [SHARE]: rank 0 has a window of 64 messages on their way to rank 1, which answers each window,
 * as osu_bw does, then both send to each other at once, as osu_bibw does, each through sizes that ascend; the median of
 * batches. Lines "one|both size MB/s". SHARE divides the number of windows. */
#include "bench.h"

enum { kWindow = 64, kBatches = 7 };

static double stream(char* from, char* to, int size, int rank, int count, int both) {
  MPI_Request requests[2 * kWindow];
  const double start = MPI_Wtime();
  for (int i = 0; i < count; ++i) {
    int n = 0;
    for (int w = 0; w < kWindow && (both || rank == 1); ++w)
      MPI_Irecv(to, size, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, &requests[n++]);
    for (int w = 0; w < kWindow && (both || rank == 0); ++w)
      MPI_Isend(from, size, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, &requests[n++]);
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    if (rank == 0) MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else MPI_Send(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
  }
  return (both ? 2.0 : 1.0) * size * kWindow * count / (MPI_Wtime() - start) / 1e6;
}

static void all_sizes(char* from, char* to, char** argv, int argc, int rank, int both) {
  const size_t first = bench_number(argv[1]), last = bench_number(argv[2]);
  for (size_t size = first; size <= last; size = bench_next(size)) {
    const int all = size <= 4096 ? 200 : size <= 65536 ? 30 : size <= 524288 ? 4 : 1;
    const int count = bench_share(all, argc, argv, 3);
    double batch[kBatches];
    stream(from, to, (int)size, rank, count, both);
    for (int i = 0; i < kBatches; ++i) batch[i] = stream(from, to, (int)size, rank, count, both);
    if (rank == 0) printf("%s %zu %.4f\n", both ? "both" : "one", size, bench_median(batch, kBatches));
  }
}

int main(int argc, char** argv) {
  int rank;
  bench_needs(argc, 2, "bandwidth FIRST LAST [SHARE]");
  bench_pin();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const size_t last = bench_number(argv[2]);
  char *from = bench_buffer(last), *to = bench_buffer(last);
  for (int both = 0; both < 2 && rank < 2; ++both) all_sizes(from, to, argv, argc, rank, both);
  MPI_Finalize();
  return 0;
}
