/* accumulate SIZE...: rank 1 accumulates MPI_CHAR sums of each size into a window of rank 0 that MPI_Win_allocate made,
 * in a lock for all, and flushes; of 8 bytes it is one MPI_LONG. Time of one MPI_Accumulate, the flush behind a hundred
 * of them shared out; the median of batches. Lines "size us". */
#include "bench.h"

enum { kBatches = 9 };

int main(int argc, char** argv) {
  int rank;
  bench_needs(argc, 1, "accumulate SIZE...");
  bench_pin();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int arg = 1; arg < argc; ++arg) {
    const int size = (int)bench_number(argv[arg]), count = size <= 4096 ? 20000 : size <= 65536 ? 2000 : 50;
    char *memory = NULL, *data = bench_buffer((size_t)size);
    double time[kBatches] = {0};
    MPI_Win window;
    MPI_Win_allocate(size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    memset(memory, 0, (size_t)size);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    for (int batch = -1; rank == 1 && batch < kBatches; ++batch) {
      const double start = MPI_Wtime();
      for (int i = 0; i < count; ++i) {
        if (size == 8) MPI_Accumulate(data, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, window);
        else MPI_Accumulate(data, size, MPI_CHAR, 0, 0, size, MPI_CHAR, MPI_SUM, window);
        if (i % 100 == 99) MPI_Win_flush(0, window);
      }
      MPI_Win_flush(0, window);
      if (batch >= 0) time[batch] = (MPI_Wtime() - start) * 1e6 / count;
    }
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) printf("%d %.4f\n", size, bench_median(time, kBatches));
    fflush(stdout);
    MPI_Win_free(&window);
    free(data);
  }
  MPI_Finalize();
  return 0;
}
