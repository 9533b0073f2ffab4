#!/usr/bin/env bash
# One-sided communication whose epochs follow each other in every way: fences, post and start, locks. A fence leaves a barrier
# on its way, and what follows must not wait for it in vain.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

compile epochs <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#define TURNS 60
static int rank, size, wrong;
static long *mem, *got;
static MPI_Win win;
static MPI_Group all;

static void add(int target)
{
    long one = 1;
    MPI_Accumulate(&one, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_SUM, win);
    MPI_Put(&one, 1, MPI_LONG, target, 1 + rank, 1, MPI_LONG, win);
}
static void everybody(void)
{
    for (int i = 0; i < size; i++) add(i);
}
static void epoch(int kind)
{
    if (kind == 0) {
        MPI_Win_fence(0, win);
        everybody();
        MPI_Win_fence(0, win);
    } else if (kind == 1) {
        MPI_Win_post(all, 0, win);
        MPI_Win_start(all, 0, win);
        everybody();
        MPI_Win_complete(win);
        MPI_Win_wait(win);
    } else if (kind == 2) {
        MPI_Win_lock_all(0, win);
        everybody();
        MPI_Win_unlock_all(win);
    } else {
        for (int i = 0; i < size; i++) {
            MPI_Win_lock(MPI_LOCK_SHARED, i, 0, win);
            add(i);
            MPI_Win_unlock(i, win);
        }
    }
}
static void look(long sum)
{
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    if (mem[0] != sum) wrong++;
    for (int i = 0; i < size; i++) wrong += mem[1 + i] != 1;
    MPI_Win_unlock(rank, win);
    MPI_Barrier(MPI_COMM_WORLD);
}
int main(int argc, char **argv)
{
    int all_wrong;
    unsigned seed = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    for (int own = 0; own < 2; own++) {
        const MPI_Aint bytes = (1 + size) * sizeof(long);
        got = calloc(1 + size, sizeof(long));
        if (own) MPI_Win_create(mem = got, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        else MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
        for (int i = 0; i <= size; i++) mem[i] = 0;
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 1; i <= TURNS; i++) {
            // The first are a fence with post and start behind it, which hung.
            epoch(i < 20 ? (i + 1) % 2 : (seed = seed * 1103515245u + 12345) >> 16 & 3);
            if (i % 3 == 0) look((long) i * size);
        }
        MPI_Win_free(&win);
        free(got);
    }
    MPI_Group_free(&all);
    MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) puts(all_wrong ? "wrong" : "right");
    MPI_Finalize();
    return all_wrong != 0;
}
C

# run NAME RANKS OPTIONS...
run() {
    timeout "$patience" "$stage/bin/ulfmrun" -n "$2" "${@:3}" "$work/epochs" >"$work/out" 2>&1 || fail "$1: exit status $?"
    grep -qx right "$work/out" || fail "$1: no result"
    echo "ok   $1"
}
for ranks in 2 5 6; do run "direct, $ranks ranks" "$ranks"; done
run "without collectives through shared memory" 6 -genv ULFM_COLLECTIVES off
run "xswitch" 5 --transport xswitch
run "multicast" 8 --transport pointdesign --topology gh:2x2x2
run "losses" 4 --transport xswitch --fault 'drop=1e-2; reorder=1e-2'

# A window's communicator gets a segment for collectives when its fences are many, and not in its making or at its end, which would take
# most of the time of both.
compile segments <<'C'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
static int segments(void)
{
    char line[400];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) count += strstr(line, "/memfd:ulfm-collectives") != NULL;
    if (maps) fclose(maps);
    return count;
}
int main(int argc, char **argv)
{
    static char own[64];
    char *mem;
    int rank, counts[4];
    MPI_Win windows[3];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 20; i++) MPI_Barrier(MPI_COMM_WORLD);
    counts[0] = segments();
    MPI_Win_create(own, sizeof own, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &windows[0]);
    MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &windows[1]);
    MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &windows[2]);
    counts[1] = segments();
    for (int i = 0; i < 100; i++) MPI_Win_fence(0, windows[1]);
    counts[2] = segments();
    for (int i = 0; i < 3; i++) MPI_Win_free(&windows[i]);
    counts[3] = segments();
    if (rank == 0)
        printf("making %d, fences %d, left %d\n", counts[1] - counts[0], counts[2] > counts[1], counts[3] - counts[0]);
    MPI_Finalize();
    return 0;
}
C
for ranks in 2 5; do
    timeout "$patience" "$stage/bin/ulfmrun" -n $ranks "$work/segments" >"$work/out" 2>&1 || fail "segments, $ranks ranks: exit status $?"
    grep -qx "making 0, fences 1, left 0" "$work/out" || fail "$ranks ranks: windows have other segments than wanted"
done
echo "ok   segments of windows"
