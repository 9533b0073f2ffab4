#!/usr/bin/env bash
# Messages in the memory that both directions of a connection share: what was sent comes, whatever is held, and with any number
# of slots; the statistics say how many frames lay there.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
# GCC 12 warns of MPICH's MPI_STATUSES_IGNORE.
"$mpicc" -O1 -Wno-stringop-overflow "$(dirname "${BASH_SOURCE[0]}")/exchange.c" -o "$work/exchange" ||
    fail "mpicc cannot compile exchange.c"

# exchanges SEED ROUNDS RANKS OPTION...
exchanges() {
    ULFM_STATS=1 timeout "$patience" "$stage/bin/ulfmrun" "${@:4}" -n "$3" "$work/exchange" "$1" "$2" >"$work/out" 2>&1 ||
        fail "seed $1, ${*:3}: exit status $?"
    grep -qx "exchange: $2 rounds from seed $1" "$work/out" || fail "seed $1, ${*:3}: no result"
}
# in_slots [COMMON]: ranks 0 and 1 say that frames lay in slots, and that so many lay in the common cell: 0 unless told.
in_slots() {
    local rank
    for rank in 0 1; do
        grep -Eqx "ulfm: stats rank $rank port [0-9]+ exchange: [1-9][0-9]* of the frames in lanes, common cells: ${1:-[0-9]+} of both directions" \
            "$work/out" || fail "rank $rank: no frame in a slot, or not that many in the common cell"
    done
}

seed=${EXCHANGE_SEED:-$((RANDOM * 1000))}
echo "seed $seed"
exchanges "$seed" 60 2
in_slots '[1-9][0-9]*'
for setting in ULFM_EXCHANGE=1 ULFM_EXCHANGE=32 ULFM_CONTROL=unix ULFM_LANE_CELLS=8 ULFM_FRAME=3000 ULFM_EAGER=0 \
    ULFM_ONE_COPY=off EXCHANGE_THREADED=1; do
    export "${setting?}"
    exchanges "$((seed + 100))" 40 2
    in_slots
    unset "${setting%%=*}"
done
ULFM_EXCHANGE=0 exchanges "$((seed + 200))" 20 2
! grep -q "exchange: [0-9]* of the frames" "$work/out" || fail "slots that nobody wants"
exchanges "$((seed + 300))" 40 2 --ft
in_slots
ULFM_LANE_AFTER=8 exchanges "$((seed + 400))" 20 4
in_slots
exchanges "$((seed + 500))" 10 2 --fault drop=1e-3
exchanges "$((seed + 520))" 10 3 --transport xswitch
