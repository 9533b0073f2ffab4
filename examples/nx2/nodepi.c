/* A node's part of pi: the midpoint rule for 4/(1+x*x) from 0 to 1, every numnodes()-th interval. */
#include <cube.h>

#define HOST_PID 100
#define INTERVALS 1
#define RESULT 2

main()
{
  long intervals, i;
  double width, x, sum, work;

  crecv((long)INTERVALS, &intervals, (long)sizeof intervals);
  width = 1.0 / intervals;
  sum = 0;
  for (i = mynode(); i < intervals; i = i + numnodes()) {
    x = (i + 0.5) * width;
    sum = sum + 4.0 / (1.0 + x * x);
  }
  sum = sum * width;
  gdsum(&sum, 1L, &work);
  if (mynode() == 0) csend((long)RESULT, &sum, (long)sizeof sum, myhost(), (long)HOST_PID);
  return 0;
}
