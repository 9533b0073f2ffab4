/* Files that cannot be written or read, by all kinds of calls: each says so, to every process whose data it concerns,
 * by the error handler of the file, and none waits for ever. files_that_fail FILE: of a folder with some room. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { kBytes = 600 };

enum call {
  I_AT,
  I_OWN,
  I_SHARED,
  I_ALL,
  I_AT_ALL,
  ALL,
  SPLIT,
  CALLS,
};
static const char* const names[CALLS] = {"MPI_File_i..._at",      "MPI_File_i...",        "MPI_File_i..._shared",
                                         "MPI_File_i..._all",     "MPI_File_i..._at_all", "MPI_File_..._all",
                                         "MPI_File_..._all_begin"};

static int rank, size, wrong, handled;
static char data[kBytes];
static MPI_Offset from; /* of this rank */

static void check(int right, const char* what, const char* why) {
  if (!right && wrong++ < 5) fprintf(stderr, "rank %d: %s: %s\n", rank, what, why);
}

static void note(MPI_File* file, int* code, ...) {
  (void)file, (void)code;
  ++handled;
}

static int begin(enum call call, int writes, MPI_File f, MPI_Request* r, MPI_Status* s) {
  const int n = kBytes;
  int error;
  switch (call) {
    case I_AT:
      return writes ? MPI_File_iwrite_at(f, 0, data, n, MPI_BYTE, r) : MPI_File_iread_at(f, 0, data, n, MPI_BYTE, r);
    case I_OWN: return writes ? MPI_File_iwrite(f, data, n, MPI_BYTE, r) : MPI_File_iread(f, data, n, MPI_BYTE, r);
    case I_SHARED:
      return writes ? MPI_File_iwrite_shared(f, data, n, MPI_BYTE, r) : MPI_File_iread_shared(f, data, n, MPI_BYTE, r);
    case I_ALL:
      return writes ? MPI_File_iwrite_all(f, data, n, MPI_BYTE, r) : MPI_File_iread_all(f, data, n, MPI_BYTE, r);
    case I_AT_ALL:
      return writes ? MPI_File_iwrite_at_all(f, from, data, n, MPI_BYTE, r)
                    : MPI_File_iread_at_all(f, from, data, n, MPI_BYTE, r);
    case ALL: return writes ? MPI_File_write_all(f, data, n, MPI_BYTE, s) : MPI_File_read_all(f, data, n, MPI_BYTE, s);
    default:
      error = writes ? MPI_File_write_all_begin(f, data, n, MPI_BYTE) : MPI_File_read_all_begin(f, data, n, MPI_BYTE);
      if (error != MPI_SUCCESS) return error;
      return writes ? MPI_File_write_all_end(f, data, s) : MPI_File_read_all_end(f, data, s);
  }
}

