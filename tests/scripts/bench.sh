#!/usr/bin/env bash
# The benchmarks run and their results have the keys that bench/README.md promises; nothing is said of the numbers. The peers
# are left out: they need packages and minutes.
set -uo pipefail
: "${ULFM_STAGE:?stage folder}" "${ULFM_SOURCE:?source folder}"
[[ -x $ULFM_STAGE/bin/mpicc && $ULFM_STAGE -ef $ULFM_SOURCE/build/stage ]] || exit 77
# shellcheck source=counting.bash
. "$(dirname "${BASH_SOURCE[0]}")/counting.bash"
alone=(--without openmpi --without mpich-ch4 --without nemesis)

# kept NAME CONDITION: runs a benchmark once; the Python condition must hold for each row r.
kept() {
    local json=$scratch/$1.json
    "$ULFM_SOURCE/bench/run" "$1" --rounds 1 --results "$scratch/results" --json "$json" "${alone[@]}" >"$scratch/out" 2>&1 ||
        { fail "$1: $(tail -n 3 "$scratch/out")" && return; }
    python3 - "$json" "$2" <<'PYTHON' || fail "$1: a row is not as promised"
import json, sys
result = json.load(open(sys.argv[1]))
assert result["rows"] and result["head"]["libraries"] and result["head"]["processor"]
for r in result["rows"]:
    assert r["spread"] and eval(sys.argv[2]), r
PYTHON
}

kept rate 'r["direction"] in ("one", "both") and r["ulfm_per_s"] > 0 and r["floor_us"] > 0 and r["peers"] == {}'
kept collectives 'r["ranks"] >= 1 and r["what"] and r["size"] >= 0 and r["ulfm_us"] > 0'
kept memory 'r["ranks"] in (16, 128) and r["ulfm_MB"] > 0'
kept ports 'r["size"] >= 1 and r["ulfm_us"] > 0 and r["ratio_floor"] > 0'
kept paths 'r["size"] >= 16 and r["ulfm_us"] > 0 and set(r["peers"]) == {"ulskrc", "ksrc2"} and r["ksrc2_ratio"] > 0 and "paper_ulsr_us" in r'
kept logp 'r["transport"] and min(r["o_s_us"], r["o_r_us"]) > 0 and {"L_us", "g_us", "G_ns_per_byte"} <= set(r["spread"])'
"$ULFM_SOURCE/bench/run" nonsense >/dev/null 2>"$scratch/err" && fail "an unknown benchmark was accepted"
grep -q 'there is no benchmark "nonsense"' "$scratch/err" || fail "no sentence about an unknown benchmark"
# A page is not written from figures of a busy machine, unless told.
python3 - "$scratch/results/ports.json" <<'PYTHON'
import json, sys
result = json.load(open(sys.argv[1]))
result["head"]["load_before"] = 1 + result["head"]["cores"]
json.dump(result, open(sys.argv[1], "w"))
PYTHON
"$ULFM_SOURCE/bench/run" page --results "$scratch/results" >/dev/null 2>"$scratch/err" && fail "a page from a busy machine"
grep -q 'performance.md is not written: .*ports' "$scratch/err" || fail "no sentence about a busy machine"
((failures == 0)) || exit 1
echo "the benchmarks keep what bench/README.md promises"
