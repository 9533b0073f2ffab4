/* Every call of MPI, for jobs in virtual time: ulfmrun --time preloads this library before the MPI library, so that the
 * clock knows where a program's own computing begins and ends, and so that MPI_Wtime tells virtual time.
 *
 * MPI's profiling interface makes this possible: each MPI_X is a PMPI_X too. All arguments are integers and pointers
 * (MPI_Pcontrol is left alone), which the calling conventions of 64-bit machines pass in registers and in words of the
 * stack; so one body, which passes thirteen words on, serves calls of any number up to that. What a call does not have
 * is passed on as what happens to be there, and looked at by nobody. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ulfm/ulfm.h>

#include "inside.h"

typedef long word;
typedef word (*call)(word, word, word, word, word, word, word, word, word, word, word, word, word);

static void* next_of(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (found != NULL) return found;
  fprintf(stderr, "ulfm: the MPI library of this program has no %s; --time needs its profiling interface\n", name);
  _Exit(1);
}

#define CALL(name)                                                                                                    \
  __attribute__((visibility("default"))) word name(word a, word b, word c, word d, word e, word f, word g, word h,    \
                                                   word i, word j, word k, word l, word m);                           \
  word name(word a, word b, word c, word d, word e, word f, word g, word h, word i, word j, word k, word l, word m) { \
    static call next;                                                                                                 \
    if (next == NULL) next = (call)next_of("P" #name);                                                                \
    ++ulfm_time_inside_mpi;                                                                                           \
    ulfm_time_enter(#name);                                                                                           \
    if (starts(#name)) ulfm_time_hold(1);                                                                             \
    const word result = next(a, b, c, d, e, f, g, h, i, j, k, l, m);                                                  \
    if (starts(#name)) ulfm_time_hold(0);                                                                             \
    if (looks(#name)) ulfm_time_look();                                                                               \
    ulfm_time_leave();                                                                                                \
    --ulfm_time_inside_mpi;                                                                                           \
    return result;                                                                                                    \
  }

/* Calls that a program makes in a loop until something has happened; known when this is compiled. */
static inline __attribute__((always_inline)) int looks(const char* name) {
  return strncmp(name, "MPI_Test", 8) == 0 || strcmp(name, "MPI_Iprobe") == 0 || strcmp(name, "MPI_Improbe") == 0 ||
         strcmp(name, "MPI_Request_get_status") == 0;
}

/* The processes that it starts join while it waits for them. */
static inline __attribute__((always_inline)) int starts(const char* name) {
  return strncmp(name, "MPI_Comm_spawn", 14) == 0;
}

#include "calls.list"

__attribute__((visibility("default"))) double MPI_Wtime(void);
double MPI_Wtime(void) {
  static double (*next)(void);
  if (ulfm_time_is_virtual()) return (double)ulfm_time_now() * 1e-9;
  if (next == NULL) *(void**)&next = next_of("PMPI_Wtime");
  return next();
}

__attribute__((visibility("default"))) double MPI_Wtick(void);
double MPI_Wtick(void) { return 1e-9; }
