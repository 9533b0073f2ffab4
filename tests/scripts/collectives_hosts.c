/* Collectives of ranks on several hosts, each result computed here too: operations that do not commute, pairs,
 * structures with gaps, in place, lengths across the pieces in which long data go; blocking, nonblocking, persistent,
 * and several under way at once; in the world, in it backwards, and in parts of it. collectives_hosts SEED ROUNDS.
 * With "ahead" in place of them: no rank waits in a prefix reduction for one ahead of it that has not called yet. With
 * "errors": nobody waits for a rank whose block is too long. */
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 40000, VERY_LONG = 280000 };
typedef struct {
  double value;
  int where, guard; /* the gap of MPI_DOUBLE_INT is the program's */
} pair_t;
typedef struct {
  int a;
  double b;
  short c;
} record_t; /* gaps behind a and behind c */
typedef struct {
  uint32_t factor, term; /* x -> factor * x + term, which do not commute */
} map_t;

enum { BLOCKING, NONBLOCKING, PERSISTENT, WAYS };
static const char* const kWays[] = {"blocking", "nonblocking", "persistent"};

static uint64_t seed;
static int rank, size, failures, way, starts;
static MPI_Datatype record_type, map_type;
static MPI_Op add_records, apply_maps;

static unsigned draw(unsigned most) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(seed >> 33) % most;
}

static void check(int good, const char* what, int count) {
  if (!good && failures++ < 5)
    fprintf(stderr, "rank %d of %d: %s of %d elements is wrong (%s)\n", rank, size, what, count, kWays[way]);
}

/* A persistent call that is not in place is started twice. */
static void run(MPI_Request* request) {
  for (int i = 0; i < starts && way == PERSISTENT; ++i) MPI_Start(request), MPI_Wait(request, MPI_STATUS_IGNORE);
  if (way == PERSISTENT) MPI_Request_free(request);
  else if (way == NONBLOCKING) MPI_Wait(request, MPI_STATUS_IGNORE);
}

#define IN_ITS_WAY(call, icall, init, ...)                     \
  do {                                                         \
    MPI_Request request;                                       \
    if (way == BLOCKING) call(__VA_ARGS__);                    \
    else if (way == NONBLOCKING) icall(__VA_ARGS__, &request); \
    else init(__VA_ARGS__, MPI_INFO_NULL, &request);           \
    run(&request);                                             \
  } while (0)
#define SCAN(...) IN_ITS_WAY(MPI_Scan, MPI_Iscan, MPI_Scan_init, __VA_ARGS__)
#define EXSCAN(...) IN_ITS_WAY(MPI_Exscan, MPI_Iexscan, MPI_Exscan_init, __VA_ARGS__)
#define REDUCE(...) IN_ITS_WAY(MPI_Reduce, MPI_Ireduce, MPI_Reduce_init, __VA_ARGS__)
#define ALLREDUCE(...) IN_ITS_WAY(MPI_Allreduce, MPI_Iallreduce, MPI_Allreduce_init, __VA_ARGS__)
#define ALLGATHER(...) IN_ITS_WAY(MPI_Allgather, MPI_Iallgather, MPI_Allgather_init, __VA_ARGS__)
#define ALLTOALL(...) IN_ITS_WAY(MPI_Alltoall, MPI_Ialltoall, MPI_Alltoall_init, __VA_ARGS__)
#define ALLGATHERV(...) IN_ITS_WAY(MPI_Allgatherv, MPI_Iallgatherv, MPI_Allgatherv_init, __VA_ARGS__)
#define REDUCE_SCATTER(...) IN_ITS_WAY(MPI_Reduce_scatter, MPI_Ireduce_scatter, MPI_Reduce_scatter_init, __VA_ARGS__)
#define REDUCE_SCATTER_BLOCK(...) \
  IN_ITS_WAY(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, MPI_Reduce_scatter_block_init, __VA_ARGS__)
#define BCAST(...) IN_ITS_WAY(MPI_Bcast, MPI_Ibcast, MPI_Bcast_init, __VA_ARGS__)

