/* Datatypes whose data lie where their bounds are not: memory_types [FILE]. MPI-IO and one-sided operations put the
 * data of each where MPI_Pack finds them, as types of memory, of a view and of a target; and types may be nested in
 * any depth. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 4, ROOM = 1 << 16, HERE = ROOM / 2 };
static int rank, wrong;
static unsigned long long seed = 1;

static int draw(int below) {
  seed = seed * 6364136223846793005ull + 1442695040888963407ull;
  return (int)((seed >> 33) % (unsigned)below);
}

/* Shorter than before by what is shared: displacements that do not overlap, in any order and of any sign. */
static MPI_Datatype around(MPI_Datatype inner, int kind) {
  int lengths[3] = {1, 1, 1}, places[3], sizes[2] = {3, 3}, parts[2] = {3, 1}, starts[2] = {0, 1};
  MPI_Aint at[3], lb, extent, true_lb, true_extent, far;
  MPI_Datatype types[3] = {inner, inner, inner}, made;
  MPI_Type_get_extent(inner, &lb, &extent);
  MPI_Type_get_true_extent(inner, &true_lb, &true_extent);
  far = (labs(extent) > true_extent ? labs(extent) : true_extent) + 4 * draw(3);
  for (int i = 0; i < 3; i++) at[i] = far * (1 - i), places[i] = 2 - i;
  switch (kind) {
    case 0: MPI_Type_create_hvector(2, 1, -far, inner, &made); break;
    case 1: MPI_Type_create_hindexed(3, lengths, at, inner, &made); break;
    case 2: MPI_Type_create_struct(3, lengths, at, types, &made); break;
    case 3: MPI_Type_create_resized(inner, true_lb - 4 * draw(5), true_extent + 4 * draw(9) + 16, &made); break;
    case 4: MPI_Type_create_resized(inner, true_lb + 4 * draw(5), true_extent + 16, &made); break;
    case 5: MPI_Type_create_hindexed_block(2, 1, at, inner, &made); break;
    case 6:
      if (extent < true_extent) MPI_Type_contiguous(1, inner, &made);
      else MPI_Type_indexed(3, lengths, places, inner, &made);
      break;
    default:
      if (extent < true_extent || lb != 0) MPI_Type_dup(inner, &made);
      else MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, inner, &made);
  }
  return made;
}

static void expect(int good, const char* what, int number) {
  if (good) return;
  wrong++;
  fprintf(stderr, "rank %d: type %d: %s\n", rank, number, what);
}

static char memory[ROOM], back[ROOM], packed[ROOM], found[ROOM];

static void in_file(const char* name, MPI_Datatype type, int bytes, int number) {
  MPI_File file;
  MPI_Datatype view;
  int position = 0;
  for (int how = 0; how < 4; how++) {
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                  &file);
    MPI_Type_create_resized(MPI_INT, 0, how & 1 ? 12 : 4, &view);
    MPI_Type_commit(&view);
    MPI_File_set_view(file, 4, MPI_INT, view, "native", MPI_INFO_NULL);
    memset(back, 0, sizeof back), memset(found, 0, sizeof found);
    if (how & 2) MPI_File_write_at_all(file, 0, memory + HERE, COUNT, type, MPI_STATUS_IGNORE);
    else MPI_File_write_at(file, 0, memory + HERE, COUNT, type, MPI_STATUS_IGNORE);
    MPI_File_read_at(file, 0, found, bytes, MPI_CHAR, MPI_STATUS_IGNORE);
    expect(memcmp(found, packed, (size_t)bytes) == 0, "what is written", number);
    if (how & 2) MPI_File_read_at_all(file, 0, back + HERE, COUNT, type, MPI_STATUS_IGNORE);
    else MPI_File_read_at(file, 0, back + HERE, COUNT, type, MPI_STATUS_IGNORE);
    MPI_Pack(back + HERE, COUNT, type, found, sizeof found, &position, MPI_COMM_SELF);
    expect(memcmp(found, packed, (size_t)bytes) == 0, "what is read", number);
    position = 0;
    MPI_Type_free(&view);
    MPI_File_close(&file);
  }
}

