#!/usr/bin/env bash
# MPI and NX/2 programs over the emulated point design: the same results on every generalized hypercube, under every
# policy, with both kinds of switching, with a bad network and with lines and cards that die; what cannot be is told.
set -uo pipefail
# shellcheck source=nx2_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/nx2_common.bash"
ulfmrun=$stage/bin/ulfmrun
mpi=$stage/share/ulfm/examples/bin
[[ -x $mpi/trapezoid ]] || exit 77
unset "${!ULFM_@}"
answer=9.000004291534424e\\+00
bad_network='drop=1e-2,corrupt=1e-3,duplicate=1e-3,reorder=1e-2,seed=7'

over() {
    local what=$1 pattern=$2
    shift 2
    ran "$what" 0 "$pattern" "$ulfmrun" --transport "$@"
}
for shape in gh:2x2x2 gh:2x4x1 gh:2x4x8 gh:1x8x1 gh:3x2x2; do
    over "trapezoid, $shape" "$answer" pointdesign --topology "$shape" -n 8 "$mpi/trapezoid"
    over "halo, $shape" '' pointdesign --topology "$shape" -n 4 "$mpi/halo"
done
over 'trapezoid, bad network' "$answer" pointdesign --topology gh:2x2x2 --fault "$bad_network" -n 4 "$mpi/trapezoid"
over '12,800 processors, 16 processes' "$answer" pointdesign --topology gh:2x40x8 -n 16 "$mpi/trapezoid"
for policy in farthest longest history through; do
    over "halo, $policy first, wormhole" '' "pointdesign,priority=$policy,switching=wormhole,flits=2,buffer=1,queues=3" \
        --topology gh:2x3x2 -n 9 "$mpi/halo"
done
ran 'the engine as a process' 0 "$answer" env ULFM_ENGINE=process "$ulfmrun" --transport pointdesign -n 8 "$mpi/trapezoid"
over 'a line that dies is avoided' "$answer" pointdesign --topology gh:2x3x1 --fault 'link 0-1 down at 0s' -n 9 \
    "$mpi/trapezoid"
over 'lines that come back' "$answer" pointdesign --topology gh:1x2x1 --fault 'link 0-1 down at 0s for 1s' -n 2 \
    "$mpi/trapezoid"
ran 'a line that does not' 1 'has acknowledged nothing for 1.0 s and is given up' \
    env ULFM_GIVE_UP=1s "$ulfmrun" --transport pointdesign --topology gh:1x2x1 --fault 'link 0-1 down at 0s' -n 2 \
    "$mpi/trapezoid"

ran statistics 0 "$answer" env ULFM_STATS=1 "$ulfmrun" --transport pointdesign --topology gh:2x2x1 -n 4 "$mpi/trapezoid"
for line in 'pointdesign: cycles [1-9].*entered [1-9]' 'card c[01]_[01]: arrived [1-9]' 'port c0_0.p0 0: unicasts [1-9]' \
    'line c[01]_[01]-c[01]_[01]: messages [1-9]' 'queue c[01]_[01]-c[01]_[01] p0: sent [1-9]'; do
    grep -q "stats pointdesign${line#pointdesign}" out || grep -q "stats pointdesign $line" out ||
        { echo "FAIL no counter: $line" && failures=$((failures + 1)); }
done

ran 'no generalized hypercube' 2 'write gh:NxKxP' "$ulfmrun" --transport pointdesign --topology mesh:2x2 -n 2 "$mpi/trapezoid"
ran 'two sizes' 2 'as in gh:2x4x8' "$ulfmrun" --transport pointdesign --topology gh:2x4 -n 2 "$mpi/trapezoid"
ran 'too many processors' 2 '1 to 8 processors' "$ulfmrun" --transport pointdesign --topology gh:2x4x9 -n 2 "$mpi/trapezoid"
ran 'another transport' 2 'take --transport pointdesign' "$ulfmrun" --transport xswitch --topology gh:2x2x2 -n 2 \
    "$mpi/trapezoid"
ran 'no such policy' 2 'priority=farthest' "$ulfmrun" --transport pointdesign,priority=shortest -n 2 "$mpi/trapezoid"
ran 'no such line' 2 'there is no such link' \
    "$ulfmrun" --transport pointdesign --topology gh:2x2x2 --fault 'link 0-3 down at 1s' -n 2 "$mpi/trapezoid"
ran 'a picture' 0 'cards .*16 in 2 dimensions of 4, with 8 processors each; 2 ports and 7 queues' \
    "$stage/bin/ulfm_topo" show gh:2x4x8 -n 16
ran 'routes' 0 'n0 -> n1  ID-FB ID-FE' "$stage/bin/ulfm_topo" routes gh:2x2x1
finish