static void sum_of_records(void* in, void* inout, int* count, MPI_Datatype* type) {
  const record_t* from = in;
  record_t* to = inout;
  (void)type;
  for (int i = 0; i < *count; ++i) to[i].a += from[i].a, to[i].b += from[i].b, to[i].c = (short)(to[i].c + from[i].c);
}

/* First the map of the lower rank, which is `in`. */
static map_t after(map_t low, map_t high) {
  return (map_t){low.factor * high.factor, low.term * high.factor + high.term};
}
static void composition(void* in, void* inout, int* count, MPI_Datatype* type) {
  const map_t* from = in;
  map_t* to = inout;
  (void)type;
  for (int i = 0; i < *count; ++i) to[i] = after(from[i], to[i]);
}

static map_t map_of(int of, int i, unsigned salt) {
  return (map_t){(uint32_t)(2 * (of * 7 + i + (int)salt) + 3), (uint32_t)(of + i * 5 + 1)};
}
static record_t record_of(int of, int i, unsigned salt) {
  record_t r;
  memset(&r, 0x5a, sizeof r);
  r.a = of + i + (int)salt, r.b = of * 2.0 + i, r.c = (short)(of + i % 100);
  return r;
}
static double value_of(int of, int i, unsigned salt) { return (double)((of * 31 + i * 17 + (int)salt) % 1000); }

/* The maps of ranks first to last - 1. */
static map_t composed(int first, int last, int i, unsigned salt) {
  map_t m = {1, 0};
  for (int r = first; r < last; ++r) m = after(m, map_of(r, i, salt));
  return m;
}

static void same_maps(const map_t* out, int n, int first, int last, unsigned salt, const char* what) {
  int good = 1;
  for (int i = 0; i < n && good; i += 1 + n / 500) {
    const map_t want = composed(first, last, i, salt);
    good = want.factor == out[i].factor && want.term == out[i].term;
  }
  check(good, what, n);
}

static void maps(MPI_Comm comm, int n, unsigned salt) {
  map_t *in = malloc((size_t)n * sizeof *in), *out = malloc((size_t)n * sizeof *out);
  const int root = (int)(salt % (unsigned)size), in_place = salt & 1;
  for (int i = 0; i < n; ++i) in[i] = map_of(rank, i, salt);

  memcpy(out, in, (size_t)n * sizeof *out);
  SCAN(in_place ? MPI_IN_PLACE : in, out, n, map_type, apply_maps, comm);
  same_maps(out, n, 0, rank + 1, salt, "MPI_Scan");
  memcpy(out, in, (size_t)n * sizeof *out);
  EXSCAN(in_place ? MPI_IN_PLACE : in, out, n, map_type, apply_maps, comm);
  if (rank > 0) same_maps(out, n, 0, rank, salt, "MPI_Exscan");
  else check(memcmp(in, out, (size_t)n * sizeof *in) == 0, "MPI_Exscan in rank 0", n);
  memcpy(out, in, (size_t)n * sizeof *out);
  REDUCE(in_place && rank == root ? MPI_IN_PLACE : in, out, n, map_type, apply_maps, root, comm);
  if (rank == root) same_maps(out, n, 0, size, salt, "MPI_Reduce");
  memcpy(out, in, (size_t)n * sizeof *out);
  ALLREDUCE(in_place ? MPI_IN_PLACE : in, out, n, map_type, apply_maps, comm);
  same_maps(out, n, 0, size, salt, "MPI_Allreduce");
  free(in), free(out);
}

/* The sums of ranks first to last - 1, of their elements from `begin` on. */
static void same_part(const record_t* out, int n, int begin, int first, int last, unsigned salt, const char* what) {
  int good = 1;
  for (int i = 0; i < n && good; i += 1 + n / 500) {
    record_t want = record_of(first, begin + i, salt);
    for (int r = first + 1; r < last; ++r) {
      record_t more = record_of(r, begin + i, salt);
      sum_of_records(&more, &want, &(int){1}, NULL);
    }
    good = memcmp(&want, &out[i], sizeof want) == 0; /* and the gaps are as they were */
  }
  check(good, what, n);
}

