#!/usr/bin/env bash
# A few rounds of each campaign of kills: of MPI jobs (tests/chaos/kills.py) on this host, and on two hosts, which are
# namespaces, where a rank, a proxy of the launcher, mpiexec, or all that a host has is killed; and of host programs of NX/2
# with their nodes (tests/chaos/kill_cubes.py).
#   kills.sh [ROUNDS [SEED]]
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
kills=$(dirname "${BASH_SOURCE[0]}")/../chaos/kills.py
rounds=${1:-6} seed=${2:-2000}

campaign() { python3 "$kills" --stage "$stage" --kills "$rounds" --first "$seed" --patience "$patience" "$@" 2>"$work/warnings"; }

campaign --log "$work/here"
if [[ -x $stage/bin/nxhost ]]; then
    python3 "${kills%/*}/kill_cubes.py" --stage "$stage" --kills $((rounds * 3)) --first "$seed" --patience "$patience" \
        --log "$work/cubes"
fi
"$(dirname "${BASH_SOURCE[0]}")/../chaos/on_hosts.sh" 1 --version >"$work/out" 2>&1 || {
    (($? == 77)) || fail "ulfmrun does not start on a host"
    cat "$work/out"
    exit 0
}
campaign --only hosts=2 --log "$work/hosts"
campaign --only hosts=2,who=proxy --log "$work/proxies" --kills 2
