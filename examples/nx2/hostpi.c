/* The host's part of pi: it loads the nodes, tells them how many intervals there are, and prints what they find.
 * nxhost -n 8 ./hostpi */
#include <stdio.h>
#include <cube.h>

#define HOST_PID 100
#define NODE_PID 0
#define INTERVALS 1
#define RESULT 2

main(argc, argv)
int argc;
char **argv;
{
  long intervals;
  double pi, error;

  getcube("picube", "", NULL, 0L);
  setpid((long)HOST_PID);
  load(argc > 1 ? argv[1] : "nodepi", -1L, (long)NODE_PID);
  intervals = 100000;
  csend((long)INTERVALS, &intervals, (long)sizeof intervals, -1L, (long)NODE_PID);
  crecv((long)RESULT, &pi, (long)sizeof pi);
  waitall(-1L, -1L);
  relcube("picube");
  error = pi - 3.14159265358979323846;
  if (error < 0) error = -error;
  printf("pi: %ld nodes, %.9f: %s\n", numnodes(), pi, error < 1e-9 ? "ok" : "WRONG");
  return error >= 1e-9;
}
