#!/usr/bin/env bash
# Collectives through shared memory give what MPICH's own algorithms give: random kinds, sizes, types, roots, operations and
# communicators, with a core for each rank and with fewer. A rank that dies inside one is an error in the others.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
cases=${ULFM_COLLECTIVES_CASES:-150}

compile collectives <"$(dirname "${BASH_SOURCE[0]}")/collectives.c"

# sums NAME RANKS SEED SETTING [threads]: the checksum of each rank.
sums() {
    ULFM_COLLECTIVES=$4 ULFM_STATS=1 timeout "$patience" "$mpiexec" -n "$2" "$work/collectives" "$3" "$cases" ${5:+"$5"} \
        >"$work/out" 2>"$work/$1.stats" || fail "collectives of $2 ranks with ULFM_COLLECTIVES=$4: exit status $?"
    sort -n "$work/out" >"$work/$1"
}

for ranks in 2 3 5 8; do
    sums messages "$ranks" "$ranks" off
    ! grep -q 'through shared memory' "$work/messages.stats" || fail "ULFM_COLLECTIVES=off, and some were shared"
    for setting in auto on; do
        sums shared "$ranks" "$ranks" "$setting"
        cmp "$work/messages" "$work/shared" || fail "$ranks ranks, ULFM_COLLECTIVES=$setting: results differ"
        grep -q 'collectives through shared memory:.*barrier' "$work/shared.stats" || fail "$setting: none was shared"
    done
done
sums shared 3 3 on threads
sums messages 3 3 off threads
cmp "$work/messages" "$work/shared" || fail "MPI_THREAD_MULTIPLE: results differ"

# Processes that would take different ways are told.
! ULFM_COLLECTIVES='' timeout "$patience" "$mpiexec" -n 1 -env ULFM_COLLECTIVES off "$work/collectives" 1 "$cases" : \
    -n 1 -env ULFM_COLLECTIVES on "$work/collectives" 1 "$cases" >"$work/out" 2>&1 || fail "different settings went unnoticed"
grep -q 'different values of ULFM_COLLECTIVES' "$work/out" || fail "different values of ULFM_COLLECTIVES without that sentence"

compile dies <<'C'
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, sum, class = 0, i, rc = MPI_SUCCESS;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (i = 0; i < 10; i++) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Request kept;
    MPI_Allreduce_init(&i, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &kept);
    for (i = 0; i < 1000 && rc == MPI_SUCCESS; i++) {
        if (rank == 1 && i == 50) _exit(0);
        if (argc == 1) rc = MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (argc == 1) continue;
        MPI_Request later;
        if (argv[1][0] == 'p') rc = MPI_Start(&kept), later = kept;
        else rc = MPI_Iallreduce(&i, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &later);
        if (rc == MPI_SUCCESS) rc = MPI_Wait(&later, MPI_STATUS_IGNORE);
    }
    MPI_Error_class(rc, &class);
    printf("rank %d: call %d %s\n", rank, i, class == MPIX_ERR_PROC_FAILED ? "failed" : "went wrong");
    fflush(stdout);
    _exit(0);
}
C
for how in "" nonblocking persistent; do
    ULFM_COLLECTIVES=on timeout "$patience" "$mpiexec" -disable-auto-cleanup -n 3 "$work/dies" ${how:+"$how"} >"$work/out" 2>&1 || true
    for rank in 0 2; do
        grep -q "rank $rank: call 51 failed" "$work/out" || fail "rank $rank was not told that rank 1 had died $how"
    done
done

# The same within long calls, in which ranks read and write each other's memory.
compile dies_inside <<'C'
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
enum { N = 1 << 17 };
static void *killer(void *after)
{
    usleep(*(int *)after);
    kill(getpid(), SIGKILL);
    return NULL;
}
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, after = argc > 2 ? atoi(argv[2]) : 0, rc = MPI_SUCCESS, class;
    double *a = calloc(2 * N, sizeof *a), *b = calloc(2 * N, sizeof *b);
    pthread_t thread;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Allreduce(a, b, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 1) pthread_create(&thread, NULL, killer, &after);
    for (int root = 0; rc == MPI_SUCCESS; root ^= 1)
        switch (argv[1][0]) {
            case 'b': rc = MPI_Bcast(a, N, MPI_DOUBLE, root, MPI_COMM_WORLD); break;
            case 'r': rc = MPI_Reduce(a, b, N, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD); break;
            case 'g': rc = MPI_Gather(a, N, MPI_DOUBLE, b, N, MPI_DOUBLE, root, MPI_COMM_WORLD); break;
            default: rc = MPI_Scatter(b, N, MPI_DOUBLE, a, N, MPI_DOUBLE, root, MPI_COMM_WORLD); break;
        }
    MPI_Error_class(rc, &class);
    printf("rank %d: %s\n", rank, class == MPIX_ERR_PROC_FAILED ? "failed" : "went wrong");
    fflush(stdout);
    _exit(0);
}
C
for what in bcast reduce gather scatter; do
    for after in 900 2300 4100; do
        ULFM_COLLECTIVES=on timeout "$patience" "$stage/bin/ulfmrun" --ft -n 2 "$work/dies_inside" "$what" "$after" >"$work/out" 2>&1 || true
        grep -q 'rank 0: failed' "$work/out" || fail "rank 0 was not told that rank 1 had died inside a long $what"
    done
done
echo "collectives through shared memory give what messages give; a death is an error in the others"
