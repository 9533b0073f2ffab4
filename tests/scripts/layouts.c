/* Where types that MPI lays out have their elements: MPI_Type_create_darray against its definition, indexed elements
 * without an extent, the true extent of structures, and what writes with gaps leave out. layouts FILE. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kMost = 3, kInts = 2048 };

static int wrong, tried;

static void tell(const char* what) {
  if (wrong++ < 10) printf("%s: wrong\n", what);
}

struct array {
  int dims, order;
  int sizes[kMost], kinds[kMost], blocks[kMost], ranks[kMost], coords[kMost];
};

static int has(const struct array* a, int d, int i) {
  const int n = a->sizes[d], p = a->ranks[d];
  if (a->kinds[d] == MPI_DISTRIBUTE_NONE) return 1;
  if (a->kinds[d] == MPI_DISTRIBUTE_CYCLIC) {
    const int block = a->blocks[d] == MPI_DISTRIBUTE_DFLT_DARG ? 1 : a->blocks[d];
    return i / block % p == a->coords[d];
  }
  return i / (a->blocks[d] == MPI_DISTRIBUTE_DFLT_DARG ? (n + p - 1) / p : a->blocks[d]) == a->coords[d];
}

/* The places of this rank's elements in the whole array, in the order of the type. */
static int places_of(const struct array* a, int* places) {
  int all = 1, found = 0;
  for (int d = 0; d < a->dims; d++) all *= a->sizes[d];
  for (int at = 0; at < all; at++) {
    int rest = at, mine = 1;
    for (int k = 0; k < a->dims; k++) {
      const int d = a->order == MPI_ORDER_C ? a->dims - 1 - k : k;
      mine &= has(a, d, rest % a->sizes[d]);
      rest /= a->sizes[d];
    }
    if (mine) places[found++] = at;
  }
  return found;
}

