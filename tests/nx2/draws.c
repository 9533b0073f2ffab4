/* Dynamic load balancing: node 0 computes and serves a counter by hrecv, and everybody draws from it, node 0 too. Each
 * number is drawn once. usage: draws */
#include <cube.h>
#include <stdio.h>

enum { kAsk = 1, kAnswer = 2, kPerNode = 60, kWork = 40000 };

static long asked, next, answer;
static volatile double work;

static void serve(long type, long count, long node, long pid) {
  (void)type, (void)count, (void)pid;
  answer = next++;
  csend(kAnswer, &answer, sizeof answer, node, 0);
  hrecv(kAsk, (char*)&asked, sizeof asked, serve);
}

int main(void) {
  const long me = mynode(), nodes = numnodes(), total = kPerNode * nodes;
  long drawn = 0, sum = 0, number, spare;
  if (me == 0) hrecv(kAsk, (char*)&asked, sizeof asked, serve);
  gsync();
  for (;;) {
    csend(kAsk, (char*)&me, sizeof me, 0, 0);
    crecv(kAnswer, &number, sizeof number);
    if (number >= total) break;
    ++drawn, sum += number;
    for (long i = 0; i < kWork; i++) work += 0.5;
  }
  gisum(&drawn, 1, &spare);
  gisum(&sum, 1, &spare);
  if (drawn != total || sum != total * (total - 1) / 2) {
    printf("draws: %ld of %ld, sum %ld\n", drawn, total, sum);
    return 1;
  }
  if (me == 0) printf("draws: ok\n");
  return 0;
}
