/* matching SEED ROUNDS: rank 0 sends messages of drawn communicators, tags, sizes and kinds; rank 1 receives them by
 * calls of drawn kinds, named and not. With one sender, MPI says which message each receive gets: the earliest that
 * matches and that no receive before it, posted or blocking, was for. Rank 0 receives the same way from rank 1. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMessages = 60, kMost = 70050, kComms = 3, kTags = 3, kTruncated = -2 };

typedef struct {
  int comm, tag, size, kind, taken;
} message_t;

typedef struct {
  MPI_Request request;
  MPI_Datatype type;
  char* buffer;
  int message;
} posted_t;

static MPI_Comm comms[kComms];
static unsigned seed;
static char sent[kMessages][kMost];
static int rank;

static int draw(int below) {
  seed = seed * 1103515245u + 12345u;
  return (int)(seed >> 8) % below;
}

static void check(int right, const char* what, int message) {
  if (right) return;
  fprintf(stderr, "rank %d: message %d: %s\n", rank, message, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static char byte_of(int message, int at) { return (char)(message * 31 + at * 7 + 1); }

static int size_drawn(void) {
  static const int sizes[] = {0, 1, 4, 16, 17, 24, 40, 48, 64, 200, 1000, 4000};
  static const int long_ones[] = {8190, 20000, 32700, 40000, 70000}; /* of one frame, of several; the last asks first */
  const int size = draw(8) == 0 ? long_ones[draw(5)] : sizes[draw(12)];
  return size + (draw(3) == 0 ? draw(50) : 0);
}

static void send_one(const message_t* m, int number, int to, MPI_Request* request) {
  for (int i = 0; i < m->size; ++i) sent[number][i] = byte_of(number, i);
  MPI_Comm comm = comms[m->comm];
  switch (m->kind) {
    case 0: /* one that asks first waits for its receive, which may be for a later message */
      if (m->size < 65000) MPI_Send(sent[number], m->size, MPI_BYTE, to, m->tag, comm);
      else MPI_Isend(sent[number], m->size, MPI_BYTE, to, m->tag, comm, request);
      break;
    case 1: MPI_Isend(sent[number], m->size, MPI_BYTE, to, m->tag, comm, request); break;
    case 2: MPI_Issend(sent[number], m->size, MPI_BYTE, to, m->tag, comm, request); break;
    default: MPI_Bsend(sent[number], m->size, MPI_BYTE, to, m->tag, comm);
  }
}

/* The message a receive is for; -1 when none is left that matches. */
static int expected(message_t* all, int comm, int tag, int take) {
  for (int i = 0; i < kMessages; ++i)
    if (!all[i].taken && all[i].comm == comm && (tag == MPI_ANY_TAG || all[i].tag == tag)) {
      all[i].taken = take;
      return i;
    }
  return -1;
}

static void check_status(const MPI_Status* status, const message_t* m, int number, int from) {
  int count = -1, cancelled = 1;
  MPI_Get_count(status, MPI_BYTE, &count);
  MPI_Test_cancelled(status, &cancelled);
  check(status->MPI_SOURCE == from, "source", number);
  check(status->MPI_TAG == m->tag, "tag", number);
  check(count == m->size, "count", number);
  check(!cancelled, "cancelled", number);
}

static void check_bytes(const char* got, int step, const message_t* m, int number) {
  for (int i = 0; i < m->size; ++i) check(got[i * step] == byte_of(number, i), "bytes", number);
}

