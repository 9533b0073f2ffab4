#!/usr/bin/env bash
# Emulated interconnects over several hosts without ulfmrun: a plain mpiexec starts the job, its first process has the
# interconnect made, and those on other hosts find it by the launcher. The hosts are namespaces of this machine
# (tests/hosts/hosts.bash).
set -uo pipefail
source=${ULFM_SOURCE:?source folder}
# shellcheck source=hosts_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/hosts_common.bash"
cat >die.c <<'C'
#include <mpi.h>
#include <signal.h>
int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1)
        raise(SIGKILL);
    MPI_Recv(&rank, 0, MPI_CHAR, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
}
C
"$stage/bin/mpicc" -O1 die.c -o die || exit 1
"$stage/bin/mpicc" -O1 "$here/mixed.c" -o mixed || exit 1
"$source/examples/ports/build" "$PWD/ports" >log 2>&1 || { cat log && exit 1; }
"$stage/bin/nxcc" -std=gnu89 -w "$source/examples/nx2/ring.c" -o ring || exit 1

# by_mpiexec NAME CODE PATTERN HOSTS ARGUMENT...: a job of mpiexec ends with 0 ("good") or not ("bad"), and says what
# matches.
by_mpiexec() {
    local name=$1 wanted=$2 pattern=$3 hosts=$4 code=0
    shift 4
    beside_host 1 "$stage/bin/mpiexec" -hosts "$hosts" -launcher ssh -launcher-exec "$hosts_launcher" "$@" >out 2>err || code=$?
    if [[ $wanted == good && $code == 0 && -s err ]]; then
        fail "$name" "it has something to say"
    else
        check_end "$name" "$wanted" "$pattern" "$code"
    fi
}

hosts_up 3
for transport in xswitch dcm pcie pointdesign ideal; do
    by_mpiexec "$transport" good 'check: ok' h1,h2 -genv ULFM_TRANSPORT $transport -n 4 "$programs/halo" --check
done
by_mpiexec "3 hosts, more ranks than nodes" good 'check: ok' h1,h2,h3 -genv ULFM_TRANSPORT xswitch -genv ULFM_TOPOLOGY mesh:2x2 \
    -n 9 "$programs/pi" --check
by_mpiexec "mpiexec on another host than the interconnect" good 'check: ok' h2,h3 -genv ULFM_TRANSPORT xswitch -n 4 "$programs/lu" --check
by_mpiexec "ranks of a node on two hosts" good 'nodes wrong 0' h1,h2 -genv ULFM_TRANSPORT xswitch -genv ULFM_TOPOLOGY single:2 \
    -n 4 -ppn 1 ./mixed nodes
by_mpiexec "windows" good 'window wrong 0' h1,h2 -genv ULFM_TRANSPORT xswitch -genv ULFM_TOPOLOGY single:2 -n 4 -ppn 2 ./mixed window
by_mpiexec "programs on ports" good '9000 items from 3 producers, all whole' h1,h2 -genv ULFM_TRANSPORT xswitch -n 4 ports/producer_consumer
by_mpiexec "NX/2" good 'ring: 4 nodes.*ok' h1,h2 -genv ULFM_TRANSPORT dcm -n 4 ./ring
# 300 processes and 150 proxies on this machine: two minutes where context switches are slow.
hosts_limit=600 by_mpiexec "many ranks, whose address is long" good 'check: ok' h1,h2 -genv ULFM_TRANSPORT ideal -n 300 "$programs/pi" --check
by_mpiexec "processes that are spawned where the interconnect is" good 'spawn wrong 0' h1,h1 -genv ULFM_TRANSPORT xswitch -n 1 ./mixed spawn
by_mpiexec "processes that are spawned elsewhere" bad 'spawned on .* start the job with ulfmrun' h1,h2 \
    -genv ULFM_TRANSPORT xswitch -n 1 ./mixed spawn
by_mpiexec "a topology that is none" bad 'ULFM_TOPOLOGY.*mesh:0x0' h1,h2 -genv ULFM_TRANSPORT xswitch -genv ULFM_TOPOLOGY mesh:0x0 \
    -n 4 "$programs/pi" --check
by_mpiexec "a rank that is killed" bad 'BAD TERMINATION\|killed by signal\|died' h1,h2 -genv ULFM_TRANSPORT xswitch -n 4 ./die

# Nothing is left: it ends by itself, a moment after its job. Nobody in these hosts asks how it ended.
for _ in $(seq 500); do
    left=$(ps -C ulfm-proxy,ulfm-door,ulfm-arena -o stat=,pid=,args= | grep -v '^Z')
    [[ -z $left ]] && break
    sleep 0.02
done
[[ -z $left ]] || { echo "$left" >err && fail "the end" "processes are left"; }
exit $((failures != 0))
