#!/usr/bin/env bash
# Each receive gets the message that MPI says, whichever way it took: messages of drawn sizes, tags, communicators and kinds,
# received by calls of drawn kinds. A blocking receive may take a message from its frame, past the queues (ulfm_quick.c).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
# GCC 12 warns of MPICH's MPI_STATUSES_IGNORE.
"$mpicc" -O1 -Wno-stringop-overflow "$(dirname "${BASH_SOURCE[0]}")/matching.c" -o "$work/matching" ||
    fail "mpicc cannot compile matching.c"

# matched SEED ROUNDS OPTIONS...
matched() {
    timeout "$patience" "$stage/bin/ulfmrun" "${@:3}" -n 2 "$work/matching" "$1" "$2" >"$work/out" 2>&1 ||
        fail "seed $1, ${*:3}: exit status $?"
    grep -qx "matching: $2 rounds from seed $1" "$work/out" || fail "seed $1, ${*:3}: no result"
}

seed=${MATCHING_SEED:-$((RANDOM * 1000))}
echo "seed $seed"
matched "$seed" 200
matched "$((seed + 200))" 100 --ft
MATCHING_THREADED=1 matched "$((seed + 300))" 100
matched "$((seed + 400))" 40 --transport xswitch
matched "$((seed + 440))" 40 --fault drop=1e-3
matched "$((seed + 480))" 20 --transport dcm --topology cube:2
matched "$((seed + 500))" 20 --transport xswitch --time virtual,compute=none
