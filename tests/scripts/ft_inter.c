/* With --ft, MPIX_Comm_shrink of an intercommunicator leaves an intercommunicator of the living: ft_inter HOW
 * last, first: of even and odd ranks, of which the last one or the first one has died.
 * side: all odd ranks have died, so there is none.
 * revoked: nobody has died.
 * threads: two threads shrink two of them again and again, and the last rank has died.
 * rounds: ranks die one after the other, and the others go on with what is left each time.
 * spawned: of spawned processes and their parents, a child has died. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "ft_common.h"

enum { SPAWNED = 3 };

static MPI_Comm halves(void) {
  MPI_Comm half, both;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &both);
  MPI_Comm_free(&half);
  return both;
}

/* The sum of the world's ranks in the other group, whose members must be `there`, and ours `here`. */
static void check(MPI_Comm both, int here, int there, int sum_there, int is_high) {
  MPI_Comm all;
  int is_inter = 0, mine = -1, n = 0, m = 0, sum = -1, from = -1, place, before;
  int code = MPI_Comm_test_inter(both, &is_inter);
  expect(code == MPI_SUCCESS && is_inter, "an intercommunicator", is_inter);
  MPI_Comm_size(both, &n);
  MPI_Comm_remote_size(both, &m);
  MPI_Comm_rank(both, &mine);
  expect(n == here, "the size of our group", n);
  expect(m == there, "the size of the other group", m);
  code = MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, both);
  expect(code == MPI_SUCCESS && sum == sum_there, "the sum over the other group", sum);
  /* each to the one across, as far as both have one */
  if (mine < m) {
    code = MPI_Sendrecv(&rank, 1, MPI_INT, mine, 1, &from, 1, MPI_INT, mine, 1, both, MPI_STATUS_IGNORE);
    expect(code == MPI_SUCCESS && from >= 0 && (from % 2 != rank % 2 || size != n + m), "what came from across", from);
  }
  /* ranks keep their order in a group */
  code = MPI_Intercomm_merge(both, is_high, &all);
  expect(code == MPI_SUCCESS, "MPI_Intercomm_merge", class_of(code));
  if (code) return;
  MPI_Comm_rank(all, &place);
  before = -1;
  MPI_Exscan(&rank, &before, 1, MPI_INT, MPI_MAX, all);
  if (mine > 0) expect(place > 0 && before >= 0, "the place in the merged one", place);
  code = MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, all);
  expect(code == MPI_SUCCESS, "the sum over all", class_of(code));
  MPI_Comm_free(&all);
}

/* Of the ranks below `size` with this parity, all but those that are `gone`. */
static int count(int parity, const int* gone, int* sum) {
  int n = 0;
  *sum = 0;
  for (int i = parity; i < size; i += 2) {
    if (gone[i]) continue;
    n++;
    *sum += i;
  }
  return n;
}

static void check_halves(MPI_Comm both, const int* gone) {
  int sum_here, sum_there;
  const int here = count(rank % 2, gone, &sum_here), there = count(1 - rank % 2, gone, &sum_there);
  check(both, here, there, sum_there, rank % 2);
}

static void dead(int who) {
  int gone[64] = {0};
  MPI_Comm both = halves(), living = MPI_COMM_NULL;
  int code;
  MPI_Barrier(MPI_COMM_WORLD);
  if (who == rank) raise(SIGKILL);
  if (who < 0) MPIX_Comm_revoke(both);
  if (who >= 0) gone[who] = 1;
  code = MPIX_Comm_shrink(both, &living);
  expect(code == MPI_SUCCESS && living != MPI_COMM_NULL, "MPIX_Comm_shrink", class_of(code));
  if (living != MPI_COMM_NULL) {
    check_halves(living, gone);
    MPI_Comm_free(&living);
  }
  MPI_Comm_free(&both);
}

