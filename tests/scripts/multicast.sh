#!/usr/bin/env bash
# Collectives by the multicast of the emulated point design give what MPICH's own algorithms give: random kinds, sizes,
# types, roots, operations and communicators, with threads, over a bad network and in virtual time. A root that runs ahead is
# held; a rank that dies is an error in the others; NX/2's global operations and messages to all nodes go that way too.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
cases=${ULFM_COLLECTIVES_CASES:-80}
ulfmrun=$stage/bin/ulfmrun
by_multicast='collectives by multicast in the network:'
unset "${!ULFM_@}"
export ULFM_STAGE=$stage

compile collectives <"$(dirname "${BASH_SOURCE[0]}")/collectives.c"

# over RANKS SHAPE OPTIONS... PROGRAM...: output in $work/out, statistics in $work/stats.
over() {
    local ranks=$1 shape=$2
    shift 2
    ULFM_STATS=1 timeout "$patience" "$ulfmrun" --transport pointdesign --topology "$shape" -n "$ranks" "$@" \
        >"$work/unsorted" 2>"$work/stats" || { cp "$work/stats" "$work/out" && fail "$ranks ranks over $shape, $*: exit status $?"; }
    sort -n "$work/unsorted" >"$work/out"
}

# same RANKS SHAPE OPTIONS... : the checksums are those of MPICH's own algorithms.
same() {
    local ranks=$1 shape=$2 threads=''
    shift 2
    if [[ ${1:-} == threads ]]; then threads=threads && shift; fi
    ULFM_COLLECTIVES=off over "$ranks" "$shape" "$work/collectives" "$ranks" "$cases" $threads blocking
    ! grep -q "$by_multicast" "$work/stats" || fail "ULFM_COLLECTIVES=off, and some went by multicast"
    mv "$work/out" "$work/messages"
    over "$ranks" "$shape" "$@" "$work/collectives" "$ranks" "$cases" $threads blocking
    cmp "$work/messages" "$work/out" || fail "$ranks ranks over $shape, $*: results differ"
    grep -qE "$by_multicast.* bcast [0-9]+" "$work/stats" || fail "$ranks ranks over $shape: none went by multicast"
}

same 3 gh:2x4x1
same 8 gh:2x2x2
same 5 gh:2x2x2
same 4 gh:2x2x1 threads
same 4 gh:2x2x2 --fault 'drop=1e-2,corrupt=1e-3,duplicate=1e-3,reorder=1e-2,seed=3'
for kind in barrier bcast allgather reduce allreduce; do
    grep -qE "$by_multicast.* $kind [0-9]+" "$work/stats" || fail "no $kind went by multicast"
done
grep -q 'collectives by messages, without multicast:.*alltoall' "$work/stats" || fail "alltoall is not counted"
grep -qE 'multicast: messages [1-9].* at once to [1-9]' "$work/stats" || fail "no frame went to several at once"
# In virtual time only what is quicker there: a barrier of 20 is, one of 4 is not.
cases=40 same 20 gh:2x4x8 --time virtual
grep -qE "$by_multicast.* barrier [0-9]+" "$work/stats" || fail "20 ranks in virtual time: no barrier by multicast"
same 4 gh:2x4x8 --time virtual
! grep -qE "$by_multicast.* barrier [0-9]+" "$work/stats" || fail "4 ranks in virtual time: barriers by multicast"

