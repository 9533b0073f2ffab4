/* A program linked with -lnx: it makes its own application with nx_initve and nx_nfork. usage: paragon [-sz N] */
#include <nx.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  long pids[64], rows, columns, *list, count;
  const long nodes = nx_initve(NULL, 3, NULL, &argc, argv);
  if (nodes < 1 || argc != 1) return 1;
  if (mynode() != myhost() || numnodes() != nodes) return 1;
  const long started = nx_nfork(NULL, -1, 5, pids);
  if (started == 0) { /* a node */
    long sum = mynode(), work;
    gisum(&sum, 1, &work);
    if (myptype() != 5 || sum != nodes * (nodes - 1) / 2) exit(1);
    if (mynode() == nodes - 1) csend(1, &sum, sizeof sum, myhost(), 0);
    exit(0);
  }
  setptype(0);
  long sum = -1;
  crecv(1, &sum, sizeof sum);
  nx_waitall();
  nx_app_rect(&rows, &columns);
  nx_app_nodes(&list, &count);
  const int good = started == nodes && sum == nodes * (nodes - 1) / 2 && infoptype() == 5 && rows * columns == nodes &&
                   count == nodes && list[nodes - 1] == nodes - 1;
  printf("paragon, %ld nodes: %s\n", nodes, good ? "ok" : "FAILED");
  return !good;
}
