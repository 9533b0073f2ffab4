/* Collectives of neighbours, most of them blocking ones, on random graphs, with several edges from one rank to another
 * and from a rank to itself: every byte that arrives is checked. Other messages are on their way, also to receives from any
 * rank with any tag, and some ranks are late, so that messages come before, during and after the call that takes them.
 * Blocks are from nothing to more than an eager message, and some have gaps: neighbors SEED ROUNDS [threads]. */
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

/* A call of any kind: CALL(allgather, arguments...). Nonblocking and persistent ones are waited for at once. */
#define CALL(what, ...)                                                 \
  do {                                                                  \
    MPI_Request request;                                                \
    const unsigned kind = (unsigned)next() % 8;                         \
    if (kind > 1) {                                                     \
      MPI_Neighbor_##what(__VA_ARGS__);                                 \
    } else if (kind == 1) {                                             \
      MPI_Ineighbor_##what(__VA_ARGS__, &request);                      \
      MPI_Wait(&request, MPI_STATUS_IGNORE);                            \
    } else {                                                            \
      MPI_Neighbor_##what##_init(__VA_ARGS__, MPI_INFO_NULL, &request); \
      MPI_Start(&request);                                              \
      MPI_Wait(&request, MPI_STATUS_IGNORE);                            \
      MPI_Request_free(&request);                                       \
    }                                                                   \
  } while (0)

static unsigned char value(int edge, int i) { return (unsigned char)(calls * 31 + edge * 7 + i * 13 + (i >> 8)); }

static void wrong(const char* call, int edge, int i, int got) {
  fprintf(stderr, "rank %d, call %d, %s: byte %d of edge %d (%d to %d, %d bytes) is %d\n", rank, calls, call, i, edge,
          edges[edge].from, edges[edge].to, edges[edge].bytes, got);
  MPI_Abort(MPI_COMM_WORLD, 3);
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
  return graph;
}

static int some_bytes(void) {
  static const int kinds[] = {0, 1, 8, 64, 500, 2048, 5000, 40000, 70000, LONGEST};
  return kinds[next() % (next() % 4 ? 6 : 10)];
}

/* Of several edges from one rank to another, MPICH's alltoall takes the first sent block for the last received one. */
static int twin(int e) {
  int before = 0, all[8 * MOST], n = 0;
  for (int i = 0; i < n_in; ++i)
    if (edges[in[i]].from == edges[e].from) {
      if (in[i] == e) before = n;
      all[n++] = in[i];
    }
  return all[n - 1 - before];
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
  for (int i = 0; i < n_in; ++i)
    check(gather ? "allgather" : "alltoall", buffers[1] + i * (size_t)bytes, in[i],
          gather ? edges[in[i]].from : twin(in[i]), bytes, 1);
}

/* Blocks of their own sizes; `typed`: some have a gap behind each byte. */
static void own_sizes(MPI_Comm graph, int typed) {
  int counts[2][8 * MOST], places[2][8 * MOST];
  MPI_Aint displs[2][8 * MOST];
  MPI_Datatype types[2][8 * MOST], gaps;
  size_t at[2] = {0, 0};
  MPI_Type_create_resized(MPI_CHAR, 0, 3, &gaps);
  MPI_Type_commit(&gaps);
  for (int e = 0; e < n_edges; ++e) edges[e].bytes = some_bytes();
  for (int way = 0; way < 2; ++way)
    for (int i = 0; i < (way ? n_in : n_out); ++i) {
      const int e = way ? in[i] : out[i], has_gaps = typed && (e + way) % 5 == 0, step = has_gaps ? 3 : 1;
      counts[way][i] = edges[e].bytes;
      types[way][i] = has_gaps ? gaps : MPI_CHAR;
      displs[way][i] = places[way][i] = (int)at[way];
      for (int k = 0; !way && k < edges[e].bytes; ++k) buffers[0][at[0] + (size_t)(k * step)] = (char)value(e, k);
      at[way] += (size_t)edges[e].bytes * step + 5;
    }
  if (typed)
    CALL(alltoallw, buffers[0], counts[0], displs[0], types[0], buffers[1], counts[1], displs[1], types[1], graph);
  else CALL(alltoallv, buffers[0], counts[0], places[0], MPI_CHAR, buffers[1], counts[1], places[1], MPI_CHAR, graph);
  for (int i = 0; i < n_in; ++i)
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
  for (int i = 0; i < n_in; ++i) check("allgatherv", buffers[1] + places[i], in[i], edges[in[i]].from, counts[i], 1);
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
  }
  if (rank == 0) printf("%d calls right\n", calls);
  return MPI_Finalize();
}