static void same_records(const record_t* out, int n, int first, int last, unsigned salt, const char* what) {
  same_part(out, n, 0, first, last, salt, what);
}

static void records(MPI_Comm comm, int n, unsigned salt) {
  record_t *in = malloc((size_t)n * sizeof *in), *out = malloc((size_t)n * sizeof *out);
  const int root = (int)(salt % (unsigned)size), in_place = salt & 1;
  for (int i = 0; i < n; ++i) in[i] = record_of(rank, i, salt);
  memcpy(out, in, (size_t)n * sizeof *out);
  REDUCE(in_place && rank == root ? MPI_IN_PLACE : in, out, n, record_type, add_records, root, comm);
  if (rank == root) same_records(out, n, 0, size, salt, "MPI_Reduce of records");
  memcpy(out, in, (size_t)n * sizeof *out);
  ALLREDUCE(in_place ? MPI_IN_PLACE : in, out, n, record_type, add_records, comm);
  same_records(out, n, 0, size, salt, "MPI_Allreduce of records");
  memcpy(out, in, (size_t)n * sizeof *out);
  SCAN(in_place ? MPI_IN_PLACE : in, out, n, record_type, add_records, comm);
  same_records(out, n, 0, rank + 1, salt, "MPI_Scan of records");
  memcpy(out, in, (size_t)n * sizeof *out);
  BCAST(out, n, record_type, root, comm);
  same_records(out, n, root, root + 1, salt, "MPI_Bcast of records");
  /* The root's type is another one than that of the others: so many ints. */
  if (rank == root) BCAST(in, 2 * n, MPI_INT, root, comm);
  else {
    MPI_Datatype two;
    MPI_Type_contiguous(2, MPI_INT, &two);
    MPI_Type_commit(&two);
    BCAST(out, n, two, root, comm);
    MPI_Type_free(&two);
  }
  if (rank == root) memcpy(out, in, (size_t)n * sizeof *out);
  for (int i = 0; i < n; ++i) in[i] = record_of(root, i, salt);
  check(memcmp(in, out, (size_t)n * 2 * sizeof(int)) == 0, "MPI_Bcast of ints", n);
  free(in), free(out);
}

/* The largest value of ranks 0 to last - 1, at the lowest of them, of their elements from `begin` on. */
static void same_pairs_from(const pair_t* out, int n, int begin, int last, unsigned salt, const char* what) {
  int good = 1;
  for (int i = 0; i < n && good; i += 1 + n / 500) {
    int best = 0;
    for (int r = 1; r < last; ++r)
      if (value_of(r, begin + i, salt) > value_of(best, begin + i, salt)) best = r;
    good = out[i].where == best && out[i].value == value_of(best, begin + i, salt) && out[i].guard == rank + i;
  }
  check(good, what, n);
}

static void same_pairs(const pair_t* out, int n, int last, unsigned salt, const char* what) {
  same_pairs_from(out, n, 0, last, salt, what);
}

static void fill_pairs(pair_t* p, int n, unsigned salt) {
  for (int i = 0; i < n; ++i) p[i] = (pair_t){value_of(rank, i, salt), rank, rank + i};
}

static void pairs(MPI_Comm comm, int n, unsigned salt) {
  pair_t *in = malloc((size_t)n * sizeof *in), *out = malloc((size_t)n * sizeof *out);
  const int root = (int)(salt % (unsigned)size), in_place = salt & 1;
  fill_pairs(in, n, salt), fill_pairs(out, n, salt);
  ALLREDUCE(in_place ? MPI_IN_PLACE : in, out, n, MPI_DOUBLE_INT, MPI_MAXLOC, comm);
  same_pairs(out, n, size, salt, "MPI_Allreduce of pairs");
  fill_pairs(out, n, salt);
  REDUCE(in_place && rank == root ? MPI_IN_PLACE : in, out, n, MPI_DOUBLE_INT, MPI_MAXLOC, root, comm);
  if (rank == root) same_pairs(out, n, size, salt, "MPI_Reduce of pairs");
  fill_pairs(out, n, salt);
  SCAN(in_place ? MPI_IN_PLACE : in, out, n, MPI_DOUBLE_INT, MPI_MAXLOC, comm);
  same_pairs(out, n, rank + 1, salt, "MPI_Scan of pairs");
  fill_pairs(out, n, salt);
  EXSCAN(in_place ? MPI_IN_PLACE : in, out, n, MPI_DOUBLE_INT, MPI_MAXLOC, comm);
  if (rank > 0) same_pairs(out, n, rank, salt, "MPI_Exscan of pairs");
  free(in), free(out);
}

