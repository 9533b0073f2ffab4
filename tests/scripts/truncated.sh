#!/usr/bin/env bash
# A message that is longer than its receive is an error of that receive, however the data lie and whether the receive was
# posted before: the sender goes on, and so do the messages behind it.
set -euo pipefail
# shellcheck source=mpi_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

compile truncated <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* Rank 0 sends messages, each followed by one that fits; rank 1 has room for a part of each. */
enum { MOST = 300000, GUARD = 64 };
static const int lengths[] = {2, 64, 700, 5000, 70000, MOST};
static unsigned char sent[MOST], got[3 * MOST + GUARD];

static void wrong(const char* what, int length, int room, int number) {
  fprintf(stderr, "%s: %d bytes into room for %d: %d\n", what, length, room, number);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static void receive(MPI_Datatype type, int step, int length, int room, int posted) {
  int class, behind = 0, error, there = 0;
  MPI_Request request;
  memset(got, 255, sizeof got);
  if (!posted)
    while (!there) MPI_Iprobe(0, 2, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE); /* what is before it has come too */
  error = MPI_Irecv(got, room, type, 0, 1, MPI_COMM_WORLD, &request);
  if (posted) MPI_Send(NULL, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
  if (error != MPI_SUCCESS) wrong("the receive itself fails", length, room, error);
  error = MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Error_class(error, &class);
  if (class != (room < length ? MPI_ERR_TRUNCATE : MPI_SUCCESS)) wrong("error class", length, room, class);
  for (int i = 0; i < 3 * MOST + GUARD; ++i)
    if (got[i] != 255 && (i % step != 0 || i / step >= room || got[i] != sent[i / step])) wrong("byte", length, room, i);
  MPI_Recv(&behind, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (behind != length) wrong("the message behind it", length, room, behind);
}

int main(int argc, char** argv) {
  int rank;
  MPI_Datatype gaps;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Type_create_resized(MPI_CHAR, 0, 3, &gaps);
  MPI_Type_commit(&gaps);
  for (int i = 0; i < MOST; ++i) sent[i] = (unsigned char)(i % 251);
  for (size_t k = 0; k < sizeof lengths / sizeof *lengths; ++k)
    for (int typed = 0; typed < 2; ++typed)
      for (int posted = 0; posted < 2; ++posted)
        for (int part = 0; part < 4; ++part) {
          const int length = lengths[k], rooms[] = {0, length / 3, length - 1, length};
          if (rank == 1) {
            receive(typed ? gaps : MPI_CHAR, typed ? 3 : 1, length, rooms[part], posted);
          } else if (rank == 0) {
            MPI_Request request[2];
            if (posted) MPI_Recv(NULL, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Isend(sent, length, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &request[0]);
            MPI_Isend(&length, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &request[1]);
            for (int i = 0; i < 2; ++i) MPI_Wait(&request[i], MPI_STATUS_IGNORE);
          }
        }
  if (rank == 0) printf("all right\n");
  return MPI_Finalize();
}
C

for over in '--transport direct' '--transport xswitch --topology th8' '--transport tcp' '--transport ofi'; do
    status=0
    # shellcheck disable=SC2086
    timeout 60 "$stage/bin/ulfmrun" $over -n 2 "$work/truncated" >"$work/out" 2>&1 || status=$?
    grep -qx 'all right' "$work/out" || fail "$over: exit status $status"
    echo "ok   $over"
done
