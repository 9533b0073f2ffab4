/* gaps SEED ROUNDS: data of drawn layouts with gaps travel between two ranks, by sends of drawn kinds and by one-sided
 * calls, and come in rows or in other layouts. Each byte is what it was, and gaps stay as they were. Blocks are from
 * 2 bytes to 20,000. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMost = 1200000, kExtent = 3 * kMost };

static unsigned seed;
static int rank;
static char *from, *to, *expected;

static int draw(int below) {
  seed = seed * 1103515245u + 12345u;
  return (int)(seed >> 8) % below;
}

static int block_drawn(void) {
  static const int blocks[] = {8, 24, 200, 1000, 2040, 2304, 3000, 4096, 5000, 8200, 12000, 16376, 16500, 20000};
  return blocks[draw(14)];
}

/* Part of a room, with few or many ints side by side. */
static MPI_Datatype box(int bytes) {
  const int width = 1 + draw(20), height = bytes / 4 / 30 / width + 1;
  const int room[] = {32, height + 2, width + 1 + draw(3)}, size[] = {30, height, width}, start[] = {1, draw(2), 1};
  MPI_Datatype type;
  MPI_Type_create_subarray(3, room, size, start, MPI_ORDER_C, MPI_INT, &type);
  return type;
}

/* Makes it anew out of so many of it, `gap` bytes apart, or fewer where there is no room for them. */
static void row_of(MPI_Datatype* type, int n, int gap) {
  MPI_Datatype old = *type;
  MPI_Aint lb, extent;
  MPI_Type_get_true_extent(old, &lb, &extent);
  const MPI_Aint step = lb + extent + gap, most = (kExtent - 8) / step;
  MPI_Type_create_hvector(n < most ? n : (int)most, 1, step, old, type);
  MPI_Type_free(&old);
}

/* Types within types: structures, or rows, at uneven places, in rows of rows. */
static MPI_Datatype nested(int bytes) {
  static const int parts[] = {1, 1, 3}, lengths[] = {1, 2, 1, 3}, places[] = {0, 3, 5, 9};
  static const MPI_Aint at[] = {0, 8, 17};
  const MPI_Datatype of[] = {MPI_INT, MPI_DOUBLE, MPI_BYTE};
  MPI_Datatype inner, type;
  int size;
  if (draw(2)) MPI_Type_create_struct(3, parts, at, of, &inner);
  else MPI_Type_vector(2 + draw(4), 1 + draw(3), 5, draw(2) ? MPI_SHORT : MPI_DOUBLE, &inner);
  if (draw(2)) row_of(&inner, 1 + draw(3), 8 * draw(10));
  if (draw(2)) MPI_Type_indexed(4, lengths, places, inner, &type);
  else MPI_Type_create_indexed_block(4, 1 + draw(2), places, inner, &type);
  MPI_Type_free(&inner);
  row_of(&type, 1 + draw(4), 8);
  MPI_Type_size(type, &size);
  row_of(&type, bytes / size + 1, 8 * draw(4));
  return type;
}

/* A long list of blocks of which each is a long list of blocks, none like its neighbour. */
static MPI_Datatype lists(int bytes) {
  enum { kInner = 100, kOuter = 400 };
  static int lengths[kOuter], places[kOuter];
  MPI_Datatype inner, type;
  int size, n = 0;
  for (int i = 0; i < kInner; ++i) lengths[i] = 1 + i % 3, places[i] = 4 * i + i % 2;
  MPI_Type_indexed(kInner, lengths, places, MPI_DOUBLE, &inner);
  MPI_Type_size(inner, &size);
  for (int at = 0; n < kOuter && bytes > 0; ++n) {
    lengths[n] = 1 + draw(2);
    places[n] = at;
    at += lengths[n] + (n % 5 == 0);
    bytes -= lengths[n] * size;
  }
  MPI_Type_indexed(n, lengths, places, inner, &type);
  MPI_Type_free(&inner);
  return type;
}

