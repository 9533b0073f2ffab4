#!/usr/bin/env bash
# Each receive gets the message that MPI says, whichever way it took: messages of drawn sizes, tags, communicators and kinds,
# received by calls of drawn kinds. A blocking receive may take a message from its frame, past the queues (ulfm_quick.c).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
# GCC 12 warns of MPICH's MPI_STATUSES_IGNORE.
"$mpicc" -O1 -Wno-stringop-overflow "$(dirname "${BASH_SOURCE[0]}")/matching.c" -o "$work/matching" ||
    fail "mpicc cannot compile matching.c"

# matched SEED ROUNDS OPTIONS...
matched() {
    timeout "$patience" "$stage/bin/ulfmrun" "${@:3}" -n 2 "$work/matching" "$1" "$2" >"$work/out" 2>&1 ||
        fail "seed $1, ${*:3}: exit status $?"
    grep -qx "matching: $2 rounds from seed $1" "$work/out" || fail "seed $1, ${*:3}: no result"
}

seed=${MATCHING_SEED:-$((RANDOM * 1000))}
echo "seed $seed"
matched "$seed" 200
matched "$((seed + 200))" 100 --ft
MATCHING_THREADED=1 matched "$((seed + 300))" 100
matched "$((seed + 400))" 40 --transport xswitch
matched "$((seed + 440))" 40 --fault drop=1e-3
matched "$((seed + 460))" 20 --transport tcp
matched "$((seed + 480))" 20 --transport dcm --topology cube:2
matched "$((seed + 500))" 20 --transport xswitch --time virtual,compute=none

# What drawn messages of one sender do not have: receives that are posted for other senders and tags, or for any, while a
# blocking one is called; messages that came before; and threads that share a communicator. Rank 0 calls no MPI before the
# messages are there, which it learns from a file that all map: so the blocking receive may take one from its frame.
compile beside <<'C'
#include <mpi.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>

enum { ROUNDS = 300, THREADS = 4, LATER = 100, MANY = 20 };
static int rank, expected;
static int *sent; /* messages to rank 0, in all */

