/* With --ft the last rank dies. What the others wait for then must end: ft_waits HOW
 * put, get, accumulate, get_accumulate: the request of an operation on the dead rank; got: of one begun before it died.
 * test: MPI_Win_test, of an epoch that the dead rank was to end.
 * barrier, allreduce, bcast, dup, ibarrier, split: those who wait in it for rank 0, which has heard of the death by a
 * receive, or for rank 1, which has by MPI_Comm_create_group; both go on to MPIX_Comm_shrink, and nobody revokes.
 * freed: rank 1 heard of it by a receive in a copy of the world and frees that, in which the others wait for it.
 * any: MPI_Waitany, of a receive from any source, which it must name.
 * announced: receives of messages that the dead rank had announced, long and synchronous ones; nothing is left of them
 * that a communicator waits for when it is disconnected. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INTS = 25000 };
static int rank, size, last, wrong;
static int here[INTS], there[INTS], window[INTS];

static int class_of(int code) {
  int class;
  MPI_Error_class(code, &class);
  return class;
}

static void expect(const char* what, int code, int class) {
  if (class_of(code) == class) return;
  printf("rank %d: %s: class %d, wanted %d\n", rank, what, class_of(code), class);
  wrong++;
}

static int begin(const char* how, MPI_Win win, MPI_Request* request) {
  if (strcmp(how, "put") == 0) return MPI_Rput(here, INTS, MPI_INT, last, 0, INTS, MPI_INT, win, request);
  if (strcmp(how, "accumulate") == 0)
    return MPI_Raccumulate(here, INTS, MPI_INT, last, 0, INTS, MPI_INT, MPI_SUM, win, request);
  if (strcmp(how, "get_accumulate") == 0)
    return MPI_Rget_accumulate(here, INTS, MPI_INT, there, INTS, MPI_INT, last, 0, INTS, MPI_INT, MPI_SUM, win,
                               request);
  return MPI_Rget(there, INTS, MPI_INT, last, 0, INTS, MPI_INT, win, request);
}

/* Until the death of the last rank is known here. */
static void hear(MPI_Comm comm) {
  expect("the receive", MPI_Recv(here, 1, MPI_INT, last, 3, comm, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
}

static void in_window(const char* how) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Group world, origin;
  MPI_Win win;
  int code = MPI_SUCCESS, done = 0;

  MPI_Win_create(window, sizeof window, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == last) {
    if (strcmp(how, "got") == 0) MPI_Recv(here, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    raise(SIGKILL);
  }
  if (rank == 0 && strcmp(how, "test") == 0) {
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &last, &origin);
    MPI_Win_post(origin, 0, win);
    while (code == MPI_SUCCESS && !done) code = MPI_Win_test(win, &done);
    expect("MPI_Win_test", code, MPIX_ERR_PROC_FAILED);
  } else if (rank == 0) {
    code = MPI_Win_lock(MPI_LOCK_SHARED, last, 0, win);
    if (strcmp(how, "got") == 0) {
      begin("get", win, &request);
      MPI_Send(here, 1, MPI_INT, last, 4, MPI_COMM_WORLD);
      MPI_Wait(&request, MPI_STATUS_IGNORE); /* it may be served or not */
    }
    hear(MPI_COMM_WORLD);
    request = MPI_REQUEST_NULL;
    code = begin(how, win, &request);
    while (code == MPI_SUCCESS && !done) code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    expect("MPI_Test", code, MPIX_ERR_PROC_FAILED);
    request = MPI_REQUEST_NULL;
    code = begin(how, win, &request);
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect("MPI_Wait", code, MPIX_ERR_PROC_FAILED);
    expect("MPI_Win_unlock", MPI_Win_unlock(last, win), MPIX_ERR_PROC_FAILED);
  }
  MPI_Win_free(&win);
}

static int collective(const char* how, MPI_Comm comm) {
  MPI_Request request;
  MPI_Comm new;
  int code;

  if (strcmp(how, "allreduce") == 0) return MPI_Allreduce(here, there, 1, MPI_INT, MPI_SUM, comm);
  if (strcmp(how, "bcast") == 0) return MPI_Bcast(here, INTS, MPI_INT, 0, comm);
  if (strcmp(how, "dup") == 0) return MPI_Comm_dup(comm, &new);
  if (strcmp(how, "split") == 0) return MPI_Comm_split(comm, 0, 0, &new);
  if (strcmp(how, "ibarrier") != 0) return MPI_Barrier(comm);
  code = MPI_Ibarrier(comm, &request);
  return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

static void in_collective(const char* how) {
  MPI_Group world, pair;
  MPI_Comm new;

  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == last) raise(SIGKILL);
  if (rank == 0) {
    hear(MPI_COMM_WORLD);
  } else if (rank == 1) {
    const int both[] = {1, last};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 2, both, &pair);
    expect("MPI_Comm_create_group", MPI_Comm_create_group(MPI_COMM_WORLD, pair, 5, &new), MPIX_ERR_PROC_FAILED);
  } else {
    expect(how, collective(how, MPI_COMM_WORLD), MPIX_ERR_PROC_FAILED);
  }
}

