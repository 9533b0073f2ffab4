#!/usr/bin/env bash
# Processes die while MPI_Comm_spawn, MPI_Comm_accept and MPI_Comm_connect are under way: nobody who lives waits for them
# for ever, on either side, and what was spawned for nobody ends.
#   ft_connect.sh [ROUNDS [OPTIONS OF ulfmrun...]]
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
rounds=${1:-12}
over=("${@:2}")

# connect WHAT MILLISECONDS: who is to die does so after that time.
compile connect <<'C'
#define _GNU_SOURCE
#include <mpi.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static int rank, delay;
static char port[MPI_MAX_PORT_NAME];

static void die_later(void)
{
    struct itimerval in = { { 0, 0 }, { delay / 1000, delay % 1000 * 1000 } };
    setitimer(ITIMER_REAL, &in, NULL);  /* SIGALRM ends a process */
}
static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
static const char *text(int error)
{
    static char all[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(error, all, &length);
    return all;
}

/* A member dies while the others' spawn is under way. What was spawned, if the root has failed, is gone soon: one that
 * comes late learns from the root's progress that nobody waits for it. */
static void spawn(char **argv)
{
    char place[64];
    MPI_Comm made;
    FILE *file;
    int error, child = 0;
    snprintf(place, sizeof place, "child.%d", (int) getpid());
    char *arguments[] = { "child", place, NULL };
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) die_later();
    error = MPI_Comm_spawn(argv[0], arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &made, MPI_ERRCODES_IGNORE);
    if (rank == 1) pause();
    if (rank == 0 && error && (file = fopen(place, "r")) != NULL) {
        double end = seconds() + 60;
        if (fscanf(file, "%d", &child) == 1)
            while (kill(child, 0) == 0 && seconds() < end) {
                int there;
                MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &there, MPI_STATUS_IGNORE);
                usleep(10000);
            }
        if (child && kill(child, 0) == 0) printf("WRONG: what was spawned stays: %s\n", text(error));
        fclose(file);
    }
}

/* Rank 1 connects again and again, and dies. Rank 0 goes on for the others. */
static void serve(int size)
{
    MPI_Comm made;
    int met = 0, who;
    if (rank != 0) {
        MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) die_later();
        for (int i = 0; rank == 1 || i < 20; i++) {
            int error = MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made);
            if (error && rank == 1) pause();    /* rank 0 has met the others, and ended */
            if (error) printf("WRONG: rank %d cannot connect: %s\n", rank, text(error));
            else if (MPI_Send(&rank, 1, MPI_INT, 0, i == 19, made) && rank != 1) printf("WRONG: rank %d cannot send\n", rank);
            if (!error) MPI_Comm_free(&made);
        }
        return;
    }
    MPI_Open_port(MPI_INFO_NULL, port);
    for (int i = 1; i < size; i++) MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, i, 0, MPI_COMM_WORLD);
    while (met < size - 2) {
        MPI_Status status;
        if (MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made)) continue;     /* rank 1, in the middle of it */
        if (MPI_Recv(&who, 1, MPI_INT, 0, MPI_ANY_TAG, made, &status) == 0) met += who != 1 && status.MPI_TAG == 1;
        MPI_Comm_free(&made);
    }
    MPI_Close_port(port);
}

/* Ranks 0 and 1 accept what 2 and 3 connect, until a member dies. Its side's root ends that for the other side too. */
static void pairs(void)
{
    const int side = rank / 2;
    MPI_Comm mine, made;
    MPI_Comm_split(MPI_COMM_WORLD, side, rank, &mine);
    if (rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == (delay % 2 ? 1 : 3)) die_later();
    for (;;) {
        int size, error = side == 0 ? MPI_Comm_accept(port, MPI_INFO_NULL, 0, mine, &made)
                                    : MPI_Comm_connect(port, MPI_INFO_NULL, 0, mine, &made);
        if (error) break;
        MPI_Comm_remote_size(made, &size);
        MPI_Comm_free(&made);
        if (side == 0 && size == 1) break;
    }
    if (rank == 0) MPI_Close_port(port);
    if (rank == 2 && MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made) == 0) MPI_Comm_free(&made);
}

/* Rank 1 connects, and has died when rank 0 comes to it: in MPI_Comm_accept, which takes rank 2 then, in MPI_Close_port, or
 * in a message to rank 3, as the port is closed. */
static void late(void)
{
    const int where = delay % 3;
    int pid = getpid(), error;
    MPI_Comm made;
    if (rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
    if (rank == 0 && where == 2) MPI_Close_port(port);
    MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Bcast(&pid, 1, MPI_INT, 1, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        die_later();
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made);
        pause();
    }
    while (rank == 0 && kill(pid, 0) == 0) usleep(1000);
    if (where == 0 && (rank == 0 || rank == 2)) {
        error = rank == 0 ? MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made)
                          : MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made);
        if (error) printf("WRONG: rank %d: %s\n", rank, text(error));
        else MPI_Comm_free(&made);
    }
    if (rank == 0 && where != 2 && (error = MPI_Close_port(port))) printf("WRONG: MPI_Close_port: %s\n", text(error));
    error = rank == 0 ? MPI_Ssend(&where, 1, MPI_INT, 3, 0, MPI_COMM_WORLD) : MPI_SUCCESS;
    if (rank == 3) error = MPI_Recv(&pid, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (error) printf("WRONG: rank %d, a message: %s\n", rank, text(error));
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    int size;
    if (argc == 3 && !strcmp(argv[1], "child")) {
        FILE *file = fopen(argv[2], "w");
        if (file) fprintf(file, "%d", (int) getpid()), fclose(file);
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        delay = atoi(argv[2]);
        if (!strcmp(argv[1], "spawn")) spawn(argv);
        if (!strcmp(argv[1], "serve")) serve(size);
        if (!strcmp(argv[1], "pairs")) pairs();
        if (!strcmp(argv[1], "late")) late();
        printf("rank %d went on\n", rank);
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
C
cd "$work"
for ((round = 0; round < rounds; round++)); do
    for what in spawn serve pairs late; do
        delay=$((1 + round * 37))
        status=0
        # In every other round all messages with data wait for their receiver.
        ULFM_EAGER=$((round % 2 * 65536)) timeout -k 5 120 "$stage/bin/ulfmrun" --ft "${over[@]}" \
            -n 4 "$work/connect" $what $delay >"$work/out" 2>&1 </dev/null || status=$?
        ((status != 124)) || fail "$what, a death after $delay ms: hangs: $(cat "$work/out")"
        ! grep -q WRONG "$work/out" || fail "$what, a death after $delay ms: $(cat "$work/out")"
        (($(grep -c 'went on$' "$work/out") == 3)) || fail "$what, a death after $delay ms: $(cat "$work/out")"
    done
done
echo "$rounds rounds: processes die while others spawn, accept and connect"