/* Blocks of all ranks: of a type with gaps, and of one that the senders name otherwise. */
static void gathers(MPI_Comm comm, int n, unsigned salt) {
  const size_t all = (size_t)n * (size_t)size;
  record_t *in = malloc((size_t)n * sizeof *in), *out = malloc(all * sizeof *out);
  map_t *maps_in = malloc((size_t)n * sizeof *maps_in), *maps_out = malloc(all * sizeof *maps_out);
  const int in_place = salt & 1;
  memset(out, 0x5a, all * sizeof *out);
  for (int i = 0; i < n; ++i) in[i] = record_of(rank, i, salt), maps_in[i] = map_of(rank, i, salt);
  if (in_place) {
    memcpy(out + (size_t)rank * (size_t)n, in, (size_t)n * sizeof *in);
    memcpy(maps_out + (size_t)rank * (size_t)n, maps_in, (size_t)n * sizeof *maps_in);
  }
  ALLGATHER(in_place ? MPI_IN_PLACE : in, n, record_type, out, n, record_type, comm);
  ALLGATHER(in_place ? MPI_IN_PLACE : maps_in, 2 * n, MPI_UINT32_T, maps_out, n, map_type, comm);
  for (int r = 0; r < size; ++r) {
    same_records(out + (size_t)r * (size_t)n, n, r, r + 1, salt, "MPI_Allgather of records");
    same_maps(maps_out + (size_t)r * (size_t)n, n, r, r + 1, salt, "MPI_Allgather of maps");
  }
  free(in), free(out), free(maps_in), free(maps_out);
}

/* A block of each for each: of a type with gaps, and of one that the senders name otherwise. */
static void exchanges(MPI_Comm comm, int n, unsigned salt) {
  const size_t all = (size_t)n * (size_t)size;
  record_t *in = malloc(all * sizeof *in), *out = malloc(all * sizeof *out);
  map_t *maps_in = malloc(all * sizeof *maps_in), *maps_out = malloc(all * sizeof *maps_out);
  const int in_place = salt & 1;
  for (int i = 0; i < (int)all; ++i) in[i] = record_of(rank, i, salt), maps_in[i] = map_of(rank, i, salt);
  memset(out, 0x5a, all * sizeof *out);
  if (in_place) memcpy(out, in, all * sizeof *in), memcpy(maps_out, maps_in, all * sizeof *maps_in);
  ALLTOALL(in_place ? MPI_IN_PLACE : in, n, record_type, out, n, record_type, comm);
  ALLTOALL(in_place ? MPI_IN_PLACE : maps_in, 2 * n, MPI_UINT32_T, maps_out, n, map_type, comm);
  for (int r = 0; r < size; ++r) {
    same_part(out + (size_t)r * (size_t)n, n, rank * n, r, r + 1, salt, "MPI_Alltoall of records");
    for (int i = 0; i < n; ++i) {
      const map_t wanted = map_of(r, rank * n + i, salt);
      check(memcmp(&maps_out[(size_t)r * (size_t)n + (size_t)i], &wanted, sizeof wanted) == 0, "MPI_Alltoall of maps",
            n);
    }
  }
  free(in), free(out), free(maps_in), free(maps_out);
}

/* Lengths of the ranks' parts: alike or not, some of none. Returns the sum. */
static int draw_counts(int n, unsigned salt, int* counts) {
  int all = 0;
  for (int r = 0; r < size; ++r) {
    counts[r] = salt % 3 == 0 ? n : (int)((unsigned)(r * 7919) + salt) % (2 * n + 1);
    all += counts[r];
  }
  return all;
}

