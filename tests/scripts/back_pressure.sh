#!/usr/bin/env bash
# Back-pressure: a process that does not read stops the links that lead to it, upstream too; a cube withholds RDY. Others go
# on, everything arrives once it reads, ulfm_stat shows it meanwhile, and in virtual time it repeats to the byte.
set -uo pipefail
# shellcheck source=fabric_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/fabric_common.bash"
trap 'kill "${job:-}" 2>/dev/null; rm -rf "$scratch"' EXIT

# Rank 0 reads nothing until there is a file of that name, or for so many milliseconds. The last two ranks talk meanwhile,
# and tell rank 0 last.
cat >sleeper.c <<'END_C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { each = 60, bytes = 4000 };
static char data[each][bytes];
static void wait_for(const char *what) {
  if (strspn(what, "0123456789") == strlen(what)) usleep((useconds_t)atoi(what) * 1000);
  else while (access(what, F_OK) != 0) usleep(2000);
}
static long read_all(int senders) {
  long wrong = 0;
  static int seen[64];
  for (int i = 0; i < senders * each; i++) {
    MPI_Status status;
    MPI_Recv(data[0], bytes, MPI_CHAR, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status);
    const int n = seen[status.MPI_SOURCE]++;
    for (int b = 0; b < bytes; b++) wrong += data[0][b] != (char)(status.MPI_SOURCE + n);
  }
  return wrong;
}
static void send_all(int rank) {
  MPI_Request all[each];
  for (int i = 0; i < each; i++) {
    memset(data[i], rank + i, bytes);
    MPI_Isend(data[i], bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &all[i]);
  }
  for (int i = 0; i < each; i++) MPI_Wait(&all[i], MPI_STATUS_IGNORE);
}
/* Everybody begins when nothing is on its way any more: a message of MPI_Barrier that is stopped on its way up would hold
 * back what its sender sends next, also to a neighbour. */
static void begin(int rank, int size) {
  if (rank != 0) {
    MPI_Send(NULL, 0, MPI_INT, 0, 2, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  for (int i = 1; rank == 0 && i < size; i++) MPI_Recv(NULL, 0, MPI_INT, i, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 1; rank == 0 && i < size; i++) MPI_Send(NULL, 0, MPI_INT, i, 2, MPI_COMM_WORLD);
}
int main(int argc, char **argv) {
  int rank, size, ball = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Barrier(MPI_COMM_WORLD);
  begin(rank, size);
  if (rank == 0) {
    wait_for(argv[1]);
    const long wrong = read_all(size - 3);
    if (argc == 3) printf("%s %s\n", wrong == 0 ? "delivered" : "wrong", argv[2]);
  } else if (rank < size - 2) {
    send_all(rank);
  } else {
    const int other = rank == size - 1 ? size - 2 : size - 1;
    for (int i = 0; i < 100; i++)
      MPI_Sendrecv_replace(&ball, 1, MPI_INT, other, 0, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == size - 1) {
      FILE *others = fopen("others", "w");
      if (others != NULL) fclose(others);
    }
  }
  return MPI_Finalize();
}
END_C
"$stage/bin/mpicc" -O1 sleeper.c -o sleeper || exit 1

# live NAME PATTERN OPTIONS...: while rank 0 does not read, ulfm_stat shows what matches, and the two others end.
live() {
    local name=$1 pattern=$2 shown=0 code=0
    shift 2
    rm -f go others
    ULFM_STATS=1 "$run" "$@" ./sleeper go all </dev/null >out 2>err &
    job=$!
    for ((turn = 0; turn < 3000 && shown == 0; turn++)); do
        kill -0 $job 2>/dev/null || break
        "$stage/bin/ulfm_stat" $job --lines >stat 2>/dev/null && grep -qE "$pattern" stat && [[ -e others ]] && shown=1
        sleep 0.02
    done
    touch go
    wait $job || code=$?
    if ((code != 0)); then
        fail "$name" "exit code $code"
    elif ((shown == 0)); then
        fail "$name" "ulfm_stat showed no '$pattern', or the others did not go on: $(cat stat)"
    elif ! grep -q 'delivered all' out; then
        fail "$name" "not everything was delivered"
    elif ! grep -qE "$pattern" err; then
        fail "$name" "statistics without '$pattern'"
    else
        echo "ok   $name"
    fi
}

# timed NAME PATTERN OPTIONS...: the same in virtual time, where rank 0 sleeps for a tenth of a second.
timed() {
    local name=$1 pattern=$2 first='' sum
    shift 2
    for _ in 1 2 3; do
        ULFM_STATS=1 over "$name" 'delivered all' --time virtual,compute=none --times times.json "$@" ./sleeper 100 all
        grep -qE "$pattern" err || fail "$name" "statistics without '$pattern'"
        sum=$(sed 's/"host_s":[0-9.]*,//' times.json | cksum)
        [[ -z $first || $sum == "$first" ]] || fail "$name" "two runs differ"
        first=$sum
    done
}

# n0 is on s0; what is for it comes by s0.B, whose input stops s1, and so on.
chain='xswitch port s0\.B: .* stops [1-9]'
live 'a chain of switches' "$chain" --transport xswitch --topology chain:3 -n 7
live 'a chain, up to the last switch' 'xswitch port s1\.B: .* stops [1-9]' --transport xswitch --topology chain:3 -n 10
# A poll of rank 0 before it sleeps may admit as much again, and the sender's card has 32 frames for it at most.
live 'one sender' 'xswitch node 0: .* stops [1-9]' --transport xswitch,unread=16K --topology chain:2 -n 4
ULFM_ENGINE=process live 'the engine as a process' 'xswitch node 0: .* stops [1-9]' --transport xswitch -n 6
live 'a cube' 'dcm router [0-9]* channel [0-9]: .* throttles [1-9]' --transport dcm --topology cube:3 -n 8
timed 'a chain in virtual time' "$chain" --transport xswitch --topology chain:3 -n 7
timed 'a cube in virtual time' 'throttles [1-9]' --transport dcm --topology cube:3 -n 8
over 'no limit' 'delivered all' -genv ULFM_STATS 1 --transport xswitch,unread=0 --time virtual,compute=none -n 8 ./sleeper 100 all
grep -q 'stops [1-9]' err && grep -q 'stats xswitch th8.*held' err && fail 'no limit' 'a node was held'
refused 'a limit that is none' 'needs a number' --transport xswitch,unread=x -n 2 ./sleeper 1 all
exit $((failures != 0))
