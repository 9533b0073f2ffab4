/* A host program of NX/2 and its nodes, which go on for ever; the victim writes its process number into a file when it
 * is at the place that was asked for.
 *   cube_phases PLACE VICTIM FILE
 * PLACE: load, messages, large, global or wait. VICTIM: a node's number, or host. The environment tells the nodes. */
#include <cube.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HOST_PID = 100, LARGE = 300000, SMALL = 8 };
static char data[LARGE];
static const char *place, *victim, *file;

/* The file appears with all that it says. */
static void there(void) {
  char beside[4096];
  FILE* f;
  snprintf(beside, sizeof beside, "%s.new", file);
  f = fopen(beside, "w");
  if (!f) return;
  fprintf(f, "%d\n", (int)getpid());
  fclose(f);
  rename(beside, file);
}

static int at(const char* what) { return strcmp(place, what) == 0; }

/* A turn of what a node does: with the host and with the node next to it. */
static void node_turn(long size) {
  const long next = (mynode() + 1) % numnodes();
  double sum = 1, work;
  if (at("global")) {
    gdsum(&sum, 1, &work);
    return;
  }
  csend(5, data, size, next, 0);
  crecv(5, data, sizeof data);
  crecv(1, data, sizeof data);
  csend(2, data, size, myhost(), HOST_PID);
}

static void host_turn(long size) {
  csend(1, data, size, -1, 0);
  for (long n = 0; n < numnodes(); n++) crecv(2, data, sizeof data);
}

static void go(int mine, int is_host) {
  const long size = at("large") ? LARGE : SMALL;
  for (int turn = 0;; turn++) {
    if (mine && turn == 3) there();
    if (at("wait")) {
      if (mine) there();
      crecv(4711, data, sizeof data); /* which nobody sends */
    }
    if (is_host && at("global")) {
      if (mine) there();
      waitall(-1, -1);
    }
    if (is_host) host_turn(size);
    else node_turn(size);
  }
}

static int node(void) {
  int mine;
  place = getenv("CUBE_PLACE"), victim = getenv("CUBE_VICTIM"), file = getenv("CUBE_FILE");
  mine = strcmp(victim, "host") != 0 && mynode() == atol(victim);
  if (mine && at("load")) there();
  go(mine, 0);
  return 0;
}

int main(int argc, char** argv) {
  int mine;
  if (getenv("CUBE_PLACE")) return node();
  if (argc < 4) return 2;
  place = argv[1], victim = argv[2], file = argv[3];
  setenv("CUBE_PLACE", place, 1);
  setenv("CUBE_VICTIM", victim, 1);
  setenv("CUBE_FILE", file, 1);
  mine = strcmp(victim, "host") == 0;
  setpid(HOST_PID);
  if (mine && at("load")) there();
  load(argv[0], -1, 0);
  go(mine, 1);
  return 0;
}
