#!/usr/bin/env bash
# A signal to mpiexec or ulfmrun ends the job, with the status 128 and the signal; with --ft also ranks that are stopped.
set -euo pipefail
# shellcheck source=mpi_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

compile waits <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* waits FILE [stops|ends]: rank 1 writes its number and is stopped; or all end well by themselves at SIGTERM. */
static void end(int signal) {
  (void)signal;
  _exit(0);
}
int main(int argc, char** argv) {
  int rank;
  FILE* said;
  if (argc > 2 && strcmp(argv[2], "ends") == 0) signal(SIGTERM, end);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) {
    said = fopen(argv[1], "w");
    fprintf(said, "%d\n", (int)getpid());
    fclose(said);
    if (argc > 2 && strcmp(argv[2], "stops") == 0) raise(SIGSTOP);
  }
  for (;;) pause();
}
C

state_of() { sed 's/.*) \(.\).*/\1/' "/proc/$1/stat" 2>/dev/null || echo gone; }

# await WHAT CONDITION...
await() {
    local what=$1 left=$((patience * 10))
    shift
    until "$@"; do
        ((left-- > 0)) || fail "$what"
        sleep 0.1
    done
}
is_stopped() { [[ -s $work/said && $(state_of "$(cat "$work/said")") == T ]]; }
has_begun() { [[ -s $work/said ]]; }
has_ended() { [[ $(state_of "$1") == [Zg]* ]]; }

# ends SIGNAL STATUS HOW COMMAND...: the job of 3 gets the signal when it has begun, or when a rank is stopped.
ends() {
    local signal=$1 want=$2 how=$3 status=0 job rank
    shift 3
    : >"$work/said"
    timeout -s KILL "$patience" "$@" -n 3 "$work/waits" "$work/said" "$how" >"$work/out" 2>&1 &
    job=$!
    await "$*: no rank has begun" "$([[ $how == stops ]] && echo is_stopped || echo has_begun)"
    rank=$(cat "$work/said")
    kill -"$signal" "$(pgrep -P "$job" -o)"
    wait "$job" 2>"$work/how" || status=$?
    ((status == want)) || fail "SIG$signal, $how, $*: exit status $status"
    await "SIG$signal, $how, $*: rank 1 is still there" has_ended "$rank"
}

for how in waits stops; do
    for over in direct tcp 'xswitch --topology th8'; do
        # shellcheck disable=SC2086
        for signal in TERM INT QUIT; do
            ends $signal $((128 + $(kill -l $signal))) $how "$stage/bin/ulfmrun" --ft --transport $over
        done
        echo "ok   $how $over"
    done
    # It ends mpiexec itself, and its proxy ends the ranks when it sees that.
    ends HUP $((128 + 1)) $how "$stage/bin/ulfmrun" --ft
done
ends TERM $((128 + 15)) waits "$mpiexec"
ends INT $((128 + 2)) waits "$mpiexec"
# Whoever ignores it is killed when the user insists, or when the time is up.
compile stays <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int rank;
  FILE* said;
  signal(SIGINT, SIG_IGN);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0 && argc > 1) {
    said = fopen(argv[1], "w");
    fprintf(said, "%d\n", (int)getpid());
    fclose(said);
  }
  for (;;) pause();
}
C
: >"$work/said"
status=0
timeout -s KILL "$patience" "$mpiexec" -n 2 "$work/stays" "$work/said" >"$work/out" 2>&1 &
job=$!
await "no rank has begun" has_begun
kill -INT "$(pgrep -P "$job" -o)"
await "the first Ctrl-C is not told" grep -q 'Press Ctrl-C again' "$work/out"
kill -INT "$(pgrep -P "$job" -o)"
wait "$job" || status=$?
((status == 128 + 2)) || fail "Ctrl-C twice: exit status $status"
for i in 1 2 3 4 5; do
    status=0
    MPIEXEC_TIMEOUT=1 timeout -s KILL "$patience" "$mpiexec" -n 2 "$work/stays" >"$work/out" 2>&1 || status=$?
    ((status == 255)) || fail "MPIEXEC_TIMEOUT, time $i: exit status $status"
done
echo "ok   ranks that stay"
# Ranks that take the signal themselves and end with 0 have ended well.
ends TERM 0 ends "$mpiexec"
echo "ok   mpiexec"
