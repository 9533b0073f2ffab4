/* Collective calls on files in which ranks die, one after the other:
 *   ft_files SEED FILE
 * In each round one rank dies in one call: before it, at one of its messages, at a random moment, or after
 * it. The others get MPIX_ERR_PROC_FAILED or MPIX_ERR_REVOKED, close the file, shrink, and use a file again. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { BLOCK = 5000, BLOCKS = 40, FEWEST = 2, FAILED = -1 };
enum {
  OPEN,
  CLOSE,
  SET_SIZE,
  PREALLOCATE,
  SET_VIEW,
  SYNC,
  ATOMICITY,
  SET_INFO,
  SEEK_SHARED,
  WRITE_ALL,
  READ_ALL,
  WRITE_AT_ALL,
  READ_AT_ALL,
  WRITE_ORDERED,
  READ_ORDERED,
  WRITE_SPLIT,
  READ_SPLIT,
  WRITE_AT_SPLIT,
  READ_AT_SPLIT,
  WRITE_ORDERED_SPLIT,
  READ_ORDERED_SPLIT,
  IWRITE_ALL,
  IREAD_ALL,
  IWRITE_AT_ALL,
  IREAD_AT_ALL,
  CALLS
};
static const char* const names[CALLS] = {"open",
                                         "close",
                                         "set_size",
                                         "preallocate",
                                         "set_view",
                                         "sync",
                                         "set_atomicity",
                                         "set_info",
                                         "seek_shared",
                                         "write_all",
                                         "read_all",
                                         "write_at_all",
                                         "read_at_all",
                                         "write_ordered",
                                         "read_ordered",
                                         "write_all_begin",
                                         "read_all_begin",
                                         "write_at_all_begin",
                                         "read_at_all_begin",
                                         "write_ordered_begin",
                                         "read_ordered_begin",
                                         "iwrite_all",
                                         "iread_all",
                                         "iwrite_at_all",
                                         "iread_at_all"};
static int world_rank, rank, size, noncontiguous;
static int messages_to_go; /* until this rank dies; 0: it does not */
static char *data, name[4100];
static const char* what = "";
static MPI_Datatype strided;
static MPI_Info hints;

static void die(void) {
  if (world_rank % 2) _exit(3);
  raise(SIGKILL);
}

/* ROMIO calls MPI by these names, and so finds those of this program. */
static void message(void) {
  if (messages_to_go && --messages_to_go == 0) die();
}
#define COUNTED(call, parameters, arguments)                     \
  int PMPI_##call parameters {                                   \
    static int(*real) parameters;                                \
    if (!real) *(void**)&real = dlsym(RTLD_NEXT, "PMPI_" #call); \
    message();                                                   \
    return real arguments;                                       \
  }
COUNTED(Barrier, (MPI_Comm c), (c))
COUNTED(Bcast, (void* b, int n, MPI_Datatype t, int r, MPI_Comm c), (b, n, t, r, c))
COUNTED(Allreduce, (const void* s, void* r, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c), (s, r, n, t, o, c))
COUNTED(Alltoall, (const void* s, int n, MPI_Datatype t, void* r, int m, MPI_Datatype u, MPI_Comm c),
        (s, n, t, r, m, u, c))
COUNTED(Allgather, (const void* s, int n, MPI_Datatype t, void* r, int m, MPI_Datatype u, MPI_Comm c),
        (s, n, t, r, m, u, c))
COUNTED(Isend, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* q),
        (b, n, t, to, tag, c, q))
COUNTED(Irecv, (void* b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request* q),
        (b, n, t, from, tag, c, q))
COUNTED(Send, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c), (b, n, t, to, tag, c))
COUNTED(Recv, (void* b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Status* s),
        (b, n, t, from, tag, c, s))
COUNTED(Waitall, (int n, MPI_Request q[], MPI_Status s[]), (n, q, s))
COUNTED(Testall, (int n, MPI_Request q[], int* f, MPI_Status s[]), (n, q, f, s))
COUNTED(Comm_dup, (MPI_Comm c, MPI_Comm* d), (c, d))
COUNTED(Iallgather, (const void* s, int n, MPI_Datatype t, void* r, int m, MPI_Datatype u, MPI_Comm c, MPI_Request* q),
        (s, n, t, r, m, u, c, q))
COUNTED(Ialltoall, (const void* s, int n, MPI_Datatype t, void* r, int m, MPI_Datatype u, MPI_Comm c, MPI_Request* q),
        (s, n, t, r, m, u, c, q))
COUNTED(Iallreduce, (const void* s, void* r, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c, MPI_Request* q),
        (s, r, n, t, o, c, q))

static int class_of(int rc) {
  int c = MPI_SUCCESS;
  if (rc != MPI_SUCCESS) MPI_Error_class(rc, &c);
  return c;
}

static void wrong(const char* sentence, int rc) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length;
  if (rc != MPI_SUCCESS) MPI_Error_string(rc, text, &length);
  printf("ft_files: WRONG: rank %d, %s: %s %d %s\n", world_rank, what, sentence, class_of(rc), text);
  fflush(stdout);
  raise(SIGTERM);
}

