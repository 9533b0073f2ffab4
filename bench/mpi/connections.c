/* connections: what a job of many ranks costs after barriers, sums over all, a ring and a gather. Lines "init_ms", the
 * longest MPI_Init; "connections", TCP connections of all ranks, each counted at both ends; "most", those of the rank
 * that has most; "resident_MB" and "own_MB", the memory of a rank on average: resident, and its share of what several
 * have (Pss). */
#include "bench.h"

#include <dirent.h>
#include <time.h>
#include <unistd.h>

/* Inodes of established TCP connections in this network. */
static int established(unsigned long* inodes, int room) {
  int count = 0;
  for (int six = 0; six < 2; ++six) {
    FILE* file = fopen(six ? "/proc/self/net/tcp6" : "/proc/self/net/tcp", "r");
    char line[512];
    for (int first = 1; file && fgets(line, sizeof line, file); first = 0) {
      unsigned state;
      unsigned long inode;
      if (!first && count < room && sscanf(line, " %*d: %*s %*s %x %*s %*s %*s %*d %*d %lu", &state, &inode) == 2 &&
          state == 1)
        inodes[count++] = inode;
    }
    if (file) fclose(file);
  }
  return count;
}

static int compare_inodes(const void* a, const void* b) {
  const unsigned long x = *(const unsigned long*)a, y = *(const unsigned long*)b;
  return (x > y) - (x < y);
}

static double own_connections(void) {
  enum { kRoom = 1 << 18 };
  unsigned long* inodes = malloc(kRoom * sizeof *inodes);
  const int count = established(inodes, kRoom);
  int mine = 0;
  DIR* folder = opendir("/proc/self/fd");
  qsort(inodes, (size_t)count, sizeof *inodes, compare_inodes);
  for (struct dirent* entry; folder && (entry = readdir(folder));) {
    char name[300], target[300];
    unsigned long inode;
    snprintf(name, sizeof name, "/proc/self/fd/%s", entry->d_name);
    const ssize_t length = readlink(name, target, sizeof target - 1);
    if (length <= 0) continue;
    target[length] = 0;
    if (sscanf(target, "socket:[%lu]", &inode) == 1 &&
        bsearch(&inode, inodes, (size_t)count, sizeof inode, compare_inodes))
      ++mine;
  }
  if (folder) closedir(folder);
  free(inodes);
  return mine;
}

static double megabytes(const char* field) {
  FILE* file = fopen("/proc/self/smaps_rollup", "r");
  char line[256];
  double kilobytes = 0;
  while (file && fgets(line, sizeof line, file))
    if (strncmp(line, field, strlen(field)) == 0) kilobytes = atof(line + strlen(field));
  if (file) fclose(file);
  return kilobytes / 1024;
}

int main(int argc, char** argv) {
  int rank, size, value = 1, sum = 0;
  struct timespec begun, there;
  clock_gettime(CLOCK_MONOTONIC, &begun);
  MPI_Init(&argc, &argv);
  clock_gettime(CLOCK_MONOTONIC, &there);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int* all = malloc((size_t)size * sizeof *all);
  for (int i = 0; i < 3; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 1, &value, 1, MPI_INT, (rank + size - 1) % size, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    value = 1;
    MPI_Gather(&rank, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(all, size, MPI_INT, 0, MPI_COMM_WORLD);
  }
  if (sum != size || all[size - 1] != size - 1) {
    fprintf(stderr, "connections: rank %d: wrong results\n", rank);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  const double init = (double)(there.tv_sec - begun.tv_sec) * 1e3 + (double)(there.tv_nsec - begun.tv_nsec) * 1e-6;
  const double mine[4] = {own_connections(), megabytes("Rss:"), megabytes("Pss:"), init};
  double total[4], most[4];
  MPI_Reduce(mine, total, 4, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(mine, most, 4, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0)
    printf("init_ms %.3f\nconnections %.0f\nmost %.0f\nresident_MB %.3f\nown_MB %.3f\n", most[3], total[0], most[0],
           total[1] / size, total[2] / size);
  MPI_Finalize();
  return 0;
}
