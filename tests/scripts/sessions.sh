#!/usr/bin/env bash
# Sessions begin again after the last one has ended, also beside the world, in threads and in some of the processes only.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
"$mpicc" -O1 "$(dirname "${BASH_SOURCE[0]}")/sessions.c" -o "$work/sessions" -lpthread || fail "mpicc cannot compile sessions.c"

# right RANKS "WHAT [ARGUMENT]" OPTIONS...
right() {
    local words what=${2%% *}
    read -ra words <<<"$2"
    says_right "$what" "$2, $1 ranks, ${*:3}" -n "$1" "${@:3}" "$work/sessions" "${words[@]}"
    ! grep -v "^$what: right\$" "$work/out" || fail "$2, $1 ranks, ${*:3}: says more than it should"
}
for options in "--transport direct" "--transport tcp" "--transport xswitch" "--ft --transport tcp" "--ft --transport direct"; do
    read -ra over <<<"$options"
    right 3 "again 12" "${over[@]}"
    right 4 "some 8" "${over[@]}"
    rm -rf "$work/marks" && mkdir "$work/marks"
    right 2 "late $work/marks" "${over[@]}"
    right 2 world "${over[@]}"
    right 2 threads "${over[@]}"
    right 2 family "${over[@]}"
done
right 2 ended --transport direct
right 3 forked --transport direct
"$work/sessions" again 5 | grep -qx "again: right" || fail "a process without a launcher cannot begin again"
echo "ok   without a launcher"

status=0
timeout -k 5 "$patience" "$stage/bin/ulfmrun" -n 2 "$work/sessions" between >"$work/out" 2>&1 || status=$?
((status != 0 && status != 124 && status != 137)) || fail "a call between sessions: exit status $status"
grep -q "Comm_size) before initializing or after finalizing" "$work/out" || fail "a call between sessions: no sentence"
echo "ok   a call between sessions ends the job"
