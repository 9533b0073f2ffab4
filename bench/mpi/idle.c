/* idle SECONDS: rank 0 waits in MPI_Recv for a message that rank 1 sends that much later. Lines "core_percent", what
 * rank 0
 * used of a core, and "wake_us", what an MPI_Send that wakes it takes beyond one to a receiver that looks: the median
 * of
 * some, after 20 ms each in which the sender computes, so that nothing but the other's sleep makes a difference. */
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
  enum { kWarm = 101, kWakes = 31 };
  int rank;
  char byte;
  double warm[kWarm], wake[kWakes];
  bench_pin();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const double seconds = argc > 1 ? atof(argv[1]) : 5;
  for (int i = 0; i < kWarm; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) warm[i] = send_time();
    else MPI_Recv(&byte, 1, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    const double used = processor_time(), start = MPI_Wtime();
    MPI_Recv(&byte, 1, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("core_percent %.3f\n", (processor_time() - used) / (MPI_Wtime() - start) * 100);
  } else {
    const struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&pause, NULL);
    send_time();
  }
  for (int i = 0; i < kWakes; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
      for (const double until = MPI_Wtime() + 0.02; MPI_Wtime() < until;) {
      }
      wake[i] = send_time();
    } else {
      MPI_Recv(&byte, 1, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  if (rank == 1) printf("wake_us %.3f\n", bench_median(wake, kWakes) - bench_median(warm, kWarm));
  MPI_Finalize();
  return 0;
}
