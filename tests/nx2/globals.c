/* globals SEED ROUNDS [DIES]: random global operations; each node prints the same sum of their results. Node 1 dies in
 * round DIES. */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

#include "check.h"

static uint64_t state, sum;

static uint64_t draw(void) { return state = state * 6364136223846793005u + 1442695040888963407u; }
static long below(long most) { return (long)(draw() >> 33) % most; }
static void add(const void* bytes, size_t size) {
  for (size_t i = 0; i < size; i++) sum = (sum ^ ((const unsigned char*)bytes)[i]) * 1099511628211u;
}

static void whole_numbers(long n) {
  long* x = malloc((size_t)n * sizeof *x);
  long* work = malloc((size_t)n * sizeof *work);
  for (long i = 0; i < n; i++) x[i] = mynode() * 1000 + (i * 7 + (long)sum % 97);
  switch (below(5)) {
    case 0: gisum(x, n, work); break;
    case 1: gihigh(x, n, work); break;
    case 2: gilow(x, n, work); break;
    case 3: giand(x, n, work); break;
    default: gixor(x, n, work);
  }
  add(x, (size_t)n * sizeof *x);
  free(x), free(work);
}

/* Whole values, so that the order of the additions does not matter. */
static void real_numbers(long n) {
  double* x = malloc((size_t)n * sizeof *x);
  double* work = malloc((size_t)n * sizeof *work);
  for (long i = 0; i < n; i++) x[i] = (double)(mynode() + i % 13);
  if (below(2)) gdsum(x, n, work);
  else gdhigh(x, n, work);
  add(x, (size_t)n * sizeof *x);
  free(x), free(work);
}

static void collecting(long most) {
  const long nodes = numnodes();
  long* lengths = malloc((size_t)nodes * sizeof *lengths);
  long total = 0, got = 0;
  for (long node = 0; node < nodes; node++) total += lengths[node] = below(most);
  char* mine = malloc((size_t)most);
  char* all = malloc((size_t)total + 1);
  memset(mine, (int)(mynode() * 31 + 5) & 0x7f, (size_t)most);
  if (below(2)) {
    gcol(mine, lengths[mynode()], all, total, &got);
    CHECK(got == total);
  } else {
    gcolx(mine, lengths, all);
  }
  for (long node = 0, at = 0; node < nodes; at += lengths[node++])
    for (long i = 0; i < lengths[node]; i++) CHECK(all[at + i] == (char)((node * 31 + 5) & 0x7f));
  add(all, (size_t)total);
  free(lengths), free(mine), free(all);
}

int main(int argc, char** argv) {
  state = strtoull(argv[1], NULL, 10);
  const long rounds = atol(argv[2]), dies = argc > 3 ? atol(argv[3]) : -1;
  for (long i = 0; i < rounds; i++) {
    if (i == dies && mynode() == 1) raise(SIGKILL);
    const long most = below(8) ? 100 : 20000;
    switch (below(4)) {
      case 0: gsync(); break;
      case 1: whole_numbers(below(most)); break;
      case 2: real_numbers(below(most)); break;
      default: collecting(1 + below(most));
    }
  }
  printf("%016llx\n", (unsigned long long)sum);
  return failures != 0;
}
