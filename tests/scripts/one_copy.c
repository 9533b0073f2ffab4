/* Messages about the size from which they ask first, in all ways of sending and receiving; every byte is checked, so
 * is what lies before and behind a buffer. Each rank exchanges with its neighbour of the other parity. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, MOST = 3 << 20, WINDOW = 9 };
static int rank, peer, first; /* of the two, this rank sends first */
static unsigned seed;

static void check(int right, const char* what, long size) {
  if (right) return;
  printf("rank %d: %s of %ld bytes is wrong\n", rank, what, size);
  fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 1);
}
static char byte_of(int from, int tag, long i) { return (char)(from * 31 + tag * 7 + i + (i >> 8)); }
static char* sent(int tag, long size) {
  char* buffer = malloc(size + 1);
  for (long i = 0; i < size; i++) buffer[i] = byte_of(rank, tag, i);
  return buffer;
}
static char* room(long size) {
  char* buffer = malloc(size + 2 * GUARD);
  memset(buffer, 0x5a, size + 2 * GUARD);
  return buffer + GUARD;
}
static void verify(char* buffer, int tag, long size, long room_size, const char* what) {
  for (long i = -GUARD; i < room_size + GUARD; i++)
    check(buffer[i] == (i >= 0 && i < size ? byte_of(peer, tag, i) : 0x5a), what, size);
  free(buffer - GUARD);
}
static void sync_pair(void) {
  MPI_Sendrecv(NULL, 0, MPI_CHAR, peer, 99, NULL, 0, MPI_CHAR, peer, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void blocking(long size, int how) {
  char *out = sent(1, size), *in = room(size);
  static const char* const names[] = {"MPI_Send", "MPI_Ssend", "a probed message", "an unexpected message",
                                      "a matched probe"};
  MPI_Status status;
  MPI_Message message;
  MPI_Request request;
  for (int turn = 0; turn < 2; turn++) {
    if (turn == first) {
      if (how == 1) MPI_Ssend(out, size, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
      else if (how == 3) {
        MPI_Isend(out, size, MPI_CHAR, peer, 1, MPI_COMM_WORLD, &request);
        sync_pair();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      } else MPI_Send(out, size, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
      continue;
    }
    if (how == 2) MPI_Probe(peer, 1, MPI_COMM_WORLD, &status);
    if (how == 3) sync_pair();
    if (how == 4) {
      MPI_Mprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &message, &status);
      MPI_Mrecv(in, size, MPI_CHAR, &message, &status);
    } else MPI_Recv(in, size, MPI_CHAR, how ? MPI_ANY_SOURCE : peer, 1, MPI_COMM_WORLD, &status);
    int count;
    MPI_Get_count(&status, MPI_CHAR, &count);
    check(count == size, "the count", size);
  }
  verify(in, 1, size, size, names[how]);
  free(out);
}

/* Both ways at once, buffers larger than the messages, completed in another order than begun. */
static void window(long size) {
  char *out[WINDOW], *in[WINDOW];
  MPI_Request q[2 * WINDOW];
  int done;
  for (int i = 0; i < WINDOW; i++) {
    out[i] = sent(i, size + i);
    in[i] = room(size + 100);
    if ((i + first) % 2) MPI_Isend(out[i], size + i, MPI_CHAR, peer, i, MPI_COMM_WORLD, q + WINDOW + i);
    MPI_Irecv(in[i], size + 100, MPI_CHAR, peer, i, MPI_COMM_WORLD, q + i);
    if (!((i + first) % 2)) MPI_Isend(out[i], size + i, MPI_CHAR, peer, i, MPI_COMM_WORLD, q + WINDOW + i);
  }
  MPI_Waitany(2 * WINDOW, q, &done, MPI_STATUS_IGNORE);
  for (volatile long i = 0; i < 300000; i++)
    ; /* away, with copies on their way */
  MPI_Wait(q + WINDOW - 1, MPI_STATUS_IGNORE);
  MPI_Waitall(2 * WINDOW, q, MPI_STATUSES_IGNORE);
  for (int i = 0; i < WINDOW; i++) {
    verify(in[i], i, size + i, size + 100, "a message of a window");
    free(out[i]);
  }
}

/* Every second int on one side, in one row on the other. */
static void strided(long size, int sender) {
  long n = size / 8;
  int *out = malloc(8 * n), *in = calloc(2 * n, sizeof(int));
  MPI_Datatype type;
  MPI_Type_vector(n, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  for (long i = 0; i < 2 * n; i++) out[i] = (int)(i * 3 + rank);
  MPI_Request q[2];
  MPI_Irecv(in, sender ? n : 1, sender ? MPI_INT : type, peer, 5, MPI_COMM_WORLD, q);
  MPI_Isend(out, sender ? 1 : n, sender ? type : MPI_INT, peer, 5, MPI_COMM_WORLD, q + 1);
  MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
  for (long i = 0; i < n; i++)
    check(in[sender ? i : 2 * i] == (int)((sender ? 2 * i : i) * 3 + peer), "a vector", size);
  for (long i = 0; !sender && i < n - 1; i++) check(in[2 * i + 1] == 0, "a gap of a vector", size);
  MPI_Type_free(&type);
  free(out);
  free(in);
}

static void too_short(long size) {
  char *out = sent(6, size), *in = room(size / 2);
  MPI_Request q[2];
  int error, class;
  MPI_Irecv(in, size / 2, MPI_CHAR, peer, 6, MPI_COMM_WORLD, q);
  MPI_Isend(out, size, MPI_CHAR, peer, 6, MPI_COMM_WORLD, q + 1);
  error = MPI_Wait(q, MPI_STATUS_IGNORE);
  MPI_Error_class(error, &class);
  check(class == MPI_ERR_TRUNCATE, "truncation", size);
  MPI_Wait(q + 1, MPI_STATUS_IGNORE);
  for (long i = size / 2; i < size / 2 + GUARD; i++) check(in[i] == 0x5a, "what is behind a short buffer", size);
  free(in - GUARD);
  free(out);
}

static void cancelled(long size) {
  char* out = sent(7, size);
  MPI_Request q;
  MPI_Status status;
  int gone;
  MPI_Isend(out, size, MPI_CHAR, peer, 7, MPI_COMM_WORLD, &q);
  MPI_Cancel(&q);
  sync_pair();
  MPI_Wait(&q, &status);
  MPI_Test_cancelled(&status, &gone);
  check(gone, "a cancelled message", size);
  free(out);
}

int main(int argc, char** argv) {
  int size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  peer = rank ^ 1;
  first = rank & 1;
  static const long sizes[] = {1, 3000, 3001, 40000, 65535, 65536, 65537, 70001, 262144, 524289, 1 << 20, MOST};
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    for (int how = 0; how < 5; how++) blocking(sizes[i], how);
    window(sizes[i]);
    if (sizes[i] < 16) continue;
    strided(sizes[i], 0);
    strided(sizes[i], 1);
    too_short(sizes[i]);
    cancelled(sizes[i]);
  }
  srand(seed = 17 + (unsigned)rank / 2);
  for (int i = 0; i < 15; i++) window(1 + rand() % 400000);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) puts("all messages are right");
  MPI_Finalize();
  return 0;
}
