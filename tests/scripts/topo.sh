#!/usr/bin/env bash
# ulfm_topo: what it shows of the short forms and of the example files, in every form of output; what it refuses.
set -euo pipefail
stage=${ULFM_STAGE:?the folder ULFM is installed in}
source=${ULFM_SOURCE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
topo=$stage/bin/ulfm_topo
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
    echo "topo: $*"
    head -n 40 out err 2>/dev/null
    exit 1
}

# run CODE ARGUMENTS...: runs ulfm_topo, whose exit code must be CODE; output in the files out and err.
run() {
    local expected=$1 code=0
    shift
    timeout 60 "$topo" "$@" >out 2>err </dev/null || code=$?
    ((code == expected)) || fail "ulfm_topo $* exits with $code, expected $expected"
    if ((code == 0)) && [[ -s err ]]; then fail "ulfm_topo $*: something is on standard error"; fi
}

out() { grep -qE -- "$1" out || fail "the output lacks: $1"; }

# refused PATTERN ARGUMENTS...: exit code 2, nothing on standard output, a sentence that matches on standard error.
refused() {
    local pattern=$1
    shift
    run 2 "$@"
    [[ ! -s out ]] || fail "ulfm_topo $*: something is on standard output"
    grep -qE -- "$pattern" err || fail "ulfm_topo $*: standard error lacks: $pattern"
}

# json EXPRESSION: a Python expression over j, the object, that must be true.
json() { python3 -c "import json, sys; j = json.load(open('out')); sys.exit(not ($1))" || fail "JSON: not $1"; }

test_show() {
    run 0 show mesh:3x4
    out '^  switches   12 of 5 ports \(X-Switch\), 3 rows by 4 columns$'
    out '^  links      17 between switches; 14 ports are free$'
    out '^  ways       3\.33 switches on average, 6 at most'
    out '^  bisection  3 links$'
    out '^    s8 n8 ---- s9 n9 ---- s10 n10 -- s11 n11$'
    out '^Each node has the rank of its own number\.$'
    run 0 show torus:3x4 --dead s5.B,s0.A && out '~ s4 n4 ---- s5 n5 ---x s6 n6 ---- s7 n7   ~' && out 'up\*/down\*, round the dead links'
    run 0 show mesh:2x2 -n 6 && out '^n0 +s0\.E +0,1$' && out '^n3 +s3\.E +5$'
    run 0 show mesh:2x2 -n 2 && out '^n2 +s2\.E +-$'
    run 0 show chain:3 && out '^  s0 B---A s1 B---A s2$' && out '^  n0-n3    n4-n6    n7-n10$'
    run 0 show tree:2 && out "^  .-E-- s5  n16-n19$"
    run 0 show chain:40 && out '^  s39   A s38\.B  B n118 '
    run 0 show chain:3 --dead s1.B && out '^  cut off    56 of 110 ordered pairs'
    run 0 show th8 && out '8 ports \(TH-Switch\)'
    run 0 show "$source/examples/topologies/th_pair.toml" && out '^two TH-Switches$' && out '^n11 +right\.F +22,23$'
    run 0 show "$source/examples/topologies/triangle.toml" && out '^n2 +s2\.C +3-5$'
    printf 'switches = 2\nlinks = ["s0.B - s1.A"]\nnodes = ["s0.C"]\nlatency = ["s0.C: 4"]\nrate = ["s1.A: 2"]\n' >own.toml
    run 0 show own.toml && out '^  own        s0\.B - s1\.A: rate 2 cycles a unit$' && out '^  own        s0\.C - n0: latency 4 cycles$'
    run 0 show own.toml --json
    json "j['own_links'][0] == {'port': 's0.B', 'end': 's1.A', 'latency': None, 'rate': 2} and len(j['own_links']) == 2"
    run 0 --version && out '^ulfm_topo [0-9]'
    run 0 --help && out 'show' && out 'svg'
    for shape in single tree torus boards gh hyperx fattree dragonfly; do run 0 show --help && out "$shape:"; done
}

