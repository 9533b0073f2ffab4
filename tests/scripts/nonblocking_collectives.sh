#!/usr/bin/env bash
# Nonblocking and persistent collectives through shared memory, at the edges: their communicator is freed before they are over,
# two threads make them on two communicators, there is nothing to move, the way is another one for user operations, persistent
# calls are started in different orders and more of them made than there is room for.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

run() {
    ULFM_COLLECTIVES=on ULFM_STATS=1 timeout "$patience" "$mpiexec" -n "$1" "${@:2}" >"$work/out" 2>&1 || fail "$2 with $1 ranks: exit status $?"
    ! grep -q wrong "$work/out" || fail "$2 with $1 ranks: a wrong result"
}

# counted WHAT HOW: ULFM_STATS says so.
counted() { grep -q "collectives $2:.* $1" "$work/out" || fail "no $1 $2"; }

cat >"$work/check.h" <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
static int rank, size;
static MPI_Status statuses[128];
static void check(int right, const char *what)
{
    if (!right) printf("rank %d: %s is wrong\n", rank, what);
}
static MPI_Comm used(MPI_Comm from)
{
    MPI_Comm comm;
    MPI_Comm_dup(from, &comm);
    for (int i = 0; i < 8; i++) MPI_Barrier(comm);
    return comm;
}
static void begin(void)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}
C

compile freed <<C
#include "$work/check.h"
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    begin();
    for (int i = 0; i < 50; i++) {
        MPI_Comm comm = used(MPI_COMM_WORLD);
        MPI_Request later[3];
        int one = 1, sum = 0, all[64], mine = rank, kept = 0;
        MPI_Allreduce_init(&one, &kept, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &later[2]);
        MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &later[0]);
        MPI_Iallgather(&mine, 1, MPI_INT, all, 1, MPI_INT, comm, &later[1]);
        MPI_Start(&later[2]);
        MPI_Comm_free(&comm);
        MPI_Waitall(3, later, statuses);
        check(sum == size && kept == size && all[size - 1] == size - 1, "a call of a communicator that was freed");
        /* The persistent one keeps it. */
        kept = 0;
        MPI_Start(&later[2]);
        MPI_Wait(&later[2], MPI_STATUS_IGNORE);
        check(kept == size, "a second start");
        MPI_Request_free(&later[2]);
    }
    MPI_Finalize();
    return 0;
}
C

compile threads <<C
#include "$work/check.h"
#include <pthread.h>
static void *calls(void *arg)
{
    MPI_Comm comm = *(MPI_Comm *)arg;
    for (int i = 0; i < 500; i++) {
        MPI_Request later[2];
        int mine[64], all[64], sum = 0;
        for (int k = 0; k < size; k++) mine[k] = rank * 64 + k + i;
        MPI_Ialltoall(mine, 1, MPI_INT, all, 1, MPI_INT, comm, &later[0]);
        MPI_Iallreduce(&i, &sum, 1, MPI_INT, MPI_SUM, comm, &later[1]);
        MPI_Waitall(2, later, statuses);
        check(sum == size * i, "a sum");
        for (int k = 0; k < size; k++) check(all[k] == k * 64 + rank + i, "an exchange");
    }
    return NULL;
}
int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    begin();
    MPI_Comm comms[2] = {used(MPI_COMM_WORLD), used(MPI_COMM_WORLD)};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, calls, &comms[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    MPI_Finalize();
    return 0;
}
C

