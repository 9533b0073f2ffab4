/* MPI_Comm_join of ranks 0 and 1 over a socket in the file system: joins HOW PATH
 * well: both join, three times over the same socket, and use what they get; the socket is as it was.
 * closed: rank 1 closes its end instead.
 * named_closed: rank 1 sends a port's name, by which it would be the one that connects, and closes its end then.
 * named_dead: it dies then (with --ft). dead: it dies at once.
 * failed: rank 1 sends its own name for a port that is not there, so that rank 0 fails to connect; rank 1 is told. */
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int rank, wrong;

static void expect(int is_so, const char* what, int found) {
  if (is_so) return;
  printf("rank %d: %s: %d\n", rank, what, found);
  fflush(stdout);
  wrong++;
}

static int connected(const char* path) {
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  int fd = -1, listening = socket(AF_UNIX, SOCK_STREAM, 0);
  strncpy(at.sun_path, path, sizeof at.sun_path - 1);
  if (rank == 0) {
    bind(listening, (struct sockaddr*)&at, sizeof at);
    listen(listening, 1);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) {
    expect(connect(listening, (struct sockaddr*)&at, sizeof at) == 0, "connect", -1);
    return listening;
  }
  fd = accept(listening, NULL, NULL);
  close(listening);
  return fd;
}

static void well(int fd) {
  for (int i = 0; i < 3; i++) {
    MPI_Comm both = MPI_COMM_NULL;
    const int flags = fcntl(fd, F_GETFL, 0);
    int sum = -1, code = MPI_Comm_join(fd, &both);
    char byte = (char)rank;
    expect(code == MPI_SUCCESS, "MPI_Comm_join", code);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, both);
    expect(sum == 1 - rank, "the sum over the other side", sum);
    MPI_Comm_disconnect(&both);
    expect(fcntl(fd, F_GETFL, 0) == flags, "the flags of the socket", fcntl(fd, F_GETFL, 0));
    expect(write(fd, &byte, 1) == 1 && read(fd, &byte, 1) == 1 && byte == 1 - rank, "a byte over the socket", byte);
  }
}

static void fails(int fd) {
  MPI_Comm both = MPI_COMM_NULL;
  int code = MPI_Comm_join(fd, &both), class = 0;
  char text[MPI_MAX_ERROR_STRING];
  int length;
  MPI_Error_class(code, &class);
  MPI_Error_string(code, text, &length);
  expect(class == MPIX_ERR_PROC_FAILED || class == MPI_ERR_PORT, "the class of the error", class);
  expect(both == MPI_COMM_NULL, "a communicator", 1);
  printf("told: %s\n", text);
}

static void other(const char* how, int fd) {
  static char name[MPI_MAX_PORT_NAME] = "zzz is behind each name of a port";
  char byte;
  if (strcmp(how, "failed") == 0) {
    /* what rank 0 sends, and then the end of it: it has failed */
    strcpy(name, "!! is before each name of a port");
    expect(write(fd, name, sizeof name) == sizeof name, "write", -1);
    expect(recv(fd, name, sizeof name, MSG_WAITALL) == sizeof name, "the name of the port", -1);
    expect(read(fd, &byte, 1) == 0, "the end of the socket", byte);
    return;
  }
  if (strncmp(how, "named", 5) == 0) expect(write(fd, name, sizeof name) == sizeof name, "write", -1);
  if (strstr(how, "dead")) raise(SIGKILL);
  close(fd);
}

int main(int argc, char** argv) {
  const char* how = argc > 2 ? argv[1] : "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  if (rank < 2) {
    int fd = connected(argv[2]);
    if (strcmp(how, "well") == 0) well(fd);
    else if (rank == 0) fails(fd);
    else other(how, fd);
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
  }
  printf("%s: wrong %d\n", how, wrong);
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