compile order <<'C'
/* Reductions whose operation does not commute, on types with gaps and with a lower bound below 0: each root of 13. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
enum { COUNT = 3 };
typedef struct { int before, first, last, length; } run_t; /* of numbers, one behind the other; length -1: wrong */
static void join(void *in, void *inout, int *n, MPI_Datatype *type)
{
    MPI_Aint lower, extent;
    MPI_Type_get_extent(*type, &lower, &extent);
    for (int i = 0; i < *n; ++i) {
        run_t *a = (run_t *)((char *)in + i * extent - sizeof(int));
        run_t *b = (run_t *)((char *)inout + i * extent - sizeof(int));
        if (a->length < 0 || b->length < 0 || a->last + 1 != b->first) b->length = -1;
        else b->first = a->first, b->length += a->length;
    }
}
int main(int argc, char **argv)
{
    int rank, size, wrong = 0;
    MPI_Datatype three, type;
    MPI_Op op;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Type_contiguous(3, MPI_INT, &three);
    MPI_Type_create_resized(three, -(MPI_Aint)sizeof(int), sizeof(run_t), &type);
    MPI_Type_commit(&type);
    MPI_Op_create(join, 0, &op);
    for (int turn = 0; turn < 4 * size; ++turn) {
        const int root = turn % size, all = turn >= 3 * size, in_place = turn / size % 2;
        run_t mine[COUNT], result[COUNT];
        memset(result, 0, sizeof result);
        for (int i = 0; i < COUNT; ++i) mine[i] = (run_t){-7, rank + i, rank + i, 1};
        if (in_place && (all || rank == root)) memcpy(result, mine, sizeof mine);
        const void *in = in_place && (all || rank == root) ? MPI_IN_PLACE : &mine[0].first;
        if (all) MPI_Allreduce(in, &result[0].first, COUNT, type, op, MPI_COMM_WORLD);
        else MPI_Reduce(in, &result[0].first, COUNT, type, op, root, MPI_COMM_WORLD);
        for (int i = 0; i < COUNT && (all || rank == root); ++i)
            wrong += result[i].first != i || result[i].length != size ||
                     result[i].before != (in_place ? -7 : 0);
    }
    printf("rank %d: %s\n", rank, wrong ? "wrong" : "right");
    MPI_Finalize();
    return wrong != 0;
}
C
for ranks in 3 6 13; do
    over "$ranks" gh:2x2x4 "$work/order"
    [[ $(grep -c right "$work/out") == "$ranks" ]] || fail "operations that do not commute, $ranks ranks: wrong"
    grep -qE "$by_multicast.* reduce [0-9]+" "$work/stats" || fail "an operation of the program did not go up the tree"
done

compile many <<'C'
/* A root that runs far ahead of a slow rank, a long message, and communicators by the thousand. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int wrong;
static void check(int right) { wrong += !right; }
int main(int argc, char **argv)
{
    enum { LONG = 3000001 };
    int rank, size, i, j;
    char *data = malloc(LONG);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (i = 0; i < 3000; ++i) {
        int number[100];
        for (j = 0; j < 100; ++j) number[j] = rank == i / 1000 ? i + j : -1;
        if (rank == size - 1 && i == 10) sleep(1);
        MPI_Bcast(number, 100, MPI_INT, i / 1000, MPI_COMM_WORLD);
        for (j = 0; j < 100; ++j) check(number[j] == i + j);
    }
    for (i = 0; i < LONG; ++i) data[i] = (char)(rank == 1 ? i * 7 : 0);
    MPI_Bcast(data, LONG, MPI_CHAR, 1, MPI_COMM_WORLD);
    for (i = 0; i < LONG; ++i) check(data[i] == (char)(i * 7));
    for (i = 0; i < 2000; ++i) {
        MPI_Comm one;
        int sum, all[64], mine = rank + i;
        MPI_Comm_split(MPI_COMM_WORLD, i % 7 == 0 ? rank % 2 : 0, -rank, &one);
        MPI_Comm_size(one, &j);
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, one);
        if (i % 7 != 0) check(sum == size * (size - 1) / 2 + size * i);
        MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, one);
        if (i % 7 != 0) for (j = 0; j < size; ++j) check(all[j] == size - 1 - j);
        MPI_Barrier(one);
        MPI_Comm_free(&one);
    }
    printf("rank %d: %s\n", rank, wrong ? "wrong" : "right");
    MPI_Finalize();
    return wrong != 0;
}
C
over 5 gh:2x2x2 "$work/many"
[[ $(grep -c right "$work/out") == 5 ]] || fail "broadcasts that run ahead, a long one, or many communicators went wrong"

compile dies <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int rank, class = 0, i, rc = MPI_SUCCESS, value = 1, sum, kind = atoi(argv[1]), victim = atoi(argv[2]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (i = 0; i < 2000 && rc == MPI_SUCCESS; i++) {
        if (rank == victim && i == 50) _exit(0);
        if (kind == 0) rc = MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (kind == 1) rc = MPI_Barrier(MPI_COMM_WORLD);
        if (kind == 2) rc = MPI_Bcast(&value, 1, MPI_INT, 1, MPI_COMM_WORLD);
    }
    MPI_Error_class(rc, &class);
    /* The first to hear of it revokes the communicator, and others may hear of that first. */
    printf("rank %d: %s\n", rank, class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED ? "failed" : "went wrong");
    fflush(stdout);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPIX_Comm_revoke(MPI_COMM_WORLD);
    MPI_Comm living;
    if (MPIX_Comm_shrink(MPI_COMM_WORLD, &living) == MPI_SUCCESS &&
        MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, living) == MPI_SUCCESS)
        printf("rank %d: %d go on\n", rank, sum);
    fflush(stdout);
    value = 1;
    MPIX_Comm_agree(living, &value); /* nobody leaves before all have their sum */
    _exit(0);
}
C
for death in '0 1' '0 0' '1 3' '2 1'; do
    read -ra how <<<"$death"
    timeout "$patience" "$ulfmrun" --transport pointdesign --topology gh:2x2x2 --ft -n 5 "$work/dies" "${how[@]}" \
        >"$work/out" 2>&1 || true
    [[ $(grep -c 'failed$' "$work/out") == 4 ]] || fail "kind and victim $death: not all four were told of the death"
    [[ $(grep -c ': 4 go on' "$work/out") == 4 ]] || fail "kind and victim $death: the four did not go on"
