/* What many nodes do at once: all send to all before any receives; all send to one; handlers under load; masks; types
 * that have the sender's number in them; messages too long among others. */
#include "check.h"

enum { MOST = 64, LARGEST = 20000, BIT31 = (int)0x80000000 };
static const long sizes[] = {0, 8, 1000, LARGEST};
enum { SIZES = sizeof sizes / sizeof *sizes };
static char out[LARGEST], in[LARGEST];
static long me, nodes;
static unsigned long state;

static long random_number(long below) {
  state = state * 6364136223846793005UL + 1442695040888963407UL;
  return (long)((state >> 33) % (unsigned long)below);
}

/* Every sender begins with another receiver, every receiver ends with the sender that was first. */
static void all_to_all(void) {
  for (long step = 0; step < nodes; step++) {
    const long to = (me + step) % nodes;
    for (int i = 0; i < SIZES; i++) csend(100 + i, pattern(out, sizes[i], me * nodes + to + i), sizes[i], to, 0);
  }
  for (long step = nodes - 1; step >= 0; step--) {
    const long from = (me + nodes - step) % nodes;
    for (int i = SIZES - 1; i >= 0; i--) {
      crecvx(100 + i, in, LARGEST, from, 0, msginfo);
      CHECK(infocount() == sizes[i] && infonode() == from && is_pattern(in, sizes[i], from * nodes + me + i));
    }
  }
}

/* More than one node has buffers for; what is taken first was sent last. Between senders there is no order. */
static void all_to_one(void) {
  enum { EACH = 100 };
  long number, next_of[MOST] = {0};
  for (long i = 0; i < EACH; i++) csend(1, &i, sizeof i, 0, 0);
  csend(2, NULL, 0, 0, 0);
  if (me == 0) {
    for (long n = 0; n < nodes; n++) crecv(2, NULL, 0);
    for (long i = 0; i < EACH * nodes; i++) {
      crecv(1, &number, sizeof number);
      CHECK(number == next_of[infonode()]++);
    }
  }
  gsync();
}

/* ---- handlers while everybody sends and computes ---- */

enum { ADDED = 10, HANDLED_EACH = 40 };
static long given, total, sum, twice;

static void add(long type, long count, long node, long ptype) {
  if (type != ADDED || count != sizeof given || node >= nodes || ptype != 0) total = -1000000;
  total++;
  sum += given;
  hrecv(ADDED, &given, sizeof given, (nx_handler)add);
}

static void handlers(void) {
  long sent[MOST] = {0}, sent_sum[MOST] = {0}, work[MOST];
  hrecv(ADDED, &given, sizeof given, (nx_handler)add);
  for (long i = 0; i < HANDLED_EACH; i++) {
    const long to = random_number(nodes), value = random_number(1000);
    csend(ADDED, (void*)&value, sizeof value, to, 0);
    sent[to]++, sent_sum[to] += value;
    /* Nothing comes between these. */
    const long before = masktrap(1), total_before = total, sum_before = sum;
    if (before != 0) twice++;
    for (volatile int k = 0; k < 2000; k++) continue;
    flick();
    CHECK(total == total_before && sum == sum_before);
    masktrap(before);
  }
  gisum(sent, nodes, work);
  gisum(sent_sum, nodes, work);
  while (total < sent[me]) flick();
  CHECK(total == sent[me] && sum == sent_sum[me] && twice == 0);
  gsync();
}

/* ---- types ---- */

/* Types 0 to 40, taken by masks of many bits; what a mask does not select stays. */
static void masks(void) {
  enum { EACH = 60 };
  long type, taken = 0, left = 0;
  for (long i = 0; i < EACH; i++) {
    type = (i * 7 + me) % 41;
    csend(type, &type, sizeof type, (me + i) % nodes, 0);
  }
  /* What a node sent before its last message is here when that is. */
  for (long n = 0; n < nodes; n++) csend(50, NULL, 0, n, 0);
  for (long n = 0; n < nodes; n++) crecv(50, NULL, 0);
  for (int turn = 0; turn < 40; turn++) {
    const long bits = random_number(0x7fffffff), mask = BIT31 | bits;
    if (mask == -1) continue;
    while (iprobe(mask)) {
      const long found = infotype(), count = infocount();
      crecv(mask, &type, sizeof type);
      CHECK(infotype() == found && type == found && count == sizeof type);
      CHECK(bits >> (type < 30 ? type : 30) & 1);
      taken++;
    }
    for (long t = 0; t <= 40; t++)
      if (bits >> (t < 30 ? t : 30) & 1) CHECK(iprobe(t) == 0);
  }
  while (iprobe(-1)) crecv(-1, &type, sizeof type), left++;
  long counts[2] = {taken + left, EACH}, work[2];
  gisum(counts, 2, work);
  CHECK(counts[0] == counts[1]);
  gsync();
}

/* As programs did it that have no receive by sender; and the ends of both ranges. */
static void types(void) {
  long bases[] = {0, 1 << 20, 999999999 - MOST, FORCE_TYPE, 1700000000, 1999999999 - MOST};
  long value;
  for (int b = 0; b < 6; b++)
    for (long n = 0; n < nodes; n++) csend(bases[b] + 1 + me, &bases[b], sizeof(long), n, 0);
  csend(FORCE_TYPE + (me << 17), &me, sizeof me, (me + 1) % nodes, 0);
  for (int b = 5; b >= 0; b--)
    for (long n = 0; n < nodes; n++) {
      crecv(bases[b] + 1 + n, &value, sizeof value);
      CHECK(infonode() == n && value == bases[b] && infotype() == bases[b] + 1 + n);
    }
  const long before = (me + nodes - 1) % nodes;
  crecv(FORCE_TYPE + (before << 17), &value, sizeof value);
  CHECK(value == before);
  gsync(); /* nobody sends anything else while -1 is received */
  csend(1999999999, &me, sizeof me, me, 0);
  csend(999999999, &me, sizeof me, me, 0);
  crecv(999999999, &value, sizeof value);
  crecv(-1, &value, sizeof value);
  CHECK(infotype() == 1999999999);
  gsync();
}

/* Every third message is too long for its receive, short or long; it is lost, and no other is. */
static void too_long(void) {
  enum { MESSAGES = 30 };
  const long to = (me + 1) % nodes, from = (me + nodes - 1) % nodes;
  for (long i = 0; i < MESSAGES; i++) csend(20, pattern(out, 20 + i * 600, i), 20 + i * 600, to, 0);
  for (long i = 0; i < MESSAGES; i++) {
    const long size = 20 + i * 600, room = i % 3 == 2 ? size - 1 : size;
    in[room] = 'X';
    if (i % 3 == 2) {
      CHECK_ERROR(EQMSGLONG, _crecv(20, in, room));
    } else {
      crecv(20, in, room);
      CHECK(infocount() == size && infonode() == from && is_pattern(in, size, i));
    }
    CHECK(in[room] == 'X');
  }
  gsync();
}

int main(void) {
  me = mynode(), nodes = numnodes();
  if (nodes > MOST) return 2;
  state = (unsigned long)me + 1;
  all_to_all();
  all_to_one();
  masks();
  types();
  too_long();
  handlers();
  CHECK(iprobe(-1) == 0);
  return verdict("crowd");
}