test_routes() {
    run 0 routes mesh:4x4 0 15 && out '^n0 -> n15  7 switches$' && out '^  s3       ID-FC  to s7\.A$' && out '^  s15      ID-FE  to n15$'
    run 0 routes mesh:4x4 n3 n3 && out 'the same node'
    run 0 routes mesh:2x2 && out '^n0 -> n3  ID-FB ID-FC ID-FE$' && [[ $(wc -l <out) == 12 ]] || fail "12 routes"
    run 1 routes chain:2 0 4 --dead s0.B && out 'n0 -> n4  no way'
    run 0 routes chain:2 --dead s0.B && out '^n0 -> n4  no way$' && out '^n0 -> n1  ID-FC$'
    run 0 routes "$source/examples/topologies/triangle.toml" 0 2 && out '3 switches'
    run 0 routes torus:4x4 0 5 --json
    json "j['routes'] == [{'from': 0, 'to': 5, 'switches': ['s0', 's1', 's5'], 'ports': 'BCE'}]"
    run 0 routes mesh:3x3 --json && json "len(j['routes']) == 72 and j['routing'].startswith('dimension order')"
}

test_json() {
    run 0 show mesh:2x3 -n 7 --dead s0.B --json
    json "j['topology'] == 'mesh:2x3' and j['shape'] == 'mesh' and j['ports'] == 5 and j['links'] == 7"
    json "j['processes'] == 7 and j['dead'] == ['s0.B'] and j['cut_off'] == 0 and j['bisection'] == 3"
    json "j['switches'][0] == {'name': 's0', 'ends': {'A': None, 'B': 's1.D', 'C': 's3.A', 'D': None, 'E': 'n0'}}"
    json "j['nodes'][0] == {'port': 's0.E', 'ranks': [0, 1]} and len(j['nodes']) == 6"
    # Every key is documented; names of ports and switches are no keys of ours.
    for command in show routes; do
        run 0 "$command" mesh:2x2 --json
        python3 - "$source/docs/man/ulfm_topo.1" <<'PYTHON' || fail "keys that ulfm_topo(1) does not name"
import json, sys
page = open(sys.argv[1]).read()
def keys(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            if key != "ends":
                yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)
missing = sorted({k for k in keys(json.load(open("out"))) if k not in page})
print(*missing)
sys.exit(bool(missing))
PYTHON
    done
}

# What each picture must hold: XML that parses, a shape for every switch, port and node, and everything inside the frame.
test_pictures() {
    local topology
    printf 'name = "<&\\u2192\\uFFFF> \\"x\\""\nswitches = 2\nlinks = ["s0.A - s1.A", "s0.B - s1.B"]\nnodes = ["s0.C"]\n' >odd.toml
    printf 'switches = 1\nnodes = ["s0.A"]\n' >$'bytes\xff<.toml'
    for topology in single:1 single:5 th8 chain:1 chain:5 tree:1 tree:2 tree:3 mesh:1x1 mesh:4x4 torus:4x4 torus:1x4 \
        torus:2x2 mesh:40x40 "$source"/examples/topologies/*.toml ./odd.toml $'./bytes\xff<.toml'; do
        run 0 show "$topology" --json && mv out expected
        if [[ $topology == */* ]]; then run 0 svg "$topology"; else run 0 svg "$topology" -n 70; fi
        python3 - expected <<'PYTHON' || fail "the picture of $topology is not right"
import json, sys
import xml.etree.ElementTree as tree
net = json.load(open("expected", errors="replace"))
svg = tree.parse("out").getroot()
def classes(*words):
    return [e for e in svg.iter() if set(words) & set(e.get("class", "").split())]
used = sum(end is not None for s in net["switches"] for end in s["ends"].values())
assert len(classes("switch")) == len(net["switches"]), "switches"
assert len(classes("port")) == len(net["switches"]) * net["ports"], "ports"
assert len(classes("port")) - len(classes("free")) == used, "free ports"
assert len(classes("node")) == len(net["nodes"]), "nodes"
assert len(classes("link")) == net["links"] + len(net["nodes"]), "links"
width, height = float(svg.get("width")), float(svg.get("height"))
for e in svg.iter():
    for key, limit in (("x", width), ("cx", width), ("y", height), ("cy", height)):
        if key in e.attrib:
            assert 0 <= float(e.get(key)) <= limit, e.attrib
