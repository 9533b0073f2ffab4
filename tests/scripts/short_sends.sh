#!/usr/bin/env bash
# Nonblocking sends of short messages, which may go past CH3's packets (ulfm_compact.c): a cancelled one is received or
# cancelled, not both and not neither, and a communicator's limit of eager messages holds.
set -euo pipefail
# shellcheck source=mpi_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

compile cancelled <<'C'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
/* Rank 0 sends messages and cancels every third, most of them when they are at rank 1 already. Prints how many. */
enum { ROUNDS = 300, MOST = 4096 };
static const int lengths[] = {0, 8, 32, 64, 65, 500, 2048, 2049, MOST};
int main(int argc, char** argv) {
  char data[MOST], got[MOST];
  int rank, cancelled = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < ROUNDS; i++) {
    const int n = lengths[i % 9];
    int gone = 0;
    memset(data, i, sizeof data);
    if (rank == 0) {
      MPI_Request request;
      MPI_Status status;
      MPI_Isend(data, n, MPI_CHAR, 1, i, MPI_COMM_WORLD, &request);
      if (i % 3 == 0) MPI_Cancel(&request);
      MPI_Wait(&request, &status);
      if (i % 3 == 0) MPI_Test_cancelled(&status, &gone);
      MPI_Send(&gone, 1, MPI_INT, 1, ROUNDS, MPI_COMM_WORLD);
      cancelled += gone;
    } else if (rank == 1) {
      MPI_Status status;
      int there, count;
      MPI_Recv(&gone, 1, MPI_INT, 0, ROUNDS, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Iprobe(0, i, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
      if (there == gone) {
        printf("message %d: cancelled %d, there %d\n", i, gone, there);
        MPI_Abort(MPI_COMM_WORLD, 3);
      }
      if (!there) continue;
      MPI_Recv(got, MOST, MPI_CHAR, 0, i, MPI_COMM_WORLD, &status);
      MPI_Get_count(&status, MPI_CHAR, &count);
      if (count != n || memcmp(got, data, (size_t)n) != 0) MPI_Abort(MPI_COMM_WORLD, 4);
    }
  }
  if (rank == 0) printf("cancelled: %d of %d\n", cancelled, ROUNDS / 3);
  MPI_Finalize();
  return 0;
}
C

compile limited <<'C'
#include <mpi.h>
#include <stdio.h>
/* A message above the limit of a communicator, header included, waits for its receive; one below it goes at once. */
int main(int argc, char** argv) {
  char data[2000] = {0};
  int rank, done, went = 0, waited = 0;
  MPI_Comm limited;
  MPI_Info info;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Info_create(&info);
  MPI_Info_set(info, "eager_rendezvous_threshold", "200");
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &limited);
  MPI_Info_free(&info);
  for (int i = 0; i < 50; i++) {
    if (rank == 0) {
      MPI_Request request;
      const int n = i % 2 ? 2000 : 100;
      MPI_Isend(data, n, MPI_CHAR, 1, i, limited, &request);
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      went += done && n == 100;
      waited += !done && n == 2000;
      MPI_Send(data, 1, MPI_CHAR, 1, 99, MPI_COMM_WORLD);
      if (!done) MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
      MPI_Recv(data, 1, MPI_CHAR, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Recv(data, 2000, MPI_CHAR, 0, i, limited, MPI_STATUS_IGNORE);
    }
  }
  if (rank == 0) printf("limited: %d went, %d waited\n", went, waited);
  MPI_Comm_free(&limited);
  MPI_Finalize();
  return 0;
}
C

for over in direct "xswitch --topology th8" tcp; do
    # shellcheck disable=SC2086 # options are words
    timeout "$patience" "$stage/bin/ulfmrun" --transport $over -n 2 "$work/cancelled" >"$work/out" 2>&1 ||
        fail "cancelled sends over $over: exit status $?"
    grep -qx 'cancelled: [0-9]* of 100' "$work/out" || fail "cancelled sends over $over: no result"
    echo "ok   $(<"$work/out") over $over"
    # shellcheck disable=SC2086
    timeout "$patience" "$stage/bin/ulfmrun" --transport $over -n 2 "$work/limited" >"$work/out" 2>&1 ||
        fail "a limit of eager messages over $over: exit status $?"
    grep -qx 'limited: [1-9][0-9]* went, 25 waited' "$work/out" || fail "a limit of eager messages over $over"
    echo "ok   $(<"$work/out") over $over"
done
