/* Every call that a node makes, on any number of nodes, with messages short and long. */
#include <math.h>
#include <unistd.h>

#include "check.h"

static const long sizes[] = {0, 1, 24, 100, 101, 4096, 12289, 100000, 1000003};
enum { SIZES = sizeof sizes / sizeof *sizes, LARGEST = 1000003 };
static char out[LARGEST], in[LARGEST];
static long me, nodes, next, before;

static void blocking(void) {
  for (int i = 0; i < SIZES; i++) {
    const long size = sizes[i];
    /* All send before any receives. */
    csend(10 + me, pattern(out, size, me + i), size, next, 0);
    memset(out, 0, (size_t)size); /* the buffer is free when csend returns */
    crecv(10 + before, in, LARGEST);
    CHECK(infocount() == size && infonode() == before && infotype() == 10 + before);
    CHECK(infoptype() == 0 && infopid() == 0 && infnode() == before);
    CHECK(msginfo[0] == 10 + before && msginfo[1] == size && msginfo[2] == before && msginfo[3] == 0);
    CHECK(is_pattern(in, size, before + i));
    /* To oneself. */
    csend(5, pattern(out, size, 3), size, me, 0);
    crecv(5, in, size);
    CHECK(infonode() == me && infocount() == size && is_pattern(in, size, 3));
    gsync();
    CHECK(csendrecv(20, pattern(out, size, me), size, next, 0, 20, in, size) == size);
    CHECK(is_pattern(in, size, before));
  }
}

/* Messages of one sender and type come in the order they were sent, short and long ones mixed. */
static void order(void) {
  for (long i = 0; i < 300; i++) csend(30, pattern(out, sizes[i % 7], i), sizes[i % 7], next, 0);
  csend(31, NULL, 0, next, 0);
  crecv(31, NULL, 0); /* the last is taken first, which needs all the others to be kept */
  for (long i = 0; i < 300; i++) {
    crecv(30, in, LARGEST);
    CHECK(infocount() == sizes[i % 7] && is_pattern(in, sizes[i % 7], i));
  }
}

static void asynchronous(void) {
  static char many[SIZES][LARGEST];
  long mid[SIZES], sent[SIZES];
  for (int i = 0; i < SIZES; i++) mid[i] = irecv(40 + i, many[i], sizes[i]);
  gsync();
  static char from[SIZES][LARGEST];
  for (int i = SIZES - 1; i >= 0; i--) sent[i] = isend(40 + i, pattern(from[i], sizes[i], i), sizes[i], next, 0);
  for (int i = 0; i < SIZES; i++) {
    CHECK(mid[i] >= 0 && sent[i] >= 0);
    if (i % 2 == 0) msgwait(mid[i]);
    else
      while (!msgdone(mid[i])) flick();
    CHECK(infotype() == 40 + i && infocount() == sizes[i]);
    CHECK(is_pattern(many[i], sizes[i], i));
    msgwait(sent[i]);
  }
  CHECK_ERROR(EQMID, _msgdone(mid[0]));
  /* Both sides wait for their sends before anybody receives. */
  sent[0] = isend(50, pattern(out, LARGEST, me), LARGEST, next, 0);
  msgwait(sent[0]);
  crecv(50, in, LARGEST);
  CHECK(is_pattern(in, LARGEST, before));
  sent[0] = isend(51, pattern(out, LARGEST, me + 1), LARGEST, next, 0);
  while (!msgdone(sent[0])) continue;
  crecv(51, in, LARGEST);
  CHECK(is_pattern(in, LARGEST, before + 1));
  mid[0] = isendrecv(52, pattern(out, 70000, me), 70000, next, 0, 52, in, LARGEST);
  msgwait(mid[0]);
  CHECK(infocount() == 70000 && infonode() == before && is_pattern(in, 70000, before));
}

static void merging(void) {
  static char part[4][50000];
  long info[4][8], mid = -1;
  for (int i = 0; i < 4; i++) mid = msgmerge(mid, irecvx(60 + i, part[i], 50000, before, -1, info[i]));
  CHECK(msgmerge(mid, -1) == mid);
  CHECK_ERROR(EQMID, _msgmerge(mid, mid));
  if (nodes > 1) CHECK(msgdone(mid) == 0);
  gsync();
  for (int i = 3; i >= 0; i--) csend(60 + i, pattern(out, 100 + i * 15000, i), 100 + i * 15000, next, 0);
  msgwait(mid);
  for (int i = 0; i < 4; i++) {
    CHECK(info[i][0] == 60 + i && info[i][1] == 100 + i * 15000 && info[i][2] == before && info[i][3] == 0);
    CHECK(is_pattern(part[i], 100 + i * 15000, i));
  }
}

