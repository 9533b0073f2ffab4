/* A program for machines where long and int are the same, compiled with NX_LONG_IS_INT: arrays are of int. */
#define CHECK(condition) \
  if (!(condition)) printf("line %d: %s\n", __LINE__, #condition), bad = 1
#include <cube.h>
#include <stdio.h>

int main(void) {
  int bad = 0, x = mynode(), work, info[8], all[64], count, list[1];
  const int nodes = numnodes(), next = (x + 1) % nodes, before = (x + nodes - 1) % nodes;
  gisum(&x, 1, &work);
  CHECK(x == nodes * (nodes - 1) / 2);
  x = mynode();
  list[0] = next;
  gsendx(1, &x, 4, list, 1);
  crecvx(1, &x, 4, -1, -1, info);
  CHECK(x == before && info[0] == 1 && info[1] == 4 && info[2] == before);
  csend(2, &x, 4, next, 0);
  crecv(2, &x, 4);
  CHECK(msginfo[0] == 2 && msginfo[2] == before);
  x = mynode();
  gcol(&x, 4, all, sizeof all, &count);
  CHECK(count == 4 * nodes && all[nodes - 1] == nodes - 1);
  gior(&bad, 1, &work);
  if (mynode() == 0) printf("int_program, %d nodes: %s\n", nodes, bad ? "FAILED" : "ok");
  return bad;
}
