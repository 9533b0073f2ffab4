#!/usr/bin/env bash
# Host programs of NX/2 over emulated interconnects: where the machine had the host, with one cube and with several,
# live and in virtual time, which repeats; what cannot be is refused.
set -uo pipefail
# shellcheck source=nx2_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/nx2_common.bash"
ulfmrun=$stage/bin/ulfmrun nxhost=$stage/bin/nxhost
unset "${!ULFM_@}"

check() {
    local what=$1
    shift
    "$@" || { echo "FAIL $what" && failures=$((failures + 1)); }
}

for program in host host_node cubes cubes_node; do
    "$stage/bin/nxcc" -std=gnu11 -O1 -Wall -Wextra -Werror "$programs/$program.c" -o "$program" || exit 1
done
cat >sum.c <<'C'
#include <cube.h>
#include <stdio.h>
int main(int argc, char **argv) {
  long i, n;
  double x, sum = 0;
  setpid(100);
  getcube("mine", "", NULL, 0);
  load(argv[1], -1, 0);
  n = numnodes();
  for (i = 0; i < n; i++) {
    x = (double)i;
    csend(1, &x, sizeof x, i, 0);
  }
  for (i = 0; i < n; i++) {
    crecv(2, &x, sizeof x);
    sum += x;
  }
  waitall(-1, -1);
  printf("sum %g\n", sum);
  if (argc > 2) crecv(3, &x, sizeof x);
  return 0;
}
C
cat >sum_node.c <<'C'
#include <cube.h>
int main(void) {
  double x;
  crecv(1, &x, sizeof x);
  gsync();
  x *= 2;
  csend(2, &x, sizeof x, myhost(), 100);
  return 0;
}
C
# What a program has sent is still on its way when the next one is loaded at its place, its last word included.
cat >chatty_node.c <<'C'
#include <cube.h>
int main(void) {
  long i;
  for (i = 0; i < 12; i++) csend(9, &i, sizeof i, myhost(), 100);
  return 0;
}
C
cat >eater_node.c <<'C'
#include <cube.h>
static char large[200000];
int main(void) {
  crecv(1, large, sizeof large);
  csend(2, large, sizeof large, myhost(), 100);
  return 0;
}
C
cat >reload.c <<'C'
#include <cube.h>
#include <stdio.h>
static char large[200000];
int main(void) {
  long i, round, value, sum = 0;
  setpid(100);
  getcube("mine", "", NULL, 0);
  for (round = 0; round < 5; round++) {
    load("chatty_node", -1, 0);
    waitall(-1, -1);
    load("eater_node", -1, 0);
    csend(1, large, sizeof large, -1, 0);
    for (i = 0; i < numnodes(); i++) crecv(2, large, sizeof large);
    waitall(-1, -1);
  }
  for (i = 0; i < 5 * 12 * numnodes(); i++) {
    crecv(9, &value, sizeof value);
    sum += value;
  }
  printf("reload: %ld\n", sum);
  return 0;
}
C
cat >silent.c <<'C'
int main(void) { return 0; }
C
for program in sum sum_node silent chatty_node eater_node reload; do "$stage/bin/nxcc" -std=gnu11 "$program.c" -o "$program" || exit 1; done

# Live.
for n in 1 2 5 8; do ran "host over dcm, $n nodes" 0 ': ok$' "$nxhost" -n $n --transport dcm ./host ./host_node; done
for network in 'direct' 'xswitch --topology mesh:2x2' 'dcm'; do
    # shellcheck disable=SC2086 # options
    ran "programs loaded one after the other, $network" 0 '^reload: 990$' "$nxhost" -n 3 --transport $network ./reload
