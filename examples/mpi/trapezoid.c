/* Area under y = x*x between 0 and 3 by the trapezoidal rule in 1024 strips.
 *
 * The experiment of Fang and Lei, "An efficient MPI device layer library" (2017), section 4: rank 0 is the
 * master, the others are slaves; each computes its strips and sends the area to the master. The paper prints
 * 9.000004291534424e+00 with 8, 64 and 128 processes.
 *
 * Arithmetic: double throughout. With h = 3/1024 every intermediate value is a multiple of 27/2^31 below 9,
 * so it fits the 53 bits of a double and nothing is ever rounded: the sum is 9 + h*h/2 exactly, whatever the
 * number of processes and the order of addition. (In float the result would be 9.000003814697266.) */
#include <math.h>

#include "example.h"

static double strips_area(int first, int last, double width) {
  double area = 0;
  for (int i = first; i < last; ++i) {
    const double left = i * width, right = (i + 1) * width;
    area += (left * left + right * right) / 2 * width;
  }
  return area;
}

/* First strip of a rank; the rest of an uneven division goes to the first ranks. */
static int first_strip(int strips, int rank, int processes) {
  const int each = strips / processes, rest = strips % processes;
  return rank * each + (rank < rest ? rank : rest);
}

static double collect(double own, int processes) {
  for (int source = 1; source < processes; ++source) {
    double area;
    MPI_Recv(&area, 1, MPI_DOUBLE, source, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    own += area;
  }
  return own;
}

static int check(double estimation, int strips) {
  const double serial = strips_area(0, strips, 3.0 / strips);
  if ((strips & (strips - 1)) == 0 && strips <= 4096)
    return example_verdict(estimation == serial, "bitwise equal to the serial sum");
  return example_verdict(fabs(estimation - serial) <= 1e-11, "within 1e-11 of the serial sum");
}

int main(int argc, char** argv) {
  const struct example e = example_start(&argc, &argv, "STRIPS", 1024);
  int code = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  const int first = first_strip(e.size, e.rank, e.processes), last = first_strip(e.size, e.rank + 1, e.processes);
  const double own = strips_area(first, last, 3.0 / e.size);
  if (e.rank > 0) {
    MPI_Send(&own, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
  } else {
    const double estimation = collect(own, e.processes);
    printf("usetime:%f,processsize:%d,ourestimation=%.15e\n", MPI_Wtime() - start, e.processes, estimation);
    if (e.check) code = check(estimation, e.size);
  }
  MPI_Finalize();
  return code;
}
