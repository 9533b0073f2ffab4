/* A host and its cube: getcube, setpid, load, messages both ways, waitone, killcube, waitall, relcube.
 * usage: host NODE_PROGRAM */
#include <cube.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOST_PID = 100, NODE_PID = 7 };
static int failures;
static char large[300000], back[300000];

#define CHECK(condition)                                   \
  do {                                                     \
    if (!(condition)) {                                    \
      printf("host, line %d: %s\n", __LINE__, #condition); \
      failures++;                                          \
    }                                                      \
  } while (0)

static void talk(long nodes) {
  for (size_t i = 0; i < sizeof large; i++) large[i] = (char)(i * 13);
  csend(1, large, sizeof large, -1, NODE_PID); /* to all nodes of the cube, before they have started */
  for (long n = 0; n < nodes; n++) {
    crecv(2, back, sizeof back);
    CHECK(infocount() == sizeof back && infopid() == NODE_PID && infonode() < nodes);
    CHECK(memcmp(large, back, sizeof back) == 0);
  }
  for (long n = 0; n < nodes; n++) {
    long value = n * n;
    csend(3, &value, sizeof value, n, NODE_PID);
    crecvx(4, &value, sizeof value, n, NODE_PID, msginfo);
    CHECK(value == n * n + n && infonode() == n);
  }
}

int main(int argc, char** argv) {
  long node, pid, code;
  if (argc < 2) return 2;
  CHECK(_csend(1, large, 8, 0, 0) == -1 && errno == EQNOSET);
  getcube("test", "", NULL, 0);
  attachcube("test");
  const long nodes = numnodes();
  CHECK(mynode() == myhost() && myhost() == nodes);
  setpid(HOST_PID);
  CHECK(mypid() == HOST_PID && _setpid(5) == -1 && errno == EQSET);
  CHECK(_load("/no/such/program", -1, NODE_PID) == -1 && errno == ENOENT);
  CHECK(_load(argv[1], nodes, NODE_PID) == -1 && errno == EQNODE);
  CHECK(_gsync() == -1 && errno == EQNODE); /* global operations are the nodes' */
  load(argv[1], -1, NODE_PID);
  CHECK(_load(argv[1], 0, NODE_PID) == -1 && errno == EQUSEPID);
  talk(nodes);
  waitone(-1, -1, &node, &pid, &code);
  CHECK(node >= 0 && node < nodes && pid == NODE_PID && code == 0);
  waitall(-1, -1);
  CHECK(_waitone(node, -1, &node, &pid, &code) == -1 && errno == EQNOPROC);
  CHECK(cubeinfo(NULL, 0, 0) == 1 && _newserver("test") == 0);
  /* Again, node by node; these are killed, while they wait for what never comes. */
  for (long n = 0; n < nodes; n++) load(argv[1], n, NODE_PID);
  killcube(0, NODE_PID);
  waitone(0, -1, &node, &pid, &code);
  CHECK(node == 0 && code == 128 + 9);
  killcube(-1, -1);
  waitall(-1, -1);
  relcube("test");
  /* And once more. */
  load(argv[1], -1, NODE_PID);
  talk(nodes);
  waitall(-1, -1);
  printf("host, %ld nodes: %s\n", nodes, failures ? "FAILED" : "ok");
  return failures != 0;
}
