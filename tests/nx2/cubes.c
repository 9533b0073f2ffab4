/* A host with two cubes at a time. usage: cubes NODE_PROGRAM [TYPE_OF_THE_SECOND]
 * The nodes are those of cubes_node.c. */
#include <cube.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static int failures;
static char large[100000];

#define CHECK(condition)                                    \
  do {                                                      \
    if (!(condition)) {                                     \
      printf("cubes, line %d: %s\n", __LINE__, #condition); \
      failures++;                                           \
    }                                                       \
  } while (0)

static void ask(double value) { csend(1, &value, sizeof value, -1, 0); }

/* What the nodes of the attached cube make of `value`: each of them adds its number. */
static void hear(double value) {
  double sum = 0, wanted = 0, x;
  long n;
  for (n = 0; n < numnodes(); n++) {
    crecv(2, &x, sizeof x);
    sum += x;
    wanted += value + n;
    CHECK(infonode() < numnodes());
  }
  CHECK(sum == wanted);
}

int main(int argc, char** argv) {
  const char* type = argc > 2 ? argv[2] : "d1";
  long first, id;
  int i;
  if (argc < 2) return 2;
  setpid(100);
  getcube("one", "", NULL, 0);
  first = numnodes();
  load(argv[1], -1, 0);
  getcube("two", (char*)type, NULL, 0);
  CHECK(cubeinfo(NULL, 0, 0) == 2 && mypid() == 100 && myhost() == numnodes());
  CHECK(_attachcube("three") == -1 && errno == EQPARAM);
  load(argv[1], -1, 0);
  for (i = 0; i < 3; i++) { /* both work at a time */
    attachcube("one");
    CHECK(numnodes() == first);
    ask(i);
    attachcube("two");
    ask(10 * i);
    hear(10 * i);
    attachcube("one");
    hear(i);
  }
  /* A long message moves on while the other cube is attached. */
  memset(large, 7, sizeof large);
  id = isend(3, large, sizeof large, 0, 0);
  attachcube("two");
  ask(1);
  hear(1);
  msgwait(id);
  attachcube("one");
  crecv(4, large, sizeof large);
  CHECK(infocount() == sizeof large && large[sizeof large - 1] == 8);
  ask(-1); /* they end */
  waitall(-1, -1);
  relcube("one");
  CHECK(cubeinfo(NULL, 0, 0) == 1);
  ask(5); /* to the one that is left */
  hear(5);
  killcube(-1, -1);
  printf("cubes: %s\n", failures ? "FAILED" : "ok");
  return failures != 0;
}
