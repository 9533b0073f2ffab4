/* A program sleeps while messages interrupt it: every sleep lasts its whole time, handlers run meanwhile, and a signal
 * of the program's own still ends it. usage: sleeps */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { kTick = 1, kStop = 2, kNap = 3, kAtLeast = 200 };
static long me, tick[1];
static volatile long hits, naps, nap_ms, alarms;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void on_tick(long type, long count, long node, long ptype) {
  (void)type, (void)count, (void)node, (void)ptype;
  hits++;
  hrecv(kTick, tick, sizeof tick, (nx_handler)on_tick);
}

/* A handler that sleeps itself, while more messages come. */
static void on_nap(long type, long count, long node, long ptype) {
  (void)type, (void)count, (void)node, (void)ptype;
  const double start = now();
  usleep(50000);
  nap_ms = (long)((now() - start) * 1e3);
  naps++;
}

static void by_sleep(void) { CHECK(sleep(1) == 0); }
static void by_usleep(void) { CHECK(usleep(300000) == 0); }
static void by_nanosleep(void) {
  const struct timespec time = {0, 300000000};
  CHECK(nanosleep(&time, NULL) == 0);
}
static void by_clock(void) {
  const struct timespec time = {0, 300000000};
  CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL) == 0);
}
static void until(clockid_t clock) {
  struct timespec end;
  clock_gettime(clock, &end);
  end.tv_nsec += 300000000;
  if (end.tv_nsec >= 1000000000) end.tv_sec++, end.tv_nsec -= 1000000000;
  CHECK(clock_nanosleep(clock, TIMER_ABSTIME, &end, NULL) == 0);
}
static void by_deadline(void) { until(CLOCK_MONOTONIC); }
static void by_day_time(void) { until(CLOCK_REALTIME); }
static void by_select(void) {
  struct timeval time = {0, 300000};
  CHECK(select(0, NULL, NULL, NULL, &time) == 0 && time.tv_sec == 0 && time.tv_usec == 0);
}
static void by_poll(void) { CHECK(poll(NULL, 0, 300) == 0); }

/* Handlers run before it is over: nothing else calls the library here. Their sender may not have got a core, so it is
 * tried again. */
static void lasts(void (*rest)(void), double seconds) {
  long during = 0;
  for (int i = 0; i < 20 && during == 0; i++) {
    const long before = hits;
    const double start = now();
    rest();
    const double took = now() - start;
    during = hits - before;
    if (took < seconds) printf("a rest of %g s took %g s\n", seconds, took), failures++;
  }
  CHECK(during > 0);
}

static void on_alarm(int number) { (void)number, alarms++; }

static void is_ended(void) {
  signal(SIGALRM, on_alarm);
  const long before = alarms;
  alarm(1);
  const unsigned left = sleep(3000);
  CHECK(alarms == before + 1 && left > 0 && left < 3000);
  alarm(1);
  const struct timespec time = {3000, 0};
  struct timespec rest = {0, 0};
  CHECK(nanosleep(&time, &rest) == -1 && errno == EINTR && rest.tv_sec > 0 && rest.tv_sec < 3000);
  const struct timespec wrong = {0, 1000000000};
  CHECK(nanosleep(&wrong, NULL) == -1 && errno == EINVAL);
}

static void sleeper(void) {
  hrecv(kTick, tick, sizeof tick, (nx_handler)on_tick);
  gsync();
  lasts(by_sleep, 1);
  lasts(by_usleep, 0.3);
  lasts(by_nanosleep, 0.3);
  lasts(by_clock, 0.3);
  lasts(by_deadline, 0.29);
  lasts(by_day_time, 0);
  lasts(by_select, 0.3);
  lasts(by_poll, 0.3);
  is_ended();
  hrecv(kNap, NULL, 0, (nx_handler)on_nap);
  csend(kNap, NULL, 0, 1, 0);
  for (int i = 0; i < 100 && naps == 0; i++) lasts(by_usleep, 0.3);
  CHECK(naps == 1 && nap_ms >= 50);
  csend(kStop, NULL, 0, 1, 0);
}

/* 200 messages in a second and more, until the sleeper has slept enough. */
static void sender(void) {
  char none[1];
  const long nap = irecv(kNap, none, 0), end = irecv(kStop, none, 0);
  gsync();
  int asked = 0;
  for (long i = 0; !msgdone(end); i++) {
    csend(kTick, &i, sizeof i, 0, 0);
    if (!asked && msgdone(nap)) asked = 1, csend(kNap, NULL, 0, 0, 0);
    usleep(1000000 / kAtLeast);
  }
}

int main(void) {
  me = mynode();
  if (me == 0) sleeper();
  else if (me == 1) sender();
  else gsync();
  gsync();
  return verdict("sleeps");
}
