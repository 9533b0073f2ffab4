/* Nodes that end at different times, without a last call together. usage: ending CASE */
#include <nx.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char large[2000000];

int main(int argc, char** argv) {
  const int which = argc > 1 ? atoi(argv[1]) : 0;
  if (which == 1 && getenv("PMI_RANK") && atoi(getenv("PMI_RANK")) == 1) return 0; /* never makes a call */
  const long me = mynode(), nodes = numnodes();
  switch (which) {
    case 2: /* a node has ended when what it sent is received, short, long, and many */
      if (me == 0) {
        for (int i = 0; i < 500; i++) csend(1, large, i, 1, 0);
        csend(2, large, sizeof large, 1, 0);
        return 0;
      }
      if (me != 1) return 0;
      usleep(200000);
      crecv(2, large, sizeof large);
      for (int i = 0; i < 500; i++) {
        crecv(1, large, sizeof large);
        if (infocount() != i) return 1;
      }
      break;
    case 3: /* messages that nobody ever receives */
      csend(1, large, 10, (me + 1) % nodes, 0);
      csend(1, large, sizeof large, (me + 1) % nodes, 0);
      break;
    case 4: /* to a node that has ended */
      if (me == 1) return 0;
      for (int i = 0; i < 200; i++) {
        csend(1, large, 10, 1, 0);
        usleep(1000);
      }
      csend(1, large, sizeof large, 1, 0);
      break;
    case 5: /* one ends the job of all, who wait for ever */
      printf("node %ld waits\n", me);
      if (me == 1) killcube(-1, -1);
      crecv(1, large, 1);
      break;
    default: break;
  }
  printf("node %ld ends\n", me);
  return 0;
}