/* The same random numbers in all ranks. */
static unsigned long state;
static int draw(int below) {
  state = state * 6364136223846793005UL + 1442695040888963407UL;
  return (int)((state >> 33) % (unsigned long)below);
}

static int wait_for(int rc, MPI_Request* request) {
  return rc != MPI_SUCCESS ? rc : MPI_Wait(request, MPI_STATUS_IGNORE);
}

static int set_view(MPI_File f) {
  MPI_Offset start = (MPI_Offset)rank * BLOCK * (noncontiguous ? 1 : BLOCKS);
  return MPI_File_set_view(f, start, MPI_CHAR, noncontiguous ? strided : MPI_CHAR, "native", MPI_INFO_NULL);
}

static int call(int which, MPI_Comm comm, MPI_File* f) {
  const int n = BLOCK * BLOCKS;
  MPI_Request q;
  int rc;
  switch (which) {
    case OPEN:
      rc = MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR, hints, f);
      if (rc == MPI_SUCCESS && (rc = MPI_File_close(f)) != MPI_SUCCESS && *f != MPI_FILE_NULL)
        wrong("close kept the file", rc);
      return rc;
    case CLOSE: return MPI_File_close(f);
    case SET_SIZE: return MPI_File_set_size(*f, n);
    case PREALLOCATE: return MPI_File_preallocate(*f, n);
    case SET_VIEW: return set_view(*f);
    case SYNC: return MPI_File_sync(*f);
    case ATOMICITY: return MPI_File_set_atomicity(*f, 1);
    case SET_INFO: return MPI_File_set_info(*f, hints);
    case SEEK_SHARED: return MPI_File_seek_shared(*f, 0, MPI_SEEK_SET);
    case WRITE_ALL: return MPI_File_write_all(*f, data, n, MPI_CHAR, MPI_STATUS_IGNORE);
    case READ_ALL: return MPI_File_read_all(*f, data, n, MPI_CHAR, MPI_STATUS_IGNORE);
    case WRITE_AT_ALL: return MPI_File_write_at_all(*f, 0, data, n, MPI_CHAR, MPI_STATUS_IGNORE);
    case READ_AT_ALL: return MPI_File_read_at_all(*f, 0, data, n, MPI_CHAR, MPI_STATUS_IGNORE);
    case WRITE_ORDERED: return MPI_File_write_ordered(*f, data, n, MPI_CHAR, MPI_STATUS_IGNORE);
    case READ_ORDERED: return MPI_File_read_ordered(*f, data, n, MPI_CHAR, MPI_STATUS_IGNORE);
    case WRITE_SPLIT:
      rc = MPI_File_write_all_begin(*f, data, n, MPI_CHAR);
      return rc != MPI_SUCCESS ? rc : MPI_File_write_all_end(*f, data, MPI_STATUS_IGNORE);
    case READ_SPLIT:
      rc = MPI_File_read_all_begin(*f, data, n, MPI_CHAR);
      return rc != MPI_SUCCESS ? rc : MPI_File_read_all_end(*f, data, MPI_STATUS_IGNORE);
    case WRITE_AT_SPLIT:
      rc = MPI_File_write_at_all_begin(*f, 0, data, n, MPI_CHAR);
      return rc != MPI_SUCCESS ? rc : MPI_File_write_at_all_end(*f, data, MPI_STATUS_IGNORE);
    case READ_AT_SPLIT:
      rc = MPI_File_read_at_all_begin(*f, 0, data, n, MPI_CHAR);
      return rc != MPI_SUCCESS ? rc : MPI_File_read_at_all_end(*f, data, MPI_STATUS_IGNORE);
    case WRITE_ORDERED_SPLIT: /* what began is ended, also when it failed */
      rc = MPI_File_write_ordered_begin(*f, data, n, MPI_CHAR);
      return class_of(MPI_File_write_ordered_end(*f, data, MPI_STATUS_IGNORE)) == MPIX_ERR_PROC_FAILED
                 ? MPIX_ERR_PROC_FAILED
                 : rc;
    case READ_ORDERED_SPLIT:
      rc = MPI_File_read_ordered_begin(*f, data, n, MPI_CHAR);
      return rc != MPI_SUCCESS ? rc : MPI_File_read_ordered_end(*f, data, MPI_STATUS_IGNORE);
    case IWRITE_ALL: return wait_for(MPI_File_iwrite_all(*f, data, n, MPI_CHAR, &q), &q);
    case IREAD_ALL: return wait_for(MPI_File_iread_all(*f, data, n, MPI_CHAR, &q), &q);
    case IWRITE_AT_ALL: return wait_for(MPI_File_iwrite_at_all(*f, 0, data, n, MPI_CHAR, &q), &q);
    default: return wait_for(MPI_File_iread_at_all(*f, 0, data, n, MPI_CHAR, &q), &q);
  }
}

