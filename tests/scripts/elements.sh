#!/usr/bin/env bash
# MPI_Get_elements of drawn types: structures of different types, pairs, and what is made of them.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
"$mpicc" -O1 "$(dirname "${BASH_SOURCE[0]}")/elements.c" -o "$work/elements" || fail "mpicc cannot compile elements.c"
for seed in 1 2 3; do
    timeout -k 5 "$patience" "$work/elements" $seed 400 >"$work/out" 2>&1 || fail "seed $seed: exit status $?"
    grep -qx 'elements: right' "$work/out" || fail "seed $seed: no result"
    echo "ok   seed $seed"
done
