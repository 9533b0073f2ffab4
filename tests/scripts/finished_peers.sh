#!/usr/bin/env bash
# A rank to which a message could not go, because it has closed its port in MPI_Finalize and still runs, needs no goodbye:
# MPI_Finalize of the sender failed.
set -euo pipefail
# shellcheck source=mpi_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
"$mpicc" -O1 "$(dirname "${BASH_SOURCE[0]}")/finished_peers.c" -o "$work/finished_peers" -lpthread || fail "mpicc fails"

for over in '--transport direct' '--ft --transport direct' '--ft --transport xswitch --topology th8' '--transport tcp' '--ft --transport ofi'; do
    status=0
    rm -rf "$work/marks"
    mkdir "$work/marks"
    # shellcheck disable=SC2086
    ULFM_STATS=1 timeout "$patience" "$stage/bin/ulfmrun" $over -n 2 "$work/finished_peers" "$work/marks" >"$work/out" 2>&1 || status=$?
    ((status != 77)) || { echo "/proc/self/task/*/syscall cannot be read here" && exit 77; }
    grep -qx right "$work/out" && ((status == 0)) || fail "$over: exit status $status"
    echo "ok   $over"
done
