/* epochs KIND SEED STEPS: epochs of one-sided communication drawn at random, one behind the other without a barrier
 * where MPI needs none. Each rank owns a slice of each window and knows what everybody does to it, so each checks its
 * own window and what it gets. KIND: create, allocate or dynamic. Rank 0 says "epochs: right". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLICE = 12288, FENCE = 0, PSCW, LOCK, LOCK_ALL, KINDS, NONE = 0, PUT, ADD, GET, OPS };
typedef struct {
  int what, first, count;
} op_t;

static int rank, size, step, kind;
static unsigned long long seed;
static long *window, *mine, *theirs, *buffers; /* mine: what the window must be; theirs: this rank's slices of others */
static MPI_Aint* bases;
static MPI_Win win;

static unsigned long long draw(unsigned a, unsigned b, unsigned c) {
  unsigned long long x = seed + a * 0x9e3779b97f4a7c15ull + b * 0xc2b2ae3d27d4eb4full + c * 0x165667b19e3779f9ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/* What `origin` does to `target` in this step. Most are short, some longer than what one frame takes. */
static op_t op_of(int origin, int target) {
  const unsigned pair = (unsigned)(origin * size + target);
  const unsigned long long x = draw((unsigned)step, pair, 1);
  const int most = x % 4 == 0 ? SLICE : x % 4 == 1 ? 2048 : 16;
  op_t op;
  op.what = origin == target ? NONE : (int)(x / 4 % OPS);
  op.count = 1 + (int)(draw((unsigned)step, pair, 2) % (unsigned)most);
  op.first = (int)(draw((unsigned)step, pair, 3) % (unsigned)(SLICE - op.count + 1));
  return op;
}

static long value(int origin, int target, int i) {
  return (long)(draw((unsigned)step, (unsigned)(origin * size + target), 77) % 1000003) + i;
}

static void apply(long* slice, op_t op, int origin, int target) {
  for (int i = 0; i < op.count; i++) {
    if (op.what == PUT) slice[op.first + i] = value(origin, target, i);
    if (op.what == ADD) slice[op.first + i] += value(origin, target, i);
  }
}

static void wrong(const char* what, int other, int i, long found, long wanted) {
  fprintf(stderr, "epochs: rank %d, step %d, epoch %d: %s rank %d, element %d is %ld and not %ld\n", rank, step, kind,
          what, other, i, found, wanted);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void begin_op(int target) {
  const op_t op = op_of(rank, target);
  long* const buffer = buffers + (size_t)target * SLICE;
  const MPI_Aint at = bases[target] + (MPI_Aint)sizeof(long) * ((MPI_Aint)rank * SLICE + op.first);
  if (op.what == PUT || op.what == ADD)
    for (int i = 0; i < op.count; i++) buffer[i] = value(rank, target, i);
  if (op.what == PUT) MPI_Put(buffer, op.count, MPI_LONG, target, at, op.count, MPI_LONG, win);
  if (op.what == ADD) MPI_Accumulate(buffer, op.count, MPI_LONG, target, at, op.count, MPI_LONG, MPI_SUM, win);
  if (op.what == GET) MPI_Get(buffer, op.count, MPI_LONG, target, at, op.count, MPI_LONG, win);
}

static void check_gets(void) {
  for (int target = 0; target < size; target++) {
    const op_t op = op_of(rank, target);
    long *const slice = theirs + (size_t)target * SLICE, *const got = buffers + (size_t)target * SLICE;
    if (op.what == GET)
      for (int i = 0; i < op.count; i++)
        if (got[i] != slice[op.first + i]) wrong("got from", target, op.first + i, got[i], slice[op.first + i]);
    apply(slice, op, rank, target);
  }
}

static void check_window(void) {
  for (int origin = 0; origin < size; origin++) {
    const op_t op = op_of(origin, rank);
    long *const slice = mine + (size_t)origin * SLICE, *const found = window + (size_t)origin * SLICE;
    apply(slice, op, origin, rank);
    for (int i = 0; i < SLICE; i++)
      if (found[i] != slice[i]) wrong("in the slice of", origin, i, found[i], slice[i]);
  }
}

static void all_but_me(MPI_Group* group) {
  MPI_Group world;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_excl(world, 1, &rank, group);
  MPI_Group_free(&world);
}

static void passive(void) {
  MPI_Barrier(MPI_COMM_WORLD); /* everybody has looked at its window */
  if (kind == LOCK_ALL) MPI_Win_lock_all(0, win);
  for (int i = 1; i < size; i++) {
    const int target = (rank + i) % size;
    if (kind == LOCK)
      MPI_Win_lock(draw((unsigned)step, (unsigned)target, 9) % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0,
                   win);
    begin_op(target);
    if (kind == LOCK) MPI_Win_unlock(target, win);
  }
  if (kind == LOCK_ALL) MPI_Win_flush_all(win), MPI_Win_unlock_all(win);
  check_gets();
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
  check_window();
  MPI_Win_unlock(rank, win);
}

static void active(MPI_Group others) {
  if (kind == FENCE) MPI_Win_fence(0, win);
  else MPI_Win_post(others, 0, win), MPI_Win_start(others, 0, win);
  for (int i = 1; i < size; i++) begin_op((rank + i) % size);
  if (kind == FENCE) MPI_Win_fence(0, win);
  else MPI_Win_complete(win), MPI_Win_wait(win);
  check_gets();
  check_window();
}

static void open_window(const char* how) {
  const MPI_Aint bytes = (MPI_Aint)sizeof(long) * SLICE * size;
  MPI_Aint base = 0;
  bases = calloc((size_t)size, sizeof *bases);
  window = calloc(1, (size_t)bytes);
  if (strcmp(how, "create") == 0) {
    MPI_Win_create(window, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  } else if (strcmp(how, "allocate") == 0) {
    free(window);
    MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    memset(window, 0, (size_t)bytes);
  } else {
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_attach(win, window, bytes);
    MPI_Get_address(window, &base);
  }
  MPI_Allgather(&base, 1, MPI_AINT, bases, 1, MPI_AINT, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  MPI_Group others;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  seed = strtoull(argv[2], NULL, 10);
  open_window(argv[1]);
  mine = calloc((size_t)size * SLICE, sizeof *mine);
  theirs = calloc((size_t)size * SLICE, sizeof *theirs);
  buffers = calloc((size_t)size * SLICE, sizeof *buffers);
  all_but_me(&others);
  for (step = 0; step < atoi(argv[3]); step++) {
    kind = (int)(draw((unsigned)step, 0, 8) % KINDS);
    kind == FENCE || kind == PSCW ? active(others) : passive();
  }
  if (strcmp(argv[1], "dynamic") == 0) {
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_detach(win, window);
  }
  MPI_Win_free(&win);
  if (rank == 0) puts("epochs: right");
  MPI_Group_free(&others);
  MPI_Finalize();
  return 0;
}
