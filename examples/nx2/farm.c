/* A master and its workers count the primes below 100000, a piece at a time. Node 0 hands out the pieces from a
 * handler, which interrupts it, and counts pieces itself meanwhile. What both touch is behind masktrap(). Works for
 * any number of nodes; with one the master does all. */
#include <stdio.h>
#include <cube.h>

#define PIECE 10 /* from the master: which; -1: there are no more */
#define RESULT 20
#define PIECES 100
#define NUMBERS 1000
#define PRIMES 9592

struct result {
  long piece; /* -1: none, the worker has just begun */
  long primes;
};

static struct result result;
static long next, workers, times[PIECES], primes, by_workers;

long count(piece)
long piece;
{
  long n, d, found;

  found = 0;
  for (n = piece * NUMBERS; n < (piece + 1) * NUMBERS; n++) {
    for (d = 2; d * d <= n && n % d != 0; d++) continue;
    if (n >= 2 && d * d > n) found++;
  }
  return found;
}

/* With handlers blocked. */
enter(piece, found)
long piece, found;
{
  times[piece]++;
  primes = primes + found;
}

/* The handler: takes a result, gives the worker another piece, and waits for the next. */
take(type, length, node, pid)
long type, length, node, pid;
{
  long piece;

  if (result.piece >= 0) {
    enter(result.piece, result.primes);
    by_workers++;
  }
  piece = next < PIECES ? next++ : -1;
  if (piece < 0) workers--;
  csend((long)PIECE, &piece, (long)sizeof piece, node, pid);
  if (workers > 0) hrecv((long)RESULT, &result, (long)sizeof result, take);
}

master()
{
  long piece, found, old, i, wrong;

  workers = numnodes() - 1;
  if (workers > 0) hrecv((long)RESULT, &result, (long)sizeof result, take);
  for (;;) {
    old = masktrap(1L);
    piece = next < PIECES ? next++ : -1;
    masktrap(old);
    if (piece < 0) break;
    found = count(piece);
    old = masktrap(1L);
    enter(piece, found);
    masktrap(old);
  }
  while (workers > 0) flick();
  wrong = primes != PRIMES;
  for (i = 0; i < PIECES; i++)
    if (times[i] != 1) wrong++;
  printf("farm: %ld nodes, %ld primes, %ld of %d pieces by workers: %s\n", numnodes(), primes, by_workers, PIECES,
         wrong == 0 ? "ok" : "WRONG");
  return wrong != 0;
}

worker()
{
  struct result own;

  own.piece = -1;
  own.primes = 0;
  for (;;) {
    csend((long)RESULT, &own, (long)sizeof own, 0L, mypid());
    crecv((long)PIECE, &own.piece, (long)sizeof own.piece);
    if (own.piece < 0) return 0;
    own.primes = count(own.piece);
  }
}

main()
{
  return mynode() == 0 ? master() : worker();
}
