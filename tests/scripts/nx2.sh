#!/usr/bin/env bash
# Every NX/2 call, its errors, handlers and endings, on 1 to 64 nodes and with both message protocols for
# every size; random traffic with little room; host programs; Fortran.
set -uo pipefail
# shellcheck source=nx2_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/nx2_common.bash"
ulfmrun=$stage/bin/ulfmrun nxhost=$stage/bin/nxhost

build() {
    local p
    for p in calls errors handlers sleeps draws crowd soak host host_node late paragon ending globals; do
        "$stage/bin/nxcc" -std=gnu11 -O1 -Wall -Wextra -Werror "$programs/$p.c" -o "$p" || return 1
    done
    cc -O1 -shared -fPIC "$programs/counter.c" -o libcounter.so || return 1
    "$stage/bin/nxcc" -std=gnu11 -O1 -Wall -Wextra -Werror "$programs/counts.c" -o counts -L. -lcounter \
        -Wl,-rpath,"$PWD" || return 1
    "$stage/bin/nxcc" -DNX_LONG_IS_INT -w "$programs/int_program.c" -o int_program
}
build || { echo "the programs do not compile" && exit 1; }

for n in 1 2 3 8 16; do
    ran "calls, $n nodes" 0 ': ok$' "$ulfmrun" -n "$n" ./calls
    ran "errors, $n nodes" 0 ': ok$' "$ulfmrun" -n "$n" ./errors
    ran "handlers, $n nodes" 0 ': ok$' "$ulfmrun" -n "$n" ./handlers
    ran "draws, $n nodes" 0 ': ok$' "$ulfmrun" -n "$n" ./draws
    ran "crowd, $n nodes" 0 ': ok$' "$ulfmrun" -n "$n" ./crowd
    ran "ints for longs, $n nodes" 0 ': ok$' "$ulfmrun" -n "$n" ./int_program
done

for n in 2 3; do ran "sleeps, $n nodes" 0 ': ok$' "$ulfmrun" -n "$n" ./sleeps; done
for n in 2 4; do ran "handlers and a library with a lock, $n nodes" 0 ': ok$' timeout 100 "$ulfmrun" -n $n ./counts; done
# The first handler needs a thread, which a process that is at its limit does not get.
cat >no_thread.c <<'C'
#define _GNU_SOURCE
#include <cube.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
static int refuse;
int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *x) {
  int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
  return refuse ? EAGAIN : real(t, a, f, x);
}
static volatile int handled;
static void handle(long type, long count, long node, long pid) { handled += type + count + node + pid; }
int main(void) {
  int in = 0, out = 5;
  mynode();
  refuse = 1;
  const long refused = _hrecv(7, (char *)&in, sizeof in, handle);
  printf("refused %ld errno %d\n", refused, errno);
  refuse = 0;
  hrecv(7, (char *)&in, sizeof in, handle);
  csend(7, (char *)&out, sizeof out, mynode(), mypid());
  while (!handled) flick();
  printf("then %d\n", in);
  return 0;
}
C
"$stage/bin/nxcc" -w -rdynamic no_thread.c -o no_thread
ran 'no thread for handlers' 0 '^refused -1 errno 171$' "$ulfmrun" -n 1 ./no_thread
ran 'a thread for handlers after all' 0 '^then 5$' "$ulfmrun" -n 1 ./no_thread
for program in calls handlers crowd; do ran "$program, 64 nodes" 0 ': ok$' "$ulfmrun" -n 64 ./$program; done
ran 'crowd, 8 nodes, xswitch' 0 ': ok$' "$ulfmrun" --transport xswitch --topology mesh:2x2 -n 8 ./crowd
ran 'crowd, 8 nodes, dcm' 0 ': ok$' "$ulfmrun" --transport dcm --topology cube:3 -n 8 ./crowd
# One trip for nothing but empty messages; the paper's 100 bytes; few buffers; one trip for all that fits.
for setting in NX2_SHORT=0 'NX2_SHORT=100 NX2_BUFFERS=4' NX2_BUFFERS=4 NX2_SHORT=16384; do
    read -ra variables <<<"$setting"
    ran "calls, 5 nodes, $setting" 0 ': ok$' env "${variables[@]}" "$ulfmrun" -n 5 ./calls
    ran "crowd, 5 nodes, $setting" 0 ': ok$' env "${variables[@]}" "$ulfmrun" -n 5 ./crowd
    ran "soak, 3 nodes, $setting" 0 ': ok$' env "${variables[@]}" "$ulfmrun" -n 3 ./soak 400 2
done
# No memory for messages that nobody has asked for: they stay at their senders.
ran 'soak, 4 nodes, no memory' 0 ': ok$' env NX2_MEMORY=0 NX2_BUFFERS=8 "$ulfmrun" -n 4 ./soak 400 3
ran 'soak, 4 nodes, small lanes' 0 ': ok$' \
    env ULFM_LANE_BYTES=8K ULFM_LANE_CELLS=8 ULFM_LANE_AFTER=0 ULFM_DEPTH=4 "$ulfmrun" -n 4 ./soak 400 4
