#!/usr/bin/env bash
# Programs that are started without a launcher: fault tolerance returns at once, connect and accept need no launcher,
# spawn gets one, and where that cannot be the call ends with a sentence. Nothing is left behind.
set -uo pipefail
# shellcheck source=mpi_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
cd "$work" || exit 1
ulimit -c 0

compile alone <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int flag = 6, size = 0, failed = -1, revoked = -1, codes;
    MPI_Comm small;
    MPI_Group group;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    codes = MPIX_Comm_agree(MPI_COMM_WORLD, &flag);
    codes |= MPIX_Comm_failure_ack(MPI_COMM_WORLD) | MPIX_Comm_get_failed(MPI_COMM_WORLD, &group);
    MPI_Group_size(group, &failed);
    MPI_Group_free(&group);
    codes |= MPIX_Comm_revoke(MPI_COMM_WORLD) | MPIX_Comm_is_revoked(MPI_COMM_WORLD, &revoked);
    codes |= MPIX_Comm_shrink(MPI_COMM_WORLD, &small);
    MPI_Comm_size(small, &size);
    codes |= MPI_Barrier(small);
    MPI_Comm_free(&small);
    printf("codes %d flag %d failed %d revoked %d size %d\n", codes, flag, failed, revoked, size);
    MPI_Finalize();
    return 0;
}
C

compile spawn <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
/* spawn [kill]: two children, a sum over all three, twice over; with `kill` the parent dies while they are connected. */
int main(int argc, char **argv)
{
    MPI_Comm parent, children, all;
    int child, length, sum, one = 1;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    child = parent != MPI_COMM_NULL;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int turn = 0; turn < (child ? 1 : 2); turn++) {
        int rc = child ? MPI_SUCCESS : MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                                                      &children, MPI_ERRCODES_IGNORE);
        if (rc) {
            MPI_Error_string(rc, text, &length);
            printf("no children: %s\n", text);
            continue;
        }
        MPI_Intercomm_merge(child ? parent : children, child, &all);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
        if (!child)
            printf("sum %d\n", sum);
        fflush(stdout);
        if (!child && argc > 1 && strcmp(argv[1], "kill") == 0)
            raise(SIGKILL);
        MPI_Comm_free(&all);
        MPI_Comm_disconnect(child ? &parent : &children);
    }
    MPI_Finalize();
    return 0;
}
C

compile port <<'C'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
/* port: accepts one, after the name on a line; port NAME: connects. Nobody has a launcher. */
int main(int argc, char **argv)
{
    char name[MPI_MAX_PORT_NAME];
    MPI_Comm other;
    int mine = argc, theirs = 0;
    MPI_Init(&argc, &argv);
    if (argc > 1) {
        MPI_Comm_connect(argv[1], MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
    } else {
        MPI_Open_port(MPI_INFO_NULL, name);
        printf("%s\n", name);
        fflush(stdout);
        MPI_Comm_accept(name, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
    }
    MPI_Sendrecv(&mine, 1, MPI_INT, 0, 0, &theirs, 1, MPI_INT, 0, 0, other, MPI_STATUS_IGNORE);
    printf("met %d\n", theirs);
    MPI_Comm_disconnect(&other);
    MPI_Finalize();
    return 0;
}
C

# at_once COMMAND...: with nobody's settings, input or launcher; what it prints goes to $work/out.
at_once() { timeout "$patience" env -u ULFM_TRANSPORT "$@" </dev/null >out 2>&1; }

at_once ./alone || fail "fault tolerance alone: status $?"
grep -qx 'codes 0 flag 6 failed 0 revoked 1 size 1' out || fail "fault tolerance alone"
MPIR_CVAR_ENABLE_FT=1 at_once ./alone || fail "fault tolerance alone, switched on: status $?"

# Each of several processes is alone when their launcher gives nothing by which they could meet. The first one says so.
in_vain() { # PATTERN VARIABLE=VALUE...
    at_once env "${@:2}" ./alone || fail "$*: status $?"
    [[ $(grep -c "^ulfm: $1" out) == 1 && $(wc -l <out) == 2 ]] || fail "$*"
}
in_vain 'srun has started 4 processes.*srun --mpi=pmi2' SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0
in_vain 'srun has started 4 processes.*ulfm_pmi' SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0 PMIX_RANK=0
in_vain 'the mpirun of Open MPI has started 2 processes.*ulfmrun' OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 PMIX_RANK=0
for variables in "SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=1" "SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0" "SLURM_NTASKS=4 SLURM_PROCID=0"; do
    # shellcheck disable=SC2086 # several words
    at_once env $variables ./alone || fail "$variables: status $?"
    [[ $(wc -l <out) == 1 ]] || fail "$variables: something is said"
done

# Its providers' libraries look for hardware when they are loaded, for 0.2 s.
LD_DEBUG=files LD_DEBUG_OUTPUT=$work/loaded at_once ./alone || fail "what is loaded: status $?"
grep -q libulfm loaded.* || fail "what is loaded: nothing is seen"
! grep -q libfabric loaded.* || fail "a program on one host loads libfabric"

at_once "$work/spawn" || fail "spawn: status $?"
[[ $(grep -cx 'sum 3' out) == 2 ]] || fail "spawn"

at_once "$work/spawn" kill 2>/dev/null
[[ $? == 137 ]] || fail "the parent is killed: status $?"
for _ in $(seq 400); do # its launcher hears of it a moment later
    grep -q 'started without mpiexec.*ended without MPI_Finalize' out && ! pgrep -f "^$work/spawn" >/dev/null && break
    sleep 0.05
done
grep -q 'started without mpiexec.*ended without MPI_Finalize' out || fail "the parent is killed: nobody says so"
! pgrep -f "^$work/spawn" >/dev/null || fail "the parent is killed: children are left"

# Where the launcher ends, or is not there, spawn is an error.
mkdir -p bare/lib bare/bin
cp -a "$stage"/lib/*.so* bare/lib/
export LD_LIBRARY_PATH=$work/bare/lib
at_once "$work/spawn" || fail "no launcher: status $?"
[[ $(grep -c '^no children: ' out) == 2 ]] || fail "no launcher"
[[ $(grep -c '^MPI: what this program asks for .* needs mpiexec' out) == 1 ]] || fail "no launcher: no sentence"
printf '#!/bin/sh\nexit 3\n' >bare/bin/mpiexec
cp bare/bin/mpiexec bare/bin/hydra_pmi_proxy
chmod +x bare/bin/*
at_once "$work/spawn" || fail "a launcher that fails: status $?"
[[ $(grep -c '^no children: ' out) == 2 ]] || fail "a launcher that fails"
grep -q '^MPI: .*it ended at once, with status 3' out || fail "a launcher that fails: no sentence"

# In the bare installation: connect and accept ask for no launcher.
timeout "$patience" ./port </dev/null >name 2>&1 &
for _ in $(seq 2000); do [[ -s name ]] && break || sleep 0.02; done
at_once ./port "$(head -n 1 name)" || fail "connect: status $?"
wait $! || { cp name out && fail "accept: status $?"; }
grep -qx 'met 1' out || fail "connect"
grep -qx 'met 2' name || fail "accept"
