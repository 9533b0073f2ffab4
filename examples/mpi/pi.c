/* Pi as the integral of f(x) = 4/(1+x*x) from 0 to 1, midpoint rule with N points over M tasks: task i adds
 * the points j*M + i, and one task adds the M sums (Zhou et al. 1999, section 4.2). N need not be a multiple
 * of M. */
#include <math.h>

#include "example.h"

static double points_sum(int points, int task, int tasks) {
  double sum = 0;
  for (long n = task; n < points; n += tasks) {
    const double x = ((double)n + 0.5) / points;
    sum += 4 / (1 + x * x);
  }
  return sum / points;
}

static double collect(double own, int tasks) {
  for (int source = 1; source < tasks; ++source) {
    double sum;
    MPI_Recv(&sum, 1, MPI_DOUBLE, source, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    own += sum;
  }
  return own;
}

/* The same sums in the same order by one process: equal to the last bit. And it has to be pi: the midpoint
 * rule is off by less than 1/N^2, rounding by far less than 1e-11. */
static int check(double pi, int points, int tasks) {
  double serial = 0;
  for (int task = 0; task < tasks; ++task) serial += points_sum(points, task, tasks);
  const double limit = 1.0 / points / points + 1e-11;
  return example_verdict(pi == serial && fabs(pi - acos(-1.0)) <= limit,
                         "bitwise equal to the serial sum, within 1/N^2 + 1e-11 of pi");
}

int main(int argc, char** argv) {
  const struct example e = example_start(&argc, &argv, "N", 10000000);
  int code = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  const double own = points_sum(e.size, e.rank, e.processes);
  if (e.rank > 0) {
    MPI_Send(&own, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
  } else {
    const double pi = collect(own, e.processes);
    printf("pi: %.15f, N %d, processes %d, time %f s\n", pi, e.size, e.processes, MPI_Wtime() - start);
    if (e.check) code = check(pi, e.size, e.processes);
  }
  MPI_Finalize();
  return code;
}
