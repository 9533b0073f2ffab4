/* gaps SEED ROUNDS: data of drawn layouts with gaps travel between two ranks, by sends of drawn kinds and by one-sided
 * calls, and come in rows or in other layouts. Each byte is what it was, and gaps stay as they were. Blocks are from
 * some bytes to 20,000. */
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

/* A layout of about so many bytes, of which each block and gap is a number of doubles. */
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
    MPI_Datatype sent = layout(bytes, draw(4), block_drawn()), received = MPI_BYTE;
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