/* In blocks of 10 bytes, of which each rank has every size-th. */
static void interleave(MPI_File file) {
  MPI_Datatype type;
  MPI_Type_vector(kBytes / 10, 10, 10 * size, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  MPI_File_set_view(file, 10 * rank, MPI_BYTE, type, "native", MPI_INFO_NULL);
  MPI_Type_free(&type);
}

static MPI_File opened(const char* name, int mode, const char* buffer) {
  MPI_File file;
  MPI_Info hints;
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "cb_buffer_size", buffer); /* few bytes: many rounds */
  if (MPI_File_open(MPI_COMM_WORLD, name, mode, hints, &file) != MPI_SUCCESS) {
    fprintf(stderr, "cannot open %s\n", name);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Info_free(&hints);
  return file;
}

static void fails(enum call call, int writes, int interleaved, int rounds) {
  char what[200];
  snprintf(what, sizeof what, "%s, %s%s%s", names[call], writes ? "write" : "read", interleaved ? ", interleaved" : "",
           rounds ? ", many rounds" : "");
  MPI_File file = opened(writes ? "/dev/full" : "/proc/self/mem", writes ? MPI_MODE_WRONLY : MPI_MODE_RDONLY,
                         rounds ? "64" : "65536");
  MPI_Errhandler handler;
  MPI_File_create_errhandler(note, &handler);
  MPI_File_set_errhandler(file, handler);
  from = interleaved ? 0 : (MPI_Offset)rank * kBytes;
  if (interleaved) interleave(file);
  else MPI_File_seek(file, from, MPI_SEEK_SET);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Status status;
  int class = MPI_SUCCESS;
  handled = 0;
  int error = begin(call, writes, file, &request, &status);
  if (error == MPI_SUCCESS && request != MPI_REQUEST_NULL) error = MPI_Wait(&request, &status);
  MPI_Error_class(error, &class);
  check(class == (writes ? MPI_ERR_NO_SPACE : MPI_ERR_IO), what, error == MPI_SUCCESS ? "no error" : "another error");
  check(handled == 1, what, handled == 0 ? "the file's handler was not called" : "the file's handler was called again");
  MPI_Errhandler_free(&handler);
  MPI_File_close(&file);
}

/* There is no place for the file of the shared pointer. Each process hears of it, and none waits for another. */
static void without_pointer(void) {
  MPI_File file = opened("/proc/self/mem", MPI_MODE_RDONLY, "65536");
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_File_read_shared(file, data, kBytes, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS, "MPI_File_read_shared",
        "no error");
  check(MPI_File_iread_shared(file, data, kBytes, MPI_BYTE, &request) != MPI_SUCCESS, "MPI_File_iread_shared",
        "no error");
  check(MPI_File_read_ordered(file, data, kBytes, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS, "MPI_File_read_ordered",
        "no error");
  check(MPI_File_read_ordered_begin(file, data, kBytes, MPI_BYTE) != MPI_SUCCESS, "MPI_File_read_ordered_begin",
        "no error");
  check(MPI_File_seek_shared(file, 10, MPI_SEEK_SET) != MPI_SUCCESS, "MPI_File_seek_shared", "no error");
  MPI_File_close(&file);
}

static void wrong_place(const char* name) {
  MPI_File file = opened(name, MPI_MODE_CREATE | MPI_MODE_RDWR, "65536");
  int class;
  MPI_Error_class(MPI_File_seek_shared(file, -10, MPI_SEEK_SET), &class);
  check(class == MPI_ERR_ARG, "MPI_File_seek_shared to before the beginning", "not the error");
  MPI_Error_class(MPI_File_seek_shared(file, -10, MPI_SEEK_CUR), &class);
  check(class == MPI_ERR_ARG, "MPI_File_seek_shared from the beginning to before it", "not the error");
  check(MPI_File_seek_shared(file, 10, MPI_SEEK_SET) == MPI_SUCCESS, "MPI_File_seek_shared", "an error");
  MPI_File_close(&file);
}

/* The default: errors of files are returned, also by a call that waits for others, too. */
static void beside_others(void) {
  MPI_File file = opened("/dev/full", MPI_MODE_WRONLY, "65536");
  MPI_Request requests[3];
  MPI_Status statuses[3];
  int token = rank, got = -1, class, index = -1;
  MPI_Irecv(&got, 1, MPI_INT, rank, 5, MPI_COMM_WORLD, &requests[0]);
  MPI_File_iwrite_at(file, 0, data, kBytes, MPI_BYTE, &requests[1]);
  MPI_Isend(&token, 1, MPI_INT, rank, 5, MPI_COMM_WORLD, &requests[2]);
  check(MPI_Waitall(3, requests, statuses) == MPI_ERR_IN_STATUS, "MPI_Waitall", "no error in a status");
  MPI_Error_class(statuses[1].MPI_ERROR, &class);
  check(class == MPI_ERR_NO_SPACE && statuses[0].MPI_ERROR == MPI_SUCCESS && got == rank, "MPI_Waitall",
        "wrong statuses");
  MPI_File_iwrite_at(file, 0, data, kBytes, MPI_BYTE, &requests[0]);
  MPI_Error_class(MPI_Waitany(1, requests, &index, statuses), &class);
  check(class == MPI_ERR_NO_SPACE && index == 0, "MPI_Waitany", "not the error");
  MPI_File_iwrite_at(file, 0, data, kBytes, MPI_BYTE, &requests[0]);
  int flag = 0, error = MPI_SUCCESS;
  while (error == MPI_SUCCESS && !flag) error = MPI_Test(&requests[0], &flag, statuses);
  MPI_Error_class(error, &class);
  check(class == MPI_ERR_NO_SPACE, "MPI_Test", "not the error");
  for (int again = 0; again < 2; again++) { /* a split call that has failed has not begun */
    MPI_Error_class(MPI_File_write_all_begin(file, data, kBytes, MPI_BYTE), &class);
    check(class == MPI_ERR_NO_SPACE, "MPI_File_write_all_begin", "not the error");
  }
  MPI_File_close(&file);
}

static int own_code;
static int query(void* state, MPI_Status* status) {
  (void)state;
  MPI_Status_set_elements(status, MPI_BYTE, 0);
  MPI_Status_set_cancelled(status, 0);
  return own_code;
}
static int free_nothing(void* state) { return (void)state, MPI_SUCCESS; }
static int cancel_nothing(void* state, int complete) { return (void)state, (void)complete, MPI_SUCCESS; }

/* A generalized request of the program fails with what its function returns, by the error handler of MPI_COMM_WORLD. */
static void of_the_program(void) {
  MPI_Request request;
  int class;
  MPI_Add_error_class(&class);
  MPI_Add_error_code(class, &own_code);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Grequest_start(query, free_nothing, cancel_nothing, NULL, &request);
  MPI_Grequest_complete(request);
  check(MPI_Wait(&request, MPI_STATUS_IGNORE) == own_code, "a generalized request", "another error");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static struct rlimit before;

static void limit_files(rlim_t bytes) {
  struct rlimit few = {bytes, 0};
  signal(SIGXFSZ, SIG_IGN);
  getrlimit(RLIMIT_FSIZE, &before);
  few.rlim_max = before.rlim_max;
  setrlimit(RLIMIT_FSIZE, &few);
}

static int class_of(int error) {
  int class;
  MPI_Error_class(error, &class);
  return class;
}

/* The system writes what there is room for, and says only at the next call that there is no more. */
static void in_part(MPI_File file) {
  static char many[3000];
  MPI_Request request;
  MPI_Status status;
  limit_files(1000);
  MPI_File_iwrite_at(file, 0, many, sizeof many, MPI_BYTE, &request);
  check(class_of(MPI_Wait(&request, &status)) == MPI_ERR_IO, "a write of which a part fits", "no error");
  MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
  check(class_of(MPI_File_preallocate(file, 5000)) == MPI_ERR_IO, "MPI_File_preallocate", "no error");
  setrlimit(RLIMIT_FSIZE, &before);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Written by reading what lies between, under a lock, which is to be given back. */
static void under_a_lock(MPI_File file) {
  MPI_Request request;
  MPI_Status status;
  interleave(file);
  limit_files(1000);
  for (int atomic = 0; atomic < 2; atomic++) {
    MPI_File_set_atomicity(file, atomic);
    check(class_of(MPI_File_write_at(file, 4 * kBytes, data, kBytes, MPI_BYTE, &status)) == MPI_ERR_IO,
          "a write with gaps", "no error");
    int error = MPI_File_iwrite_at(file, 4 * kBytes, data, kBytes, MPI_BYTE, &request);
    if (error == MPI_SUCCESS) error = MPI_Wait(&request, &status);
    check(class_of(error) == MPI_ERR_IO, "a nonblocking write with gaps", "no error");
  }
  MPI_File_set_atomicity(file, 0);
  setrlimit(RLIMIT_FSIZE, &before);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Of a file of 1000 bytes: what is read beyond its end does not count. */
static void beyond_the_end(MPI_File file, int interleaved) {
  MPI_Request request;
  MPI_Status status;
  int bytes, there = interleaved ? 0 : 10 * (rank + 1);
  MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
  if (interleaved) interleave(file);
  from = interleaved ? 0 : 1000 - 10 * (rank + 1);
  for (int i = 0; interleaved && i < kBytes / 10; i++) there += (i * size + rank) * 10 < 1000 ? 10 : 0;
  for (int how = 0; how < 6; how++) {
    if (how % 2 == 0) MPI_File_seek(file, from, MPI_SEEK_SET);
    request = MPI_REQUEST_NULL;
    if (how == 0) MPI_File_read(file, data, kBytes, MPI_BYTE, &status);
    if (how == 1) MPI_File_read_at(file, from, data, kBytes, MPI_BYTE, &status);
    if (how == 2) MPI_File_iread(file, data, kBytes, MPI_BYTE, &request);
    if (how == 3) MPI_File_iread_at(file, from, data, kBytes, MPI_BYTE, &request);
    if (how == 4) MPI_File_iread_all(file, data, kBytes, MPI_BYTE, &request);
    if (how == 5) MPI_File_iread_at_all(file, from, data, kBytes, MPI_BYTE, &request);
    if (how > 1) MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    check(bytes == there, interleaved ? "a read with gaps beyond the end" : "a read beyond the end", "another count");
  }
}

static void with_little_room(const char* name) {
  MPI_File file = opened(name, MPI_MODE_CREATE | MPI_MODE_RDWR, "65536");
  in_part(file);
  under_a_lock(file);
  MPI_File_set_size(file, 1000);
  for (int interleaved = 0; interleaved < 2; interleaved++) beyond_the_end(file, interleaved);
  MPI_File_close(&file);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int writes = 0; writes < 2; writes++)
    for (enum call call = 0; call < CALLS; call++) {
      if (call == I_SHARED && !writes) continue; /* without_pointer */
      fails(call, writes, 0, 0);
      for (int rounds = 0; rounds < 2 && call >= I_ALL; rounds++) fails(call, writes, 1, rounds);
    }
  without_pointer();
  beside_others();
  of_the_program();
  with_little_room(argv[1]);
  wrong_place(argv[1]);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) puts(wrong ? "files that fail: wrong" : "files that fail: right");
  MPI_Finalize();
  return wrong != 0;
}
