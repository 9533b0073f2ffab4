#!/usr/bin/env bash
# Where types that MPI lays out have their elements, and what writes with gaps leave out.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
compile layouts <"$(dirname "${BASH_SOURCE[0]}")/layouts.c"
says_right layouts "arrays, elements without an extent, gaps" -n 1 "$work/layouts" "$work/file"
echo "types have their elements where MPI says"
