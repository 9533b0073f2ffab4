/* What the measuring programs share. Plain MPI: each library compiles the same sources. */
#ifndef BENCH_H
#define BENCH_H
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* This process's rank, as the launcher tells it before MPI_Init: hosts that are namespaces share their cores. */
static inline int bench_place(void) {
  static const char* const names[] = {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"};
  for (unsigned i = 0; i < sizeof names / sizeof *names; ++i)
    if (getenv(names[i])) return atoi(getenv(names[i]));
  return 0;
}

/* Ends the program, before MPI_Init, when it was given fewer arguments than that. */
static inline void bench_needs(int argc, int arguments, const char* usage) {
  if (argc > arguments) return;
  if (bench_place() == 0) fprintf(stderr, "usage: %s\n", usage);
  exit(2);
}

/* BENCH_CORES=0,1: process i on the i-th of them, in turn, so that every library is pinned alike. */
static inline void bench_pin(void) {
  int cores[1024], count = 0;
  const char* text = getenv("BENCH_CORES");
  while (text && *text && count < 1024) {
    char* end;
    cores[count++] = (int)strtol(text, &end, 10);
    text = *end == ',' ? end + 1 : NULL;
  }
  if (count == 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cores[bench_place() % count], &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) perror("bench: sched_setaffinity");
}

static inline int bench_compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static inline double bench_median(double* values, int count) {
  qsort(values, (size_t)count, sizeof *values, bench_compare);
  return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static inline void* bench_buffer(size_t bytes) {
  void* buffer = NULL;
  if (posix_memalign(&buffer, 4096, bytes ? bytes : 1) != 0) {
    fprintf(stderr, "bench: no memory for %zu bytes\n", bytes);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  memset(buffer, 1, bytes ? bytes : 1);
  return buffer;
}

/* Sizes "0:64M" in powers of two, with 0 in front when asked for. */
static inline size_t bench_number(const char* text) {
  char* end;
  const size_t n = strtoul(text, &end, 10);
  return n << (*end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0);
}
/* A count of repetitions, divided by argument `index` where that is given, for networks that are slower than memory. */
static inline int bench_share(int count, int argc, char** argv, int index) {
  const int share = argc > index ? atoi(argv[index]) : 1;
  return share > 1 && count > share ? count / share : share > 1 ? 1 : count;
}
static inline size_t bench_next(size_t size) { return size == 0 ? 1 : size * 2; }

#endif
