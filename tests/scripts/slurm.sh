#!/usr/bin/env bash
# Jobs that Slurm starts on two hosts (tests/hosts/slurm.bash), by PMI-2 and by PMIx: results, nodes, a rank that fails.
set -uo pipefail
# shellcheck source=hosts_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/hosts_common.bash"
# shellcheck source=../hosts/slurm.bash
. "$here/../hosts/slurm.bash"

cat >nodes.c <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
/* nodes: says how many nodes MPI sees, after a sum over all. nodes CODE: the last rank ends with it. */
int main(int argc, char **argv)
{
    int rank, size, leader, nodes, sum;
    MPI_Comm node;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &leader);
    leader = leader == 0;
    MPI_Allreduce(&leader, &nodes, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (argc > 1 && rank == size - 1)
        exit(atoi(argv[1]));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("ranks %d nodes %d sum %d\n", size, nodes, sum);
    MPI_Finalize();
    return 0;
}
C
"$stage/bin/mpicc" -O1 nodes.c -o nodes || exit 1
cat >signalled.c <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static volatile sig_atomic_t signals;
static void count(int signum)
{
    signals += signum == SIGUSR1;
}
/* Each rank says in the file "begun" that it has, waits for a signal, and says at last how many have come. */
int main(int argc, char **argv)
{
    FILE *begun;
    int everybody = 0, one;
    signal(SIGUSR1, count); /* before MPI_Init, which has a handler of its own */
    MPI_Init(&argc, &argv);
    begun = fopen("begun", "a");
    fprintf(begun, "begun\n");
    fclose(begun);
    while (!everybody) {
        one = signals != 0;
        MPI_Allreduce(&one, &everybody, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    }
    sleep(1); /* a second one may come late */
    printf("signals %d\n", (int) signals);
    MPI_Finalize();
    return 0;
}
C
"$stage/bin/mpicc" -O1 signalled.c -o signalled || exit 1

# slurm NAME WANTED PATTERN COMMAND...: a command on h1 with that status (or "bad": any but 0) and a line that matches.
slurm() {
    local name=$1 want=$2 pattern=$3 code=0
    shift 3
    on_slurm "$@" >out 2>err || code=$?
    if [[ $want == bad ]] && ((code != 0 && code != 124)); then want=$code; fi
    if ((code != want)); then
        fail "$name" "exit code $code"
    elif ! grep -q -e "$pattern" out err; then
        fail "$name" "no line like '$pattern'"
    else
        echo "ok   $name"
    fi
}

hosts_up 2
slurm_up 2
slurm "PMI-2, a program as it is" 0 "ranks 4 nodes 2 sum 6" srun --mpi=pmi2 -N 2 -n 4 ./nodes
slurm "PMI-2, one host" 0 "ranks 2 nodes 1 sum 1" srun --mpi=pmi2 -N 1 -n 2 "$stage/bin/ulfm_pmi" ./nodes
ULFM_TRANSPORT=xswitch slurm "PMI-2, an emulated interconnect on one host" 0 "ranks 2 nodes 2 sum 1" srun --mpi=pmi2 -N 1 -n 2 ./nodes
ULFM_TRANSPORT=xswitch slurm "PMI-2, an emulated interconnect on two hosts" 0 "ranks 4 nodes 4 sum 6" srun --mpi=pmi2 -N 2 -n 4 ./nodes
slurm "a rank that fails" bad "" srun --mpi=pmi2 -K -N 2 -n 4 ./nodes 3
# Slurm's signals are for the program, once; they are no word of a launcher that somebody has died.
for mpi in pmi2 pmix; do
    on_slurm srun --mpi=list 2>&1 | grep -q $mpi || continue
    : >begun
    on_slurm srun --mpi=$mpi -J signalled -N 1 -n 2 "$stage/bin/ulfm_pmi" ./signalled >out 2>err &
    job=$!
    for _ in $(seq 600); do
        (($(wc -l <begun) == 2)) && break
        sleep 0.1
    done
    on_slurm scancel -s USR1 "$(on_slurm squeue -h -n signalled -o %i).0"
    code=0
    wait $job || code=$?
    if ((code == 0)) && [[ $(grep -c '^signals 1$' out) == 2 ]]; then
        echo "ok   $mpi, a signal to the ranks"
    else
        fail "$mpi, a signal to the ranks" "exit code $code"
    fi
done
slurm "no PMI" bad "no launcher that speaks PMI" srun --mpi=none -N 2 -n 2 "$stage/bin/ulfm_pmi" ./nodes
slurm "no PMI, of which MPI tells" 0 "srun has started 4 processes, and each is a job of its own" srun --mpi=none -N 2 -n 4 ./nodes
slurm "mpiexec in an allocation" 0 "ranks 4 nodes 2 sum 6" salloc -N 2 -n 4 "$stage/bin/ulfmrun" -n 4 -ppn 2 ./nodes
"$stage/bin/mpicc" -O1 "$here/mixed.c" -o mixed || exit 1
slurm "an emulated interconnect in an allocation" 0 "ranks 4 nodes 4 sum 6" \
    salloc -N 2 -n 4 "$stage/bin/ulfmrun" --transport xswitch -n 4 -ppn 2 ./nodes
slurm "virtual time in an allocation" bad "virtual time is kept by processes of one host" \
    salloc -N 2 -n 4 "$stage/bin/ulfmrun" --transport xswitch --time virtual -n 4 -ppn 2 ./nodes
slurm "hosts as they are named" 0 "^.1. h1" salloc -N 2 -n 2 "$stage/bin/ulfmrun" -l -hosts h2,h1 -n 2 hostname
slurm "a spawn in an allocation" 0 "spawn wrong 0" salloc -N 2 -n 4 "$stage/bin/ulfmrun" -n 2 -ppn 1 ./mixed spawn
PMIX_NAMESPACE=nobody "$stage/bin/ulfm_pmi" true >err 2>&1
if grep -q 'without PMIx' err; then
    echo "skipped: $(cat err)"
elif on_slurm srun --mpi=list 2>&1 | grep -q pmix && on_slurm srun --mpi=pmix -N 2 -n 2 true 2>err; then
    slurm "PMIx" 0 "ranks 4 nodes 2 sum 6" srun --mpi=pmix -N 2 -n 4 "$stage/bin/ulfm_pmi" ./nodes
    slurm "PMIx, ranks in turn" 0 "ranks 6 nodes 2 sum 15" srun --mpi=pmix -m cyclic -N 2 -n 6 "$stage/bin/ulfm_pmi" ./nodes
    ULFM_TRANSPORT=xswitch slurm "PMIx, an emulated interconnect on two hosts" 0 "ranks 4 nodes 4 sum 6" \
        srun --mpi=pmix -N 2 -n 4 "$stage/bin/ulfm_pmi" ./nodes
    slurm "PMIx, a rank that fails" bad "rank 3 ended without MPI_Finalize: exit status 3" srun --mpi=pmix -N 2 -n 4 "$stage/bin/ulfm_pmi" ./nodes 3
    slurm "PMIx, a rank that leaves early" bad "rank 3 ended without MPI_Finalize: exit status 0" srun --mpi=pmix -N 2 -n 4 "$stage/bin/ulfm_pmi" ./nodes 0
    slurm "PMIx, a rank that leaves something behind" 3 "" \
        timeout 60 srun --mpi=pmix -N 2 -n 2 "$stage/bin/ulfm_pmi" sh -c 'sleep 100 >/dev/null 2>&1 & exit 3'
else
    echo "skipped: srun --mpi=pmix does not work here: $(tail -n 1 err)"
fi
exit $((failures != 0))
