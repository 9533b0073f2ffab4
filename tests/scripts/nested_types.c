/* nested_types SEED ROUNDS: types drawn as trees of MPI's constructors, which often stand on a made type without gaps.
 * This program keeps where each basic element of a type is; MPI must pack, unpack, send, put and add the same bytes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMost = 4000, kReach = 1 << 19, kBlocks = 5 };

/* A type and its map: the basic elements in their order. */
typedef struct {
  MPI_Datatype type;
  int n;
  MPI_Datatype basic[kMost];
  MPI_Aint at[kMost];
  MPI_Aint lb, extent;
  MPI_Datatype only; /* the basic type of all, or MPI_DATATYPE_NULL */
} Layout;

static unsigned seed;
static int rank, ranks;
static char from_bytes[2 * kReach], to_bytes[2 * kReach], expected_bytes[2 * kReach], packed[2 * kReach],
    other[2 * kReach];
static char *const from = from_bytes + kReach, *const to = to_bytes + kReach;

static int draw(int below) {
  seed = seed * 1103515245u + 12345u;
  return (int)(seed >> 8) % below;
}

static int size_of(MPI_Datatype basic) {
  int size;
  MPI_Type_size(basic, &size);
  return size;
}

static void fail(const char* what, int round) {
  fprintf(stderr, "rank %d, round %d: %s\n", rank, round, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* So many of the old type from there on. Returns 0 when that is too much for this test. */
static int add(Layout* to_add, const Layout* old, MPI_Aint displacement, int length) {
  for (int b = 0; b < length; ++b) {
    for (int i = 0; i < old->n; ++i) {
      const MPI_Aint at = displacement + b * old->extent + old->at[i];
      if (to_add->n == kMost || at < -kReach / 8 || at > kReach / 8) return 0;
      to_add->basic[to_add->n] = old->basic[i];
      to_add->at[to_add->n++] = at;
    }
  }
  if (to_add->only != old->only) to_add->only = MPI_DATATYPE_NULL;
  return 1;
}

static void finish(Layout* l) { MPI_Type_get_extent(l->type, &l->lb, &l->extent); }

static void make_basic(Layout* l) {
  static const MPI_Datatype basics[] = {MPI_DOUBLE, MPI_INT, MPI_SHORT, MPI_BYTE};
  l->n = 1;
  l->at[0] = 0;
  l->basic[0] = l->only = l->type = basics[draw(4)];
  finish(l);
}

/* Blocks at drawn places, all of one length or not; in bytes or in elements. */
static int make_indexed(Layout* l, const Layout* old) {
  const int n = 1 + draw(kBlocks), same = draw(2), in_bytes = draw(2), length = 1 + draw(3);
  int lengths[kBlocks], places[kBlocks], fits = 1;
  MPI_Aint offsets[kBlocks], at = draw(3) - 1;
  for (int i = 0; i < n; ++i) {
    lengths[i] = same ? length : draw(4);
    places[i] = (int)at;
    offsets[i] = at * old->extent + (in_bytes ? 8 * i : 0);
    fits = fits && add(l, old, offsets[i], lengths[i]);
    at += lengths[i] + draw(3);
  }
  if (!fits) return 0;
  if (in_bytes && same) MPI_Type_create_hindexed_block(n, length, offsets, old->type, &l->type);
  else if (in_bytes) MPI_Type_create_hindexed(n, lengths, offsets, old->type, &l->type);
  else if (same) MPI_Type_create_indexed_block(n, length, places, old->type, &l->type);
  else MPI_Type_indexed(n, lengths, places, old->type, &l->type);
  return 1;
}

static int make_vector(Layout* l, const Layout* old) {
  const int n = 1 + draw(6), length = 1 + draw(3), stride = length + draw(3) - (draw(8) == 0) * 2 * length;
  const int in_bytes = draw(2);
  const MPI_Aint step = stride * old->extent + (in_bytes ? 8 : 0);
  for (int i = 0; i < n; ++i)
    if (!add(l, old, i * step, length)) return 0;
  if (in_bytes) MPI_Type_create_hvector(n, length, step, old->type, &l->type);
  else MPI_Type_vector(n, length, stride, old->type, &l->type);
  return 1;
}

static int make_struct(Layout* l, const Layout* old, const Layout* second) {
  const Layout* parts[] = {old, second, old};
  MPI_Datatype types[] = {old->type, second->type, old->type};
  int lengths[3];
  MPI_Aint at = 8 * draw(2), places[3];
  const int n = 1 + draw(3);
  for (int i = 0; i < n; ++i) {
    lengths[i] = 1 + draw(3);
    places[i] = at;
    if (!add(l, parts[i], at, lengths[i])) return 0;
    at += lengths[i] * parts[i]->extent + 8 * draw(2);
  }
  MPI_Type_create_struct(n, lengths, places, types, &l->type);
  return 1;
}

static int make_resized(Layout* l, const Layout* old) {
  const MPI_Aint lb = old->lb - 8 * draw(2), extent = old->extent + 8 * draw(3);
  if (!add(l, old, 0, 1)) return 0;
  MPI_Type_create_resized(old->type, lb, extent, &l->type);
  return 1;
}

static int make_contiguous(Layout* l, const Layout* old) {
  const int length = 1 + draw(4);
  if (!add(l, old, 0, length)) return 0;
  MPI_Type_contiguous(length, old->type, &l->type);
  return 1;
}

/* A type on the old one; `second` too, where it is of two. Returns 0 when none came out. */
static int make(Layout* l, const Layout* old, const Layout* second) {
  int made;
  l->n = 0;
  l->only = old->only;
  switch (draw(8)) {
    case 0:
    case 1: made = make_contiguous(l, old); break;
    case 2:
    case 3: made = make_vector(l, old); break;
    case 4:
    case 5: made = make_indexed(l, old); break;
    case 6: made = make_struct(l, old, second); break;
    default: made = make_resized(l, old);
  }
  if (made) finish(l);
  return made;
}

/* The packed bytes of so many elements, by the map. */
static int pack_by_map(const Layout* l, int count, char* row) {
  int at = 0;
  for (int c = 0; c < count; ++c) {
    for (int i = 0; i < l->n; ++i) {
      memcpy(row + at, from + c * l->extent + l->at[i], (size_t)size_of(l->basic[i]));
      at += size_of(l->basic[i]);
    }
  }
  return at;
}

/* What is to be in `to`; 0 when elements lie upon each other, so that nothing can be received. */
static int unpack_by_map(const Layout* l, int count) {
  static char taken[2 * kReach];
  memset(taken, 0, sizeof taken);
  memset(expected_bytes, 0x55, sizeof expected_bytes);
  for (int c = 0; c < count; ++c) {
    for (int i = 0; i < l->n; ++i) {
      const MPI_Aint at = kReach + c * l->extent + l->at[i];
      for (int b = 0; b < size_of(l->basic[i]); ++b)
        if (taken[at + b]++) return 0;
      memcpy(expected_bytes + at, from_bytes + at, (size_t)size_of(l->basic[i]));
    }
  }
  return 1;
}

static void check_received(const char* what, int round) {
  if (memcmp(to_bytes, expected_bytes, sizeof to_bytes)) fail(what, round);
  memset(to_bytes, 0x55, sizeof to_bytes);
}

static void pack_and_unpack(const Layout* l, int count, int size, int whole, int round) {
  MPI_Aint place = 0, external;
  int at = 0;
  MPI_Pack(from, count, l->type, packed, sizeof packed, &at, MPI_COMM_SELF);
  if (at != size || memcmp(packed, other, (size_t)size)) fail("it is packed otherwise", round);
  if (!whole) return;
  at = 0;
  MPI_Unpack(packed, size, &at, to, count, l->type, MPI_COMM_SELF);
  check_received("it is unpacked otherwise", round);
  MPI_Pack_external_size("external32", count, l->type, &external);
  if (external != size) fail("the external size", round);
  MPI_Pack_external("external32", from, count, l->type, packed, sizeof packed, &place);
  place = 0;
  MPI_Unpack_external("external32", packed, external, &place, to, count, l->type);
  check_received("it does not come back from external32", round);
}

static void travel(const Layout* l, int count, int size, int whole, int round) {
  const int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
  memset(packed, 0, (size_t)size);
  MPI_Sendrecv(from, count, l->type, next, 1, packed, size, MPI_BYTE, last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (memcmp(packed, other, (size_t)size)) fail("it is sent otherwise", round);
  if (!whole) return;
  MPI_Sendrecv(other, size, MPI_BYTE, next, 2, to, count, l->type, last, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  check_received("it is received otherwise", round);
  MPI_Sendrecv(from, count, l->type, next, 3, to, count, l->type, last, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  check_received("it comes otherwise", round);
}

/* Puts; then adds one to each, which needs a type of one basic type. */
static void one_sided(const Layout* l, int count, int size, int round) {
  MPI_Win win;
  const int next = (rank + 1) % ranks;
  MPI_Win_create(to_bytes, sizeof to_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_fence(0, win);
  MPI_Put(from, count, l->type, next, kReach, count, l->type, win);
  MPI_Win_fence(0, win);
  if (memcmp(to_bytes, expected_bytes, sizeof to_bytes)) fail("it is put otherwise", round);
  if (l->only == MPI_INT) {
    const int n = size / (int)sizeof(int);
    int* ones = (int*)(void*)packed;
    for (int i = 0; i < n; ++i) ones[i] = 1;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Accumulate(ones, n, MPI_INT, next, kReach, count, l->type, MPI_SUM, win);
    MPI_Win_fence(0, win);
    for (int c = 0; c < count; ++c) {
      for (int i = 0; i < l->n; ++i) {
        int was;
        memcpy(&was, expected_bytes + kReach + c * l->extent + l->at[i], sizeof was);
        was = (int)((unsigned)was + 1);
        memcpy(expected_bytes + kReach + c * l->extent + l->at[i], &was, sizeof was);
      }
    }
    if (memcmp(to_bytes, expected_bytes, sizeof to_bytes)) fail("it is added otherwise", round);
  }
  MPI_Win_free(&win);
  memset(to_bytes, 0x55, sizeof to_bytes);
}

static void try_type(Layout* l, int round) {
  const int most = 1 + draw(3), count = most * l->n <= kMost ? most : 1;
  const int size = pack_by_map(l, count, other), whole = unpack_by_map(l, count);
  MPI_Type_commit(&l->type);
  int of_one;
  MPI_Type_size(l->type, &of_one);
  if (of_one * count != size) fail("its size", round);
  memset(to_bytes, 0x55, sizeof to_bytes);
  pack_and_unpack(l, count, size, whole, round);
  travel(l, count, size, whole, round);
  if (whole && round % 4 == 0) one_sided(l, count, size, round);
}

int main(int argc, char** argv) {
  static Layout levels[5], second;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 3) fail("usage: nested_types SEED ROUNDS", 0);
  const unsigned first = (unsigned)atoi(argv[1]);
  const int rounds = atoi(argv[2]);
  int tried = 0, flat = 0;
  for (int i = 0; i < 2 * kReach; ++i) from_bytes[i] = (char)(i * 7 + i / 253);
  for (int round = 0; round < rounds; ++round) {
    int top = 0;
    seed = first + (unsigned)round;
    make_basic(&levels[0]);
    make_basic(&second);
    for (const int depth = 1 + draw(4); top < depth && make(&levels[top + 1], &levels[top], &second); ++top)
      flat +=
          top > 0 && levels[top].n > 0 && levels[top].extent == (MPI_Aint)levels[top].n * size_of(levels[top].basic[0]);
    if (top > 0) try_type(&levels[top], round), ++tried;
    for (; top > 0; --top) MPI_Type_free(&levels[top].type);
  }
  if (tried < rounds / 2 || flat < rounds / 4) fail("hardly a type was drawn", rounds);
  if (rank == 0)
    printf("nested_types: %d types of %d draws from seed %u, %d on types without gaps\n", tried, rounds, first, flat);
  MPI_Finalize();
  return 0;
}
