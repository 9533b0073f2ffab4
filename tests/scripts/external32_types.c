/* What types of several basic types become in external32, packed and in files: external32_types FILE. */
#include <complex.h>
#include <fcntl.h>
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kMost = 4096 };

static int rank, wrong;

static void check(int right, const char* what) {
  if (right) return;
  wrong++;
  printf("rank %d: %s: wrong\n", rank, what);
}

/* The bytes of `n` values of `size` bytes each, the highest first. */
static unsigned char* put(unsigned char* to, const void* from, int size, int n) {
  const unsigned char* bytes = from;
  for (int i = 0; i < n; i++)
    for (int k = 0; k < size; k++) *to++ = bytes[i * size + size - 1 - k];
  return to;
}

/* Packed it is what is expected, and unpacked it is the same again, with what lies in its gaps left alone. */
static void packs(const char* what, const void* data, size_t bytes, int n, MPI_Datatype type,
                  const unsigned char* expected, MPI_Aint length) {
  unsigned char packed[kMost], again[kMost], twice[kMost];
  MPI_Aint size = -1, position = 0;
  MPI_Pack_external_size("external32", n, type, &size);
  if (size != length) {
    printf("%s: %ld bytes instead of %ld\n", what, (long)size, (long)length);
    wrong++;
    return;
  }
  memset(packed, 0xee, sizeof packed);
  MPI_Pack_external("external32", data, n, type, packed, size, &position);
  check(position == length && memcmp(packed, expected, (size_t)length) == 0 && packed[length] == 0xee, what);
  memset(again, 0, bytes);
  memset(twice, 0xff, bytes);
  position = 0;
  MPI_Unpack_external("external32", packed, size, &position, twice, n, type);
  position = 0;
  MPI_Unpack_external("external32", packed, size, &position, again, n, type);
  /* Each byte is as it was packed, or has been left alone; of a long double not all count. */
  for (size_t i = 0; i < bytes && type != MPI_LONG_DOUBLE; i++)
    if (!(again[i] == 0 && twice[i] == 0xff) &&
        !(again[i] == twice[i] && again[i] == ((const unsigned char*)data)[i])) {
      check(0, what);
      break;
    }
  unsigned char once_more[kMost];
  MPI_Aint end = 0;
  MPI_Pack_external("external32", again, n, type, once_more, sizeof once_more, &end);
  check(position == length && end == length && memcmp(once_more, expected, (size_t)length) == 0, what);
}

struct mixed {
  char letter;
  int whole;
  double real;
  short few[3];
  float complex pair;
};

static MPI_Datatype type_of_mixed(void) {
  const int lengths[] = {1, 1, 1, 3, 1};
  const MPI_Aint at[] = {offsetof(struct mixed, letter), offsetof(struct mixed, whole), offsetof(struct mixed, real),
                         offsetof(struct mixed, few), offsetof(struct mixed, pair)};
  const MPI_Datatype types[] = {MPI_CHAR, MPI_INT, MPI_DOUBLE, MPI_SHORT, MPI_C_FLOAT_COMPLEX};
  MPI_Datatype gaps, type;
  MPI_Type_create_struct(5, lengths, at, types, &gaps);
  MPI_Type_create_resized(gaps, 0, sizeof(struct mixed), &type);
  MPI_Type_free(&gaps);
  MPI_Type_commit(&type);
  return type;
}

static unsigned char* put_mixed(unsigned char* to, const struct mixed* m) {
  const float parts[] = {crealf(m->pair), cimagf(m->pair)};
  to = put(to, &m->letter, 1, 1);
  to = put(to, &m->whole, 4, 1);
  to = put(to, &m->real, 8, 1);
  to = put(to, m->few, 2, 3);
  return put(to, parts, 4, 2);
}

static void fill(struct mixed* m, int n) {
  for (int i = 0; i < n; i++)
    m[i] = (struct mixed){
        (char)('a' + i), 1000003 * (i - 2), 1.0 / (i + 3), {(short)i, -7, 258}, 1.5f * (float)i - 2.25f * I};
}

