#!/usr/bin/env bash
# One file for a job: a trace whose arrows join sendings with arrivals, also when a rank was killed, and a table of counters.
set -uo pipefail
# shellcheck source=mpi_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
unset "${!ULFM_@}"
cd "$work" || exit 1

compile talk <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int rank, size, i, x = 0;
    static char big[200000];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (i = 0; i < 200; i++)
        MPI_Sendrecv(big, i * 100, MPI_CHAR, (rank + 1) % size, 0, big + 100000, 100000, MPI_CHAR,
                     (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 1 && rank == 1) kill(getpid(), SIGKILL);
    MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
C

cat >check.py <<'P'
import json, sys
file, ranks = sys.argv[1], int(sys.argv[2])
trace = json.load(open(file))
events = trace["traceEvents"]
names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
assert sorted(names) == list(range(ranks)) and all(f"rank {r} talk" in n for r, n in names.items()), names
begun = {e["id"]: e for e in events if e["ph"] == "s"}
ended = {e["id"]: e for e in events if e["ph"] == "f"}
assert begun.keys() == ended.keys() and len(begun) >= 200 * ranks, (len(begun), len(ended))
assert all(begun[i]["ts"] <= ended[i]["ts"] and begun[i]["pid"] != ended[i]["pid"] for i in begun), "an arrow goes back"
sent = [e for e in events if e["ph"] == "X" and e["name"] == "message sent"]
assert {e["args"]["peer_rank"] for e in sent} == set(range(ranks))
assert all(e["dur"] >= 0 for e in events if e["cat" if "cat" in e else "ph"] == "wait")
P
ulfmrun() { timeout "$patience" "$stage/bin/ulfmrun" "$@" </dev/null >"$work/out" 2>&1; }

ulfmrun --trace t.json --stats-file counters -n 3 ./talk || fail "a traced job fails"
python3 check.py t.json 3 || fail "what the trace says"
[[ $(ls t.json*) == t.json ]] || fail "more than one file: $(ls t.json*)"
echo "ok   a trace of all ranks"
grep -qE '^ +rank +messages +bytes' counters && grep -qE '^ +all +' counters && grep -q '^waits' counters ||
    fail "no table of counters: $(cat counters)"
ulfmrun --stats-file c.json -n 2 ./talk || fail "counters as JSON"
python3 -c 'import json; rows = json.load(open("c.json"))[0]["rows"]; assert [r["rank"] for r in rows] == ["0", "1", "all"] and rows[2]["sent messages"] == rows[0]["sent messages"] + rows[1]["sent messages"], rows' ||
    fail "what the JSON says"
ulfmrun --stats-file c.csv -n 2 ./talk || fail "counters as CSV"
grep -q '^table,rank,sent messages,' c.csv || fail "what the CSV says: $(head -n 2 c.csv)"
echo "ok   counters of all ranks, in three forms"

if ulfmrun --trace dead.json -n 3 ./talk die; then fail "a job whose rank was killed ends with 0"; fi
python3 check.py dead.json 3 || fail "what the trace of a job with a killed rank says"
echo "ok   a trace after a death"

ulfmrun --trace x.json --transport xswitch --topology mesh:2x2 --fault drop=1e-3,seed=3 -n 3 ./talk || fail "over a bad network"
python3 check.py x.json 3 || fail "what the trace over a bad network says"
echo "ok   a trace above the protocol"

# What the launcher would have done itself: the exit code, standard input, and a signal.
printf 'import sys; sys.exit(len(sys.stdin.read()))\n' >reader.py
printf 'four' | timeout "$patience" "$stage/bin/ulfmrun" --stats-file c -n 1 python3 reader.py
[[ $? == 4 ]] || fail "the exit code or standard input got lost"
echo "ok   the exit code and standard input"
