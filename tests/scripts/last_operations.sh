#!/usr/bin/env bash
# The last short operation of an epoch of one-sided communication waits for the call that ends it: nobody waits in vain,
# operations keep their order, locks are locks, and there are fewer messages.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
"$mpicc" -O1 "$(dirname "${BASH_SOURCE[0]}")/last_operations.c" -o "$work/last" || fail "mpicc cannot compile last_operations.c"

# right WHAT TIMES RANKS OPTIONS...
right() { says_right "$1" "$1, ${*:3}" -n "$3" "${@:4}" "$work/last" "$1" "$2"; }
for options in "--transport tcp" "--transport direct" "--transport xswitch" "--ft --transport tcp"; do
    read -ra words <<<"$options"
    right answers 60 2 "${words[@]}"
    right order 60 2 "${words[@]}"
    right mutex 40 3 "${words[@]}"
    right contention 20 5 "${words[@]}"
    right nothing 40 3 "${words[@]}"
done
for way in 0 1; do
    for what in order mutex contention nothing; do
        right $what 40 3 --transport tcp -genv MPIR_CVAR_CH3_RMA_DELAY_ISSUING_FOR_PIGGYBACKING $way
    done
done
# A target that has no room for what waits for its lock, or for its data.
for way in 0 1 2; do
    words=(--transport tcp -genv MPIR_CVAR_CH3_RMA_DELAY_ISSUING_FOR_PIGGYBACKING "$way")
    right contention 10 6 "${words[@]}" -genv MPIR_CVAR_CH3_RMA_TARGET_LOCK_DATA_BYTES 1000
    right contention 10 6 "${words[@]}" -genv MPIR_CVAR_CH3_RMA_TARGET_LOCK_ENTRY_WIN_POOL_SIZE 1 \
        -genv MPIR_CVAR_CH3_RMA_TARGET_LOCK_ENTRY_GLOBAL_POOL_SIZE 1
done

# counted WAY LEAST MOST: rank 0 sends so many messages for 500 puts with a lock, and 500 with a flush, into created memory,
# and 1,000 for as many locks of allocated memory, which is shared.
counted() {
    local sent
    ULFM_STATS=1 right epochs 500 2 --transport tcp -genv MPIR_CVAR_CH3_RMA_DELAY_ISSUING_FOR_PIGGYBACKING "$1"
    sent=$(sed -n 's/.*rank 0 transport tcp .*: sent \([0-9]*\) messages.*/\1/p' "$work/out")
    ((sent >= $2 && sent <= $3)) || fail "with the value $1 rank 0 sends $sent messages, and not $2 to $3"
}
# Each of the 500 puts with a lock goes by itself, one message more, when its lock is granted before it is made.
counted 0 3000 3600
counted 1 2000 2100
counted 2 2000 2100
