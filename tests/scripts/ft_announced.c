/* A rank begins a collective of long messages, which announces them, and ends. The others hear of its end first, and
 * then come to the collective: it fails for all, with MPIX_ERR_PROC_FAILED, and nobody waits for the data.
 * usage: HOW */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define BYTES 1000000

static int nonblocking(const char* from, char* to, MPI_Comm comm, MPI_Request* request) {
  return MPI_Ialltoall(from, BYTES, MPI_CHAR, to, BYTES, MPI_CHAR, comm, request);
}
static int call(const char* how, const char* from, char* to, MPI_Comm comm) {
  MPI_Request request;
  if (strcmp(how, "nonblocking")) return MPI_Alltoall(from, BYTES, MPI_CHAR, to, BYTES, MPI_CHAR, comm);
  int error = nonblocking(from, to, comm, &request);
  return error ? error : MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void hear_of_the_end(MPI_Comm comm) {
  for (int failed = 0; failed == 0;) {
    MPI_Group group;
    MPIX_Comm_get_failed(comm, &group);
    MPI_Group_size(group, &failed);
    MPI_Group_free(&group);
  }
}

int main(int argc, char** argv) {
  int rank, size, class, flag = 1;
  MPI_Comm comm;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  char* from = calloc((size_t)size, BYTES);
  char* to = calloc((size_t)size, BYTES);
  if (call(argv[1], from, to, comm)) printf("rank %d: fails with nobody dead\n", rank); /* all are connected */
  MPI_Barrier(comm); /* rank 1 leaves when the others are done with that call; some may hear of it in here */
  if (rank == 1) {
    nonblocking(from, to, comm, &request);
    _exit(0);
  }
  hear_of_the_end(comm);
  MPI_Error_class(call(argv[1], from, to, comm), &class);
  if (class != MPIX_ERR_PROC_FAILED) printf("rank %d: class %d\n", rank, class);
  MPIX_Comm_agree(MPI_COMM_WORLD, &flag);
  if (rank == 0) printf("%s: over\n", argv[1]);
  MPI_Finalize();
  return 0;
}
