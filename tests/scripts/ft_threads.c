// A rank dies while two threads of each rank (MPI_THREAD_MULTIPLE) are in calls of communicators of their own: each
// thread hears of it, by MPIX_ERR_PROC_FAILED or MPIX_ERR_REVOKED, and what a call says to have done is right. Then the
// survivors shrink and go on.
//   ft_threads SEED
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { threads = 2, longest = 200000, most_calls = 100000 };
static int rank, size, victim, last_call;
static unsigned seed;

struct work {
  MPI_Comm comm;
  int number;
  unsigned draws;
};

static void wrong(const struct work* own, int call, const char* what, int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  printf("rank %d thread %d call %d: %s: %s\n", rank, own->number, call, what, text);
  fflush(stdout);
  abort();
}

// One call of a kind that all ranks draw alike; MPI_SUCCESS or what it said.
static int one_call(struct work* own, int call) {
  const unsigned kind = (own->draws = own->draws * 1103515245u + 12345u) >> 16;
  const int count = (kind & 8) ? longest : 1 + (int)(kind >> 4) % 100;
  static _Thread_local int in[longest], out[longest];
  int code = MPI_SUCCESS;
  switch (kind & 7) {
    case 0:
    case 1:
      for (int i = 0; i < 100; i++) in[i] = rank + i + call;
      code = MPI_Allreduce(in, out, 100, MPI_INT, MPI_SUM, own->comm);
      for (int i = 0; code == MPI_SUCCESS && i < 100; i++)
        if (out[i] != size * (size - 1) / 2 + size * (i + call)) wrong(own, call, "the sum is wrong", code);
      break;
    case 2: code = MPI_Barrier(own->comm); break;
    case 3: {
      const int root = call % size;
      in[0] = in[count - 1] = rank == root ? call + 7 : -1;
      code = MPI_Bcast(in, count, MPI_INT, root, own->comm);
      if (code == MPI_SUCCESS && (in[0] != call + 7 || in[count - 1] != call + 7))
        wrong(own, call, "the broadcast is wrong", code);
      break;
    }
    case 4: {
      MPI_Request request;
      int sum = 0;
      code = MPI_Iallreduce(&call, &sum, 1, MPI_INT, MPI_SUM, own->comm, &request);
      if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
      if (code == MPI_SUCCESS && sum != size * call) wrong(own, call, "the nonblocking sum is wrong", code);
      break;
    }
    default: {
      const int right = (rank + 1) % size, left = (rank + size - 1) % size;
      MPI_Request requests[2];
      MPI_Status statuses[2];
      out[0] = out[count - 1] = rank + call;
      code = MPI_Irecv(in, count, MPI_INT, left, 3, own->comm, &requests[0]);
      if (code != MPI_SUCCESS) break;
      code = MPI_Isend(out, count, MPI_INT, right, 3, own->comm, &requests[1]);
      if (code != MPI_SUCCESS) {
        MPI_Cancel(&requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        break;
      }
      code = MPI_Waitall(2, requests, statuses);
      if (code == MPI_ERR_IN_STATUS) {
        code = statuses[0].MPI_ERROR != MPI_SUCCESS ? statuses[0].MPI_ERROR : statuses[1].MPI_ERROR;
        // One that is pending is over when the communicator is revoked.
        for (int i = 0; i < 2; i++)
          if (requests[i] != MPI_REQUEST_NULL) {
            MPIX_Comm_revoke(own->comm);
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
          }
      }
      if (code == MPI_SUCCESS && (in[0] != left + call || in[count - 1] != left + call))
        wrong(own, call, "the ring's message is wrong", code);
    }
  }
  return code;
}

static void* run(void* argument) {
  struct work* own = argument;
  int code = MPI_SUCCESS, class = 0, call = 0;
  for (; code == MPI_SUCCESS; call++) {
    if (rank == victim && own->number == 0 && call == last_call) {
      if (seed % 3) kill(getpid(), SIGKILL);
      _exit(0);
    }
    if (call == most_calls) wrong(own, call, "nobody told of the death", code);
    code = one_call(own, call);
  }
  MPI_Error_class(code, &class);
  if (class != MPIX_ERR_PROC_FAILED && class != MPIX_ERR_PROC_FAILED_PENDING && class != MPIX_ERR_REVOKED)
    wrong(own, call, "an error of another class", code);
  MPIX_Comm_revoke(own->comm);
  return NULL;
}

int main(int argc, char** argv) {
  int provided = 0;
  struct work works[threads];
  pthread_t handles[threads];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
  srand(seed);
  victim = rand() % size;
  last_call = rand() % 200;
  for (int i = 0; i < threads; i++) {
    works[i] = (struct work){.number = i, .draws = seed * 31 + (unsigned)i};
    MPI_Comm_dup(MPI_COMM_WORLD, &works[i].comm);
  }
  for (int i = 0; i < threads; i++) pthread_create(&handles[i], NULL, run, &works[i]);
  for (int i = 0; i < threads; i++) pthread_join(handles[i], NULL);
  MPI_Comm rest;
  int code = MPIX_Comm_shrink(MPI_COMM_WORLD, &rest), left = 0, one = 1, sum = 0;
  if (code != MPI_SUCCESS) wrong(works, 0, "shrink", code);
  MPI_Comm_size(rest, &left);
  code = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, rest);
  if (code != MPI_SUCCESS || sum != size - 1 || left != size - 1) wrong(works, 0, "those who are left", code);
  int first = 0;
  MPI_Comm_rank(rest, &first);
  if (first == 0) printf("over: %d left\n", left);
  MPI_Finalize();
  return 0;
}
