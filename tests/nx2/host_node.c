/* The nodes of host.c. */
#include <cube.h>

static char large[300000];

int main(void) {
  long value;
  crecv(1, large, sizeof large);
  if (infonode() != myhost() || infopid() != 100) return 1;
  gsync();
  csend(2, large, sizeof large, myhost(), 100);
  crecv(3, &value, sizeof value);
  value += mynode();
  csend(4, &value, sizeof value, myhost(), 100);
  gisum(&value, 1, (long*)large);
  return 0;
}
