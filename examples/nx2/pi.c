/* The twin of ../mpi/pi.c: the same sums in the same order, over NX instead of MPI, and the same line of output but
 * for the time. */
#include <stdio.h>
#include <stdlib.h>
#include <nx.h>

#define SUM 0

static double points_sum(points, task, tasks)
long points, task, tasks;
{
  double sum = 0, x;
  long n;

  for (n = task; n < points; n += tasks) {
    x = ((double)n + 0.5) / points;
    sum += 4 / (1 + x * x);
  }
  return sum / points;
}

main(argc, argv)
int argc;
char **argv;
{
  long points, source, info[8];
  double own, sum, start;

  points = argc > 1 ? atol(argv[1]) : 10000000;
  gsync();
  start = dclock();
  own = points_sum(points, mynode(), numnodes());
  if (mynode() > 0) {
    csend((long)SUM, &own, (long)sizeof own, 0L, 0L);
  } else {
    for (source = 1; source < numnodes(); source++) {
      crecvx((long)SUM, &sum, (long)sizeof sum, source, 0L, info);
      own += sum;
    }
    printf("pi: %.15f, N %ld, processes %ld, time %f s\n", own, points, numnodes(), dclock() - start);
  }
  return 0;
}
