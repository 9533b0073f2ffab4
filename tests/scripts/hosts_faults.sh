#!/usr/bin/env bash
# Jobs on several hosts whose cables lose, delay and reorder frames (tests/hosts/cable.cpp): MPI programs of which every
# byte is checked, demo programs, NX/2, an emulated interconnect; cables that are cut and joined, or cut for good.
set -uo pipefail
# shellcheck source=hosts_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/hosts_common.bash"

cat >checked.c <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* checked: ping-pong of rank 0 with each other rank, a stream from each rank to the next, a ring; every byte is checked.
 * checked SECONDS: the ring for so long; makes the file begun when all are in it. checked FILE: until that is there.
 * checked late: all but rank 3 exchange with rank 2, which makes the file begun; rank 0 sends to rank 3 when cut_at is
 * there. checked stopped: rank 1 is stopped for 6 s while it connects to rank 0. */
enum { STREAM = 200, MOST = 100000 };
static char in[MOST], out[STREAM][MOST];
static int rank, size, wrong;
static void fill(char *at, int bytes, unsigned seed)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (char) ((seed = seed * 1664525 + 1013904223) >> 24);
}
static void check(int bytes, unsigned seed)
{
    for (int i = 0; i < bytes; i++)
        wrong += in[i] != (char) ((seed = seed * 1664525 + 1013904223) >> 24);
}
static void receive(int from, int bytes, int tag)
{
    MPI_Status status;
    int count;
    memset(in, 0x55, bytes);
    MPI_Recv(in, MOST, MPI_CHAR, from, tag, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_CHAR, &count);
    wrong += count != bytes;
    check(bytes, tag + from);
}
static void send(int to, int bytes, int tag)
{
    fill(out[0], bytes, tag + rank);
    MPI_Send(out[0], bytes, MPI_CHAR, to, tag, MPI_COMM_WORLD);
}
static void ping_pong(int bytes, int rounds)
{
    for (int peer = 1; peer < size; peer++)
        for (int i = 0; i < rounds; i++) {
            if (rank == 0)
                send(peer, bytes, i);
            if (rank == peer)
                receive(0, bytes, i), send(0, bytes, i);
            if (rank == 0)
                receive(peer, bytes, i);
        }
}
/* Of all lengths, in order. */
static int length(int i) { return i % 50 == 7 ? MOST : i * 7919 % 6000; }
static void stream(void)
{
    MPI_Request requests[STREAM];
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    for (int i = 0; i < STREAM; i++) {
        fill(out[i], length(i), i + rank);
        MPI_Isend(out[i], length(i), MPI_CHAR, next, 1000, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < STREAM; i++) {
        MPI_Status status;
        int count;
        MPI_Recv(in, MOST, MPI_CHAR, before, 1000, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_CHAR, &count);
        wrong += count != length(i);
        check(length(i), i + before);
    }
    for (int i = 0; i < STREAM; i++)
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
}
static void ring(int rounds)
{
    for (long round = 0, got; round < rounds; round++) {
        MPI_Sendrecv(&round, 1, MPI_LONG, (rank + 1) % size, 1, &got, 1, MPI_LONG, (rank + size - 1) % size, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        wrong += got != round;
    }
}
static void ring_until(const char *until)
{
    const double seconds = atof(until), end = MPI_Wtime() + seconds;
    int go = 1;
    ring(1);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        fclose(fopen("begun", "w"));
    while (go) {
        ring(10);
        go = seconds ? MPI_Wtime() < end : access(until, F_OK) != 0;
        MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
}
/* Ranks 2 and 3 are on one host. Nobody has had a connection with rank 3. */
static void late(void)
{
    for (int i = 0; i < size; i++) {
        if (i == 2 || i == 3)
            continue;
        if (rank == i)
            send(2, 1000, 0), receive(2, 1000, 0);
        if (rank == 2)
            receive(i, 1000, 0), send(i, 1000, 0);
    }
    if (rank == 2)
        fclose(fopen("begun", "w"));
    if (rank == 0) {
        while (access("cut_at", F_OK) != 0)
            usleep(1000);
        send(3, 1000, 1);
    }
    if (rank == 3)
        receive(0, 1000, 1);
}
static void stopped(void)
{
    const pid_t self = getpid();
    if (rank == 1 && fork() == 0) {
        usleep(100000), kill(self, SIGSTOP);
        sleep(6), kill(self, SIGCONT);
        _exit(0);
    }
    if (rank == 1)
        send(0, 1000, 1);
    if (rank == 0)
        receive(1, 1000, 1);
}
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1 && strcmp(argv[1], "late") == 0) {
        late();
    } else if (argc > 1 && strcmp(argv[1], "stopped") == 0) {
        stopped();
    } else if (argc > 1) {
        ring_until(argv[1]);
    } else {
        ping_pong(0, 10), ping_pong(1000, 10), ping_pong(10000, 5), ping_pong(MOST, 2);
        stream();
        ring(10);
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("ranks %d wrong %d\n", size, wrong);
    MPI_Finalize();
    return wrong != 0;
}
C
"$stage/bin/mpicc" -O1 checked.c -o checked || exit 1
"$stage/bin/nxcc" -std=gnu89 -w "$here/../../examples/nx2/ring.c" -o ring || exit 1

# cables OPTION...: hosts 2 and 3 get cables with these faults, and what is between them has those of both.
cables() {
    faults=$*
    faulty_cable 2 --seed 1 "$@"
    faulty_cable 3 --seed 2 "$@"
}

# did COUNT...: cable 2 has done that; both are plain ones from now on.
did() {
    local count
    end_cable 3
    end_cable 2
    for count; do
        [[ " $cable_did" == *" $count "[1-9]* ]] || fail "the cable with $faults" "$cable_did"
    done
    echo "     a cable with $faults: $cable_did"
}

hosts_up 3

cables --loss 0.01
on 2 "1 % loss" 'wrong 0' -n 2 ./checked
on 3 "1 % loss, 3 hosts" 'wrong 0' -n 6 -ppn 2 ./checked
for program in mm lu halo; do
    on 3 "1 % loss, $program" 'check: ok' -n 3 "$programs/$program" --check
done
on 2 "1 % loss, NX/2" 'ring: 4 nodes.*ok' -n 4 -ppn 2 ./ring
on 2 "1 % loss, an emulated interconnect" 'wrong 0' --transport xswitch --topology th8 -n 4 -ppn 2 ./checked
did lost

cables --delay 20
on 2 "20 ms delay" 'wrong 0' -n 2 ./checked
on 3 "20 ms delay, 3 hosts" 'wrong 0' -n 3 ./checked
did passed

cables --delay 300
on 2 "a process that is stopped while it connects" 'wrong 0' -n 2 ./checked stopped
on 2 "a process that is stopped while it connects, a provider of libfabric" 'wrong 0' --transport mux,provider=net -n 2 \
    ./checked stopped
did passed

cables --reorder 0.05
on 2 "reordering" 'wrong 0' -n 2 ./checked
on 3 "reordering, 3 hosts" 'wrong 0' -n 3 ./checked
on 2 "reordering, lu" 'check: ok' -n 4 -ppn 2 "$programs/lu" --check
did reordered

cables --loss 0.01 --delay 20 --reorder 0.05 --duplicate 0.01
on 2 "all faults at once" 'wrong 0' -n 2 ./checked
on 3 "all faults at once, 3 hosts" 'wrong 0' -n 3 ./checked
on 2 "all faults at once, a provider of libfabric" 'wrong 0' --transport mux,provider=net -n 2 ./checked
for program in pi halo trapezoid; do
    on 3 "all faults at once, $program" 'check: ok' -n 3 "$programs/$program" --check
done
did lost reordered duplicated

# Cuts cable 2 when a job has begun, and notes when that was.
cut_when_begun() {
    begun
    cut_cable 2
    echo "$SECONDS" >cut_at
}

ends_after_cut() {
    local name=$1 code=0 cutting took
    shift
    echo "$SECONDS" >cut_at
    cut_when_begun &
    cutting=$!
    on_hosts 2 -genv ULFM_GIVE_UP 3s -n 2 "$@" ./checked 600 >out 2>err || code=$?
    took=$((SECONDS - $(cat cut_at)))
    wait $cutting
    check_cut "$name" err 'process .* on \(10.77.0..\|fd77::.\) has not answered for 3 s' 40 $code $took checked
}

# Cuts cable 2 for 5 seconds when a job has begun. Without its neighbours' addresses a kernel fails a connection after 3 s
# ("No route to host").
cut_and_forget() {
    begun
    cut_cable 2
    forget_neighbours
    echo "$SECONDS" >cut_at
    sleep 5
    join_cable 2
}

cables --loss 0.01 --reorder 0.05
for transport in auto mux,provider=net; do
    rm -f over
    (cut_when_begun; sleep 3; join_cable 2; touch over) &
    cutting=$!
    on 3 "a lossy cable cut for 3 seconds, $transport" 'wrong 0' --transport "$transport" -n 3 ./checked over
    wait $cutting
    rm -f cut_at
    cut_and_forget &
    cutting=$!
    # TCP tries again after 6 s and then after 13: on a busy machine the cut is longer than 6.
    on 3 "a connection begun while the cable is cut for 5 seconds, $transport" 'wrong 0' --transport "$transport" \
        -genv ULFM_GIVE_UP 30s -n 6 -ppn 2 ./checked late
    wait $cutting
done
ends_after_cut "a lossy cable cut for good"
ends_after_cut "a lossy cable cut for good, a provider of libfabric" --transport mux,provider=net
did lost reordered cut
exit $((failures != 0))
