/* The C library's clocks and sleeps in virtual time, for programs that time themselves. They stand before the C library's
 * because ulfmrun preloads this library.
 *
 * Only the program's own code gets virtual time: what a call of MPI, of NX/2 or of the ports asks, and threads that have
 * made no such call, see the host's. Before MPI_Init and behind MPI_Finalize a process has no clock; there its time hardly
 * goes on, and sleeps are the host's.
 *
 * All clocks of a process tell the same time: the day begins on 2000-01-01 whenever the job is started, so that a program
 * that seeds its random numbers with the time repeats. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#include <ulfm/ulfm.h>

#include "inside.h"

#define EXPORT __attribute__((visibility("default")))

enum { kBillion = 1000000000, kSignals = 64 };
static const int64_t kDay = 946684800; /* 2000-01-01 00:00 UTC */
static const int64_t kStep = 100;      /* nanoseconds: of a question without a clock, so that loops end */

__thread int ulfm_time_inside_mpi = 0;

static int64_t last; /* nanoseconds told; a process's clock may come and go */

static int is_mpi_program(void) {
  static int known = -1;
  if (known < 0) known = dlsym(RTLD_DEFAULT, "PMPI_Init") != NULL;
  return known;
}

/* Virtual nanoseconds since the job began; -1: this question is for the host. */
static int64_t virtual_now(void) {
  if (ulfm_time_inside_mpi != 0) return -1;
  if (ulfm_time_is_virtual()) {
    if (!ulfm_time_outside()) return -1;
    return last = ulfm_time_now();
  }
  return is_mpi_program() ? (last += kStep) : -1;
}

/* 1: the program sleeps in virtual time. */
static int virtual_sleep(int64_t nanoseconds) {
  if (ulfm_time_inside_mpi != 0 || !ulfm_time_is_virtual() || !ulfm_time_outside()) return 0;
  if (nanoseconds > 0) ulfm_time_sleep(nanoseconds);
  return 1;
}

/* One that the kernel would take. */
static int is_length(const struct timespec* t) { return t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < kBillion; }
static int64_t in_nanoseconds(const struct timespec* t) {
  return t->tv_sec < INT64_MAX / kBillion ? (int64_t)t->tv_sec * kBillion + t->tv_nsec : INT64_MAX;
}
static int is_day(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI ||
         clock == CLOCK_REALTIME_ALARM;
}

static int host_clock(clockid_t clock, struct timespec* t) { return (int)syscall(SYS_clock_gettime, clock, t); }

EXPORT int clock_gettime(clockid_t clock, struct timespec* t) {
  /* Of other processes and devices: the kernel's affair. */
  const int64_t now = clock >= 0 && clock <= CLOCK_TAI ? virtual_now() : -1;
  if (now < 0) return host_clock(clock, t);
  t->tv_sec = (time_t)(now / kBillion + (is_day(clock) ? kDay : 0));
  t->tv_nsec = (long)(now % kBillion);
  return 0;
}

EXPORT int gettimeofday(struct timeval* restrict t, void* restrict zone) {
  const int64_t now = virtual_now();
  if (now < 0) return (int)syscall(SYS_gettimeofday, t, zone);
  t->tv_sec = (time_t)(now / kBillion + kDay);
  t->tv_usec = (suseconds_t)(now % kBillion / 1000);
  return 0;
}

EXPORT time_t time(time_t* to) {
  struct timespec t;
  (void)clock_gettime(CLOCK_REALTIME, &t);
  if (to != NULL) *to = t.tv_sec;
  return t.tv_sec;
}

EXPORT int timespec_get(struct timespec* t, int base) {
  return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, t) == 0 ? base : 0;
}

EXPORT clock_t clock(void) {
  struct timespec t;
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0) return (clock_t)-1;
  return (clock_t)(in_nanoseconds(&t) / (kBillion / CLOCKS_PER_SEC));
}

EXPORT clock_t times(struct tms* t) {
  const int64_t now = virtual_now();
  if (now < 0) return (clock_t)syscall(SYS_times, t);
  const clock_t ticks = (clock_t)(now / (kBillion / sysconf(_SC_CLK_TCK)));
  if (t != NULL) *t = (struct tms){.tms_utime = ticks};
  return ticks;
}

