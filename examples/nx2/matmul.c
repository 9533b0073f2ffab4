/* C = A * B on a q by q grid of nodes, by Cannon's algorithm: blocks of A move left, blocks of B move up, one place in
 * each of q steps. Nodes beyond the largest square take no part but the last one, the check. */
#include <stdio.h>
#include <stdlib.h>
#include <cube.h>

#define TYPE_A 10
#define TYPE_B 20
#define BLOCK 24

static double a[BLOCK][BLOCK], b[BLOCK][BLOCK], c[BLOCK][BLOCK];

/* Element (i, j) of the whole A and B: small whole numbers, so that sums are exact. */
static double a_of(i, j) long i, j; { return (double)((i * 7 + j * 3) % 11 - 5); }
static double b_of(i, j) long i, j; { return (double)((i * 5 + j * 2) % 13 - 6); }

static multiply()
{
  int i, j, k;

  for (i = 0; i < BLOCK; i++)
    for (j = 0; j < BLOCK; j++)
      for (k = 0; k < BLOCK; k++) c[i][j] = c[i][j] + a[i][k] * b[k][j];
}

/* Sends a block to one node and takes another's place of it. */
static shift(type, block, to)
long type, to;
double *block;
{
  long mid;
  static double next[BLOCK * BLOCK];
  int i;

  if (to == mynode()) return 0;
  mid = irecv(type, next, (long)sizeof next);
  csend(type, block, (long)sizeof next, to, mypid());
  msgwait(mid);
  for (i = 0; i < BLOCK * BLOCK; i++) block[i] = next[i];
  return 0;
}

static cannon(q, row, column)
long q, row, column;
{
  long i, j, step, k;

  /* The blocks begin where Cannon's skew would have brought them. */
  k = (row + column) % q;
  for (i = 0; i < BLOCK; i++)
    for (j = 0; j < BLOCK; j++) {
      a[i][j] = a_of(row * BLOCK + i, k * BLOCK + j);
      b[i][j] = b_of(k * BLOCK + i, column * BLOCK + j);
    }
  for (step = 0; step < q; step++) {
    multiply();
    if (step == q - 1) break;
    shift((long)TYPE_A + step, a, row * q + (column + q - 1) % q);
    shift((long)TYPE_B + step, b, (row + q - 1) % q * q + column);
  }
}

static long count_wrong(q, row, column)
long q, row, column;
{
  long i, j, k, wrong = 0;
  double sum;

  for (i = 0; i < BLOCK; i++)
    for (j = 0; j < BLOCK; j++) {
      sum = 0;
      for (k = 0; k < q * BLOCK; k++) sum = sum + a_of(row * BLOCK + i, k) * b_of(k, column * BLOCK + j);
      if (sum != c[i][j]) wrong++;
    }
  return wrong;
}

main()
{
  long me, q, wrong, work;

  me = mynode();
  for (q = 1; (q + 1) * (q + 1) <= numnodes();) q++;
  wrong = 0;
  if (me < q * q) {
    cannon(q, me / q, me % q);
    wrong = count_wrong(q, me / q, me % q);
  }
  gisum(&wrong, 1L, &work);
  if (me == 0)
    printf("matmul: %ld x %ld on %ld x %ld nodes, %ld wrong: %s\n", q * BLOCK, q * BLOCK, q, q, wrong,
           wrong == 0 ? "ok" : "WRONG");
  exit(wrong != 0);
}
