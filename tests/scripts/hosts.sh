#!/usr/bin/env bash
# Jobs on several hosts, which are namespaces of this machine (tests/hosts/hosts.bash): MPI programs, the nodes that MPI
# sees, decoy interfaces, a wrong interface, a rank that is killed, spawned processes, jobs that connect, windows, files,
# demo programs, NX/2, unauthenticated connections, a cable that is cut and joined again.
#
# ULFM_TEST_UNAUTHENTICATED: unauthenticated connections to each port over tcp, 300 unless told, a third of that over ofi;
# 10000 take some minutes.
set -uo pipefail
count=${ULFM_TEST_UNAUTHENTICATED:-300}
# shellcheck source=hosts_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/hosts_common.bash"

cat >hosts.c <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* hosts: everybody exchanges with everybody, all sizes, every byte is checked; says what MPI takes for a node.
 * hosts ring SECONDS: rounds of a ring for so long, makes the file begun; hosts ring FILE: until that is there.
 * hosts die: the last rank is killed.
 * hosts leave: the last rank calls _exit(3), the others wait for each other. hosts away SECONDS: see there. */
static char in[4 << 20], out[4 << 20];
static int rank, size, wrong;
static void exchange(int peer, int bytes)
{
    MPI_Request both[2];
    memset(out, rank + bytes % 7, bytes);
    memset(in, 0xff, bytes);
    MPI_Irecv(in, bytes, MPI_CHAR, peer, bytes, MPI_COMM_WORLD, &both[0]);
    MPI_Isend(out, bytes, MPI_CHAR, peer, bytes, MPI_COMM_WORLD, &both[1]);
    MPI_Wait(&both[0], MPI_STATUS_IGNORE);
    MPI_Wait(&both[1], MPI_STATUS_IGNORE);
    for (int i = 0; i < bytes; i++)
        wrong += in[i] != (char) (peer + bytes % 7);
}
static void ring(const char *until)
{
    const double seconds = atof(until), end = MPI_Wtime() + seconds;
    long round = 0, got, go = 1;
    for (; go; round++) {
        if (round == 1 && rank == 0)
            fclose(fopen("begun", "w"));
        MPI_Sendrecv(&round, 1, MPI_LONG, (rank + 1) % size, 1, &got, 1, MPI_LONG, (rank + size - 1) % size, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        wrong += got != round;
        go = seconds ? MPI_Wtime() < end : access(until, F_OK) != 0;
        MPI_Bcast(&go, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    }
}
/* The last rank reads nothing for so long, with more on its way to it than there is room for. */
static void away(double seconds)
{
    const double end = MPI_Wtime() + seconds;
    const int bytes = 60000;
    for (int i = 0; rank == 0 && i < 1000; i++) {
        memset(out, i, bytes);
        MPI_Send(out, bytes, MPI_CHAR, size - 1, 0, MPI_COMM_WORLD);
    }
    while (rank == size - 1 && MPI_Wtime() < end)
        usleep(100000);
    for (int i = 0; rank == size - 1 && i < 1000; i++) {
        MPI_Recv(in, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        wrong += in[0] != (char) i || in[bytes - 1] != (char) i;
    }
}
int main(int argc, char **argv)
{
    static const int sizes[] = { 0, 1, 8, 100, 1000, 10000, 65536, 100000, 1 << 20, 4 << 20 };
    int local, leader, nodes;
    MPI_Comm node;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &local);
    MPI_Comm_rank(node, &leader);
    leader = leader == 0;
    MPI_Allreduce(&leader, &nodes, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (argc > 1 && !strcmp(argv[1], "die")) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == size - 1)
            raise(SIGKILL);
        MPI_Recv(in, 1, MPI_CHAR, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (argc > 1 && !strcmp(argv[1], "leave")) {
        if (rank == size - 1)
            _exit(3);
        MPI_Recv(in, 1, MPI_CHAR, (rank + 1) % (size - 1), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (argc > 2 && !strcmp(argv[1], "away"))
        away(atof(argv[2]));
    else if (argc > 2)
        ring(argv[2]);
    for (unsigned i = 0; argc == 1 && i < sizeof sizes / sizeof *sizes; i++)
        for (int step = 0; step < size; step++)
            exchange((size - rank + step) % size, sizes[i]);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("ranks %d nodes %d local %d wrong %d\n", size, nodes, local, wrong);
    MPI_Finalize();
    return wrong != 0;
}
C
"$stage/bin/mpicc" -O1 hosts.c -o hosts || exit 1

# refuses NAME PATTERN ARGUMENTS...: a job on 2 hosts ends with an error that matches.
refuses() {
    local name=$1 pattern=$2 code=0
    shift 2
    on_hosts 2 "$@" >out 2>err || code=$?
    if ((code == 0 || code == 124)); then
        fail "$name" "exit code $code"
    elif ! grep -q -e "$pattern" err out; then
        fail "$name" "no line like '$pattern'"
    else
        echo "ok   $name"
    fi
}

over "one host over tcp" "ranks 4 nodes 1 local 4 wrong 0" --transport tcp -n 4 ./hosts
over "one host over ofi" "ranks 2 nodes 1 local 2 wrong 0" --transport ofi -n 2 ./hosts

hosts_up 3
on 2 "2 hosts, a rank on each" "ranks 2 nodes 2 local 1 wrong 0" -n 2 ./hosts
on 2 "2 hosts, 2 ranks on each" "ranks 4 nodes 2 local 2 wrong 0" -n 4 -ppn 2 ./hosts
on 3 "3 hosts, ranks in turn" "ranks 6 nodes 3 local 2 wrong 0" -n 6 -ppn 1 ./hosts
on 2 "a range of ports" "ranks 2 nodes 2 local 1 wrong 0" -genv ULFM_PORTS 40000-40009 -n 2 ./hosts
for turn in first second third; do
    on 2 "no more ports than processes, for the $turn time" "ranks 4 nodes 2 local 2 wrong 0" -genv ULFM_PORTS 40010-40011 -n 4 -ppn 2 ./hosts
done
# A host that is named again behind another one is one node.
named() {
    if beside_host 1 "$stage/bin/ulfmrun" -hosts "$1" -launcher ssh -launcher-exec "$hosts_launcher" -n "$2" ./hosts \
        >out 2>err && grep -qx "$3" out; then
        echo "ok   hosts $1"
    else
        fail "hosts $1" "no line like '$3'"
    fi
}
named h1,h2,h1,h2 4 "ranks 4 nodes 2 local 2 wrong 0"
named h1,h2,h1 4 "ranks 4 nodes 2 local 3 wrong 0"
named h1:2,h2,h3,h2,h1 6 "ranks 6 nodes 3 local 3 wrong 0"
if [[ $(on_host 1 ip -6 addr show dev eth0) == *fd77::1* ]]; then
    on 2 "IPv6" "wrong 0" -genv ULFM_INTERFACE fd77::/64 -n 4 ./hosts
else
    echo "skipped: IPv6, which this kernel does not have"
fi
on 2 "a provider of libfabric" "wrong 0" --transport mux,provider=net -n 4 -ppn 2 ./hosts
on 2 "an interface by its network" "wrong 0" -genv ULFM_INTERFACE 10.77.0.0/24 -n 2 ./hosts
for none in -genvnone '-genvlist PATH' -envnone; do
    # shellcheck disable=SC2086 # an option and its value
    on 2 "no environment, $none" "wrong 0" $none -n 4 -ppn 2 ./hosts
done
on 2 "no environment, an emulated interconnect" "wrong 0" --transport xswitch -genvnone -n 4 -ppn 2 ./hosts
printf 'h1:2\nh2:2' >hosts_of_environment
for options in '' '--transport xswitch' '--transport dcm'; do
    code=0
    # shellcheck disable=SC2086 # options
    HYDRA_HOST_FILE=$PWD/hosts_of_environment beside_host 1 "$stage/bin/ulfmrun" -launcher ssh -launcher-exec "$hosts_launcher" $options \
        -n 4 ./hosts >out 2>err || code=$?
    check_run "HYDRA_HOST_FILE ${options:-alone}" "ranks 4 .*wrong 0" "$code"
done
code=0
beside_host 1 "$stage/bin/ulfmrun" -hosts localhost,h2 -launcher ssh -launcher-exec "$hosts_launcher" -n 2 ./hosts >out 2>err || code=$?
check_run "localhost beside another host" "ranks 2 nodes 2 .*wrong 0" "$code"
refuses "only a bridge that all hosts have" "172.17.0.1" -genv ULFM_INTERFACE docker0 -n 2 ./hosts
refuses "an interface that does not leave its host" "127.0.0.1.*loopback: ULFM_INTERFACE has to name a network" -genv ULFM_INTERFACE lo -n 2 ./hosts
refuses "an interface that is not there" "names no interface" -genv ULFM_INTERFACE eth9 -n 2 ./hosts
refuses "direct does not reach other hosts" "processes of this host" --transport direct -n 2 ./hosts
# Whoever is first says it: the launcher, or the other rank, whose receive fails.
for _ in 1 2 3; do
    refuses "a rank that is killed on another host" 'rank 1 .* on h2 .*killed by signal 9' -n 2 ./hosts die
done

code=0
on_hosts 3 -n 6 ./hosts leave >out 2>err || code=$?
if ((code == 3)) && grep -q 'rank 5 .* on h3 ended without MPI_Finalize: it called exit with status 3' err && ! grep -q '\.c:' err; then
    echo "ok   a rank that leaves ends the job on all hosts, with its status"
else
    fail "a rank that leaves" "exit code $code"
fi

# ends_unrun NAME LINE ARGUMENT...: a job of which a program cannot run ends with 127 and says so.
ends_unrun() {
    local name=$1 line=$2 code=0
    shift 2
    on_hosts 2 "$@" >out 2>err || code=$?
    if ((code == 127)) && grep -q "$line" err; then
        echo "ok   $name"
    else
        fail "$name" "exit code $code"
    fi
}
ends_unrun "of several programs, one that is not there" 'host h2: cannot run ./nosuch: No such file' -n 1 ./hosts : -n 1 ./nosuch
ends_unrun "one that is not there beside a rank" 'host h1: cannot run ./nosuch: No such file' -n 2 ./hosts : -n 1 ./nosuch : -n 1 ./hosts

# Whoever starts a job over ssh may have to type a password first.
cat >slowly <<SLOWLY
#!/bin/bash
if [[ "\$*" == *' h2 '* ]] && echo >>starts && ((\$(wc -l <starts) > \${starts_before_it:-0})); then
    for _ in {1..1200}; do
        grep -q 'has not called back' "$PWD/err" && break
        sleep 0.1
    done
fi
exec "$hosts_launcher" "\$@"
SLOWLY
chmod +x slowly
code=0
beside_host 1 "$run" -hosts h1,h2 -launcher ssh -launcher-exec "$PWD/slowly" -n 2 ./hosts >out 2>err || code=$?
grep -q 'host h2 has not called back for 30 s.*ulfm_doctor h2' err || fail "a host that calls late" "nobody says so"
check_run "a host that calls late" "wrong 0" "$code"

"$stage/bin/mpicc" -O1 "$here/mixed.c" -o mixed || exit 1
rm starts
code=0
starts_before_it=1 beside_host 1 "$run" -hosts h1,h2 -launcher ssh -launcher-exec "$PWD/slowly" -n 2 ./mixed spawn >out 2>err || code=$?
grep -q 'host h2 has not called back for 30 s.*ulfm_doctor h2' err || fail "a host of spawned processes that calls late" "nobody says so"
check_run "a host of spawned processes that calls late" "spawn wrong 0" "$code"
on 2 "node-aware collectives" "nodes wrong 0" -n 4 -ppn 2 ./mixed nodes
on 2 "windows, shared within a host and between hosts" "window wrong 0" -n 4 -ppn 2 ./mixed window
on 2 "files in a shared folder" "io wrong 0" -n 4 -ppn 2 ./mixed io shared.dat
on 2 "processes that are spawned" "spawn wrong 0" -n 2 -ppn 1 ./mixed spawn
on 2 "a process that is spawned by another host's" "spawn wrong 0" -n 1 ./mixed spawn
# A proxy that has called back is none of the connections of ssh that have only begun.
HYDRA_LAUNCHER_SSH_LIMIT=2 on 2 "spawns in a row" "spawns wrong 0" -n 1 ./mixed spawns 6
! grep 'too many ssh' err out || fail "spawns in a row" "mpiexec waits for ssh"
on 3 "hosts of each command of a spawn" "commands wrong 0" -n 2 ./mixed commands h2 h3
on 3 "the same hosts the other way round" "commands wrong 0" -n 1 ./mixed commands h3 h1
on 2 "two ranks of a job that connect" "within wrong 0" -n 2 ./mixed within
on_hosts 2 -n 2 ./mixed accept port.txt >accepted 2>&1 &
accepting=$!
code=0
beside_host 2 "$run" -hosts h2,h1 -launcher ssh -launcher-exec "$hosts_launcher" -n 2 ./mixed connect port.txt >out 2>err || code=$?
if wait "$accepting" && ((code == 0)) && grep -q "connect wrong 0" out && grep -q "accept wrong 0" accepted; then
    echo "ok   two jobs that connect"
else
    fail "two jobs that connect" "exit code $code"
fi
for program in pi mm lu halo trapezoid; do
    on 2 "$program" "check: ok" -n 4 -ppn 2 "$programs/$program" --check
done
"$stage/bin/nxcc" -std=gnu89 -w "$here/../../examples/nx2/ring.c" -o ring || exit 1
on 2 "NX/2" "ring: 4 nodes.*ok" -n 4 -ppn 2 ./ring

# unauthenticated NAME ARGUMENTS...: connections from nobody to every port that a job of 2 hosts has open. It goes on until they
# have all been refused.
unauthenticated() {
    local name=$1 k code=0
    shift
    rm -f begun over
    (
        begun
        for k in 1 2; do
            nsenter -t "$(cat "$hosts_folder/h$k.pid")" -n python3 "$here/unauthenticated_hosts.py" "$count" "$k" &
            [[ $k == 2 ]] || first=$!
        done
        wait "$first" || code=1
        wait $! || code=1
        touch over
        exit $code
    ) >unauthenticated 2>&1 &
    hosts_limit=$((120 + count / 20)) on 2 "$name: $count unauthenticated connections" "wrong 0" --stats "$@" ./hosts ring over
    wait $! || code=$?
    ((code == 0)) || { cat unauthenticated && fail "$name" "they are not refused"; }
}
# Each rank has a port of its own, and refuses those that it has accepted; who resets may never be.
counts_refused() {
    local least
    least=$(sed -n 's/.*network: .*refused \([0-9]*\),.*/\1/p' err | sort -n | head -n 1)
    ((${least:-0} >= count * 8 / 10)) || fail "$1" "a rank counts ${least:-nobody} refused"
}
unauthenticated "tcp" -n 4 -ppn 2
counts_refused "tcp"
count=$((count / 3))  # libfabric's listener takes longer for each
unauthenticated "ofi" --transport mux,provider=net -n 2
counts_refused "ofi"
unauthenticated "an emulated interconnect" --transport xswitch -n 4 -ppn 2

for transport in auto mux,provider=net; do
    on 2 "a rank that reads nothing for longer than GIVE_UP, $transport" "wrong 0" \
        --transport "$transport" -genv ULFM_GIVE_UP 2s -n 2 ./hosts away 8
done

rm -f over
(begun; cut_cable 2; sleep 3; join_cable 2; touch over) &
cable=$!
on 2 "a cable cut for 3 seconds" "wrong 0" -n 2 ./hosts ring over
wait "$cable"

(begun; cut_cable 2) &
cable=$!
began=$SECONDS
refuses "a cable cut for good" 'process .* on \(10.77.0..\|fd77::.\) has not answered for 3 s' \
    -genv ULFM_GIVE_UP 3s -n 2 ./hosts ring 600
wait "$cable"
((SECONDS - began < 90)) || fail "a cable cut for good" "it took $((SECONDS - began)) s"
join_cable 2
exit $((failures != 0))
