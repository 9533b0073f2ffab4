// A rank dies while all are in passive epochs of a window: each call ends, with what it should give or with
// MPIX_ERR_PROC_FAILED or MPIX_ERR_REVOKED, after which a rank stops; the window can be freed, and those who are left
// shrink and go on.
//   ft_windows SEED
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { operations = 3000, slots = 64, longest = 5000 };
static int rank, size;
static unsigned draws;
static MPI_Win win;
static int lock_all;
static long* mine;  // what this rank has added to slot s of rank t: mine[t * slots + s]
static long zeros[longest], got[longest];

static unsigned draw(unsigned below) {
  draws = draws * 1103515245u + 12345u;
  return (draws >> 16) % below;
}

static void wrong(const char* what, int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  printf("rank %d: %s: %s\n", rank, what, text);
  fflush(stdout);
  abort();
}

// 1 when the call has failed because a process has.
static int failed(const char* what, int code) {
  int class = 0;
  MPI_Error_class(code, &class);
  if (class == MPI_SUCCESS) return 0;
  if (class != MPIX_ERR_PROC_FAILED && class != MPIX_ERR_REVOKED) wrong(what, code);
  return 1;
}

static int operate(int target) {
  const long one = 1;
  const int slot = (int)draw(slots), kind = (int)draw(8), count = 1 + (int)draw(longest);
  const MPI_Aint at = (MPI_Aint)rank * slots + slot, behind = (MPI_Aint)slots * size;
  long *sum = &mine[target * slots + slot], before = *sum;
  if (kind < 3) {
    if (failed("fetch and op", MPI_Fetch_and_op(&one, &before, MPI_LONG, target, at, MPI_SUM, win))) return 1;
  } else if (kind < 6) {
    if (failed("accumulate", MPI_Accumulate(&one, 1, MPI_LONG, target, at, 1, MPI_LONG, MPI_SUM, win))) return 1;
  } else if (kind == 6) {
    if (failed("accumulate", MPI_Accumulate(zeros, count, MPI_LONG, target, behind, count, MPI_LONG, MPI_SUM, win)))
      return 1;
  } else if (failed("get", MPI_Get(got, count, MPI_LONG, target, behind, count, MPI_LONG, win))) {
    return 1;
  }
  if (failed("flush or unlock", lock_all ? MPI_Win_flush(target, win) : MPI_Win_unlock(target, win))) {
    // What could not be unlocked is no error of the program's
    if (!lock_all) (void)failed("lock again", MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    return 1;
  }
  if (kind >= 6) return 0;
  if (before != *sum) wrong("a fetched value is not what was there", MPI_SUCCESS);
  ++*sum;
  return 0;
}

int main(int argc, char** argv) {
  long* base = NULL;
  MPI_Comm rest;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const unsigned seed = draws = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
  const int victim = (int)draw((unsigned)size), last = (int)draw(operations), by_signal = draw(3) != 0;
  const MPI_Aint bytes = (MPI_Aint)sizeof(long) * (slots * size + longest);
  mine = calloc((size_t)(slots * size), sizeof(long));
  lock_all = seed % 2;
  if (draw(2)) {
    base = calloc(1, (size_t)bytes);
    MPI_Win_create(base, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  } else {
    MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    for (int i = 0; i < slots * size + longest; i++) base[i] = 0;
  }
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Barrier(MPI_COMM_WORLD);
  draws = seed * 77 + (unsigned)rank;
  int over = lock_all && failed("lock_all", MPI_Win_lock_all(0, win));
  for (int i = 0; i < operations && !over; i++) {
    if (rank == victim && i == last) {
      if (by_signal) kill(getpid(), SIGKILL);
      _exit(0);
    }
    const int target = (int)draw((unsigned)size);
    over = !lock_all && failed("lock", MPI_Win_lock(draw(2) ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, win));
    if (!over) over = operate(target);
  }
  if (lock_all && !over) (void)failed("unlock_all", MPI_Win_unlock_all(win));
  (void)failed("free", MPI_Win_free(&win));
  int code = MPIX_Comm_shrink(MPI_COMM_WORLD, &rest), left = 0, one = 1, sum = 0;
  if (code != MPI_SUCCESS) wrong("shrink", code);
  MPI_Comm_size(rest, &left);
  code = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, rest);
  if (code != MPI_SUCCESS || sum != left) wrong("those who are left", code);
  MPI_Comm_rank(rest, &rank);
  if (rank == 0) printf("over: %d left\n", left);
  MPI_Finalize();
  return 0;
}
