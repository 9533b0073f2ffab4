#!/usr/bin/env bash
# Where mpiexec binds ranks and their memory: what has no effect is told, and memory nodes are those that are asked for.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
[[ -r /proc/self/numa_maps ]] || { echo "this kernel has no /proc/self/numa_maps" && exit 77; }

# told STATUS PATTERN OPTIONS...: what mpiexec says beside the first line of a rank's numa_maps. An empty pattern: nothing.
told() {
    local status=0
    timeout -k 5 "$patience" "$stage/bin/mpiexec" "${@:3}" -n 1 head -1 /proc/self/numa_maps >"$work/maps" 2>"$work/out" || status=$?
    ((status == $1)) || fail "${*:3}: exit status $status"
    if [[ -z $2 ]]; then
        [[ ! -s $work/out ]] || fail "${*:3}: says something"
    else
        grep -q -e "$2" "$work/out" || fail "${*:3}: does not say $2"
    fi
    echo "ok   ${*:3}"
}
# policy PATTERN OPTIONS...: the rank's memory is bound so, and nothing is said.
policy() {
    told 0 '' "${@:2}"
    grep -Eq "^[0-9a-f]+ $1 " "$work/maps" || fail "${*:2}: memory is not bound as $1: $(cat "$work/maps")"
}
policy default
policy default -bind-to core
policy default -bind-to core -map-by core
policy default -bind-to core -membind none
policy '(bind|prefer \(many\)|prefer):0' -bind-to core -membind bind:0
policy '(bind|prefer \(many\)|prefer):0' -bind-to core -membind bind:
policy 'interleave:0' -bind-to rr -membind interleave:0
told 0 '-map-by core has no effect without -bind-to' -map-by core
told 0 '-map-by core has no effect without -bind-to' -bind-to none -map-by core
told 0 '-map-by core has no effect beside' -bind-to rr -map-by core
told 0 '-membind bind:0 has no effect without -bind-to' -membind bind:0
told 1 'needs memory nodes of this host (0.*); found "9999"' -bind-to core -membind bind:9999
told 1 'needs memory nodes of this host (0.*); found "x"' -bind-to rr -membind bind:x
told 1 'needs none, firsttouch, .*; found "near"' -bind-to core -membind near
