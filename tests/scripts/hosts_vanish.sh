#!/usr/bin/env bash
# A host that vanishes (its cable is cut for good) while mpiexec waits for what runs there: in MPI_Init, in a spawn, after
# others have survived it, when a signal ends the job. mpiexec ends with a sentence, and so does what runs on that host.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/hosts_common.bash"

cat >vanish.c <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* vanish init | spawn HOST | survives | sleeps: what is on host 2 makes the file begun, and goes on when the cable is cut. */
static void wait_for_cut(void)
{
    fclose(fopen("begun", "w"));
    while (access("cut_at", F_OK) != 0)
        usleep(1000);
}
static void survive(int rank)
{
    MPI_Comm left;
    int one = 1, all = 0, error = MPI_SUCCESS;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        wait_for_cut();
    while (error == MPI_SUCCESS)
        error = MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPIX_Comm_revoke(MPI_COMM_WORLD);
    if (MPIX_Comm_shrink(MPI_COMM_WORLD, &left) == MPI_SUCCESS) {
        MPI_Comm_set_errhandler(left, MPI_ERRORS_RETURN);
        MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, left);
        printf("rank %d: %d left\n", rank, all), fflush(stdout);
    }
}
int main(int argc, char **argv)
{
    const char *me = getenv("PMI_RANK");
    MPI_Comm parent;
    int rank;
    if (strcmp(argv[1], "child") == 0 || (strcmp(argv[1], "init") == 0 && me && strcmp(me, "1") == 0))
        wait_for_cut();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&parent);
    if (strcmp(argv[1], "spawn") == 0 && parent == MPI_COMM_NULL) {
        char *arguments[] = {"child", NULL};
        MPI_Comm children;
        MPI_Info info;
        MPI_Info_create(&info);
        MPI_Info_set(info, "host", argv[2]);
        MPI_Comm_spawn(argv[0], arguments, 2, info, 0, MPI_COMM_SELF, &children, MPI_ERRCODES_IGNORE);
    }
    if (strcmp(argv[1], "survives") == 0)
        survive(rank);
    if (strcmp(argv[1], "sleeps") == 0) {
        if (rank == 1)
            wait_for_cut();
        sleep(600);
    }
    MPI_Finalize();
    return 0;
}
C
"$stage/bin/mpicc" -O1 vanish.c -o vanish || exit 1
hosts_up 3
hosts_limit=120

cut_when_begun() {
    begun
    cut_cable 2
    touch cut_at
}

# ends NAME WHERE PATTERN HOSTS ARGUMENTS...: as check_cut says. $signal, if any, is sent to mpiexec when the cable is cut.
ends() {
    local name=$1 where=$2 pattern=$3 n=$4 code=0 began=$SECONDS took
    shift 4
    rm -f cut_at begun
    (
        cut_when_begun
        [[ -z ${signal:-} ]] || pkill "-$signal" -x mpiexec
    ) &
    on_hosts "$n" -genv ULFM_GIVE_UP 3s "$@" >out 2>err || code=$?
    took=$((SECONDS - began))
    wait $!
    check_cut "$name" "$where" "$pattern" 60 $code $took vanish,hydra_pmi_proxy
}

ends "in MPI_Init" err 'rank 1 .* on h2 is lost: the launcher.s proxy there has not answered' 2 -n 2 ./vanish init
ends "in a spawn" err 'on h2 is lost: the launcher.s proxy there has not answered' 1 -n 1 ./vanish spawn h2
ends "after others have survived" out 'rank 2: 2 left' 3 --ft -n 3 ./vanish survives
signal=TERM ends "a signal" out 'BAD TERMINATION' 2 -n 2 ./vanish sleeps
exit $((failures != 0))
