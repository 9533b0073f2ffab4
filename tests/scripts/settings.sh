#!/usr/bin/env bash
# One resolution of settings: each row, from each source, has the same value in ulfmrun, in its ranks and in the tools. A
# topology without an interconnect is said to have no effect, once, and does no harm.
set -uo pipefail
# shellcheck source=mpi_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
cd "$work" || exit 1
unset "${!ULFM_@}"
export PATH=$stage/bin:$PATH

cat >every_row.py <<'PYTHON'
import json
import os
import subprocess
import sys

OPTIONS = {"TRANSPORT": "--transport", "TOPOLOGY": "--topology", "SHARE": "--share", "FAULT": "--fault",
           "STATS_FILE": "--stats-file", "TRACE": "--trace"}
VALUES = {
    "TRANSPORT": "xswitch,frame=512", "TOPOLOGY": "mesh:2x2", "SHARE": "host", "ENGINE": "process", "FAULT": "drop=1e-3",
    "PROTOCOL": "always", "WINDOW": "32", "GIVE_UP": "20s", "CONTROL": "unix", "COLLECTIVES": "off", "ONE_COPY": "off",
    "INTERFACE": "lo", "PORTS": "42000-42500", "CONGESTION": "reno", "STATS": "1", "STATS_FILE": os.path.abspath("counters"),
    "STALL_REPORT": "30", "TRACE": os.path.abspath("trace.json"), "SLOT": "4K", "DEPTH": "16", "LANES": "8",
    "LANE_CELLS": "64", "LANE_BYTES": "64K", "LANE_AFTER": "3", "EXCHANGE": "5", "FRAME": "8K", "PEERS": "128", "CACHE": "1M",
    "EAGER": "16K", "SPIN": "10", "PARK_AFTER": "3", "PARK_LIMIT": "50"}
NAMED = {"ULFM_" + row: value for row, value in VALUES.items()}
failures = 0


def settings_of(command, more=()):
    done = subprocess.run(command, env={**os.environ, **dict(more)}, capture_output=True, text=True, timeout=120)
    try:
        return {s["name"]: s for s in json.loads(done.stdout)["settings"]}
    except ValueError:
        sys.exit(f"FAIL {' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")


def check(title, origin, command, more=()):
    """`origin`: as ulfm_info says it. Ranks get as environment what stands on the command line of ulfmrun."""
    global failures
    found = settings_of(command, more)
    wrong = [f"{name}={found[name]['value']} ({found[name]['origin']})" for name, value in NAMED.items()
             if found[name]["value"] != value or found[name]["origin"] != origin]
    print("ok  " if not wrong else "FAIL", title, ", ".join(wrong))
    failures += bool(wrong)


rows = set(settings_of(["ulfm_info", "--json"])) - {"ULFM_CONFIG"}
if rows != set(NAMED):
    sys.exit(f"FAIL rows without a value in this test, or the other way round: {sorted(rows ^ set(NAMED))}")
with open("all.toml", "w", encoding="utf-8") as file:
    file.writelines(f'{row.lower()} = "{value}"\n' for row, value in VALUES.items())
line = ["--stats"]
for row, value in VALUES.items():
    if row in OPTIONS:
        line += [OPTIONS[row], value]
    elif row != "STATS":
        line += ["-genv", "ULFM_" + row, value]
tool = ["ulfm_info", "--json"]
named_file = {"ULFM_CONFIG": os.path.abspath("all.toml")}
check("a tool: environment", "environment", tool, NAMED)
check("a tool: file", "file", tool, named_file)
check("a rank: environment", "environment", ["ulfmrun", "-n", "1", *tool], NAMED)
check("a rank: file of the environment", "file", ["ulfmrun", "-n", "1", *tool], named_file)
check("a rank: --config", "file", ["ulfmrun", "--config", "all.toml", "-n", "1", *tool])
check("a rank: command line of ulfmrun", "environment", ["ulfmrun", *line, "-n", "1", *tool])
other = {name: "1" for name in NAMED if name[5:] in ("DEPTH", "LANES", "SPIN")}
check("a rank: command line before environment", "environment", ["ulfmrun", *line, "-n", "1", *tool], other)
sys.exit(failures != 0)
PYTHON
python3 every_row.py || fail "settings differ"

# ulfmrun, ranks and tools make what the file says: an interconnect of that shape.
printf 'transport = "xswitch"\ntopology = "mesh:2x2"\n' >mesh.toml
compile hello <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int one = 1, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("sum %d\n", sum);
    MPI_Finalize();
    return 0;
}
C
sums() { [[ $(grep -c "^sum $1\$" out) == "$1" ]] || fail "$2"; }
export ULFM_STATS=1
timeout "$patience" ulfmrun --config mesh.toml -n 4 ./hello >out 2>&1 || fail "--config with a transport"
sums 4 "--config with a transport" && grep -q 'stats xswitch mesh:2x2:' out || fail "--config: not on a mesh of four"
ULFM_CONFIG=mesh.toml timeout "$patience" mpiexec -n 2 ./hello >out 2>&1 || fail "mpiexec with a file"
sums 2 "mpiexec with a file" && grep -q 'stats xswitch mesh:2x2:' out || fail "mpiexec with a file: not on a mesh of four"
unset ULFM_STATS
ULFM_CONFIG=mesh.toml timeout "$patience" ulfm_perf latency --size 8 --iterations 20 --nodes 0,3 >out 2>&1 ||
    fail "ulfm_perf does not take the transport of a file"

# A setting without an effect: the command line refuses it (manners.sh), the environment and a file are told.
printf 'topology = "mesh:2x2"\n' >shape.toml
said() { [[ $(grep -c 'has no topology' out) == 1 ]] && grep -q 'no effect' out || fail "$1: not said once"; }
ULFM_TOPOLOGY=mesh:2x2 timeout "$patience" ulfmrun -n 2 ./hello >out 2>&1 || fail "ulfmrun with ULFM_TOPOLOGY on direct"
sums 2 "ulfmrun with ULFM_TOPOLOGY on direct" && said "ulfmrun with ULFM_TOPOLOGY on direct"
timeout "$patience" ulfmrun --config shape.toml -n 2 ./hello >out 2>&1 || fail "ulfmrun with a file's topology on direct"
sums 2 "ulfmrun with a file's topology on direct" && said "ulfmrun with a file's topology on direct"
ULFM_TOPOLOGY=mesh:2x2 timeout "$patience" mpiexec -n 2 ./hello >out 2>&1 || fail "mpiexec with ULFM_TOPOLOGY on direct"
sums 2 "mpiexec with ULFM_TOPOLOGY on direct" && said "mpiexec with ULFM_TOPOLOGY on direct"
ULFM_CONFIG=shape.toml timeout "$patience" ./hello >out 2>&1 || fail "alone with a file's topology on direct"
sums 1 "alone with a file's topology on direct" && said "alone with a file's topology on direct"
ULFM_TOPOLOGY=mesh:2x2 timeout "$patience" ulfm_perf latency --size 8 --iterations 20 >out 2>&1 ||
    fail "ulfm_perf with ULFM_TOPOLOGY on direct"
said "ulfm_perf with ULFM_TOPOLOGY on direct"
echo "settings: each row has one value, wherever it comes from"
