/* The same data by unlike types on different ranks, types whose extent is not their true one, buffers that do not
 * matter, operations that do not fit a type, reads beyond the end of a file: unlike FILE. For 2 to 8 ranks. */
#include <fcntl.h>
#include <mpi.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static int rank, size, wrong;

static void check(int right, const char* what) {
  if (!right && wrong++ < 5) fprintf(stderr, "rank %d: %s: wrong\n", rank, what);
}

/* Four ints, then a gap of two, or the next ones with a gap between any two. */
static MPI_Datatype spread(int stride) {
  MPI_Datatype type;
  MPI_Type_vector(4, 1, stride, MPI_INT, &type);
  MPI_Type_commit(&type);
  return type;
}

static void between_groups(MPI_Comm both, int n, int how) {
  const int first = rank < size / 2, ours = first ? size / 2 : size - size / 2, theirs = size - ours;
  const int root = !first ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
  MPI_Datatype type = spread(2);
  MPI_Aint lower, extent;
  MPI_Type_get_extent(type, &lower, &extent);
  const int step = (int)(extent / (MPI_Aint)sizeof(int));
  int* all = calloc((size_t)theirs * n * step + 8, sizeof(int));
  int* mine = calloc((size_t)4 * n, sizeof(int));
  MPI_Request request = MPI_REQUEST_NULL;
  const int me = first ? rank : rank - size / 2;
  for (int i = 0; i < 4 * n; i++) mine[i] = me * 4 * n + i;
  if (how) MPI_Igather(mine, 4 * n, MPI_INT, all, n, type, root, both, &request);
  else MPI_Gather(mine, 4 * n, MPI_INT, all, n, type, root, both);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; root == MPI_ROOT && i < theirs * 4 * n; i++)
    check(all[i / 4 * step + i % 4 * 2] == i, how ? "MPI_Igather" : "MPI_Gather");
  for (int i = 0; i < theirs * 4 * n; i++) all[i / 4 * step + i % 4 * 2] = -i;
  if (how) MPI_Iscatter(all, n, type, mine, 4 * n, MPI_INT, root, both, &request);
  else MPI_Scatter(all, n, type, mine, 4 * n, MPI_INT, root, both);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; !first && i < 4 * n; i++) check(mine[i] == -(me * 4 * n + i), how ? "MPI_Iscatter" : "MPI_Scatter");
  free(all);
  free(mine);
  MPI_Type_free(&type);
}

