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
 * sends to 1 in it. Then communicators are made again, in which everyone must get what is sent: ft_stale FILE HOW. HOW
 * is dup, split, idup, group, self or shrink, of those whom MPIX_Comm_shrink has left; or other: by rank 4 and rank 1
 * alone, of which 4 is the first and has taken part in as many. */

/* The process of rank 3, which comes to the call; the ranks share it. */
static atomic_int* three;

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
  while (!(process = atomic_load(three))) sched_yield();
  for (int looks = 0; looks < 200; ++looks)
    if (!sleeps(process)) looks = 0;
  kill(process, SIGSTOP);
  return process;
}

static atomic_int* map(const char* file) {
  const int fd = open(file, O_RDWR);
  void* at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(atomic_int), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) exit(4);
  close(fd);
  return at;
}

/* 1: this rank has the duplicate. */
static int duplicate(MPI_Comm comm, int rank, MPI_Comm* copy) {
  pid_t stopped = 0;
  if (rank == 3) atomic_store(three, getpid());
  if (rank == 2) stopped = stop_three();
  const int has = MPI_Comm_dup(comm, copy) == MPI_SUCCESS;
  if (rank == 2) kill(stopped, SIGKILL);
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

/* The first communicator that rank 4 makes, with 1, has the id of the duplicate. */
static int right_with_another(int rank) {
  const int ranks[2] = {4, 1};
  int sent = 100, got = 100;
  MPI_Group world, two;
  MPI_Comm made;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 2, ranks, &two);
  if (rank == 1 || rank == 4) {
    MPI_Comm_create_group(MPI_COMM_WORLD, two, 7, &made);
    if (rank == 4) MPI_Send(&sent, 1, MPI_INT, 1, 5, made);
    else MPI_Recv(&got, 1, MPI_INT, 0, 5, made, MPI_STATUS_IGNORE);
    MPI_Comm_free(&made);
  }
  MPI_Group_free(&two);
  MPI_Group_free(&world);
  return got == 100;
}

int main(int argc, char** argv) {
  int rank, has, flag, some, all[5], stale = 7, ok;
  MPI_Comm comm, copy = MPI_COMM_NULL, rest;
  const int other = argc > 2 && strcmp(argv[2], "other") == 0;
  MPI_Init(&argc, &argv);
  three = map(argv[1]);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_split(MPI_COMM_WORLD, rank == 4, rank, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  has = rank == 4 || duplicate(comm, rank, &copy);
  if (has && rank == 0) {
    MPI_Send(&stale, 1, MPI_INT, 1, 5, copy);
    MPI_Send(&stale, 1, MPI_INT, 1, 5, copy);
  }
  flag = has;
  MPIX_Comm_agree(comm, &flag);
  if (has && rank != 4) MPI_Comm_free(&copy);
  ok = !other || right_with_another(rank);
  MPIX_Comm_revoke(comm);
  MPIX_Comm_shrink(MPI_COMM_WORLD, &rest);
  MPI_Comm_set_errhandler(rest, MPI_ERRORS_RETURN);
  MPI_Allgather(&has, 1, MPI_INT, all, 1, MPI_INT, rest);
  some = all[0] && !all[1] && all[2];
  ok = ok && (other || right(argv[2], rest));
  flag = ok;
  MPIX_Comm_agree(rest, &flag);
  if (rank == 0) printf("%s, %s\n", some ? "made by some" : "not as it was meant", flag ? "right" : "wrong");
  fflush(stdout);
  MPI_Comm_free(&rest);
  MPI_Comm_free(&comm);
  return MPI_Finalize();
}
