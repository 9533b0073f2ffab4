/* collectives WHAT:BYTES...: time of one call, over all ranks; the median of batches of about 30 ms.
 * Lines "what bytes us". */
#include "bench.h"

enum { kBatches = 5 };
static int ranks, rank;
static char *send, *receive;
static MPI_Comm ring; /* each rank has two neighbours */

/* Begun and waited for at once. 0 when there is no such call. */
static int call_nonblocking(const char* what, int bytes) {
  MPI_Request request;
  if (strcmp(what, "ibarrier") == 0) MPI_Ibarrier(MPI_COMM_WORLD, &request);
  else if (strcmp(what, "ibcast") == 0) MPI_Ibcast(send, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
  else if (strcmp(what, "iallreduce") == 0)
    MPI_Iallreduce(send, receive, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
  else if (strcmp(what, "iallgather") == 0)
    MPI_Iallgather(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, MPI_COMM_WORLD, &request);
  else if (strcmp(what, "ialltoall") == 0)
    MPI_Ialltoall(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, MPI_COMM_WORLD, &request);
  else if (strcmp(what, "ineighbor_alltoall") == 0)
    MPI_Ineighbor_alltoall(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, ring, &request);
  else return 0;
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  return 1;
}

static void call(const char* what, int bytes) {
  if (strcmp(what, "barrier") == 0) MPI_Barrier(MPI_COMM_WORLD);
  else if (strcmp(what, "bcast") == 0) MPI_Bcast(send, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
  else if (strcmp(what, "reduce") == 0) MPI_Reduce(send, receive, bytes / 8, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  else if (strcmp(what, "allreduce") == 0) MPI_Allreduce(send, receive, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  else if (strcmp(what, "allgather") == 0)
    MPI_Allgather(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, MPI_COMM_WORLD);
  else if (strcmp(what, "alltoall") == 0) MPI_Alltoall(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, MPI_COMM_WORLD);
  else if (strcmp(what, "neighbor_allgather") == 0)
    MPI_Neighbor_allgather(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, ring);
  else if (strcmp(what, "neighbor_alltoall") == 0)
    MPI_Neighbor_alltoall(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, ring);
  else if (!call_nonblocking(what, bytes)) {
    fprintf(stderr, "bench: unknown collective %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
}

static double batch(const char* what, int bytes, int count) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < count; ++i) call(what, bytes);
  return (MPI_Wtime() - start) / count;
}

int main(int argc, char** argv) {
  bench_needs(argc, 1, "collectives WHAT:BYTES...");
  bench_pin();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int around = 1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &around, 0, &ring);
  for (int a = 1; a < argc; ++a) {
    char* colon = strchr(argv[a], ':');
    const int bytes = colon ? (int)bench_number(colon + 1) : 0;
    if (colon) *colon = '\0';
    send = bench_buffer((size_t)bytes * (ranks + 1));
    receive = bench_buffer((size_t)bytes * (ranks + 1));
    double time[kBatches], first = batch(argv[a], bytes, 5);
    int count = first > 0 ? (int)(0.03 / first) : 1000;
    count = count < 3 ? 3 : count > 2000 ? 2000 : count;
    MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; i < kBatches; ++i) time[i] = batch(argv[a], bytes, count);
    if (rank == 0) printf("%s %d %.4f\n", argv[a], bytes, bench_median(time, kBatches) * 1e6);
    fflush(stdout);
    free(send);
    free(receive);
  }
  MPI_Comm_free(&ring);
  MPI_Finalize();
  return 0;
}
