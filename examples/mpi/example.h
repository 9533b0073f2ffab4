/* What every example does alike: read "[--check] [SIZE]" and report. Plain MPI, nothing of ULFM. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct example {
  int rank, processes;
  int size;  /* the number on the command line, else the default */
  int check; /* --check was given */
};

static inline void example_usage(const struct example* e, const char* program, const char* size_name) {
  if (e->rank == 0) fprintf(stderr, "usage: %s [--check] [%s]   (%s: 1 or more)\n", program, size_name, size_name);
  MPI_Finalize();
  exit(2);
}

static inline struct example example_start(int* argc, char*** argv, const char* size_name, int default_size) {
  MPI_Init(argc, argv);
  struct example e = {0, 1, default_size, 0};
  MPI_Comm_rank(MPI_COMM_WORLD, &e.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &e.processes);
  for (int i = 1; i < *argc; ++i) {
    char* end = (*argv)[i];
    if (strcmp((*argv)[i], "--check") == 0) {
      e.check = 1;
      continue;
    }
    const long size = strtol((*argv)[i], &end, 10);
    if (*end != '\0' || size < 1 || size > 1000000000) example_usage(&e, (*argv)[0], size_name);
    e.size = (int)size;
  }
  return e;
}

static inline void* example_memory(size_t count, size_t bytes) {
  void* memory = calloc(count ? count : 1, bytes);
  if (memory) return memory;
  fprintf(stderr, "needs %zu x %zu bytes, and they are not to be had\n", count, bytes);
  MPI_Abort(MPI_COMM_WORLD, 1);
  return NULL;
}

/* Rank 0 says how the check went; the value is the exit code of the caller. */
static inline int example_verdict(int good, const char* what) {
  if (good) printf("check: ok (%s)\n", what);
  else printf("check: FAILED (%s)\n", what);
  return good ? 0 : 1;
}

#endif
