/* threads N...: round trips of 8 bytes between ranks 0 and 1 with MPI_THREAD_MULTIPLE, by N threads of each rank at
 * once, each pair on
 * a communicator of its own; the mean of a thread's round trips, the median of batches. Lines "threads us". */
#include "bench.h"

#include <pthread.h>

enum { kMostThreads = 16, kTrips = 5000, kBatches = 5 };

static MPI_Comm comms[kMostThreads];

static void* play(void* which) {
  const MPI_Comm comm = comms[(long)which];
  char message[8] = {0};
  int rank;
  MPI_Comm_rank(comm, &rank);
  for (int i = 0; i < kTrips; ++i) {
    if (rank == 0) MPI_Send(message, 8, MPI_BYTE, 1, 1, comm);
    MPI_Recv(message, 8, MPI_BYTE, 1 - rank, 1, comm, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(message, 8, MPI_BYTE, 0, 1, comm);
  }
  return NULL;
}

static double batch(int threads) {
  pthread_t ids[kMostThreads];
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (long t = 0; t < threads; ++t)
    if (pthread_create(&ids[t], NULL, play, (void*)t) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int t = 0; t < threads; ++t) pthread_join(ids[t], NULL);
  return (MPI_Wtime() - start) * 1e6 / kTrips;
}

int main(int argc, char** argv) {
  int rank, provided;
  bench_needs(argc, 1, "threads N...");
  bench_pin();
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (provided != MPI_THREAD_MULTIPLE) {
    fprintf(stderr, "threads: this library does not offer MPI_THREAD_MULTIPLE\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  for (int t = 0; t < kMostThreads; ++t) MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
  for (int arg = 1; arg < argc; ++arg) {
    const int threads = atoi(argv[arg]);
    double times[kBatches];
    if (threads < 1 || threads > kMostThreads) MPI_Abort(MPI_COMM_WORLD, 1);
    batch(threads);
    for (int i = 0; i < kBatches; ++i) times[i] = batch(threads);
    if (rank == 0) printf("%d %.4f\n", threads, bench_median(times, kBatches));
  }
  for (int t = 0; t < kMostThreads; ++t) MPI_Comm_free(&comms[t]);
  MPI_Finalize();
  return 0;
}
