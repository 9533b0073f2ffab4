#!/usr/bin/env bash
# The port examples build against the installed library as a user would build them, run, and find everything as sent.
set -euo pipefail
stage=${ULFM_STAGE:?the folder ULFM is installed in}
source=${ULFM_SOURCE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

command -v pkg-config >/dev/null || { echo "skipped: no pkg-config" && exit 77; }
[[ -e $stage/bin/mpiexec ]] || { echo "skipped: no mpiexec in the stage" && exit 77; }
"$source/examples/ports/build" "$work" >"$work/log" 2>&1 || { cat "$work/log" && exit 1; }

# run SAYS PROCESSES PROGRAM: it must succeed and say that.
run() {
    local said
    said=$(timeout 120 "$stage/bin/ulfmrun" -n "$2" "$work/$3" 2>&1) || { echo "$3 failed: $said" && exit 1; }
    grep -q -- "$1" <<<"$said" || { echo "$3 says: $said" && exit 1; }
}

for program in pingpong pingpong_c; do
    run 'every one as sent' 2 $program
    ! "$work/$program" 2>"$work/log" || { echo "$program alone succeeds" && exit 1; }
    grep -q 'needs 2 processes' "$work/log" || { echo "$program alone says:" && cat "$work/log" && exit 1; }
done
for program in producer_consumer producer_consumer_c; do
    run '3000 items from 1 producers, all whole and in order' 2 $program
    run '9000 items from 3 producers, all whole and in order' 4 $program
    # Small lanes and one slot: everything waits for everything.
    ULFM_LANE_BYTES=8K ULFM_LANE_CELLS=8 ULFM_LANE_AFTER=0 run 'in order' 3 $program
done
for transport in direct pointdesign xswitch ofi; do
    export ULFM_TRANSPORT=$transport
    run '600 messages from 3 senders, all whole and in order at each receiver' 4 multicast
    run '500 messages to each of 3 receivers, 3 of them have all as sent' 4 multicast_c
done
unset ULFM_TRANSPORT
echo "the port examples build, run and check what they receive"
