#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

/* Four ranks duplicate a communicator, which MPICH agrees on by recursive doubling: 2 hears 3 and 1 hears 0, then 0
 * hears 2 and 1 hears 3. Rank 3 is stopped between and killed then, so 0 and 2 have the duplicate and 1 has not. Rank 0
 * sends to 1 in it. Then all who are left shrink and make communicators again, in which everyone must get what is sent
 * there: ft_stale FILE HOW, where HOW is dup, split, idup, group, self or shrink. */

typedef struct {
  atomic_int of_three;
} steps_t;

static steps_t* steps;

static int sleeps(pid_t process) {
  char file[64], state = 'R';
  snprintf(file, sizeof file, "/proc/%d/stat", (int)process);
  FILE* stat = fopen(file, "r");
  if (!stat) return 0;
  if (fscanf(stat, "%*d %*s %c", &state) != 1) state = 'R';
  fclose(stat);
  return state == 'S';
}

/* 3 has sent its part to 2 and waits for that of 2, when it sleeps for long. */
static pid_t stop_three(void) {
  pid_t process;
  while (!(process = atomic_load(&steps->of_three))) sched_yield();
  for (int looks = 0; looks < 3000; ++looks)
    if (!sleeps(process)) looks = 0;
  kill(process, SIGSTOP);
  return process;
}

static steps_t* map(const char* file) {
  const int fd = open(file, O_RDWR);
  void* at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(steps_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) exit(4);
  close(fd);
  return at;
}

/* 1: this rank has the duplicate. */
static int duplicate(MPI_Comm comm, int rank, MPI_Comm* copy) {
  pid_t three = 0;
  if (rank == 3) atomic_store(&steps->of_three, getpid());
  if (rank == 2) three = stop_three();
  const int has = MPI_Comm_dup(comm, copy) == MPI_SUCCESS;
  if (rank == 2) kill(three, SIGKILL);
  return has;
}

static MPI_Comm make(const char* how, MPI_Comm of, int rank) {
  MPI_Comm made = MPI_COMM_NULL;
  if (strcmp(how, "split") == 0) MPI_Comm_split(of, 0, rank, &made);
  else if (strcmp(how, "self") == 0) MPI_Comm_split(of, rank, 0, &made);
  else if (strcmp(how, "shrink") == 0) MPIX_Comm_shrink(of, &made);
  else if (strcmp(how, "idup") == 0) {
    MPI_Request request;
    MPI_Comm_idup(of, &made, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else if (strcmp(how, "group") == 0) {
    MPI_Group group;
    MPI_Comm_group(of, &group);
    MPI_Comm_create_group(of, group, 7, &made);
    MPI_Group_free(&group);
  } else MPI_Comm_dup(of, &made);
  MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  return made;
}

/* What 1 gets in the new communicators. */
static int right(const char* how, MPI_Comm rest) {
  int wrong = 0;
  for (int round = 0; round < 3; ++round) {
    int rank, size, sent, got = -1;
    MPI_Request request;
    MPI_Comm made = make(how, rest, 0);
    MPI_Comm_rank(made, &rank);
    MPI_Comm_size(made, &size);
    sent = 100 + 10 * round + rank;
    MPI_Isend(&sent, 1, MPI_INT, size == 1 ? 0 : 1, 5, made, &request);
    if (rank == 1 || size == 1)
      for (int from = 0; from < size; ++from) {
        MPI_Recv(&got, 1, MPI_INT, from, 5, made, MPI_STATUS_IGNORE);
        wrong += got != 100 + 10 * round + from;
      }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&made);
  }
  return !wrong;
}

int main(int argc, char** argv) {
  int rank, has, flag, some, all[4], stale = 7, ok;
  MPI_Comm comm, copy = MPI_COMM_NULL, rest;
  MPI_Init(&argc, &argv);
  steps = map(argv[1]);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  has = duplicate(comm, rank, &copy);
  if (has && rank == 0) {
    MPI_Send(&stale, 1, MPI_INT, 1, 5, copy);
    MPI_Send(&stale, 1, MPI_INT, 1, 5, copy);
  }
  flag = has;
  MPIX_Comm_agree(comm, &flag);
  MPIX_Comm_revoke(comm);
  if (has) MPI_Comm_free(&copy);
  MPIX_Comm_shrink(comm, &rest);
  MPI_Comm_set_errhandler(rest, MPI_ERRORS_RETURN);
  MPI_Allgather(&has, 1, MPI_INT, all, 1, MPI_INT, rest);
  some = all[0] && !all[1] && all[2];
  ok = right(argv[2], rest);
  flag = ok;
  MPIX_Comm_agree(rest, &flag);
  if (rank == 0) printf("%s, %s\n", some ? "made by some" : "not as it was meant", flag ? "right" : "wrong");
  fflush(stdout);
  MPI_Comm_free(&rest);
  MPI_Comm_free(&comm);
  return MPI_Finalize();
}
