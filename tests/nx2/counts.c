/* The program is nearly always inside a library with a lock, and its handler calls the same library: the handler runs
 * when the program has come back from there, also when the library sleeps or calls the program. */
#include <signal.h>

#include "check.h"

extern long counter_compute(void), counter_sleep(void), counter_call(void (*back)(void));
static long request, reply;
static volatile long served;

static void serve(long type, long count, long node, long ptype) {
  (void)type, (void)count, (void)ptype;
  reply = counter_compute();
  csend(2, &reply, sizeof reply, node, 0);
  served++;
  hrecv(1, &request, sizeof request, (nx_handler)serve);
}

static void back(void) {
  for (volatile int i = 0; i < 20000; i++) continue;
}
static void compute(void) { counter_compute(); }
static void sleep_a_little(void) { counter_sleep(); }
static void be_called(void) { counter_call(back), back(); }

static void serving(void (*meanwhile)(void), long rounds) {
  served = 0;
  gsync();
  if (mynode() == 0)
    while (served < rounds * (numnodes() - 1)) meanwhile();
  else
    for (long i = 0; i < rounds; i++) {
      csend(1, &request, sizeof request, 0, 0);
      crecv(2, &reply, sizeof reply);
    }
  gsync();
}

int main(void) {
  struct sigaction before, after;
  (void)mynode(); /* from the first call on a fault is told in NX's words */
  sigaction(SIGSEGV, NULL, &before);
  if (mynode() == 0) hrecv(1, &request, sizeof request, (nx_handler)serve);
  serving(compute, 200);
  serving(sleep_a_little, 20);
  serving(be_called, 50);
  sigaction(SIGSEGV, NULL, &after);
  CHECK(mynode() == 0 || before.sa_handler == after.sa_handler); /* who has no handlers keeps its own */
  return verdict("counts");
}