for seed in 5 6; do ran "soak, 8 nodes, seed $seed" 0 ': ok$' "$ulfmrun" -n 8 ./soak 300 $seed; done

# Global operations through shared memory give what messages give, with a core for each node and with fewer.
for n in 2 3 8; do
    ULFM_COLLECTIVES=off "$ulfmrun" -n "$n" ./globals "$n" 400 | sort -u >by_messages
    ULFM_STATS=1 "$ulfmrun" -n "$n" ./globals "$n" 400 2>stats | sort -u >by_memory
    if [[ $(wc -l <by_memory) != 1 ]] || ! cmp by_messages by_memory || ! grep -q 'through shared memory: barrier' stats; then
        echo "FAIL global operations, $n nodes: by memory $(tr '\n' ' ' <by_memory), by messages $(tr '\n' ' ' <by_messages)"
        failures=$((failures + 1))
    fi
done
ran 'a node dies in a global operation' 9 'rank 1 .*killed by signal 9' timeout 100 "$ulfmrun" -n 4 ./globals 1 1000000 300

# A plain form prints the phrase and ends the job.
phrases=('' 'Received message too long for buffer' 'Invalid node' 'Invalid message id' 'Invalid type')
calls=('' crecv csend msgwait csend)
for i in 1 2 3 4; do
    ran "plain error $i" 1 "^\(node 0, pid 0\) ${calls[i]}: ${phrases[i]}\$" "$ulfmrun" -n 1 ./errors $i
    grep -qE 'MPI_Finalize|TERMINAT|signal' out && echo "FAIL error $i brings words of MPI" && failures=$((failures + 1))
    grep -q 'still there' out && echo "FAIL error $i did not end the program" && failures=$((failures + 1))
done
for i in 0 1 2 3 4; do ran "ending $i" 0 'node [0-9] ends' "$ulfmrun" -n 3 ./ending $i; done
ran 'ending 5' 0 'node 0 waits' "$ulfmrun" -n 3 ./ending 5
# A node that abort() or a fault ends says so in NX's words, and the job ends.
cat >dies.c <<'C'
#include <nx.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    char none[4];
    gsync();
    if (mynode() == 1 && argc > 1)
        abort();
    if (mynode() == 1)
        *(volatile int *) 0 = 1;
    crecv(5, none, sizeof none);
    return 0;
}
C
"$stage/bin/nxcc" -w dies.c -o dies
ulimit -c 0
ran 'abort' 134 '^\(node 1, pid 0\) Aborted$' "$ulfmrun" -n 3 ./dies abort
ran 'a fault' 139 '^\(node 1, pid 0\) Segmentation fault$' "$ulfmrun" -n 3 ./dies
grep -qE 'MPI_Finalize|TERMINAT|signal' out && echo "FAIL a fault brings words of MPI" && failures=$((failures + 1))
ran 'one node without a launcher' 0 ': ok$' ./calls

for n in 1 4; do
    ran "host with $n nodes" 0 ': ok$' "$nxhost" -n $n ./host ./host_node
    ran "nx_nfork on $n nodes" 0 ': ok$' ./paragon -sz $n
