#!/usr/bin/env bash
# Hosts that have addresses of IPv6 only, by their names and by their addresses: the launcher's own connections, the
# messages, processes that are spawned, jobs that connect, an interface, a range of ports, ulfm_doctor.
set -uo pipefail
# shellcheck source=hosts_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/hosts_common.bash"
"$stage/bin/mpicc" -O1 "$here/mixed.c" -o mixed || exit 1

hosts_up 2
for k in 1 2; do
    [[ $(on_host $k ip -6 addr show dev eth0) == *fd77::$k* ]] || { echo "skipped: this kernel has no IPv6"; exit 77; }
    on_host $k ip -4 addr flush dev eth0
    cp "$hosts_folder/h$k.pid" "$hosts_folder/fd77::$k.pid"
done
printf '%s\n' "::1 localhost" "fd77::1 h1" "fd77::2 h2" >"$hosts_folder/hosts"

# listed NAME HOSTS ARGUMENT...: a job of 4 ranks on those hosts.
listed() {
    local name=$1 hosts=$2 code=0
    shift 2
    beside_host 1 "$stage/bin/ulfmrun" -hosts "$hosts" -launcher ssh -launcher-exec "$hosts_launcher" -n 4 "$@" ./mixed nodes \
        >out 2>err || code=$?
    check_run "$name" "nodes wrong 0" "$code"
}
listed "names" h1:2,h2:2
listed "addresses" fd77::1,fd77::2
listed "addresses with numbers of processes" "[fd77::1]:2,[fd77::2]:2"
listed "addresses of which one is named again" "[fd77::2]:2,fd77::1,fd77::2"
listed "an interface" h1:2,h2:2 -iface eth0
printf '%s\n' "[fd77::1]:3" "fd77::2 # the rest" >file
code=0
beside_host 1 "$stage/bin/ulfmrun" -f file -launcher ssh -launcher-exec "$hosts_launcher" -n 4 ./mixed nodes >out 2>err || code=$?
check_run "a file of addresses" "nodes wrong 0" "$code"
MPIEXEC_PORT_RANGE=40020:40029 listed "a range of ports of mpiexec's" h1:2,h2:2
on 2 "processes that are spawned" "spawn wrong 0" -n 2 -ppn 1 ./mixed spawn
on 2 "two ranks of a job that connect" "within wrong 0" -n 2 ./mixed within
code=0
beside_host 1 "$stage/bin/ulfm_doctor" -launcher-exec "$hosts_launcher" h2 >out 2>err || code=$?
check_run "ulfm_doctor" "h2 .*mpiexec .*ok .*fd77::1" "$code"
exit $((failures != 0))