static void receive_one(message_t* all, int from, posted_t* posted, int* waiting) {
  const int c = draw(kComms), kind = draw(8);
  const int tag = draw(3) == 0 ? MPI_ANY_TAG : draw(kTags), source = draw(2) ? from : MPI_ANY_SOURCE;
  const int number = expected(all, c, tag, 1);
  static char buffer[2 * kMost + 2];
  MPI_Status status;
  if (number < 0) return;
  const message_t* m = &all[number];
  MPI_Datatype type;
  memset(buffer, 0, sizeof buffer);
  switch (kind) {
    case 0:
    case 1:
    case 2: /* with room to spare */
      MPI_Recv(buffer, m->size + draw(3), MPI_BYTE, source, tag, comms[c], &status);
      check_status(&status, m, number, from);
      check_bytes(buffer, 1, m, number);
      check(buffer[m->size] == 0, "written past the message", number);
      return;
    case 3:
      MPI_Recv(buffer, kMost, MPI_BYTE, source, tag, comms[c], MPI_STATUS_IGNORE);
      check_bytes(buffer, 1, m, number);
      return;
    case 4: /* every other byte */
      MPI_Type_vector(m->size, 1, 2, MPI_BYTE, &type);
      MPI_Type_commit(&type);
      MPI_Recv(buffer, 1, type, source, tag, comms[c], &status);
      MPI_Type_free(&type);
      check_status(&status, m, number, from);
      check_bytes(buffer, 2, m, number);
      return;
    case 5:
      if (m->size == 0) {
        MPI_Recv(buffer, 0, MPI_BYTE, source, tag, comms[c], &status);
        check_status(&status, m, number, from);
        return;
      } else {
        int class = 0, error = MPI_Recv(buffer, m->size - 1, MPI_BYTE, source, tag, comms[c], &status);
        if (error != MPI_SUCCESS) MPI_Error_class(error, &class);
        check(class == MPI_ERR_TRUNCATE, "was to be truncated", number);
        check(buffer[m->size - 1] == 0, "written past the buffer", number);
        return;
      }
    case 6:
      MPI_Probe(source, tag, comms[c], &status);
      check_status(&status, m, number, from);
      MPI_Recv(buffer, m->size, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, comms[c], &status);
      check_status(&status, m, number, from);
      check_bytes(buffer, 1, m, number);
      return;
    default:
      posted[*waiting].buffer = malloc(kMost);
      posted[*waiting].message = number;
      MPI_Irecv(posted[*waiting].buffer, kMost, MPI_BYTE, source, tag, comms[c], &posted[*waiting].request);
      ++*waiting;
  }
}

static void finish_posted(message_t* all, int from, posted_t* posted, int* waiting) {
  for (int i = 0; i < *waiting; ++i) {
    MPI_Status status;
    MPI_Wait(&posted[i].request, &status);
    check_status(&status, &all[posted[i].message], posted[i].message, from);
    check_bytes(posted[i].buffer, 1, &all[posted[i].message], posted[i].message);
    free(posted[i].buffer);
  }
  *waiting = 0;
}

static void round_of(int receiver) {
  message_t all[kMessages];
  for (int i = 0; i < kMessages; ++i) all[i] = (message_t){draw(kComms), draw(kTags), size_drawn(), draw(4), 0};
  if (rank != receiver) {
    MPI_Request requests[kMessages];
    for (int i = 0; i < kMessages; ++i) {
      requests[i] = MPI_REQUEST_NULL;
      send_one(&all[i], i, receiver, &requests[i]);
    }
    MPI_Waitall(kMessages, requests, MPI_STATUSES_IGNORE);
    return;
  }
  posted_t posted[kMessages];
  int waiting = 0;
  for (;;) {
    int left = 0;
    for (int i = 0; i < kMessages; ++i) left += !all[i].taken;
    if (left == 0) break;
    receive_one(all, 1 - receiver, posted, &waiting);
    if (draw(6) == 0) finish_posted(all, 1 - receiver, posted, &waiting);
  }
  finish_posted(all, 1 - receiver, posted, &waiting);
}

int main(int argc, char** argv) {
  static char attached[kMessages * (kMost + MPI_BSEND_OVERHEAD)];
  int provided, wanted = getenv("MATCHING_THREADED") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, wanted, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const unsigned first = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
  const int rounds = argc > 2 ? atoi(argv[2]) : 1;
  MPI_Buffer_attach(attached, sizeof attached);
  for (int c = 0; c < kComms; ++c) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[c]);
    MPI_Comm_set_errhandler(comms[c], MPI_ERRORS_RETURN);
  }
  for (int i = 0; i < rounds; ++i) {
    seed = first + (unsigned)i;
    round_of(i % 2);
  }
  for (int c = 0; c < kComms; ++c) MPI_Comm_free(&comms[c]);
  void* buffer;
  int size;
  MPI_Buffer_detach(&buffer, &size);
  if (rank == 0) printf("matching: %d rounds from seed %u\n", rounds, first);
  MPI_Finalize();
  return 0;
}
