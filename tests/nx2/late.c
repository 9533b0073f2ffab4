/* A host loads node 1 when node 0 has already sent to it: the messages wait for it. What node 0 sends to node 2, which
 * is
 * never loaded, is lost, and nobody waits for it at the end. usage: late PROGRAM, where PROGRAM is this program */
#include "check.h"

enum { HOST_PID = 100, NODE_PID = 7, LENGTH = 70000 };
static char out[LENGTH], in[LENGTH];

static void first(void) {
  for (long node = 1; node <= 2; node++) {
    csend(1, pattern(out, 50, 1), 50, node, NODE_PID);
    csend(2, pattern(out, LENGTH, 2), LENGTH, node, NODE_PID);
  }
  csend(3, NULL, 0, myhost(), HOST_PID);
  crecv(4, NULL, 0);
  CHECK(infonode() == 1);
}

static void second(void) {
  crecv(1, in, LENGTH);
  CHECK(infonode() == 0 && infocount() == 50 && is_pattern(in, 50, 1));
  crecv(2, in, LENGTH);
  CHECK(infonode() == 0 && infocount() == LENGTH && is_pattern(in, LENGTH, 2));
  csend(4, NULL, 0, 0, NODE_PID);
}

int main(int argc, char** argv) {
  if (argc < 2) {
    if (mynode() == 0) first();
    else second();
    return failures != 0;
  }
  getcube("late", "3", NULL, 0);
  setpid(HOST_PID);
  load(argv[1], 0, NODE_PID);
  crecv(3, NULL, 0);
  load(argv[1], 1, NODE_PID);
  waitall(-1, -1);
  printf("late: %s\n", failures == 0 ? "ok" : "FAILED");
  return failures != 0;
}