PYTHON
        run 0 dot "$topology"
        [[ $(grep -c ' -- ' out) == $(python3 -c 'import json; n = json.load(open("expected", errors="replace")); print(n["links"] + len(n["nodes"]))') ]] ||
            fail "dot $topology: not all links are there"
        if command -v dot >/dev/null && [[ $topology != mesh:40x40 ]]; then
            dot -Tplain out >plain 2>err || fail "Graphviz refuses the graph of $topology"
        fi
    done
    run 0 svg mesh:3x3 --dead s0.B && [[ $(grep -c 'link dead' out) == 1 ]] || fail "one dead link"
    run 0 dot mesh:3x3 --dead s1.D && [[ $(grep -c 'color=red' out) == 1 ]] || fail "one dead link"
}

test_errors() {
    refused 'a command is needed'
    refused 'TOPOLOGY is required' show
    refused 'did you mean mesh' show mash:4x4
    refused 'no size of 0' svg torus:2x0x2
    refused '1 to 16384 switches' dot mesh:200x100
    refused 'cannot be opened' show ./none.toml
    refused '"x" is no node' routes mesh:2x2 x 1
    refused 'there is no node n4; the topology has n0 to n3' routes mesh:2x2 0 4
    refused 'dead "s9.A": no switch is called s9' show mesh:2x2 --dead s9.A
    refused 'nothing is linked to that port' show mesh:2x2 --dead s0.A
    refused 'room for 24 on 12 nodes' show "$source/examples/topologies/th_pair.toml" -n 25
    refused 'Value 0 not in range' show mesh:2x2 -n 0
    refused 'json' svg mesh:2x2 --json
    printf 'switches = 2\nlinks = ["s0.A - s1.A",\n   "s1.B - s0.A"]\nnodes = ["s0.C"]\n' >twice.toml
    refused '^ulfm_topo: twice.toml:3:4: port s0.A is in use by line 2 already' show twice.toml
    printf '[\n' >broken.toml
    refused '^ulfm_topo: broken.toml:1:1: the only table' show broken.toml
    sed 's/^routes = .*/routes = ["n0 -> n2: B B C", "n1 -> n0: B B C", "n2 -> n1: B B C"]/' \
        "$source/examples/topologies/triangle.toml" >cycle.toml
    refused 'can deadlock.*s0.B -> s1.B -> s2.B -> s0.B' routes cycle.toml
    if [[ -e /dev/full ]]; then
        local code=0
        "$topo" svg mesh:4x4 >/dev/full 2>err || code=$?
        ((code == 1)) && grep -q 'cannot be written' err || fail "a full disk goes unnoticed"
    fi
}

# PNG and PDF are made by rsvg-convert from the SVG. The one here notes what it is asked for.
test_converted() {
    local form
    mkdir -p converter
    printf '#!/bin/sh\necho "$*"\nexec /bin/cat\n' >converter/rsvg-convert
    chmod +x converter/rsvg-convert
    "$topo" svg mesh:2x2 >picture.svg
    for form in png pdf; do
        PATH=$work/converter:$PATH run 0 "$form" mesh:2x2 -o "picture.$form"
        [[ $(head -n 1 "picture.$form") == "--format=$form --zoom=2" ]] || fail "$form is asked for as $(head -n 1 "picture.$form")"
        tail -n +2 "picture.$form" | cmp -s - picture.svg || fail "$form is made of something else than the SVG"
        if env PATH=/nowhere "$topo" "$form" mesh:2x2 -o none >out 2>err; then fail "$form is made without a converter"; fi
        grep -q 'needs the program rsvg-convert.*or use svg' err || fail "$form without a converter: no sentence"
        [[ ! -e none ]] || fail "$form without a converter leaves a file"
    done
}

for t in show routes json pictures converted errors; do "test_$t"; done
echo "ulfm_topo: text, routes, JSON, pictures and errors are right"
