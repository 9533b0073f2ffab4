/* Programs that do what is unusual: odd_jobs HOW
 * child: prints "child"; as a spawned process it is received from. nest: spawns a child. many: two ranks spawn at once,
 * each two commands with arguments of 100 KB in all, and check what they have got.
 * printed: descriptor 1 is closed in MPI, then printed to. chroot DIR: in MPI, before the first message. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ARGUMENTS = 1000, LENGTH = 100, WORDS = 1 << 16 };
static int rank, size, wrong;

/* What the parent gave: arguments that tell whose they are, and which command's. */
static int be_child(int argc, char** argv, MPI_Comm parent) {
  int found = 0;
  for (int i = 2; i < argc; i++) found += strlen(argv[i]) == LENGTH && argv[i][0] == argv[2][0];
  if (argc > 2) found = found * 256 + argv[2][0];
  MPI_Send(&found, 1, MPI_INT, 0, 1, parent);
  MPI_Comm_disconnect(&parent);
  return 0;
}

static void nest(char* program) {
  MPI_Comm child;
  char* arguments[] = {"child", NULL};
  int found = -1;
  MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &child, MPI_ERRCODES_IGNORE);
  MPI_Recv(&found, 1, MPI_INT, 0, 1, child, MPI_STATUS_IGNORE);
  wrong += found != 0;
  MPI_Comm_disconnect(&child);
}

static void many(char* program) {
  char* commands[2] = {program, program};
  char** arguments[2];
  const int counts[2] = {1, 1};
  const MPI_Info infos[2] = {MPI_INFO_NULL, MPI_INFO_NULL};
  MPI_Comm child;
  for (int i = 0; i < 2; i++) {
    arguments[i] = calloc(ARGUMENTS + 2, sizeof(char*));
    arguments[i][0] = "child";
    for (int j = 1; j <= ARGUMENTS; j++) {
      arguments[i][j] = calloc(LENGTH + 1, 1);
      memset(arguments[i][j], 'a' + 2 * rank + i, LENGTH);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Comm_spawn_multiple(2, commands, arguments, counts, infos, 0, MPI_COMM_SELF, &child, MPI_ERRCODES_IGNORE);
  for (int i = 0; i < 2; i++) {
    int found = 0;
    MPI_Recv(&found, 1, MPI_INT, i, 1, child, MPI_STATUS_IGNORE);
    if (found == ARGUMENTS * 256 + 'a' + 2 * rank + i) continue;
    fprintf(stderr, "rank %d: its child %d found %d arguments of %c\n", rank, i, found / 256, found % 256);
    wrong++;
  }
  MPI_Comm_disconnect(&child);
}

static void exchange(void) {
  static int out[WORDS], in[WORDS];
  for (int peer = 0; peer < size; peer++) {
    for (int i = 0; i < WORDS; i++) out[i] = rank * WORDS + i;
    MPI_Sendrecv(out, WORDS, MPI_INT, peer, 2, in, WORDS, MPI_INT, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < WORDS; i++) wrong += in[i] != peer * WORDS + i;
  }
}

static void printed(void) {
  struct stat now;
  close(STDOUT_FILENO);
  exchange();
  wrong += fstat(STDOUT_FILENO, &now) == 0;
  printf("a line that goes nowhere\n");
  fflush(stdout);
  exchange();
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  MPI_Comm parent;
  int all = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) be_child(argc, argv, parent);
  else if (strcmp(how, "nest") == 0) nest(argv[0]);
  else if (strcmp(how, "many") == 0) many(argv[0]);
  else if (strcmp(how, "printed") == 0) printed();
  else if (strcmp(how, "chroot") == 0 && chroot(argv[2]) == 0) exchange();
  if (parent == MPI_COMM_NULL) {
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) fprintf(stderr, "%s: wrong %d\n", how, all);
  }
  MPI_Finalize();
  return 0;
}
