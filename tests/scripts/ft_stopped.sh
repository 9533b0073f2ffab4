#!/usr/bin/env bash
# With --ft: a signal that ends the job ends ranks that are stopped, too.
set -euo pipefail
# shellcheck source=mpi_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

compile stopped <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int rank;
  FILE* said;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 1) {
    said = fopen(argv[1], "w");
    fprintf(said, "%d\n", (int)getpid());
    fclose(said);
    raise(SIGSTOP);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
C

is_stopped() { [[ -s $work/said && $(sed 's/.*) //' "/proc/$(cat "$work/said")/stat" 2>/dev/null) == T* ]]; }

# ends SIGNAL OPTION...
ends() {
    local signal=$1 status=0 job rank left=$((patience * 10))
    shift
    : >"$work/said"
    timeout -s KILL "$patience" "$stage/bin/ulfmrun" --ft "$@" -n 3 "$work/stopped" "$work/said" >"$work/out" 2>&1 &
    job=$!
    while ! is_stopped; do
        ((left-- > 0)) && kill -0 "$job" 2>/dev/null || fail "$*: no rank has stopped"
        sleep 0.1
    done
    rank=$(cat "$work/said")
    kill -"$signal" "$(pgrep -P "$job" -o)"
    wait "$job" || status=$?
    ((status != 137 && status != 0)) || fail "SIG$signal $*: exit status $status"
    # SIGHUP ends mpiexec itself; its proxy ends the ranks when it sees that.
    while kill -0 "$rank" 2>/dev/null; do
        ((left-- > 0)) || fail "SIG$signal $*: the stopped rank is still there"
        sleep 0.1
    done
}

for over in direct tcp 'xswitch --topology th8'; do
    for signal in TERM INT HUP QUIT; do
        # shellcheck disable=SC2086
        ends $signal --transport $over
    done
    echo "ok   $over"
done