static void of_no_matter(MPI_Comm both) {
  const int first = rank < size / 2;
  const int root = !first ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
  int one = 1, sum = 0, value = rank == 0 ? 77 : 0;
  MPI_Request request;
  MPI_Reduce(first ? NULL : &one, root == MPI_ROOT ? &sum : NULL, 1, MPI_INT, MPI_SUM, root, both);
  check(root != MPI_ROOT || sum == size - size / 2, "MPI_Reduce between groups");
  MPI_Ireduce(first ? NULL : &one, root == MPI_ROOT ? &sum : NULL, 1, MPI_INT, MPI_SUM, root, both, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Bcast(root == MPI_PROC_NULL ? NULL : &value, 1, MPI_INT, root, both);
  check(first || value == 77, "MPI_Bcast between groups");
  MPI_Ibcast(root == MPI_PROC_NULL ? NULL : &value, 1, MPI_INT, root, both, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Of pairs (a, b), a map x -> a x + b: their composition does not commute. */
static void compose(void* in, void* inout, int* count, MPI_Datatype* type) {
  MPI_Aint lower, extent;
  MPI_Type_get_extent(*type, &lower, &extent);
  for (int i = 0; i < *count; i++) {
    const unsigned* f = (const unsigned*)((char*)in + i * extent);
    unsigned* g = (unsigned*)((char*)inout + i * extent);
    g[1] += g[0] * f[1];
    g[0] *= f[0];
  }
}

static void not_commuting(int n) {
  enum { STEP = 6 }; /* unsigneds from one pair to the next */
  MPI_Datatype pair, type;
  MPI_Op op;
  unsigned *in = calloc((size_t)size * n * STEP, sizeof(unsigned)), *out = calloc((size_t)n * STEP, sizeof(unsigned));
  int* counts = malloc(size * sizeof(int));
  MPI_Type_contiguous(2, MPI_UNSIGNED, &pair);
  MPI_Type_create_resized(pair, 0, STEP * sizeof(unsigned), &type);
  MPI_Type_commit(&type);
  MPI_Op_create(compose, 0, &op);
  for (int i = 0; i < size; i++) counts[i] = n;
  for (int how = 0; how < 4; how++) {
    static const char* const names[] = {"MPI_Reduce_scatter_block", "MPI_Reduce_scatter", "MPI_Ireduce_scatter_block",
                                        "MPI_Ireduce_scatter"};
    MPI_Request request = MPI_REQUEST_NULL;
    for (int i = 0; i < size * n; i++) {
      in[i * STEP] = rank + i + 2;
      in[i * STEP + 1] = 7 * rank + i;
    }
    memset(out, 0, (size_t)n * STEP * sizeof(unsigned));
    if (how == 0) MPI_Reduce_scatter_block(in, out, n, type, op, MPI_COMM_WORLD);
    if (how == 1) MPI_Reduce_scatter(in, out, counts, type, op, MPI_COMM_WORLD);
    if (how == 2) MPI_Ireduce_scatter_block(in, out, n, type, op, MPI_COMM_WORLD, &request);
    if (how == 3) MPI_Ireduce_scatter(in, out, counts, type, op, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int k = 0; k < n; k++) {
      const int i = rank * n + k;
      unsigned a = 1, b = 0;
      for (int r = 0; r < size; r++) {
        b = 7 * r + i + (r + i + 2) * b;
        a *= r + i + 2;
      }
      check(out[k * STEP] == a && out[k * STEP + 1] == b, names[how]);
    }
  }
  MPI_Op_free(&op);
  MPI_Type_free(&pair);
  MPI_Type_free(&type);
  free(in);
  free(out);
  free(counts);
}

/* Even ranks take four ints at a time, with gaps; the others one by one. */
static void allgatherv(int n, int how) {
  const int wide = rank % 2 == 0, each = wide ? 4 : 1;
  MPI_Datatype type = wide ? spread(3) : MPI_INT;
  MPI_Aint lower, extent;
  MPI_Type_get_extent(type, &lower, &extent);
  const int step = (int)(extent / (MPI_Aint)sizeof(int));
  int *counts = malloc(size * sizeof(int)), *places = malloc(size * sizeof(int)), total = 0;
  for (int i = 0; i < size; i++) {
    counts[i] = (n + i) * 4 / each;
    places[i] = total / each;
    total += (n + i) * 4;
  }
  int *all = calloc((size_t)total / each * step + 8, sizeof(int)), *mine = malloc((size_t)(n + rank) * 4 * sizeof(int));
  MPI_Request request = MPI_REQUEST_NULL;
  for (int i = 0; i < (n + rank) * 4; i++) mine[i] = places[rank] * each + i;
  if (how) MPI_Iallgatherv(mine, (n + rank) * 4, MPI_INT, all, counts, places, type, MPI_COMM_WORLD, &request);
  else MPI_Allgatherv(mine, (n + rank) * 4, MPI_INT, all, counts, places, type, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < total; i++)
    check(all[wide ? i / 4 * step + i % 4 * 3 : i] == i, how ? "MPI_Iallgatherv" : "MPI_Allgatherv");
  if (wide) MPI_Type_free(&type);
  free(all);
  free(mine);
  free(counts);
  free(places);
}

/* All read the same, so that their accesses interleave; 7 bytes are there. */
static void at_the_end(const char* name) {
  MPI_File file;
  MPI_Status status;
  char bytes[100];
  int count = -1;
  memset(bytes, 'x', sizeof bytes);
  MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
  MPI_File_write_at_all(file, 0, bytes, rank == 0 ? 77 : 0, MPI_CHAR, MPI_STATUS_IGNORE);
  MPI_File_sync(file);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_sync(file);
  const int from[] = {70, 77, 20}, there[] = {7, 0, 57};
  for (int i = 0; i < 3; i++) {
    memset(bytes, 'q', sizeof bytes);
    MPI_File_read_at_all(file, from[i], bytes, sizeof bytes, MPI_CHAR, &status);
    MPI_Get_count(&status, MPI_CHAR, &count);
    check(count == there[i] && strspn(bytes, "x") >= (size_t)there[i], "MPI_File_read_at_all at the end");
  }
  MPI_File_close(&file);
}

/* An operation that has no meaning for a type is an error of the call, and not of its target. */
static void not_fitting(void) {
  static struct {
    double value;
    int place;
  } pair, result;
  double *base, number = 1, got;
  const int peer = (rank + 1) % size;
  MPI_Win window;
  MPI_Request request = MPI_REQUEST_NULL;
  int codes[5], class;
  MPI_Win_allocate(4 * sizeof *base, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  *base = 1;
  MPI_Win_fence(0, window);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
  MPI_Win_lock(MPI_LOCK_SHARED, peer, 0, window);
  codes[0] = MPI_Fetch_and_op(&pair, &result, MPI_DOUBLE_INT, peer, 0, MPI_SUM, window);
  codes[1] = MPI_Accumulate(&number, 1, MPI_DOUBLE, peer, 0, 1, MPI_DOUBLE, MPI_BAND, window);
  codes[2] =
      MPI_Get_accumulate(&number, 1, MPI_DOUBLE, &got, 1, MPI_DOUBLE, peer, 0, 1, MPI_DOUBLE, MPI_MAXLOC, window);
  codes[3] = MPI_Raccumulate(&number, 1, MPI_DOUBLE, peer, 0, 1, MPI_DOUBLE, MPI_BXOR, window, &request);
  codes[4] = MPI_Fetch_and_op(&number, &got, MPI_DOUBLE, peer, 0, MPI_BOR, window);
  for (int i = 0; i < 5; i++) {
    MPI_Error_class(codes[i], &class);
    check(codes[i] != MPI_SUCCESS && class == MPI_ERR_OP, "an operation that does not fit its type");
  }
  MPI_Accumulate(&number, 1, MPI_DOUBLE, peer, 0, 1, MPI_DOUBLE, MPI_SUM, window);
  MPI_Fetch_and_op(NULL, &result, MPI_DOUBLE_INT, peer, sizeof(double), MPI_NO_OP, window);
  MPI_Win_unlock(peer, window);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
  check(*base == 2, "an operation that fits");
  MPI_Win_unlock(rank, window);
  MPI_Win_free(&window);
}

/* The program's socket is as it was. */
static void join(void) {
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof here;
  int fd = socket(AF_INET, SOCK_STREAM, 0), port = 0, listener = -1;
  MPI_Comm joined;
  if (rank == 0) {
    listener = fd;
    if (bind(listener, (struct sockaddr*)&here, sizeof here) != 0 || listen(listener, 1) != 0) perror("listen");
    getsockname(listener, (struct sockaddr*)&here, &length);
    port = here.sin_port;
    MPI_Send(&port, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    fd = accept(listener, NULL, NULL);
  } else {
    MPI_Recv(&port, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    here.sin_port = (in_port_t)port;
    if (connect(fd, (struct sockaddr*)&here, sizeof here) != 0) perror("connect");
  }
  MPI_Comm_join(fd, &joined);
  check((fcntl(fd, F_GETFL, 0) & O_NONBLOCK) == 0, "the socket of MPI_Comm_join");
  MPI_Comm_disconnect(&joined);
}

int main(int argc, char** argv) {
  MPI_Comm own, both;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int first = rank < size / 2;
  MPI_Comm_split(MPI_COMM_WORLD, first, rank, &own);
  MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, first ? size / 2 : 0, 1, &both);
  for (int n = 1; n < 3000; n = 3 * n + 1)
    for (int how = 0; how < 2; how++) {
      between_groups(both, n, how);
      allgatherv(n, how);
    }
  allgatherv(20000, 0);
  allgatherv(20000, 1);
  of_no_matter(both);
  for (int n = 1; n < 300; n = 4 * n + 1) not_commuting(n);
  not_fitting();
  if (argc > 1) at_the_end(argv[1]);
  if (argc > 2 && rank < 2) join();
  MPI_Comm_free(&own);
  MPI_Comm_free(&both);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("unlike: %s\n", wrong ? "wrong" : "right");
  MPI_Finalize();
  return wrong != 0;
}
