#!/usr/bin/env bash
# A host program of NX/2 whose nodes are on several hosts, which are namespaces of this machine: the same programs as
# on one host, nodes that are killed, a host that is killed, nodes that end badly, hosts that are not there.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../hosts/hosts.bash
. "$here/../hosts/hosts.bash"
# shellcheck source=nx2_common.bash
. "$here/nx2_common.bash"
trap 'rm -rf "$scratch" "$hosts_folder"' EXIT
unset "${!ULFM_@}"

for program in host host_node; do "$stage/bin/nxcc" -std=gnu11 -O1 "$programs/$program.c" -o "$program" || exit 1; done
cat >spin.c <<'C'
#include <cube.h>
int main(void) {
  volatile long turns = 0;
  csend(1, (char *)&turns, 0, myhost(), 100);
  for (;;) turns++;
}
C
cat >killer.c <<'C'
#include <cube.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
  long i;
  setpid(100);
  load("spin", -1, 0);
  for (i = 0; i < numnodes(); i++) crecv(1, NULL, 0);
  printf("%ld spin\n", numnodes());
  fflush(stdout);
  if (argc > 1) _exit(7); /* as if it had been killed */
  killcube(-1, -1);
  printf("killed %ld\n", numnodes());
  return argc - 1;
}
C
cat >ring_node.c <<'C'
#include <cube.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
  char host[64];
  static char data[100000];
  const long next = (mynode() + 1) % numnodes();
  double sum = mynode(), work;
  if (mynode() == 0) csend(5, data, sizeof data, next, 0);
  crecv(5, data, sizeof data);
  if (mynode() != 0) csend(5, data, sizeof data, next, 0);
  gdsum(&sum, 1, &work);
  gethostname(host, sizeof host);
  printf("node %ld on %s\n", mynode(), host);
  fflush(stdout);
  csend(6, &sum, sizeof sum, myhost(), 100);
  return 0;
}
C
cat >sums_node.c <<'C'
#include <cube.h>
int main(void) {
  long sum = 1, work;
  csend(1, (char *)&sum, 0, myhost(), 100);
  for (;;) gisum(&sum, 1, &work);
}
C
cat >sums.c <<'C'
#include <cube.h>
#include <stdio.h>
int main(void) {
  long i;
  setpid(100);
  load("sums_node", -1, 0);
  for (i = 0; i < numnodes(); i++) crecv(1, NULL, 0);
  fclose(fopen("begun", "w"));
  crecv(2, NULL, 0);
  return 0;
}
C
cat >ring.c <<'C'
#include <cube.h>
#include <stdio.h>
int main(void) {
  double sum = 0, all = 0;
  long i;
  setpid(100);
  load("ring_node", -1, 0);
  for (i = 0; i < numnodes(); i++) {
    crecv(6, &sum, sizeof sum);
    all += sum;
  }
  waitall(-1, -1);
  printf("ring %g\n", all);
  return 0;
}
C
printf '#include <cube.h>\nint main(void) { mynode(); return mynode() == 1 ? 3 : 0; }\n' >bad.c
printf '#include <cube.h>\nint main(void) { setpid(100); load("bad", -1, 0); waitall(-1, -1); crecv(1, 0, 0); }\n' >badhost.c
cat >late.c <<'C'
#include <cube.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
  setpid(100);
  fclose(fopen("begun", "w"));
  while (access("cut", F_OK) != 0) usleep(1000);
  load("sums_node", -1, 0);
  for (;;) crecv(2, NULL, 0);
}
C
for program in spin killer ring_node ring bad badhost sums_node sums late; do
    "$stage/bin/nxcc" -std=gnu11 "$program.c" -o "$program" || exit 1
done

hosts_up 3
cube=(nsenter -t "$(cat "$hosts_folder/h1.pid")" -n -u -- "$stage/bin/nxhost" -launcher-exec "$hosts_launcher")

ran 'a node on each of 2 hosts' 0 ': ok$' "${cube[@]}" -n 2 -hosts h1,h2 ./host ./host_node
ran '5 nodes on 2 hosts' 0 ': ok$' "${cube[@]}" -n 5 -hosts h1,h2 ./host ./host_node
ran 'all nodes on another host' 0 ': ok$' "${cube[@]}" -n 2 -hosts h2 ./host ./host_node
ran 'nodes talk to each other, 3 hosts' 0 '^ring 90$' "${cube[@]}" -n 6 -hosts h1,h2,h3 ./ring
ran 'two nodes in a row on each' 0 '^ring 24$' "${cube[@]}" -n 4 -ppn 2 -hosts h2,h3 ./ring
ran '20 nodes on another host' 0 '^ring 3800$' "${cube[@]}" -n 20 -hosts h2 ./ring
for transport in ofi tcp; do
    ran "over $transport" 0 '^ring 24$' "${cube[@]}" -n 4 --transport $transport -hosts h1,h2 ./ring
    ULFM_TRANSPORT=$transport ran "over $transport by a variable" 0 '^ring 24$' "${cube[@]}" -n 4 -hosts h1,h2 ./ring