static void side(void) {
  MPI_Comm both = halves(), living = MPI_COMM_WORLD;
  int code;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank % 2) raise(SIGKILL);
  code = MPIX_Comm_shrink(both, &living);
  expect(code == MPI_SUCCESS && living == MPI_COMM_NULL, "MPIX_Comm_shrink without another side", class_of(code));
  MPI_Comm_free(&both);
}

static void threads(void) {
  pthread_t other;
  MPI_Comm two[2] = {halves(), halves()};
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == size - 1) raise(SIGKILL);
  pthread_create(&other, NULL, shrink, &two[rank % 2]);
  shrink(&two[1 - rank % 2]);
  pthread_join(other, NULL);
  for (int i = 0; i < 2; i++) MPI_Comm_free(&two[i]);
}

/* Ranks die one after the other, from the last one on, until each group has one. */
static void rounds(void) {
  int gone[64] = {0};
  MPI_Comm both = halves();
  for (int dying = size - 1; dying > 1; dying--) {
    MPI_Comm living = MPI_COMM_NULL;
    int code, sum, turn = 0;
    do {
      code = MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, both);
      if (rank == dying && turn++ == 20) raise(SIGKILL);
    } while (!code);
    expect(class_of(code) == MPIX_ERR_PROC_FAILED || class_of(code) == MPIX_ERR_REVOKED, "the collective",
           class_of(code));
    MPIX_Comm_revoke(both);
    code = MPIX_Comm_shrink(both, &living);
    expect(code == MPI_SUCCESS && living != MPI_COMM_NULL, "MPIX_Comm_shrink", class_of(code));
    if (code) break;
    MPI_Comm_free(&both);
    both = living;
    MPI_Comm_set_errhandler(both, MPI_ERRORS_RETURN);
    gone[dying] = 1;
    check_halves(both, gone);
  }
  MPI_Comm_free(&both);
}

static void child(MPI_Comm parents) {
  MPI_Comm living = MPI_COMM_NULL;
  int code;
  MPI_Comm_set_errhandler(parents, MPI_ERRORS_RETURN);
  MPI_Barrier(parents);
  if (rank == 1) raise(SIGKILL);
  code = MPIX_Comm_shrink(parents, &living);
  expect(code == MPI_SUCCESS, "MPIX_Comm_shrink of a child", class_of(code));
  MPI_Comm_remote_size(parents, &size);
  check(living, SPAWNED - 1, size, size * (size - 1) / 2, 1);
  MPI_Comm_disconnect(&living);
  if (wrong) abort();
}

static void spawned(char* program) {
  MPI_Comm children, living = MPI_COMM_NULL;
  int code =
      MPI_Comm_spawn(program, MPI_ARGV_NULL, SPAWNED, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
  expect(code == MPI_SUCCESS, "MPI_Comm_spawn", class_of(code));
  MPI_Comm_set_errhandler(children, MPI_ERRORS_RETURN);
  MPI_Barrier(children);
  code = MPIX_Comm_shrink(children, &living);
  expect(code == MPI_SUCCESS, "MPIX_Comm_shrink", class_of(code));
  check(living, size, SPAWNED - 1, 0 + 2, 0);
  MPI_Comm_disconnect(&living);
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  int provided;
  MPI_Comm parents;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_get_parent(&parents);
  if (parents != MPI_COMM_NULL) child(parents);
  else if (strcmp(how, "last") == 0) dead(size - 1);
  else if (strcmp(how, "first") == 0) dead(0);
  else if (strcmp(how, "revoked") == 0) dead(-1);
  else if (strcmp(how, "side") == 0) side();
  else if (strcmp(how, "threads") == 0) threads();
  else if (strcmp(how, "rounds") == 0) rounds();
  else if (strcmp(how, "spawned") == 0) spawned(argv[0]);
  else wrong++;
  if (parents == MPI_COMM_NULL) say_what_is_left(how);
  MPI_Finalize();
  return 0;
}
