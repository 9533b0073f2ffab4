#!/usr/bin/env bash
# A job that has connected to another one, which dies: receives and probes from anybody end with an error, also without --ft.
set -euo pipefail
# shellcheck source=mpi_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
compile left_alone <"$(dirname "${BASH_SOURCE[0]}")/left_alone.c"

for transport in direct tcp; do
    for how in receive probe mprobe wait iprobe; do
        rm -f "$work/at" "$work/at.port"
        timeout "$patience" "$stage/bin/ulfmrun" --transport $transport -n 1 "$work/left_alone" serve $how "$work/at" \
            </dev/null >"$work/out" 2>&1 &
        server=$!
        until [[ -s $work/at.port ]] || ! kill -0 $server 2>/dev/null; do sleep 0.05; done
        timeout "$patience" "$stage/bin/ulfmrun" --transport $transport -n 1 "$work/left_alone" connect $how "$work/at.port" \
            </dev/null >"$work/client" 2>&1 || true
        wait $server || fail "$how, $transport: the job that is left ends badly"
        grep -qx "$how: got 42, told 1 1" "$work/out" || fail "$how, $transport: it is not told"
    done
done
echo 'who is left alone is told'