/* ---- sleeps ------------------------------------------------------------------------------------------------------ */

EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec* t, struct timespec* left) {
  if (!is_length(t)) return EINVAL;
  int64_t how_long = in_nanoseconds(t);
  if ((flags & TIMER_ABSTIME) != 0) {
    const int64_t now = virtual_now();
    if (now >= 0) how_long -= now + (is_day(clock) ? kDay * kBillion : 0);
  }
  if (virtual_sleep(how_long)) return 0;
  return syscall(SYS_clock_nanosleep, clock, flags, t, left) == 0 ? 0 : errno;
}

EXPORT int thrd_sleep(const struct timespec* t, struct timespec* left) {
  switch (clock_nanosleep(CLOCK_REALTIME, 0, t, left)) {
    case 0: return 0;
    case EINTR: return -1;
    default: return -2;
  }
}

EXPORT int nanosleep(const struct timespec* t, struct timespec* left) {
  const int error = clock_nanosleep(CLOCK_MONOTONIC, 0, t, left);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

EXPORT int usleep(useconds_t microseconds) {
  const struct timespec t = {microseconds / 1000000, (long)(microseconds % 1000000) * 1000};
  return nanosleep(&t, NULL);
}

EXPORT unsigned int sleep(unsigned int seconds) {
  const struct timespec t = {seconds, 0};
  struct timespec left = {0, 0};
  return nanosleep(&t, &left) == 0 ? 0 : (unsigned int)left.tv_sec + (left.tv_nsec != 0);
}

/* Waiting for no file at all is an old way to sleep. Files come in the host's time; when none has come by the limit, that
 * has taken its virtual time, so that a loop that polls until a moment ends. */

struct SignalMask { /* as the kernel takes it */
  const sigset_t* set;
  size_t bytes;
};

static int is_sleep(int files, const struct timespec* limit) {
  return files == 0 && limit != NULL && is_length(limit) && virtual_sleep(in_nanoseconds(limit));
}

static int waited(int ready, const struct timespec* limit) {
  if (ready == 0 && limit != NULL) (void)virtual_sleep(in_nanoseconds(limit));
  return ready;
}

EXPORT int select(int count, fd_set* restrict in, fd_set* restrict out, fd_set* restrict other,
                  struct timeval* restrict limit) {
  struct timespec t, left;
  if (limit != NULL) t = (struct timespec){limit->tv_sec + limit->tv_usec / 1000000, limit->tv_usec % 1000000 * 1000};
  left = limit != NULL ? t : (struct timespec){0, 0};
  int ready = 0;
  if (is_sleep(count, limit != NULL ? &t : NULL)) left = (struct timespec){0, 0};
  else
    ready = waited((int)syscall(SYS_pselect6, count, in, out, other, limit != NULL ? &left : NULL, NULL),
                   limit != NULL ? &t : NULL);
  if (limit != NULL) *limit = (struct timeval){left.tv_sec, left.tv_nsec / 1000}; /* as the kernel tells it */
  return ready;
}

EXPORT int pselect(int count, fd_set* restrict in, fd_set* restrict out, fd_set* restrict other,
                   const struct timespec* restrict limit, const sigset_t* restrict signals) {
  if (is_sleep(count, limit)) return 0;
  const struct SignalMask mask = {signals, kSignals / 8};
  struct timespec left; /* the kernel writes into it; the C library does not */
  if (limit != NULL) left = *limit;
  return waited((int)syscall(SYS_pselect6, count, in, out, other, limit != NULL ? &left : NULL, &mask), limit);
}

EXPORT int ppoll(struct pollfd* files, nfds_t count, const struct timespec* limit, const sigset_t* signals) {
  if (is_sleep(count != 0, limit)) return 0;
  struct timespec left;
  if (limit != NULL) left = *limit;
  return waited((int)syscall(SYS_ppoll, files, count, limit != NULL ? &left : NULL, signals, (size_t)(kSignals / 8)),
                limit);
}

EXPORT int poll(struct pollfd* files, nfds_t count, int limit) {
  const struct timespec t = {limit / 1000, (long)(limit % 1000) * 1000000};
  return ppoll(files, count, limit >= 0 ? &t : NULL, NULL);
}

/* ---- waits for another thread, until a moment -------------------------------------------------------------------- */

/* The moment is of a clock that the caller has asked, and so virtual. The other thread works in the host's time, and so
 * long the wait goes on there; a moment that has come has its virtual time. */

struct Limit {
  int64_t left; /* virtual nanoseconds until then; -1: the limit is the host's as it was given */
  clockid_t clock;
  struct timespec at; /* for the host */
};

static struct Limit limit_of(clockid_t clock, const struct timespec* t) {
  struct Limit limit = {-1, clock, *t};
  struct timespec host;
  const int64_t now = is_length(t) ? virtual_now() : -1;
  if (now < 0 || host_clock(CLOCK_MONOTONIC, &host) != 0) return limit;
  const int64_t at = in_nanoseconds(t), day = kDay * kBillion, left = (at >= day ? at - day : at) - now;
  limit.left = left < 0 ? 0 : left;
  limit.clock = CLOCK_MONOTONIC;
  const int64_t nanoseconds = host.tv_nsec + limit.left % kBillion;
  limit.at = (struct timespec){host.tv_sec + limit.left / kBillion + nanoseconds / kBillion, nanoseconds % kBillion};
  return limit;
}

/* What such a wait returned; that it took until its limit costs virtual time. */
static int came_to(int error, const struct Limit* limit) {
  if (error == ETIMEDOUT && limit->left >= 0) (void)virtual_sleep(limit->left);
  return error;
}

static void* next_of(const char* name, void** kept) {
  if (*kept == NULL) *kept = dlsym(RTLD_NEXT, name);
  return *kept;
}

static int cond_wait(pthread_cond_t* c, pthread_mutex_t* m, const struct Limit* limit) {
  static void* kept;
  int (*const next)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*) =
      next_of("pthread_cond_clockwait", &kept);
  return came_to(next(c, m, limit->clock, &limit->at), limit);
}

