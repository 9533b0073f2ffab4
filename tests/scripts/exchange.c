/* exchange SEED ROUNDS: every rank sends every other one messages of drawn sizes, most of them too long for a cell,
 * and receives those of others in a drawn order, so that some are held while others come, answered before they are
 * read, or sent while the memory that both directions share is in use. Each byte is checked. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMost = 12, kLongest = 300000 };
static int rank, ranks;

static uint64_t draw(uint64_t* state) {
  *state += 0x9e3779b97f4a7c15u;
  uint64_t z = *state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* What `from` sends to `to` in a round: the same wherever it is asked. */
static int plan(uint64_t round, int from, int to, int* sizes) {
  uint64_t state = round * 1000003 + (uint64_t)from * 1009 + (uint64_t)to;
  const int count = (int)(draw(&state) % (kMost + 1));
  for (int i = 0; i < count; ++i) {
    const uint64_t kind = draw(&state) % 16;
    const uint64_t most = kind == 0 ? kLongest : kind < 4 ? 40000 : kind < 10 ? 5000 : kind < 14 ? 600 : 60;
    sizes[i] = (int)(draw(&state) % most);
  }
  return count;
}

static unsigned char byte_of(uint64_t round, int from, int tag, int at) {
  return (unsigned char)(round * 31 + (uint64_t)from * 17 + (uint64_t)tag * 5 + (uint64_t)at * 3 + (uint64_t)(at >> 8));
}

static void check(const unsigned char* bytes, int size, uint64_t round, int from, int tag) {
  for (int i = 0; i < size; ++i)
    if (bytes[i] != byte_of(round, from, tag, i)) {
      fprintf(stderr, "exchange: round %llu: rank %d: byte %d of %d, message %d of rank %d\n",
              (unsigned long long)round, rank, i, size, tag, from);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void receive(uint64_t round, int from, int tag, int size, uint64_t how) {
  static unsigned char* room;
  MPI_Status status;
  MPI_Message message;
  int got;
  if (!room) room = malloc(kLongest);
  if (how % 4 == 0) {
    MPI_Mprobe(from, tag, MPI_COMM_WORLD, &message, &status);
    MPI_Mrecv(room, kLongest, MPI_BYTE, &message, &status);
  } else {
    MPI_Recv(room, kLongest, MPI_BYTE, from, tag, MPI_COMM_WORLD, &status);
  }
  MPI_Get_count(&status, MPI_BYTE, &got);
  if (got != size) {
    fprintf(stderr, "exchange: round %llu: %d bytes in place of %d\n", (unsigned long long)round, got, size);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  check(room, size, round, from, tag);
}

static void one_round(uint64_t round) {
  static unsigned char* out[64][kMost];
  MPI_Request requests[64 * kMost];
  int n = 0, sizes[kMost];
  uint64_t own = round * 77 + (uint64_t)rank;
  for (int to = 0; to < ranks; ++to) {
    const int count = to == rank ? 0 : plan(round, rank, to, sizes);
    for (int i = 0; i < count; ++i) {
      if (!out[to][i]) out[to][i] = malloc(kLongest);
      for (int at = 0; at < sizes[i]; ++at) out[to][i][at] = byte_of(round, rank, i, at);
      if (draw(&own) % 8 == 0) MPI_Issend(out[to][i], sizes[i], MPI_BYTE, to, i, MPI_COMM_WORLD, &requests[n++]);
      else MPI_Isend(out[to][i], sizes[i], MPI_BYTE, to, i, MPI_COMM_WORLD, &requests[n++]);
    }
  }
  for (int k = 1; k < ranks; ++k) {
    const int from = (rank + k) % ranks, count = plan(round, from, rank, sizes);
    int order[kMost];
    for (int i = 0; i < count; ++i) order[i] = i;
    for (int i = count - 1; i > 0; --i) {
      const int other = (int)(draw(&own) % (uint64_t)(i + 1)), kept = order[i];
      order[i] = order[other];
      order[other] = kept;
    }
    for (int i = 0; i < count; ++i) receive(round, from, order[i], sizes[order[i]], draw(&own));
  }
  MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

/* Rank 0 and 1 talk, so that they share memory. */
static void converse(uint64_t round) {
  unsigned char bytes[4000];
  for (int i = 0; i < 20 && rank < 2; ++i)
    for (int from = 0; from < 2; ++from) {
      const int size = 300 + (int)((round + (uint64_t)i) % 3700);
      if (rank == from) {
        for (int at = 0; at < size; ++at) bytes[at] = byte_of(round, from, i, at);
        MPI_Send(bytes, size, MPI_BYTE, 1 - rank, 99, MPI_COMM_WORLD);
      } else {
        MPI_Recv(bytes, size, MPI_BYTE, 1 - rank, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check(bytes, size, round, from, i);
      }
    }
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, getenv("EXCHANGE_THREADED") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 3 || ranks < 2 || ranks > 64) {
    if (rank == 0) fprintf(stderr, "usage: mpiexec -n 2..64 exchange SEED ROUNDS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const uint64_t seed = strtoull(argv[1], NULL, 10), rounds = strtoull(argv[2], NULL, 10);
  for (uint64_t round = seed; round < seed + rounds; ++round) {
    one_round(round);
    if (round % 4 == 0) converse(round);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("exchange: %llu rounds from seed %llu\n", (unsigned long long)rounds, (unsigned long long)seed);
  MPI_Finalize();
  return 0;
}
