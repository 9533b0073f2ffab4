/* Of two jobs that have connected, without --ft: left_alone serve HOW FILE | left_alone connect HOW FILE
 * The one that connects dies, and the one that serves is told when it waits for anybody: HOW is how it waits. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int class_of(int code) {
  int class;
  MPI_Error_class(code, &class);
  return class;
}

static int wait_for_anybody(const char* how, MPI_Comm other) {
  MPI_Request request;
  MPI_Message message;
  MPI_Status status;
  int nothing, flag = 0, code = MPI_SUCCESS;
  if (strcmp(how, "receive") == 0)
    return MPI_Recv(&nothing, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, other, MPI_STATUS_IGNORE);
  if (strcmp(how, "probe") == 0) return MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, other, &status);
  if (strcmp(how, "mprobe") == 0) return MPI_Mprobe(MPI_ANY_SOURCE, 3, other, &message, &status);
  if (strcmp(how, "wait") == 0) {
    MPI_Irecv(&nothing, 1, MPI_INT, MPI_ANY_SOURCE, 3, other, &request);
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  while (!code && !flag) code = MPI_Iprobe(MPI_ANY_SOURCE, 3, other, &flag, &status);
  return code;
}

static void serve(const char* how, const char* file) {
  char port[MPI_MAX_PORT_NAME];
  MPI_Comm other;
  FILE* out = fopen(file, "w");
  int got = 0, first, then;
  MPI_Open_port(MPI_INFO_NULL, port);
  fputs(port, out);
  fclose(out);
  rename(file, strcat(strcpy((char[512]){0}, file), ".port"));
  MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
  MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN);
  MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 7, other, MPI_STATUS_IGNORE);
  first = wait_for_anybody(how, other);
  then = wait_for_anybody(how, other); /* known from the beginning */
  printf("%s: got %d, told %d %d\n", how, got, class_of(first) == MPIX_ERR_PROC_FAILED,
         class_of(then) == MPIX_ERR_PROC_FAILED);
  fflush(stdout);
  MPI_Comm_disconnect(&other);
}

static void die_connected(const char* file) {
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm other;
  FILE* in = fopen(file, "r");
  int said = 42;
  if (!in || !fgets(port, sizeof port, in)) return;
  MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
  MPI_Send(&said, 1, MPI_INT, 0, 7, other);
  raise(SIGKILL);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc > 3 && strcmp(argv[1], "serve") == 0) serve(argv[2], argv[3]);
  else if (argc > 3) die_connected(argv[3]);
  MPI_Finalize();
  return 0;
}
