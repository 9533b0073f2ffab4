/* Jacobi iteration on a square plate, one side hot: every process owns a block and exchanges its borders with
 * four neighbours in each step, rows and columns by derived datatypes, without blocking. */
#include <math.h>

#include "example.h"

enum { STEPS = 100 };

/* A block with a border of one cell all around; cell (i, j), -1 <= i <= rows, is at cells[(i + 1) * stride +
 * j + 1]. */
struct block {
  int first_row, first_column, rows, columns, stride;
  double *now, *next;
};

static int share(int n, int part, int parts) { return n / parts * part + (part < n % parts ? part : n % parts); }

static struct block make_block(int n, const int place[2], const int parts[2]) {
  struct block b;
  b.first_row = share(n, place[0], parts[0]);
  b.first_column = share(n, place[1], parts[1]);
  b.rows = share(n, place[0] + 1, parts[0]) - b.first_row;
  b.columns = share(n, place[1] + 1, parts[1]) - b.first_column;
  b.stride = b.columns + 2;
  const size_t cells = (size_t)(b.rows + 2) * b.stride;
  b.now = example_memory(cells, sizeof *b.now);
  b.next = example_memory(cells, sizeof *b.next);
  /* The hot side lies above row 0, warmer to the right. It is a border that nobody sends, in both copies. */
  for (int j = 0; b.first_row == 0 && j < b.columns; ++j)
    b.now[j + 1] = b.next[j + 1] = 1 + (b.first_column + j) / (double)n;
  return b;
}

static double* cell(const struct block* b, int i, int j) { return b->now + (size_t)(i + 1) * b->stride + j + 1; }

/* One step; returns the largest change. */
static double relax(struct block* b) {
  double change = 0;
  for (int i = 1; i <= b->rows; ++i) {
    const double *here = b->now + (size_t)i * b->stride, *above = here - b->stride, *below = here + b->stride;
    double* out = b->next + (size_t)i * b->stride;
    for (int j = 1; j <= b->columns; ++j) {
      out[j] = 0.25 * ((above[j] + below[j]) + (here[j - 1] + here[j + 1]));
      change = fmax(change, fabs(out[j] - here[j]));
    }
  }
  double* old = b->now;
  b->now = b->next;
  b->next = old;
  return change;
}

struct neighbours {
  MPI_Comm grid;
  int up, down, left, right;
  MPI_Datatype row, column;
};

static struct neighbours meet(MPI_Comm grid, const struct block* b) {
  struct neighbours n = {.grid = grid};
  MPI_Cart_shift(grid, 0, 1, &n.up, &n.down);
  MPI_Cart_shift(grid, 1, 1, &n.left, &n.right);
  MPI_Type_contiguous(b->columns, MPI_DOUBLE, &n.row);
  MPI_Type_vector(b->rows, 1, b->stride, MPI_DOUBLE, &n.column);
  MPI_Type_commit(&n.row);
  MPI_Type_commit(&n.column);
  return n;
}

/* The tag is the direction in which the border travels. At the plate's edge the neighbour is MPI_PROC_NULL.
 */
static void exchange(const struct block* b, const struct neighbours* n) {
  enum { UP, DOWN, LEFT, RIGHT };
  MPI_Request all[8];
  MPI_Status ignored[8]; /* GCC 12 warns of MPICH's MPI_STATUSES_IGNORE */
  MPI_Irecv(cell(b, -1, 0), 1, n->row, n->up, DOWN, n->grid, &all[0]);
  MPI_Irecv(cell(b, b->rows, 0), 1, n->row, n->down, UP, n->grid, &all[1]);
  MPI_Irecv(cell(b, 0, -1), 1, n->column, n->left, RIGHT, n->grid, &all[2]);
  MPI_Irecv(cell(b, 0, b->columns), 1, n->column, n->right, LEFT, n->grid, &all[3]);
  MPI_Isend(cell(b, 0, 0), 1, n->row, n->up, UP, n->grid, &all[4]);
  MPI_Isend(cell(b, b->rows - 1, 0), 1, n->row, n->down, DOWN, n->grid, &all[5]);
  MPI_Isend(cell(b, 0, 0), 1, n->column, n->left, LEFT, n->grid, &all[6]);
  MPI_Isend(cell(b, 0, b->columns - 1), 1, n->column, n->right, RIGHT, n->grid, &all[7]);
  MPI_Waitall(8, all, ignored);
}

/* Everybody sends its block; rank 0 checks each against the plate it computed alone. */
static int check(const struct block* mine, MPI_Comm grid, int rank, int processes, int n, const int parts[2]) {
  MPI_Datatype inner;
  MPI_Type_vector(mine->rows, mine->columns, mine->stride, MPI_DOUBLE, &inner);
  MPI_Type_commit(&inner);
  MPI_Request sent;
  MPI_Isend(cell(mine, 0, 0), 1, inner, 0, 9, grid, &sent);
  int good = 1;
  if (rank == 0) {
    const int origin[2] = {0, 0}, whole[2] = {1, 1};
    struct block plate = make_block(n, origin, whole);
    for (int step = 0; step < STEPS; ++step) relax(&plate);
    double* values = example_memory((size_t)n * n, sizeof *values);
    for (int source = 0; source < processes; ++source) {
      int place[2];
      MPI_Cart_coords(grid, source, 2, place);
      const int row = share(n, place[0], parts[0]), column = share(n, place[1], parts[1]);
      const int rows = share(n, place[0] + 1, parts[0]) - row, columns = share(n, place[1] + 1, parts[1]) - column;
      MPI_Recv(values, rows * columns, MPI_DOUBLE, source, 9, grid, MPI_STATUS_IGNORE);
      for (int i = 0; i < rows; ++i)
        good &= memcmp(values + (size_t)i * columns, cell(&plate, row + i, column), columns * sizeof *values) == 0;
    }
    free(values);
    free(plate.now);
    free(plate.next);
  }
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
  MPI_Type_free(&inner);
  return rank == 0 ? example_verdict(good, "bitwise equal to the serial plate") : 0;
}

int main(int argc, char** argv) {
  struct example e = example_start(&argc, &argv, "N", 192);
  int parts[2] = {0, 0}, periods[2] = {0, 0}, place[2];
  MPI_Dims_create(e.processes, 2, parts);
  if (e.size < parts[0] || e.size > 46340) example_usage(&e, argv[0], "N at least the rows of processes, up to 46340");
  MPI_Comm grid;
  MPI_Cart_create(MPI_COMM_WORLD, 2, parts, periods, 1, &grid);
  MPI_Comm_rank(grid, &e.rank); /* the grid may number the processes anew */
  MPI_Cart_coords(grid, e.rank, 2, place);

  struct block b = make_block(e.size, place, parts);
  struct neighbours n = meet(grid, &b);
  double change = 0, most = 0;
  MPI_Barrier(grid);
  const double start = MPI_Wtime();
  for (int step = 0; step < STEPS; ++step) {
    exchange(&b, &n);
    change = relax(&b);
  }
  MPI_Reduce(&change, &most, 1, MPI_DOUBLE, MPI_MAX, 0, grid);
  if (e.rank == 0)
    printf("halo: N %d, processes %d x %d, steps %d, last change %.6e, time %f s\n", e.size, parts[0], parts[1], STEPS,
           most, MPI_Wtime() - start);
  const int code = e.check ? check(&b, grid, e.rank, e.processes, e.size, parts) : 0;
  MPI_Type_free(&n.row);
  MPI_Type_free(&n.column);
  MPI_Comm_free(&grid);
  free(b.now);
  free(b.next);
  MPI_Finalize();
  return code;
}
