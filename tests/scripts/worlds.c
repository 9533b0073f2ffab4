/* Processes that did not begin together. worlds spawn N: merged with N spawned ones. worlds accept FILE, worlds connect
 * FILE: two jobs that are merged. Who MPI_Comm_split_type puts together is on one host and can share memory. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int wrong;

static void share(MPI_Comm all) {
  enum { kName = 64 };
  char own[kName] = {0}, *names;
  int rank, size, unit, *mine, *next;
  MPI_Aint bytes;
  MPI_Comm node;
  MPI_Win window;
  MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &rank);
  MPI_Comm_size(node, &size);
  gethostname(own, kName - 1);
  names = malloc((size_t)size * kName);
  MPI_Allgather(own, kName, MPI_CHAR, names, kName, MPI_CHAR, node);
  for (int i = 0; i < size; i++)
    if (strcmp(own, names + i * kName) != 0) wrong = printf("a node of %s and %s\n", own, names + i * kName);
  free(names);
  if (!wrong) {
    MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, node, &mine, &window);
    MPI_Win_fence(0, window);
    *mine = 100 + rank;
    MPI_Win_fence(0, window);
    MPI_Win_shared_query(window, (rank + 1) % size, &bytes, &unit, &next);
    if (*next != 100 + (rank + 1) % size) wrong = printf("%d of the next one\n", *next);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
  }
  MPI_Comm_free(&node);
}

static MPI_Comm other_job(int accepts, const char* file) {
  char port[MPI_MAX_PORT_NAME] = {0}, made[4096];
  int rank;
  MPI_Comm other;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0 && accepts) {
    MPI_Open_port(MPI_INFO_NULL, port);
    snprintf(made, sizeof made, "%s.new", file);
    FILE* out = fopen(made, "w");
    fputs(port, out);
    fclose(out);
    rename(made, file);
  } else if (rank == 0) {
    while (access(file, R_OK) != 0) usleep(10000);
    FILE* in = fopen(file, "r");
    if (!fgets(port, sizeof port, in)) abort();
    fclose(in);
  }
  if (accepts) MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
  else MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
  return other;
}

int main(int argc, char** argv) {
  int any = 0, rank;
  MPI_Comm parent, other, all;
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&parent);
  other = parent;
  if (parent == MPI_COMM_NULL && strcmp(argv[1], "spawn") == 0)
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, atoi(argv[2]), MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other,
                   MPI_ERRCODES_IGNORE);
  else if (parent == MPI_COMM_NULL) other = other_job(strcmp(argv[1], "accept") == 0, argv[2]);
  MPI_Intercomm_merge(other, parent != MPI_COMM_NULL || strcmp(argv[1], "connect") == 0, &all);
  share(all);
  MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, all);
  MPI_Comm_rank(all, &rank);
  if (rank == 0) puts(any ? "worlds: wrong" : "worlds: right");
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&other);
  MPI_Finalize();
  return any != 0;
}
