#!/usr/bin/env bash
# Every MPI example under ulfmrun with 1, 2, 3 and 8 processes, each checking itself.
set -uo pipefail
: "${ULFM_STAGE:?stage folder}" "${ULFM_SOURCE:?source folder}"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$ULFM_SOURCE/examples/build" "$ULFM_STAGE" "$scratch/bin" || exit 1

failures=0
for source in "$ULFM_SOURCE"/examples/mpi/*.c; do
    name=$(basename "$source" .c)
    for n in 1 2 3 8; do
        timeout -k 10 120 "$ULFM_STAGE/bin/ulfmrun" -n "$n" "$scratch/bin/$name" --check \
            </dev/null >"$scratch/out" 2>&1
        code=$?
        if ((code == 0)) && grep -q '^check: ok' "$scratch/out"; then
            echo "ok   $name, $n processes"
        else
            echo "FAIL $name, $n processes: exit code $code"
            tail -n 20 "$scratch/out" | sed 's/^/     | /'
            failures=$((failures + 1))
        fi
    done
done
echo "$failures failures"
exit $((failures > 0))
