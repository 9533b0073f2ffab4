#!/usr/bin/env bash
# ulfm_info says what is set and where that comes from, refuses what cannot be, and the man pages say the same.
set -euo pipefail
stage=${ULFM_STAGE:?the folder ULFM is installed in}
source=${ULFM_SOURCE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
info=$stage/bin/ulfm_info
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for variable in $(compgen -e ULFM_); do
    unset "$variable"
done

fail() {
    echo "info: $*"
    cat "$work/out" "$work/err" 2>/dev/null
    exit 1
}

# run CODE ARGUMENTS...: runs ulfm_info, whose exit code must be CODE; output in $work/out and $work/err.
run() {
    local expected=$1 code=0
    shift
    "$info" "$@" >"$work/out" 2>"$work/err" || code=$?
    ((code == expected)) || fail "ulfm_info $* exits with $code, expected $expected"
}

out() { grep -qE -- "$1" "$work/out" || fail "the output lacks: $1"; }
err() { grep -qE -- "$1" "$work/err" || fail "standard error lacks: $1"; }
silent() { [[ ! -s $work/err ]] || fail "something is on standard error"; }

# json EXPRESSION: a Python expression over j, the object, that must be true.
json() { python3 -c "import json, sys; j = json.load(open('$work/out')); sys.exit(not ($1))" || fail "JSON: not $1"; }

test_sections() {
    run 0 && silent
    out '^ulfm_info .* [0-9]+\.[0-9]+\.[0-9]+$'
    out '^  direct +shared memory'
    out 'usable +yes'
    out '^  ULFM_SLOT +2048 +bytes +default$'
    out '^  cores .*: [1-9]'
    python3 - "$work/out" <<'P' || fail "a column of the settings is not straight"
import re, sys
lines = [l for l in open(sys.argv[1]) if l.startswith("  ULFM_") and "=" not in l]
sys.exit(len(lines) < 10 or len({re.match(r"  \S+ +", l).end() for l in lines}) != 1)
P
    run 0 --version && [[ $(grep -c '^ulfm_info' "$work/out") == 1 ]] && ! grep -q Settings "$work/out" || fail "--version"
    run 0 -t && out 'reliable, ordered' && ! grep -q '^Settings' "$work/out" || fail "-t prints settings"
    run 0 -f && out 'from [0-9]+ to 1048576 .*default 2048'
    run 0 -e && out '^  none$'
    run 0 --help && out '--man-rows'
}

test_origins() {
    printf 'slot = 4096\n\ndepth = 16\n' >"$work/settings.toml"
    export ULFM_CONFIG=$work/settings.toml ULFM_SLOT=8K
    run 0 -e && silent
    out '^  ULFM_SLOT +8K +bytes +environment$'
    out "^  ULFM_DEPTH +16 +slots +$work/settings.toml:3$"
    [[ $(grep -c '^  ULFM_' "$work/out") == 3 ]] || fail "-e shows more or less than SLOT, DEPTH and CONFIG"
    run 0 --json && silent
    json "{s['name']: s['number'] for s in j['settings']}['ULFM_SLOT'] == 8192"
    json "{s['name']: s['origin'] for s in j['settings']}['ULFM_DEPTH'] == 'file'"
    json "{s['name']: s['where'] for s in j['settings']}['ULFM_DEPTH'].endswith('settings.toml:3')"
    unset ULFM_CONFIG ULFM_SLOT
}

test_mistakes() {
    ULFM_SLOTT=1 run 0 -e && err 'SLOTT; did you mean ULFM_SLOT\?'
    ULFM_SLOTT=1 run 0 --json && json "any('ULFM_SLOT?' in w for w in j['warnings'])"
    ULFM_SLOT=tiny run 2 && err 'ULFM_SLOT="tiny": needs bytes'
    ULFM_DEPTH=0 run 2 && err 'from 1 to [0-9]+'
    ULFM_CONFIG=$work/none run 2 && err 'cannot be read'
    printf 'slot = [\n' >"$work/broken.toml"
    ULFM_CONFIG=$work/broken.toml run 2 && err 'broken.toml:[0-9]+:'
    ULFM_TRANSPORT=drect run 2 -t && err 'did you mean direct\?'
    run 2 --transprots && err 'did you mean --transports\?'
    run 2 word && err 'options only'
    run 2 --man-rows nothing && err 'no transport'
}

test_json() {
    run 0 --json && silent
    json "j['version'] == open('$source/VERSION').read().strip()"
    json "j['transport'] == {'asked': 'auto', 'selected': 'direct', 'problem': ''}"
    json "j['transports'][0]['name'] == 'direct' and j['transports'][0]['usable']"
    json "all(s['help'] and s['name'].startswith('ULFM_') for s in j['settings'])"
    json "j['waiting']['cores'] >= 1 and set(j['mpi']) == {'library', 'version', 'is_ulfm', 'problem'}"
    # Every key is documented.
    python3 - "$work/out" "$source/docs/man/ulfm_info.1" <<'PYTHON' || fail "keys that ulfm_info(1) does not name"
import json, sys
page = open(sys.argv[2]).read()
def keys(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)
missing = sorted({k for k in keys(json.load(open(sys.argv[1]))) if k not in page})
print(*missing)
sys.exit(bool(missing))
PYTHON
}

test_mpi() {
    run 0 --mpi
    if [[ -e $stage/lib/libmpi.so.12 ]]; then
        out 'is MPICH with the netmod ulfm'
        out 'MPICH Version'
    else
        out 'there is no .*libmpi.so.12'
    fi
}

test_man_pages() {
    "$source/docs/man/update" --check "$info" || fail "the man pages do not have the settings of this build"
}

for t in sections origins mistakes json mpi man_pages; do "test_$t"; done
echo "ulfm_info: sections, origins, mistakes, JSON, MPI library and man pages are right"