static void basics(void) {
  unsigned char expected[kMost];
  const int ints[] = {1, -2, 1 << 20};
  packs("MPI_INT", ints, sizeof ints, 3, MPI_INT, expected, put(expected, ints, 4, 3) - expected);
  packs("MPI_2INT", ints, sizeof ints, 1, MPI_2INT, expected, put(expected, ints, 4, 2) - expected);
  const double complex doubles[] = {1.25 - 3.5 * I, 0.1 * I};
  put(expected, doubles, 8, 4);
  packs("MPI_C_DOUBLE_COMPLEX", doubles, sizeof doubles, 2, MPI_C_DOUBLE_COMPLEX, expected, 32);
  packs("MPI_DOUBLE_COMPLEX", doubles, sizeof doubles, 2, MPI_DOUBLE_COMPLEX, expected, 32);
  const float floats[] = {0.5f, -1.75f};
  put(expected, floats, 4, 2);
  packs("MPI_COMPLEX", floats, sizeof floats, 1, MPI_COMPLEX, expected, 8);
  const struct {
    double value;
    int at;
  } places[] = {{2.5, 7}, {-1e9, -3}};
  put(put(put(put(expected, &places[0].value, 8, 1), &places[0].at, 4, 1), &places[1].value, 8, 1), &places[1].at, 4,
      1);
  packs("MPI_DOUBLE_INT", places, sizeof places, 2, MPI_DOUBLE_INT, expected, 24);
  /* Longs have 4 bytes there. */
  const long longs[] = {-5, 77777};
  const int as_ints[] = {-5, 77777};
  packs("MPI_LONG", longs, sizeof longs, 2, MPI_LONG, expected, put(expected, as_ints, 4, 2) - expected);
  const unsigned long unsigned_long = 0xfffffff0u;
  const unsigned as_unsigned = 0xfffffff0u;
  packs("MPI_UNSIGNED_LONG", &unsigned_long, 8, 1, MPI_UNSIGNED_LONG, expected,
        put(expected, &as_unsigned, 4, 1) - expected);
  unsigned long back = 1;
  MPI_Aint position = 0;
  MPI_Unpack_external("external32", expected, 4, &position, &back, 1, MPI_UNSIGNED_LONG);
  check(back == unsigned_long, "MPI_UNSIGNED_LONG unpacked");
#if defined(__SIZEOF_FLOAT128__)
  const long double wide = -1.1L;
  const __float128 as_wide = wide;
  packs("MPI_LONG_DOUBLE", &wide, sizeof wide, 1, MPI_LONG_DOUBLE, expected, put(expected, &as_wide, 16, 1) - expected);
#endif
}

static void mixtures(void) {
  struct mixed m[6];
  unsigned char expected[kMost], *end = expected;
  MPI_Datatype type = type_of_mixed(), made;
  fill(m, 6);
  for (int i = 0; i < 6; i++) end = put_mixed(end, &m[i]);
  packs("a structure", m, sizeof m, 6, type, expected, end - expected);
  MPI_Type_vector(3, 1, 2, type, &made);
  MPI_Type_commit(&made);
  end = expected;
  for (int i = 0; i < 6; i += 2) end = put_mixed(end, &m[i]);
  packs("a vector of structures", m, sizeof m, 1, made, expected, end - expected);
  MPI_Type_free(&made);
  const int sizes[] = {2, 3}, parts[] = {2, 2}, starts[] = {0, 1};
  MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, type, &made);
  MPI_Type_commit(&made);
  end = put_mixed(put_mixed(put_mixed(put_mixed(expected, &m[1]), &m[2]), &m[4]), &m[5]);
  packs("a part of an array of structures", m, sizeof m, 1, made, expected, end - expected);
  /* A structure of structures, out of order and with a part of which there is none. */
  const int lengths[] = {1, 0, 2, 1};
  const MPI_Aint at[] = {3 * sizeof m[0], 0, 4 * sizeof m[0], offsetof(struct mixed, whole)};
  const MPI_Datatype types[] = {type, MPI_DOUBLE, type, MPI_INT};
  MPI_Type_free(&made);
  MPI_Type_create_struct(4, lengths, at, types, &made);
  MPI_Type_commit(&made);
  end = put(put_mixed(put_mixed(put_mixed(expected, &m[3]), &m[4]), &m[5]), &m[0].whole, 4, 1);
  packs("a structure of structures", m, sizeof m, 1, made, expected, end - expected);
  MPI_Type_free(&made);
  MPI_Type_free(&type);
}

