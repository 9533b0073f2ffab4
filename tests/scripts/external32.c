/* Files in the representation external32, by all kinds of calls: external32 FILE. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kInts = 400, kCalls = 11 };

static const char* const names[kCalls] = {"_at",  "i..._at", "_at_all",     "i..._at_all", "_all_begin",    "",
                                          "i...", "_shared", "i..._shared", "_ordered",    "_ordered_begin"};
static int rank, size, wrong;
static MPI_Status status;

static void check(int right, int writes, int call, const char* how) {
  if (!right && wrong++ < 5)
    fprintf(stderr, "rank %d: MPI_File_%s, %s%s: wrong\n", rank, names[call], writes ? "write" : "read", how);
}

static void written(MPI_File f, int call, MPI_Offset at, const int* data, int n, MPI_Datatype type, MPI_Request* r) {
  switch (call) {
    case 0: MPI_File_write_at(f, at, data, n, type, &status); break;
    case 1: MPI_File_iwrite_at(f, at, data, n, type, r); break;
    case 2: MPI_File_write_at_all(f, at, data, n, type, &status); break;
    case 3: MPI_File_iwrite_at_all(f, at, data, n, type, r); break;
    case 4: MPI_File_write_all_begin(f, data, n, type), MPI_File_write_all_end(f, data, &status); break;
    case 5: MPI_File_write(f, data, n, type, &status); break;
    case 6: MPI_File_iwrite(f, data, n, type, r); break;
    case 7: MPI_File_write_shared(f, data, n, type, &status); break;
    case 8: MPI_File_iwrite_shared(f, data, n, type, r); break;
    case 9: MPI_File_write_ordered(f, data, n, type, &status); break;
    default: MPI_File_write_ordered_begin(f, data, n, type), MPI_File_write_ordered_end(f, data, &status);
  }
}

static void read_from(MPI_File f, int call, MPI_Offset at, int* data, int n, MPI_Datatype type, MPI_Request* r) {
  switch (call) {
    case 0: MPI_File_read_at(f, at, data, n, type, &status); break;
    case 1: MPI_File_iread_at(f, at, data, n, type, r); break;
    case 2: MPI_File_read_at_all(f, at, data, n, type, &status); break;
    case 3: MPI_File_iread_at_all(f, at, data, n, type, r); break;
    case 4: MPI_File_read_all_begin(f, data, n, type), MPI_File_read_all_end(f, data, &status); break;
    case 5: MPI_File_read(f, data, n, type, &status); break;
    case 6: MPI_File_iread(f, data, n, type, r); break;
    case 7: MPI_File_read_shared(f, data, n, type, &status); break;
    case 8: MPI_File_iread_shared(f, data, n, type, r); break;
    case 9: MPI_File_read_ordered(f, data, n, type, &status); break;
    default: MPI_File_read_ordered_begin(f, data, n, type), MPI_File_read_ordered_end(f, data, &status);
  }
}

/* The same ints from each rank: shared pointers give no order. With gaps in memory every second one is transferred. */
static void try(const char* name, int writes, int call, int gaps) {
  const int n = gaps ? kInts / 2 : kInts, step = gaps ? 2 : 1;
  unsigned char bytes[kInts * 4];
  int data[kInts], count;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Datatype type;
  MPI_File file;
  MPI_Type_vector(n, 1, step, MPI_INT, &type);
  MPI_Type_commit(&type);
  if (!writes && rank == 0) {
    const int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    for (int i = 0; i < 4 * n; i++)
      bytes[i] = (unsigned char)(i % 4 == 3 ? i / 4 + 1 : i % 4 == 2 ? (i / 4 + 1) >> 8 : 0);
    for (int r = 0; r < size; r++)
      if (write(fd, bytes, 4 * (size_t)n) < 0) wrong++;
    close(fd);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  if (writes) MPI_File_set_size(file, 0);
  MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL);
  const MPI_Offset at = (MPI_Offset)n * rank;
  MPI_File_seek(file, at, MPI_SEEK_SET);
  for (int i = 0; i < kInts; i++) data[i] = writes && i % step == 0 ? i / step + 1 : -1;
  if (writes) written(file, call, at, data, 1, type, &request);
  else read_from(file, call, at, data, 1, type, &request);
  if (request != MPI_REQUEST_NULL) MPI_Wait(&request, &status);
  MPI_Get_count(&status, type, &count);
  check(count == 1, writes, call, gaps ? ", with gaps, its count" : ", its count");
  MPI_File_close(&file);
  MPI_Barrier(MPI_COMM_WORLD);
  int right = 1;
  if (writes) {
    const int fd = open(name, O_RDONLY);
    right = pread(fd, bytes, 4 * (size_t)n, 4 * (off_t)n * rank) == 4 * n;
    close(fd);
    for (int i = 0; right && i < n; i++) right = bytes[4 * i + 3] + 256 * bytes[4 * i + 2] == i + 1 && !bytes[4 * i];
  } else {
    for (int i = 0; i < kInts - gaps; i++) right &= data[i] == (i % step == 0 ? i / step + 1 : -1);
  }
  check(right, writes, call, gaps ? ", with gaps" : "");
  MPI_Type_free(&type);
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int call = 0; call < kCalls; call++)
    for (int how = 0; how < 4; how++) try(argv[1], how % 2, call, how / 2);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) puts(wrong ? "external32: wrong" : "external32: right");
  MPI_Finalize();
  return wrong != 0;
}