static void cancelling(void) {
  long mid = irecv(70, in, LARGEST);
  msgcancel(mid);
  CHECK_ERROR(EQMID, _msgwait(mid));
  /* A message that a cancelled receive had taken already is received by the next, in its old place. */
  for (int i = 0; i < 4; i++) {
    mid = irecv(71, in, LARGEST);
    gsync();
    csend(71, pattern(out, sizes[i * 2], i), sizes[i * 2], next, 0);
    csend(71, pattern(out, 200000, 50), 200000, next, 0);
    gsync();
    msgcancel(mid);
    crecv(71, in, LARGEST);
    CHECK(infocount() == sizes[i * 2] && is_pattern(in, sizes[i * 2], i));
    crecv(71, in, LARGEST);
    CHECK(infocount() == 200000 && is_pattern(in, 200000, 50));
  }
  /* A cancelled send has been sent. */
  msgcancel(isend(72, pattern(out, LARGEST, 9), LARGEST, next, 0));
  memset(out, 0, sizeof out);
  crecv(72, in, LARGEST);
  CHECK(is_pattern(in, LARGEST, 9));
  msgignore(irecv(73, in, LARGEST));
  msgignore(isend(73, pattern(out, 300000, 8), 300000, next, 0));
  gsync();
  csend(74, NULL, 0, next, 0);
  crecv(74, NULL, 0);
  while (!is_pattern(in, 300000, 8)) flick();
  gsync();
}

static void probing(void) {
  long info[8] = {0};
  CHECK(iprobe(80) == 0 && iprobex(-1, -1, -1, info) == 0);
  gsync();
  csend(80, pattern(out, 123456, 1), 123456, next, 0);
  cprobe(80);
  CHECK(infotype() == 80 && infocount() == 123456 && infonode() == before);
  CHECK(iprobe(-1) == 1 && iprobe(81) == 0);
  cprobex(80, before, 0, info);
  CHECK(info[0] == 80 && info[1] == 123456 && info[2] == before && info[3] == 0);
  CHECK(iprobex(80, before, -1, info) == 1);
  CHECK(iprobex(80, before, 7, info) == 0);
  crecvx(80, in, LARGEST, before, 0, msginfo);
  CHECK(infocount() == 123456 && infonode() == before && is_pattern(in, 123456, 1));
  /* flushmsg drops what it selects and nothing else. */
  csend(82, out, 10, next, 0);
  csend(83, out, 200000, next, 0);
  csend(84, out, 30, next, 0);
  cprobe(84);
  flushmsg(83, -1, -1);
  flushmsg(82, before, 0);
  CHECK(iprobe(82) == 0 && iprobe(83) == 0 && iprobe(84) == 1);
  crecv(84, in, 30);
}

static void selecting(void) {
  long types[] = {3, 29, 30, 31, 999999999, FORCE_TYPE, FORCE_TYPE + 77};
  gsync();
  for (int i = 0; i < 7; i++) csend(types[i], &types[i], sizeof(long), next, 0);
  const long bit = (long)(int)0x80000000;
  long got = 0;
  crecv(bit | 1L << 29, &got, sizeof got);
  CHECK(got == 29);
  crecv(bit | 1L << 30 | 1L << 5, &got, sizeof got); /* bit 30: 30 and above, the first that came */
  CHECK(got == 30);
  crecv(FORCE_TYPE + 77, &got, sizeof got);
  CHECK(got == FORCE_TYPE + 77);
  crecv(bit | 1L << 30, &got, sizeof got);
  CHECK(got == 31);
  crecv(-1, &got, sizeof got);
  CHECK(got == 3 && infotype() == 3);
  crecv(bit | 1L << 30, &got, sizeof got);
  CHECK(got == 999999999);
  CHECK(iprobe(bit | 0x7ffffffeL) == 0); /* a mask does not select force types */
  crecv(-1, &got, sizeof got);
  CHECK(got == FORCE_TYPE);
  /* By node and by process type. */
  gsync();
  for (long n = 0; n < nodes; n++) csend(90, &me, sizeof me, n, 0);
  for (long n = nodes - 1; n >= 0; n--) {
    long info[8];
    crecvx(90, &got, sizeof got, n, 0, info);
    CHECK(got == n && info[2] == n && info[1] == sizeof got);
  }
}

