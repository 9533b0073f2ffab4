/* large_counts MODE [FILE]: calls with more elements than an int can count, 2.2 GB, of which everything comes where it
 * belongs. The buffers are a window of 64 MB that is mapped again and again, and an end of their own: the test needs
 * little memory, and it does not matter in which order the parts come. One-sided operations go from rank 0 to the last
 * rank, which may be rank 0 itself. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef unsigned char Byte;
typedef int Init(const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);

enum { kNothing = -1, kSent = 1, kOld = 2, kOrigin = 3 };
static const long kWindows = 33, kWindow = 64 << 20, kEnd = 64 << 10;
static const MPI_Count kCount = 33L * (64 << 20) + (64 << 10);

static int rank, last;
static const char *mode, *path;
static Byte *data, *origin, *result;

static void expect(int right, const char* what) {
  if (right) return;
  fprintf(stderr, "large_counts %s, rank %d: %s\n", mode, rank, what);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static Byte* repeated(void) {
  const int file = memfd_create("window", 0);
  Byte* all = mmap(NULL, (size_t)kCount, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  expect(all != MAP_FAILED && ftruncate(file, kWindow + kEnd) == 0, "no memory");
  for (long i = 0; i < kWindows; ++i) {
    const long bytes = i < kWindows - 1 ? kWindow : kWindow + kEnd;
    Byte* at = all + i * kWindow;
    expect(mmap(at, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == at, "no window");
  }
  close(file);
  return all;
}

/* The last window, with the end behind it, is all there is. */
static Byte* there_is(Byte* all) { return all + (kWindows - 1) * kWindow; }

static Byte value(long place, int what) { return (Byte)(((unsigned long)place * 2654435761u >> 13) + (unsigned)what); }

static void fill(Byte* all, int what) {
  Byte* at = there_is(all);
  for (long p = 0; p < kWindow + kEnd; ++p) at[p] = value(p, what);
}

/* What is there is `what`, to which `added` was added, to the window as often as it is mapped. */
static void expect_sums(Byte* all, int what, int added) {
  const Byte* at = there_is(all);
  long wrong = 0;
  for (long p = 0; p < kWindow + kEnd; ++p) {
    const int times = added == kNothing ? 0 : p < kWindow ? (int)kWindows : 1;
    wrong += at[p] != (Byte)(value(p, what) + times * value(p, added));
  }
  expect(wrong == 0, "wrong data");
}

static void expect_data(Byte* all, int what) { expect_sums(all, what, kNothing); }

static void expect_count(const MPI_Status* status) {
  MPI_Count count;
  MPI_Get_count_c(status, MPI_CHAR, &count);
  expect(count == kCount, "wrong count");
}

static void expect_arrived(const MPI_Status* status) {
  expect_count(status);
  expect_data(data, kSent);
  fill(data, kOld);
}

/* ---- messages ------------------------------------------------------------------------------------------------ */

