/* Random collectives, the same in every rank by their seed, with a checksum of every result for each rank. Half are
 * nonblocking or persistent, with others, blocking ones too, before they are over; with the argument "blocking" none
 * is. Persistent ones are started twice, the second time in an order that differs from rank to rank. Run through
 * shared memory and by messages, the checksums must be equal: collectives SEED CASES [threads] [blocking].
 * The values are small integers, so that the order of additions does not matter, and sizes go across the pieces of a
 * slot. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 17, MOST = 20000, UNDER_WAY = 80 };
static uint64_t seed, sum = 1469598103934665603u;
static int rank, size;

static uint64_t next(void) {
  uint64_t x = seed += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

static char *in, *out;

/* A call that may still be under way: its buffers, and what of them counts when it is over. */
typedef struct {
  char *in, *out;
  const unsigned char* result;
  size_t bytes;
  int kept, over, in_place; /* kept: persistent */
} call_t;
static call_t calls[UNDER_WAY], *now;
static MPI_Request requests[UNDER_WAY], *request;
static int under_way, mixed;

static void note(const void* data, size_t bytes) {
  now->result = data;
  now->bytes = bytes;
}

static void add(const call_t* call) {
  for (size_t i = 0; i < call->bytes; ++i) sum = (sum ^ call->result[i]) * 1099511628211u;
}

/* Starts the persistent ones again, whose data are still there, and frees them. */
static void start_again(void) {
  for (int k = 0; k < under_way; ++k) {
    const int i = (k + rank) % under_way;
    if (!calls[i].kept || calls[i].in_place) continue;
    memset(calls[i].out, 0, calls[i].bytes);
    MPI_Start(&requests[i]);
  }
  for (int i = 0; i < under_way; ++i) {
    if (!calls[i].kept) continue;
    MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    add(&calls[i]);
    MPI_Request_free(&requests[i]);
  }
}

/* Ends all that is under way, in one of several orders. */
static void finish(int how) {
  static MPI_Status statuses[UNDER_WAY];
  int left = under_way, index;
  switch (how) {
    case 0: MPI_Waitall(under_way, requests, statuses); break;
    case 1:
      while (left-- > 0) MPI_Wait(&requests[left], MPI_STATUS_IGNORE);
      break;
    case 2:
      while (left-- > 0) MPI_Waitany(under_way, requests, &index, MPI_STATUS_IGNORE);
      break;
    default:
      for (int i = 0; left > 0; i = (i + 1) % under_way) {
        if (calls[i].over) continue;
        MPI_Test(&requests[i], &calls[i].over, MPI_STATUS_IGNORE);
        left -= calls[i].over;
      }
  }
  for (int i = 0; i < under_way; ++i) add(&calls[i]);
  start_again();
  under_way = 0;
}

/* The call itself: blocking, or, where there is one to come back to, nonblocking or persistent. */
#define CALL(name, iname, ...)                                                                \
  (!request    ? MPI_##name(__VA_ARGS__)                                                      \
   : now->kept ? (MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, request), MPI_Start(request)) \
               : MPI_##iname(__VA_ARGS__, request))

static int draw_count(void) {
  switch (next() % 4) {
    case 0: return 1 + (int)(next() % 4);
    case 1: return 1 + (int)(next() % 100);
    case 2: return (int)(next() % (3000 / (unsigned)size));
    default: return (int)(next() % (MOST / (unsigned)size));
  }
}

/* A basic type, its size, and all ways to lay its elements: as they are, with gaps between them, as a type of the
 * program that is like the basic one, and one that begins an element further on. */
typedef struct {
  MPI_Datatype basic, laid[4];
  int bytes;
} kind_t;
static kind_t kinds[5];

static void make_kinds(void) {
  const MPI_Datatype basic[5] = {MPI_INT, MPI_DOUBLE, MPI_SIGNED_CHAR, MPI_INT64_T, MPI_FLOAT};
  for (int i = 0; i < 5; ++i) {
    kinds[i].basic = basic[i];
    MPI_Type_size(basic[i], &kinds[i].bytes);
    const int one = 1;
    const MPI_Aint further = kinds[i].bytes;
    kinds[i].laid[0] = basic[i];
    MPI_Type_create_resized(basic[i], 0, 2 * kinds[i].bytes, &kinds[i].laid[1]);
    MPI_Type_contiguous(1, basic[i], &kinds[i].laid[2]);
    MPI_Type_create_hindexed(1, &one, &further, basic[i], &kinds[i].laid[3]);
    for (int way = 1; way < 4; ++way) MPI_Type_commit(&kinds[i].laid[way]);
  }
}

