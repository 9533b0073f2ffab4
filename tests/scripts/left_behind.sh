#!/usr/bin/env bash
# A process that cannot be started ends the job with a sentence. A signal ends a job whose ranks have ended and left
# children behind, which hold their outputs.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

compile leaves <<'C'
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    const pid_t rank = getpid();
    if (fork() == 0) {
        while (getppid() == rank) /* until it has ended */
            usleep(1000);
        fclose(fopen(argv[1], "w"));
        for (;;)
            pause();
    }
    return 0;
}
C

for signal in TERM INT; do
    rm -f "$work/left"
    timeout -k 5 "$patience" bash -c "echo \$\$ >'$work/pid'; exec '$stage/bin/mpiexec' -n 1 '$work/leaves' '$work/left'" \
        >"$work/out" 2>&1 &
    job=$!
    until [[ -e $work/left ]]; do
        kill -0 $job 2>/dev/null || fail "the job has ended before its time"
        sleep 0.02
    done
    code=0
    kill "-$signal" "$(cat "$work/pid")"
    wait $job || code=$?
    ((code != 124 && code != 137)) || fail "SIG$signal: it did not end: $(cat "$work/out")"
    ! pgrep -f "$work/leaves" >/dev/null || fail "SIG$signal: a child is left"
    echo "ok   SIG$signal ends children that ranks have left behind"
done

# A user of its own, who may have few processes. Whoever is not root has others, which count too.
as_nobody() { setpriv --reuid=65437 --regid=65437 --clear-groups -- "$@"; }
if [[ $(id -u) == 0 ]] && as_nobody test -x "$stage/bin/mpiexec" 2>"$work/out"; then
    for few in 3 4; do
        code=0
        (cd / && as_nobody bash -c "ulimit -u $few; exec timeout -k 5 $patience '$stage/bin/mpiexec' -n 3 /bin/sleep 1") \
            >"$work/out" 2>&1 || code=$?
        ((code != 0 && code != 124 && code != 137)) || fail "$few processes: exit status $code: $(cat "$work/out")"
        grep -q 'cannot start .*: Resource temporarily unavailable; ulimit -u' "$work/out" ||
            fail "$few processes: no sentence: $(cat "$work/out")"
        echo "ok   $few processes are too few"
    done
fi
echo "jobs that cannot begin or end by themselves end"
