#!/usr/bin/env bash
# Fault tolerance (--ft) over hosts: a rank on another host that ends before MPI_Init, and a host whose launcher's proxy
# is killed while its rank is on the way there, do not keep the others in MPI_Init.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/hosts_common.bash"

"$stage/bin/mpicc" -O1 "$here/ft_init.c" -o "$scratch/init" || exit 1
cd "$scratch" || exit 1
hosts_up 3
failures=0
hosts_limit=90

# goes_on NAME HOW...: without rank 2, on the third host.
goes_on() {
    local name=$1
    shift
    on_hosts 3 --ft -n 3 ./init 2 "$@" >out 2>err || true
    if [[ $(grep -c '^one of 2 goes on$' out || true) == 2 ]]; then
        echo "ok   $name"
    else
        echo "FAIL $name" >&2
        cat out err >&2
        failures=$((failures + 1))
    fi
}

goes_on "a rank that is killed" kill
goes_on "a rank that ends with 0" exit 0
goes_on "a rank that ends with 3" exit 3
(
    for _ in $(seq 2000); do
        [[ -e waits ]] && break
        sleep 0.05
    done
    on_host 3 pkill -KILL -f hydra_pmi_proxy
) &
killer=$!
goes_on "a proxy that is killed" wait "$scratch/waits"
wait "$killer" || { echo "FAIL there was no proxy to kill" >&2; failures=1; }
# Processes without MPI pass the barrier of the others when they end: a proxy whose processes have asked for nothing hears
# of it, too.
good=0
for _ in $(seq 20); do
    # shellcheck disable=SC2016
    on_hosts 2 --ft -n 4 sh -c 'echo "hello $PMI_RANK"' >out 2>err && [[ $(grep -c '^hello [0-3]$' out) == 4 ]] && ! grep -q . err &&
        good=$((good + 1))
done
if ((good == 20)); then
    echo "ok   programs without MPI"
else
    echo "FAIL programs without MPI: $good of 20 jobs end well" >&2
    cat out err >&2
    failures=$((failures + 1))
fi
exit $((failures != 0))
