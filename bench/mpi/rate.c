/* rate: messages of 8 bytes per second between ranks 0 and 1, windows of 64, one way and both ways at once (then
 * counted
 * together); the median of batches. Lines "one|both messages_per_s". */
#include "bench.h"

enum { kWindow = 64, kBatches = 9, kCount = 300 };

static double flood(char* buffer, int rank, int both) {
  MPI_Request requests[2 * kWindow];
  const int peer = 1 - rank;
  const double start = MPI_Wtime();
  for (int i = 0; i < kCount; ++i) {
    int n = 0;
    for (int w = 0; w < kWindow && (both || rank == 1); ++w)
      MPI_Irecv(buffer + 8 * w, 8, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[n++]);
    for (int w = 0; w < kWindow && (both || rank == 0); ++w)
      MPI_Isend(buffer + 8 * (kWindow + w), 8, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[n++]);
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    if (rank == 0) MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else MPI_Send(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
  }
  return (both ? 2.0 : 1.0) * kWindow * kCount / (MPI_Wtime() - start);
}

int main(int argc, char** argv) {
  int rank;
  bench_pin();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char* buffer = bench_buffer(16 * kWindow);
  for (int both = 0; both < 2 && rank < 2; ++both) {
    double batch[kBatches];
    flood(buffer, rank, both);
    for (int i = 0; i < kBatches; ++i) batch[i] = flood(buffer, rank, both);
    if (rank == 0) printf("%s %.0f\n", both ? "both" : "one", bench_median(batch, kBatches));
  }
  MPI_Finalize();
  return 0;
}
