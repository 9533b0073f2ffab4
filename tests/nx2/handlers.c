/* Handlers: hrecv, hsend, hsendrecv, hrecvx, hsendx, masktrap; while the program computes, sleeps, allocates and
 * prints, and while it waits in a call. */
#include <unistd.h>

#include "check.h"

enum { REQUEST = 10, REPLY = 11 };
static long me, nodes;
static volatile long hits, sums, sent, within, nested;
static long request[2], given[4];
static char large[200000];

static void record(long type, long count, long node, long ptype) {
  given[0] = type, given[1] = count, given[2] = node, given[3] = ptype;
  hits++;
}

/* Serves and posts itself again, as these programs do. */
static void serve(long type, long count, long node, long ptype) {
  if (within) nested++;
  within = 1;
  if (type != REQUEST || count != sizeof request || ptype != 0) hits = -1000000;
  const long answer = request[0] * 2 + request[1];
  char* memory = malloc(64 + (size_t)answer % 1000); /* what the program was doing allows it */
  csend(REPLY, (void*)&answer, sizeof answer, node, 0);
  free(memory);
  hits++;
  hrecv(REQUEST, request, sizeof request, (nx_handler)serve);
  within = 0;
}

static void ask(long rounds) {
  for (long i = 0; i < rounds; i++) {
    long question[2] = {i, me}, answer = -1;
    csend(REQUEST, question, sizeof question, 0, 0);
    crecv(REPLY, &answer, sizeof answer);
    CHECK(answer == 2 * i + me);
  }
}

/* What node 0 does meanwhile. */
static void compute(void) {
  volatile double x = 0;
  for (int i = 0; i < 1000; i++) x += i * 0.5;
}
static void allocate(void) {
  char* memory[20];
  for (int i = 0; i < 20; i++) memory[i] = malloc((size_t)i * 100 + 1);
  for (int i = 0; i < 20; i++) free(memory[i]);
}
static void print(void) {
  char text[200];
  for (int i = 0; i < 20; i++) snprintf(text, sizeof text, "%d %g", i, i * 0.1);
}
static void sleep_a_little(void) { usleep(100); }
static void probe(void) { iprobe(99); }

/* Each node asks so many times; with many nodes fewer times, as it is all the same one who answers. */
static void serving(void (*meanwhile)(void), long rounds) {
  if (nodes > 8) rounds = 1 + rounds * 8 / nodes;
  hits = 0;
  gsync();
  if (me == 0)
    while (hits < rounds * (nodes - 1)) meanwhile();
  else ask(rounds);
  gsync();
  CHECK(me != 0 || (hits == rounds * (nodes - 1) && nested == 0));
}

static void add(long type, long count, long node, long ptype, long hparam) {
  (void)type, (void)count, (void)node, (void)ptype;
  sums += hparam;
}

static void on_sent(long type, long count, long node, long ptype) {
  if (type == 30 && count == sizeof large && node == (me + 1) % nodes && ptype == 0) sent++;
}

static void kinds(void) {
  static char in[sizeof large];
  const long next = (me + 1) % nodes, before = (me + nodes - 1) % nodes;
  hits = sent = sums = 0;
  hrecv(30, in, sizeof in, (nx_handler)record);
  gsync();
  hsend(30, pattern(large, sizeof large, me), sizeof large, next, 0, (nx_handler)on_sent);
  while (hits == 0 || sent == 0) compute();
  CHECK(hits == 1 && sent == 1 && is_pattern(in, sizeof in, before));
  CHECK(given[0] == 30 && given[1] == sizeof in && given[2] == before && given[3] == 0);
  gsync();
  hits = 0;
  hsendrecv(31, pattern(large, 5000, me), 5000, next, 0, 31, in, sizeof in, (nx_handler)record);
  while (hits == 0) compute();
  CHECK(given[0] == 31 && given[1] == 5000 && is_pattern(in, 5000, before));
  gsync();
  char one[4], two[4];
  hrecvx(-1, one, 4, before, 0, (nx_xhandler)add, 100);
  hrecvx(33, two, 4, -1, -1, (nx_xhandler)add, 1000);
  gsync();
  hsendx(32, "abc", 4, next, 0, (nx_xhandler)add, 1);
  hsendx(33, "def", 4, next, 0, (nx_xhandler)add, 10);
  while (sums < 1111) flick();
  CHECK(sums == 1111 && strcmp(one, "abc") == 0 && strcmp(two, "def") == 0);
  gsync();
}

/* Blocked handlers wait, and what the program learned from its own message stays. */
static void masking(void) {
  char in[8];
  hits = 0;
  CHECK(masktrap(1) == 0);
  CHECK(masktrap(1) == 1);
  hrecv(40, in, sizeof in, (nx_handler)record);
  csend(40, "1234567", 8, me, 0);
  csend(41, "abc", 3, me, 0);
  for (int i = 0; i < 100; i++) compute(), flick();
  CHECK(hits == 0);
  char own[8];
  crecv(41, own, 8);
  CHECK(masktrap(0) == 1);
  CHECK(hits == 1 && strcmp(in, "1234567") == 0);
  CHECK(infotype() == 41 && infocount() == 3);
  /* A handler runs while the program waits in a receive. */
  hits = 0;
  hrecv(42, in, sizeof in, (nx_handler)record);
  gsync();
  csend(42, "x", 1, (me + 1) % nodes, 0);
  csend(43, "", 0, (me + 1) % nodes, 0);
  crecv(43, NULL, 0);
  CHECK(hits == 1);
  gsync();
}

int main(void) {
  me = mynode(), nodes = numnodes();
  kinds();
  masking();
  if (me == 0) hrecv(REQUEST, request, sizeof request, (nx_handler)serve); /* posts itself again for all that follows */
  serving(compute, 50);
  serving(allocate, 5); /* nearly always inside the C library, where it is not interrupted: handlers come late */
  serving(print, 5);
  serving(sleep_a_little, 50);
  serving(probe, 50);
  return verdict("handlers");
}