static void mprobe(void) {
  MPI_Message message;
  MPI_Status status;
  if (rank == 0) MPI_Send_c(data, kCount, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
  if (rank != 1) return;
  MPI_Mprobe(0, 0, MPI_COMM_WORLD, &message, &status);
  expect_count(&status);
  MPI_Mrecv_c(data, kCount, MPI_CHAR, &message, &status);
  expect_arrived(&status);
}

static void improbe(void) {
  MPI_Message message;
  MPI_Request request;
  MPI_Status status;
  int there = 0;
  if (rank == 0) MPI_Ssend_c(data, kCount, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
  if (rank != 1) return;
  while (!there) MPI_Improbe(0, 0, MPI_COMM_WORLD, &there, &message, &status);
  MPI_Imrecv_c(data, kCount, MPI_CHAR, &message, &request);
  MPI_Wait(&request, &status);
  expect_arrived(&status);
}

static void persistent(Init* send_init) {
  MPI_Request request;
  MPI_Status status;
  if (rank == 0) send_init(data, kCount, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request);
  if (rank == 1) MPI_Recv_init_c(data, kCount, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request);
  for (int times = 0; times < 2; ++times) {
    if (rank == 1) MPI_Start(&request);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) MPI_Start(&request);
    if (rank < 2) MPI_Wait(&request, &status);
    if (rank == 1) expect_arrived(&status);
  }
  if (rank < 2) MPI_Request_free(&request);
}

static void send_init(void) { persistent(MPI_Send_init_c); }
static void ssend_init(void) { persistent(MPI_Ssend_init_c); }
static void rsend_init(void) { persistent(MPI_Rsend_init_c); }

static void rsend(void) {
  MPI_Request request;
  MPI_Status status;
  if (rank == 1) MPI_Irecv_c(data, kCount, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) MPI_Rsend_c(data, kCount, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
  if (rank != 1) return;
  MPI_Wait(&request, &status);
  expect_arrived(&status);
}

/* ---- collective calls ---------------------------------------------------------------------------------------- */

static void ibcast(void) {
  MPI_Request request;
  MPI_Ibcast_c(data, kCount, MPI_CHAR, 0, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect_data(data, kSent);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != last) fill(data, kOld);
  if (rank == last) fill(data, kOrigin);
  MPI_Ibcast(data, (int)(kCount / 4), MPI_INT, last, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect_data(data, kOrigin);
}

static void bcast_init(void) {
  MPI_Request request;
  MPI_Bcast_init_c(data, kCount, MPI_CHAR, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int times = 0; times < 2; ++times) {
    if (rank != 0) fill(data, kOld);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect_data(data, kSent);
  }
  MPI_Request_free(&request);
}

/* ---- one-sided ----------------------------------------------------------------------------------------------- */

static MPI_Win window;

static void epoch(void (*operation)(void)) {
  fill(data, kOld);
  fill(origin, kOrigin);
  fill(result, kSent);
  MPI_Win_create(data, kCount, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  if (rank == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, last, 0, window);
    operation();
    MPI_Win_unlock(last, window);
  }
  MPI_Win_free(&window);
}

static void do_put(void) {
  MPI_Put_c(origin, kCount, MPI_CHAR, MPI_PROC_NULL, 0, kCount, MPI_CHAR, window);
  MPI_Put_c(origin, kCount, MPI_CHAR, last, 0, kCount, MPI_CHAR, window);
}

static void do_put_of_made(void) {
  MPI_Datatype one;
  MPI_Type_contiguous(1, MPI_CHAR, &one);
  MPI_Type_commit(&one);
  MPI_Put_c(origin, kCount, one, last, 0, kCount, MPI_CHAR, window);
  MPI_Type_free(&one);
}

static void do_rput(void) {
  MPI_Request request;
  MPI_Rput_c(origin, kCount, MPI_CHAR, last, 0, kCount, MPI_CHAR, window, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void do_get(void) { MPI_Get_c(origin, kCount, MPI_CHAR, last, 0, kCount, MPI_CHAR, window); }

static void do_rget(void) {
  MPI_Request request;
  MPI_Rget_c(origin, kCount, MPI_CHAR, last, 0, kCount, MPI_CHAR, window, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect_data(origin, kOld);
}

static void do_accumulate(void) {
  MPI_Accumulate_c(origin, kCount, MPI_UINT8_T, last, 0, kCount, MPI_UINT8_T, MPI_SUM, window);
}

static void do_raccumulate(void) {
  MPI_Request request;
  MPI_Raccumulate_c(origin, kCount, MPI_UINT8_T, last, 0, kCount, MPI_UINT8_T, MPI_SUM, window, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void do_get_accumulate(void) {
  MPI_Get_accumulate_c(origin, kCount, MPI_UINT8_T, result, kCount, MPI_UINT8_T, last, 0, kCount, MPI_UINT8_T, MPI_SUM,
                       window);
}

static void do_rget_accumulate(void) {
  MPI_Request request;
  MPI_Rget_accumulate_c(origin, kCount, MPI_UINT8_T, result, kCount, MPI_UINT8_T, last, 0, kCount, MPI_UINT8_T, MPI_SUM,
                        window, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void do_no_op(void) {
  MPI_Get_accumulate_c(NULL, 0, MPI_UINT8_T, origin, kCount, MPI_UINT8_T, last, 0, kCount, MPI_UINT8_T, MPI_NO_OP,
                       window);
}

static void expect_put(void (*operation)(void)) {
  epoch(operation);
  if (rank == last) expect_data(data, kOrigin);
}

static void expect_got(void (*operation)(void)) {
  epoch(operation);
  if (rank == 0) expect_data(origin, kOld);
  expect_data(data, kOld);
}

static void expect_added(void (*operation)(void)) {
  epoch(operation);
  if (rank == last) expect_sums(data, kOld, kOrigin);
}

/* Of a window that is mapped again and again more and more is fetched; its end is there once. */
static void expect_fetched(void (*operation)(void)) {
  expect_added(operation);
  if (rank != 0) return;
  const Byte* at = there_is(result);
  for (long p = kWindow; p < kWindow + kEnd; ++p) expect(at[p] == value(p, kOld), "wrong result");
}

static void put(void) { expect_put(do_put); }
static void put_of_made(void) { expect_put(do_put_of_made); }
static void rput(void) { expect_put(do_rput); }
static void get(void) { expect_got(do_get); }
static void rget(void) { expect_got(do_rget); }
static void no_op(void) { expect_got(do_no_op); }
static void accumulate(void) { expect_added(do_accumulate); }
static void raccumulate(void) { expect_added(do_raccumulate); }
static void get_accumulate(void) { expect_fetched(do_get_accumulate); }
static void rget_accumulate(void) { expect_fetched(do_rget_accumulate); }

/* ---- files --------------------------------------------------------------------------------------------------- */

static MPI_File file;

static void open_file(void) {
  const int how = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
  expect(MPI_File_open(MPI_COMM_WORLD, path, how, MPI_INFO_NULL, &file) == MPI_SUCCESS, "no file");
}

static void expect_size(void) {
  MPI_Offset size;
  MPI_File_get_size(file, &size);
  expect(size == kCount, "wrong size of the file");
}

/* Rank 0 for itself. */
static void files(void) {
  MPI_Datatype gaps;
  MPI_Request request;
  MPI_Status status;
  int class = MPI_SUCCESS;
  open_file();
  if (rank == 0) {
    MPI_File_write_at_c(file, 0, data, kCount, MPI_CHAR, &status);
    expect_count(&status);
    expect_size();
    fill(data, kOld);
    MPI_File_read_at_c(file, 0, data, kCount, MPI_CHAR, &status);
    expect_arrived(&status);
    MPI_File_read_c(file, data, kCount, MPI_CHAR, &status);
    expect_arrived(&status);
    MPI_File_iread_at_c(file, 0, data, kCount, MPI_CHAR, &request);
    MPI_Wait(&request, &status);
    expect_arrived(&status);
    MPI_File_iread_at(file, 0, data, (int)(kCount / 4), MPI_INT, &request);
    MPI_Wait(&request, &status);
    expect_arrived(&status);
    MPI_File_read_shared_c(file, data, kCount, MPI_CHAR, &status);
    expect_arrived(&status);
    fill(data, kSent);
    MPI_File_set_size(file, 0);
    MPI_File_iwrite_at_c(file, 0, data, kCount, MPI_CHAR, &request);
    MPI_Wait(&request, &status);
    expect_count(&status);
    expect_size();

    /* Data with gaps is refused. */
    MPI_Type_create_resized(MPI_CHAR, 0, 2, &gaps);
    MPI_Type_commit(&gaps);
    const int error = MPI_File_read_at_c(file, 0, data, kCount, gaps, &status);
    if (error != MPI_SUCCESS) MPI_Error_class(error, &class);
    expect(class == MPI_ERR_COUNT, "data with gaps is not refused");
    MPI_Type_free(&gaps);
  }
  MPI_File_close(&file);
}

/* Rank 0 writes all, and the last one reads it. */
static void files_all(void) {
  MPI_Request request;
  MPI_Status status;
  const MPI_Count written = rank == 0 ? kCount : 0, read = rank == last ? kCount : 0;
  open_file();
  MPI_File_write_at_all_c(file, 0, data, written, MPI_CHAR, &status);
  if (rank == 0) expect_count(&status);
  MPI_Barrier(MPI_COMM_WORLD); /* rank 0 has written */
  expect_size();
  fill(data, kOld);
  MPI_File_read_at_all_c(file, 0, data, read, MPI_CHAR, &status);
  if (rank == last) expect_arrived(&status);
  MPI_File_read_all_c(file, data, read, MPI_CHAR, &status);
  if (rank == last) expect_arrived(&status);
  MPI_File_iread_at_all_c(file, 0, data, read, MPI_CHAR, &request);
  MPI_Wait(&request, &status);
  if (rank == last) expect_arrived(&status);
  MPI_File_read_at_all_begin_c(file, 0, data, read, MPI_CHAR);
  MPI_File_read_at_all_end(file, data, &status);
  if (rank == last) expect_arrived(&status);
  MPI_File_read_ordered_c(file, data, read, MPI_CHAR, &status);
  if (rank == last) expect_arrived(&status);
  if (rank == 0) fill(data, kSent);
  MPI_File_iwrite_at_all_c(file, 0, data, written, MPI_CHAR, &request);
  MPI_Wait(&request, &status);
  if (rank == 0) expect_count(&status);
  MPI_Barrier(MPI_COMM_WORLD); /* rank 0 has written */
  expect_size();
  MPI_File_close(&file);
}

static const struct {
  const char* name;
  void (*run)(void);
} kModes[] = {
    {"mprobe", mprobe},
    {"improbe", improbe},
    {"send_init", send_init},
    {"ssend_init", ssend_init},
    {"rsend_init", rsend_init},
    {"rsend", rsend},
    {"ibcast", ibcast},
    {"bcast_init", bcast_init},
    {"put", put},
    {"put_of_made", put_of_made},
    {"rput", rput},
    {"get", get},
    {"rget", rget},
    {"no_op", no_op},
    {"accumulate", accumulate},
    {"raccumulate", raccumulate},
    {"get_accumulate", get_accumulate},
    {"rget_accumulate", rget_accumulate},
    {"files", files},
    {"files_all", files_all},
};

int main(int argc, char** argv) {
  int size, run = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  last = size - 1;
  mode = argc > 1 ? argv[1] : "";
  path = argc > 2 ? argv[2] : "large_counts.file";
  data = repeated();
  origin = repeated();
  result = repeated();
  fill(data, rank == 0 ? kSent : kOld);
  for (size_t i = 0; i < sizeof kModes / sizeof *kModes; ++i) {
    if (strcmp(kModes[i].name, mode) != 0) continue;
    kModes[i].run();
    run = 1;
  }
  expect(run, "no such mode");
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("%s: right\n", mode);
  MPI_Finalize();
  return 0;
}