compile edges <<C
#include "$work/check.h"
static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++) ((int *)inout)[i] += ((int *)in)[i];
}
/* Nothing to move: each call is over when all, or those that it waits for, have made it. */
static void nothing(MPI_Comm comm)
{
    static const int none[64];
    int in = 7, out = -1;
    MPI_Request later[16], *r = later;
    MPI_Ibcast(&out, 0, MPI_INT, 0, comm, r++);
    MPI_Ireduce(&in, &out, 0, MPI_INT, MPI_SUM, 0, comm, r++);
    MPI_Iallreduce(&in, &out, 0, MPI_INT, MPI_SUM, comm, r++);
    MPI_Ireduce_scatter_block(&in, &out, 0, MPI_INT, MPI_SUM, comm, r++);
    MPI_Ireduce_scatter(&in, &out, none, MPI_INT, MPI_SUM, comm, r++);
    MPI_Iscan(&in, &out, 0, MPI_INT, MPI_SUM, comm, r++);
    MPI_Iexscan(&in, &out, 0, MPI_INT, MPI_SUM, comm, r++);
    MPI_Igather(&in, 0, MPI_INT, &out, 0, MPI_INT, 0, comm, r++);
    MPI_Iallgather(&in, 0, MPI_INT, &out, 0, MPI_INT, comm, r++);
    MPI_Iscatter(&in, 0, MPI_INT, &out, 0, MPI_INT, 0, comm, r++);
    MPI_Ialltoall(&in, 0, MPI_INT, &out, 0, MPI_INT, comm, r++);
    MPI_Igatherv(&in, 0, MPI_INT, &out, none, none, MPI_INT, 0, comm, r++);
    MPI_Iscatterv(&in, none, none, MPI_INT, &out, 0, MPI_INT, 0, comm, r++);
    MPI_Iallgatherv(&in, 0, MPI_INT, &out, none, none, MPI_INT, comm, r++);
    MPI_Ialltoallv(&in, none, none, MPI_INT, &out, none, none, MPI_INT, comm, r++);
    MPI_Ibarrier(comm, r++);
    MPI_Waitall(16, later, statuses);
    check(out == -1 && in == 7, "a call without data");
}
static void user_operation(MPI_Comm comm)
{
    MPI_Op op;
    MPI_Datatype pair;
    MPI_Request later[3];
    int mine[2] = {rank, 1}, sum[2], typed[2] = {0}, kept[2];
    MPI_Op_create(add, 1, &op);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Iallreduce(mine, sum, 2, MPI_INT, op, comm, &later[0]);
    if (rank == 0) typed[0] = 3, typed[1] = 4;
    MPI_Ibcast(typed, 1, pair, 0, comm, &later[1]);
    MPI_Allreduce_init(mine, kept, 2, MPI_INT, op, comm, MPI_INFO_NULL, &later[2]);
    MPI_Start(&later[2]);
    MPI_Type_free(&pair);
    MPI_Op_free(&op);
    MPI_Waitall(3, later, statuses);
    MPI_Request_free(&later[2]);
    check(sum[0] == size * (size - 1) / 2 && sum[1] == size, "a user operation");
    check(kept[0] == sum[0] && kept[1] == size, "a persistent user operation");
    check(typed[0] == 3 && typed[1] == 4, "a derived type");
}
/* The type of a persistent call may be freed; what it moves is what is there when it is started. */
static void kept_type(MPI_Comm comm)
{
    MPI_Datatype gaps;
    MPI_Request r;
    int data[4];
    MPI_Type_vector(2, 1, 2, MPI_INT, &gaps);
    MPI_Type_commit(&gaps);
    MPI_Bcast_init(data, 1, gaps, size - 1, comm, MPI_INFO_NULL, &r);
    MPI_Type_free(&gaps);
    for (int i = 0; i < 10; i++) {
        for (int k = 0; k < 4; k++) data[k] = rank == size - 1 ? 10 * i + k : -1;
        MPI_Start(&r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        check(data[0] == 10 * i && data[2] == 10 * i + 2, "a persistent call with gaps");
        check(rank == size - 1 || (data[1] == -1 && data[3] == -1), "a gap");
    }
    MPI_Request_free(&r);
}
enum { MANY = 100, LONG = 700 };
static int in[MANY][LONG], out[MANY][LONG];
/* Ranks start them in different orders; some have room in the segment and some do not. */
static void many(MPI_Comm comm)
{
    MPI_Request r[MANY];
    for (int i = 0; i < MANY; i++) {
        MPI_Allreduce_init(in[i], out[i], LONG, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[i]);
    }
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < MANY; i++) in[i][0] = in[i][LONG - 1] = rank + i + round;
        if (round == 3) MPI_Startall(MANY, r);
        else for (int i = 0; i < MANY; i++) MPI_Start(&r[(i * 7 + rank * 13 + round) % MANY]);
        MPI_Waitall(MANY, r, statuses);
        for (int i = 0; i < MANY; i++) {
            const int sum = size * (size - 1) / 2 + size * (i + round);
            check(out[i][0] == sum && out[i][LONG - 1] == sum, "one of many persistent calls");
        }
    }
    for (int i = 0; i < MANY; i++) MPI_Request_free(&r[i]);
}
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    begin();
    MPI_Comm comm = used(MPI_COMM_WORLD);
    nothing(comm);
    user_operation(comm);
    kept_type(comm);
    many(comm);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
C

# Persistent calls make the segment by themselves, where there has not been any other call.
compile alone <<C
#include "$work/check.h"
int main(int argc, char **argv)
{
    MPI_Request r;
    int sum, i;
    MPI_Init(&argc, &argv);
    begin();
    MPI_Allreduce_init(&i, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
    for (i = 0; i < 100; i++) {
        MPI_Start(&r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        check(sum == size * i, "a sum");
    }
    MPI_Request_free(&r);
    MPI_Finalize();
    return 0;
}
C

for ranks in 2 5; do
    run "$ranks" "$work/freed"
    run "$ranks" "$work/threads"
    run "$ranks" "$work/edges"
    counted bcast 'through shared memory'
    counted allreduce 'by messages, for their operation or type'
    counted allreduce 'by messages, persistent'
    run "$ranks" "$work/alone"
    counted 'allreduce 100' 'through shared memory'
done
echo "nonblocking and persistent collectives are right at the edges"
