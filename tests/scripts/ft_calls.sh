#!/usr/bin/env bash
# Calls in which a rank is killed and that have failed to say so: operations on memory that processes share, and calls
# that make communicators while another rank revokes. All end with MPIX_ERR_PROC_FAILED or MPIX_ERR_REVOKED. Agreements
# of communicators that have had a context id one after the other, without any death.
set -uo pipefail
# shellcheck source=mpi_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
cd "$work" || exit 1
ulimit -c 0

compile calls <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
/* calls WHAT: the last rank dies; rank 0 does WHAT to it until it fails, or all others call WHAT, and who fails revokes.
 * To a fence rank 0 does not come, for it has heard of the death elsewhere. */
enum { BYTES = 1 << 20 };
static char bytes[BYTES];
static int shared_memory(const char *what, int victim, MPI_Win win)
{
    long one = 1, before;
    int rc = MPI_SUCCESS;
    while (!rc) {
        if (strcmp(what, "put") == 0) rc = MPI_Put(bytes, BYTES, MPI_CHAR, victim, 0, BYTES, MPI_CHAR, win);
        else if (strcmp(what, "get") == 0) rc = MPI_Get(bytes, BYTES, MPI_CHAR, victim, 0, BYTES, MPI_CHAR, win);
        else rc = MPI_Fetch_and_op(&one, &before, MPI_LONG, victim, 0, MPI_SUM, win);
        if (!rc) rc = strcmp(what, "get") == 0 ? MPI_Win_flush_all(win) : MPI_Win_flush(victim, win);
    }
    return rc;
}
static int fence(int rank, int victim, MPI_Comm comm, MPI_Win win)
{
    if (rank == 0) return MPI_Recv(bytes, 1, MPI_CHAR, victim, 0, comm, MPI_STATUS_IGNORE);
    MPI_Put(bytes, 1, MPI_CHAR, rank, 0, 1, MPI_CHAR, win);
    return MPI_Win_fence(0, win);
}
/* Within an epoch to one that has died meanwhile */
static int started(int victim, MPI_Comm comm, MPI_Win win)
{
    MPI_Group all, one;
    int rc;
    MPI_Comm_group(comm, &all);
    MPI_Group_incl(all, 1, &victim, &one);
    MPI_Win_start(one, MPI_MODE_NOCHECK, win);
    MPI_Recv(bytes, 1, MPI_CHAR, victim, 0, comm, MPI_STATUS_IGNORE);
    rc = MPI_Put(bytes, 8, MPI_CHAR, victim, 0, 8, MPI_CHAR, win);
    return rc ? rc : MPI_Win_complete(win);
}
/* A new window of those that live */
static int window_works(MPI_Comm living)
{
    int rank, size, got = -1, after = 0;
    MPI_Win win;
    MPI_Comm_rank(living, &rank);
    MPI_Comm_size(living, &size);
    MPI_Win_create(&got, sizeof got, 1, MPI_INFO_NULL, living, &win);
    MPI_Win_fence(0, win);
    MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    after = got == (rank + size - 1) % size;
    MPI_Win_free(&win);
    return after;
}
static int making(const char *what, int size, MPI_Comm comm)
{
    int periodic = 1;
    MPI_Comm made;
    if (strcmp(what, "dup") == 0) return MPI_Comm_dup(comm, &made);
    if (strcmp(what, "cart") == 0) return MPI_Cart_create(comm, 1, &size, &periodic, 0, &made);
    return MPI_Comm_spawn("/bin/true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, comm, &made, MPI_ERRCODES_IGNORE);
}
int main(int argc, char **argv)
{
    int rank, size, rc = MPI_SUCCESS, class = MPI_SUCCESS, flag = 1;
    const char *what = argv[1];
    const int fenced = strcmp(what, "fence") == 0;
    const int starts = strcmp(what, "start") == 0;
    const int on_window = fenced || starts || strcmp(what, "put") == 0 || strcmp(what, "get") == 0 || strcmp(what, "add") == 0;
    void *base;
    MPI_Comm comm, living;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if (on_window) {
        MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, comm, &base, &win);
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
        if (fenced) MPI_Win_fence(0, win);
        else if (!starts) MPI_Win_lock_all(0, win);
    }
    MPI_Barrier(comm);
    if (fenced && rank == size - 1) usleep(200000);     /* the others are in the fence then, as a rule */
    if (rank == size - 1) raise(SIGKILL);
    if (fenced) rc = fence(rank, size - 1, comm, win);
    else if (!on_window) rc = making(what, size, comm);
    else if (rank == 0 && starts) rc = started(size - 1, comm, win);
    else if (rank == 0) rc = shared_memory(what, size - 1, win);
    MPI_Error_class(rc, &class);
    if ((rank == 0 || fenced || !on_window) && class != MPIX_ERR_PROC_FAILED && class != MPIX_ERR_REVOKED)
        printf("rank %d: %s: class %d\n", rank, what, class), fflush(stdout);
    if (rank == 0 || !on_window) MPIX_Comm_revoke(comm);
    MPIX_Comm_shrink(comm, &living);
    MPI_Comm_set_errhandler(living, MPI_ERRORS_RETURN);
    MPI_Comm_size(living, &size);
    if (on_window) MPI_Win_free(&win);
    flag = !on_window || window_works(living);
    if (MPIX_Comm_agree(living, &flag) == MPI_SUCCESS && flag == 1) printf("%d go on\n", size);
    MPI_Finalize();
    return 0;
}
C

