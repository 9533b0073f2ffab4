/* LU factorisation with column pivoting, A*Q = L*U (Zhou et al. 1999, section 4.2), rows dealt out in turn.
 *
 * Step k: the owner of row k finds the largest |a[k][j]|, j >= k, in its own row, so that nobody needs to be
 * asked; column j becomes column k, and the row is divided by the pivot (U has ones on its diagonal, and no
 * entry above 1 in magnitude: that is what the pivot is for). It broadcasts the row and the pivot's column.
 * Everybody exchanges the two columns in its rows and subtracts in the rows below k. */
#include <float.h>
#include <math.h>

#include "example.h"

/* A matrix without pattern, the same everywhere; any rank can make any row. */
static double element(int i, int j) {
  unsigned x = (unsigned)i * 2654435761u ^ ((unsigned)j + 1u) * 2246822519u;
  x = (x ^ x >> 15) * 3266489917u;
  x ^= x >> 13;
  return (double)(x & 0xffffff) / 0x800000 - 1;
}

static int pivot_column(const double* row, int k, int n) {
  int best = k;
  for (int j = k + 1; j < n; ++j)
    if (fabs(row[j]) > fabs(row[best])) best = j;
  return best;
}

static void exchange(double* row, int a, int b) {
  const double kept = row[a];
  row[a] = row[b];
  row[b] = kept;
}

/* Makes row k a row of U (and of L up to its diagonal). */
static void scale(double* row, int k, int n) {
  for (int j = k + 1; j < n; ++j) row[j] /= row[k];
}

static void subtract(double* row, const double* u, int k, int n) {
  for (int j = k + 1; j < n; ++j) row[j] -= row[k] * u[j];
}

/* Rows first, first + step, ... of A in the order of their numbers. */
static double* make_rows(int first, int step, int n) {
  double* rows = example_memory((size_t)(n / step + 1) * n, sizeof *rows);
  for (int i = first, at = 0; i < n; i += step, ++at)
    for (int j = 0; j < n; ++j) rows[(size_t)at * n + j] = element(i, j);
  return rows;
}

/* Row k, ready, in `u`, with the pivot's column behind it in u[n]: one broadcast instead of two. */
static void prepare_row(double* row, double* u, int k, int n) {
  const int pivot = pivot_column(row, k, n);
  exchange(row, k, pivot);
  if (row[k] == 0) {
    fprintf(stderr, "lu: row %d is zero: the matrix is singular\n", k);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  scale(row, k, n);
  memcpy(u, row, (size_t)n * sizeof *u);
  u[n] = pivot;
}

/* Factors in place; order[j] is the column of A that became column j. */
static void factor(double* rows, int* order, int rank, int processes, int n) {
  double* u = example_memory((size_t)n + 1, sizeof *u);
  for (int j = 0; j < n; ++j) order[j] = j;
  for (int k = 0; k < n; ++k) {
    const int owner = k % processes;
    if (rank == owner) prepare_row(rows + (size_t)(k / processes) * n, u, k, n);
    if (processes > 1) MPI_Bcast(u + k, n + 1 - k, MPI_DOUBLE, owner, MPI_COMM_WORLD);
    const int pivot = (int)u[n], kept = order[k];
    order[k] = order[pivot];
    order[pivot] = kept;
    for (int i = rank, at = 0; i < n; i += processes, ++at) {
      double* row = rows + (size_t)at * n;
      if (i != k) exchange(row, k, pivot);
      if (i > k) subtract(row, u, k, n);
    }
  }
  free(u);
}

/* Brings the rows together at rank 0, in order; NULL elsewhere. */
static double* gather(const double* rows, const struct example* e) {
  const int n = e->size;
  if (e->rank > 0) {
    for (int i = e->rank, at = 0; i < n; i += e->processes, ++at)
      MPI_Send(rows + (size_t)at * n, n, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
    return NULL;
  }
  double* all = example_memory((size_t)n * n, sizeof *all);
  for (int i = 0; i < n; ++i) {
    double* row = all + (size_t)i * n;
    if (i % e->processes == 0) memcpy(row, rows + (size_t)(i / e->processes) * n, (size_t)n * sizeof *row);
    else MPI_Recv(row, n, MPI_DOUBLE, i % e->processes, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return all;
}

/* Largest |A*Q - L*U|. */
static double residual(const double* lu, const int* order, int n) {
  double worst = 0;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int k = 0; k <= i && k <= j; ++k) sum += lu[(size_t)i * n + k] * (k == j ? 1 : lu[(size_t)k * n + j]);
      worst = fmax(worst, fabs(sum - element(i, order[j])));
    }
  }
  return worst;
}

static int check(const double* lu, const int* order, int n) {
  double* serial = make_rows(0, 1, n);
  int* serial_order = example_memory(n, sizeof *serial_order);
  factor(serial, serial_order, 0, 1, n);
  const int same = memcmp(serial, lu, (size_t)n * n * sizeof *lu) == 0 &&
                   memcmp(serial_order, order, (size_t)n * sizeof *order) == 0;
  const double difference = residual(lu, order, n), limit = 64.0 * n * DBL_EPSILON;
  char what[160];
  snprintf(what, sizeof what, "%s the serial factors, |AQ - LU| %.1e, limit 64 N epsilon = %.1e",
           same ? "bitwise equal to" : "differs from", difference, limit);
  free(serial);
  free(serial_order);
  return example_verdict(same && difference <= limit, what);
}

int main(int argc, char** argv) {
  const struct example e = example_start(&argc, &argv, "N", 200);
  int code = 0;
  double* rows = make_rows(e.rank, e.processes, e.size);
  int* order = example_memory(e.size, sizeof *order);
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  factor(rows, order, e.rank, e.processes, e.size);
  MPI_Barrier(MPI_COMM_WORLD);
  if (e.rank == 0) printf("lu: N %d, processes %d, time %f s\n", e.size, e.processes, MPI_Wtime() - start);
  if (e.check) {
    double* lu = gather(rows, &e);
    if (lu) code = check(lu, order, e.size);
    free(lu);
  }
  free(rows);
  free(order);
  MPI_Finalize();
  return code;
}