static void fill(char* data, int n, int kind) {
  for (int i = 0; i < n; ++i) {
    const int v = (int)((unsigned)(rank * 7 + i * 3 + (int)(seed % 1000)) % 5);
    switch (kind) {
      case 0: ((int*)data)[i] = v; break;
      case 1: ((double*)data)[i] = v; break;
      case 2: ((signed char*)data)[i] = (signed char)v; break;
      case 3: ((int64_t*)data)[i] = v; break;
      default: ((float*)data)[i] = (float)v;
    }
  }
}

/* Counts of a nonblocking call have to stay as they are. */
static int* lasting(int which) {
  static int room[4][UNDER_WAY][128];
  return room[which][now - calls];
}

/* A reduction: operations that are exact on small integers. */
static void reduction(MPI_Comm comm, int what, int ranks, int self, int in_place) {
  const MPI_Op ops[4] = {MPI_SUM, MPI_MAX, MPI_MIN, MPI_PROD};
  const int kind = (int)(next() % 5), op = (int)(next() % 4), root = (int)(next() % (unsigned)ranks), n = draw_count();
  const kind_t t = kinds[kind];
  const int total = what >= 5 ? n * ranks : n;
  fill(in, total, kind);
  memset(out, 0, (size_t)total * (size_t)t.bytes);
  if (in_place) memcpy(out, in, (size_t)total * (size_t)t.bytes);
  const void* from = in_place ? MPI_IN_PLACE : in;
  int *counts = lasting(0), got = n;
  switch (what) {
    case 1: CALL(Allreduce, Iallreduce, from, out, n, t.basic, ops[op], comm); break;
    case 2:
      CALL(Reduce, Ireduce, self == root ? from : in, out, n, t.basic, ops[op], root, comm);
      got = self == root ? n : 0;
      break;
    case 3: CALL(Scan, Iscan, from, out, n, t.basic, ops[op], comm); break;
    case 4:
      CALL(Exscan, Iexscan, from, out, n, t.basic, ops[op], comm);
      got = self == 0 ? 0 : n;
      break;
    case 5: CALL(Reduce_scatter_block, Ireduce_scatter_block, from, out, n, t.basic, ops[op], comm); break;
    default:
      for (int i = 0; i < ranks; ++i) counts[i] = i % 3 == 1 ? 0 : n;
      CALL(Reduce_scatter, Ireduce_scatter, from, out, counts, t.basic, ops[op], comm);
      got = counts[self];
  }
  note(out, (size_t)got * (size_t)t.bytes);
}

/* Drawn by each rank for itself. */
static int draw_way(int self) { return (int)(next() >> (8 + 2 * (self % 16)) & 3); }

/* Data only move; ranks may lay them in their buffers in different ways. */
static void movement(MPI_Comm comm, int what, int ranks, int self, int in_place) {
  const int kind = (int)(next() % 5), root = (int)(next() % (unsigned)ranks), n = draw_count();
  const kind_t t = kinds[kind];
  const MPI_Datatype from = t.laid[draw_way(self)], to = t.laid[draw_way(self)];
  const size_t room = ((size_t)n * (size_t)ranks * 2 + 1) * (size_t)t.bytes,
               block = (size_t)(2 * n + 1) * (size_t)t.bytes;
  fill(in, (int)(room / (size_t)t.bytes), kind);
  memset(out, 0, room);
  if (in_place) memcpy(out, in, room);
  switch (what) {
    case 7: CALL(Bcast, Ibcast, self == root ? in : out, n, self == root ? from : to, root, comm); break;
    case 8:
      if (in_place && self == root) CALL(Gather, Igather, MPI_IN_PLACE, n, from, out, n, to, root, comm);
      else CALL(Gather, Igather, in, n, from, out, n, to, root, comm);
      if (self != root) return;
      break;
    case 9: CALL(Allgather, Iallgather, in_place ? MPI_IN_PLACE : in, n, from, out, n, to, comm); break;
    case 10:
      if (in_place && self == root) CALL(Scatter, Iscatter, out, n, to, MPI_IN_PLACE, n, to, root, comm);
      else CALL(Scatter, Iscatter, in, n, from, out, n, to, root, comm);
      break;
    default: CALL(Alltoall, Ialltoall, in_place ? MPI_IN_PLACE : in, n, from, out, n, to, comm);
  }
  note(out, what == 7 || what == 10 ? block : room);
}

/* How many elements rank `from` has for rank `to`. */
static int block(int n, int from, int to) {
  return (from * 5 + to * 11 + n) % 7 == 0 ? 0 : n * (1 + (from + 2 * to) % 3) / 2;
}

