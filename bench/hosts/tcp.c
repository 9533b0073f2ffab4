/* tcp serve ADDRESS PORT, and tcp ADDRESS PORT block|poll FIRST LAST SHARE: what two processes reach by a TCP
 * connection and no library, as bench/mpi/latency.c and bandwidth.c measure it: a ping-pong, then windows of 64
 * messages one way, each window answered by a byte, then both ways. block: recv waits in the kernel; poll: it is called
 * again until there is something. Lines "latency size us", "one|both size MB/s". */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { kWindow = 64, kLatencyBatches = 9, kBatches = 7 };

/* What the client asks of the server, both of which then do the same. */
struct Plan {
  uint64_t first, last, share, polls;
};

static int connection, polls;

static void fail(const char* what) {
  fprintf(stderr, "tcp: %s: %s\n", what, strerror(errno));
  exit(1);
}

/* Messages of `size`, `out` bytes and `in` bytes altogether: both directions at once, so that two windows cannot wait
 * for each other. */
static void exchange(const char* from, size_t out, char* to, size_t in, size_t size) {
  size_t sent = 0, got = 0;
  while (sent < out || got < in) {
    ssize_t n = -1;
    if (sent < out) {
      n = send(connection, from + sent % size, size - sent % size,
               MSG_NOSIGNAL | (got < in || polls ? MSG_DONTWAIT : 0));
      if (n > 0) sent += (size_t)n;
      else if (n < 0 && errno != EAGAIN) fail("send");
    }
    if (got < in) {
      const ssize_t m = recv(connection, to + got % size, size - got % size, sent < out || polls ? MSG_DONTWAIT : 0);
      if (m > 0) got += (size_t)m;
      else if (m == 0) exit(0);
      else if (errno != EAGAIN) fail("recv");
      if (m > 0) n = m;
    }
    if (n < 0 && !polls) {
      struct pollfd one = {connection, (short)((sent < out ? POLLOUT : 0) | (got < in ? POLLIN : 0)), 0};
      poll(&one, 1, -1);
    }
  }
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(double* values, int count) {
  qsort(values, (size_t)count, sizeof *values, compare);
  return values[count / 2];
}

/* A message of no bytes is one of 1 byte: TCP has none. */
static double half_trip(char* buffer, size_t size, int client, int count) {
  if (size == 0) size = 1;
  const double start = now();
  for (int i = 0; i < count; ++i) {
    if (client) exchange(buffer, size, NULL, 0, size);
    exchange(NULL, 0, buffer, size, size);
    if (!client) exchange(buffer, size, NULL, 0, size);
  }
  return (now() - start) / count / 2 * 1e6;
}

static double stream(char* from, char* to, size_t size, int client, int count, int both) {
  const double start = now();
  for (int i = 0; i < count; ++i) {
    exchange(from, both || client ? size * kWindow : 0, to, both || !client ? size * kWindow : 0, size);
    exchange(from, client ? 0 : 1, to, client ? 1 : 0, 1);
  }
  return (both ? 2.0 : 1.0) * (double)size * kWindow * count / (now() - start) / 1e6;
}

static int shared(int count, const struct Plan* plan) {
  const int less = count / (int)plan->share;
  return less > 0 ? less : 1;
}

static size_t next(size_t size) { return size == 0 ? 1 : size * 2; }

static void run(const struct Plan* plan, int client) {
  char *from = malloc(plan->last + 1), *to = malloc(plan->last + 1);
  double batch[kLatencyBatches];
  memset(from, 1, plan->last + 1);
  memset(to, 1, plan->last + 1);
  for (size_t size = plan->first; size <= plan->last; size = next(size)) {
    const int count = shared(size <= 4096 ? 2000 : size <= 65536 ? 300 : size <= 1048576 ? 30 : 4, plan);
    half_trip(from, size, client, count);
    for (int i = 0; i < kLatencyBatches; ++i) batch[i] = half_trip(from, size, client, count);
    if (client) printf("latency %zu %.5f\n", size, median(batch, kLatencyBatches));
  }
  for (int both = 0; both < 2; ++both)
    for (size_t size = plan->first ? plan->first : 1; size <= plan->last; size = next(size)) {
      const int count = shared(size <= 4096 ? 200 : size <= 65536 ? 30 : size <= 524288 ? 4 : 1, plan);
      stream(from, to, size, client, count, both);
      for (int i = 0; i < kBatches; ++i) batch[i] = stream(from, to, size, client, count, both);
      if (client) printf("%s %zu %.4f\n", both ? "both" : "one", size, median(batch, kBatches));
    }
}

int main(int argc, char** argv) {
  const int client = argc == 7, one = 1;
  struct Plan plan = {0, 0, 1, 0};
  if (!client && (argc != 4 || strcmp(argv[1], "serve") != 0)) {
    fprintf(stderr, "usage: tcp serve ADDRESS PORT, tcp ADDRESS PORT block|poll FIRST LAST SHARE\n");
    return 2;
  }
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[client ? 2 : 3]))};
  if (inet_pton(AF_INET, argv[client ? 1 : 2], &address.sin_addr) != 1) fail("address");
  connection = socket(AF_INET, SOCK_STREAM, 0);
  if (client) {
    plan = (struct Plan){strtoul(argv[4], NULL, 0), strtoul(argv[5], NULL, 0), strtoul(argv[6], NULL, 0),
                         argv[3][0] == 'p'};
    if (plan.share == 0) plan.share = 1;
    for (int i = 0; connect(connection, (struct sockaddr*)&address, sizeof address) != 0; ++i) {
      if (i == 500) fail("connect");
      close(connection);
      connection = socket(AF_INET, SOCK_STREAM, 0);
      usleep(10000);
    }
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    exchange((const char*)&plan, sizeof plan, NULL, 0, sizeof plan);
  } else {
    setsockopt(connection, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(connection, (struct sockaddr*)&address, sizeof address) != 0 || listen(connection, 1) != 0) fail("listen");
    const int listener = connection;
    connection = accept(listener, NULL, NULL);
    if (connection < 0) fail("accept");
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    exchange(NULL, 0, (char*)&plan, sizeof plan, sizeof plan);
  }
  polls = (int)plan.polls;
  run(&plan, client);
  return 0;
}
