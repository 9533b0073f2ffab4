#!/usr/bin/env bash
# ulfm_perf logp and paths: the shape of what they print, alone and as a job; nothing is said of the numbers but that
# times are times.
set -uo pipefail
: "${ULFM_STAGE:?stage folder}" "${ULFM_SOURCE:?source folder}"
stage=$(cd "$ULFM_STAGE" && pwd -P) || exit 1
perf=$stage/bin/ulfm_perf
page=$ULFM_SOURCE/docs/man/ulfm_perf.1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
unset "${!ULFM_@}"
failures=0
fail() {
    echo "FAIL $1"
    sed 's/^/     | /' out err 2>/dev/null | tail -n 8
    failures=$((failures + 1))
}

# run CODE COMMAND...: the command ends with that code; output in the files out and err.
run() {
    local expected=$1 code=0
    shift
    timeout 250 "$@" </dev/null >out 2>err || code=$?
    ((code == expected)) || fail "$* exits with $code, expected $expected"
}

# json EXPRESSION: a Python expression over j, the object, and rows that must be true.
json() {
    python3 -c "import json; j = json.load(open('out')); rows = j['rows']; assert $1" 2>>err || fail "JSON: not $1"
}

# refused PATTERN ARGUMENTS...: a wrong command line, with a sentence.
refused() {
    local pattern=$1
    shift
    run 2 "$perf" "$@"
    grep -qE -- "$pattern" err || fail "ulfm_perf $*: standard error lacks: $pattern"
}

few=(--iterations 5 --warmup 20)
parameters="('o_s_us', 'o_r_us', 'L_us', 'g_us', 'G_ns_per_byte', 'half_rtt_us')"
# L is a difference, and G one of noisy sums: they may come out as anything on a busy machine.
sound="all(r[k] > 0 for r in rows for k in ('o_s_us', 'o_r_us', 'half_rtt_us')) and \
all(r[k + '_quartiles'][0] <= r[k] <= r[k + '_quartiles'][1] for r in rows for k in $parameters)"

run 0 "$perf" logp "${few[@]}" --json
# Every transport of the library has a row, or a line that says why not.
names='import json, sys; print(*(t["name"] for t in json.load(sys.stdin)["transports"]))'
for name in $("$stage/bin/ulfm_info" --json | python3 -c "$names"); do
    grep -q "transport $name is left out: " err || json "j['test'] == 'logp' and '$name' in [r['transport'] for r in rows]"
done
json "$sound"
run 0 "$perf" logp "${few[@]}" --transport xswitch --topology mesh:2x2 --nodes 0,3 --size 32 --json
json "[(r['transport'], r['size']) for r in rows] == [('xswitch', 32)]"
json "$sound"
ULFM_TRANSPORT=pcie run 0 "$perf" logp "${few[@]}" --csv
grep -q '^transport,size,o_s_us,o_s_us_q1,o_s_us_q3,o_r_us,' out || fail "logp --csv: no such head"
[[ $(sed 1d out | cut -d, -f1) == pcie ]] || fail "logp: the transport of the environment was not taken alone"
run 0 "$perf" logp "${few[@]}" --depth 1 --transport direct
grep -qE '^# transport +size +o_s_us +o_r_us +L_us +g_us +G_ns_per_byte' out || fail "logp: no such head"
grep -qE '^  direct +8 +[0-9.]+ \([0-9.]+-[0-9.]+\)' out || fail "logp: no row of direct"
refused 'one size' logp --size 1:16

