/* pingpong PEER SIZE...: csend and crecv between node 0 and node PEER, half a round trip; the median of batches. The
 * other
 * nodes take no part. Lines "size us". */
#include <cube.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

enum { kBatches = 5 };
static char* buffer;

static double half_trip(long size, long peer, int count) {
  const double start = dclock();
  for (int i = 0; i < count; ++i) {
    if (mynode() == 0) {
      csend(1, buffer, size, peer, 0);
      crecv(2, buffer, size);
    } else {
      crecv(1, buffer, size);
      csend(2, buffer, size, 0, 0);
    }
  }
  return (dclock() - start) / count / 2 * 1e6;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* As many round trips to a batch as fit into some milliseconds, the same on both sides. */
static long agree(long count, long peer) {
  if (mynode() == 0) csend(3, &count, sizeof count, peer, 0);
  else crecv(3, &count, sizeof count);
  return count;
}

int main(int argc, char** argv) {
  if (argc < 3) return fprintf(stderr, "usage: pingpong PEER SIZE...\n"), 2;
  const long peer = atol(argv[1]);
  if (mynode() != 0 && mynode() != peer) return 0;
  for (int a = 2; a < argc; ++a) {
    const long size = atol(argv[a]);
    double batch[kBatches];
    buffer = calloc(1, size ? size : 1);
    const double once = half_trip(size, peer, 2);
    long count = once > 0 ? (long)(10000 / once) : 1000;
    count = agree(count < 2 ? 2 : count > 3000 ? 3000 : count, peer);
    for (int i = 0; i < kBatches; ++i) batch[i] = half_trip(size, peer, (int)count);
    qsort(batch, kBatches, sizeof *batch, compare);
    if (mynode() == 0) printf("%ld %.4f\n", size, batch[kBatches / 2]);
    fflush(stdout);
    free(buffer);
  }
  return 0;
}
