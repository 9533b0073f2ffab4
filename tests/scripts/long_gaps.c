/* long_gaps RANKS: more than 2 GB go from rank 0 to rank 1 and come in order, with a gap behind each number at the
 * ranks of the mask. The buffers are windows of 64 MB that are mapped again and again: the test needs little memory. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const long kNumbers = 275000000, kWindow = 64 << 20, kGap = -1;

static long* repeated(long bytes) {
  const int file = memfd_create("window", 0);
  const long windows = bytes / kWindow + 1;
  char* all = mmap(NULL, (size_t)(windows * kWindow), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED || ftruncate(file, kWindow) != 0) return NULL;
  for (long i = 0; i < windows; ++i)
    if (mmap(all + i * kWindow, (size_t)kWindow, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
      return NULL;
  close(file);
  return (long*)all;
}

/* How many numbers in the window are not the last ones that came there; they were sent from every `sent`th place. */
static long wrong(const long* in, long step, long sent) {
  const long places = kWindow / 8 / step;
  long bad = 0;
  for (long p = 0; p < places; ++p) {
    const long last = p + (kNumbers - 1 - p) / places * places;
    bad += in[p * step] != last % (kWindow / 8 / sent);
    if (step == 2) bad += in[2 * p + 1] != kGap;
  }
  return bad;
}

int main(int argc, char** argv) {
  int rank;
  MPI_Datatype numbers;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int mask = atoi(argv[1]);
  const long step = 1 + (mask >> rank & 1);
  long* data = repeated(kNumbers * 8 * step);
  if (data == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Type_vector((int)kNumbers, 1, (int)step, MPI_LONG, &numbers);
  MPI_Type_commit(&numbers);
  for (long i = 0; i < kWindow / 8; ++i) data[i] = rank == 1 || i % step != 0 ? kGap : i / step;
  if (rank == 0) MPI_Send(data, 1, numbers, 1, 0, MPI_COMM_WORLD);
  else MPI_Recv(data, 1, numbers, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1 && wrong(data, step, 1 + (mask & 1)) != 0) MPI_Abort(MPI_COMM_WORLD, 3);
  if (rank == 1) printf("long_gaps %d: right\n", mask);
  MPI_Type_free(&numbers);
  MPI_Finalize();
  return 0;
}
