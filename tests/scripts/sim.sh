#!/usr/bin/env bash
# ulfm_sim: its forms of output, its files, its exit codes, and what it refuses.
set -euo pipefail
stage=${ULFM_STAGE:?the folder ULFM is installed in}
source=${ULFM_SOURCE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
sim=$stage/bin/ulfm_sim
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
short=(--warmup 500 --measure 2000 --drain 4000)

fail() {
    echo "sim: $*"
    head -n 40 out err 2>/dev/null
    exit 1
}

# run CODE ARGUMENTS...: runs ulfm_sim, whose exit code must be CODE; output in the files out and err.
run() {
    local expected=$1 code=0
    shift
    timeout 120 "$sim" "$@" >out 2>err </dev/null || code=$?
    ((code == expected)) || fail "ulfm_sim $* exits with $code, expected $expected"
}

# refused PATTERN ARGUMENTS...: exit code 2, nothing on standard output, a sentence that matches on standard error.
refused() {
    local pattern=$1
    shift
    run 2 "$@"
    [[ ! -s out ]] || fail "ulfm_sim $*: something is on standard output"
    grep -qE -- "$pattern" err || fail "ulfm_sim $*: standard error lacks: $pattern"
}

# json EXPRESSION: a Python expression over j, the object, that must be true.
json() { python3 -c "import json, sys; j = json.load(open('out')); sys.exit(not ($1))" || fail "JSON: not $1"; }

run 0 load "${short[@]}" -T mesh:4x4 -r 0.05:0.15:0.05 --json --svg curve.svg --links links.svg
[[ ! -s err ]] || fail 'something is on standard error'
json 'len(j["rows"]) == 3 and all(r["settled"] for r in j["rows"])'
json 'all(set(["offered", "accepted", "latency_mean", "latency_p50", "latency_p99", "latency_mean_us"]) <= set(r) for r in j["rows"])'
json '[r["offered"] for r in j["rows"]] == [0.05, 0.1, 0.15]'
json 'all(abs(r["accepted"] - r["offered"]) < 0.02 for r in j["rows"])'
json 'j["rows"][0]["latency_mean"] < j["rows"][2]["latency_mean"] and j["series"][0]["bound"] > 0.3'
for picture in curve links; do
    python3 -c "import sys, xml.dom.minidom as x; x.parse('$picture.svg')" || fail "$picture.svg is no XML"
done
grep -q '% busy' links.svg || fail 'the picture of links does not say how busy they are'
cp out once
run 0 load "${short[@]}" -T mesh:4x4 -r 0.05:0.15:0.05 --json -j 1
cmp -s out once || fail 'one thread gives another result'

run 0 load "${short[@]}" -T mesh:4x4 -r 0.1 --csv --sweep 'fifo=32|64' --compare 'transport=ideal'
[[ $(wc -l <out) == 4 ]] || fail 'not three rows and a head'
run 0 load "${short[@]}" -t dcm -T cube:3 -r 0.02
run 0 load "${short[@]}" -t pcie -T boards:4x1 -r 0.2:0.4:0.2 --saturation
grep -q '^saturation: 0\.[1-9]' out || fail 'no saturation'
run 0 load "${short[@]}" -T mesh:4x4 -r 0.9
grep -q 'not settled' out || fail 'the row does not say that it has not settled'
grep -q 'did not settle' err || fail 'no warning of a point that has not settled'
run 3 load "${short[@]}" -T mesh:4x4 -r 0.9 --strict -q
[[ ! -s err ]] || fail '--quiet is not'
for of in '-t xswitch -T mesh:4x4' '-t dcm -T cube:4' '-t pcie -T boards:4x1' '-t ideal -T single:4' \
    '-t pointdesign -T gh:2x3x2'; do
    # shellcheck disable=SC2086
    run 0 zero $of
    grep -q 'all as the closed form says' out || fail "zero $of"
done
run 0 zero -T mesh:3x3 --all --json -j 2
json 'j["pairs"] == 72 and j["differ"] == 0 and j["closed_form"]'
run 0 load "${short[@]}" -T mesh:4x4 -r 0.1:0.3:0.1 --verify
for topology in torus:24x24x22 tree:6 mesh:64x64 fattree:8x4 dragonfly:2x4x2 hyperx:8x8x8 fullmesh:16x10; do
    run 0 load --warmup 100 --measure 400 --drain 1200 -T "$topology" -r 0.01 -q
done
echo '1 0 3 2' >pairs
run 0 load "${short[@]}" -T single:4 -p permutation:pairs -r 0.2

refused 'a command is needed; there is: load, zero'
refused 'there is no model "xswich"' load -t xswich
refused 'is none of uniform' load -p random
refused 'is no whole number' load --sweep 'measure=many'
refused 'write FROM:TO:STEP' load -r 0.3:0.1
refused 'cube:0 to cube:7' load -t dcm -T mesh:4x4
refused 'needs the destination of each of the 16' load -p permutation:pairs
refused 'permutation file ./none cannot be opened' load -p permutation:./none
refused 'two forms' load --json --csv
run 1 load "${short[@]}" -T single:4 -r 0.1 --svg /nowhere/x.svg
grep -q 'cannot be written' err || fail 'no word of a file that cannot be written'
if [[ -w /dev/full ]]; then
    code=0
    "$sim" load "${short[@]}" -T single:4 -r 0.1 >/dev/full 2>err || code=$?
    ((code == 1)) || fail "a full disk gives exit code $code"
fi
ULFM_SIM=$sim bash -n "$source/examples/simulation/gallery"
echo 'sim: passed'
