/* What MPI does beyond messages, over several hosts, each checked:
 * mixed nodes | window | io FILE | spawn | spawns COUNT | commands HOST HOST | within | accept FILE | connect FILE */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kPlace = 7 }; /* tag */
static int rank, size;

/* Everybody on both sides of an intercommunicator: a sum, and a ring of long messages. */
static int talk(MPI_Comm inter) {
  static char out[200000], in[200000];
  MPI_Comm all;
  int own, number, sum, wrong;
  MPI_Intercomm_merge(inter, 0, &all);
  MPI_Comm_rank(all, &own);
  MPI_Comm_size(all, &number);
  MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, all);
  wrong = sum != number * (number - 1) / 2;
  const int left = (own + number - 1) % number;
  memset(out, own, sizeof out);
  MPI_Sendrecv(out, sizeof out, MPI_CHAR, (own + 1) % number, 5, in, sizeof in, MPI_CHAR, left, 5, all,
               MPI_STATUS_IGNORE);
  for (size_t i = 0; i < sizeof in; i++) wrong += in[i] != (char)left;
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&inter);
  return wrong;
}

static int nodes(void) {
  double own[5000], sum[5000];
  int wrong = 0;
  for (int turn = 0; turn < 20; turn++) {
    const int length = turn % 2 ? 5000 : 3, root = turn % size;
    for (int i = 0; i < length; i++) own[i] = rank + i + turn;
    MPI_Allreduce(own, sum, length, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < length; i++) wrong += sum[i] != size * (double)(i + turn) + size * (size - 1) / 2.0;
    MPI_Bcast(own, length, MPI_DOUBLE, root, MPI_COMM_WORLD);
    for (int i = 0; i < length; i++) wrong += own[i] != root + i + turn;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  return wrong;
}

/* Shared memory within a host. */
static int shared_window(void) {
  MPI_Comm node;
  MPI_Win window;
  MPI_Aint bytes;
  int *base, *other, own, number, unit, expected;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &own);
  MPI_Comm_size(node, &number);
  MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, node, &base, &window);
  MPI_Win_fence(0, window);
  *base = rank;
  MPI_Win_fence(0, window);
  MPI_Win_shared_query(window, (own + 1) % number, &bytes, &unit, &other);
  MPI_Sendrecv(&rank, 1, MPI_INT, (own + number - 1) % number, 1, &expected, 1, MPI_INT, (own + 1) % number, 1, node,
               MPI_STATUS_IGNORE);
  const int wrong = *other != expected;
  MPI_Win_free(&window);
  MPI_Comm_free(&node);
  return wrong;
}