for what in put get add start fence fence dup dup dup cart cart spawn; do
    timeout "$patience" "$stage/bin/ulfmrun" --ft -n 4 ./calls "$what" </dev/null >out 2>&1
    [[ $(grep -cx '3 go on' out) == 3 ]] || fail "$what: not all living ranks go on"
    ! grep ': class ' out || fail "$what: another error"
done

# Receives from anybody, one of whom dies during the wait: nothing else would end it.
compile waits <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int rank, size, got[3], which = 0, some[3], rc = MPI_SUCCESS, class;
    MPI_Request requests[3];
    MPI_Status statuses[3];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1) {
        usleep(300000);
        raise(SIGKILL);
    }
    for (int i = 0; i < 3; i++) MPI_Irecv(&got[i], 1, MPI_INT, MPI_ANY_SOURCE, i, MPI_COMM_WORLD, &requests[i]);
    switch (argv[1][0]) {
    case '1': rc = MPI_Wait(&requests[0], &statuses[0]); break;
    case 'n': rc = MPI_Waitany(3, requests, &which, &statuses[0]); break;
    case 's': rc = MPI_Waitsome(3, requests, &which, some, statuses); break;
    case 'i': rc = MPI_Waitall(3, requests, MPI_STATUSES_IGNORE); break;
    default: rc = MPI_Waitall(3, requests, statuses);
    }
    MPI_Error_class(rc, &class);
    if (class == MPIX_ERR_PROC_FAILED_PENDING || class == MPI_ERR_IN_STATUS) puts("failed");
    fflush(stdout);
    _exit(0);
}
C
for what in 1 n s a i; do
    timeout "$patience" "$stage/bin/ulfmrun" --ft -n 3 ./waits "$what" </dev/null >out 2>&1
    [[ $(grep -cx failed out) == 2 ]] || fail "waits for several ($what): not all living ranks were told"
done

# A vote of the second communicator's first agreement got the decision of the first one's, and rank 0 waited for ever.
compile again <<'C'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
/* again WHAT: communicators that take each other's context id, one after the other; rank 0 comes late to what
 * each agrees on, and makes progress before. */
static void late(int rank)
{
    const double until = MPI_Wtime() + 0.02;
    int flag;
    while (rank == 0 && MPI_Wtime() < until) MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}
static int agreed(int rank, int turn)
{
    int flag = 1 << turn;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    late(rank);
    MPIX_Comm_agree(comm, &flag);
    MPI_Comm_free(&comm);
    return flag == 1 << turn;
}
static int freed(int rank)
{
    void *base;
    MPI_Win win;
    MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    late(rank);
    return MPI_Win_free(&win) == MPI_SUCCESS;
}
int main(int argc, char **argv)
{
    int rank, right = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int turn = 0; turn < 10; turn++) right += strcmp(argv[1], "agree") == 0 ? agreed(rank, turn) : freed(rank);
    if (right == 10) puts("right");
    else printf("rank %d: %d of 10 right\n", rank, right);
    MPI_Finalize();
    return 0;
}
C
for what in agree window; do
    timeout "$patience" "$stage/bin/ulfmrun" --ft -n 3 ./again "$what" </dev/null >out 2>&1
    [[ $(grep -cx right out) == 3 ]] || fail "communicators of one context id ($what): $(tail -n 3 out)"
done

# More requests to one that dies than MPICH keeps stories of errors: each fails with the class of that failure.
compile pending <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    enum { many = 300 };
    static int got[many];
    MPI_Request requests[many];
    int rank, size, right = 0, class, rc;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < many; i++) MPI_Irecv(&got[i], 1, MPI_INT, size - 1, i, MPI_COMM_WORLD, &requests[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1) raise(SIGKILL);
    for (int i = 0; i < many; i++) {
        rc = MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        MPI_Error_class(rc, &class);
        right += class == MPIX_ERR_PROC_FAILED;
    }
    printf("%d of %d\n", right, many);
    MPI_Finalize();
    return 0;
}
C
timeout "$patience" "$stage/bin/ulfmrun" --ft -n 3 ./pending </dev/null >out 2>&1
[[ $(grep -cx '300 of 300' out) == 2 ]] || fail "requests to the dead failed with another error: $(head -n 3 out)"
! grep 'INTERNAL ERROR' out || fail "MPICH complains about its own errors"