static void process_types(void) {
  CHECK(mypid() == 0 && myptype() == 0);
  gsync();
  csend(95, &me, sizeof me, next, 12); /* waits at its node for a process of that type */
  csend(96, &me, sizeof me, next, 0);
  long got = -1;
  crecv(96, &got, sizeof got);
  CHECK(iprobe(95) == 0);
  setptype(12);
  crecv(95, &got, sizeof got);
  CHECK(got == before && myptype() == 12 && infoptype() == 0);
  setpid(0);
  CHECK(mypid() == 0);
  gsync();
}

static void broadcasts(void) {
  for (int i = 0; i < SIZES; i++) {
    const long root = i % nodes;
    if (me == root) {
      csend(100, pattern(out, sizes[i], i), sizes[i], -1, 0);
      memset(out, 0, (size_t)sizes[i]);
    } else {
      crecvx(100, in, LARGEST, root, -1, msginfo); /* another root's may have come before */
      CHECK(infocount() == sizes[i] && infonode() == root && is_pattern(in, sizes[i], i));
    }
  }
  gsync();
  CHECK(iprobe(100) == 0); /* the sender has none of its own */
  long list[64], count = 0;
  for (long n = 0; n < nodes; n += 2) list[count++] = n;
  if (me == 0)
    for (int i = 0; i < SIZES; i++) gsendx(101, pattern(out, sizes[i], i), sizes[i], list, count);
  for (int i = 0; i < SIZES && me % 2 == 0; i++) {
    crecv(101, in, LARGEST);
    CHECK(infocount() == sizes[i] && is_pattern(in, sizes[i], i));
  }
  gsync();
}

static void identity(void) {
  CHECK(me >= 0 && me < nodes && myhost() == nodes);
  CHECK(nodes <= 1L << nodedim() && (nodes == 1 || nodes > 1L << (nodedim() - 1)));
  for (long i = 0; i < 1000; i++) {
    CHECK(gray(i) == (i ^ i >> 1) && ginv(gray(i)) == i);
    CHECK(__builtin_popcountl(gray(i) ^ gray(i + 1)) == 1);
  }
  CHECK(INVALID_PTYPE == -1 && HOST == myhost());
  led(1);
  led(0);
  flick();
}

/* Both clocks are read inside [outside, end] and round [inside, end of the loop], so a node that loses its processor
 * anywhere between two readings does not fail. */
static void clocks(void) {
  esize_t ticks, later;
  const double outside = dclock();
  const unsigned long milliseconds = mclock();
  hwclock(&ticks);
  const double inside = dclock();
  while (dclock() < inside + 0.03) continue;
  const double least = dclock() - inside;
  const double passed = (double)(mclock() - milliseconds);
  hwclock(&later);
  const double most = dclock() - outside;
  const double counted = ((double)later.shigh - ticks.shigh) * 4294967296.0 + ((double)later.slow - ticks.slow);
  CHECK(passed >= least * 1e3 - 1 && passed <= most * 1e3 + 1);
  CHECK(counted >= least * HWHZ - 1 && counted <= most * HWHZ + 1);
}

/* ---- global operations ---- */

static long farther(double x[3], double work[3]) {
  if (work[0] > x[0]) memcpy(x, work, 3 * sizeof *x);
  return 0;
}

#define REALS(sum, prod, high, low, T)                                                      \
  do {                                                                                      \
    T x[3] = {(T)(me + 1), (T)(me % 2 + 1), (T)-me}, work[3];                               \
    sum(x, 3, work);                                                                        \
    CHECK(x[0] == (T)(nodes * (nodes + 1) / 2) && x[2] == (T) - (nodes * (nodes - 1) / 2)); \
    T y[1] = {(T)(me % 2 + 1)}, w[1];                                                       \
    prod(y, 1, w);                                                                          \
    CHECK(y[0] == (T)pow(2, (double)(nodes / 2)));                                          \
    T z[2] = {(T)me, (T)-me}, v[2];                                                         \
    high(z, 2, v);                                                                          \
    CHECK(z[0] == (T)(nodes - 1) && z[1] == 0);                                             \
    z[0] = (T)me, z[1] = (T)-me;                                                            \
    low(z, 2, v);                                                                           \
    CHECK(z[0] == 0 && z[1] == (T) - (nodes - 1));                                          \
  } while (0)