/* Parts of a sum, and blocks of different lengths, which lie in order, or backwards with a gap between them. */
static void parts(MPI_Comm comm, int n, unsigned salt) {
  int *counts = malloc((size_t)size * sizeof(int)), *places = malloc((size_t)size * sizeof(int)), begin = 0, at = 0;
  const int all = draw_counts(n, salt, counts), in_place = salt & 1, mine = counts[rank];
  const size_t most = (size_t)(all + size + n * size);
  record_t *in = malloc(most * sizeof *in), *out = malloc(most * sizeof *out);
  pair_t *pairs_in = malloc(most * sizeof *pairs_in), *pairs_out = malloc(most * sizeof *pairs_out);
  for (int r = 0; r < rank; ++r) begin += counts[r];
  for (int i = 0; i < (int)most; ++i) in[i] = record_of(rank, i, salt);
  memcpy(out, in, most * sizeof *in);
  REDUCE_SCATTER(in_place ? MPI_IN_PLACE : in, out, counts, record_type, add_records, comm);
  same_part(out, mine, begin, 0, size, salt, "MPI_Reduce_scatter");
  memcpy(out, in, most * sizeof *in);
  REDUCE_SCATTER_BLOCK(in_place ? MPI_IN_PLACE : in, out, n, record_type, add_records, comm);
  same_part(out, n, rank * n, 0, size, salt, "MPI_Reduce_scatter_block");
  fill_pairs(pairs_in, (int)most, salt), fill_pairs(pairs_out, (int)most, salt);
  REDUCE_SCATTER(in_place ? MPI_IN_PLACE : pairs_in, pairs_out, counts, MPI_DOUBLE_INT, MPI_MAXLOC, comm);
  same_pairs_from(pairs_out, mine, begin, size, salt, "MPI_Reduce_scatter of pairs");

  const int gap_length = rank & 1; /* each rank puts the blocks where it likes */
  if (gap_length)
    for (int r = size; r-- > 0; at += counts[r] + 1) places[r] = at;
  else
    for (int r = 0; r < size; at += counts[r++]) places[r] = at;
  memset(out, 0x5a, most * sizeof *out);
  if (in_place) memcpy(out + places[rank], in, (size_t)mine * sizeof *in);
  ALLGATHERV(in_place ? MPI_IN_PLACE : in, mine, record_type, out, counts, places, record_type, comm);
  for (int r = 0; r < size; ++r) {
    const unsigned char* gap = (const unsigned char*)(out + places[r] + counts[r]);
    same_records(out + places[r], counts[r], r, r + 1, salt, "MPI_Allgatherv");
    for (size_t i = 0; i < gap_length * sizeof *out; ++i) check(gap[i] == 0x5a, "the gap of MPI_Allgatherv", (int)i);
  }
  free(counts), free(places), free(in), free(out), free(pairs_in), free(pairs_out);
}