EXPORT int pthread_cond_clockwait(pthread_cond_t* c, pthread_mutex_t* m, clockid_t clock, const struct timespec* t) {
  const struct Limit limit = limit_of(clock, t);
  return cond_wait(c, m, &limit);
}

/* The host's own limit is of the clock that the condition has. */
EXPORT int pthread_cond_timedwait(pthread_cond_t* restrict c, pthread_mutex_t* restrict m,
                                  const struct timespec* restrict t) {
  static void* kept;
  int (*const next)(pthread_cond_t*, pthread_mutex_t*, const struct timespec*) =
      next_of("pthread_cond_timedwait", &kept);
  const struct Limit limit = limit_of(CLOCK_REALTIME, t);
  return limit.left < 0 ? next(c, m, t) : cond_wait(c, m, &limit);
}

EXPORT int pthread_mutex_clocklock(pthread_mutex_t* m, clockid_t clock, const struct timespec* t) {
  static void* kept;
  int (*const next)(pthread_mutex_t*, clockid_t, const struct timespec*) = next_of("pthread_mutex_clocklock", &kept);
  const struct Limit limit = limit_of(clock, t);
  return came_to(next(m, limit.clock, &limit.at), &limit);
}

EXPORT int pthread_mutex_timedlock(pthread_mutex_t* restrict m, const struct timespec* restrict t) {
  return pthread_mutex_clocklock(m, CLOCK_REALTIME, t);
}

EXPORT int sem_clockwait(sem_t* s, clockid_t clock, const struct timespec* t) {
  static void* kept;
  int (*const next)(sem_t*, clockid_t, const struct timespec*) = next_of("sem_clockwait", &kept);
  const struct Limit limit = limit_of(clock, t);
  if (next(s, limit.clock, &limit.at) == 0) return 0;
  errno = came_to(errno, &limit);
  return -1;
}

EXPORT int sem_timedwait(sem_t* restrict s, const struct timespec* restrict t) {
  return sem_clockwait(s, CLOCK_REALTIME, t);
}