/* Puts to the next rank, and a counter at rank 0. */
static int window(void) {
  enum { kLength = 1000 };
  MPI_Win window;
  int *base, own[kLength], wrong = shared_window();
  MPI_Win_allocate((kLength + 1) * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
  for (int i = 0; i < kLength; i++) own[i] = rank + i;
  base[kLength] = 0;
  MPI_Win_fence(0, window);
  MPI_Put(own, kLength, MPI_INT, (rank + 1) % size, 0, kLength, MPI_INT, window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < kLength; i++) wrong += base[i] != (rank + size - 1) % size + i;
  const int one = 1;
  int before;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
  MPI_Fetch_and_op(&one, &before, MPI_INT, 0, kLength, MPI_SUM, window);
  MPI_Win_unlock(0, window);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
  MPI_Get(&before, 1, MPI_INT, 0, kLength, 1, MPI_INT, window);
  MPI_Win_unlock(0, window);
  wrong += before != size;
  MPI_Win_free(&window);
  return wrong;
}

static int io(const char* name) {
  MPI_File file;
  int block[1000], wrong = 0;
  const int next = (rank + 1) % size;
  MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  for (int i = 0; i < 1000; i++) block[i] = rank * 1000 + i;
  MPI_File_write_at_all(file, rank * (MPI_Offset)sizeof block, block, 1000, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_sync(file);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_sync(file);
  MPI_File_read_at_all(file, next * (MPI_Offset)sizeof block, block, 1000, MPI_INT, MPI_STATUS_IGNORE);
  for (int i = 0; i < 1000; i++) wrong += block[i] != next * 1000 + i;
  MPI_File_close(&file);
  return wrong;
}

static int spawn(char* program) {
  MPI_Comm children;
  MPI_Comm_spawn(program, MPI_ARGV_NULL, 4, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
  return talk(children);
}

/* One after the other has ended, on all hosts */
static int spawns(char* program, int count) {
  int wrong = 0;
  for (int i = 0; i < count; i++) wrong += spawn(program);
  return wrong;
}

/* One process of the first command on one host, three of the second on another, two of the third anywhere. */
static int commands(char* program, const char* const* hosts) {
  char* programs[] = {program, program, program};
  const int counts[] = {1, 3, 2};
  MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL, MPI_INFO_NULL};
  MPI_Comm children;
  int wrong = 0;
  for (int i = 0; i < 2; i++) {
    MPI_Info_create(&infos[i]);
    MPI_Info_set(infos[i], "host", hosts[i]);
  }
  MPI_Comm_spawn_multiple(3, programs, MPI_ARGVS_NULL, counts, infos, 0, MPI_COMM_WORLD, &children,
                          MPI_ERRCODES_IGNORE);
  for (int child = 0; rank == 0 && child < 4; child++) {
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    MPI_Recv(name, sizeof name, MPI_CHAR, child, kPlace, children, MPI_STATUS_IGNORE);
    wrong += strcmp(name, hosts[child > 0]) != 0;
  }
  for (int i = 0; i < 2; i++) MPI_Info_free(&infos[i]);
  return wrong + talk(children);
}

/* A process of the first two commands says where it is. */
static void say_place(MPI_Comm parent) {
  char name[MPI_MAX_PROCESSOR_NAME] = "";
  int length;
  MPI_Get_processor_name(name, &length);
  if (size == 6 && rank < 4) MPI_Send(name, sizeof name, MPI_CHAR, 0, kPlace, parent);
}

/* Two ranks of one job, the last of which accepts, as MPI_Comm_join makes them do. */
static int within(void) {
  char port[MPI_MAX_PORT_NAME] = "";
  const int last = size - 1;
  int mine = rank, other = -1;
  MPI_Comm between;
  if (rank == last) MPI_Open_port(MPI_INFO_NULL, port);
  MPI_Bcast(port, sizeof port, MPI_CHAR, last, MPI_COMM_WORLD);
  if (rank != 0 && rank != last) return 0;
  if (rank == last) MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &between);
  else MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &between);
  MPI_Sendrecv(&mine, 1, MPI_INT, 0, 0, &other, 1, MPI_INT, 0, 0, between, MPI_STATUS_IGNORE);
  MPI_Comm_disconnect(&between);
  return other != last - rank;
}

/* The name of the port goes by a file, which appears when it is whole. */
static int accept_job(const char* file) {
  char port[MPI_MAX_PORT_NAME] = "", draft[4096];
  MPI_Comm other;
  if (rank == 0) {
    MPI_Open_port(MPI_INFO_NULL, port);
    snprintf(draft, sizeof draft, "%s.draft", file);
    FILE* out = fopen(draft, "w");
    fputs(port, out);
    fclose(out);
    rename(draft, file);
  }
  MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
  return talk(other);
}

static int connect_job(const char* file) {
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm other;
  if (rank == 0) {
    FILE* in = NULL;
    while ((in = fopen(file, "r")) == NULL) usleep(1000);
    if (fgets(port, sizeof port, in) == NULL) return 1;
    fclose(in);
  }
  MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
  return talk(other);
}

int main(int argc, char** argv) {
  MPI_Comm parent;
  int wrong = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_get_parent(&parent);
  const char* what = parent != MPI_COMM_NULL ? "child" : argc > 1 ? argv[1] : "nodes";
  const char* file = argc > 2 ? argv[2] : "";
  if (parent != MPI_COMM_NULL) say_place(parent), wrong = talk(parent);
  else if (strcmp(what, "nodes") == 0) wrong = nodes();
  else if (strcmp(what, "window") == 0) wrong = window();
  else if (strcmp(what, "io") == 0) wrong = io(file);
  else if (strcmp(what, "spawn") == 0) wrong = spawn(argv[0]);
  else if (strcmp(what, "spawns") == 0) wrong = spawns(argv[0], atoi(file));
  else if (strcmp(what, "commands") == 0 && argc > 3) wrong = commands(argv[0], (const char* const*)argv + 2);
  else if (strcmp(what, "within") == 0) wrong = within();
  else if (strcmp(what, "accept") == 0) wrong = accept_job(file);
  else if (strcmp(what, "connect") == 0) wrong = connect_job(file);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && parent == MPI_COMM_NULL) printf("%s wrong %d\n", what, wrong);
  MPI_Finalize();
  return wrong != 0;
}