static void in_a_freed_one(void) {
  MPI_Comm copy;

  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Barrier(copy);
  if (rank == last) raise(SIGKILL);
  if (rank == 1) hear(copy);
  else expect("MPI_Bcast", MPI_Bcast(here, INTS, MPI_INT, 1, copy), MPIX_ERR_PROC_FAILED);
  MPI_Comm_free(&copy);
  MPIX_Comm_revoke(MPI_COMM_WORLD);
}

static void for_any(void) {
  MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  int index = MPI_UNDEFINED;

  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == last) raise(SIGKILL);
  if (rank != 0) return;
  MPI_Irecv(here, 1, MPI_INT, 1, 6, MPI_COMM_WORLD, &requests[1]);
  MPI_Irecv(there, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &requests[2]);
  for (int turn = 0; turn < 2; turn++) { /* waiting when it dies, perhaps; and surely afterwards */
    expect("MPI_Waitany", MPI_Waitany(3, requests, &index, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED_PENDING);
    if (index != 2) printf("the pending receive is number %d\n", index), wrong++;
  }
  for (int i = 1; i < 3; i++) MPI_Cancel(&requests[i]), MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
}

static void announced(void) {
  enum { LONG = 1 << 20 };
  int* data = calloc(LONG, sizeof *data);
  MPI_Request requests[3];
  MPI_Message message;
  MPI_Comm copy;

  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  if (rank == last) {
    here[0] = 77;
    for (int i = 0; i < 2; i++) MPI_Isend(data, LONG, MPI_INT, 0, i, copy, &requests[i]);
    MPI_Issend(here, 1, MPI_INT, 0, 2, copy, &requests[2]);
    MPI_Recv(there, 1, MPI_INT, 0, 3, copy, MPI_STATUS_IGNORE);
    raise(SIGKILL);
  }
  if (rank == 0) {
    for (int tag = 0; tag < 3; tag++) MPI_Probe(last, tag, copy, MPI_STATUS_IGNORE);
    MPI_Mprobe(last, 1, copy, &message, MPI_STATUS_IGNORE);
    MPI_Send(here, 1, MPI_INT, last, 3, copy);
    hear(MPI_COMM_WORLD);
    expect("MPI_Recv", MPI_Recv(data, LONG, MPI_INT, last, 0, copy, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    expect("MPI_Mrecv", MPI_Mrecv(data, LONG, MPI_INT, &message, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    expect("MPI_Recv of MPI_Issend", MPI_Recv(there, 1, MPI_INT, last, 2, copy, MPI_STATUS_IGNORE), MPI_SUCCESS);
    if (there[0] != 77) printf("%d of MPI_Issend\n", there[0]), wrong++;
  }
  MPI_Comm_disconnect(&copy);
  free(data);
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  MPI_Comm rest;
  int left, sum;

  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  last = size - 1;
  if (strstr("put get accumulate get_accumulate got test", how)) in_window(how);
  else if (strcmp(how, "freed") == 0) in_a_freed_one();
  else if (strcmp(how, "any") == 0) for_any();
  else if (strcmp(how, "announced") == 0) announced();
  else in_collective(how);
  MPIX_Comm_shrink(MPI_COMM_WORLD, &rest);
  MPI_Comm_size(rest, &left);
  MPI_Allreduce(&wrong, &sum, 1, MPI_INT, MPI_SUM, rest);
  if (rank == 0) printf("%s: wrong %d, %d left\n", how, sum, left);
  fflush(stdout);
  MPI_Comm_free(&rest);
  MPI_Finalize();
  return 0;
}
