/* idle SECONDS: rank 0 waits in MPI_Recv for a message that rank 1 sends that much later. Lines "core_percent", what rank 0
 * used of a core, and "wake_us", what the MPI_Send that woke it took beyond one to a receiver that looks. */
#include "bench.h"

#include <sys/resource.h>
#include <time.h>

static double processor_time(void) {
  struct rusage use;
  getrusage(RUSAGE_SELF, &use);
  return use.ru_utime.tv_sec + use.ru_stime.tv_sec + (use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

static double send_time(void) {
  const double start = MPI_Wtime();
  char byte = 0;
  MPI_Send(&byte, 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
  return (MPI_Wtime() - start) * 1e6;
}

int main(int argc, char** argv) {
  enum { kWarm = 101 };
  int rank;
  char byte;
  double warm[kWarm];
  bench_pin();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const double seconds = argc > 1 ? atof(argv[1]) : 5;
  for (int i = 0; i < kWarm; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
      warm[i] = send_time();
    else
      MPI_Recv(&byte, 1, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    const double used = processor_time(), start = MPI_Wtime();
    MPI_Recv(&byte, 1, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("core_percent %.3f\n", (processor_time() - used) / (MPI_Wtime() - start) * 100);
  } else {
    const struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&pause, NULL);
    printf("wake_us %.3f\n", send_time() - bench_median(warm, kWarm));
  }
  MPI_Finalize();
  return 0;
}
