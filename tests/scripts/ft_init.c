/* init VICTIM kill | exit STATUS | wait FILE | fork MICROSECONDS
 *
 * That rank is killed or ends before MPI_Init, waits there and makes a file that says so, or is killed so long after
 * the beginning of MPI_Init. The others go on without it. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  const char* rank_text = getenv("PMI_RANK");
  const int victim = atoi(argv[1]);
  int rank, class = MPI_SUCCESS, code, alive;
  MPI_Comm living;
  if (rank_text && atoi(rank_text) == victim) {
    if (!strcmp(argv[2], "kill")) raise(SIGKILL);
    else if (!strcmp(argv[2], "exit")) exit(atoi(argv[3]));
    else if (!strcmp(argv[2], "wait")) {
      fclose(fopen(argv[3], "w"));
      for (;;) pause();
    } else if (fork() == 0) {
      usleep(atoi(argv[3]));
      kill(getppid(), SIGKILL);
      _exit(0);
    }
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  code = MPI_Recv(&alive, 1, MPI_INT, victim, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  MPIX_Comm_revoke(MPI_COMM_WORLD);
  MPIX_Comm_shrink(MPI_COMM_WORLD, &living);
  MPI_Comm_size(living, &alive);
  if (class != MPIX_ERR_PROC_FAILED && class != MPIX_ERR_REVOKED) printf("rank %d: class %d\n", rank, class);
  else printf("one of %d goes on\n", alive);
  MPI_Comm_free(&living);
  MPI_Finalize();
  return 0;
}
