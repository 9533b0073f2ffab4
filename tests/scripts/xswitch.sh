#!/usr/bin/env bash
# MPI programs over emulated networks of X-Switches: the same results on every shape, with a bad network, with links that
# fail, and with the engine as a process; what dies is told.
set -uo pipefail
# shellcheck source=fabric_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/fabric_common.bash"

for shape in single:5 th8 tree:3 mesh:4x4 cube:4; do
    for processes in 4 16; do
        over "trapezoid, $shape, $processes" "$answer" --transport xswitch --topology $shape -n $processes "$programs/trapezoid"
    done
    over "trapezoid, $shape, bad network" "$answer" --transport xswitch --topology $shape --fault "$bad_network" -n 4 \
        "$programs/trapezoid"
done
over "4096 switches" "$answer" --transport xswitch --topology mesh:64x64 -n 4 "$programs/trapezoid"
over "halo over small frames" '' --transport xswitch,frame=64 --topology mesh:2x2 -n 4 "$programs/halo"
ULFM_ENGINE=process over "the engine as a process" "$answer" --transport xswitch -n 8 "$programs/trapezoid"
over "all of the host are neighbours" "$answer" -genv ULFM_SHARE host --transport xswitch -n 8 "$programs/trapezoid"
# Gone from the start, so that every message has to go round it.
over "a link is down" "$answer" --transport xswitch --topology mesh:2x2 --fault 'link 0-1 down at 0s' -n 4 "$programs/trapezoid"

ULFM_STATS=1 over "statistics" "$answer" --transport xswitch --topology mesh:2x2 -n 4 "$programs/trapezoid"
grep -q 'stats xswitch: cycles [1-9].*units entered [1-9].*present 0$' err || fail statistics "no balance of the network"
grep -q 'stats xswitch port s[0-3]\.[A-E]: out frames [1-9]' err || fail statistics "no line for a port"

# Noise is found by the cards, or without check units by the protocol; the results are the same.
for check in 4 0; do
    ULFM_STATS=1 over "noise, $check check units" "$answer" --transport xswitch,check=$check --fault corrupt=0.2,seed=7 -n 4 \
        "$programs/trapezoid"
    if ((check)); then
        grep -q ' damaged [1-9]' err || fail "noise, $check check units" "no card found a frame"
        grep -q 'corrupted dropped [1-9]' err && fail "noise, $check check units" "a damaged frame has come through"
    else
        grep -q 'corrupted dropped [1-9]' err || fail "noise, $check check units" "the protocol found no frame"
        grep -q ' damaged ' err && fail "noise, $check check units" "cards say that they checked"
    fi
done
for option in arbitration=fixed routing=updown; do
    over "$option" "$answer" --transport xswitch,$option --topology mesh:2x2 -n 4 "$programs/trapezoid"
done
refused "no such arbitration" 'arbitration=circulating|fixed' --transport xswitch,arbitration=fair -n 2 "$programs/trapezoid"

# A network in two parts: whoever gives a peer up ends the job, also for those who wait for somebody else.
ULFM_GIVE_UP=1s refused "two parts" 'is given up' --transport xswitch --topology chain:3 --fault 'link 0-1 down at 0s' -n 12 "$programs/trapezoid"

refused "no such shape" 'cube:8' --transport xswitch --topology cube:8 -n 2 "$programs/trapezoid"
refused "no such option" 'frame=64' --transport xswitch,fram=3 -n 2 "$programs/trapezoid"
refused "no such link" 'there is no such link' --transport xswitch --topology mesh:2x2 --fault 'link 0-3 down at 1s' -n 2 "$programs/trapezoid"

((failures == 0)) || exit 1
