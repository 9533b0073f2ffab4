#!/usr/bin/env bash
# One-sided communication does what it must in epochs of every kind, one behind the other, with windows of every kind, by
# messages, through shared memory and by copies of the kernel, over each kind of network.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
"$mpicc" -O1 -std=gnu11 "$(dirname "${BASH_SOURCE[0]}")/epochs.c" -o "$work/epochs" || fail "mpicc cannot compile epochs.c"

# right KIND SEED STEPS RANKS OPTIONS...
right() { says_right epochs "$1 $2 $3 with $4 ranks, ${*:5}" "${@:5}" -n "$4" "$work/epochs" "$1" "$2" "$3"; }

seed=${EPOCHS_SEED:-$((RANDOM * 1000))}
echo "seed $seed"
for kind in create allocate dynamic; do
    right $kind "$((seed + 1))" 100 2
    right $kind "$((seed + 2))" 40 3
    right $kind "$((seed + 3))" 40 4
    ULFM_ONE_COPY=off right $kind "$((seed + 4))" 60 2
    right $kind "$((seed + 5))" 15 3 --transport xswitch
done
right create "$((seed + 6))" 40 3 --ft
right create "$((seed + 7))" 40 3 --fault drop=1e-3
right create "$((seed + 8))" 15 4 --transport dcm --topology cube:2
right create "$((seed + 9))" 10 3 --transport xswitch --time virtual,compute=none

echo "one-sided epochs are right: $((3 * 5 + 4)) programs"