static void integers(void) {
  long x[2], work[2];
  x[0] = me, x[1] = 1;
  gisum(x, 2, work);
  CHECK(x[0] == nodes * (nodes - 1) / 2 && x[1] == nodes);
  x[0] = me % 3 + 1;
  giprod(x, 1, work);
  long product = 1;
  for (long n = 0; n < nodes; n++) product *= n % 3 + 1;
  CHECK(x[0] == product);
  x[0] = me, x[1] = -me;
  gihigh(x, 2, work);
  CHECK(x[0] == nodes - 1 && x[1] == 0);
  x[0] = me, x[1] = -me;
  gilow(x, 2, work);
  CHECK(x[0] == 0 && x[1] == 1 - nodes);
  long conjunction = -1, disjunction = 0, difference = 0;
  for (long n = 0; n < nodes; n++) conjunction &= ~(1L << n), disjunction |= 1L << n, difference ^= n * 5;
  x[0] = ~(1L << me);
  giand(x, 1, work);
  CHECK(x[0] == conjunction);
  x[0] = 1L << me;
  gior(x, 1, work);
  CHECK(x[0] == disjunction);
  x[0] = me * 5;
  gixor(x, 1, work);
  CHECK(x[0] == difference);
  x[0] = 2, x[1] = me != nodes - 1;
  gland(x, 2, work);
  CHECK(x[0] != 0 && x[1] == 0);
  x[0] = 0, x[1] = me == nodes - 1 ? 4 : 0;
  glor(x, 2, work);
  CHECK(x[0] == 0 && x[1] != 0);
  x[0] = 1, x[1] = me == 0;
  glxor(x, 2, work);
  CHECK((x[0] != 0) == nodes % 2 && x[1] != 0);
}

static void global(void) {
  REALS(gdsum, gdprod, gdhigh, gdlow, double);
  REALS(gssum, gsprod, gshigh, gslow, float);
  integers();
  double far[3] = {(double)((me * 7 + 3) % nodes), (double)me, 5}, work[3];
  gopf(far, sizeof far, work, (nx_combiner)farther);
  CHECK(far[0] == (double)(nodes - 1) && ((long)far[1] * 7 + 3) % nodes == nodes - 1 && far[2] == 5);
  /* The same bits everywhere, whatever the rounding. */
  double sum = 1.0 / (double)(me + 3);
  gdsum(&sum, 1, work);
  double most = sum, least = sum;
  gdhigh(&most, 1, work);
  gdlow(&least, 1, work);
  CHECK(most == least);
  /* Long ones. */
  static double x[20000], w[20000];
  for (int i = 0; i < 20000; i++) x[i] = (double)(me * i);
  gdsum(x, 20000, w);
  for (int i = 0; i < 20000; i++) CHECK(x[i] == (double)(nodes * (nodes - 1) / 2 * i));
  gdsum(x, 0, w);
}

static void collecting(void) {
  static char all[64 * 3000];
  long count = -1, lengths[64], at = 0;
  for (long unit = 1; unit <= 40; unit += 39) {
    const long own = me % 5 * unit;
    gcol(pattern(out, own, me), own, all, sizeof all, &count);
    at = 0;
    for (long n = 0; n < nodes; n++) {
      CHECK(is_pattern(all + at, n % 5 * unit, n));
      at += n % 5 * unit;
    }
    CHECK(count == at);
  }
  for (long n = 0; n < nodes; n++) lengths[n] = (n * 37) % 3000;
  memset(all, 0, sizeof all);
  gcolx(pattern(out, lengths[me], me), lengths, all);
  at = 0;
  for (long n = 0; n < nodes; n++) {
    CHECK(is_pattern(all + at, lengths[n], n));
    at += lengths[n];
  }
  CHECK_ERROR(EQMSGLONG, _gcol(out, 8, all, 8 * nodes - 1, &count));
}

static void opening(void) {
  const long file = gopen("/dev/null", 2, M_UNIX, 0);
  CHECK(file > 2 && write((int)file, "x", 1) == 1);
  close((int)file);
}

int main(void) {
  me = mynode(), nodes = numnodes(), next = (me + 1) % nodes, before = (me + nodes - 1) % nodes;
  identity();
  blocking();
  order();
  asynchronous();
  merging();
  cancelling();
  probing();
  selecting();
  process_types();
  broadcasts();
  clocks();
  global();
  collecting();
  opening();
  CHECK(iprobe(-1) == 0); /* nothing is left over */
  return verdict("calls");
}
