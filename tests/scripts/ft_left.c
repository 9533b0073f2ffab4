/* One rank dies in a collective, nobody revokes anything, and all others return: usage: OPERATION SEED. The seed
 * chooses who dies, when, how, and how many bytes each rank has. Each collective is called until it fails; then the
 * living acknowledge, agree, shrink and reduce. A failed call has the class MPIX_ERR_PROC_FAILED, also a later one,
 * which fails at once. */
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#define LONGEST 400000
#define MOST 16
#define MANY 80
static int rank, size, bytes, doomed, wrong;
static MPI_Comm world, grid, half, between = MPI_COMM_NULL;
static MPI_Op op;
static char *from, *to;
static int counts[MOST], equal[MOST], places[MOST];

static void complain(const char* what, int value) {
  if (wrong++ < 5) printf("rank %d: %s (%d)\n", rank, what, value);
}
static void combine(void* in, void* out, int* n, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *n; i++) ((char*)out)[i] ^= ((char*)in)[i];
}
static int wait_for(int error, MPI_Request* request) { return error ? error : MPI_Wait(request, MPI_STATUS_IGNORE); }
static int split(void) {
  MPI_Comm made = MPI_COMM_NULL;
  int error = MPI_Comm_split(world, rank % 2, rank, &made);
  if (!error && made != MPI_COMM_NULL) MPI_Comm_free(&made);
  return error;
}
static int duplicate(void) {
  MPI_Comm made = MPI_COMM_NULL;
  int error = MPI_Comm_dup(world, &made);
  if (!error && made != MPI_COMM_NULL) MPI_Comm_free(&made);
  return error;
}
static int idup(void) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Request request;
  int error = wait_for(MPI_Comm_idup(world, &made, &request), &request);
  if (!error && made != MPI_COMM_NULL) MPI_Comm_free(&made);
  return error;
}
static int create(void) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Group group;
  int error;
  MPI_Comm_group(world, &group);
  error = MPI_Comm_create(world, group, &made);
  MPI_Group_free(&group);
  if (!error && made != MPI_COMM_NULL) MPI_Comm_free(&made);
  return error;
}
static int create_group(void) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Group group;
  int error;
  MPI_Comm_group(world, &group);
  error = MPI_Comm_create_group(world, group, 8, &made);
  MPI_Group_free(&group);
  if (!error && made != MPI_COMM_NULL) MPI_Comm_free(&made);
  return error;
}
/* Communicators that are used at once: others may not have been able to make theirs. */
static int use(int error, MPI_Comm* made) {
  if (error || *made == MPI_COMM_NULL) return error;
  MPI_Comm_set_errhandler(*made, MPI_ERRORS_RETURN);
  error = MPI_Barrier(*made);
  MPI_Comm_free(made);
  return error;
}
static int used_dup(void) {
  MPI_Comm made = MPI_COMM_NULL;
  return use(MPI_Comm_dup(world, &made), &made);
}
static int used_group(void) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Group group;
  MPI_Comm_group(world, &group);
  int error = MPI_Comm_create_group(world, group, 8, &made);
  MPI_Group_free(&group);
  return use(error, &made);
}
/* There are so many communicators that the agreement on an id takes more than one turn. */
static int create_late(void) {
  static MPI_Comm held[MANY];
  for (int i = 0; i < MANY && !held[i]; i++)
    if (MPI_Comm_dup(MPI_COMM_SELF, &held[i])) complain("no communicator of its own", i);
  return create_group();
}
static int barrier(void) { return MPI_Barrier(world); }
static int bcast(void) { return MPI_Bcast(from, bytes, MPI_CHAR, 0, world); }
static int reduce(void) { return MPI_Reduce(from, to, bytes, MPI_CHAR, op, size - 1, world); }
static int allreduce(void) { return MPI_Allreduce(from, to, bytes, MPI_CHAR, op, world); }
static int scan(void) { return MPI_Scan(from, to, bytes, MPI_CHAR, op, world); }
static int gather(void) { return MPI_Gather(from, bytes, MPI_CHAR, to, bytes, MPI_CHAR, 0, world); }
static int allgatherv(void) {
  return MPI_Allgatherv(from, counts[rank], MPI_CHAR, to, counts, places, MPI_CHAR, world);
}
static int alltoall(void) { return MPI_Alltoall(from, bytes, MPI_CHAR, to, bytes, MPI_CHAR, world); }
static int alltoallv(void) { return MPI_Alltoallv(from, counts, places, MPI_CHAR, to, equal, places, MPI_CHAR, world); }
static int reduce_scatter(void) { return MPI_Reduce_scatter_block(from, to, bytes, MPI_CHAR, op, world); }
static int neighbor(void) { return MPI_Neighbor_alltoall(from, bytes, MPI_CHAR, to, bytes, MPI_CHAR, grid); }
static int ineighbor(void) {
  MPI_Request request;
  return wait_for(MPI_Ineighbor_alltoall(from, bytes, MPI_CHAR, to, bytes, MPI_CHAR, grid, &request), &request);
}
static int ibarrier(void) {
  MPI_Request request;
  return wait_for(MPI_Ibarrier(world, &request), &request);
}
static int ibcast(void) {
  MPI_Request request;
  return wait_for(MPI_Ibcast(from, bytes, MPI_CHAR, 0, world, &request), &request);
}
static int iallreduce(void) {
  MPI_Request request;
  return wait_for(MPI_Iallreduce(from, to, bytes, MPI_CHAR, op, world, &request), &request);
}
static int ialltoallv(void) {
  MPI_Request request;
  return wait_for(MPI_Ialltoallv(from, counts, places, MPI_CHAR, to, equal, places, MPI_CHAR, world, &request),
                  &request);
}
static int persistent(void) {
  static MPI_Request request = MPI_REQUEST_NULL;
  int error = MPI_SUCCESS;
  if (request == MPI_REQUEST_NULL)
    error = MPI_Allreduce_init(from, to, bytes, MPI_CHAR, op, world, MPI_INFO_NULL, &request);
  if (!error) error = MPI_Start(&request);
  return wait_for(error, &request);
}
static int window(void) {
  static char memory[64];
  MPI_Win made;
  int error = MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, world, &made), freed;
  if (error) return error;
  MPI_Win_set_errhandler(made, MPI_ERRORS_RETURN);
  error = MPI_Win_fence(0, made);
  freed = MPI_Win_free(&made);
  return error ? error : freed;
}
static int file(void) {
  MPI_File made;
  char name[100];
  snprintf(name, sizeof name, "%s.file", getenv("FT_LEFT_FILE"));
  int error = MPI_File_open(world, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &made), closed;
  if (error) return error;
  error = MPI_File_write_at_all(made, rank * (MPI_Offset)bytes, from, bytes, MPI_CHAR, MPI_STATUS_IGNORE);
  closed = MPI_File_close(&made);
  return error ? error : closed;
}
/* Collectives of both groups. */
static int inter(void) {
  if (between == MPI_COMM_NULL) return MPI_Barrier(world);
  return MPI_Allreduce(from, to, bytes, MPI_CHAR, op, between);
}
static int intermerge(void) {
  MPI_Comm made = MPI_COMM_NULL;
  if (between == MPI_COMM_NULL) return MPI_Barrier(world);
  int error = MPI_Intercomm_merge(between, 0, &made);
  if (!error && made != MPI_COMM_NULL) MPI_Comm_free(&made);
  return error;
}
static int intercreate(void) {
  MPI_Comm made = MPI_COMM_NULL;
  if (between == MPI_COMM_NULL) return MPI_Barrier(world);
  int error = MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank < size / 2 ? size / 2 : 0, 6, &made);
  if (!error && made != MPI_COMM_NULL) MPI_Comm_free(&made);
  return error;
}
#define CALL(name) \
  { #name, name }
static const struct {
  const char* name;
  int (*call)(void);
} calls[] = {CALL(split),          {"dup", duplicate}, CALL(idup),        CALL(create),   CALL(create_group),
             CALL(create_late),    CALL(barrier),      CALL(bcast),       CALL(reduce),   CALL(allreduce),
             CALL(scan),           CALL(gather),       CALL(allgatherv),  CALL(alltoall), CALL(alltoallv),
             CALL(reduce_scatter), CALL(neighbor),     CALL(ineighbor),   CALL(ibarrier), CALL(ibcast),
             CALL(iallreduce),     CALL(ialltoallv),   CALL(persistent),  CALL(window),   CALL(file),
             CALL(inter),          CALL(intermerge),   CALL(intercreate), CALL(used_dup), CALL(used_group)};
#define CALLS ((int)(sizeof calls / sizeof *calls))

static void die(int signal) {
  (void)signal;
  kill(getpid(), SIGKILL);
}

static void prepare(unsigned seed) {
  int dims[1] = {size}, round[1] = {1};
  bytes = seed % 3 == 0 ? 8 : seed % 3 == 1 ? 3000 : LONGEST;
  from = calloc(LONGEST, (size_t)MOST);
  to = calloc(LONGEST, (size_t)MOST);
  for (int i = 0; i < size; i++) counts[i] = bytes - i, places[i] = i * bytes;
  counts[size - 1] = seed % 2 ? 0 : counts[size - 1];
  MPI_Comm_dup(MPI_COMM_WORLD, &world);
  MPI_Cart_create(world, 1, dims, round, 0, &grid);
  MPI_Op_create(combine, 1, &op);
  if (size >= 3) {
    MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank < size / 2 ? size / 2 : 0, 5, &between);
    MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(between, MPI_ERRORS_RETURN);
  }
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(grid, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int i = 0; i < size; i++) equal[i] = counts[rank];
  signal(SIGALRM, die);
  MPI_Barrier(MPI_COMM_WORLD);
}
/* In the middle of a call, by a timer, or between two calls. */
static void perhaps_die(int turn, int last, unsigned seed) {
  struct itimerspec soon = {.it_value = {0, 1000 + (long)(seed * 7919 % 300) * 1000}};
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
  timer_t timer;
  if (rank != doomed || turn < last) return;
  if (seed / 4 % 3 == 0) _exit(3);
  if (seed / 4 % 3 == 1) raise(SIGKILL);
  timer_create(CLOCK_MONOTONIC, &event, &timer);
  timer_settime(timer, 0, &soon, NULL);
}
static int class_of(int error) {
  int class;
  MPI_Error_class(error, &class);
  return class;
}
static void go_on(const char* name, int (*call)(void)) {
  MPI_Comm living;
  int flag = ~0, living_size, sum = 0, one = 1, error;
  double began;
  began = MPI_Wtime();
  error = call();
  if (class_of(error) != MPIX_ERR_PROC_FAILED) complain("a later call has another class", class_of(error));
  if (MPI_Wtime() - began > 1) complain("a later call fails late, in ms", (int)((MPI_Wtime() - began) * 1000));
  MPIX_Comm_failure_ack(MPI_COMM_WORLD);
  error = MPIX_Comm_agree(MPI_COMM_WORLD, &flag);
  if (error && class_of(error) != MPIX_ERR_PROC_FAILED) complain("agree", class_of(error));
  if (flag != ~0) complain("agreed on", flag);
  error = MPIX_Comm_shrink(MPI_COMM_WORLD, &living);
  if (error) complain("shrink", class_of(error));
  if (error) return;
  MPI_Comm_set_errhandler(living, MPI_ERRORS_RETURN);
  MPI_Comm_size(living, &living_size);
  if (living_size != size - 1) complain("size of the living", living_size);
  error = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, living);
  if (error || sum != size - 1) complain("allreduce of the living", error ? class_of(error) : sum);
  MPI_Comm again, some;
  error = MPI_Comm_dup(living, &again);
  if (error) complain("dup of the living", class_of(error));
  else MPI_Comm_free(&again);
  MPI_Group group;
  MPI_Comm_group(living, &group);
  error = MPI_Comm_create_group(world, group, 8, &some);
  if (error) complain("create_group of the living", class_of(error));
  else MPI_Barrier(some), MPI_Comm_free(&some);
  int next = (rank + 1) % size == doomed ? (rank + 2) % size : (rank + 1) % size, got = -1;
  int before = (rank + size - 1) % size == doomed ? (rank + size - 2) % size : (rank + size - 1) % size;
  error = MPI_Sendrecv(&rank, 1, MPI_INT, next, 9, &got, 1, MPI_INT, before, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (error || got != before) complain("messages of the living", error ? class_of(error) : got);
  MPI_Reduce(&wrong, &sum, 1, MPI_INT, MPI_SUM, 0, living);
  MPI_Comm_rank(living, &living_size);
  if (living_size == 0) printf("%s: %s\n", name, sum ? "wrong" : "right");
}
int main(int argc, char** argv) {
  const char* name = argc > 1 ? argv[1] : "any";
  unsigned seed = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
  int which = (int)(seed % (unsigned)CALLS), error = MPI_SUCCESS;
  double began = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < CALLS; i++)
    if (!strcmp(calls[i].name, name)) which = i;
  doomed = (int)(seed * 2654435761u >> 8) % size;
  if (doomed < 0) doomed += size;
  prepare(seed);
  for (int turn = 0, last = (int)(seed % 5); !error; turn++) {
    perhaps_die(turn, last, seed);
    began = MPI_Wtime();
    error = calls[which].call();
  }
  if (class_of(error) != MPIX_ERR_PROC_FAILED) complain("class", class_of(error));
  if (MPI_Wtime() - began > 2) complain("failed late, in ms", (int)((MPI_Wtime() - began) * 1000));
  go_on(calls[which].name, calls[which].call);
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
