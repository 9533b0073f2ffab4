#!/usr/bin/env bash
# What types of several basic types become in external32, and files in it by blocking, nonblocking, collective, shared, ordered and split calls.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
for program in external32 external32_types; do compile $program <"$(dirname "${BASH_SOURCE[0]}")/$program.c"; done
for ranks in 1 2 4; do
    says_right external32 "$ranks ranks" -n "$ranks" "$work/external32" "$work/file"
    says_right external32_types "$ranks ranks" -n "$ranks" "$work/external32_types" "$work/file"
done
echo "types and files in external32 are right"