/* Each rank's structures lie behind those of the ranks before; `way` says by which calls. */
static void in_files(const char* name, int way) {
  enum { kOfEach = 5, kBytes = 27 };
  struct mixed m[kOfEach + 1], back[kOfEach + 1];
  unsigned char expected[kMost], got[kMost], *end = expected;
  MPI_Datatype type = type_of_mixed();
  MPI_File file;
  MPI_Status status;
  int count = -1;
  fill(m, kOfEach);
  for (int i = 0; i < kOfEach; i++) m[i].whole += rank, end = put_mixed(end, &m[i]);
  check(end - expected == kOfEach * kBytes, "the length of a structure");
  MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_set_size(file, 0);
  MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "external32", MPI_INFO_NULL);
  const MPI_Offset at = (MPI_Offset)rank * kOfEach * kBytes;
  if (way == 0) MPI_File_write_at(file, at, m, kOfEach, type, &status);
  else MPI_File_write_at_all(file, at, m, kOfEach, type, &status);
  MPI_Get_count(&status, type, &count);
  check(count == kOfEach, "the count of what was written");
  MPI_File_sync(file);
  MPI_Barrier(MPI_COMM_WORLD);
  const int fd = open(name, O_RDONLY);
  check(pread(fd, got, kOfEach * kBytes, at) == kOfEach * kBytes && memcmp(got, expected, kOfEach * kBytes) == 0,
        "what was written");
  close(fd);
  /* One more than there are, of the last rank: what the file does not have stays as it was. */
  int size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int last = rank == size - 1;
  for (int i = 0; i <= kOfEach; i++) back[i] = (struct mixed){'#', 4711, 0.5, {9, 9, 9}, 3};
  if (way == 0) MPI_File_read_at(file, at, back, kOfEach + last, type, &status);
  else MPI_File_read_at_all(file, at, back, kOfEach + last, type, &status);
  MPI_Get_count(&status, type, &count);
  check(count == kOfEach, "the count of what was read");
  for (int i = 0; i < kOfEach; i++)
    check(back[i].letter == m[i].letter && back[i].whole == m[i].whole && back[i].real == m[i].real &&
              memcmp(back[i].few, m[i].few, sizeof m[i].few) == 0 && back[i].pair == m[i].pair,
          "what was read");
  check(back[kOfEach].whole == 4711 && back[kOfEach].pair == 3, "what was not read");
  /* Of another size in the file: refused, by those who ask. */
  long wide = 5;
  int class = MPI_SUCCESS, code = MPI_SUCCESS;
  const int asks = way == 0 || rank == 0;
  if (way == 0) code = MPI_File_write_at(file, 0, &wide, 1, MPI_LONG, &status);
  else code = MPI_File_write_at_all(file, 0, &wide, asks, asks ? MPI_LONG : MPI_INT, &status);
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  check(class == (asks ? MPI_ERR_CONVERSION : MPI_SUCCESS), "the error of MPI_LONG");
  code = MPI_File_set_view(file, 0, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL);
  MPI_Error_class(code, &class);
  check(class == MPI_ERR_CONVERSION, "the error of a view of MPI_LONG");
  MPI_File_close(&file);
  MPI_Type_free(&type);
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  basics();
  mixtures();
  for (int way = 0; way < 2; way++) in_files(argv[1], way);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) puts(wrong ? "external32_types: wrong" : "external32_types: right");
  MPI_Finalize();
  return wrong != 0;
}