/* A layout of about so many bytes. */
static MPI_Datatype layout(int bytes, int kind, int block) {
  MPI_Datatype type;
  const int n = bytes / block > 0 ? bytes / block : 1;
  static int lengths[200000], places[200000];
  static MPI_Aint offsets[200000];
  switch (kind) {
    case 0: MPI_Type_vector(n, block / 8, block / 8 + 1 + block / 16, MPI_DOUBLE, &type); break;
    case 1: MPI_Type_vector(n, block, 2 * block, MPI_BYTE, &type); break;
    case 2: /* blocks of other lengths */
      for (int i = 0, at = 0; i < n; ++i) {
        lengths[i] = (i % 3 == 0 ? block : i % 3 == 1 ? block / 2 : block + block / 2) / 8 * 8;
        places[i] = at;
        at += lengths[i] + 8 * (i % 5);
      }
      MPI_Type_indexed(n, lengths, places, MPI_BYTE, &type);
      break;
    case 3: type = box(bytes); break;
    case 4:
    case 5: type = nested(bytes); break;
    case 6: type = lists(bytes); break;
    default: /* backwards */
      for (int i = 0; i < n; ++i) {
        lengths[i] = block / 4;
        offsets[i] = (MPI_Aint)(n - 1 - i) * (block + 8);
      }
      MPI_Type_create_hindexed(n, lengths, offsets, MPI_INT, &type);
  }
  MPI_Type_commit(&type);
  return type;
}

static void fail(const char* what, int round) {
  fprintf(stderr, "rank %d, round %d: %s\n", rank, round, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void fill(char* data, int round) {
  for (int i = 0; i < kExtent; ++i) data[i] = (char)(i * 7 + i / 253 + round);
}

/* What is in `to` after data of the one layout in `from` have come in the other. */
static void expect(MPI_Datatype sent, MPI_Datatype received, int round) {
  static char packed[2 * kMost];
  int at = 0, size;
  MPI_Type_size(sent, &size);
  if (size > (int)sizeof packed) fail("too long for this test", round);
  MPI_Pack(from, 1, sent, packed, sizeof packed, &at, MPI_COMM_SELF);
  memset(expected, 0x55, kExtent);
  at = 0;
  MPI_Unpack(packed, size, &at, expected, received == MPI_BYTE ? size : 1, received, MPI_COMM_SELF);
}

static void by_message(MPI_Datatype sent, MPI_Datatype received, int size, int kind, int early, int round) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == round % 2) {
    switch (kind) {
      case 0: MPI_Send(from, 1, sent, 1 - rank, 5, MPI_COMM_WORLD); break;
      case 1: MPI_Issend(from, 1, sent, 1 - rank, 5, MPI_COMM_WORLD, &request); break;
      default: MPI_Isend(from, 1, sent, 1 - rank, 5, MPI_COMM_WORLD, &request);
    }
    MPI_Send(NULL, 0, MPI_BYTE, 1 - rank, 6, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return;
  }
  if (early && kind != 0) MPI_Recv(NULL, 0, MPI_BYTE, 1 - rank, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Recv(to, received == MPI_BYTE ? size : 1, received, 1 - rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (!early || kind == 0) MPI_Recv(NULL, 0, MPI_BYTE, 1 - rank, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (memcmp(to, expected, kExtent)) fail("a message is wrong", round);
}

static void one_sided(MPI_Datatype sent, MPI_Datatype received, int size, int get, int round) {
  MPI_Win win;
  const int count = received == MPI_BYTE ? size : 1, active = rank == round % 2;
  MPI_Win_create(get ? from : to, kExtent, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_fence(0, win);
  if (active && get) MPI_Get(to, count, received, 1 - rank, 0, 1, sent, win);
  if (active && !get) MPI_Put(from, 1, sent, 1 - rank, 0, count, received, win);
  MPI_Win_fence(0, win);
  MPI_Win_free(&win);
  if (active == get && memcmp(to, expected, kExtent)) fail(get ? "a get is wrong" : "a put is wrong", round);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const unsigned first = (unsigned)atoi(argv[1]);
  const int rounds = atoi(argv[2]);
  from = malloc(kExtent);
  to = malloc(kExtent);
  expected = malloc(kExtent);
  for (int round = 0; round < rounds; ++round) {
    static const int sizes[] = {30000, 60000, 64000, 100000, 262144, 300000, 700000};
    seed = first + (unsigned)round;
    const int bytes = sizes[draw(7)];
    MPI_Datatype sent = layout(bytes, draw(8), block_drawn()), received = MPI_BYTE;
    int size, way = draw(6);
    MPI_Type_size(sent, &size);
    if (draw(2)) MPI_Type_dup(sent, &received);
    fill(from, round);
    memset(to, 0x55, kExtent);
    expect(sent, received, round);
    const int early = draw(2);
    if (way < 4) by_message(sent, received, size, way, early, round);
    else one_sided(sent, received, size, way == 5, round);
    MPI_Type_free(&sent);
    if (received != MPI_BYTE) MPI_Type_free(&received);
  }
  if (rank == 0) printf("gaps: %d rounds from seed %u\n", rounds, first);
  MPI_Finalize();
  return 0;
}
