/* With --ft, calls that end what has failed return, and what comes behind them is right: ft_ends HOW
 * threads, threads_dead: two threads shrink two copies of the world again and again; with a dead rank in them.
 * order: one thread of rank 0 shrinks each of them, and the others shrink them one after the other.
 * alone: one thread shrinks a copy, and the other one MPI_COMM_SELF.
 * idup: two copies are made meanwhile, for which rank 0 waits first, and the others behind their shrinking.
 * disconnect, disconnect_dead: a copy of the world that was revoked; by all, or by one when the last rank has died.
 * detach: MPI_Buffer_detach behind a send to a dead rank gives the buffer back, and the next buffer works.
 * cancel, cancel_known, cancel_late: a send to the last rank, which dies before, before it is known, or meanwhile.
 * cancel_revoked: a synchronous send on a communicator that is revoked then.
 * groups: MPI_Comm_create_from_group and MPI_Intercomm_create_from_groups with a dead member fail at all. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "ft_common.h"

enum { BYTES = 100000 };
static int last;
static MPI_Comm copies[2];

static void die_if_last(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == last) raise(SIGKILL);
}

/* Until the death of the last rank is known here. */
static void hear(void) {
  int nothing;
  int class = class_of(MPI_Recv(&nothing, 1, MPI_INT, last, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  expect(class == MPIX_ERR_PROC_FAILED, "the receive from the dead", class);
}

static void threads(int dies, int all_have_threads) {
  pthread_t other;
  if (dies) die_if_last();
  if (rank == 0 || all_have_threads) {
    pthread_create(&other, NULL, shrink, &copies[1]);
    shrink(&copies[0]);
    pthread_join(other, NULL);
  } else {
    shrink(&copies[1]);
    shrink(&copies[0]);
  }
}

static void alone(void) {
  pthread_t other;
  MPI_Comm self = MPI_COMM_SELF;
  pthread_create(&other, NULL, shrink, &self);
  shrink(&copies[0]);
  pthread_join(other, NULL);
}

static void meanwhile(void) {
  for (int turn = 0; turn < TIMES; turn++) {
    MPI_Comm made[2], living;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int one = 1, sum = 0;
    for (int i = 0; i < 2; i++) MPI_Comm_idup(copies[i], &made[i], &requests[i]);
    if (rank == 0) MPI_Waitall(2, requests, statuses);
    MPIX_Comm_shrink(MPI_COMM_WORLD, &living);
    if (rank != 0) MPI_Waitall(2, requests, statuses);
    MPI_Comm_free(&living);
    for (int i = 0; i < 2; i++) {
      MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, made[i]);
      expect(sum == size, "the sum over a copy", sum);
      MPI_Comm_free(&made[i]);
    }
  }
}

static void cancel_revoked(void) {
  for (int turn = 0; turn < TIMES; turn++) {
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    if (rank == 0) {
      MPI_Request request;
      MPI_Status status;
      static char some[BYTES];
      MPI_Issend(some, turn % 2 ? 1 : BYTES, MPI_CHAR, last, 5, copy, &request);
      MPI_Cancel(&request);
      MPIX_Comm_revoke(copy);
      MPI_Wait(&request, &status);
    }
    MPI_Comm_free(&copy);
  }
}

static void disconnect(int dies) {
  int code;
  if (dies) die_if_last();
  if (!dies || rank == 0) MPIX_Comm_revoke(copies[0]);
  code = MPI_Comm_disconnect(&copies[0]);
  if (!dies || rank == 0) expect(class_of(code) == MPIX_ERR_REVOKED, "MPI_Comm_disconnect", class_of(code));
}

static void detach(void) {
  static char some[BYTES], first[2 * BYTES], second[2 * BYTES];
  void* got = NULL;
  int length = 0, code;
  die_if_last();
  hear();
  if (rank == 0) {
    MPI_Buffer_attach(first, sizeof first);
    code = MPI_Bsend(some, BYTES, MPI_CHAR, last, 0, MPI_COMM_WORLD);
    code = MPI_Buffer_detach(&got, &length);
    expect(got == first && length == sizeof first, "what the first MPI_Buffer_detach gives", class_of(code));
    code = MPI_Buffer_attach(second, sizeof second);
    expect(code == MPI_SUCCESS, "MPI_Buffer_attach", class_of(code));
    memset(some, 7, BYTES);
    code = MPI_Bsend(some, BYTES, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    expect(code == MPI_SUCCESS, "MPI_Bsend", class_of(code));
    code = MPI_Buffer_detach(&got, &length);
    expect(code == MPI_SUCCESS && got == second, "the second MPI_Buffer_detach", class_of(code));
  } else if (rank == 1) {
    MPI_Recv(some, BYTES, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect(some[0] == 7 && some[BYTES - 1] == 7, "what was buffered", some[0]);
  }
}

static void cancel(const char* how) {
  for (int synchronous = 0; synchronous < 2; synchronous++) {
    MPI_Request request;
    MPI_Status status;
    int code, one = 1, was_cancelled = 0;
    if (strcmp(how, "cancel_late") == 0) {
      if (synchronous) return;
      MPI_Barrier(MPI_COMM_WORLD);
    } else if (!synchronous) {
      die_if_last();
    }
    if (strcmp(how, "cancel_known") == 0) hear();
    if (rank == 0) {
      code = synchronous ? MPI_Issend(&one, 1, MPI_INT, last, 5, MPI_COMM_WORLD, &request)
                         : MPI_Isend(&one, 1, MPI_INT, last, 5, MPI_COMM_WORLD, &request);
      if (!code) MPI_Cancel(&request), MPI_Wait(&request, &status), MPI_Test_cancelled(&status, &was_cancelled);
    }
    if (strcmp(how, "cancel_late") == 0 && rank == last) raise(SIGKILL);
  }
}

static void groups(void) {
  const int parts[2][2] = {{0, 2}, {1, 3}};
  MPI_Group world, two[2];
  MPI_Comm made = MPI_COMM_NULL;
  int class;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  for (int i = 0; i < 2; i++) MPI_Group_incl(world, 2, parts[i], &two[i]);
  die_if_last();
  hear();
  class = class_of(MPI_Comm_create_from_group(world, "all", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made));
  expect(class == MPIX_ERR_PROC_FAILED, "MPI_Comm_create_from_group", class);
  class = class_of(MPI_Intercomm_create_from_groups(two[rank % 2], 0, two[1 - rank % 2], 0, "two", MPI_INFO_NULL,
                                                    MPI_ERRORS_RETURN, &made));
  expect(class == MPIX_ERR_PROC_FAILED, "MPI_Intercomm_create_from_groups", class);
  expect(made == MPI_COMM_NULL, "a communicator", 1);
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  last = size - 1;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  for (int i = 0; i < 2; i++) MPI_Comm_dup(MPI_COMM_WORLD, &copies[i]);
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(how, "threads") == 0 || strcmp(how, "threads_dead") == 0) threads(strcmp(how, "threads") != 0, 1);
  else if (strcmp(how, "order") == 0) threads(0, 0);
  else if (strcmp(how, "alone") == 0) alone();
  else if (strcmp(how, "idup") == 0) meanwhile();
  else if (strcmp(how, "cancel_revoked") == 0) cancel_revoked();
  else if (strncmp(how, "disconnect", 10) == 0) disconnect(how[10] != 0);
  else if (strcmp(how, "detach") == 0) detach();
  else if (strncmp(how, "cancel", 6) == 0) cancel(how);
  else if (strcmp(how, "groups") == 0) groups();
  else wrong++;
  say_what_is_left(how);
  MPI_Finalize();
  return 0;
}
