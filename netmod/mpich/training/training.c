/* What the compiler learns from which ways through the MPI library are the usual ones (../build, "profile"): some ranks use
 * the parts of MPI that programs use most. It measures nothing and prints nothing; wrong data end it with an error.
 *
 * It is none of the benchmarks, so that the library is not made for these. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kLargest = 1 << 20, kWindow = 32, kTag = 7 };

static int rank, size;
static char *out, *in;

static void check(int good, const char *what) {
  if (good) return;
  fprintf(stderr, "training: rank %d: %s went wrong\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The other of a pair; of an odd number of ranks the last one is alone. */
static int partner(void) {
  const int other = rank ^ 1;
  return other < size ? other : MPI_PROC_NULL;
}

/* As often as makes a message of that length weigh like a short one. */
static int rounds_of(int length) { return length <= 1024 ? 2000 : length <= 32768 ? 200 : 20; }

static void take_turns(int length) {
  MPI_Status status;
  for (int i = 0; i < rounds_of(length); ++i) {
    const int source = i % 4 == 3 ? MPI_ANY_SOURCE : partner();
    if (rank % 2 == 0) MPI_Send(out, length, MPI_BYTE, partner(), kTag, MPI_COMM_WORLD);
    if (partner() != MPI_PROC_NULL) {
      MPI_Recv(in, length, MPI_BYTE, source, i % 8 == 7 ? MPI_ANY_TAG : kTag, MPI_COMM_WORLD,
               i % 2 ? &status : MPI_STATUS_IGNORE);
      check(memcmp(in, out, (size_t)length) == 0, "a message");
    }
    if (rank % 2 != 0) MPI_Send(out, length, MPI_BYTE, partner(), kTag, MPI_COMM_WORLD);
  }
}

/* Many messages on their way, to posted and to unposted receives, ended in the ways there are. */
static void stream(int length) {
  MPI_Request request[2 * kWindow];
  for (int i = 0; i < rounds_of(length) / 20; ++i) {
    int done = 0, which;
    for (int k = 0; k < kWindow; ++k) {
      if (i % 2 == 0) MPI_Irecv(in, length, MPI_BYTE, partner(), kTag + k % 3, MPI_COMM_WORLD, &request[k]);
      MPI_Isend(out, length, MPI_BYTE, partner(), kTag + k % 3, MPI_COMM_WORLD, &request[kWindow + k]);
    }
    if (i % 2 != 0)
      for (int k = 0; k < kWindow; ++k)
        MPI_Irecv(in, length, MPI_BYTE, partner(), kTag + k % 3, MPI_COMM_WORLD, &request[k]);
    if (i % 3 == 0)
      while (!done) MPI_Testall(2 * kWindow, request, &done, MPI_STATUSES_IGNORE);
    else if (i % 3 == 1)
      for (int k = 0; k < 2 * kWindow; ++k) MPI_Waitany(2 * kWindow, request, &which, MPI_STATUS_IGNORE);
    else
      MPI_Waitall(2 * kWindow, request, MPI_STATUSES_IGNORE);
  }
}

static void probe(void) {
  for (int i = 0; i < 300 && partner() != MPI_PROC_NULL; ++i) {
    MPI_Status status;
    int flag = 0, count = 0;
    MPI_Sendrecv(out, 64, MPI_BYTE, partner(), kTag, in, 64, MPI_BYTE, partner(), kTag, MPI_COMM_WORLD, &status);
    MPI_Send(out, 16, MPI_INT, partner(), kTag, MPI_COMM_WORLD);
    while (i % 2 == 0 && !flag) MPI_Iprobe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &flag, &status);
    if (i % 2 != 0) MPI_Probe(partner(), MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    check(count == 16, "a probe");
    MPI_Recv(in, count, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static void columns(void) {
  MPI_Datatype column, pair;
  MPI_Type_vector(64, 2, 64, MPI_INT, &column);
  MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
  MPI_Type_commit(&column);
  MPI_Type_commit(&pair);
  for (int i = 0; i < 300; ++i) {
    int place = 0;
    MPI_Sendrecv(out, 1, column, partner(), kTag, in, 1, column, partner(), kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Pack(out, 1, pair, in, kLargest, &place, MPI_COMM_WORLD);
    MPI_Pack(out, 1, column, in, kLargest, &place, MPI_COMM_WORLD);
    place = 0;
    MPI_Unpack(in, kLargest, &place, out, 1, pair, MPI_COMM_WORLD);
    MPI_Unpack(in, kLargest, &place, out, 1, column, MPI_COMM_WORLD);
  }
  MPI_Type_free(&column);
  MPI_Type_free(&pair);
}

static void persistent(void) {
  MPI_Request request[2];
  MPI_Recv_init(in, 128, MPI_DOUBLE, partner(), kTag, MPI_COMM_WORLD, &request[0]);
  MPI_Send_init(out, 128, MPI_DOUBLE, partner(), kTag, MPI_COMM_WORLD, &request[1]);
  for (int i = 0; i < 300; ++i) {
    MPI_Startall(2, request);
    MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
  }
  MPI_Request_free(&request[0]);
  MPI_Request_free(&request[1]);
}

/* Every rank's part of `length` bytes; few bytes more often. */
static void collectives(int length) {
  const int n = length / (int)sizeof(double);
  for (int i = 0; i < (length <= 1024 ? 300 : 30); ++i) {
    double one = 1, sum = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Bcast(in, length, MPI_BYTE, i % size, MPI_COMM_WORLD);
    MPI_Reduce(out, in, n, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    check(sum == size, "a sum");
    MPI_Allreduce(out, in, n, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allgather(out, length, MPI_BYTE, in, length, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Alltoall(out, length, MPI_BYTE, in, length, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Scatter(out, length, MPI_BYTE, in, length, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Gather(out, length, MPI_BYTE, in, length, MPI_BYTE, 0, MPI_COMM_WORLD);
  }
}

static void one_sided(void) {
  MPI_Win window;
  double *base, value = 1;
  MPI_Win_allocate(4096, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
  for (int i = 0; i < 200; ++i) {
    const int target = (rank + 1) % size;
    MPI_Win_fence(0, window);
    MPI_Put(&value, 1, MPI_DOUBLE, target, 0, 1, MPI_DOUBLE, window);
    MPI_Accumulate(&value, 1, MPI_DOUBLE, target, 1, 1, MPI_DOUBLE, MPI_SUM, window);
    MPI_Win_fence(0, window);
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window);
    MPI_Get(in, 8, MPI_DOUBLE, target, 8, 8, MPI_DOUBLE, window);
    MPI_Win_unlock(target, window);
  }
  MPI_Win_free(&window);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const size_t room = (size_t)kLargest * (size_t)(size + 1);
  out = calloc(room, 1);
  in = calloc(room, 1);
  check(out != NULL && in != NULL, "memory");
  for (size_t i = 0; i < room / sizeof(double); ++i) ((double *)out)[i] = (double)i;
  for (int length = 0; length <= kLargest; length = length == 0 ? 8 : length * 8) {
    take_turns(length);
    stream(length);
    if (length > 0) collectives(length > 65536 ? 65536 : length);
  }
  probe();
  columns();
  persistent();
  one_sided();
  free(out);
  free(in);
  MPI_Finalize();
  return 0;
}