/* Two of them are packed, unpacked, sent to this process itself and, now and then, written to a file. */
static void try(const struct array* a, int rank, int ranks, const char* name) {
  int places[kInts], data[kInts], packed[kInts], back[kInts], all = 1, end = 0, position = 0, right = 1;
  MPI_Datatype type;
  MPI_Aint lb, extent;
  for (int d = 0; d < a->dims; d++) all *= a->sizes[d];
  const int n = places_of(a, places);
  MPI_Type_create_darray(ranks, rank, a->dims, a->sizes, a->kinds, a->blocks, a->ranks, a->order, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Type_get_extent(type, &lb, &extent);
  right &= lb == 0 && extent == 4 * all;
  for (int i = 0; i < 2 * all; i++) data[i] = i, back[i] = -1;
  MPI_Pack(data, 2, type, packed, sizeof packed, &end, MPI_COMM_SELF);
  right &= end == 8 * n;
  for (int i = 0; i < 2 * n && right; i++) right = packed[i] == (i < n ? places[i] : all + places[i - n]);
  MPI_Unpack(packed, end, &position, back, 2, type, MPI_COMM_SELF);
  for (int i = 0, k = 0; i < 2 * all && right; i++) {
    const int is_mine = k < 2 * n && i == (k < n ? places[k] : all + places[k - n]);
    right = back[i] == (is_mine ? i : -1);
    k += is_mine;
  }
  memset(packed, 0, sizeof packed);
  MPI_Sendrecv(data, 2, type, 0, 0, packed, 2 * n, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  for (int i = 0; i < 2 * n && right; i++) right = packed[i] == (i < n ? places[i] : all + places[i - n]);
  if (++tried % 97 == 0 && n > 0) {
    MPI_File file;
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                  &file);
    MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL);
    MPI_File_write(file, data, n, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_read_at(file, 0, back, places[n - 1] + 1, MPI_INT, MPI_STATUS_IGNORE);
    for (int i = 0; i < n && right; i++) right = back[places[i]] == i;
    MPI_File_close(&file);
  }
  MPI_Type_free(&type);
  if (right) return;
  char what[256];
  int length = snprintf(what, sizeof what, "rank %d of an array in the order of %s,", rank,
                        a->order == MPI_ORDER_C ? "C" : "Fortran");
  for (int d = 0; d < a->dims; d++)
    length += snprintf(what + length, sizeof what - (size_t)length, " (%d elements, %s of %d, %d ranks)", a->sizes[d],
                       a->kinds[d] == MPI_DISTRIBUTE_CYCLIC ? "cyclic" : "block", a->blocks[d], a->ranks[d]);
  tell(what);
}

static void try_ranks(struct array* a, const char* name) {
  int ranks = 1;
  for (int d = 0; d < a->dims; d++) ranks *= a->ranks[d];
  for (int rank = 0; rank < ranks; rank++) {
    for (int d = a->dims - 1, rest = rank; d >= 0; d--) a->coords[d] = rest % a->ranks[d], rest /= a->ranks[d];
    for (int order = 0; order < 2; order++) {
      a->order = order ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
      try(a, rank, ranks, name);
    }
  }
}

static void try_dimension(struct array* a, int d, const char* name) {
  const int sizes[] = {1, 2, 3, 5, 7}, blocks[] = {MPI_DISTRIBUTE_DFLT_DARG, 1, 2, 3};
  if (d == a->dims) {
    try_ranks(a, name);
    return;
  }
  for (int s = a->dims == 3 ? 1 : 0; s < (a->dims == 3 ? 3 : 5); s++)
    for (int p = 1; p <= 2; p++)
      for (int b = 0; b < (a->dims == 3 ? 3 : 4); b++)
        for (int kind = 0; kind < 3; kind++) {
          a->sizes[d] = sizes[s];
          a->ranks[d] = p;
          a->blocks[d] = blocks[b];
          a->kinds[d] = kind == 0 ? MPI_DISTRIBUTE_BLOCK : kind == 1 ? MPI_DISTRIBUTE_CYCLIC : MPI_DISTRIBUTE_NONE;
          if (kind == 2 && (p > 1 || b > 0)) continue;
          if (kind == 0 && b > 0 && blocks[b] * p < sizes[s]) continue;
          try_dimension(a, d + 1, name);
        }
}

static void elements_without_extent(void) {
  const double values[] = {7, 8};
  const int lengths[] = {4, 4, 3}, places[] = {3, 12, 22};
  double packed[64];
  int end = 0;
  MPI_Datatype one, type;
  MPI_Type_create_resized(MPI_DOUBLE, 0, 0, &one);
  MPI_Type_indexed(3, lengths, places, one, &type);
  MPI_Type_commit(&type);
  MPI_Pack(values, 2, type, packed, sizeof packed, &end, MPI_COMM_SELF);
  int right = end == 22 * (int)sizeof(double);
  for (int i = 0; i < 22; i++) right &= packed[i] == 7;
  if (!right) tell("indexed elements without an extent");
  MPI_Type_free(&type);
  MPI_Type_free(&one);
}

static void true_extent_without_the_empty(void) {
  const int lengths[] = {1, 2, 1};
  const MPI_Aint at[] = {8, 40, 16};
  MPI_Datatype none, type;
  MPI_Aint lb = -1, extent = -1;
  MPI_Type_contiguous(0, MPI_INT, &none);
  const MPI_Datatype types[] = {MPI_INT, none, MPI_DOUBLE};
  MPI_Type_create_struct(3, lengths, at, types, &type);
  MPI_Type_commit(&type);
  MPI_Type_get_true_extent(type, &lb, &extent);
  if (lb != 8 || extent != 16) tell("the true extent of a structure with an empty part");
  MPI_Type_free(&type);
  MPI_Type_free(&none);
}

/* Bytes that nobody has written are zeros, by each way of writing. */
static void gaps(const char* name) {
  const char* const hints[] = {"enable", "disable", "automatic"};
  for (int hint = 0; hint < 3; hint++)
    for (int way = 0; way < 4; way++) {
      int data[50], back[148], right = 1;
      MPI_File file;
      MPI_Datatype every_third;
      MPI_Info info;
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Info_create(&info);
      MPI_Info_set(info, "romio_ds_write", hints[hint]);
      MPI_Info_set(info, "romio_cb_write", hints[hint]);
      MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info, &file);
      MPI_Info_free(&info);
      MPI_Type_vector(50, 1, 3, MPI_INT, &every_third);
      MPI_Type_commit(&every_third);
      for (int i = 0; i < 50; i++) data[i] = i + 1;
      MPI_File_set_view(file, 0, MPI_INT, every_third, "native", MPI_INFO_NULL);
      if (way == 0) MPI_File_write_at(file, 0, data, 50, MPI_INT, MPI_STATUS_IGNORE);
      else if (way == 1) MPI_File_write_at_all(file, 0, data, 50, MPI_INT, MPI_STATUS_IGNORE);
      else if (way == 2) MPI_File_iwrite_at(file, 0, data, 50, MPI_INT, &request);
      else MPI_File_iwrite_at_all(file, 0, data, 50, MPI_INT, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
      MPI_File_read_at(file, 0, back, 148, MPI_INT, MPI_STATUS_IGNORE);
      for (int i = 0; i < 148; i++) right &= back[i] == (i % 3 == 0 ? i / 3 + 1 : 0);
      char what[64];
      snprintf(what, sizeof what, "what was left out, %s, way %d", hints[hint], way);
      if (!right) tell(what);
      MPI_File_close(&file);
      MPI_Type_free(&every_third);
    }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  /* Memory that is given back is not zeros. */
  void* blocks[64];
  for (int i = 0; i < 64; i++) memset(blocks[i] = malloc(16384), 0xff, 16384);
  for (int i = 0; i < 64; i++) free(blocks[i]);
  for (int dims = 1; dims <= kMost; dims++) {
    struct array a = {.dims = dims};
    try_dimension(&a, 0, argv[1]);
  }
  elements_without_extent();
  true_extent_without_the_empty();
  char by_nfs[4096];
  snprintf(by_nfs, sizeof by_nfs, "nfs:%s", argv[1]);
  gaps(argv[1]);
  gaps(by_nfs);
  printf("%d arrays\n", tried);
  puts(wrong ? "layouts: wrong" : "layouts: right");
  MPI_Finalize();
  return wrong != 0;
}
