#!/usr/bin/env bash
# What MPICH 4.0.2 does wrong where few programs go, and is mended here (patches 99s to 99x).
set -euo pipefail
# shellcheck source=mpi_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

compile between_groups <<'C'
#include <mpi.h>
#include <stdio.h>
/* MPI_Ibcast between two groups, from each rank of the first. */
int main(int argc, char** argv) {
  int rank, size, n;
  MPI_Comm group, both;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int second = rank >= size - 2;
  MPI_Comm_split(MPI_COMM_WORLD, second, rank, &group);
  MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, second ? 0 : size - 2, 1, &both);
  MPI_Comm_size(group, &n);
  for (int root = 0; root < size - 2; ++root) {
    int value = rank == root ? 40 + root : -1;
    MPI_Request request;
    MPI_Ibcast(&value, 1, MPI_INT, second ? root : rank == root ? MPI_ROOT : MPI_PROC_NULL, both, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (second && value != 40 + root) return fprintf(stderr, "rank %d got %d from %d\n", rank, value, root), 3;
  }
  return MPI_Finalize();
}
C

compile again <<'C'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
/* "tools": MPI_T three times, then MPI_Init. "session" and "own": a session, whose errors go to its error handler. */
static int calls;
static void handler(MPI_Session* session, int* code, ...) { calls += session && code; }

static int session(int own) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  MPI_Errhandler errors;
  int one = 1, sum = 0, size;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
  if (own) {
    MPI_Session_create_errhandler(handler, &errors);
    MPI_Session_set_errhandler(session, errors);
    MPI_Errhandler_free(&errors);
  }
  if (MPI_Group_from_session_pset(session, "mpi://nobody", &group) == MPI_SUCCESS) return 1;
  if (MPI_Group_from_session_pset(session, "mpi://WORLD", &group) != MPI_SUCCESS) return 2;
  MPI_Comm_create_from_group(group, "again", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
  MPI_Comm_size(comm, &size);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  MPI_Group_free(&group);
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
  return sum == size ? 0 : 3;
}

int main(int argc, char** argv) {
  int provided, number, wrong = argc < 2;
  if (strcmp(argv[1], "tools") == 0)
    for (int i = 0; i < 3; ++i) {
      MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
      if (MPI_T_cvar_get_num(&number) != MPI_SUCCESS || number < 1) wrong = 1;
      MPI_T_finalize();
    }
  if (strcmp(argv[1], "tools") == 0) {
    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
  }
  if (strcmp(argv[1], "session") == 0) wrong |= session(0);
  if (strcmp(argv[1], "own") == 0) {
    wrong |= session(1);
    if (calls != 1) wrong = 4;
  }
  printf(wrong ? "wrong: %d\n" : "right\n", wrong);
  return wrong;
}
C

compile revoked <<'C'
#include <mpi.h>
#include <stdio.h>
/* Local calls on a revoked communicator. */
int main(int argc, char** argv) {
  int rank, inter = -1, sources[2], targets[2], weights[2];
  MPI_Comm graph;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &rank, MPI_UNWEIGHTED, 1, &rank, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
  MPI_Comm_set_errhandler(graph, MPI_ERRORS_RETURN);
  MPIX_Comm_revoke(graph);
  const int wrong = MPI_Comm_test_inter(graph, &inter) != MPI_SUCCESS || inter != 0 ||
                    MPI_Comm_set_name(graph, "revoked") != MPI_SUCCESS ||
                    MPI_Dist_graph_neighbors(graph, 1, sources, weights, 1, targets, weights) != MPI_SUCCESS ||
                    sources[0] != rank;
  MPI_Comm_free(&graph);
  MPI_Finalize();
  if (wrong) printf("wrong\n");
  return wrong;
}
C

for ranks in 4 5; do
    timeout "$patience" "$mpiexec" -n $ranks "$work/between_groups" >"$work/out" 2>&1 || fail "MPI_Ibcast between groups, $ranks ranks"
done
for what in tools session own; do
    for ranks in 1 2; do
        timeout "$patience" "$mpiexec" -n $ranks "$work/again" $what >"$work/out" 2>&1 || fail "$what, $ranks ranks: exit status $?"
    done
done
timeout "$patience" "$stage/bin/ulfmrun" --ft -n 2 "$work/revoked" >"$work/out" 2>&1 || fail "local calls on a revoked communicator"
echo "ok"
