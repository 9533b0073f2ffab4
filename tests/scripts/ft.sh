#!/usr/bin/env bash
# Ranks that die in the middle of everything, and the others go on: every call that needs the dead one ends with
# MPIX_ERR_PROC_FAILED or MPIX_ERR_REVOKED, and revoke, agree, shrink and get_failed do what they say. Takes the options
# of ulfmrun for the interconnect as arguments.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
over=("$@")

compile ft <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LARGE = 3000000 };
static int rank, size, errors;
static char *buf;

static int class_of(int rc)
{
    int c = MPI_SUCCESS;
    if (rc != MPI_SUCCESS) MPI_Error_class(rc, &c);
    return c;
}
static void want(const char *what, int found, int expected)
{
    if (found == expected) return;
    printf("rank %d: %s: found %d, expected %d\n", rank, what, found, expected);
    errors++;
}
static void die(void)
{
    raise(SIGKILL);
}
/* What needs the last rank, which dies; the others get an error and no hang. */
static void failing(const char *what, int rc) { want(what, class_of(rc), MPIX_ERR_PROC_FAILED); }

/* All living ones agree, as often as it takes until the death is acknowledged by all. */
static void acknowledge(MPI_Comm comm)
{
    int flag, rc, turns = 0;
    do {
        MPIX_Comm_failure_ack(comm);
        flag = 1;
        rc = MPIX_Comm_agree(comm, &flag);
    } while (class_of(rc) == MPIX_ERR_PROC_FAILED && ++turns < 10);
    want("agree after acknowledging", class_of(rc), MPI_SUCCESS);
    want("agreed flag", flag, 1);
}
static void survivors_work(MPI_Comm comm, int expected)
{
    MPI_Comm small;
    MPI_Group failed;
    int n, one = 1, sum = 0;
    double began = MPI_Wtime();
    do { /* what is known here, which need not be all at first */
        MPIX_Comm_get_failed(comm, &failed);
        MPI_Group_size(failed, &n);
        MPI_Group_free(&failed);
    } while (n < size - expected && MPI_Wtime() - began < 60);
    want("size of get_failed", n, size - expected);
    acknowledge(comm);
    MPIX_Comm_failure_get_acked(comm, &failed);
    MPI_Group_size(failed, &n);
    want("size of get_acked", n, size - expected);
    MPI_Group_free(&failed);
    want("shrink", class_of(MPIX_Comm_shrink(comm, &small)), MPI_SUCCESS);
    MPI_Comm_size(small, &n);
    want("size after shrink", n, expected);
    want("allreduce after shrink", MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, small), MPI_SUCCESS);
    want("sum after shrink", sum, expected);
    MPI_Comm_free(&small);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const char *what = argv[1];
    MPI_Comm comm;
    MPI_Request request;
    int i, last, rc, alive, one = 1, sum;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    buf = calloc(1, LARGE);
    last = size - 1;
    alive = size - 1;
    MPI_Barrier(comm);

    if (strcmp(what, "send") == 0) { /* a rendezvous that nobody lets in */
        if (rank == last) die();
        rc = MPI_Isend(buf, LARGE, MPI_CHAR, last, 1, comm, &request);
        failing("Isend", rc ? rc : MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else if (strcmp(what, "ssend") == 0) {
        if (rank == last) die();
        failing("Ssend", MPI_Ssend(buf, 10, MPI_CHAR, last, 1, comm));
    } else if (strcmp(what, "recv") == 0) { /* one from it, and one from anybody */
        if (rank == last) die();
        failing("Recv", MPI_Recv(buf, 10, MPI_CHAR, last, 1, comm, MPI_STATUS_IGNORE));
        failing("Probe", MPI_Probe(last, 1, comm, MPI_STATUS_IGNORE));
        failing("Recv from any", MPI_Recv(buf, 10, MPI_CHAR, MPI_ANY_SOURCE, 1, comm, MPI_STATUS_IGNORE));
    } else if (strcmp(what, "before") == 0) { /* what it sent before counts */
        if (rank == last) {
            for (i = 0; i < last; i++) MPI_Send(&one, 1, MPI_INT, i, 7, comm);
            MPI_Recv(buf, 1, MPI_CHAR, 0, 8, comm, MPI_STATUS_IGNORE);
            die();
        }
        if (rank == 0) MPI_Send(buf, 1, MPI_CHAR, last, 8, comm);
        failing("Recv of what never comes", MPI_Recv(buf, 1, MPI_CHAR, last, 9, comm, MPI_STATUS_IGNORE));
        want("Recv of what came", MPI_Recv(&i, 1, MPI_INT, last, 7, comm, MPI_STATUS_IGNORE), MPI_SUCCESS);
    } else if (strcmp(what, "collectives") == 0) {
        for (i = 0; i < 20; i++) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
        if (rank == last) die();
        failing("Allreduce", MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
        failing("Barrier", MPI_Barrier(comm));
        failing("Alltoall", MPI_Alltoall(buf, 1, MPI_CHAR, buf + 1000, 1, MPI_CHAR, comm));
        failing("large Allreduce", MPI_Allreduce(MPI_IN_PLACE, buf, LARGE, MPI_CHAR, MPI_MAX, comm));
    } else if (strcmp(what, "revoke") == 0) { /* nobody died: who is revoked stops waiting all the same */
        alive = size;
        if (rank == 0) {
            MPI_Request r[2];
            int flag = 0;
            MPI_Irecv(buf, 1, MPI_CHAR, last, 1, comm, &r[0]);
            MPI_Isend(buf, LARGE, MPI_CHAR, last, 2, comm, &r[1]);
            MPIX_Comm_revoke(comm);
            want("Irecv", class_of(MPI_Wait(&r[0], MPI_STATUS_IGNORE)), MPIX_ERR_REVOKED);
            want("Isend", class_of(MPI_Wait(&r[1], MPI_STATUS_IGNORE)), MPIX_ERR_REVOKED);
            MPIX_Comm_is_revoked(comm, &flag);
            want("is_revoked", flag, 1);
        } else {
            rc = MPI_Recv(buf, 1, MPI_CHAR, 0, 3, comm, MPI_STATUS_IGNORE);
            want("Recv", class_of(rc), MPIX_ERR_REVOKED);
        }
    } else if (strcmp(what, "agree") == 0) { /* ranks 0 and last die in different places of it */
        int flag = rank + 16;
        if (rank == last) die();
        rc = MPIX_Comm_agree(comm, &flag);
        failing("agree with a death", rc);
        if (rank == 0) die();
        alive = size - 2;
    } else if (strcmp(what, "shrink") == 0) { /* deaths while it goes on: the new one is of the living, or told of more */
        MPI_Comm small = comm, next;
        if (rank == last || rank == 0) {
            usleep((useconds_t)(rank * 700));
            die();
        }
        alive = size - 2;
        for (;;) {
            want("shrink with deaths", class_of(MPIX_Comm_shrink(small, &next)), MPI_SUCCESS);
            if (small != comm) MPI_Comm_free(&small);
            small = next;
            sum = 0;
            rc = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, small);
            i = rc == MPI_SUCCESS;
            MPIX_Comm_agree(small, &i);
            if (i) break;
        }
        want("sum", sum, alive);
        MPI_Comm_free(&small);
    } else if (strcmp(what, "rma") == 0) {
        MPI_Win win;
        int *base;
        MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &base, &win);
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
        MPI_Win_fence(0, win);
        if (rank == last) die();
        rc = MPI_Accumulate(&one, 1, MPI_INT, last, 0, 1, MPI_INT, MPI_SUM, win);
        if (!rc) rc = MPI_Win_fence(0, win);
        failing("fence", rc);
        want("Win_free", class_of(MPI_Win_free(&win)), MPI_SUCCESS);
    } else if (strcmp(what, "spawn") == 0) { /* a new one takes the place of the dead one */
        MPI_Comm small, inter, all;
        int n;
        if (rank == last) die();
        failing("Barrier", MPI_Barrier(comm));
        MPIX_Comm_shrink(comm, &small);
        char *args[] = {"child", NULL};
        rc = MPI_Comm_spawn(argv[0], args, 1, MPI_INFO_NULL, 0, small, &inter, MPI_ERRCODES_IGNORE);
        want("spawn", class_of(rc), MPI_SUCCESS);
        MPI_Intercomm_merge(inter, 0, &all);
        MPI_Comm_size(all, &n);
        want("size with the new one", n, size);
        sum = 0;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
        want("sum with the new one", sum, size);
        MPI_Comm_free(&all);
        MPI_Comm_disconnect(&inter);
        MPI_Comm_free(&small);
    } else if (strcmp(what, "child") == 0) {
        MPI_Comm parent, all;
        MPI_Comm_get_parent(&parent);
        MPI_Intercomm_merge(parent, 1, &all);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
        MPI_Comm_free(&all);
        MPI_Comm_disconnect(&parent);
        alive = size;
    }
    survivors_work(comm, alive);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    if (strcmp(what, "child") != 0) printf(errors ? "rank %d failed\n" : "rank %d survived\n", rank);
    return errors ? 9 : 0;
}
C

