#!/usr/bin/env bash
# Emulated interconnects over several hosts, which are namespaces of this machine (tests/hosts/hosts.bash): every model;
# MPI programs, programs on ports, NX/2; spawned processes, windows and files; faults on the way; ranks and proxies that
# are killed, cables that are cut; nothing is left behind.
set -uo pipefail
source=${ULFM_SOURCE:?source folder}
# shellcheck source=hosts_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/hosts_common.bash"

cat >each.c <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* each: everybody exchanges with everybody, every byte is checked. each ring SECONDS: exchanges
 * for so long; makes the file begun first. each ring FILE: until that is there.
 * each late FILE: makes the file begunRANK, waits for the other one outside of MPI, and sends its first messages then.
 * each die: the last rank is killed. each wait: rank 0 sleeps for 2 s, the others wait for it; prints the core's time
 * that the one which took most has used meanwhile, in thousandths. */
#include <sys/resource.h>
static char in[1 << 18], out[1 << 18];
static int rank, size, wrong;
static void exchange(int peer, int bytes)
{
    memset(out, rank + bytes % 7, bytes);
    memset(in, 0xff, bytes);
    MPI_Sendrecv(out, bytes, MPI_CHAR, peer, bytes, in, bytes, MPI_CHAR, peer, bytes, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < bytes; i++)
        wrong += in[i] != (char) (peer + bytes % 7);
}
static double used(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}
int main(int argc, char **argv)
{
    static const int sizes[] = { 0, 1, 100, 10000, 100000, 1 << 18 };
    int local;
    MPI_Comm node;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 2 && !strcmp(argv[1], "late")) {
        char name[16];
        snprintf(name, sizeof name, "begun%d", rank);
        fclose(fopen(name, "w"));
        while (access(argv[2], F_OK) != 0)
            usleep(10000);
        exchange(rank ^ 1, 1000);
        MPI_Finalize();
        return wrong != 0;
    }
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &local);
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 1 && !strcmp(argv[1], "die")) {
        if (rank == size - 1)
            raise(SIGKILL);
        MPI_Recv(in, 1, MPI_CHAR, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (argc > 1 && !strcmp(argv[1], "wait")) {
        double took = used(), most;
        if (rank == 0)
            sleep(2);
        MPI_Bcast(&took, 0, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        took = rank == 0 ? 0 : used() - took;
        MPI_Reduce(&took, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (rank == 0)
            printf("waited %d\n", (int) (most / 2 * 1000));
    }
    if (argc > 2) {
        const double seconds = atof(argv[2]), end = MPI_Wtime() + seconds;
        exchange(rank ^ 1, 1000);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            fclose(fopen("begun", "w"));
        for (int go = 1; go; ) {
            exchange(rank ^ 1, 1000);
            go = seconds ? MPI_Wtime() < end : access(argv[2], F_OK) != 0;
            MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
    }
    for (unsigned i = 0; argc == 1 && i < sizeof sizes / sizeof *sizes; i++)
        for (int step = 0; step < size; step++)
            exchange((size - rank + step) % size, sizes[i]);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("ranks %d local %d wrong %d\n", size, local, wrong);
    MPI_Finalize();
    return wrong != 0;
}
C
"$stage/bin/mpicc" -O1 each.c -o each || exit 1
"$stage/bin/mpicc" -O1 "$here/mixed.c" -o mixed || exit 1
"$source/examples/ports/build" "$PWD/ports" >log 2>&1 || { cat log && exit 1; }
"$stage/bin/nxcc" -std=gnu89 -w "$source/examples/nx2/ring.c" -o ring || exit 1

# expect_job NAME CODE PATTERN ARGUMENTS...: a job on $hosts hosts ends with 0 ("good") or not ("bad") and says what matches.
hosts=2
expect_job() {
    local name=$1 wanted=$2 pattern=$3 code=0
    shift 3
    on_hosts "$hosts" "$@" >out 2>err || code=$?
    check_end "$name" "$wanted" "$pattern" "$code"
}

hosts_up 3
for transport in xswitch dcm pcie pointdesign ideal; do
    expect_job "$transport" good 'ranks 4 local 1 wrong 0' --transport $transport -n 4 ./each
done
hosts=3 expect_job "3 hosts, more ranks than nodes" good 'ranks 9 .*wrong 0' --transport xswitch --topology mesh:2x2 -n 9 ./each
expect_job "ranks of a node on two hosts" good 'nodes wrong 0' --transport xswitch --topology single:2 -n 4 -ppn 1 ./mixed nodes
expect_job "windows" good 'window wrong 0' --transport xswitch --topology single:2 -n 4 -ppn 2 ./mixed window
expect_job "spawned processes" good 'spawn wrong 0' --transport xswitch -n 2 -ppn 1 ./mixed spawn
for program in lu halo; do
    expect_job "$program" good 'check: ok' --transport xswitch --topology mesh:4x4 -n 4 "$programs/$program" --check
done
expect_job "options of the model" good 'wrong 0' --transport xswitch,frame=256 -n 2 ./each
expect_job "programs on ports" good '9000 items from 3 producers, all whole' --transport xswitch -n 4 ports/producer_consumer
expect_job "multicast" good '600 messages from 3 senders, all whole' --transport pointdesign -n 4 ports/multicast
expect_job "NX/2" good 'ring: 4 nodes.*ok' --transport dcm -n 4 ./ring
expect_job "a bad network" good 'wrong 0' --transport xswitch --topology mesh:2x2 --fault "$bad_network" -n 4 ./each
# Rank 0 prints what the interconnect counts, also from elsewhere.
beside_host 1 "$run" -hosts h2,h1 -launcher ssh -launcher-exec "$hosts_launcher" --stats --transport xswitch -n 2 ./each >out 2>err
if ! grep -q 'wrong 0' out || ! grep -q 'stats xswitch: cycles [1-9].*present 0$' err; then
    fail "statistics" "no balance of the network"
fi
expect_job "virtual time" bad 'virtual time is kept by processes of one host' --transport xswitch --time virtual -n 2 ./each

expect_job "ranks that wait" good 'waited [0-9]*$' --transport xswitch -n 2 ./each wait
per_mille=$(sed -n 's/^waited //p' out)
((${per_mille:-1000} <= 100)) || fail "ranks that wait" "a rank that waits takes $per_mille/1000 of a core"

expect_job "a rank of another host is killed" bad 'BAD TERMINATION\|Process failed\|died' --transport xswitch -n 4 ./each die
expect_job "a rank here is killed" bad 'BAD TERMINATION\|Process failed\|died' --transport xswitch -n 3 ./each die
# Of the process that it stands for the others see that it has died; that one says so itself.
(begun; pkill -KILL -x ulfm-proxy) &
killer=$!
expect_job "a proxy is killed" bad 'proxy of this process\|Communication error with rank\|has died' --transport xswitch -n 2 ./each ring 20
wait $killer
# A proxy that is stopped is waited for, and the stall report says so.
rm -f begun0 begun1 late out err
(
    for _ in $(seq 1200); do
        [[ -e begun0 && -e begun1 ]] && break
        sleep 0.1
    done
    pkill -STOP -x ulfm-proxy
    touch late
    for _ in $(seq 600); do
        grep -q 'waits since .* for its proxy' err && break
        sleep 0.1
    done
    pkill -CONT -x ulfm-proxy
) &
stopper=$!
ULFM_STALL_REPORT=1 expect_job "a proxy is stopped" good 'stall rank [01] .*waits since [0-9.]* s for its proxy on the interconnect' \
    --transport xswitch -n 2 ./each late late
wait $stopper
(begun; cut_cable 2; sleep 3; join_cable 2; touch over) &
cable=$!
expect_job "a cable cut for 3 seconds" good 'wrong 0' --transport xswitch -n 2 ./each ring over
wait $cable
(begun; cut_cable 2) &
cable=$!
began=$SECONDS
ULFM_GIVE_UP=2s hosts_limit=60 expect_job "a cable cut for good" bad 'proxy of this process\|Communication error with rank\|has died' \
    --transport xswitch -n 2 ./each ring 40
wait $cable
join_cable 2
forget_neighbours  # else the next proxy finds "No route to host" for a moment
((SECONDS - began < 40)) || fail "a cable cut for good" "it took $((SECONDS - began)) s"

# Two ranks of a host need a port each; the one that gets none never says a word to its proxy.
expect_job "a rank without a port" bad 'widen the range' --transport xswitch -genv ULFM_PORTS 46000-46000 -n 4 -ppn 2 ./each ring 1

# Nothing is left: it ends by itself, a moment after its job. All here is ours: this is a pid namespace of its own.
for _ in $(seq 500); do
    left=$(pgrep -x ulfm-proxy; pgrep -x ulfm-door)
    [[ -z $left ]] && break
    sleep 0.02
done
[[ -z $left ]] || { ps -fp "$left" >err && fail "the end" "processes are left: $left"; }

((failures == 0)) || exit 1
