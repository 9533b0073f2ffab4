// One allocation fails, another one each time, while a communicator of one process is made: an error or a communicator
// comes of it, and no crash.
//
//   no_memory_comm dup|split|split_type|create|create_group|shrink|cart [FIRST]
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "no_memory.h"

static int by_group(const char* how, MPI_Comm* made) {
  MPI_Group group;
  int code = MPI_Comm_group(MPI_COMM_WORLD, &group);
  if (code != MPI_SUCCESS) return code;
  code = strcmp(how, "create") == 0 ? MPI_Comm_create(MPI_COMM_WORLD, group, made)
                                    : MPI_Comm_create_group(MPI_COMM_WORLD, group, 7, made);
  MPI_Group_free(&group);
  return code;
}

static int make(const char* how, MPI_Comm* made) {
  int dims = 1, periodic = 1;
  if (strcmp(how, "dup") == 0) return MPI_Comm_dup(MPI_COMM_WORLD, made);
  if (strcmp(how, "split") == 0) return MPI_Comm_split(MPI_COMM_WORLD, 0, 0, made);
  if (strcmp(how, "split_type") == 0)
    return MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, made);
  if (strcmp(how, "shrink") == 0) return MPIX_Comm_shrink(MPI_COMM_WORLD, made);
  if (strcmp(how, "cart") == 0) return MPI_Cart_create(MPI_COMM_WORLD, 1, &dims, &periodic, 0, made);
  return by_group(how, made);
}

static int works(MPI_Comm comm) {
  int one = 1, sum = 0;
  return MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS && sum == 1;
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "dup";
  int at = argc > 2 ? atoi(argv[2]) : 1, told = 0, is_over = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  for (; !is_over; ++at) {
    MPI_Comm made = MPI_COMM_NULL;
    until_it_fails = at;
    const int code = make(how, &made);
    is_over = until_it_fails != 0;  // it needs fewer
    until_it_fails = 0;
    told += code != MPI_SUCCESS;
    if (code == MPI_SUCCESS && !works(made)) return 3;
    if (code == MPI_SUCCESS) MPI_Comm_free(&made);
  }
  printf("%s: %d allocations, %d failures told\n", how, at - 1, told);
  return MPI_Finalize();
}
