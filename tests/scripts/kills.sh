#!/usr/bin/env bash
# A few rounds of each campaign of kills (tests/chaos/kills.py): on this host, and on two hosts, which are namespaces, where
# a rank, a proxy of the launcher, mpiexec, or all that a host has is killed.
#   kills.sh [ROUNDS [SEED]]
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
kills=$(dirname "${BASH_SOURCE[0]}")/../chaos/kills.py
rounds=${1:-6} seed=${2:-2000}

campaign() { python3 "$kills" --stage "$stage" --kills "$rounds" --first "$seed" --patience "$patience" "$@" 2>"$work/warnings"; }

campaign --log "$work/here"
"$(dirname "${BASH_SOURCE[0]}")/../chaos/on_hosts.sh" 1 --version >"$work/out" 2>&1 || {
    (($? == 77)) || fail "ulfmrun does not start on a host"
    cat "$work/out"
    exit 0
}
campaign --only hosts=2 --log "$work/hosts"
campaign --only hosts=2,who=proxy --log "$work/proxies" --kills 2
