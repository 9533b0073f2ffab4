/* The last short operation of an epoch waits for the call that ends it, and brings the lock along. last_operations WHAT
 * [TIMES], and rank 0 says "WHAT: right":
 * answers: a rank that waits for another message does not keep what it has put.
 * order: an operation behind one that waits comes behind it, whatever it is.
 * mutex: an exclusive lock is one, also where the lock comes with the operation.
 * contention: all want locks of one target, shared and exclusive, for one operation or for several.
 * nothing: locks without an operation, and with a flush.
 * epochs: puts of rank 0, each with a lock and an unlock, or with a flush. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 4096 };
static int rank, size, wrong;
static long* mem;
static MPI_Win win;

static void put_word(int target, long word, int at) {
  static long kept;
  kept = word;
  MPI_Put(&kept, 1, MPI_LONG, target, at, 1, MPI_LONG, win);
}

static long word_of(int at) {
  volatile long* words = mem;
  MPI_Win_sync(win);
  return words[at];
}

/* Rank 0 puts a word, and waits for the answer of rank 1 before it ends the epoch; by turns in an epoch of its own lock
 * and in one of all. */
static void answers(int times) {
  int some;
  if (rank != 0) MPI_Win_lock_all(0, win);
  for (int i = 1; i <= times; ++i) {
    if (rank == 0) {
      if (i % 2) MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
      else MPI_Win_lock_all(0, win);
      put_word(1, i, 0);
      MPI_Recv(NULL, 0, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (i % 2) MPI_Win_unlock(1, win);
      else MPI_Win_unlock_all(win);
    } else if (rank == 1) {
      while (word_of(0) != i) MPI_Iprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &some, MPI_STATUS_IGNORE);
      MPI_Send(NULL, 0, MPI_INT, 0, 1, MPI_COMM_WORLD);
    }
  }
  if (rank != 0) MPI_Win_unlock_all(win);
}

static void replace(long* from, int n, int with_request) {
  MPI_Request request;
  if (!with_request) {
    MPI_Accumulate(from, n, MPI_LONG, 1, 0, n, MPI_LONG, MPI_REPLACE, win);
  } else {
    MPI_Raccumulate(from, n, MPI_LONG, 1, 0, n, MPI_LONG, MPI_REPLACE, win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

/* Accumulates of one origin to one place happen in order: short and long ones, with a request, and a read. */
static void order(int times) {
  static long first[WORDS], second[WORDS], read[WORDS];
  for (int i = 0; i < times && rank == 0; ++i) {
    const int n = i % 3 == 0 ? 1 : i % 3 == 1 ? 100 : WORDS, more = i % 2 ? n : 1;
    for (int j = 0; j < n; ++j) first[j] = 2 * i, second[j] = 2 * i + 1, read[j] = -1;
    MPI_Win_lock(i % 5 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 1, 0, win);
    replace(first, n, 0);
    if (i % 4 == 3) MPI_Win_flush_local(1, win);
    replace(second, more, i % 4 < 2);
    MPI_Get_accumulate(NULL, 0, MPI_LONG, read, n, MPI_LONG, 1, 0, n, MPI_LONG, MPI_NO_OP, win);
    MPI_Win_unlock(1, win);
    for (int j = 0; j < n; ++j) wrong += read[j] != (j < more ? second[j] : first[j]);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win); /* a read that brings the lock and its end along */
    MPI_Get_accumulate(NULL, 0, MPI_DATATYPE_NULL, first, n, MPI_LONG, 1, 0, n, MPI_LONG, MPI_NO_OP, win);
    MPI_Win_unlock(1, win);
    wrong += memcmp(first, read, (size_t)n * sizeof *read) != 0;
  }
}

static void mutex(int times) {
  long sum;
  for (int i = 0; i < times; ++i) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Get(&sum, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
    MPI_Win_flush(0, win);
    put_word(0, sum + 1, 0);
    MPI_Win_unlock(0, win);
    if (i % 2) continue;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win); /* one operation, which comes with its lock */
    put_word(0, rank, 1);
    MPI_Win_unlock(0, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  MPI_Get(&sum, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
  MPI_Win_unlock(0, win);
  wrong += sum != (long)times * size;
}

/* Accumulates by all; returns how many of this rank's there are. */
static int accumulate(int times, int count, long* from, long* into) {
  int all = 0;
  for (int i = 0; i < times; ++i) {
    const int several = (i * 7 + rank) % 4 == 3, reads = (i * 7 + rank) % 4;
    MPI_Win_lock((i + rank) % 3 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, win);
    for (int j = 0; j < (several ? 3 : 1); ++j, ++all)
      if (reads == 1)
        MPI_Get_accumulate(from, count, MPI_LONG, into, count, MPI_LONG, 0, 0, count, MPI_LONG, MPI_SUM, win);
      else MPI_Accumulate(from, count, MPI_LONG, 0, 0, count, MPI_LONG, MPI_SUM, win);
    if (reads == 2) MPI_Get(into, count, MPI_LONG, 0, 0, count, MPI_LONG, win);
    MPI_Win_unlock(0, win);
  }
  return all;
}

static void contention(int times) {
  static const int counts[] = {1, 100, 2048, WORDS};
  static long from[WORDS], into[WORDS];
  long wanted[WORDS] = {0};
  for (int i = 0; i < WORDS; ++i) from[i] = 1 + i;
  for (int c = 0; c < 4; ++c) {
    int all = accumulate(times, counts[c], from, into);
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < counts[c]; ++i) wanted[i] += (long)all * from[i];
  }
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  MPI_Get(into, WORDS, MPI_LONG, 0, 0, WORDS, MPI_LONG, win);
  MPI_Win_unlock(0, win);
  wrong += memcmp(into, wanted, sizeof wanted) != 0;
}

static void nothing(int times) {
  for (int i = 0; i < times; ++i) {
    const int target = (rank + 1 + i) % size;
    MPI_Win_lock(i % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, win);
    if (i % 3 == 0) MPI_Win_flush(target, win);
    if (i % 3 == 1) MPI_Win_flush_local(target, win);
    MPI_Win_unlock(target, win);
    MPI_Win_lock_all(0, win);
    if (i % 4 == 0) MPI_Win_flush_all(win);
    MPI_Win_unlock_all(win);
  }
}

static void epochs(int times) {
  for (int i = 1; i <= times && rank == 0; ++i) {
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    put_word(1, i, 0);
    MPI_Win_unlock(1, win);
  }
  if (rank == 0) MPI_Win_lock_all(0, win);
  for (int i = 1; i <= times && rank == 0; ++i) {
    put_word(1, i, 1);
    MPI_Win_flush(1, win);
  }
  if (rank == 0) MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  wrong += rank == 1 && (mem[0] != times || mem[1] != times);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "answers";
  const int times = argc > 2 ? atoi(argv[2]) : 100;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int own = 0; own < 2; ++own) {
    const MPI_Aint bytes = WORDS * sizeof(long);
    long* memory = calloc(WORDS, sizeof(long));
    if (own) MPI_Win_create(mem = memory, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    else MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
    memset(mem, 0, (size_t)bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(what, "answers") == 0) answers(times);
    else if (strcmp(what, "order") == 0) order(times);
    else if (strcmp(what, "mutex") == 0) mutex(times);
    else if (strcmp(what, "contention") == 0) contention(times);
    else if (strcmp(what, "epochs") == 0) epochs(times);
    else nothing(times);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
    free(memory);
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%s: %s\n", what, wrong ? "wrong" : "right");
  MPI_Finalize();
  return wrong != 0;
}
