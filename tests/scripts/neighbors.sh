#!/usr/bin/env bash
# Collectives of neighbours bring each block to its place: random graphs and sizes, with a core for each rank and
# with fewer, over shared memory, an emulated network and TCP. neighbors.sh [SEED ROUNDS]: one seed, over all of them.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
rounds=${2:-40}
compile neighbors <"$(dirname "${BASH_SOURCE[0]}")/neighbors.c"

# Rank 0 calls again and again, and rank 1's messages are always there: what else rank 0 has begun goes on.
compile progress <<'C'
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int rank, source = 1, target = 0, flag = 0, none = 0, unused, done;
  MPI_Comm world, graph, copy;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_dup(MPI_COMM_WORLD, &world);
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, rank == 0, &source, MPI_UNWEIGHTED, rank == 1, &target, MPI_UNWEIGHTED,
                                 MPI_INFO_NULL, 0, &graph);
  if (rank == 1) MPI_Neighbor_allgather(&flag, 1, MPI_INT, &unused, 1, MPI_INT, graph);
  if (rank == 0) {
    MPI_Comm_idup(world, &copy, &request);
    MPI_Neighbor_allgather(&none, 1, MPI_INT, &flag, 1, MPI_INT, graph);
    while (!flag) {
      MPI_Neighbor_allgather(&none, 1, MPI_INT, &flag, 1, MPI_INT, graph);
      usleep(300);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else if (rank == 1) {
    MPI_Comm_idup(world, &copy, &request);
    while (!flag) {
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      MPI_Iprobe(2, 5, world, &flag, MPI_STATUS_IGNORE);
      MPI_Neighbor_allgather(&flag, 1, MPI_INT, &unused, 1, MPI_INT, graph);
    }
    MPI_Recv(&unused, 1, MPI_INT, 2, 5, world, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Comm_idup(world, &copy, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 2) MPI_Send(&flag, 1, MPI_INT, 1, 5, world);
  }
  return MPI_Finalize();
}
C
timeout 60 "$mpiexec" -n 4 "$work/progress" || fail "a call whose messages are always there keeps all else waiting"

# run SEED RANKS OPTION...
run() {
    timeout "$patience" "$stage/bin/ulfmrun" "${@:3}" -n "$2" "$work/neighbors" "$1" "$rounds" >"$work/out" 2>&1 ||
        fail "seed $1, $2 ranks, ${*:3}: exit status $?"
    grep -q 'calls right' "$work/out" || fail "seed $1, $2 ranks, ${*:3}: no result"
}

for seed in ${1:-1 2}; do
    for ranks in 1 2 3 5; do run "$seed" "$ranks" --transport direct; done
    run "$seed" 4 --transport xswitch --topology th8
    run "$seed" 3 --transport tcp
    run "$seed" 3 --transport xswitch --topology th8 --time virtual
    timeout "$patience" "$mpiexec" -n 4 "$work/neighbors" "$seed" "$rounds" threads >"$work/out" 2>&1 ||
        fail "seed $seed, with MPI_THREAD_MULTIPLE: exit status $?"
done
echo "neighbours' blocks arrived"