/* Calls that are under way together, with other work between. */
static void together(MPI_Comm comm, int n, unsigned salt) {
  enum { kCalls = 9 };
  const int root = (int)(salt % (unsigned)size), few = n < 200 ? n : 200, most = n > few * size ? n : few * size;
  const size_t bytes = (size_t)most * sizeof(map_t);
  map_t *in = malloc(bytes), *out[kCalls];
  MPI_Request requests[2 * kCalls];
  int word = rank, from_left = -1;
  for (int i = 0; i < most; ++i) in[i] = map_of(rank, i, salt);
  for (int i = 0; i < kCalls; ++i) out[i] = malloc(bytes), memcpy(out[i], in, bytes);
  for (int i = 0; i < kCalls; ++i) {
    const int call = (i + (int)salt) % kCalls;
    map_t* to = out[call];
    if (call == 0) MPI_Iscan(in, to, n, map_type, apply_maps, comm, &requests[call]);
    else if (call == 1) MPI_Iexscan(in, to, n, map_type, apply_maps, comm, &requests[call]);
    else if (call == 2) MPI_Ireduce(in, to, n, map_type, apply_maps, root, comm, &requests[call]);
    else if (call == 3) MPI_Iallreduce(in, to, n, map_type, apply_maps, comm, &requests[call]);
    else if (call == 4) MPI_Ibcast(to, n, map_type, root, comm, &requests[call]);
    else if (call == 5) MPI_Ireduce(in, to, 2 * n, MPI_UINT32_T, MPI_SUM, root, comm, &requests[call]);
    else if (call == 6) MPI_Iallreduce(in, to, 2 * n, MPI_UINT32_T, MPI_SUM, comm, &requests[call]);
    else if (call == 7) MPI_Iallgather(in, few, map_type, to, few, map_type, comm, &requests[call]);
    else MPI_Ialltoall(in, few, map_type, to, few, map_type, comm, &requests[call]);
    MPI_Ibarrier(comm, &requests[kCalls + call]);
  }
  MPI_Sendrecv(&word, 1, MPI_INT, (rank + 1) % size, 3, &from_left, 1, MPI_INT, (rank + size - 1) % size, 3, comm,
               MPI_STATUS_IGNORE);
  check(from_left == (rank + size - 1) % size, "MPI_Sendrecv", 1);
  if (salt % 3 == 0)
    for (int i = 2 * kCalls; i-- > 0;) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
  MPI_Waitall(2 * kCalls, requests, MPI_STATUSES_IGNORE);
  same_maps(out[0], n, 0, rank + 1, salt, "MPI_Iscan");
  if (rank > 0) same_maps(out[1], n, 0, rank, salt, "MPI_Iexscan");
  if (rank == root) same_maps(out[2], n, 0, size, salt, "MPI_Ireduce");
  same_maps(out[3], n, 0, size, salt, "MPI_Iallreduce");
  same_maps(out[4], n, root, root + 1, salt, "MPI_Ibcast");
  for (int i = 0; i < n; i += 1 + n / 500) {
    map_t sum = {0, 0};
    for (int r = 0; r < size; ++r) sum.factor += map_of(r, i, salt).factor, sum.term += map_of(r, i, salt).term;
    if (rank == root) check(memcmp(&sum, &out[5][i], sizeof sum) == 0, "MPI_Ireduce of numbers", n);
    check(memcmp(&sum, &out[6][i], sizeof sum) == 0, "MPI_Iallreduce of numbers", n);
  }
  for (int r = 0; r < size; ++r) same_maps(out[7] + r * few, few, r, r + 1, salt, "MPI_Iallgather");
  for (int i = 0; i < few * size; ++i) {
    const map_t wanted = map_of(i / few, rank * few + i % few, salt);
    check(memcmp(&out[8][i], &wanted, sizeof wanted) == 0, "MPI_Ialltoall", few);
  }
  for (int i = 0; i < kCalls; ++i) free(out[i]);
  free(in);
}

/* Lengths about the ends of pieces, short ones, any, and one that goes in pieces which ask first. */
static int length(void) {
  static const int some[] = {1, 2, 3, 17, 8191, 8192, 8193, 16384, 16385, LONGEST};
  if (draw(16) == 0) return VERY_LONG;
  return draw(3) == 0 ? 1 + (int)draw(LONGEST) : some[draw(sizeof some / sizeof *some)];
}

static void rounds(MPI_Comm comm, int count) {
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < count; ++i) {
    const int n = length();
    const unsigned salt = draw(1000);
    way = (int)draw(WAYS), starts = salt & 1 ? 1 : 2;
    switch (draw(7)) {
      case 0: maps(comm, n, salt); break;
      case 1: records(comm, n, salt); break;
      case 2: gathers(comm, 1 + n % (1 << draw(13)), salt); break;
      case 3: together(comm, n, salt); break;
      case 4: parts(comm, 1 + n % (1 << draw(15)), salt); break;
      case 5: exchanges(comm, 1 + n % (1 << draw(11)), salt); break;
      default: pairs(comm, n, salt);
    }
  }
}

