#!/usr/bin/env bash
# Datatypes with bounds where no data are, with blocks in any order, and of any depth (memory_types.c): files, one-sided
# operations and messages.
set -euo pipefail
# shellcheck source=mpi_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
compile memory_types <"$(dirname "${BASH_SOURCE[0]}")/memory_types.c"
for transport in direct tcp xswitch; do
    timeout -k 5 "$patience" "$stage/bin/ulfmrun" --transport "$transport" -n 2 "$work/memory_types" "$work/file" </dev/null >"$work/out" 2>&1 ||
        fail "$transport: exit status $?"
    grep -qx 'types: wrong 0' "$work/out" || fail "$transport: no result"
    echo "ok   $transport"
done
