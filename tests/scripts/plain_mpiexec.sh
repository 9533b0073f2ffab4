#!/usr/bin/env bash
# Emulated interconnects under a plain mpiexec: the first process has the arena made. MPI programs, programs on ports and
# NX/2 programs, wrappers, spawned processes, an engine process; several jobs at once; what is wrong is told by one rank;
# processes that die half-way; nothing is left behind.
set -uo pipefail
source=${ULFM_SOURCE:?source folder}
# shellcheck source=fabric_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/fabric_common.bash"
run=$stage/bin/mpiexec # for over and refused
[[ -x $stage/bin/mpicc ]] || exit 77

for transport in xswitch dcm pcie pointdesign ideal; do
    ULFM_TRANSPORT=$transport over "trapezoid, $transport" "$answer" -n 4 "$programs/trapezoid"
done
export ULFM_TRANSPORT=xswitch
ULFM_TOPOLOGY=mesh:4x4 over "16 ranks" "$answer" -n 16 "$programs/trapezoid"
ULFM_TOPOLOGY=mesh:2x2 ULFM_FAULT=$bad_network over "a bad network" "$answer" -n 4 "$programs/trapezoid"
ULFM_FAULT='link 0-1 down at 0s' ULFM_TOPOLOGY=mesh:2x2 over "a link is down" "$answer" -n 4 "$programs/trapezoid"
# shellcheck disable=SC2016 # the inner shell's variables
over "wrappers" "$answer" -n 3 sh -c '"$0"; exit $?' "$programs/trapezoid"
over "settings of the job" "$answer" -n 2 -env ULFM_TOPOLOGY single:4 "$programs/trapezoid" : -n 2 "$programs/trapezoid"
over "one process" "$answer" -n 1 "$programs/trapezoid"
over "deaths are survived" "$answer" -genv MPIR_CVAR_ENABLE_FT 1 -n 4 "$programs/trapezoid"
ULFM_STATS=1 over "statistics" "$answer" -n 4 "$programs/trapezoid"
grep -q 'stats xswitch: cycles [1-9].*present 0$' err || fail statistics "no balance of the network"
for transport in pcie xswitch; do
    ULFM_ENGINE=process ULFM_TRANSPORT=$transport over "an engine process, $transport" "$answer" -n 4 "$programs/trapezoid"
done

cat >spawn.c <<'C'
#include <mpi.h>
#include <stdio.h>
/* spawn: every process but the first leaves at once; that one spawns two, which have to be on the same interconnect. */
int main(int argc, char **argv)
{
    MPI_Comm parent, children;
    int sum = 0, rank, one = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        MPI_Reduce(&one, NULL, 1, MPI_INT, MPI_SUM, 0, parent);
        MPI_Comm_disconnect(&parent);
    } else if (rank == 0) {
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children, MPI_ERRCODES_IGNORE);
        MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_ROOT, children);
        MPI_Comm_disconnect(&children);
        printf("%d children\n", sum);
    }
    MPI_Finalize();
    return 0;
}
C
"$stage/bin/mpicc" -O1 spawn.c -o spawn || exit 1
over "spawned processes" '^2 children' -n 3 ./spawn

"$source/examples/ports/build" "$PWD/ports" >log 2>&1 || { cat log && exit 1; }
over "a program on ports" 'every one as sent' -n 2 ports/pingpong
"$stage/bin/nxcc" -O1 -o ring "$source/examples/nx2/ring.c" 2>log || { cat log && exit 1; }
over "an NX/2 program" 'ring' -n 4 ./ring

# Eight jobs at once, each with an arena of its own.
for job in $(seq 8); do
    timeout 250 "$run" -n 3 "$programs/trapezoid" </dev/null >"many.$job" 2>&1 &
done
wait
[[ $(grep -l -e "$answer" many.* | wc -l) == 8 ]] || { cat many.* >err && fail "several jobs" "not all are right"; }

# told NAME PATTERN ARGUMENTS...: refused, and by one process.
told() {
    refused "$@"
    local times
    times=$(grep -c '^ulfm: ' err)
    ((times == 1)) || fail "$1" "$times sentences"
}
ULFM_TOPOLOGY=cube:8 told "no such shape" 'ULFM_TOPOLOGY.*cube:8' -n 6 "$programs/trapezoid"
ULFM_TRANSPORT=xswitch,fram=3 told "no such option" 'frame=64' -n 6 "$programs/trapezoid"
ULFM_TOPOLOGY=mesh:2x2 ULFM_FAULT='link 0-3 down at 1s' told "no such link" 'there is no such link' -n 6 "$programs/trapezoid"
ULFM_TRANSPORT=dcm ULFM_TOPOLOGY=cube:8 refused "no such shape, ports" 'cube:8' -n 2 ports/pingpong

# Who takes the job's name and goes on without making anything; who makes the arena, and is killed at once.
cat >half.py <<'P'
import os, socket, subprocess, sys, time
def stat(pid): return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
launcher = stat(os.getppid())[1]
name = f"\0ulfm-arena.{os.geteuid()}.process.{launcher}.{stat(launcher)[19]}"
taken = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
taken.bind(name)
if sys.argv[1] == "listening":
    taken.listen(64)
open("taken", "w").close()
time.sleep(0.3)
os.execv(sys.argv[2], sys.argv[2:])
P
for how in bound listening; do
    rm -f taken
    # shellcheck disable=SC2016
    over "the first one goes away, $how" "$answer" -n 1 python3 half.py $how "$programs/trapezoid" \
        : -n 3 sh -c 'while [ ! -e taken ]; do sleep 0.01; done; exec "$0"' "$programs/trapezoid"
done

cat >dies.c <<'C'
#include <mpi.h>
#include <signal.h>
int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        raise(SIGKILL);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
C
"$stage/bin/mpicc" -O1 dies.c -o dies || exit 1
refused "a rank is killed" 'rank 1' -n 4 ./dies

# Nothing is left: neither a name nor a holder. It ends by itself, a moment after the job.
for _ in $(seq 500); do
    left=$(pgrep -u "$(id -u)" -f "^ulfm_hostd hold")
    [[ -z $left ]] && break
    sleep 0.02
done
mine=""
for pid in $left; do [[ $(readlink "/proc/$pid/exe") == "$stage"/* ]] && mine="$mine $pid"; done
[[ -z $mine ]] || { ps -fp "$mine" >err && fail "the end" "holders are left:$mine"; }

((failures == 0)) || exit 1
