/* A token goes round the ring of all nodes, and every node adds its number to it. */
#include <stdio.h>
#include <cube.h>

#define TOKEN 100
#define TURNS 3

main()
{
  long me, nodes, next, token, turn, expected;

  me = mynode();
  nodes = numnodes();
  next = (me + 1) % nodes;
  token = 0;
  for (turn = 0; turn < TURNS; turn++) {
    if (me == 0) {
      csend((long)TOKEN, &token, (long)sizeof token, next, mypid());
      crecv((long)TOKEN, &token, (long)sizeof token);
    } else {
      crecv((long)TOKEN, &token, (long)sizeof token);
      token = token + me;
      csend((long)TOKEN, &token, (long)sizeof token, next, mypid());
    }
  }
  if (me == 0) {
    expected = TURNS * (nodes * (nodes - 1) / 2);
    printf("ring: %ld nodes, %d turns, token %ld: %s\n", nodes, TURNS, token, token == expected ? "ok" : "WRONG");
    if (token != expected) return 1;
  }
  return 0;
}
