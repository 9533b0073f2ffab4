#!/usr/bin/env bash
# Files in the representation external32 by blocking, nonblocking, collective, shared, ordered and split calls.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
compile external32 <"$(dirname "${BASH_SOURCE[0]}")/external32.c"
for ranks in 1 2 4; do
    says_right external32 "$ranks ranks" -n "$ranks" "$work/external32" "$work/file"
done
echo "files in external32 are right"
