/* orders SEED ROUNDS: drawn patterns of messages whose order and times depend on the interconnect. Each rank folds what
   it has received from whom, and when, into one number; virtual time gives the same numbers in every run. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMost = 64, kLong = 100000, kPatterns = 9 };

static int rank, size;
static unsigned long long fold = 1469598103934665603ull;
static unsigned state;
static char out[kMost][kLong], in[kMost][kLong];

static void note(unsigned long long what) { fold = (fold ^ what) * 1099511628211ull; }
static void note_time(void) { note((unsigned long long)(MPI_Wtime() * 1e12 + 0.5)); }

static unsigned draw(unsigned below) {
  state = state * 1664525u + 1013904223u;
  return (state >> 8) % below;
}

static void shifts(int turns) {
  for (int i = 0; i < turns; i++) {
    const int by = 1 + (int)draw((unsigned)size - 1 ? (unsigned)size - 1 : 1);
    MPI_Sendrecv(out[0], 8 << draw(8), MPI_CHAR, (rank + by) % size, 1, in[0], kLong, MPI_CHAR,
                 (rank + size - by) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    note_time();
  }
}

static void to_one(int probes) {
  const int root = (int)draw((unsigned)size), each = 1 + (int)draw(4);
  if (rank != root) {
    for (int i = 0; i < each; i++)
      MPI_Send(out[0], 1 + (rank * 331 + i * 77) % 3000, MPI_CHAR, root, 2, MPI_COMM_WORLD);
    return;
  }
  for (int i = 0; i < each * (size - 1); i++) {
    MPI_Status status;
    int count;
    if (probes) MPI_Probe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &status);
    MPI_Recv(in[0], kLong, MPI_CHAR, probes ? status.MPI_SOURCE : MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_CHAR, &count);
    note((unsigned long long)(status.MPI_SOURCE * 10000 + count));
    note_time();
  }
}

static void all_pairs(int bytes, int any) {
  MPI_Request requests[2 * kMost];
  int n = 0;
  for (int r = 0; r < size; r++)
    if (r != rank) MPI_Irecv(in[r], kLong, MPI_CHAR, r, 3, MPI_COMM_WORLD, &requests[n++]);
  const int receives = n;
  for (int r = 0; r < size; r++)
    if (r != rank) MPI_Isend(out[r], bytes, MPI_CHAR, r, 3, MPI_COMM_WORLD, &requests[n++]);
  for (int i = 0; any && i < receives; i++) {
    int index;
    MPI_Waitany(receives, requests, &index, MPI_STATUS_IGNORE);
    note((unsigned long long)index);
    note_time();
  }
  MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

static void barrier_with_tests(void) {
  MPI_Request requests[3];
  int flag = 0, tests = 0;
  MPI_Irecv(in[0], kLong, MPI_CHAR, (rank + 1) % size, 4, MPI_COMM_WORLD, &requests[0]);
  MPI_Ibarrier(MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(out[0], 2000, MPI_CHAR, (rank + size - 1) % size, 4, MPI_COMM_WORLD, &requests[2]);
  for (; !flag; tests++) MPI_Testall(3, requests, &flag, MPI_STATUSES_IGNORE);
  note((unsigned long long)tests);
}

static void reduction_beside(void) {
  MPI_Request request;
  double mine = rank, sum = 0;
  MPI_Iallreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
  shifts(3);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  note((unsigned long long)sum);
}

static void unexpected(void) {
  MPI_Request requests[4];
  for (int tag = 0; tag < 4; tag++)
    MPI_Isend(out[tag], 500 * (tag + 1), MPI_CHAR, (rank + 1) % size, 10 + tag, MPI_COMM_WORLD, &requests[tag]);
  for (int tag = 3; tag >= 0; tag--) {
    MPI_Recv(in[tag], kLong, MPI_CHAR, (rank + size - 1) % size, 10 + tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    note_time();
  }
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

static void window(void) {
  MPI_Win win;
  static int cells[kMost];
  MPI_Win_create(cells, sizeof cells, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_fence(0, win);
  const int to = (rank + (int)draw((unsigned)size)) % size;
  MPI_Accumulate(&rank, 1, MPI_INT, to, 0, 1, MPI_INT, MPI_SUM, win);
  MPI_Win_fence(0, win);
  note((unsigned long long)cells[0]);
  MPI_Win_free(&win);
}

static void pattern(unsigned which) {
  switch (which) {
    case 0: shifts(5); break;
    case 1: to_one(0); break;
    case 2: to_one(1); break;
    case 3: all_pairs(700, 1); break;
    case 4: all_pairs(kLong, 0); break;
    case 5: barrier_with_tests(); break;
    case 6: reduction_beside(); break;
    case 7: unexpected(); break;
    default: window();
  }
  note_time();
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 3 || size > kMost) {
    fprintf(stderr, "usage: orders SEED ROUNDS, with at most %d ranks\n", kMost);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  state = (unsigned)atoi(argv[1]);
  for (int i = atoi(argv[2]); i > 0; i--) pattern(draw(kPatterns));
  unsigned long long all[kMost];
  MPI_Gather(&fold, 1, MPI_UNSIGNED_LONG_LONG, all, 1, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
  for (int r = 0; rank == 0 && r < size; r++) printf("rank %d: %016llx\n", r, all[r]);
  return MPI_Finalize();
}
