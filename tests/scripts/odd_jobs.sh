#!/usr/bin/env bash
# Programs and jobs that do what is unusual (odd_jobs.c): a rank that starts a job which spawns, ranks that spawn at once,
# long arguments, a closed output that is printed to, a root without /proc; and what mpiexec leaves to who has started it.
set -euo pipefail
# shellcheck source=mpi_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
compile odd_jobs <"$(dirname "${BASH_SOURCE[0]}")/odd_jobs.c"
ulfmrun=$stage/bin/ulfmrun
cd "$work"

# right HOW COMMAND...: it ends well and finds nothing wrong.
right() {
    local how=$1 status=0
    shift
    timeout -s KILL "$patience" "$@" </dev/null >"$work/out" 2>&1 || status=$?
    ((status == 0)) || fail "$*: exit status $status"
    grep -qx "$how: wrong 0" "$work/out" || fail "$*: no line '$how: wrong 0'"
    echo "ok   ${*##*/}"
}
right nest "$ulfmrun" -n 1 "$ulfmrun" -n 1 ./odd_jobs nest
right nest "$mpiexec" -n 1 sh -c "$mpiexec -n 2 ./odd_jobs nest"
for turn in 1 2 3; do right many "$ulfmrun" -n 2 ./odd_jobs many; done
for transport in direct tcp mux xswitch; do right printed "$ulfmrun" --transport "$transport" -n 3 ./odd_jobs printed; done

# Without /proc the others' memory is not found.
if ((EUID == 0)); then
    mkdir root
    for ranks in 2 4; do
        status=0
        timeout -s KILL "$patience" "$ulfmrun" -n "$ranks" ./odd_jobs chroot "$work/root" </dev/null >out 2>&1 || status=$?
        if ((status == 137 || status == 0)) || ! grep -q 'there is no /proc here' out; then
            fail "chroot, $ranks ranks: exit status $status"
        fi
        echo "ok   chroot, $ranks ranks"
    done
    right chroot env ULFM_CONTROL=unix "$ulfmrun" -n 4 ./odd_jobs chroot "$work/root"
fi

# Files of outputs are the job's alone.
echo 'a line that is longer than the next one' >out.0
"$mpiexec" -outfile-pattern 'out.%r' -n 1 echo new
[[ $(<out.0) == new ]] || fail "the file of an output has: $(<out.0)"
echo 'ok   an old file of an output'

# No rank holds a pipe of the launcher.
"$mpiexec" -n 1 sh -c 'ls -l /proc/self/fd' >out 2>&1
! grep -q ' [34] -> pipe:' out || fail "mpiexec's pipe"
[[ $("$mpiexec" -n 1 sh -c 'echo "x$HYDI_CONTROL_FD"') == x ]] || fail "the launcher's descriptor is told to ranks"
echo 'ok   what ranks inherit'

# Who was told to ignore a hangup, as under nohup, does so with a file of results, too.
(trap '' HUP && exec "$ulfmrun" --stats-file counters -n 1 sh -c 'echo there >begun; while [ ! -e go ]; do sleep 0.05; done; echo went on') >out 2>&1 &
job=$!
for _ in $(seq 600); do
    [[ -s begun ]] && break
    sleep 0.1
done
kill -HUP "$job"
for child in $(ps -o pid= --ppid "$job"); do kill -HUP "$child"; done
touch go
wait "$job" || fail "a job that ignores SIGHUP has ended of it"
grep -qx 'went on' out || fail "it did not go on"
echo 'ok   nohup with a file of results'

# Words of a launcher's arguments are there for what is spawned later, too.
cat >elsewhere_launcher <<'SH'
#!/bin/sh
echo "$*" >>launched
while [ "$1" != elsewhere ]; do shift; done
shift
exec sh -c "$*"
SH
chmod +x elsewhere_launcher
HYDRA_LAUNCHER_EXTRA_ARGS='-p 2222' right nest "$mpiexec" -genv MPIR_CVAR_NEMESIS_NETMOD ulfm -launcher-exec "$work/elsewhere_launcher" \
    -hosts elsewhere -n 1 "$work/odd_jobs" nest
[[ $(grep -c -e '-p 2222' launched) == 2 ]] || fail "launched as: $(<launched)"
echo 'ok   words for each launch'

# A file of command lines names hosts once.
printf -- '-n 1 -hosts elsewhere echo a\n-n 1 -hosts localhost echo b\n' >lines
status=0
"$mpiexec" -launcher-exec "$work/elsewhere_launcher" -configfile lines </dev/null >out 2>&1 || status=$?
((status != 0)) && grep -q 'duplicate host' out || fail "a file that names hosts twice: exit status $status"
echo 'ok   hosts are named once'
