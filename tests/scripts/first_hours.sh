#!/usr/bin/env bash
# What new users met and no other test has: sizes with units, second lines with their prefix, warnings about figures that
# cannot be trusted, a bar on a terminal, old declarations of NX calls, a page for each call by its name.
set -uo pipefail
# shellcheck source=mpi_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
cd "$work" || exit 1
source=${ULFM_SOURCE:?source folder}
unset "${!ULFM_@}"
export PATH=$stage/bin:$PATH
ok() { echo "ok   $*"; }

compile hello <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int one = 1, sum = 0;
    MPI_Init(&argc, &argv);
    for (int i = 0; i < (argc > 1 ? 1000000000 : 1); i++) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("sum %d\n", sum);
    MPI_Finalize();
    return 0;
}
C

# Sizes of options have units, as those of settings have.
timeout "$patience" ulfmrun --transport xswitch,frame=1K -n 2 ./hello >out 2>&1 || fail "frame=1K is refused"
timeout "$patience" ulfmrun --transport xswitch,frame=1024 -n 2 ./hello >out 2>&1 || fail "frame=1024 is refused"
ok "sizes with units"

# Every line of a sentence about a peer that is given up says who speaks.
ULFM_GIVE_UP=500 timeout "$patience" ulfmrun --fault drop=1,seed=1 -n 2 ./hello >out 2>&1 && fail "a job without a network ends well"
grep -q 'is given up' out || fail "nobody is given up"
if grep -vE '^(ulfm|ulfmrun|mpiexec): |^$' out | grep -vE '^(Fatal error|internal_|MPI|application called|  *[a-z])' | grep -E 'is given up|acknowledged|frames with' >lines; then
    fail "a line about a peer that is given up has no prefix: $(head -n 1 lines)"
fi
ok "lines about a given-up peer"

# Figures that cannot be trusted.
timeout "$patience" ulfm_perf latency --bind 0,0 --size 8 --iterations 100 >out 2>err || fail "ulfm_perf --bind 0,0 does not end"
grep -q 'both sides share one core.*do not trust the figures' err || fail "ulfm_perf --bind 0,0 does not warn"
busy=()
for ((i = 2 * $(nproc); i > 0; i--)); do
    (while :; do :; done) &
    busy+=($!)
done
timeout "$patience" ulfm_perf logp --transport direct --iterations 2000 >out 2>err
status=$?
kill "${busy[@]}"
wait "${busy[@]}" 2>/dev/null
((status == 0)) || fail "ulfm_perf beside busy processes: status $status"
grep -q 'do not trust the figures' err || fail "ulfm_perf beside busy processes on each core does not warn"
ok "warnings about figures"

# Long work shows on a terminal that it goes on, and nothing of it in a file.
cat >terminal.py <<'PYTHON'
import os
import pty
import subprocess
import sys

mine, its = pty.openpty()
tool = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=its, stdin=subprocess.DEVNULL)
os.close(its)
seen = b""
while True:
    try:
        piece = os.read(mine, 4096)
    except OSError:
        break
    if not piece:
        break
    seen += piece
sys.stdout.write(seen.decode(errors="replace"))
sys.exit(tool.wait())
PYTHON
long=(ulfm_perf latency --transport "dcm,pace=ipsc2" --size 1K:64K --limit 6)
timeout "$patience" python3 terminal.py "${long[@]}" >out || fail "ulfm_perf on a terminal"
grep -q $'\r' out || fail "ulfm_perf shows nothing on a terminal during seconds of work"
timeout "$patience" "${long[@]}" >/dev/null 2>err || fail "ulfm_perf without a terminal"
if grep -q $'\r' err; then fail "ulfm_perf writes its bar into a file"; fi
ok "progress on a terminal"

# A program that declares calls as the headers of its time did.
printf '#include <nx.h>\nextern int mynode(), numnodes();\nint main(void) { return mynode() + numnodes() < 0; }\n' >declares.c
if nxcc -std=gnu89 declares.c -o declares >out 2>&1; then fail "int mynode() and long mynode() agree"; fi
grep -q 'declared as int by the program? -DNX_LONG_IS_INT' out || fail "the compiler's message does not lead to -DNX_LONG_IS_INT"
nxcc -std=gnu89 -DNX_LONG_IS_INT declares.c -o declares >out 2>&1 || fail "-DNX_LONG_IS_INT does not help"
timeout "$patience" ulfmrun -n 2 ./declares >out 2>&1 || fail "a program with int mynode() does not run"
ok "old declarations"

# man csend. Fortran has the same names.
python3 - "$source/nx2compat/calls.table" "$stage/share/man/man3" <<'PYTHON' || fail "calls without a page"
import os
import sys

calls = [line.split()[1] for line in open(sys.argv[1], encoding="utf-8") if line.strip() and line[0] != "#"]
missing = [call for call in calls if not os.path.exists(f"{sys.argv[2]}/{call}.3")]
assert len(calls) > 80, len(calls)
if missing:
    sys.exit(f"no page: {missing}")
PYTHON
ok "a page by the name of each call"
