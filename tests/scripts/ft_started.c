// A rank dies between its start of nonblocking or persistent collectives and their end, in any of them: all of the
// others call on, each call ends, with what it should give or MPIX_ERR_PROC_FAILED, and those who are left shrink and
// go on.
//   ft_started SEED
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { outstanding = 4, rounds = 40, longest = 40000, kinds = 9, most_ranks = 64 };
static int rank, size;
static unsigned draws;

struct started {
  int kind, count, call, root;
  MPI_Request request;
  int *in, *out;
};

static unsigned draw(unsigned below) {
  draws = draws * 1103515245u + 12345u;
  return (draws >> 16) % below;
}

static void wrong(const struct started* own, const char* what, int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  printf("rank %d call %d kind %d count %d: %s: %s\n", rank, own ? own->call : -1, own ? own->kind : -1,
         own ? own->count : 0, what, text);
  fflush(stdout);
  abort();
}

static void check_code(const struct started* own, int code) {
  int class = 0;
  MPI_Error_class(code, &class);
  if (class != MPI_SUCCESS && class != MPIX_ERR_PROC_FAILED) wrong(own, "an error of another class", code);
}

static int value(int of, int call, int i) { return of * 1000 + call * 7 + i; }

static int start(struct started* own, MPI_Comm comm) {
  const int n = own->count;
  for (int i = 0; i < n; i++) own->in[i] = value(rank, own->call, i);
  own->request = MPI_REQUEST_NULL;
  switch (own->kind) {
    case 0: return MPI_Iallreduce(own->in, own->out, n, MPI_INT, MPI_SUM, comm, &own->request);
    case 1: return MPI_Ibcast(own->in, n, MPI_INT, own->root, comm, &own->request);
    case 2: return MPI_Ibarrier(comm, &own->request);
    case 3: return MPI_Ireduce(own->in, own->out, n, MPI_INT, MPI_SUM, own->root, comm, &own->request);
    case 4: return MPI_Iallgather(own->in, n, MPI_INT, own->out, n, MPI_INT, comm, &own->request);
    case 5: return MPI_Igather(own->in, n, MPI_INT, own->out, n, MPI_INT, own->root, comm, &own->request);
    case 6: return MPI_Iscan(own->in, own->out, n, MPI_INT, MPI_SUM, comm, &own->request);
    case 7: {
      const int code = MPI_Allreduce_init(own->in, own->out, n, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &own->request);
      return code == MPI_SUCCESS ? MPI_Start(&own->request) : code;
    }
    default: return MPI_Ialltoall(own->in, n / size, MPI_INT, own->out, n / size, MPI_INT, comm, &own->request);
  }
}

static int expected(const struct started* own, int i) {
  const int n = own->count;
  int sum = 0;
  switch (own->kind) {
    case 4:
    case 5: return value(i / n, own->call, i % n);
    case 6:
      for (int r = 0; r <= rank; r++) sum += value(r, own->call, i);
      return sum;
    case 8: return value(i / (n / size), own->call, rank * (n / size) + i % (n / size));
    default:
      for (int r = 0; r < size; r++) sum += value(r, own->call, i);
      return sum;
  }
}

static void check(const struct started* own) {
  const int n = own->count;
  if (own->kind == 2 || ((own->kind == 3 || own->kind == 5) && rank != own->root)) return;
  if (own->kind == 1) {
    for (int i = 0; i < n; i++)
      if (own->in[i] != value(own->root, own->call, i)) wrong(own, "wrong value", MPI_SUCCESS);
    return;
  }
  const int m = own->kind == 4 || own->kind == 5 ? n * size : own->kind == 8 ? n / size * size : n;
  for (int i = 0; i < m; i++)
    if (own->out[i] != expected(own, i)) wrong(own, "wrong value", MPI_SUCCESS);
}

static void die(unsigned how) {
  if (how) kill(getpid(), SIGKILL);
  _exit(0);
}

int main(int argc, char** argv) {
  struct started calls[outstanding];
  MPI_Comm comms[2], rest;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  draws = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
  const int victim = (int)draw((unsigned)size), round_of_death = (int)draw(rounds), place = (int)draw(2 * outstanding);
  const unsigned how = draw(3);
  for (int i = 0; i < 2; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  for (int i = 0; i < outstanding; i++) {
    calls[i].in = malloc(longest * sizeof(int));
    calls[i].out = malloc((size_t)longest * (size_t)size * sizeof(int));
  }
  for (int round = 0, call = 0; round < rounds; round++) {
    const int dies = rank == victim && round == round_of_death;
    int codes[outstanding];
    for (int i = 0; i < outstanding; i++) {
      if (dies && place == i) die(how);
      const unsigned on = draw(2), length = draw(3);
      calls[i].call = call++;
      calls[i].kind = (int)draw(kinds);
      calls[i].root = (int)draw((unsigned)size);
      calls[i].count = length == 0 ? size : length == 1 ? 100 * size : (int)draw(longest / most_ranks) * size;
      if (calls[i].count == 0) calls[i].count = size;
      codes[i] = start(&calls[i], comms[on]);
      check_code(&calls[i], codes[i]);
    }
    const int first = (int)draw(outstanding);
    for (int j = 0; j < outstanding; j++) {
      struct started* own = &calls[(first + j * 3) % outstanding];
      const int at = (int)(own - calls);
      if (dies && place == outstanding + j) die(how);
      if (codes[at] == MPI_SUCCESS) {
        codes[at] = MPI_Wait(&own->request, MPI_STATUS_IGNORE);
        check_code(own, codes[at]);
        if (codes[at] == MPI_SUCCESS) check(own);
      }
      if (own->kind == 7 && own->request != MPI_REQUEST_NULL) MPI_Request_free(&own->request);
    }
  }
  int code = MPIX_Comm_shrink(MPI_COMM_WORLD, &rest), left = 0, one = 1, sum = 0;
  if (code != MPI_SUCCESS) wrong(NULL, "shrink", code);
  MPI_Comm_size(rest, &left);
  code = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, rest);
  if (code != MPI_SUCCESS || sum != left) wrong(NULL, "those who are left", code);
  MPI_Comm_rank(rest, &rank);
  if (rank == 0) printf("over: %d left\n", left);
  MPI_Finalize();
  return 0;
}
