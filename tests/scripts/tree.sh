#!/usr/bin/env bash
# A group opened as a tree: each member gets every message whole, once and in order, over transports whose network does
# not copy messages, with a bad network, in virtual time, and when members on the way die or take long; the root sends few.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
ulfmrun=$stage/bin/ulfmrun
unset "${!ULFM_@}"
"${CC:-gcc}" -std=c17 -O1 -Wall -Werror "$(dirname "${BASH_SOURCE[0]}")/tree.c" -o "$work/tree" -I"$stage/include" -L"$stage/lib" -lulfm -Wl,-rpath,"$stage/lib"

# all RANKS PATTERN OPTIONS... -- ARGUMENTS...
all() {
    local ranks=$1 pattern=$2 options=()
    shift 2
    while [[ $1 != -- ]]; do options+=("$1") && shift; done
    shift
    ULFM_STATS=1 timeout "$patience" "$ulfmrun" "${options[@]}" -n "$ranks" "$work/tree" "$@" >"$work/out" 2>"$work/stats" ||
        { cat "$work/stats" >>"$work/out" && fail "$ranks ranks, ${options[*]}, $*: exit status $?"; }
    grep -qx "$pattern" "$work/out" || fail "$ranks ranks, ${options[*]}, $*: not all have all"
}
# sent RANK: frames or messages that it has sent to one member of a group
sent() { sed -nE "s/.* rank $1 port 7 multicast: .* ([0-9]+) one by one/\1/p" "$work/stats"; }

for network in 'xswitch --topology mesh:4x4' 'dcm --topology cube:3' pcie ideal ofi; do
    read -ra options <<<"$network"
    all 8 '7 of 7 have all' --transport "${options[@]}" -- 100 0 0
    [[ $(sent 0) == 300 ]] || fail "$network: the root has sent $(sent 0) messages, and 3 for each of 100 are expected"
    [[ $(sent 1) == 200 && $(sent 5) == 100 ]] || fail "$network: members on the way have sent $(sent 1) and $(sent 5)"
done
all 2 '1 of 1 have all' --transport xswitch -- 20 0 0
all 3 '2 of 2 have all' --transport xswitch -- 20 0 0
all 6 '5 of 5 have all' --transport ofi --fault 'drop=1e-2,corrupt=1e-3,duplicate=1e-3,reorder=1e-2,seed=3' -- 60 0 0
all 8 '7 of 7 have all' --transport xswitch --topology mesh:4x4 --time virtual -- 60 0 0
all 6 '5 of 5 have all' --transport direct -- 60 0 0
all 6 '5 of 5 have all' --transport pointdesign --topology gh:2x2x2 -- 60 0 0
all 6 '5 of 5 have all' --transport pcie -- 100 1 0
# Without rank 1 its three members hear from rank 0; what it had not sent on is lost for them.
timeout "$patience" "$ulfmrun" --transport xswitch --topology mesh:4x4 --ft -n 8 "$work/tree" 100 0 1 >"$work/out" 2>"$work/stats" || true
grep -qx '[3-6] of 7 have all' "$work/out" || { cat "$work/stats" >>"$work/out" && fail 'the members behind one that died'; }
echo 'trees bring each message to each member once and in order, over every transport'
