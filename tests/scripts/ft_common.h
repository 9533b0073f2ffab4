/* For programs of ft_*.sh: what is found wrong is counted, and the living say so at the end. */
#include <mpi.h>
#include <stdio.h>

enum { TIMES = 50 };
static int rank, size, wrong;

static int class_of(int code) {
  int class;
  MPI_Error_class(code, &class);
  return class;
}

static void expect(int is_so, const char* what, int found) {
  if (is_so) return;
  printf("rank %d: %s: %d\n", rank, what, found);
  fflush(stdout);
  wrong++;
}

/* A thread: shrinks a communicator again and again, and sums over those that are left, or are so on the other side. */
static void* shrink(void* comm) {
  for (int i = 0; i < TIMES; i++) {
    MPI_Comm living = MPI_COMM_NULL;
    int code = MPIX_Comm_shrink(*(MPI_Comm*)comm, &living), one = 1, sum = 0, members = 0, is_inter = 0;
    expect(code == MPI_SUCCESS, "MPIX_Comm_shrink", class_of(code));
    if (code) break;
    MPI_Comm_test_inter(living, &is_inter);
    if (is_inter) MPI_Comm_remote_size(living, &members);
    else MPI_Comm_size(living, &members);
    code = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, living);
    expect(code == MPI_SUCCESS && sum == members, "the sum over the living", sum);
    MPI_Comm_free(&living);
  }
  return NULL;
}

/* The first of the living says how many are left, and what all of them have found wrong. */
static void say_what_is_left(const char* how) {
  MPI_Comm living;
  int left = 0, place = 0;
  MPIX_Comm_shrink(MPI_COMM_WORLD, &living);
  MPI_Comm_size(living, &left);
  MPI_Comm_rank(living, &place);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, living);
  if (place == 0) printf("%s: wrong %d, %d left\n", how, wrong, left);
  fflush(stdout);
  MPI_Comm_free(&living);
}
