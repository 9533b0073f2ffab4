#!/usr/bin/env bash
# ulfm_stat: what it shows of a job that runs, that looking harms nothing even if who looks is killed, what it refuses.
set -uo pipefail
: "${ULFM_STAGE:?stage folder}"
stage=$(cd "$ULFM_STAGE" && pwd -P) || exit 1
stat=$stage/bin/ulfm_stat
# shellcheck source=counting.bash
. "$(dirname "${BASH_SOURCE[0]}")/counting.bash"
trap 'kill "${job:-}" 2>/dev/null; rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
unset "${!ULFM_@}"

# soak MESSAGES [TRANSPORT TOPOLOGY]: random messages both ways, over mesh:2x2 for one, in the background.
soak() {
    local transport=${2:-xswitch} topology=${3:-mesh:2x2}
    "$stage/bin/ulfm_perf" soak --transport "$transport" --topology "$topology" --nodes 0,3 --iterations "$1" >soak.out 2>soak.err </dev/null &
    job=$!
    for ((turn = 0; turn < 500; turn++)); do
        grep -q "^$job  $transport $topology, 2 processes$" <<<"$("$stat" --list)" && return
        kill -0 $job 2>/dev/null || break
        sleep 0.02
    done
    fail "the job is not in the list"
}

"$stat" 1 >out 2>err && fail "process 1 was looked at"
grep -q '^ulfm_stat: ' err || fail "no sentence about process 1"

soak 1000000000
"$stat" $job --lines -i 0.2 -c 2 >out || fail "exit code $?"
[[ $(grep -c '^card [01]: node [03] process [0-9]* sent [0-9]' out) == 4 ]] || fail "no two readings of both cards"
[[ $(grep -c '^xswitch: cycles [1-9].* present [0-9]*$' out) == 2 ]] || fail "no two readings that balance"
mapfile -t cycles < <(sed -n 's/^xswitch: cycles \([0-9]*\).*/\1/p' out)
((cycles[1] > cycles[0])) || fail "nothing moved between two readings"
grep -q '^xswitch port s[0-3]\.[A-E]: out frames [1-9]' out || fail "no line for a port"
"$stat" $job -i 0.2 -c 2 --sort 'busy %' >out || fail "tables: exit code $?"
grep -qE '^ +from +to +bytes +busy|^ +from +to .*%' out || fail "no table of links: $(cat out)"
grep -qE '^ +(node|s)[ 0-9.A-E]+ +(node|s)[ 0-9.A-E]+ +[0-9]+ +[0-9.]+ +[0-9.]+' out || fail "no link with both its ends"
grep -q 'sent/s' out || fail "no rates: $(cat out)"
grep -qE '(node|process|use|slots|present)/s' out && fail "a rate of what does not rise: $(cat out)"
grep -A2 '^time$' out | grep -q "^  the host's; " || fail "nothing is said about the time: $(cat out)"
"$stat" $job --json >out && python3 -c 'import json; r = json.load(open("out")); assert {t["table"] for t in r["tables"]} >= {"card", "links", "xswitch"}; l = [t for t in r["tables"] if t["table"] == "links"][0]["rows"]; assert all({"from", "to", "bytes", "busy %"} <= row.keys() for row in l); c, t = ([u for u in r["tables"] if u["table"] == n][0]["rows"] for n in ("card", "time")); assert sorted(row["node"] for row in c) == [0, 3] and all(row["slots in use"] <= row["slots"] for row in c); assert t[0]["time"].startswith("the host"); assert all("" not in row for u in r["tables"] for row in u["rows"])' ||
    fail "no JSON: $(cat out)"
"$stat" $job --csv -i 0.2 -c 2 >csv || fail "no CSV"
grep -q '^table,seconds,of,node,process,sent,sent/s,slots in use,slots$' csv || fail "no totals and rates of cards: $(grep '^table' csv)"
grep -q '^table,seconds,from,to,bytes,busy %' csv || fail "no CSV"
"$stat" $job --sort nonsense >out 2>err
[[ $? == 2 ]] && grep -q 'no column is called "nonsense"; there is: .*busy %' err || fail "a column that is not there: $(cat err)"
kill $job && wait $job 2>/dev/null

soak 1000000000 pointdesign gh:2x2x1
for ((turn = 0; turn < 500; turn++)); do
    grep -q 'pointdesign: cycles [1-9]' <<<"$("$stat" $job --lines)" && break
    sleep 0.02
done
"$stat" $job >out || fail "pointdesign: exit code $?"
sed -n '/^links$/,/^[a-z]/p' out | grep -qE ' [0-9]+ +[0-9]+\.[0-9] ' || fail "pointdesign: how busy links are is not known: $(cat out)"
kill $job && wait $job 2>/dev/null

soak 200000
for ((i = 0; i < 100; i++)); do
    "$stat" $job -i 0.01 >/dev/null 2>&1 &
    looking=$!
    sleep "0.0$((RANDOM % 5))"  # any moment will do
    kill -9 $looking 2>/dev/null
    wait $looking 2>/dev/null
done
wait $job || fail "who looked was killed, and the job ended with $?: $(cat soak.err)"
grep -q '^ *400000' soak.out || fail "not all messages arrived"

((failures == 0)) || exit 1
echo "ulfm_stat: readings balance, and looking harms nothing"
