/* Rank 1 stays where MPI_Finalize has closed its port but has not let go of the process: its line of statistics goes
 * into a full pipe. Rank 0 sends to it, which is an error, and ends as ever. finished_peers FOLDER */
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char going[300], done[300];
static int pipe_ends[2];

static void mark(const char* file) {
  FILE* made = fopen(file, "w");
  if (made) fclose(made);
}

static void await(const char* file) {
  struct stat ignored;
  while (stat(file, &ignored) != 0) usleep(1000);
}

/* The main thread waits in a write to standard error: its port is closed by then. */
static int is_at_the_pipe(void) {
  char file[64];
  long call = -1;
  unsigned long where = 0;
  snprintf(file, sizeof file, "/proc/self/task/%d/syscall", (int)getpid());
  FILE* state = fopen(file, "r");
  if (!state) _exit(77);
  const int found = fscanf(state, "%ld %lx", &call, &where);
  fclose(state);
  return found == 2 && (call == SYS_write || call == SYS_writev) && where == 2;
}

/* Reads only once rank 0 is through. */
static void* drain(void* unused) {
  char bytes[4096];
  while (!is_at_the_pipe()) usleep(1000);
  mark(going);
  await(done);
  while (read(pipe_ends[0], bytes, sizeof bytes) > 0) continue;
  return unused;
}

static void fill_standard_error(void) {
  char bytes[4096];
  memset(bytes, '\n', sizeof bytes);
  if (pipe(pipe_ends) != 0) MPI_Abort(MPI_COMM_WORLD, 2);
  fcntl(pipe_ends[1], F_SETFL, O_NONBLOCK);
  for (size_t n = sizeof bytes; n > 0; n /= 2)
    while (write(pipe_ends[1], bytes, n) > 0) continue;
  fcntl(pipe_ends[1], F_SETFL, 0);
  dup2(pipe_ends[1], 2);
}

static int is_refused(void) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int class, length;
  const int error = MPI_Send(text, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
  MPI_Error_string(error, text, &length);
  MPI_Error_class(error, &class);
  printf("%s\n", text);
  return class == MPIX_ERR_PROC_FAILED && strstr(text, "is not open") != NULL;
}

int main(int argc, char** argv) {
  int rank, wrong = 0;
  MPI_Init(&argc, &argv);
  if (argc < 2) return 2;
  snprintf(going, sizeof going, "%s/going", argv[1]);
  snprintf(done, sizeof done, "%s/done", argv[1]);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (rank == 1) {
    pthread_t thread;
    fill_standard_error();
    pthread_create(&thread, NULL, drain, NULL);
    return MPI_Finalize();
  }
  await(going);
  wrong = !is_refused();
  wrong |= MPI_Finalize() != MPI_SUCCESS;
  printf(wrong ? "wrong\n" : "right\n");
  fflush(stdout);
  mark(done);
  return wrong;
}
