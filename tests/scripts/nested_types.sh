#!/usr/bin/env bash
# Types that are made of made types hold the elements that they should, in their order, whatever is done with them.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
"$mpicc" -O1 -Wno-stringop-overflow "$(dirname "${BASH_SOURCE[0]}")/nested_types.c" -o "$work/nested_types" ||
    fail "mpicc cannot compile nested_types.c"

# try RANKS SEED ROUNDS OPTIONS...
try() {
    timeout -k 10 "$patience" "$stage/bin/ulfmrun" "${@:4}" -n "$1" "$work/nested_types" "$2" "$3" >"$work/out" 2>&1 ||
        fail "seed $2, ${*:4}: exit status $?"
    grep "^nested_types: .* from seed $2, " "$work/out" || fail "seed $2, ${*:4}: no result"
}

seed=${NESTED_SEED:-$((RANDOM * 10000))}
echo "seed $seed"
try 1 "$seed" 2000
try 2 "$((seed + 2000))" 500
try 2 "$((seed + 2500))" 300 --transport tcp
try 2 "$((seed + 2800))" 100 --transport xswitch
echo "types that are made of made types hold their elements"
