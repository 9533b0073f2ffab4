#!/usr/bin/env bash
# kill -9 of a rank, or of the launcher, in the middle of an MPI program: the job ends, names the rank, and leaves no
# process, no shared memory file and no temporary file.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

# A name nobody else's program has (the kernel keeps 15 characters).
name=uk$(printf '%05d%05d' "$((BASHPID % 100000))" "$((RANDOM % 100000))")
compile "$name" <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, value = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double in = rank, out;
    MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    /* Everybody is connected now: say who is who. */
    char file[4096];
    snprintf(file, sizeof file, "%s/pid.%d", argv[1], rank);
    FILE *f = fopen(file, "w");
    fprintf(f, "%d\n", (int)getpid());
    fclose(f);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        snprintf(file, sizeof file, "%s/ready", argv[1]);
        fclose(fopen(file, "w"));
    }
    if (strcmp(argv[2], "allreduce") == 0)
        for (;;) MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 4711, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* which nobody sends */
    MPI_Finalize();
    return 0;
}
C

# until_true SECONDS COMMAND...: asks again and again.
until_true() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < end)) || return 1
        sleep 0.1
    done
}
nobody_left() { ! pgrep -x "$name" >/dev/null; }
all_ready() { [[ -e $work/run/ready ]] || ! kill -0 "$launcher" 2>/dev/null; }

# round WHAT VICTIM LAUNCHER...
round() {
    local what=$1 victim=$2 status=0
    shift 2
    rm -rf "$work/run" "$work/tmp"
    mkdir "$work/run" "$work/tmp"
    ls -A /dev/shm >"$work/shm.before"
    TMPDIR=$work/tmp "$@" -n 4 "$work/$name" "$work/run" "$what" >"$work/out" 2>&1 &
    launcher=$!
    if ! until_true "$patience" all_ready || [[ ! -e $work/run/ready ]]; then
        kill -9 "$launcher" 2>/dev/null || true
        fail "$what: the job did not start"
    fi
    if [[ $victim == launcher ]]; then
        kill -9 "$launcher"
    else
        kill -9 "$(<"$work/run/pid.$victim")"
    fi
    # An end by itself, not by our patience.
    if ! until_true "$patience" nobody_left; then
        pkill -9 -x "$name" || true
        kill -9 "$launcher" 2>/dev/null || true
        fail "$what, $victim killed: processes are left"
    fi
    if ! timeout "$patience" tail --pid="$launcher" -f /dev/null; then
        kill -9 "$launcher"
        fail "$what, $victim killed: $1 does not end"
    fi
    wait "$launcher" || status=$?
    ((status != 0)) || fail "$what, $victim killed: $1 says that all went well"
    if [[ $victim != launcher ]]; then
        grep -qiE "(rank|proc(ess)?|pid|node)[^0-9]{0,12}$victim\b|\b$(<"$work/run/pid.$victim")\b" "$work/out" ||
            fail "$what: the output does not name rank $victim"
    fi
    # Other programs come and go; only new names that look like ours or like the launcher's count.
    ls -A /dev/shm >"$work/shm.after"
    if comm -13 "$work/shm.before" "$work/shm.after" | grep -iE 'ulfm|mpi|hydra'; then
        fail "$what, $victim killed: the above is left in /dev/shm"
    fi
    left=$(find "$work/tmp" -mindepth 1)
    [[ -z $left ]] || fail "$what, $victim killed: left $left"
}

launchers=("$mpiexec")
[[ ! -x $stage/bin/ulfmrun ]] || launchers+=("$stage/bin/ulfmrun")
for run in "${launchers[@]}"; do
    for what in allreduce recv; do
        for victim in 0 3 launcher; do
            round "$what" "$victim" "$run"
        done
    done
done
echo "killed ranks and launchers leave nothing behind"
