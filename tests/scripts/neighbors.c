/* Collectives of neighbours, most of them blocking ones, on random graphs, with several edges from one rank to another
 * and from a rank to itself: every byte that arrives is checked. Other messages are on their way, also to receives from
 * any rank with any tag, and some ranks are late, so that messages come before, during and after the call that takes
 * them. Blocks are from nothing to more than an eager message, some have gaps, and some are too long for their place:
 * neighbors SEED ROUNDS [threads]. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 12, LONGEST = 300000 };
static uint64_t seed;
static int rank, size, calls;

/* The same numbers in all ranks. */
static uint64_t next(void) {
  uint64_t x = seed += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

typedef struct {
  int from, to, bytes;
} edge_t;
static edge_t edges[8 * MOST];
static int n_edges, n_in, n_out, in[8 * MOST], out[8 * MOST]; /* this rank's edges, in its order */
static char* buffers[2];

static unsigned kind; /* 0: persistent, 1: nonblocking, else blocking */
static int outcome;

/* A call of that kind: CALL(allgather, arguments...). Nonblocking and persistent ones are waited for at once. */
#define CALL(what, ...)                                                 \
  do {                                                                  \
    MPI_Request request;                                                \
    if (kind > 1) {                                                     \
      outcome = MPI_Neighbor_##what(__VA_ARGS__);                       \
    } else if (kind == 1) {                                             \
      MPI_Ineighbor_##what(__VA_ARGS__, &request);                      \
      outcome = MPI_Wait(&request, MPI_STATUS_IGNORE);                  \
    } else {                                                            \
      MPI_Neighbor_##what##_init(__VA_ARGS__, MPI_INFO_NULL, &request); \
      MPI_Start(&request);                                              \
      outcome = MPI_Wait(&request, MPI_STATUS_IGNORE);                  \
      MPI_Request_free(&request);                                       \
    }                                                                   \
  } while (0)

static unsigned char value(int edge, int i) { return (unsigned char)(calls * 31 + edge * 7 + i * 13 + (i >> 8)); }

static void wrong(const char* call, int edge, int i, int got) {
  fprintf(stderr, "rank %d, call %d, %s: byte %d of edge %d (%d to %d, %d bytes) is %d\n", rank, calls, call, i, edge,
          edges[edge].from, edges[edge].to, edges[edge].bytes, got);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

/* The error of the last call: MPI_SUCCESS, or that a message was too long. */
static void expect(const char* call, int class_expected) {
  int class;
  MPI_Error_class(outcome, &class);
  if (class != class_expected) wrong(call, 0, 0, class);
}

static MPI_Comm make_graph(void) {
  int sources[8 * MOST], targets[8 * MOST];
  MPI_Comm graph;
  n_edges = (int)(next() % (3 * (unsigned)size + 1));
  n_in = n_out = 0;
  for (int e = 0; e < n_edges; ++e) {
    edges[e] = (edge_t){(int)(next() % size), (int)(next() % size), 0};
    if (next() % 4 == 0 && e > 0) edges[e].from = edges[e - 1].from, edges[e].to = edges[e - 1].to;
    if (edges[e].to == rank) sources[n_in] = edges[e].from, in[n_in++] = e;
    if (edges[e].from == rank) targets[n_out] = edges[e].to, out[n_out++] = e;
  }
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, n_in, sources, MPI_UNWEIGHTED, n_out, targets, MPI_UNWEIGHTED,
                                 MPI_INFO_NULL, 0, &graph);
  MPI_Comm_set_errhandler(graph, MPI_ERRORS_RETURN);
  return graph;
}

static int some_bytes(void) {
  static const int kinds[] = {0, 1, 8, 64, 500, 2048, 5000, 40000, 70000, LONGEST};
  return kinds[next() % (next() % 4 ? 6 : 10)];
}

static void check(const char* call, const char* at, int edge, int as, int bytes, int step) {
  for (int i = 0; i < bytes; ++i)
    if ((unsigned char)at[i * step] != value(as, i)) wrong(call, edge, i, (unsigned char)at[i * step]);
}

static void same_size(MPI_Comm graph, int gather) {
  const int bytes = some_bytes();
  for (int e = 0; e < n_edges; ++e) edges[e].bytes = bytes;
  for (int i = 0; i < (gather ? 1 : n_out); ++i)
    for (int k = 0; k < bytes; ++k) buffers[0][i * (size_t)bytes + k] = (char)value(gather ? rank : out[i], k);
  if (gather) CALL(allgather, buffers[0], bytes, MPI_CHAR, buffers[1], bytes, MPI_CHAR, graph);
  else CALL(alltoall, buffers[0], bytes, MPI_CHAR, buffers[1], bytes, MPI_CHAR, graph);
  expect("same size", MPI_SUCCESS);
  for (int i = 0; i < n_in; ++i)
    check(gather ? "allgather" : "alltoall", buffers[1] + i * (size_t)bytes, in[i], gather ? edges[in[i]].from : in[i],
          bytes, 1);
}

/* Blocks of their own sizes; `typed`: some have a gap behind each byte. Now and then one is longer than its place: that
 * is an error of the rank that gets it, whose other blocks arrive. */
static void own_sizes(MPI_Comm graph, int typed) {
  int counts[2][8 * MOST], places[2][8 * MOST];
  MPI_Aint displs[2][8 * MOST];
  MPI_Datatype types[2][8 * MOST], gaps;
  size_t at[2] = {0, 0};
  MPI_Type_create_resized(MPI_CHAR, 0, 3, &gaps);
  MPI_Type_commit(&gaps);
  for (int e = 0; e < n_edges; ++e) edges[e].bytes = some_bytes();
  const int too_long = n_edges > 0 && kind > 1 && next() % 6 == 0 ? (int)(next() % (unsigned)n_edges) : -1;
  for (int way = 0; way < 2; ++way)
    for (int i = 0; i < (way ? n_in : n_out); ++i) {
      const int e = way ? in[i] : out[i], has_gaps = typed && (e + way) % 5 == 0, step = has_gaps ? 3 : 1;
      counts[way][i] = edges[e].bytes;
      if (way && e == too_long && counts[way][i] > 0) --counts[way][i];
      types[way][i] = has_gaps ? gaps : counts[way][i] == 0 && typed && e % 2 == 0 ? MPI_DATATYPE_NULL : MPI_CHAR;
      displs[way][i] = places[way][i] = (int)at[way];
      for (int k = 0; !way && k < edges[e].bytes; ++k) buffers[0][at[0] + (size_t)(k * step)] = (char)value(e, k);
      at[way] += (size_t)edges[e].bytes * step + 5;
    }
  if (typed)
    CALL(alltoallw, buffers[0], counts[0], displs[0], types[0], buffers[1], counts[1], displs[1], types[1], graph);
  else CALL(alltoallv, buffers[0], counts[0], places[0], MPI_CHAR, buffers[1], counts[1], places[1], MPI_CHAR, graph);
  const int fails = too_long >= 0 && edges[too_long].to == rank && edges[too_long].bytes > 0;
  expect(typed ? "alltoallw" : "alltoallv", fails ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
  for (int i = 0; i < n_in; ++i)
    if (in[i] != too_long)
      check(typed ? "alltoallw" : "alltoallv", buffers[1] + displs[1][i], in[i], in[i], edges[in[i]].bytes,
            types[1][i] == gaps ? 3 : 1);
  MPI_Type_free(&gaps);
}

static void gather_sizes(MPI_Comm graph) {
  int counts[8 * MOST], places[8 * MOST], of_rank[MOST], at = 0;
  for (int r = 0; r < size; ++r) of_rank[r] = some_bytes();
  for (int i = 0; i < n_in; ++i) {
    counts[i] = of_rank[edges[in[i]].from];
    places[i] = at;
    at += counts[i] + 1;
  }
  for (int k = 0; k < of_rank[rank]; ++k) buffers[0][k] = (char)value(rank, k);
  CALL(allgatherv, buffers[0], of_rank[rank], MPI_CHAR, buffers[1], counts, places, MPI_CHAR, graph);
  expect("allgatherv", MPI_SUCCESS);
  for (int i = 0; i < n_in; ++i) check("allgatherv", buffers[1] + places[i], in[i], edges[in[i]].from, counts[i], 1);
}

/* On a grid, with one or two ranks in some dimensions, what goes backwards in a dimension comes from behind. */
static void on_a_grid(void) {
  enum { DIMS = 2, N = 2 * DIMS };
  int dims[DIMS] = {0}, periods[DIMS], near[N], sent[N], got[N], ones[N] = {1, 1, 1, 1}, places[N] = {0, 1, 2, 3};
  MPI_Aint displs[N];
  MPI_Datatype types[N];
  MPI_Comm grid;
  MPI_Dims_create(size, DIMS, dims);
  for (int d = 0; d < DIMS; ++d) periods[d] = next() % 4 != 0;
  MPI_Cart_create(MPI_COMM_WORLD, DIMS, dims, periods, 0, &grid);
  for (int d = 0; d < DIMS; ++d) MPI_Cart_shift(grid, d, 1, &near[2 * d], &near[2 * d + 1]);
  for (int i = 0; i < N; ++i, ++calls) {
    kind = (unsigned)next() % 4;
    const unsigned form = (unsigned)next() % 3;
    for (int k = 0; k < N; ++k) {
      sent[k] = 1000 * calls + 10 * rank + k;
      got[k] = -1;
      displs[k] = (MPI_Aint)(sizeof(int) * (size_t)k);
      types[k] = MPI_INT;
    }
    if (form == 0) CALL(alltoall, sent, 1, MPI_INT, got, 1, MPI_INT, grid);
    else if (form == 1) CALL(alltoallv, sent, ones, places, MPI_INT, got, ones, places, MPI_INT, grid);
    else CALL(alltoallw, sent, ones, displs, types, got, ones, displs, types, grid);
    for (int k = 0; k < N; ++k)
      if (got[k] != (near[k] == MPI_PROC_NULL ? -1 : 1000 * calls + 10 * near[k] + (k ^ 1)))
        wrong("grid", 0, k, got[k]);
  }
  MPI_Comm_free(&grid);
}

/* Some work, so that this rank is late. */
static void dawdle(void) {
  volatile double x = 0;
  for (int i = 0; i < 200000; ++i) x += i;
}

static void some_calls(MPI_Comm graph) {
  const int n = 1 + (int)(next() % 12), late = (int)(next() % (2 * (unsigned)size));
  int given = rank, got = -1, from_any = -1;
  MPI_Request requests[4];
  MPI_Irecv(&from_any, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, graph, &requests[0]);
  MPI_Irecv(&got, 1, MPI_INT, (rank + 1) % size, 31, MPI_COMM_WORLD, &requests[1]);
  for (int i = 0; i < n; ++i, ++calls) {
    kind = (unsigned)next() % 8;
    if (rank == late) dawdle();
    if (i == n / 2) MPI_Isend(&given, 1, MPI_INT, (rank + 1) % size, 31, graph, &requests[2]);
    if (i == n / 2) MPI_Isend(&given, 1, MPI_INT, (rank + size - 1) % size, 31, MPI_COMM_WORLD, &requests[3]);
    switch (next() % 5) {
      case 0: same_size(graph, 0); break;
      case 1: same_size(graph, 1); break;
      case 2: own_sizes(graph, 0); break;
      case 3: own_sizes(graph, 1); break;
      default: gather_sizes(graph);
    }
  }
  MPI_Status ignored[4]; /* GCC 12 warns of MPI_STATUSES_IGNORE */
  MPI_Waitall(4, requests, ignored);
  if (got != (rank + 1) % size || from_any != (rank + size - 1) % size) wrong("receives", 0, 0, got);
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, argc > 3 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 3 || size > MOST)
    return fprintf(stderr, "usage: neighbors SEED ROUNDS [threads], at most %d ranks\n", MOST), 2;
  seed = (uint64_t)atoll(argv[1]);
  for (int i = 0; i < 2; ++i) buffers[i] = malloc((size_t)(LONGEST * 3 + 5) * 3 * MOST + 1);
  for (int i = 0; i < atoi(argv[2]); ++i) {
    MPI_Comm graph = make_graph();
    some_calls(graph);
    MPI_Comm_free(&graph);
    on_a_grid();
  }
  if (rank == 0) printf("%d calls right\n", calls);
  return MPI_Finalize();
}