done
ran 'host over xswitch' 0 ': ok$' "$nxhost" -n 4 --transport xswitch --topology mesh:2x2 ./host ./host_node
ran 'by the environment' 0 '^sum 56' env ULFM_TRANSPORT=dcm "$nxhost" -n 8 ./sum ./sum_node
ran 'a program on the command line' 0 '^sum 12' "$nxhost" --transport=dcm ./sum sum_node : -n 4 ./sum_node
ran 'a bad network' 0 ': ok$' "$nxhost" -n 4 --transport dcm --fault 'drop=1e-2,corrupt=1e-3,seed=3' ./host ./host_node
ran 'over no interconnect' 0 ': ok$' "$nxhost" -n 4 --transport direct ./host ./host_node
ran statistics 0 'stats dcm router 0 gateway: messages [1-9]' "$nxhost" -n 4 --transport dcm --stats ./sum ./sum_node
check 'told once' test "$(grep -c 'stats dcm router 0 gateway:' out)" = 1
check 'counters of the host' grep -q 'stats rank 128 .*sent [1-9]' out
ran 'two cubes, no interconnect' 0 '^cubes: ok' "$nxhost" -n 2 ./cubes ./cubes_node
ran 'two cubes over dcm' 0 '^cubes: ok' "$nxhost" -n 4 --transport dcm --topology cube:3 ./cubes ./cubes_node d2
ran 'no room for the second' 1 'getcube' "$nxhost" -n 4 --transport dcm --topology cube:2 ./cubes ./cubes_node d2

cat >sum_f.f <<'F'
      PROGRAM SUMF
      INTEGER I, N, NUMNODES
      DOUBLE PRECISION X, S
      EXTERNAL NUMNODES
      CALL SETPID(100)
      CALL GETCUBE('mine', 'd2', ' ', 0)
      CALL LOAD('sum_node', -1, 0)
      N = NUMNODES()
      S = 0
      DO 10 I = 0, N - 1
        X = I
10    CALL CSEND(1, X, 8, I, 0)
      DO 20 I = 0, N - 1
        CALL CRECV(2, X, 8)
20    S = S + X
      CALL WAITALL(-1, -1)
      WRITE(*, '(A, F6.1)') 'sum ', S
      END
F
if command -v gfortran >/dev/null; then
    "$stage/bin/nxf77" -w sum_f.f -o sum_f || exit 1
    ran 'a host in Fortran' 0 '^sum *12' "$nxhost" -n 4 --transport dcm ./sum_f
    ran 'a host in Fortran, virtual time' 0 '^sum *12' "$nxhost" -n 4 --transport dcm --time virtual ./sum_f
fi

# In virtual time.
none=virtual,compute=none
for transport in dcm dcm,preset=ipsc1 xswitch ideal; do
    ran "sum in virtual time over $transport" 0 '^sum 56' \
        "$nxhost" -n 8 --transport "$transport" --time $none --times first ./sum ./sum_node
    check 'time of the host' grep -q '^ulfm: host: ended at' out
    for again in first second third; do
        ran "the $again time again" 0 "^sum 56" \
            "$nxhost" -n 8 --transport "$transport" --time $none --times again ./sum ./sum_node
        check 'the same times' cmp <(sed 's/"host_s":[^,]*//' first) <(sed 's/"host_s":[^,]*//' again)
    done
done
ran 'two nodes' 0 '^sum 2' "$nxhost" -n 2 --transport dcm --time $none --times first ./sum ./sum_node
check 'the gateway is among the links' grep -q 'gateway 0' first
ran 'a host that is recorded' 0 '^sum 2' "$nxhost" -n 2 --transport dcm --time "virtual,record=$PWD/gaps" ./sum ./sum_node
head -n 2 gaps.128 >short && mv short gaps.128  # the host is behind the 128 nodes of the cube
ran 'a host with a short recording' 0 'the host made [0-9]+ calls more than were recorded' \
    "$nxhost" -n 2 --transport dcm --time "virtual,compute=recorded:$PWD/gaps" ./sum ./sum_node
ran 'host in virtual time' 0 ': ok$' "$nxhost" -n 4 --transport dcm --time $none ./host ./host_node
ran 'two cubes in virtual time' 0 '^cubes: ok' \
    "$nxhost" -n 4 --transport dcm --topology cube:3 --time $none ./cubes ./cubes_node d2
ran 'a host that waits for nobody' 1 'deadlock in virtual time' \
    "$nxhost" -n 2 --transport dcm --time $none ./sum ./sum_node for_ever