static void need(const char* sentence, int rc) {
  if (rc != MPI_SUCCESS) wrong(sentence, rc);
}

/* Files work: what all wrote is there. */
static void use_a_file(MPI_Comm comm) {
  MPI_File f;
  need("open", MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR, hints, &f));
  need("set_size", MPI_File_set_size(f, 0));
  need("set_view", set_view(f));
  memset(data, 'a' + world_rank % 26, BLOCK * BLOCKS);
  need("write_all", call(WRITE_ALL, comm, &f));
  memset(data, 0, BLOCK * BLOCKS);
  need("sync", MPI_File_sync(f));
  need("read_at_all", call(READ_AT_ALL, comm, &f));
  for (int i = 0; i < BLOCK * BLOCKS; i++)
    if (data[i] != 'a' + world_rank % 26) {
      wrong("other data", MPI_SUCCESS);
      break;
    }
  need("close", MPI_File_close(&f));
}

/* One rank dies in one call; gives the communicator of the others. */
static MPI_Comm round_of(int which, MPI_Comm comm) {
  const int victim = draw(size), way = draw(4), after = 1 + draw(12), delay = 50 + draw(3000), again = draw(2);
  MPI_File f = MPI_FILE_NULL;
  MPI_Comm small;
  what = names[which];
  if (which != OPEN) {
    need("open", MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR, hints, &f));
    need("set_view", set_view(f));
    if (again) need("first call", which == CLOSE ? MPI_SUCCESS : call(which, comm, &f));
  }
  MPI_Barrier(comm);
  int rc;
  if (rank == victim) {
    struct itimerval t = {{0, 0}, {0, delay}};
    if (way == 0) die();
    if (way == 1) messages_to_go = after;
    if (way == 2) setitimer(ITIMER_REAL, &t, NULL);
    call(which, comm, &f);
    if (way == 2) pause();
    die();
  }
  const double began = MPI_Wtime();
  do rc = call(which, comm, &f);
  while (rc == MPI_SUCCESS && which != CLOSE && MPI_Wtime() - began < 100);
  if (class_of(rc) != MPIX_ERR_PROC_FAILED && class_of(rc) != MPIX_ERR_REVOKED && (which != CLOSE || rc != MPI_SUCCESS))
    wrong("not MPIX_ERR_PROC_FAILED but", rc);
  if (f != MPI_FILE_NULL) {
    rc = MPI_File_close(&f);
    if (class_of(rc) != MPIX_ERR_PROC_FAILED && class_of(rc) != MPIX_ERR_REVOKED) wrong("close gave", rc);
  }
  if (f != MPI_FILE_NULL) wrong("there is still a file", rc);
  MPIX_Comm_revoke(comm);
  for (int turn = 0;; turn++) { /* a shrink may come before everybody knows of the death */
    if (turn == 1000) wrong("shrink finds others dead, too", MPI_SUCCESS);
    need("shrink", MPIX_Comm_shrink(comm, &small));
    MPI_Comm_set_errhandler(small, MPI_ERRORS_RETURN);
    int n = 0, fine;
    MPI_Comm_size(small, &n);
    fine = n == size - 1;
    MPIX_Comm_agree(small, &fine);
    if (fine) break;
    MPI_Comm_free(&small);
  }
  MPI_Comm_free(&comm);
  return small;
}

int main(int argc, char** argv) {
  MPI_Comm comm;
  char folder[4000];
  int rounds = 0;
  if (argc != 3) return 2;
  state = strtoul(argv[1], NULL, 10) * 2 + 1;
  for (int i = 0; i < 20; i++) draw(2);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  data = calloc(1, BLOCK * BLOCKS);
  snprintf(folder, sizeof folder, "%s", argv[2]);
  for (;; rounds++) {
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    snprintf(name, sizeof name, "%s.%d", folder, rounds);
    noncontiguous = draw(2);
    MPI_Type_vector(BLOCKS, BLOCK, BLOCK * size, MPI_CHAR, &strided);
    MPI_Type_create_resized(strided, 0, (MPI_Aint)BLOCK * size * BLOCKS, &strided);
    MPI_Type_commit(&strided);
    MPI_Info_create(&hints);
    if (draw(3)) { /* two phases whether or not they would pay, with one aggregator or more, in several turns */
      MPI_Info_set(hints, "romio_cb_write", "enable");
      MPI_Info_set(hints, "romio_cb_read", "enable");
      MPI_Info_set(hints, "cb_buffer_size", draw(2) ? "65536" : "16777216");
      MPI_Info_set(hints, "cb_config_list", draw(2) ? "*:*" : "*:1");
    }
    use_a_file(comm);
    if (size > FEWEST) comm = round_of(draw(CALLS), comm);
    MPI_Type_free(&strided);
    MPI_Info_free(&hints);
    unlink(name);
    if (size <= FEWEST) break;
  }
  printf("ft_files: rank %d went on %d times\n", world_rank, rounds);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
