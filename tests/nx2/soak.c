/* Random traffic of every kind between all nodes, of random sizes and types, with receives that are cancelled. What was
 * sent is received, once, whole, and in order for each sender and type. usage: soak MESSAGES [SEED] */
#include "check.h"

enum { TYPES = 5, HANDLED = 5, LARGEST = 60000, OPEN = 12 };

struct message {
  long from, number, size, seed;
};

static long me, nodes;
static unsigned long state;
static unsigned char out[OPEN][sizeof(struct message) + LARGEST];
static unsigned char in[OPEN][sizeof(struct message) + LARGEST], handled[sizeof(struct message) + LARGEST];
static long sending[OPEN], receiving[OPEN];
static long sent_to[64][TYPES + 1], next_from[64][TYPES + 1];
static long total_received, total_sent, cancelled;

static unsigned long random_number(unsigned long below) {
  state = state * 6364136223846793005UL + 1442695040888963407UL;
  return (state >> 33) % below;
}

static long random_size(void) {
  switch (random_number(4)) {
    case 0: return (long)random_number(30);
    case 1: return (long)random_number(400);
    case 2: return (long)random_number(14000);
    default: return (long)random_number(LARGEST);
  }
}

/* In order, whole, and from whom it says. */
static void account(const unsigned char* bytes, long type, long count, long node) {
  struct message head;
  memcpy(&head, bytes, sizeof head);
  CHECK(count == (long)sizeof head + head.size && node == head.from);
  CHECK(head.number == next_from[node][type]);
  CHECK(is_pattern((const char*)bytes + sizeof head, head.size, head.seed));
  next_from[node][type] = head.number + 1;
  total_received++;
}

static long compose(unsigned char* to, long node, long type) {
  const struct message head = {me, sent_to[node][type]++, random_size(), (long)random_number(1000)};
  memcpy(to, &head, sizeof head);
  pattern((char*)to + sizeof head, head.size, head.seed);
  total_sent++;
  return (long)sizeof head + head.size;
}

static void on_message(long type, long count, long node, long ptype) {
  (void)ptype;
  account(handled, type, count, node);
  hrecv(HANDLED, handled, sizeof handled, (nx_handler)on_message);
}

static void send_one(void) {
  const long node = (long)random_number((unsigned long)nodes), type = (long)random_number(TYPES + 1);
  const int slot = (int)random_number(OPEN);
  if (sending[slot] >= 0) {
    if (random_number(2)) msgwait(sending[slot]);
    else if (!msgdone(sending[slot])) return;
    sending[slot] = -1;
  }
  const long size = compose(out[slot], node, type);
  if (random_number(2)) sending[slot] = isend(type, out[slot], size, node, 0);
  else csend(type, out[slot], size, node, 0);
}

/* For each type one receive at a time, so that what completes is the next in order. */
static void receive_one(void) {
  const long type = (long)random_number(TYPES);
  if (receiving[type] < 0) {
    if (random_number(3) == 0 && iprobe(type)) {
      crecv(type, in[type], sizeof in[type]);
      account(in[type], infotype(), infocount(), infonode());
    } else {
      receiving[type] = irecv(type, in[type], sizeof in[type]);
    }
  } else if (msgdone(receiving[type])) {
    account(in[type], infotype(), infocount(), infonode());
    receiving[type] = -1;
  } else if (random_number(4) == 0) {
    msgcancel(receiving[type]);
    receiving[type] = -1;
    cancelled++;
  }
}

/* What everybody has sent to this node has come when the counts agree. */
static void drain(void) {
  long sums[64] = {0}, work[64], expected;
  for (long n = 0; n < nodes; n++)
    for (int t = 0; t <= TYPES; t++) sums[n] += sent_to[n][t];
  for (int slot = 0; slot < OPEN; slot++)
    if (sending[slot] >= 0) msgwait(sending[slot]);
  gisum(sums, nodes, work);
  expected = sums[me];
  while (total_received < expected) receive_one();
  CHECK(total_received == expected);
  for (int t = 0; t < TYPES; t++)
    if (receiving[t] >= 0) msgcancel(receiving[t]);
}

int main(int argc, char** argv) {
  const long messages = argc > 1 ? atol(argv[1]) : 500;
  me = mynode(), nodes = numnodes();
  state = (unsigned long)(argc > 2 ? atol(argv[2]) : 1) * 1000003UL + (unsigned long)me;
  for (int i = 0; i < OPEN; i++) sending[i] = receiving[i] = -1;
  hrecv(HANDLED, handled, sizeof handled, (nx_handler)on_message);
  for (long i = 0; i < messages; i++) {
    const unsigned long what = random_number(8);
    if (what < 4) send_one();
    else if (what < 7) receive_one();
    else flick();
  }
  drain();
  gsync();
  CHECK(iprobe(-1) == 0);
  if (me == 0) printf("node 0: %ld sent, %ld received, %ld cancelled\n", total_sent, total_received, cancelled);
  return verdict("soak");
}
