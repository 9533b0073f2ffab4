/* parallel_hdf5 FILE SIZE: sets of SIZE x SIZE integers in a file of parallel HDF5, written by all ranks in several
 * ways, then read back in another pattern, collectively and one by one. Prints how many values are wrong. */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                        \
  do {                                                     \
    if ((call) < 0) {                                      \
      fprintf(stderr, "line %d: HDF5 failed\n", __LINE__); \
      MPI_Abort(MPI_COMM_WORLD, 3);                        \
    }                                                      \
  } while (0)

/* kRows: blocks of rows, contiguous in the file; kSingle: by columns, in chunks, each rank for itself; kPacked:
 * compressed chunks; kGrown: by columns, in a set that has grown */
enum { kRows, kSingle, kPacked, kGrown, kKinds };
enum { kMore = 11 };

typedef struct {
  hsize_t start[2], stride[2], count[2];
} Part;

static int rank, ranks;
static hsize_t size;
static hid_t together, alone; /* how data are transferred */

static int value(hsize_t row, hsize_t column, int kind) { return (int)(row * 1000003u + column * 131u + kind * 7u); }
static hsize_t rows_of(int kind) { return kind == kGrown ? size + kMore : size; }

static Part to_write(int kind) {
  const hsize_t rows = rows_of(kind), r = (hsize_t)rank, n = (hsize_t)ranks;
  if (kind == kSingle || kind == kGrown) return (Part){{0, r}, {1, n}, {rows, (size - r + n - 1) / n}};
  return (Part){{rows * r / n, 0}, {1, 1}, {rows * (r + 1) / n - rows * r / n, size}};
}

static Part to_read(int kind) {
  const hsize_t first = (hsize_t)(rank % 2), step = ranks > 1 ? 3 : 1;
  return (Part){{first, 0}, {2, step}, {(rows_of(kind) - first + 1) / 2, (size + step - 1) / step}};
}

static hid_t make_set(hid_t file, const char* name, int kind) {
  const hsize_t extent[2] = {size, size}, most[2] = {H5S_UNLIMITED, size}, chunk[2] = {17, 13},
                grown[2] = {size + kMore, size};
  const hid_t space = H5Screate_simple(2, extent, kind == kGrown ? most : NULL),
              properties = H5Pcreate(H5P_DATASET_CREATE);
  if (kind != kRows) CHECK(H5Pset_chunk(properties, 2, chunk));
  if (kind == kPacked) CHECK(H5Pset_deflate(properties, 4));
  const hid_t set = H5Dcreate2(file, name, H5T_STD_I32LE, space, H5P_DEFAULT, properties, H5P_DEFAULT);
  CHECK(set);
  if (kind == kGrown) CHECK(H5Dset_extent(set, grown));
  H5Pclose(properties);
  H5Sclose(space);
  return set;
}

/* Writes the part, or reads it: then, how many of its values are wrong. */
static int transfer(hid_t set, int kind, Part part, hid_t how, int reads) {
  const hid_t space = H5Dget_space(set), memory = H5Screate_simple(2, part.count, NULL);
  int* const values = calloc(part.count[0] * part.count[1] + 1, sizeof(int));
  int wrong = 0;
  CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, part.start, part.stride, part.count, NULL));
  if (reads) CHECK(H5Dread(set, H5T_NATIVE_INT, memory, space, how, values));
  for (hsize_t i = 0; i < part.count[0]; ++i)
    for (hsize_t j = 0; j < part.count[1]; ++j) {
      const int right = value(part.start[0] + i * part.stride[0], part.start[1] + j * part.stride[1], kind);
      if (reads) wrong += values[i * part.count[1] + j] != right;
      else values[i * part.count[1] + j] = right;
    }
  if (!reads) CHECK(H5Dwrite(set, H5T_NATIVE_INT, memory, space, how, values));
  free(values);
  H5Sclose(memory);
  H5Sclose(space);
  return wrong;
}

static void note_kind(hid_t set, int kind) {
  const hid_t space = H5Screate(H5S_SCALAR);
  const hid_t note = H5Acreate2(set, "kind", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);
  CHECK(H5Awrite(note, H5T_NATIVE_INT, &kind));
  H5Aclose(note);
  H5Sclose(space);
}

int main(int argc, char** argv) {
  int wrong = 0, all = 0;
  char name[32];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  size = (hsize_t)atoi(argv[2]);
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  CHECK(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL));
  CHECK(H5Pset_coll_metadata_write(access, 1));
  together = H5Pcreate(H5P_DATASET_XFER);
  alone = H5Pcreate(H5P_DATASET_XFER);
  CHECK(H5Pset_dxpl_mpio(together, H5FD_MPIO_COLLECTIVE));
  CHECK(H5Pset_dxpl_mpio(alone, H5FD_MPIO_INDEPENDENT));
  hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, access);
  CHECK(file);
  for (int kind = 0; kind < kKinds; ++kind) {
    snprintf(name, sizeof name, "set%d", kind);
    const hid_t set = make_set(file, name, kind);
    transfer(set, kind, to_write(kind), kind == kSingle ? alone : together, 0);
    note_kind(set, kind);
    H5Dclose(set);
  }
  CHECK(H5Fclose(file));
  file = H5Fopen(argv[1], H5F_ACC_RDONLY, access);
  CHECK(file);
  for (int kind = 0; kind < kKinds; ++kind) {
    snprintf(name, sizeof name, "set%d", kind);
    const hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    wrong += transfer(set, kind, to_read(kind), together, 1) + transfer(set, kind, to_read(kind), alone, 1);
    H5Dclose(set);
  }
  CHECK(H5Fclose(file));
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d ranks: %d wrong values\n", ranks, all);
  MPI_Finalize();
  return wrong != 0;
}