static void must(int got, int wanted, const char *what, int i)
{
    if (got == wanted)
        return;
    printf("rank %d, round %d: %s: %d instead of %d\n", rank, i, what, got, wanted);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void send(int to, int tag, int value)
{
    MPI_Send(&value, 1, MPI_INT, to, tag, MPI_COMM_WORLD);
    if (to == 0)
        __atomic_add_fetch(sent, 1, __ATOMIC_RELEASE);
}

static void await_sent(int more)
{
    expected += more;
    while (__atomic_load_n(sent, __ATOMIC_ACQUIRE) < expected)
        sched_yield();
}

static int receive(int from, int tag)
{
    int value = -1;
    MPI_Recv(&value, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return value;
}

/* Rank 0 has posted one receive when it calls the other. */
static void both(int i, int from, int tag, int other_from, int other_tag, const char *what)
{
    MPI_Request request;
    int value = -1;
    MPI_Irecv(&value, 1, MPI_INT, from, tag, MPI_COMM_WORLD, &request);
    send(1, 0, i);
    await_sent(from == 2 ? 1 : 2);
    must(receive(other_from, other_tag), 2 * i + 1, what, i);
    if (from == 2) {
        send(2, 0, i);
        await_sent(1);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    must(value, 2 * i, what, i);
}

static void answer(int i, int tag, int other_tag)
{
    must(receive(0, 0), i, "turn", i);
    send(0, tag, 2 * i);
    send(0, other_tag, 2 * i + 1);
}

static void many(int i)
{
    MPI_Request requests[MANY];
    MPI_Status statuses[MANY];
    int values[MANY];
    if (rank == 1) {
        must(receive(0, 0), i, "turn", i);
        for (int k = 0; k < MANY; k++)
            send(0, 20 + k, i + k);
    }
    if (rank != 0)
        return;
    for (int k = 0; k < MANY - 1; k++)
        MPI_Irecv(&values[k], 1, MPI_INT, 1, 20 + k, MPI_COMM_WORLD, &requests[k]);
    send(1, 0, i);
    await_sent(MANY);
    must(receive(1, 20 + MANY - 1), i + MANY - 1, "behind many", i);
    MPI_Waitall(MANY - 1, requests, statuses);
    for (int k = 0; k < MANY - 1; k++)
        must(values[k], i + k, "one of many", i);
}

static void with_one_thread(int i)
{
    if (rank == 0) {
        both(i, MPI_ANY_SOURCE, 5, 1, 5, "the posted one is for any rank");
        both(i, 1, MPI_ANY_TAG, 1, 7, "the posted one is for any tag");
        both(i, 1, 7, MPI_ANY_SOURCE, MPI_ANY_TAG, "the later one is for any message");
        both(i, 1, 7, 1, 8, "they are for different tags");
        both(i, 2, 5, 1, 5, "they are for different ranks");
        send(1, 0, i);
        await_sent(3);
        must(receive(1, 8), 2 * i, "the one between", i);
        must(receive(1, 7), i, "the one that came before", i);
        must(receive(MPI_ANY_SOURCE, 7), i + LATER, "the one behind it", i);
    } else if (rank == 1) {
        answer(i, 5, 5);
        answer(i, 7, 7);
        answer(i, 7, 7);
        answer(i, 7, 8);
        must(receive(0, 0), i, "turn", i);
        send(0, 5, 2 * i + 1);
        must(receive(0, 0), i, "turn", i);
        send(0, 7, i);
        send(0, 8, 2 * i);
        send(0, 7, i + LATER);
    } else {
        must(receive(0, 0), i, "turn", i);
        send(0, 5, 2 * i);
    }
    many(i);
}

/* Tag and rank name the thread. */
static void *run(void *which)
{
    const int me = (int) (long) which, tag = LATER + me, other = 1 + me % 2;
    for (int i = 0; i < ROUNDS; i++) {
        if (rank == 0) {
            send(other, tag, i);
            must(receive(other, tag), i + me, "a message of another thread", i);
        } else if (rank == other) {
            must(receive(0, tag), i, "a message of another thread", i);
            send(0, tag, i + me);
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int provided;
    sent = mmap(NULL, sizeof *sent, PROT_READ | PROT_WRITE, MAP_SHARED, open(argv[1], O_RDWR), 0);
    if (sent == MAP_FAILED)
        return 2;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < ROUNDS; i++)
        with_one_thread(i);
    for (long t = 0; t < THREADS; t++)
        pthread_create(&threads[t], NULL, run, (void *) t);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    MPI_Finalize();
    return 0;
}
C
for setting in ULFM_LANES=16 ULFM_LANES=0 ULFM_SPIN=100000 ULFM_TRANSPORT=xswitch; do
    printf '\0\0\0\0' >"$work/sent"
    timeout "$patience" env "$setting" "$stage/bin/ulfmrun" -n 3 "$work/beside" "$work/sent" >"$work/out" 2>&1 ||
        fail "beside others, $setting: exit status $?"
done

# Messages of more than a frame, which a blocking receive finds before it is posted: in their place or, cut short, an error;
# for any rank and tag, of types with gaps, and beside receives for other tags.
compile long_ones <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 150, MOST = 400000 };
static unsigned char *bytes, *wanted;

static void fill(unsigned char *to, int length, int seed)
{
    for (int i = 0; i < length; i++)
        to[i] = (unsigned char) (seed * 7 + i * 13 + (i >> 9));
}

static void must(int fine, const char *what, int i)
{
    if (fine)
        return;
    printf("round %d: %s\n", i, what);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int length_of(int i)
{
    static const int sizes[] = { 0, 100, 2048, 16000, 16384, 17000, 33000, 65000, 65536, 66000, 131072, 200000, 330000, MOST };
    return sizes[i % (int) (sizeof sizes / sizeof *sizes)];
}

static void receive(int i)
{
    const int length = length_of(i), kind = i % 5, tag = kind == 1 ? MPI_ANY_TAG : i, from = kind == 2 ? MPI_ANY_SOURCE : 1;
    MPI_Status status;
    MPI_Request other;
    int got, value = -1, answer = i;
    if (kind == 3)
        MPI_Irecv(&value, 1, MPI_INT, 1, i + 1000, MPI_COMM_WORLD, &other);
    memset(bytes, 0xee, 2 * MOST);
    MPI_Send(&answer, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    if (kind == 4 && length > 1) {
        must(MPI_Recv(bytes, length / 2, MPI_BYTE, from, tag, MPI_COMM_WORLD, &status) != MPI_SUCCESS, "no error", i);
        must(bytes[length / 2] == 0xee, "written behind the buffer", i);
    } else if (kind == 0) {
        MPI_Datatype gaps;
        MPI_Type_vector(length, 1, 2, MPI_BYTE, &gaps);
        MPI_Type_commit(&gaps);
        MPI_Recv(bytes, 1, gaps, from, tag, MPI_COMM_WORLD, &status);
        MPI_Type_free(&gaps);
        fill(wanted, length, i);
        for (int k = 0; k < length; k++)
            must(bytes[2 * k] == wanted[k] && (k == length - 1 || bytes[2 * k + 1] == 0xee), "with gaps", i);
    } else {
        MPI_Recv(bytes, length + 100, MPI_BYTE, from, tag, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &got);
        fill(wanted, length, i);
        must(got == length && status.MPI_SOURCE == 1 && status.MPI_TAG == i, "status", i);
        must(!memcmp(bytes, wanted, length) && bytes[length] == 0xee, "bytes", i);
    }
    if (kind == 3) {
        MPI_Wait(&other, MPI_STATUS_IGNORE);
        must(value == i, "the other one", i);
    }
}

int main(int argc, char **argv)
{
    int rank, turn;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    bytes = malloc(2 * MOST);
    wanted = malloc(MOST);
    for (int i = 1; i <= ROUNDS; i++) {
        if (rank == 0) {
            receive(i);
        } else {
            MPI_Recv(&turn, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            fill(bytes, length_of(i), i);
            MPI_Send(bytes, length_of(i), MPI_BYTE, 0, i, MPI_COMM_WORLD);
            if (i % 5 == 3)
                MPI_Send(&i, 1, MPI_INT, 0, i + 1000, MPI_COMM_WORLD);
        }
    }
    MPI_Finalize();
    return 0;
}
C
for setting in ULFM_TRANSPORT=direct ULFM_TRANSPORT=tcp ULFM_LANES=0 ULFM_EAGER=1K "ULFM_TRANSPORT=tcp ULFM_SPIN=0"; do
    # shellcheck disable=SC2086
    timeout "$patience" env $setting "$stage/bin/ulfmrun" -n 2 "$work/long_ones" >"$work/out" 2>&1 ||
        fail "long messages, $setting: exit status $?"
done
