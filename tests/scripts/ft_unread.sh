#!/usr/bin/env bash
# With --ft: what ranks that die have not read takes all slots of a sender, which needs them for those who live.
set -euo pipefail
# shellcheck source=mpi_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

compile unread <<'C'
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
/* Ranks from 2 on make no calls while rank 1 sends to them, until it has no room at all, and die then: unread FILE */
enum { MESSAGES = 600 };
static MPI_Request requests[MESSAGES];
static char data[256];

int main(int argc, char** argv) {
  int rank, size, flag = 1, left, got = 0, done = 0;
  MPI_Comm comm, rest;
  const int file = open(argv[1], O_RDWR);
  atomic_int* sent = mmap(NULL, sizeof *sent, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  MPI_Init(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < size; ++i) MPI_Sendrecv(&rank, 1, MPI_INT, i, 0, &got, 1, MPI_INT, i, 0, comm, MPI_STATUS_IGNORE);
  MPI_Barrier(comm);
  if (rank >= 2) {
    while (!atomic_load(sent)) sched_yield();
    kill(getpid(), SIGKILL);
  }
  if (rank == 1) {
    for (int i = 0; i < MESSAGES; ++i)
      MPI_Isend(data, sizeof data, MPI_BYTE, 2 + i % (size - 2), 1, comm, &requests[i]);
    for (int i = 0; i < 3000; ++i) MPI_Test(&requests[MESSAGES - 1], &done, MPI_STATUS_IGNORE);
    atomic_store(sent, 1);
    for (int i = 0; i < MESSAGES; ++i) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
  }
  MPIX_Comm_revoke(comm);
  MPIX_Comm_agree(comm, &flag);
  MPIX_Comm_shrink(comm, &rest);
  MPI_Comm_set_errhandler(rest, MPI_ERRORS_RETURN);
  MPI_Comm_size(rest, &left);
  for (int i = 0; i < MESSAGES; ++i) {
    if (rank == 1) MPI_Send(data, sizeof data, MPI_BYTE, 0, 2, rest);
    if (rank == 0) got = MPI_Recv(data, sizeof data, MPI_BYTE, 1, 2, rest, MPI_STATUS_IGNORE);
  }
  if (rank == 0) printf(left == 2 && got == MPI_SUCCESS ? "went on\n" : "%d left, %d\n", left, got);
  fflush(stdout);
  MPI_Comm_free(&rest);
  MPI_Comm_free(&comm);
  return MPI_Finalize();
}
C

for options in 'xswitch --topology th8' 'dcm --topology cube:3' 'pcie --topology boards:2x3' pointdesign ideal direct tcp; do
    printf '\0\0\0\0' >"$work/sent"
    # shellcheck disable=SC2086
    survives 'went on' --transport $options -n 6 "$work/unread" "$work/sent"
    echo "ok   $options"
done
