#!/usr/bin/env bash
# The hop counts of docs/walks.md: gdb counts on the path of an MPI message of 8 bytes what the page says. There is no
# lock and no system call. Out there are at most two functions below CH3, back at most five, and the page names them.
# There are at most a tenth more instructions than on the page, for the compiler.
set -uo pipefail
: "${ULFM_STAGE:?}" "${ULFM_SOURCE:?}"
type gdb >/dev/null 2>&1 || { echo 'skipped: no gdb' && exit 77; }
[[ $(uname -m) == x86_64 ]] || { echo 'skipped: the count reads x86-64 instructions' && exit 77; }
! gdb -q -batch -ex run --args /bin/true 2>&1 | grep -q ptrace || { echo 'skipped: gdb may not trace here' && exit 77; }
counted=$(timeout 300 "$ULFM_SOURCE/tests/walks/count") || { echo "FAIL count: $counted" && exit 1; }
printf '%s\n' "$counted"
python3 - "$ULFM_SOURCE/docs/walks.md" "$counted" <<'PYTHON'
import re
import sys

page = open(sys.argv[1], encoding="utf-8").read()
failures = 0


def check(good, what):
    global failures
    failures += not good
    print("ok  " if good else "FAIL", what)


for call, most in (("MPI_Send", 2), ("MPI_Recv", 5)):
    found = re.search(rf"^P{call}: (\d+) instructions, (\d+) locked, (\d+) system calls\n((?: .*\n?)*)",
                      sys.argv[2], re.M)
    row = re.search(rf"^\| `{call}` \| ([\d,]+) \| (.*) \| (\d+) \| (\d+) \|$", page, re.M)
    check(found is not None and row is not None, f"{call} is counted, and on the page")
    if not found or not row:
        continue
    instructions, promised = int(found[1]), int(row[1].replace(",", ""))
    check(instructions <= 1.1 * promised, f"{call}: {instructions} instructions, {promised} on the page")
    check(found[2] == row[3] == "0" and found[3] == row[4] == "0", f"{call}: no lock and no system call")
    hops = [name.split("::")[-1] for name in re.findall(r"ulfm::\S+", found[4])]
    check(len(hops) <= most, f"{call}: calls {', '.join(hops)}, of at most {most}")
    check(all(f"{hop}`" in row[2] or hop in page for hop in hops), f"{call}: the page names each of them")
sys.exit(failures != 0)
PYTHON
