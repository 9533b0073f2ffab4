/* Kinds of requests and calls that few programs have, each against what MPI says of it. rare_requests WHAT FILE: where
 * all is right it prints "rare_requests: right". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kInts = 5000, kPairs = 5000 };
static int rank, ranks, wrong;

static void expect(int is_right, const char* what) {
  if (!is_right && ++wrong < 5) printf("wrong on rank %d: %s\n", rank, what);
}

static void expect_status(const MPI_Status* status, int source, int tag, int ints, const char* what) {
  int count;
  MPI_Get_count(status, MPI_INT, &count);
  expect(status->MPI_SOURCE == source && status->MPI_TAG == tag && count == ints, what);
}

typedef int init_fn(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);

/* A persistent send of each kind in front of a receive, started together; MPI_Waitany finds each of them once. */
static void started_together(init_fn* init, int count) {
  static int sent[kInts], got[kInts];
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  MPI_Request requests[2];
  init(sent, count, MPI_INT, next, 4, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(got, kInts, MPI_INT, previous, 4, MPI_COMM_WORLD, &requests[1]);
  for (int round = 0; round < 3; ++round) {
    int seen = 0;
    for (int i = 0; i < count; ++i) {
      sent[i] = rank * 100000 + round * kInts + i;
      got[i] = -1;
    }
    MPI_Startall(2, requests);
    for (int i = 0; i < 2; ++i) {
      MPI_Status status;
      int which;
      MPI_Waitany(2, requests, &which, &status);
      if (which < 0) continue;  // a buffered send is not waited for here
      seen |= 1 << which;
      if (which == 1) expect_status(&status, previous, 4, count, "status of a persistent receive");
    }
    expect(seen & 2, "a receive behind a persistent send is waited for");
    for (int i = 0; i < count; ++i)
      expect(got[i] == previous * 100000 + round * kInts + i, "what a receive behind a persistent send gets");
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

static void persistent(void) {
  static char buffer[4 * kInts + MPI_BSEND_OVERHEAD];
  MPI_Buffer_attach(buffer, sizeof buffer);
  for (int count = 1; count <= kInts; count += kInts - 1) {
    started_together(MPI_Send_init, count);
    started_together(MPI_Ssend_init, count);
    started_together(MPI_Bsend_init, count);
  }
  void* detached;
  int size;
  MPI_Buffer_detach(&detached, &size);

  MPI_Request requests[2];
  MPI_Status status;
  int which, flag;
  MPI_Recv_init(NULL, 0, MPI_INT, MPI_PROC_NULL, 7, MPI_COMM_WORLD, &requests[0]);
  MPI_Send_init(NULL, 0, MPI_INT, MPI_PROC_NULL, 7, MPI_COMM_WORLD, &requests[1]);
  MPI_Startall(2, requests);
  MPI_Test(&requests[0], &flag, &status);
  expect(flag, "a started receive from nobody is complete");
  expect_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0, "status of a persistent receive from nobody");
  MPI_Waitany(2, requests, &which, &status);
  expect(which == 1, "a started send to nobody is active");
  MPI_Waitany(2, requests, &which, &status);
  expect(which == MPI_UNDEFINED, "requests that are not started are not active");
  MPI_Start(&requests[0]);
  MPI_Cancel(&requests[0]);
  MPI_Wait(&requests[0], &status);
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

/* Of requests that nobody has started. */
static void wait_for_inactive(int count, MPI_Request* requests) {
  MPI_Status statuses[3];
  int flag = 0, index = 0, some = 0, indices[3];
  for (int i = 0; i < count; ++i) {
    MPI_Wait(&requests[i], &statuses[0]);
    expect_status(&statuses[0], MPI_ANY_SOURCE, MPI_ANY_TAG, 0, "MPI_Wait of an inactive request");
    memset(statuses, 0x5a, sizeof statuses);
    MPI_Test(&requests[i], &flag, &statuses[0]);
    expect(flag, "MPI_Test of an inactive request");
    expect_status(&statuses[0], MPI_ANY_SOURCE, MPI_ANY_TAG, 0, "MPI_Test of an inactive request");
  }
  MPI_Waitall(count, requests, statuses);
  MPI_Testall(count, requests, &flag, statuses);
  expect(flag, "MPI_Testall of inactive requests");
  MPI_Waitany(count, requests, &index, &statuses[0]);
  MPI_Waitsome(count, requests, &some, indices, statuses);
  expect(index == MPI_UNDEFINED && some == MPI_UNDEFINED, "MPI_Waitany and MPI_Waitsome of inactive requests");
}

/* MPI_Testall of requests that are not messages. */
static void tested_together(void) {
  int one = 1, sum = 0, flag = 0, error = MPI_SUCCESS;
  MPI_Request requests[3];
  MPI_Status statuses[3];
  char sent[64], got[64] = {0};
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  memset(sent, 'a' + rank, sizeof sent);
  MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  MPI_Psend_init(sent, 4, 16, MPI_CHAR, (rank + 1) % ranks, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  MPI_Precv_init(got, 4, 16, MPI_CHAR, (rank + ranks - 1) % ranks, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
  wait_for_inactive(3, requests);
  for (int round = 0; round < 3; ++round) {
    MPI_Startall(3, requests);
    MPI_Pready_range(0, 3, requests[1]);
    for (flag = 0; !flag && error == MPI_SUCCESS;) error = MPI_Testall(3, requests, &flag, statuses);
    expect(error == MPI_SUCCESS, "MPI_Testall of partitioned requests and a persistent collective");
    expect(sum == ranks && got[63] == 'a' + (rank + ranks - 1) % ranks, "what they bring");
    wait_for_inactive(3, requests);
  }
  for (int i = 0; i < 3; ++i) MPI_Request_free(&requests[i]);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void parts_from_nobody(void) {
  MPI_Request request;
  MPI_Status status;
  char nothing[16];
  MPI_Precv_init(nothing, 4, 4, MPI_CHAR, MPI_PROC_NULL, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int round = 0; round < 2; ++round) {
    MPI_Start(&request);
    memset(&status, 0x5a, sizeof status);
    MPI_Wait(&request, &status);
    expect_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0, "status of a partitioned receive from nobody");
  }
  MPI_Request_free(&request);
}

static void isendrecv(void) {
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  int out[3] = {rank, rank, rank}, in[4] = {-1, -1, -1, -1}, both[3] = {rank, rank, rank};
  MPI_Request request;
  MPI_Status status;
  MPI_Isendrecv(out, 3, MPI_INT, next, 5, in, 4, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, &status);
  expect_status(&status, previous, 5, 3, "status of MPI_Isendrecv");
  expect(in[2] == previous && in[3] == -1, "what MPI_Isendrecv gets");
  MPI_Isendrecv_replace(both, 3, MPI_INT, next, 6, previous, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, &status);
  expect_status(&status, previous, 6, 3, "status of MPI_Isendrecv_replace");
  expect(both[0] == previous, "what MPI_Isendrecv_replace gets");
  /* one end is nobody, or both */
  for (int which = 0; which < 4; ++which) {
    const int gets = which < 2 && rank == 1, gives = which < 2 && rank == 0;
    const int dest = gives ? 1 : MPI_PROC_NULL, source = gets ? 0 : MPI_PROC_NULL;
    both[0] = 77 + rank;
    in[0] = -1;
    if (which % 2) MPI_Isendrecv_replace(both, 1, MPI_INT, dest, 8, source, 8, MPI_COMM_WORLD, &request);
    else MPI_Isendrecv(both, 1, MPI_INT, dest, 8, in, 1, MPI_INT, source, 8, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, &status);
    if (gets) expect_status(&status, 0, 8, 1, "status of a receive beside a send to nobody");
    else expect_status(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0, "status of a receive from nobody");
    if (gets) expect((which % 2 ? both[0] : in[0]) == 77, "what comes beside a send to nobody");
  }
}

/* Everybody locks rank 0 and accumulates pairs into its window, of which some have to wait, and some are not kept. */
static void locked_pairs(void) {
  struct pair {
    double value;
    int index;
  } * window, *mine = calloc(kPairs, sizeof *mine), *old = calloc(kPairs, sizeof *old);
  MPI_Win win;
  window = calloc(kPairs, sizeof *window);  // not shared: operations go by messages
  MPI_Win_create(window, kPairs * sizeof *window, sizeof *window, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  for (int round = 0; round < 60; ++round) {
    const int count = round % 3 == 0 ? kPairs : 1 + 79 * round, is_get = round % 4 == 3;
    for (int i = 0; i < kPairs; ++i) {
      window[i] = (struct pair){1e9, -1};
      mine[i] = (struct pair){(rank * 7 + i) % ranks, rank};
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(round % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 0, 0, win);
    if (is_get)
      MPI_Get_accumulate(mine, count, MPI_DOUBLE_INT, old, count, MPI_DOUBLE_INT, 0, 0, count, MPI_DOUBLE_INT,
                         MPI_MINLOC, win);
    else MPI_Accumulate(mine, count, MPI_DOUBLE_INT, 0, 0, count, MPI_DOUBLE_INT, MPI_MINLOC, win);
    MPI_Win_unlock(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < kPairs; ++i) {
      int least = 0;
      while ((least * 7 + i) % ranks != 0) ++least;
      if (i < count) expect(window[i].value == 0 && window[i].index == least, "pairs accumulated under a lock");
      else expect(window[i].index == -1, "pairs behind those");
    }
  }
  MPI_Win_free(&win);
  free(window);
  free(mine);
  free(old);
}

/* Groups of different sizes of one host: what can share memory is the same of both. */
static void node_of_two_groups(void) {
  MPI_Comm group, both, node;
  const int first = ranks / 3 > 0 ? ranks / 3 : 1;
  MPI_Comm_split(MPI_COMM_WORLD, rank < first, rank, &group);
  MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, rank < first ? first : 0, 17, &both);
  MPI_Comm_split_type(both, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  int size, remote;
  MPI_Comm_size(node, &size);
  MPI_Comm_remote_size(node, &remote);
  expect(size == (rank < first ? first : ranks - first) && size + remote == ranks, "groups of one node");
  MPI_Comm_free(&node);
  MPI_Comm_free(&both);
  MPI_Comm_free(&group);
}

/* A late process does not cut away what another one has written behind its own call. */
static void resized(const char* name) {
  MPI_File file;
  MPI_Offset size;
  int number = 4711, got = 0;
  MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  for (int late = 0; late < ranks; ++late) {
    MPI_File_set_size(file, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == late) usleep(200000);
    MPI_File_set_size(file, 0);
    if (rank == (late + 1) % ranks) MPI_File_write_at(file, 0, &number, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
    MPI_File_get_size(file, &size);
    MPI_File_read_at(file, 0, &got, 1, MPI_INT, MPI_STATUS_IGNORE);
    expect(size == sizeof number && got == number, "what is written behind MPI_File_set_size");
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_File_close(&file);
}

/* No element is operated on, so the operation need have no meaning for the type. */
static void no_elements(void) {
  char from[4], to[4] = "abc", got[4];
  MPI_Win win;
  MPI_Win_create(to, sizeof to, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
  int error = MPI_Get_accumulate(from, 0, MPI_BYTE, got, 0, MPI_BYTE, 0, 0, 0, MPI_BYTE, MPI_SUM, win);
  expect(error == MPI_SUCCESS, "MPI_Get_accumulate of no elements");
  error = MPI_Accumulate(from, 0, MPI_BYTE, 0, 0, 0, MPI_BYTE, MPI_SUM, win);
  expect(error == MPI_SUCCESS, "MPI_Accumulate of no elements");
  MPI_Error_class(MPI_Accumulate(from, 1, MPI_BYTE, 0, 0, 1, MPI_BYTE, MPI_SUM, win), &error);
  expect(error == MPI_ERR_OP, "MPI_Accumulate of bytes");
  MPI_Win_unlock(0, win);
  MPI_Win_free(&win);
}

static void sets_and_handlers(void) {
  MPI_Session session;
  MPI_Errhandler handler;
  int count, length = 0;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
  MPI_Session_get_num_psets(session, MPI_INFO_NULL, &count);
  for (int n = -1; n <= count + 1; ++n) {
    length = 0;
    const int error = MPI_Session_get_nth_pset(session, MPI_INFO_NULL, n, &length, NULL);
    expect((error == MPI_SUCCESS) == (n >= 0 && n < count), "the nth process set");
  }
  MPI_Session_finalize(&session);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ABORT);
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
  expect(handler == MPI_ERRORS_ABORT, "MPI_ERRORS_ABORT is what was set");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const char* const what = argv[1];
  if (!strcmp(what, "abort")) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ABORT);
    MPI_Send(&rank, 1, MPI_INT, -7, 0, MPI_COMM_WORLD);
    printf("an error is survived\n");
  }
  if (!strcmp(what, "persistent")) persistent();
  if (!strcmp(what, "together")) tested_together();
  if (!strcmp(what, "isendrecv")) isendrecv();
  if (!strcmp(what, "pairs")) locked_pairs();
  if (!strcmp(what, "node")) node_of_two_groups();
  if (!strcmp(what, "size")) resized(argv[2]);
  if (!strcmp(what, "others")) no_elements(), sets_and_handlers();
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("rare_requests: %s\n", wrong ? "wrong" : "right");
  MPI_Finalize();
  return 0;
}