/* The other rank's memory, by the other's blocks. */
static void in_window(MPI_Win win, MPI_Datatype type, int bytes, int number) {
  int position = 0;
  memset(back, 0, sizeof back), memset(found, 0, sizeof found);
  MPI_Win_fence(0, win);
  MPI_Put(packed, bytes, MPI_CHAR, !rank, HERE, COUNT, type, win);
  MPI_Win_fence(0, win);
  MPI_Pack(back + HERE, COUNT, type, found, sizeof found, &position, MPI_COMM_SELF);
  expect(memcmp(found, packed, (size_t)bytes) == 0, "what MPI_Put writes", number);
}

static void at_random(const char* file, MPI_Win win) {
  for (int number = 0; number < 200; number++) {
    MPI_Datatype type = MPI_INT;
    MPI_Aint true_lb, extent, lb;
    int bytes, position = 0;
    for (int levels = 1 + draw(3); levels > 0; levels--) type = around(type, draw(8));
    MPI_Type_commit(&type);
    MPI_Type_size(type, &bytes);
    MPI_Type_get_true_extent(type, &true_lb, &extent);
    if (labs(true_lb) + extent > HERE / COUNT / 2) continue;
    MPI_Type_get_extent(type, &lb, &extent);
    if (labs(extent) > HERE / COUNT / 2) continue;
    bytes *= COUNT;
    MPI_Pack(memory + HERE, COUNT, type, packed, sizeof packed, &position, MPI_COMM_SELF);
    in_file(file, type, bytes, number);
    in_window(win, type, bytes, number);
    MPI_Type_free(&type);
  }
}

static void deep(MPI_Win win) {
  static const int depths[] = {15, 16, 17, 18, 40, 41, 300, 301};
  for (int i = 0; i < 8; i++) {
    MPI_Datatype type = MPI_INT, more;
    int length = 1, position = 0;
    MPI_Aint at = 4;
    int bytes;
    for (int level = 0; level < depths[i]; level++) {
      const int lengths[2] = {1, 1};
      const MPI_Aint ends[2] = {0, 4};
      const MPI_Datatype both[2] = {MPI_INT, type};
      /* Of a struct it is the second branch that is deep. */
      if (i % 2 && level % 3 == 2) MPI_Type_create_struct(2, lengths, ends, both, &more);
      else MPI_Type_create_hindexed(1, &length, &at, type, &more);
      if (level > 0) MPI_Type_free(&type);
      MPI_Type_create_resized(more, 0, level + 1 < depths[i] ? 8 : 4 * level + 64, &type);
      MPI_Type_free(&more);
    }
    MPI_Type_commit(&type);
    MPI_Type_size(type, &bytes);
    bytes *= COUNT;
    MPI_Pack(memory + HERE, COUNT, type, packed, sizeof packed, &position, MPI_COMM_SELF);
    in_window(win, type, bytes, depths[i]);
    MPI_Sendrecv(memory + HERE, COUNT, type, !rank, 1, found, bytes, MPI_CHAR, !rank, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    expect(memcmp(found, packed, (size_t)bytes) == 0, "what a message of a deep type brings", depths[i]);
    MPI_Type_free(&type);
  }
}

int main(int argc, char** argv) {
  MPI_Win win;
  char file[4096];
  int all = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < ROOM; i++) memory[i] = (char)(i * 7 + i / 251);
  MPI_Win_create(back, sizeof back, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  snprintf(file, sizeof file, "%s.%d", argc > 1 ? argv[1] : "memory_types", rank);
  at_random(file, win);
  deep(win);
  MPI_Win_free(&win);
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("types: wrong %d\n", all);
  MPI_Finalize();
  return 0;
}