ran 'nodes that make no call' 1 'deadlock in virtual time' "$nxhost" -n 2 --transport dcm --time $none ./sum ./silent

# One program for the host, which has no argument, and for its nodes.
cat >alone.c <<'C'
#include <cube.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* Node 0 sends so many messages to its host, which has sent it nothing. */
static long many(char *self, long count) {
  char command[4096];
  long i, got, wrong = 0;
  snprintf(command, sizeof command, "%s many %ld node", self, count);
  load(command, 0, 0);
  for (i = 0; i < count; i++) {
    crecv(4, &got, sizeof got);
    wrong += got != i;
  }
  waitall(-1, -1);
  return wrong;
}
/* Node 1 ends at once, node 0 only after its messages: waitone() for node 0 tells of that one. */
static long waits(char *self, long rounds) {
  char command[4096];
  long round, node, ptype, code, wrong = 0;
  snprintf(command, sizeof command, "%s waits 40 node", self);
  for (round = 0; round < rounds; round++) {
    load(command, -1, 0);
    node = -5;
    wrong += _waitone(0, -1, &node, &ptype, &code) != 0 || node != 0;
    waitall(-1, -1);
    while (_waitone(-1, -1, &node, &ptype, &code) == 0);
    flushmsg(-1, -1, -1);
  }
  return wrong;
}
/* What is sent to a node waits until a program has come, also when one could not be loaded before. */
static long failed(char *self) {
  char command[4096];
  long value = 11;
  const long refused = _load("./nosuch", -1, 0) == -1 && errno != 0;
  csend(5, &value, sizeof value, 1, 0);
  snprintf(command, sizeof command, "%s failed 0 node", self);
  load(command, 1, 0);
  crecv(6, &value, sizeof value);
  waitall(-1, -1);
  return !refused + (value != 12);
}
int main(int argc, char **argv) {
  const long count = argc > 2 ? atol(argv[2]) : 0;
  long i, wrong;
  if (argc > 3) {
    if (strcmp(argv[1], "failed") == 0) {
      crecv(5, &i, sizeof i);
      i++;
      csend(6, &i, sizeof i, myhost(), 1);
    }
    for (i = 0; i < count && mynode() == 0; i++) csend(4, &i, sizeof i, myhost(), 1);
    return 0;
  }
  getcube("alone", "2", "", 0);
  setpid(1);
  wrong = strcmp(argv[1], "many") == 0 ? many(argv[0], count)
        : strcmp(argv[1], "waits") == 0 ? waits(argv[0], count) : failed(argv[0]);
  printf("%s: %ld wrong\n", argv[1], wrong);
  return wrong != 0;
}
C
"$stage/bin/nxcc" -std=gnu11 -O1 -Wall -Wextra -Werror alone.c -o alone || exit 1
for count in 48 49 64 500; do
    ran "$count messages to a host that has sent nothing" 0 'many: 0 wrong' ./alone many $count
    ran "$count such messages over dcm" 0 'many: 0 wrong' "$nxhost" -n 2 --transport dcm ./alone many $count
done
ran 'waitone() for one of two nodes' 0 'waits: 0 wrong' ./alone waits 40
ran 'a message from before a load that failed' 0 'failed: 0 wrong' ./alone failed

ran 'time without an interconnect' 2 'virtual time goes with an emulated interconnect' \
    "$nxhost" -n 2 --time virtual ./sum ./sum_node
ran 'no such transport' 2 'no transport is called' "$nxhost" -n 2 --transport dmc ./sum ./sum_node
ran 'too many nodes' 2 'at most 20' "$nxhost" -n 50 --transport dcm --topology cube:1 ./sum ./sum_node
ran 'an option without its value' 2 'needs a value' "$nxhost" -n 2 --transport
ran "a host and mpiexec's options" 2 'without mpiexec' "$ulfmrun" --cube 2 -wdir /tmp ./sum ./sum_node
ran 'a host and a second program' 2 'one program' "$ulfmrun" --cube 2 ./sum : ./sum_node
finish
