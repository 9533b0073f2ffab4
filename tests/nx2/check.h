/* What the NX/2 test programs share. A failed check says where, and the program fails. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <nx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      printf("node %ld, line %d: %s\n", (long)mynode(), __LINE__, #condition); \
      failures++;                                                              \
    }                                                                          \
  } while (0)

/* The underscore form fails with that error number. */
#define CHECK_ERROR(number, call)                                                                            \
  do {                                                                                                       \
    errno = 0;                                                                                               \
    if ((call) != -1 || errno != (number)) {                                                                 \
      printf("node %ld, line %d: %s: errno %d, not %d\n", (long)mynode(), __LINE__, #call, errno, (number)); \
      failures++;                                                                                            \
    }                                                                                                        \
  } while (0)

static inline char* pattern(char* to, long size, long seed) {
  for (long i = 0; i < size; i++) to[i] = (char)(seed * 31 + i * 7 + i / 251);
  return to;
}

static inline int is_pattern(const char* from, long size, long seed) {
  for (long i = 0; i < size; i++)
    if (from[i] != (char)(seed * 31 + i * 7 + i / 251)) return 0;
  return 1;
}

/* Sums what failed on all nodes; the exit code. */
static inline int verdict(const char* name) {
  long all = failures, work;
  gisum(&all, 1, &work);
  if (mynode() == 0) printf("%s, %ld nodes: %s\n", name, (long)numnodes(), all == 0 ? "ok" : "FAILED");
  return all != 0;
}

#endif