done

# In virtual time, too, a sender's messages come in their order: those to all, which the network may have no room for, and
# those to one node between them, which are quicker.
"$stage/bin/nxcc" -std=gnu11 -O1 -w -x c - -o "$work/in_order" <<'C'
#include <cube.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    const long bytes = atol(argv[1]), count = 60, me = mynode(), nodes = numnodes();
    long *data = calloc(1, bytes + sizeof(long)), i, wrong = 0;
    gsync();
    for (i = 0; i < count; i++) {
        const long to = i % 3 == 2 ? 1 + i % (nodes - 1) : -1;
        data[0] = i;
        if (me == 0) csend(7, data, i % 3 == 1 ? sizeof(long) : bytes, to, 0);
        else if (to < 0 || to == me) {
            crecv(7, data, bytes);
            wrong += data[0] != i;
        }
    }
    double sum[20000], spare[20000];
    for (i = 0; i < 20000; i++) sum[i] = me * 3 + i;
    gdsum(sum, 20000, spare);
    for (i = 0; i < 20000; i++) wrong += sum[i] != 3.0 * nodes * (nodes - 1) / 2 + nodes * i;
    printf("node %ld: %s\n", me, wrong ? "wrong" : "right");
    return wrong != 0;
}
C
for bytes in 8 500 8192; do
    for shape in gh:2x2x2 gh:3x2x1; do
        over 6 "$shape" --time virtual,compute=none "$work/in_order" "$bytes"
        [[ $(grep -c right "$work/out") == 6 ]] || fail "messages of $bytes bytes to all and to one over $shape: not in order"
    done
done

"$stage/bin/nxcc" -std=gnu11 -O1 -w -x c - -o "$work/nodes" <<'C'
#include <cube.h>
#include <stdio.h>
int main(void)
{
    long sum = mynode(), work, i, all[64], n, wrong = 0, big[3000], big_work[3000];
    for (i = 0; i < 300; ++i) {
        long value = i;
        if (mynode() == i % numnodes()) csend(7, &value, sizeof value, -1, mypid());
        else crecv(7, &value, sizeof value);
        wrong += value != i;
        gsync();
    }
    gisum(&sum, 1, &work);
    wrong += sum != numnodes() * (numnodes() - 1) / 2;
    for (i = 0; i < 3000; ++i) big[i] = i + mynode();
    gisum(big, 3000, big_work);
    for (i = 0; i < 3000; ++i) wrong += big[i] != i * numnodes() + numnodes() * (numnodes() - 1) / 2;
    sum = mynode();
    gcol(&sum, sizeof sum, all, sizeof all, &n);
    for (i = 0; i < numnodes(); ++i) wrong += all[i] != i;
    printf("node %ld: %s\n", mynode(), wrong ? "wrong" : "right");
    return wrong != 0;
}
C
for faults in '' 'drop=1e-2,seed=5'; do
    over 6 gh:2x2x2 ${faults:+--fault "$faults"} "$work/nodes"
    [[ $(grep -c right "$work/out") == 6 ]] || fail "NX/2 over the multicast, faults '$faults': wrong"
    grep -qE 'multicast: messages [1-9].* at once to [1-9]' "$work/stats" || fail "NX/2 does not use the multicast"
done
echo "collectives by multicast give what messages give; roots are held, deaths are errors; NX/2 uses it too"
