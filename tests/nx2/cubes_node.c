/* The nodes of cubes.c: each adds its number to what it is sent, until that is below 0. */
#include <cube.h>

static char large[100000];

int main(void) {
  for (;;) {
    double x;
    long others[2] = {0, 0};
    cprobe(-1);
    if (infotype() == 3) {
      crecv(3, large, sizeof large);
      large[sizeof large - 1]++;
      csend(4, large, sizeof large, myhost(), 100);
      continue;
    }
    crecv(1, &x, sizeof x);
    if (x < 0) return 0;
    others[0] = mynode();
    gisum(others, 1, others + 1); /* only those of its own cube */
    if (others[0] != numnodes() * (numnodes() - 1) / 2) return 1;
    x += (double)mynode();
    csend(2, &x, sizeof x, myhost(), 100);
  }
}