# round WHAT RANKS SURVIVORS
round() {
    local found status=0
    timeout "$patience" "$stage/bin/ulfmrun" --ft "${over[@]}" -n "$2" "$work/ft" "$1" >"$work/out" 2>&1 || status=$?
    ((status != 124)) || fail "$1: hangs"
    found=$(grep -c 'survived$' "$work/out" || true)
    ((found == $3)) || fail "$1: $found of $3 survived"
    ! grep -q 'expected' "$work/out" || fail "$1"
}

for what in send ssend recv before collectives rma spawn; do round "$what" 4 3; done
round revoke 4 4
round agree 5 3
for _ in 1 2 3; do round shrink 5 3; done
if ((${#over[@]} == 0)); then
    over=(--transport xswitch --topology th8)
    for what in send recv collectives; do round "$what" 4 3; done
    round agree 5 3
    round shrink 5 3
fi
# A rank dies while all are in MPI_Finalize, at any moment of it: the others end as ever, and the death is named.
compile finalize <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1 && fork() == 0) {
        usleep(atoi(argv[1]));
        kill(getppid(), SIGABRT);
        _exit(0);
    }
    MPI_Finalize();
    if (rank == 1) pause();
    printf("ended\n");
    return 0;
}
C
for delay in 0 100 200 300 500 1000 2000 5000 0 200 500; do
    timeout "$patience" "$stage/bin/ulfmrun" --ft -n 4 "$work/finalize" $delay >"$work/out" 2>&1 || true
    (($(grep -c '^ended$' "$work/out") == 3)) || fail "a rank died in MPI_Finalize after $delay us, and others did not end"
    grep -q 'mpiexec: rank 1 .*killed by signal 6' "$work/out" || fail "a death in MPI_Finalize after $delay us is not told"
done
echo "ranks die, the others go on"
