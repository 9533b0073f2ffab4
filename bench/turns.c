/* turns PROCESSES CALLS: what a barrier costs in yields alone. The processes count themselves in, in memory that they
 * share; the last one counts on an epoch, and the others yield until they see it. Every process has to run once for
 * each barrier, so no library whose waits yield can be quicker where processes share cores. One line: microseconds. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct Barrier {
  _Alignas(64) atomic_int arrived;
  _Alignas(64) atomic_int epoch;
};

static void barrier(struct Barrier* b, int processes, int call) {
  if (atomic_fetch_add(&b->arrived, 1) + 1 == processes) {
    atomic_store(&b->arrived, 0);
    atomic_store(&b->epoch, call + 1);
  }
  while (atomic_load(&b->epoch) <= call) sched_yield();
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

int main(int argc, char** argv) {
  const int processes = argc == 3 ? atoi(argv[1]) : 0, calls = argc == 3 ? atoi(argv[2]) : 0, warm = calls / 10;
  struct Barrier* b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (processes < 1 || calls < 1 || b == MAP_FAILED) {
    fprintf(stderr, "turns: needs PROCESSES CALLS, and memory\n");
    return 2;
  }
  int first = 1;
  for (int i = 1; i < processes && first; ++i) {
    const pid_t child = fork();
    if (child < 0) {
      perror("turns: fork");
      return 1;
    }
    first = child != 0;
    if (!first) prctl(PR_SET_PDEATHSIG, SIGKILL);
  }
  for (int call = 0; call < warm; ++call) barrier(b, processes, call);
  const double start = now();
  for (int call = warm; call < calls; ++call) barrier(b, processes, call);
  const double took = (now() - start) / (calls - warm);
  if (!first) _exit(0);
  while (wait(NULL) > 0) continue;
  printf("%.4f\n", took);
  return 0;
}
