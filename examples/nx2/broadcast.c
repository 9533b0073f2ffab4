/* Node 0 sends an array to all others at once (node -1), and each node once more along a spanning tree of the cube;
 * both must arrive as they were sent. Works for any number of nodes. */
#include <stdio.h>
#include <cube.h>

#define AT_ONCE 1
#define BY_TREE 2
#define LENGTH 5000

static double table[LENGTH], again[LENGTH];

/* In step i the nodes below 2**i, which have it, hand it to those 2**i above. */
tree_broadcast(me, nodes)
long me, nodes;
{
  long bit;

  for (bit = 1; bit < nodes; bit = bit * 2) {
    if (me < bit) {
      if (me + bit < nodes) csend((long)BY_TREE, again, (long)sizeof again, me + bit, mypid());
    } else if (me < 2 * bit) {
      crecv((long)BY_TREE, again, (long)sizeof again);
    }
  }
}

main()
{
  long me, nodes, i, wrong, work;

  me = mynode();
  nodes = numnodes();
  if (me == 0) {
    for (i = 0; i < LENGTH; i++) table[i] = again[i] = 1.0 / (i + 1);
    csend((long)AT_ONCE, table, (long)sizeof table, -1L, mypid());
  } else {
    crecv((long)AT_ONCE, table, (long)sizeof table);
    if (infocount() != sizeof table || infonode() != 0) printf("node %ld: infocount %ld\n", me, infocount());
  }
  tree_broadcast(me, nodes);
  wrong = 0;
  for (i = 0; i < LENGTH; i++)
    if (table[i] != 1.0 / (i + 1) || again[i] != table[i]) wrong++;
  gisum(&wrong, 1L, &work);
  if (me == 0) printf("broadcast: %ld nodes, %ld wrong: %s\n", nodes, wrong, wrong == 0 ? "ok" : "WRONG");
  return wrong != 0;
}