done
echo 'transport = "tcp"' >settings.toml
ran 'over tcp by a file' 0 '^ring 24$' "${cube[@]}" -n 4 --config settings.toml -hosts h1,h2 ./ring
printf '\xef\xbb\xbfh2:1\n# the other\nh3' >hostfile
ran 'a file of hosts' 0 '^node 1 on h3$' env UID=7 SHELLOPTS=braceexpand "${cube[@]}" -n 2 -f hostfile ./ring
grep -q 'still waits for a message' out && echo "FAIL a host whose nodes begin is taken for a lonely one" && failures=$((failures + 1))
printf 'root@h3:2\n' >hostfile
ran 'a file with a user' 0 '^node 1 on h3$' "${cube[@]}" -n 2 -f hostfile ./ring
ran 'users and addresses' 0 '^node 3 on h2$' "${cube[@]}" -n 4 -hosts 'root@h3,[fd77::2]:3' ./ring
ran 'an address without brackets' 2 'is no host; .* in brackets' "${cube[@]}" -n 2 -hosts fd77::3 ./ring
printf 'h2:2 user=root # by ssh -l\n' >hostfile
ran 'a file with a user behind a host' 0 '^node 1 on h2$' "${cube[@]}" -n 2 -f hostfile ./ring
printf 'h2 slots=2\n' >hostfile
ran 'a file of another launcher' 2 'behind h2 only user=NAME is taken; found "slots=2"' "${cube[@]}" -n 2 -f hostfile ./ring
printf 'h2:x\n' >hostfile
ran 'a file with a wrong number' 2 'hostfile: "h2:x" is no host' "${cube[@]}" -n 2 -f hostfile ./ring
ran 'a node program on the command line' 0 '^node 3 on h2$' "${cube[@]}" -n 4 -hosts h1,h2 ./ring : ./ring_node
ran 'nodes that compute are killed' 0 '^killed 2$' "${cube[@]}" -n 2 -hosts h1,h2 ./killer

# gone PROGRAM: its nodes end within 30 s.
gone() {
    for _ in $(seq 300); do
        pgrep -x "$1" >/dev/null || { echo "ok   none is left" && return; }
        sleep 0.1
    done
    echo "FAIL nodes are left" && failures=$((failures + 1))
}
gone spin
ran 'a host that ends at once' 7 '2 spin' "${cube[@]}" -n 2 -hosts h1,h2 ./killer leave
gone spin
ran 'a node that ends badly' 1 'nx: node 1 on h2 ended with status 3; the job ends' "${cube[@]}" -n 2 -hosts h1,h2 ./badhost
ran 'a host that is not there' 1 'nx: node 1 on h9 ended with status 255' "${cube[@]}" -n 2 -hosts h1,h9 ./ring
# Where the other host's shell ends before the program begins, the host program waits for its nodes and is told why.
beside_host 1 "$stage/bin/nxhost" -launcher-exec /bin/true -n 1 -hosts h2 ./ring </dev/null >out 2>&1 &
lonely=$!
for _ in $(seq 300); do
    grep -q 'node 0 on h2 before its first call (does "/bin/true h2 echo hello" print hello?)' out && break
    sleep 0.1
done
if grep -q 'before its first call' out; then
    echo "ok   a node that never begins"
else
    echo "FAIL a node that never begins" && cat out && failures=$((failures + 1))
fi
kill "$lonely" && wait "$lonely"
# A host vanishes, and what has started a node there does not notice: ssh's connection says nothing.
rm -f begun
printf '#!/bin/bash\n%q "$@"\nexec sleep 1000\n' "$hosts_launcher" >unaware
chmod +x unaware
ULFM_GIVE_UP=2s timeout 100 nsenter -t "$(cat "$hosts_folder/h1.pid")" -n -u -- "$stage/bin/nxhost" -launcher-exec "$PWD/unaware" \
    -n 3 -hosts h1,h2,h3 ./sums </dev/null >out 2>&1 &
until [[ -e begun ]]; do
    kill -0 $! || break
    sleep 0.05
done
cut_cable 2
wait $!
code=$?
if ((code == 1)) && grep -q 'nx: node 1 on h2 does not answer' out; then
    echo "ok   a host vanishes"
else
    echo "FAIL a host vanishes: exit code $code" && head -n 20 out && failures=$((failures + 1))
fi
join_cable 2
gone sums_node
# Nodes are loaded onto a host that has vanished: they reach no host program, and end.
rm -f begun
(
    until [[ -e begun ]]; do sleep 0.05; done
    cut_cable 2
    touch cut
) &
ULFM_GIVE_UP=2s ran 'a load onto a host that has vanished' 1 'nx: node 1 on h2 ended with status 1' "${cube[@]}" -n 3 -hosts h1,h2,h3 ./late
touch begun
wait $!
join_cable 2
gone sums_node
ran 'an interconnect of one host' 2 'for a cube on one host.*one of: .*tcp' "${cube[@]}" -n 2 -hosts h1,h2 --transport dcm ./ring
ran 'no such transport' 2 'no transport is called' "${cube[@]}" -n 2 -hosts h1,h2 --transport dmc ./ring
ran 'time of one host' 2 '--time is for a cube on one host' "${cube[@]}" -n 2 -hosts h1,h2 --time virtual ./ring
ran 'no list' 2 'needs a value' "${cube[@]}" -n 2 -hosts
ran 'a wrong list' 2 'needs names with commas' "${cube[@]}" -n 2 -hosts 'h1,,h2' ./ring
ran 'a file that is not there' 2 'cannot be read' "${cube[@]}" -f /nosuch ./ring
finish
