#!/usr/bin/env bash
# Messages that came before anybody asked for them: received by name, by tag, from anybody, after probes and by matched probes, in an
# order that has nothing to do with that of their arrival, each receive gets the first that fits it. Then many communicators.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

compile unexpected <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
enum { kMessages = 300, kTags = 3, kComms = 2 };
typedef struct { int from, tag, number; } Message;

static char taken[kComms][8][kMessages];

/* The number of the first message left of that sender with that tag, or with any. */
static int first_left(int comm, int from, int tag)
{
    for (int i = 0; i < kMessages; ++i)
        if (!taken[comm][from][i] && (tag == MPI_ANY_TAG || i % kTags == tag)) return i;
    return -1;
}

static int wrong;
static void check(int comm, const MPI_Status *status, const Message *m, int source, int tag)
{
    const int expected = first_left(comm, m->from, tag);
    if (status->MPI_SOURCE != m->from || status->MPI_TAG != m->tag || m->number != expected ||
        (source != MPI_ANY_SOURCE && source != m->from) || m->tag != m->number % kTags) {
        if (wrong++ < 5)
            printf("comm %d, asked for %d/%d: got %d/%d number %d, expected number %d\n", comm, source, tag, m->from,
                   m->tag, m->number, expected);
        return;
    }
    taken[comm][m->from][m->number] = 1;
}

static void receive_one(MPI_Comm comm, int c, int ranks)
{
    const int source = rand() % 3 == 0 ? MPI_ANY_SOURCE : 1 + rand() % (ranks - 1);
    const int tag = rand() % 3 == 0 ? MPI_ANY_TAG : rand() % kTags;
    int there = 0;
    Message m;
    MPI_Message handle;
    MPI_Status status, probed;
    MPI_Iprobe(source, tag, comm, &there, &probed);
    if (!there) return;
    if (rand() % 2) {
        MPI_Recv(&m, sizeof m, MPI_BYTE, source, tag, comm, &status);
        if (probed.MPI_SOURCE != status.MPI_SOURCE || probed.MPI_TAG != status.MPI_TAG) ++wrong;
    } else {
        MPI_Mprobe(source, tag, comm, &handle, &probed);
        MPI_Mrecv(&m, sizeof m, MPI_BYTE, &handle, &status);
    }
    check(c, &status, &m, source, tag);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm comms[kComms];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int c = 0; c < kComms; ++c) MPI_Comm_dup(MPI_COMM_WORLD, &comms[c]);
    for (int i = 0; rank != 0 && i < kMessages; ++i)
        for (int c = 0; c < kComms; ++c) {
            Message m = {rank, i % kTags, i};
            MPI_Send(&m, sizeof m, MPI_BYTE, 0, m.tag, comms[c]);
        }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        int left = 1;
        srand(7);
        while (left && !wrong) {
            for (int i = 0; i < 100; ++i) {
                const int c = rand() % kComms;
                receive_one(comms[c], c, ranks);
            }
            left = 0;
            for (int c = 0; c < kComms; ++c)
                for (int s = 1; s < ranks; ++s) left |= first_left(c, s, MPI_ANY_TAG) >= 0;
        }
        printf("%s\n", wrong ? "wrong" : "each the first that fits");
    }

    /* Beside communicators that nobody uses. */
    static MPI_Comm idle[1000];
    int sum = 0;
    for (int i = 0; i < 1000; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &idle[i]);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, idle[999]);
    for (int i = 0; i < 1000; ++i) MPI_Comm_free(&idle[i]);
    if (rank == 0) printf("sum %d\n", sum);
    for (int c = 0; c < kComms; ++c) MPI_Comm_free(&comms[c]);
    MPI_Finalize();
    return 0;
}
C
timeout -k 10 "$patience" "$mpiexec" -n 4 "$work/unexpected" >"$work/out" 2>&1 || fail "exit code $?"
grep -qx "each the first that fits" "$work/out" || fail "a receive got another message than the first that fits"
grep -qx "sum 6" "$work/out" || fail "wrong sum over one of 1,000 communicators"
echo "each receive gets the first message that fits"
