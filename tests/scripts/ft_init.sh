#!/usr/bin/env bash
# Fault tolerance (--ft): a rank that is killed before or in MPI_Init does not keep the others there. They get
# MPIX_ERR_PROC_FAILED from it, and go on without it.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

compile init <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* init VICTIM kill|fork: that rank is killed before MPI_Init, or so many microseconds after its beginning. */
int main(int argc, char **argv)
{
    const char *rank_text = getenv("PMI_RANK");
    const int victim = atoi(argv[1]);
    int rank, class = MPI_SUCCESS, code, alive;
    MPI_Comm living;
    if (rank_text && atoi(rank_text) == victim) {
        if (!strcmp(argv[2], "kill"))
            raise(SIGKILL);
        else if (fork() == 0) {
            usleep(atoi(argv[3]));
            kill(getppid(), SIGKILL);
            _exit(0);
        }
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    code = MPI_Recv(&alive, 1, MPI_INT, victim, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &class);
    MPIX_Comm_revoke(MPI_COMM_WORLD);
    MPIX_Comm_shrink(MPI_COMM_WORLD, &living);
    MPI_Comm_size(living, &alive);
    if (class != MPIX_ERR_PROC_FAILED && class != MPIX_ERR_REVOKED)
        printf("rank %d: class %d\n", rank, class);
    else
        printf("one of %d goes on\n", alive);
    MPI_Comm_free(&living);
    MPI_Finalize();
    return 0;
}
C

cd "$work"

# dies HOW [MICROSECONDS]: all others go on, over each of these networks.
dies() {
    local network
    for network in 'direct' 'xswitch --topology th8' 'ideal'; do
        # shellcheck disable=SC2086
        timeout 60 "$stage/bin/ulfmrun" --ft --transport $network -n 4 ./init 2 "$@" >out 2>err || true
        if [[ $(grep -c '^one of 3 goes on$' out || true) == 3 ]]; then
            echo "ok   $network, $*"
        else
            cat err >&2
            fail "FAIL $network, $*"
        fi
    done
}
dies kill
for after in 500 2000 5000 10000 20000; do
    dies fork $after
done