done
ran 'a node that is loaded late' 0 ': ok$' ./late ./late
# A host program that ulfmrun starts is a node; one whose nodes are not there, or have ended, does not hang without a word.
cat >killer.c <<'C'
#include <cube.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    setpid(0);
    killcube(-1, 0);
    load(argc > 1 ? argv[1] : "nosuchprogram", -1, 0);
    if (argc > 2)
        crecv(1, (void *) 0, 0);
    puts("host ends");
    return 0;
}
C
printf '#include <cube.h>\nint main(void) { return mynode() < 0; }\n' >ends.c
"$stage/bin/nxcc" -std=gnu89 -w killer.c -o killer && "$stage/bin/nxcc" ends.c -o ends
ran 'a host under ulfmrun' 1 'A host program is started by nxhost' "$ulfmrun" -n 1 ./killer
ran 'a host without its nodes' 1 'load: No such file' "$nxhost" -n 2 ./killer
printf 'int main(void) { return 0; }\n' >not_executable
ran 'a host and a file that is no program' 1 'load: Permission denied' "$nxhost" -n 2 ./killer ./not_executable
ran 'a host and a folder' 1 'load: Permission denied' "$nxhost" -n 2 ./killer /tmp
ran 'a host whose nodes end' 0 'host ends' "$nxhost" -n 2 ./killer ./ends
"$nxhost" -n 2 ./killer ./ends wait >out 2>&1 &
for ((tries = 0; tries < 600; tries++)); do ! grep -q 'all nodes have ended' out || break; sleep 0.1; done
kill $! && wait $!
grep -q 'all nodes have ended' out || { echo "FAIL a host that waits for nobody does not say so" && failures=$((failures + 1)); }
printf '#include <cube.h>\n#include <stdio.h>\nint main(void) { long n = mynode(); printf("node %%ld has spoken\\n", n); csend(1, &n, sizeof n, myhost(), 0); crecv(2, (void*)0, 0); return 0; }\n' >speaks.c
printf '#include <cube.h>\nint main(void) { long n, i; setpid(0); load("./speaks", -1, 0); for (i = 0; i < 4; i++) crecv(1, &n, sizeof n); killcube(-1, 0); return 0; }\n' >listens.c
"$stage/bin/nxcc" -w speaks.c -o speaks && "$stage/bin/nxcc" -w listens.c -o listens
ran 'nodes that are killed after they have spoken' 0 'has spoken' "$nxhost" -n 4 ./listens
(($(grep -c 'has spoken' out) == 4)) || { echo "FAIL what killed nodes had printed is lost" && failures=$((failures + 1)); }
ran 'nxhost under ulfmrun' 2 'run it without ulfmrun' "$ulfmrun" -n 1 "$nxhost" -n 2 ./killer
ran 'nxhost without a program' 2 'a host program is needed' "$nxhost" -n 2
ran 'nxhost with a wrong number' 2 'needs a number of nodes' "$nxhost" -n 0 ./host
printf '#include <cube.h>\nint main(void) { if (mynode() == 0) return 3; crecv(1, (void*)0, 0); return 0; }\n' >fails.c
printf '#include <cube.h>\nint main(void) { setpid(1); crecv(1, (void*)0, 0); return 0; }\n' >waits.c
"$stage/bin/nxcc" fails.c -o fails && "$stage/bin/nxcc" waits.c -o waits
ran 'a node that fails ends its host' 1 'node 0 ended with status 3' "$nxhost" -n 2 ./waits : ./fails
# Also when others have ended well in the same moment; a host that asks how its nodes end is told instead.
printf '#include <cube.h>\nint main(void) { return mynode() == 1 ? 3 : 0; }\n' >codes.c
cat >asks.c <<'C'
#include <cube.h>
#include <errno.h>
#include <stdio.h>
int main(void)
{
    long node = 0, pid = 0, code = 0, i;
    setpid(0);
    load("./codes", -1, 7);
    for (i = 0; i < 4; i++) {
        waitone(-1, 7, &node, &pid, &code);
        printf("node %ld, type %ld: %ld\n", node, pid, code);
    }
    load("./codes", 0, 7);
    printf("other type: %d\n", _waitone(0, 8, &node, &pid, &code) == -1 && errno == EQNOPROC);
    return 0;
}
C
"$stage/bin/nxcc" codes.c -o codes && "$stage/bin/nxcc" -w asks.c -o asks
ran 'a host that asks how its nodes end' 0 '^other type: 1$' "$nxhost" -n 4 ./asks
grep -q '^node 1, type 7: 3$' out && (($(grep -c ', type 7: 0$' out) == 3)) ||
    { echo "FAIL waitone did not tell all statuses" && failures=$((failures + 1)); }
printf '#include <cube.h>\nint main(void) { setpid(0); load("./codes", -1, 7); flick(); sleep(1); crecv(1, (void*)0, 0); return 0; }\n' >late_look.c
"$stage/bin/nxcc" -w late_look.c -o late_look
ran 'the node that failed is named' 1 'node 1 ended with status 3; the job ends' "$nxhost" -n 4 ./late_look
# A main of K&R C that returns nothing ends well.
printf 'main()\n{\n    printf("node %%ld\\n", mynode());\n}\n' >old.c
printf 'main()\n{\n    setpid(0);\n    load("./old", -1, 0);\n}\n' >old_host.c
"$stage/bin/nxcc" -std=gnu89 -w old.c -o old && "$stage/bin/nxcc" -std=gnu89 -w old_host.c -o old_host
ran 'K&R nodes under a host' 0 'node 2' "$nxhost" -n 4 ./old_host
(($(grep -c '^node' out) == 4)) || { echo "FAIL some K&R nodes said nothing" && failures=$((failures + 1)); }
ran 'K&R nodes' 0 'node 2' "$ulfmrun" -n 4 ./old

if command -v gfortran >/dev/null; then
    for p in calls_f sleeps_f; do "$stage/bin/nxf77" -w "$programs/$p.f" -o $p || exit 1; done
    for n in 1 3 4; do ran "calls from Fortran, $n nodes" 0 'calls_f: ok$' "$ulfmrun" -n $n ./calls_f; done
    ran 'sleeps from Fortran' 0 'sleeps_f: ok$' "$ulfmrun" -n 2 ./sleeps_f
fi
finish
