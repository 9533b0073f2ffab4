// One allocation fails in one process of a group, another one each time, while the group makes a communicator. Whoever
// has not made it gets an error, and so do the others in the communicator that they have made: nobody waits for ever.
//
//   no_memory_group WAY RANK [FIRST]     with --ft
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "no_memory.h"

static int rank, size;

static void returns(MPI_Comm comm) {
  if (comm != MPI_COMM_NULL) MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
}

static void need(int code, const char* call) {
  char text[MPI_MAX_ERROR_STRING];
  int length;
  if (code == MPI_SUCCESS) return;
  MPI_Error_string(code, text, &length);
  fprintf(stderr, "rank %d: %s: %s\n", rank, call, text);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

// ---- the ways ----------------------------------------------------------------------------------------------------

static int duplicate(MPI_Comm from, MPI_Comm* made) { return MPI_Comm_dup(from, made); }
static int duplicate_later(MPI_Comm from, MPI_Comm* made) {
  MPI_Request request;
  int code = MPI_Comm_idup(from, made, &request);
  return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}
static int split(MPI_Comm from, MPI_Comm* made) { return MPI_Comm_split(from, 0, -rank, made); }
static int halves(MPI_Comm from, MPI_Comm* made) { return MPI_Comm_split(from, rank % 2, rank, made); }
static int split_type(MPI_Comm from, MPI_Comm* made) {
  return MPI_Comm_split_type(from, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, made);
}
static MPI_Group all = MPI_GROUP_NULL;
static int create(MPI_Comm from, MPI_Comm* made) { return MPI_Comm_create(from, all, made); }
static int create_group(MPI_Comm from, MPI_Comm* made) { return MPI_Comm_create_group(from, all, 7, made); }
static int shrink(MPI_Comm from, MPI_Comm* made) { return MPIX_Comm_shrink(from, made); }
static int cart(MPI_Comm from, MPI_Comm* made) {
  int dims = size, periodic = 1;
  return MPI_Cart_create(from, 1, &dims, &periodic, 0, made);
}
static int graph(MPI_Comm from, MPI_Comm* made) {
  int neighbors[2] = {(rank + 1) % size, (rank + size - 1) % size};
  return MPI_Dist_graph_create_adjacent(from, 1, neighbors + 1, MPI_UNWEIGHTED, 1, neighbors, MPI_UNWEIGHTED,
                                        MPI_INFO_NULL, 0, made);
}
static int dist_graph(MPI_Comm from, MPI_Comm* made) {
  int degree = 1, to = (rank + 1) % size;
  return MPI_Dist_graph_create(from, 1, &rank, &degree, &to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, made);
}
static MPI_Comm half = MPI_COMM_NULL, between = MPI_COMM_NULL;
static int inter(MPI_Comm from, MPI_Comm* made) { return MPI_Intercomm_create(half, 0, from, 1 - rank % 2, 5, made); }
static int merge(MPI_Comm from, MPI_Comm* made) {
  (void)from;
  return MPI_Intercomm_merge(between, rank % 2, made);
}
static int dup_inter(MPI_Comm from, MPI_Comm* made) {
  (void)from;
  return MPI_Comm_dup(between, made);
}
static int idup_inter(MPI_Comm from, MPI_Comm* made) {
  (void)from;
  return duplicate_later(between, made);
}

static const struct way {
  const char* name;
  int (*make)(MPI_Comm from, MPI_Comm* made);
  int needs;  // 1: the half, 2: the communicator between the halves too
} ways[] = {{"dup", duplicate, 0},        {"split", split, 0},
            {"halves", halves, 0},        {"split_type", split_type, 0},
            {"create", create, 0},        {"create_group", create_group, 0},
            {"shrink", shrink, 0},        {"cart", cart, 0},
            {"graph", graph, 0},          {"dist_graph", dist_graph, 0},
            {"inter", inter, 1},          {"merge", merge, 2},
            {"dup_inter", dup_inter, 2},  {"idup", duplicate_later, 0},
            {"idup_inter", idup_inter, 2}};

// ---- one round ---------------------------------------------------------------------------------------------------

static void prepare(const struct way* way, MPI_Comm parent) {
  need(MPI_Comm_group(parent, &all), "MPI_Comm_group");
  if (way->needs >= 1) need(MPI_Comm_split(parent, rank % 2, rank, &half), "MPI_Comm_split");
  returns(half);
  if (way->needs >= 2) need(MPI_Intercomm_create(half, 0, parent, 1 - rank % 2, 4, &between), "MPI_Intercomm_create");
  returns(between);
}

static void clean_up(MPI_Comm* made, MPI_Comm* parent) {
  MPI_Group_free(&all);
  if (*made != MPI_COMM_NULL) MPI_Comm_free(made);
  if (between != MPI_COMM_NULL) MPI_Comm_free(&between);
  if (half != MPI_COMM_NULL) MPI_Comm_free(&half);
  MPI_Comm_free(parent);
}

// A collective and a message round, in which each waits for another one. 1: both have gone well.
static int works(MPI_Comm comm) {
  int one = 1, sum = 0, is_inter, me, members, got = -1;
  MPI_Comm_test_inter(comm, &is_inter);
  MPI_Comm_rank(comm, &me);
  if (is_inter) MPI_Comm_remote_size(comm, &members);
  else MPI_Comm_size(comm, &members);
  if (MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm) != MPI_SUCCESS || sum != members) {
    MPIX_Comm_revoke(comm);  // it may have ended well for others, who go on to the messages
    return 0;
  }
  return MPI_Sendrecv(&me, 1, MPI_INT, is_inter ? me : (me + 1) % members, 3, &got, 1, MPI_INT,
                      is_inter ? me : (me + members - 1) % members, 3, comm, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

// Those that have it go on without the others.
static void go_on(MPI_Comm made) {
  MPI_Comm rest = MPI_COMM_NULL;
  int flag = 1, is_inter;
  (void)MPIX_Comm_agree(made, &flag);
  MPI_Comm_test_inter(made, &is_inter);
  if (is_inter) return;
  need(MPIX_Comm_shrink(made, &rest), "MPIX_Comm_shrink of what some have");
  returns(rest);
  if (!works(rest)) need(MPI_ERR_OTHER, "what is left of it");
  MPI_Comm_free(&rest);
}

enum { ALL_WORK = 1, ALL_DONE = 2, NONE_TOLD = 4 };

static int try_it(const struct way* way, int who, int at) {
  MPI_Comm parent, made = MPI_COMM_NULL;
  int code, flag, is_done, has_worked;
  need(MPIX_Comm_shrink(MPI_COMM_WORLD, &parent), "MPIX_Comm_shrink");
  returns(parent);
  prepare(way, parent);
  until_it_fails = rank == who ? at : 0;
  code = way->make(parent, &made);
  is_done = rank != who || until_it_fails != 0;  // it needs fewer
  until_it_fails = 0;
  if (code != MPI_SUCCESS) made = MPI_COMM_NULL;
  returns(made);
  has_worked = made != MPI_COMM_NULL && works(made);
  flag = (has_worked ? ALL_WORK : 0) | (is_done ? ALL_DONE : 0) | (code == MPI_SUCCESS ? NONE_TOLD : 0);
  need(MPIX_Comm_agree(MPI_COMM_WORLD, &flag), "MPIX_Comm_agree");
  if ((flag & NONE_TOLD) && !(flag & ALL_WORK) && !has_worked) need(MPI_ERR_OTHER, "a communicator that all have made");
  if (!(flag & NONE_TOLD) && made != MPI_COMM_NULL) go_on(made);
  clean_up(&made, &parent);
  return flag;
}

// All connections, both ways: a process without memory for one of these ends, and says so.
static void connect_all(void) {
  int shift, got;
  for (shift = 0; shift < size; ++shift)
    need(MPI_Sendrecv(&rank, 1, MPI_INT, (rank + shift) % size, 1, &got, 1, MPI_INT, (rank + size - shift) % size, 1,
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE),
         "MPI_Sendrecv");
}

int main(int argc, char** argv) {
  const int who = argc > 2 ? atoi(argv[2]) : 0;
  int at = argc > 3 ? atoi(argv[3]) : 1, flag = 0, told = 0;
  const struct way* way = ways;
  MPI_Init(&argc, &argv);
  returns(MPI_COMM_WORLD);
  returns(MPI_COMM_SELF);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  connect_all();
  while (way < ways + sizeof ways / sizeof *ways && argc > 1 && strcmp(way->name, argv[1]) != 0) ++way;
  if (way == ways + sizeof ways / sizeof *ways) MPI_Abort(MPI_COMM_WORLD, 2);
  for (; !(flag & ALL_DONE); ++at) {
    if (getenv("NO_MEMORY_SAY") && rank == who) fprintf(stderr, "%s %d at %d\n", way->name, who, at);
    flag = try_it(way, who, at);
    told += !(flag & NONE_TOLD);
  }
  if (rank == 0) printf("%s: %d allocations of rank %d, %d failures told\n", way->name, at - 1, who, told);
  return MPI_Finalize();
}