/* Long blocks of one length, which some ranks want one behind the other and some with a word between. */
static void own_places(MPI_Comm comm) {
  enum { kWords = 60000 };
  int *counts = malloc((size_t)size * sizeof(int)), *places = malloc((size_t)size * sizeof(int));
  int* out = malloc((size_t)size * (kWords + 1) * sizeof *out);
  for (int r = 0; r < size; ++r) counts[r] = kWords, places[r] = r * (kWords + (rank & 1));
  for (int i = 0; i < kWords; ++i) out[places[rank] + i] = rank * kWords + i;
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INT, out, counts, places, MPI_INT, comm);
  for (int r = 0; r < size; ++r)
    for (int i = 0; i < kWords; ++i)
      check(out[places[r] + i] == r * kWords + i, "MPI_Allgatherv to own places", kWords);
  free(counts), free(places), free(out);
}

/* Who waited for a rank ahead would never come to the receive, or to the send, that this one waits for. */
static void go_ahead(void) {
  int in = 1, out = 0, word = 0;
  for (int i = 0; i < 8; ++i) MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 20; ++i) {
    if (rank > 0) MPI_Recv(&word, 1, MPI_INT, rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Scan(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(out == rank + 1, "MPI_Scan", 1);
    MPI_Exscan(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(rank == 0 || out == rank, "MPI_Exscan", 1);
    if (rank + 1 < size) MPI_Send(&word, 1, MPI_INT, rank + 1, 1, MPI_COMM_WORLD);
  }
}

/* A rank whose block is too long gets an error, and the others what they wait for. */
static void go_on_after_errors(void) {
  static const int lengths[] = {1, LONGEST};
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int i = 0; i < 2; ++i) {
    const int n = lengths[i];
    int *in = malloc(2 * (size_t)n * sizeof *in), *out = malloc((size_t)n * (size_t)size * sizeof *out), class,
        good = 1;
    for (int j = 0; j < 2 * n; ++j) in[j] = rank;
    MPI_Error_class(MPI_Allgather(in, rank == 0 ? 2 * n : n, MPI_INT, out, n, MPI_INT, MPI_COMM_WORLD), &class);
    check(class == (rank == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "the error of MPI_Allgather", n);
    for (int r = 0; r < size; ++r) good = good && out[(size_t)r * (size_t)n] == r;
    check(good, "MPI_Allgather", n);
    free(in), free(out);
  }
}

static void make_types(void) {
  const int lengths[] = {1, 1, 1};
  const MPI_Aint at[] = {offsetof(record_t, a), offsetof(record_t, b), offsetof(record_t, c)};
  const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, MPI_SHORT};
  MPI_Datatype tight;
  MPI_Type_create_struct(3, lengths, at, types, &tight);
  MPI_Type_create_resized(tight, 0, sizeof(record_t), &record_type);
  MPI_Type_commit(&record_type);
  MPI_Type_free(&tight);
  MPI_Type_contiguous(2, MPI_UINT32_T, &map_type);
  MPI_Type_commit(&map_type);
  MPI_Op_create(sum_of_records, 1, &add_records);
  MPI_Op_create(composition, 0, &apply_maps);
}

int main(int argc, char** argv) {
  MPI_Comm backwards, part;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  make_types();
  if (argc > 1 && strcmp(argv[1], "ahead") == 0) go_ahead();
  else if (argc > 1 && strcmp(argv[1], "errors") == 0) go_on_after_errors();
  else {
    const int count = argc > 2 ? atoi(argv[2]) : 10, world_rank = rank, world_size = size;
    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    rounds(MPI_COMM_WORLD, count);
    own_places(MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, 0, world_size - world_rank, &backwards);
    rounds(backwards, count);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 3 == 0, world_rank, &part);
    rounds(part, count);
    MPI_Comm_free(&backwards);
    MPI_Comm_free(&part);
  }
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("%d failures\n", failures);
  MPI_Op_free(&add_records);
  MPI_Op_free(&apply_maps);
  MPI_Type_free(&record_type);
  MPI_Type_free(&map_type);
  MPI_Finalize();
  return failures != 0;
}
