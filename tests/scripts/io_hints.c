/* Used by io_hints.sh. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { kBlocks = 300, kLength = 7, kInts = kBlocks * kLength };
static int wrong;
static void expect(int is_right, const char* what) {
  if (!is_right && ++wrong < 5) printf("wrong: %s\n", what);
}
/* One of the ways to write the ints of `memory` (every second one of `data`) to the view's beginning. */
static void write_by(int way, MPI_File file, const int* data, MPI_Datatype memory) {
  MPI_Status status;
  MPI_Request request;
  int count;
  switch (way) {
    case 0: MPI_File_write_all(file, data, 1, memory, &status); break;
    case 1: MPI_File_write_at_all(file, 0, data, 1, memory, &status); break;
    case 2: MPI_File_write_at(file, 0, data, 1, memory, &status); break;
    case 3:
      MPI_File_iwrite_at(file, 0, data, 1, memory, &request);
      MPI_Wait(&request, &status);
      break;
    default: MPI_File_iwrite_at_all(file, 0, data, 1, memory, &request); MPI_Wait(&request, &status);
  }
  MPI_Get_count(&status, MPI_INT, &count);
  expect(count == kInts, "count written");
}
static void round_of(int way, MPI_File file, int rank, MPI_Datatype memory) {
  static int data[2 * kInts], got[2 * kInts];
  MPI_Status status;
  for (int i = 0; i < 2 * kInts; ++i) {
    data[i] = rank * 1000000 + way * 10000 + i;
    got[i] = -1;
  }
  write_by(way, file, data, memory);
  MPI_File_sync(file);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_sync(file);
  if (way % 2) MPI_File_read_at_all(file, 0, got, 1, memory, &status);
  else MPI_File_read_at(file, 0, got, 1, memory, &status);
  for (int i = 0; i < kInts; ++i) expect(got[2 * i] == data[2 * i], "what is read");
  MPI_Barrier(MPI_COMM_WORLD);
}
/* What the file says of the hint. */
static const char* hint_of(MPI_File file, const char* key) {
  static char value[MPI_MAX_INFO_VAL + 1];
  MPI_Info used;
  int flag;
  MPI_File_get_info(file, &used);
  MPI_Info_get(used, key, MPI_MAX_INFO_VAL, value, &flag);
  MPI_Info_free(&used);
  return flag ? value : "none";
}
/* hints FILE KEY VALUE EXPECTED: the file opened with the hint, and once more with it in the view only. */
int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Info info;
  MPI_File file;
  MPI_Datatype part, memory;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Info_create(&info);
  MPI_Info_set(info, argv[2], argv[3]);
  MPI_Type_vector(kBlocks, kLength, ranks * kLength, MPI_INT, &part);
  MPI_Type_commit(&part);
  MPI_Type_vector(kInts, 1, 2, MPI_INT, &memory);
  MPI_Type_commit(&memory);
  for (int in_view = 0; in_view < 2; ++in_view) {
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, in_view ? MPI_INFO_NULL : info, &file);
    MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL);
    if (!in_view) expect(!strcmp(hint_of(file, argv[2]), argv[4]), hint_of(file, argv[2]));
    MPI_File_set_view(file, rank * kLength * sizeof(int), MPI_INT, part, "native", in_view ? info : MPI_INFO_NULL);
    for (int way = 0; way < 5; ++way) round_of(way, file, rank, memory);
    MPI_File_close(&file);
    /* and without a call that reads or writes */
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDWR, info, &file);
    MPI_File_close(&file);
  }
  /* A buffer does not grow while it may be in use: what the view says is not more than there is. */
  MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  const int before = atoi(hint_of(file, "cb_buffer_size"));
  MPI_Info_set(info, "cb_buffer_size", "1000000000");
  MPI_File_set_info(file, info);
  expect(atoi(hint_of(file, "cb_buffer_size")) == before, "buffer");
  MPI_File_close(&file);
  MPI_Type_free(&part);
  MPI_Type_free(&memory);
  MPI_Info_free(&info);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("hints: %s\n", wrong ? "wrong" : "right");
  MPI_Finalize();
  return 0;
}
