/* Each rank may leave as soon as it is through with a call, and the others still finish that call: what the one
 * that has left sent for it is there. usage: OPERATION SEED. In each turn one rank, which the seed chooses, leaves
 * right after its call; the others must return from it without an error. Between the turns they shrink, and go on
 * while there are two. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int wait_for(int error, MPI_Request* request) { return error ? error : MPI_Wait(request, MPI_STATUS_IGNORE); }
static int make(const char* how, MPI_Comm comm, MPI_Comm* made) {
  MPI_Request request;
  int rank;
  MPI_Comm_rank(comm, &rank);
  if (!strcmp(how, "dup")) return MPI_Comm_dup(comm, made);
  if (!strcmp(how, "idup")) return wait_for(MPI_Comm_idup(comm, made, &request), &request);
  if (!strcmp(how, "split")) return MPI_Comm_split(comm, 0, -rank, made);
  fprintf(stderr, "no operation %s\n", how);
  exit(2);
}

/* Who leaves: not always one that the others wait for last. */
static unsigned chosen(unsigned seed, unsigned turn, unsigned size) {
  return ((seed * 2654435761u) ^ (turn * 40503u)) % size;
}

int main(int argc, char** argv) {
  MPI_Comm living, made, next;
  unsigned seed, turn;
  int rank, size, error, class, flag = 1, first;
  if (argc != 3) return 2;
  seed = (unsigned)atoi(argv[2]);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &first);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  living = MPI_COMM_WORLD;
  for (turn = 0;; turn++) {
    MPI_Comm_rank(living, &rank);
    MPI_Comm_size(living, &size);
    if (size == 1) break;
    error = make(argv[1], living, &made);
    if (error) {
      MPI_Error_class(error, &class);
      printf("rank %d: %s of %d fails with class %d\n", first, argv[1], size, class);
      fflush(stdout);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (rank == (int)chosen(seed, turn, (unsigned)size)) _exit(0);
    MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
    MPIX_Comm_agree(made, &flag);
    error = MPIX_Comm_shrink(made, &next);
    if (error) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Comm_set_errhandler(next, MPI_ERRORS_RETURN);
    MPI_Comm_free(&made);
    if (living != MPI_COMM_WORLD) MPI_Comm_free(&living);
    living = next;
  }
  printf("%s: right\n", argv[1]);
  MPI_Finalize();
  return 0;
}