modes="('ulsr', 'ulskrc', 'ksrc2')"
ways="all(0 < r[m + '_us_quartiles'][0] <= r[m + '_us'] <= r[m + '_us_quartiles'][1] for r in rows for m in $modes) and \
all(r['floor_us'] > 0 and r['ulskrc_ratio'] > 0 and r['ksrc2_ratio'] > 0 and r['ulsr_MB_per_s'] > 0 for r in rows)"
paper="{r['size']: (r['paper_ulsr_us'], r['paper_ksrc2_ratio_above'], r['paper_ulsr_MB_per_s']) for r in rows}"
run 0 "$perf" paths --iterations 300 --json
json "j['test'] == 'paths' and [r['size'] for r in rows] == [16, 32, 64, 128, 256, 512, 1024, 2048]"
json "$ways"
json "[(s, p) for s, p in $paper.items() if any(p)] == [(16, (6, 2, None)), (2048, (None, None, 40.26))]"
run 0 "$perf" paths --iterations 200 --size 1:16K
[[ $(grep -cE '^[0-9]+ ' out) == 15 ]] || fail "paths: not a row for each size"
run 0 "$perf" paths --iterations 200 --size 3 --csv
grep -q '^3,.*,,,$' out || fail "paths --csv: what the paper does not have is not empty"
refused '1 byte to 16K' paths --size 0
refused '1 byte to 16K' paths --size 32K
run 1 "$perf" paths --transport xswitch
grep -q "over direct.*this job's transport is xswitch" err || fail "paths over xswitch: no sentence"
ULFM_LANES=0 run 1 "$perf" paths --size 16
grep -q "not in its port's memory.*ULFM_LANES" err || fail "paths without lanes: no sentence"

if [[ -x $stage/bin/mpiexec ]]; then
    # One to many starts itself as a job; a job of two has no crowd.
    run 0 "$perf" multicast "${few[@]}" --receivers 3 --size 64 --transport pointdesign --topology gh:2x2x1 --json
    json "j['test'] == 'multicast' and [r['size'] for r in rows] == [64]"
    json "all(rows[0][k] > 0 for k in ('multicast_us', 'unicasts_us', 'ratio'))"
    run 0 "$perf" multicast "${few[@]}" --receivers 2 --size 1:4
    [[ $(grep -cE '^[124] ' out) == 3 ]] || fail "multicast: not a row for each size"
    run 1 "$stage/bin/ulfmrun" -n 2 "$perf" multicast
    grep -q 'multicast needs 3 processes or more' err || fail "multicast of two processes: no sentence"
    refused '2 to 1000' multicast --receivers 1
    # A third rank looks on.
    for n in 2 3; do
        run 0 "$stage/bin/ulfmrun" -n $n "$perf" paths --iterations 200 --size 16 --json
        json "$ways"
        run 0 "$stage/bin/ulfmrun" -n $n "$perf" logp "${few[@]}" --json
        json "[r['transport'] for r in rows] == ['direct']"
        json "$sound"
    done
    # Who fails takes the job with it, also a rank that only looks on.
    ULFM_LANES=0 timeout 100 "$stage/bin/ulfmrun" -n 3 "$perf" paths --size 16 </dev/null >out 2>err
    code=$?
    ((code != 0 && code != 124)) || fail "paths without lanes as a job exits with $code"
    grep -q "not in its port's memory" err out || fail "paths without lanes as a job: no sentence"
    run 0 "$stage/bin/ulfmrun" --transport dcm -n 2 "$perf" logp "${few[@]}" --json
    json "[r['transport'] for r in rows] == ['dcm']"
fi

# The limit holds on a slow network: sizes that do not fit are left out, and told.
run 0 "$perf" latency --transport dcm,pace=ipsc2 --size 1K:16M --limit 12 --json
json "1 <= len(rows) < 15 and rows[0]['size'] == 1024 and 'left out' in j['left_out']"
grep -q 'are left out: the limit of 12 s' err || fail "latency with a limit does not say what it left out"
ended=0
timeout 100 "$perf" latency --transport dcm,pace=ipsc2 --size 1M --limit 0.1 </dev/null >out 2>err || ended=$?
((ended == 1)) && grep -q 'raise it with --limit' err || fail "latency without time for any size: status $ended"

# Every key stands in the manual.
for key in transport size o_s_us o_r_us L_us g_us G_ns_per_byte half_rtt_us floor_us ulsr_us ulskrc_us ksrc2_us ulskrc_ratio \
    ksrc2_ratio ulsr_MB_per_s paper_ulsr_us paper_ksrc2_ratio_above paper_ulsr_MB_per_s; do
    grep -q -w "$key" "$page" || fail "ulfm_perf(1) does not name $key"
done

((failures == 0)) || exit 1
echo "ulfm_perf: logp and paths print what the manual says, alone and as a job"
