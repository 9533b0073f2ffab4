/* A library with a lock of its own, as allocators and BLAS have them: whoever calls it again while it is inside, as a
 * handler that interrupts it would, waits for ever. */
#include <stdatomic.h>
#include <unistd.h>

static atomic_flag lock = ATOMIC_FLAG_INIT;
static long count;

static void begin(void) {
  while (atomic_flag_test_and_set(&lock)) continue;
}

static long end(void) {
  const long next = ++count;
  atomic_flag_clear(&lock);
  return next;
}

long counter_compute(void) {
  begin();
  for (volatile int i = 0; i < 20000; i++) continue;
  return end();
}

long counter_sleep(void) {
  begin();
  usleep(100);
  return end();
}

long counter_call(void (*back)(void)) {
  begin();
  back();
  return end();
}
