#!/usr/bin/env bash
# Threads of a rank that wait at the same time: each gets its own messages, whoever takes them off the wire; one that waits
# for long while others work sleeps and is woken; one that only probes does not keep the others out.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

compile threads <<'C'
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { TALKERS = 3, TRIPS = 1000, WINDOW = 32, PROBER = TALKERS, PATIENT, SUMMER, THREADS };
static MPI_Comm comms[THREADS];
static int rank;

static void must(int condition, const char *what, int i)
{
    if (!condition) {
        printf("rank %d: %s, round %d\n", rank, what, i);
        fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* Round trips, and every 100th round a window of messages each way. */
static void talk(MPI_Comm comm, int me)
{
    for (int i = 0; i < TRIPS; i++) {
        int out = i * THREADS + me, in = -1, there[WINDOW];
        if (rank == 0)
            MPI_Send(&out, 1, MPI_INT, 1, me, comm);
        MPI_Recv(&in, 1, MPI_INT, 1 - rank, me, comm, MPI_STATUS_IGNORE);
        must(in == out, "a message of another thread or round", i);
        if (rank == 1)
            MPI_Send(&out, 1, MPI_INT, 0, me, comm);
        if (i % 100 == 0) {
            MPI_Request requests[2 * WINDOW];
            for (int k = 0; k < WINDOW; k++) {
                MPI_Irecv(&there[k], 1, MPI_INT, 1 - rank, k, comm, &requests[k]);
                MPI_Isend(&out, 1, MPI_INT, 1 - rank, k, comm, &requests[WINDOW + k]);
            }
            MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
            for (int k = 0; k < WINDOW; k++)
                must(there[k] == out, "a window's message", i);
        }
    }
}

static void probe(MPI_Comm comm)
{
    int there = 0, value = rank, got = -1;
    for (int i = 0; i < 200; i++) {
        MPI_Request request;
        MPI_Isend(&value, 1, MPI_INT, 1 - rank, i, comm, &request);
        for (there = 0; !there;)
            MPI_Iprobe(1 - rank, i, comm, &there, MPI_STATUS_IGNORE);
        MPI_Recv(&got, 1, MPI_INT, 1 - rank, i, comm, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        must(got == 1 - rank, "probed", i);
    }
}

static void sum(MPI_Comm comm)
{
    for (int i = 0; i < 500; i++) {
        int all = 0;
        MPI_Allreduce(&i, &all, 1, MPI_INT, MPI_SUM, comm);
        must(all == 2 * i, "a sum", i);
    }
}

static void *run(void *which)
{
    const int me = (int) (long) which;
    int end = -1;
    if (me < TALKERS)
        talk(comms[me], me);
    else if (me == PROBER)
        probe(comms[me]);
    else if (me == SUMMER)
        sum(comms[me]);
    else
        MPI_Recv(&end, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[me], MPI_STATUS_IGNORE);
    must(me != PATIENT || end == 4711, "what ends the long wait", 0);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int provided, end = 4711;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    must(provided == MPI_THREAD_MULTIPLE, "no MPI_THREAD_MULTIPLE", 0);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run, (void *) i);
    for (int i = 0; i < THREADS; i++)
        if (i != PATIENT)
            pthread_join(threads[i], NULL);
    MPI_Send(&end, 1, MPI_INT, 1 - rank, 0, comms[PATIENT]);
    pthread_join(threads[PATIENT], NULL);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&comms[i]);
    MPI_Finalize();
    return 0;
}
C
# One core for all threads is the worst of all: whoever has the lock may have to be brought back first.
for way in "" "taskset -c 0"; do
    for setting in ULFM_LANES=16 ULFM_LANES=0 ULFM_TRANSPORT=xswitch; do
        # shellcheck disable=SC2086 # no word is right too
        timeout "$patience" env "${setting?}" $way "$stage/bin/ulfmrun" -n 2 "$work/threads" >"$work/out" 2>&1 ||
            fail "threads with $setting $way: exit status $?"
    done
done
echo "threads that wait take turns"