/* Blocks of different sizes, with room between them. */
static void blocks(MPI_Comm comm, int what, int ranks, int self, int in_place) {
  const int way = (int)(next() & 3), kind = (int)(next() % 5), root = (int)(next() % (unsigned)ranks), n = draw_count();
  const kind_t t = kinds[kind];
  const int of_in = draw_way(self), of_out = draw_way(self);
  /* MPICH's pipelined ring of MPI_Allgatherv counts its pieces by the extent, and waits for ever when ranks differ. */
  const MPI_Datatype from = t.laid[of_in], to = t.laid[what == 15 ? way : of_out];
  int *in_counts = lasting(0), *in_at = lasting(1), *out_counts = lasting(2), *out_at = lasting(3);
  int in_end = 0, out_end = 0;
  for (int i = 0; i < ranks; ++i) {
    /* In place, a rank gets as much as it gives; and where all have the same block it is the one for rank 0. */
    in_counts[i] = what == 14 ? block(n, root, i) : block(n, self, i);
    out_counts[i] =
        what == 16 ? in_place ? block(n, self < i ? self : i, self < i ? i : self) : block(n, i, self) : block(n, i, 0);
    in_at[i] = in_end + 1, in_end = in_at[i] + in_counts[i];
    out_at[i] = out_end + 2, out_end = out_at[i] + out_counts[i];
  }
  if (what == 14) out_end = in_counts[self];
  const size_t room = (size_t)(out_end + 2) * (size_t)t.bytes * 2;
  fill(in, 2 * (in_end + 2), kind);
  memset(out, 0, room);
  if (in_place) fill(out, 2 * (out_end + 2), kind);
  const void* const given = in_place ? MPI_IN_PLACE : in;
  switch (what) {
    case 13:
      CALL(Gatherv, Igatherv, self == root ? given : in, out_counts[self], from, out, out_counts, out_at, to, root,
           comm);
      if (self != root) return;
      break;
    case 14:
      CALL(Scatterv, Iscatterv, in, in_counts, in_at, from, in_place && self == root ? MPI_IN_PLACE : out,
           in_counts[self], to, root, comm);
      break;
    case 15: CALL(Allgatherv, Iallgatherv, given, out_counts[self], from, out, out_counts, out_at, to, comm); break;
    default: CALL(Alltoallv, Ialltoallv, given, in_counts, in_at, from, out, out_counts, out_at, to, comm);
  }
  note(out, what == 14 ? (size_t)(2 * in_counts[self] + 1) * (size_t)t.bytes : room);
}

static void one(MPI_Comm comm) {
  int ranks, self;
  MPI_Comm_size(comm, &ranks);
  MPI_Comm_rank(comm, &self);
  const int what = (int)(next() % KINDS), in_place = next() % 3 == 0, later = mixed && next() % 2;
  if (mixed && (under_way == UNDER_WAY || next() % 16 == 0)) finish((int)(next() % 4));
  now = &calls[under_way];
  in = now->in, out = now->out;
  now->kept = later && next() % 3 == 0, now->over = 0, now->in_place = in_place;
  request = later ? &requests[under_way++] : NULL;
  note(out, 0);
  if (what == 0 || what == 12) CALL(Barrier, Ibarrier, comm);
  else if (what <= 6) reduction(comm, what, ranks, self, in_place);
  else if (what <= 11) movement(comm, what, ranks, self, in_place);
  else blocks(comm, what, ranks, self, in_place);
  if (!later) add(now);
}

int main(int argc, char** argv) {
  MPI_Comm half, mirror, duplicate, all[4];
  int provided;
  const int threads = argc > 3 && strcmp(argv[3], "threads") == 0;
  mixed = strcmp(argv[argc - 1], "blocking") != 0;
  MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &mirror);
  MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
  memcpy(all, (MPI_Comm[4]){MPI_COMM_WORLD, half, mirror, duplicate}, sizeof all);
  make_kinds();
  for (int i = 0; i < UNDER_WAY; ++i) {
    calls[i].in = malloc((size_t)MOST * 16 * 2 + 64);
    calls[i].out = malloc((size_t)MOST * 16 * 2 + 64);
  }
  const int cases = atoi(argv[2]);
  for (int i = 0; i < cases; ++i) {
    seed = strtoull(argv[1], NULL, 10) * 1000003u + (uint64_t)i;
    one(all[next() % 4]);
  }
  finish(0);
  printf("%d %016llx\n", rank, (unsigned long long)sum);
  MPI_Comm_free(&half);
  MPI_Comm_free(&mirror);
  MPI_Comm_free(&duplicate);
  MPI_Finalize();
  return 0;
}
