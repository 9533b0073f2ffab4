/* Conjugate gradients for Poisson's equation on a square grid, five points to an equation. Rows of the grid are dealt
 * in blocks; each step takes the edges of two neighbours and two sums over all nodes (gdsum). The right side is made
 * from a known solution, so both the residual and the solution can be checked. Works for any number of nodes; beyond
 * GRID some have no rows. */
#include <stdio.h>
#include <cube.h>

#define GRID 32
#define UP 1
#define DOWN 2
#define ROW ((long)sizeof(double) * (GRID + 2))

/* A border of zeros, or of the neighbours' rows, is round what a node has. */
typedef double field[GRID + 2][GRID + 2];
static field x, b, r, p, q, known;
static long me, first, rows, above, below;

/* The first nodes have a row more when there are some left over; above and below are -1 at the ends. */
deal()
{
  long nodes, rest, busy;

  me = mynode();
  nodes = numnodes();
  rest = GRID % nodes;
  rows = GRID / nodes + (me < rest);
  first = me * (GRID / nodes) + (me < rest ? me : rest);
  busy = nodes < GRID ? nodes : GRID;
  above = me > 0 && me < busy ? me - 1 : -1;
  below = me + 1 < busy ? me + 1 : -1;
}

/* The rows next to a node's own. */
edges(v)
field v;
{
  if (above >= 0) csend((long)UP, v[1], ROW, above, mypid());
  if (below >= 0) csend((long)DOWN, v[rows], ROW, below, mypid());
  if (above >= 0) crecv((long)DOWN, v[0], ROW);
  if (below >= 0) crecv((long)UP, v[rows + 1], ROW);
}

/* y = A v */
apply(v, y)
field v, y;
{
  long i, j;

  edges(v);
  for (i = 1; i <= rows; i++)
    for (j = 1; j <= GRID; j++)
      y[i][j] = 4 * v[i][j] - v[i - 1][j] - v[i + 1][j] - v[i][j - 1] - v[i][j + 1];
}

double dot(v, w)
field v, w;
{
  double sum, work;
  long i, j;

  sum = 0;
  for (i = 1; i <= rows; i++)
    for (j = 1; j <= GRID; j++) sum = sum + v[i][j] * w[i][j];
  gdsum(&sum, 1L, &work);
  return sum;
}

/* v = s * v + t * w */
combine(v, s, w, t)
field v, w;
double s, t;
{
  long i, j;

  for (i = 1; i <= rows; i++)
    for (j = 1; j <= GRID; j++) v[i][j] = s * v[i][j] + t * w[i][j];
}

/* What must come out, at row k and column j of the whole grid, counted from 1; the border is zero. */
double solution(k, j)
long k, j;
{
  if (k < 1 || k > GRID || j < 1 || j > GRID) return 0.0;
  return (double)(k * (GRID + 1 - k)) * j / GRID + (k * 7 + j * 5) % 11;
}

/* The equations that it solves; nobody's edges are needed for that. */
set()
{
  long i, j, k;

  for (i = 1; i <= rows; i++)
    for (j = 1; j <= GRID; j++) {
      k = first + i;
      known[i][j] = solution(k, j);
      b[i][j] = 4 * solution(k, j) - solution(k - 1, j) - solution(k + 1, j) - solution(k, j - 1) - solution(k, j + 1);
    }
}

/* The steps that were made; x, r, p and q are zero before. */
long solve()
{
  double rr, before, start, alpha;
  long step;

  combine(r, 0.0, b, 1.0);
  combine(p, 0.0, b, 1.0);
  start = rr = dot(r, r);
  for (step = 0; step < 10 * GRID && rr > 1e-24 * start; step++) {
    apply(p, q);
    alpha = rr / dot(p, q);
    combine(x, 1.0, p, alpha);
    combine(r, 1.0, q, -alpha);
    before = rr;
    rr = dot(r, r);
    combine(p, rr / before, r, 1.0);
  }
  return step;
}

main()
{
  double residual, error;
  long step, good;

  deal();
  set();
  step = solve();
  /* The residual anew, not the one that was carried along. */
  apply(x, q);
  combine(q, -1.0, b, 1.0);
  residual = dot(q, q) / dot(b, b);
  combine(x, 1.0, known, -1.0);
  error = dot(x, x) / dot(known, known);
  good = residual < 1e-20 && error < 1e-20;
  if (me == 0)
    printf("cg: %d x %d on %ld nodes, %ld steps, squared residual %.1e, squared error %.1e: %s\n", GRID, GRID,
           numnodes(), step, residual, error, good ? "ok" : "WRONG");
  return !good;
}
