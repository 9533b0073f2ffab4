/* C = A * B, master and workers (Zhou et al. 1999, section 4.2): the master sends B to all, then in each
 * round one row of A to every worker, and collects one row of C from each; at the end it sends a word that
 * ends the worker. A master without workers does it all. */
#include "example.h"

enum { TAG_ROW = 1, TAG_END = 2 };

static void fill(double* a, double* b, int n) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      a[(size_t)i * n + j] = (i * 7L + j * 3L) % 23 / 7.0 - 1;
      b[(size_t)i * n + j] = (i * 5L + j * 11L) % 19 / 3.0 - 2;
    }
  }
}

/* One row of C; the same code for workers and for the check, hence equal results. */
static void multiply_row(const double* row, const double* b, double* result, int n) {
  for (int j = 0; j < n; ++j) result[j] = 0;
  for (int k = 0; k < n; ++k) {
    for (int j = 0; j < n; ++j) result[j] += row[k] * b[(size_t)k * n + j];
  }
}

static void work(int n) {
  double *b = example_memory((size_t)n * n, sizeof *b), *row = example_memory(n, sizeof *row),
         *result = example_memory(n, sizeof *result);
  MPI_Bcast(b, n * n, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  for (;;) {
    MPI_Status status;
    MPI_Recv(row, n, MPI_DOUBLE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    if (status.MPI_TAG == TAG_END) break;
    multiply_row(row, b, result, n);
    MPI_Send(result, n, MPI_DOUBLE, 0, TAG_ROW, MPI_COMM_WORLD);
  }
  free(b);
  free(row);
  free(result);
}

static void direct(const double* a, double* b, double* c, int n, int workers) {
  MPI_Bcast(b, n * n, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  for (int first = 0; first < n; first += workers) {
    const int rows = n - first < workers ? n - first : workers;
    for (int w = 0; w < rows; ++w) MPI_Send(a + (size_t)(first + w) * n, n, MPI_DOUBLE, w + 1, TAG_ROW, MPI_COMM_WORLD);
    for (int w = 0; w < rows; ++w)
      MPI_Recv(c + (size_t)(first + w) * n, n, MPI_DOUBLE, w + 1, TAG_ROW, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  for (int w = 0; w < workers; ++w) MPI_Send(NULL, 0, MPI_DOUBLE, w + 1, TAG_END, MPI_COMM_WORLD);
}

static int check(const double* a, const double* b, const double* c, int n) {
  double* row = example_memory(n, sizeof *row);
  int good = 1;
  for (int i = 0; i < n && good; ++i) {
    multiply_row(a + (size_t)i * n, b, row, n);
    good = memcmp(row, c + (size_t)i * n, n * sizeof *row) == 0;
  }
  free(row);
  return example_verdict(good, "bitwise equal to the serial product");
}

static int master(const struct example* e) {
  const int n = e->size, workers = e->processes - 1;
  const size_t all = (size_t)n * n;
  double *a = example_memory(all, sizeof *a), *b = example_memory(all, sizeof *b), *c = example_memory(all, sizeof *c);
  fill(a, b, n);
  const double start = MPI_Wtime();
  if (workers > 0) direct(a, b, c, n, workers);
  for (int i = 0; i < n && workers == 0; ++i) multiply_row(a + (size_t)i * n, b, c + (size_t)i * n, n);
  printf("mm: N %d, processes %d, time %f s\n", n, e->processes, MPI_Wtime() - start);
  const int code = e->check ? check(a, b, c, n) : 0;
  free(a);
  free(b);
  free(c);
  return code;
}

int main(int argc, char** argv) {
  const struct example e = example_start(&argc, &argv, "N", 240);
  int code = 0;
  if (e.size > 46340) example_usage(&e, argv[0], "N up to 46340"); /* N*N is an int in MPI_Bcast */
  MPI_Barrier(MPI_COMM_WORLD);
  if (e.rank == 0) code = master(&e);
  else work(e.size);
  MPI_Finalize();
  return code;
}
