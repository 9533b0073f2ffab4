#!/usr/bin/env bash
# ulfm_doctor on hosts that are as they should be, and on hosts that are not: a line for each finding, and the exit status.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../hosts/hosts.bash
. "$here/../hosts/hosts.bash"
: "${ULFM_STAGE:?stage folder}"
stage=$(cd "$ULFM_STAGE" && pwd -P) || exit 1
unset "${!ULFM_@}"
out=$hosts_folder/out
failures=0

# finds NAME STATUS PATTERN ARGUMENT...: the doctor on h1 ends with that status and prints a line that matches.
finds() {
    local name=$1 want=$2 pattern=$3 code=0
    shift 3
    beside_host 1 "$stage/bin/ulfm_doctor" -launcher-exec "$hosts_launcher" "$@" >"$out" 2>&1 || code=$?
    if ((code == want)) && grep -qE -- "$pattern" "$out"; then
        echo "ok   $name"
    else
        echo "FAIL $name: status $code, wanted $want and a line like '$pattern'"
        sed 's/^/     | /' "$out"
        failures=$((failures + 1))
    fi
}

hosts_up 3
finds "three hosts that are well" 0 '^3 hosts, .* jobs can run here' -hosts h2,h3
for line in 'h2 +start +ok' 'h2 +version +ok +ULFM' 'h2 +network +ok +transport tcp' 'h2 +limits +(ok|warning)' \
    'h2 +name +ok +h1 is 10.77.0.1' 'h2 +clock +ok' 'h2 +mpiexec +ok' 'h2 > h3 +data +ok +(10.77.0.3|fd77::3) .same network as eth0.'; do
    grep -qE -- "$line" "$out" || { echo "FAIL no line like '$line'" && failures=$((failures + 1)); }
done
printf 'h1:4\n# a comment\nh2:4\n' >"$hosts_folder/hostfile"
finds "a hostfile, and only what is not well" 0 '^2 hosts' -q -f "$hosts_folder/hostfile"
(($(wc -l <"$out") == 1)) || { echo "FAIL --quiet is not" && cat "$out" && failures=$((failures + 1)); }
printf 'h2 slots=2\n' >"$hosts_folder/hostfile"
finds "a hostfile that mpiexec refuses" 2 'mpiexec takes binding= .*found "slots=2".*h2:2' -f "$hosts_folder/hostfile"
printf 'h2 user=nobody99\n' >"$hosts_folder/hostfile"
finds "a hostfile with a user" 0 'nobody99@h2 +start +ok' -f "$hosts_folder/hostfile"
ULFM_TRANSPORT=direct finds "a transport within a host" 1 'h2 +network +FAILED .*direct carries nothing between hosts' h2
ULFM_TRANSPORT=nosuch finds "a transport that is none" 1 'h2 +network +FAILED .*nosuch' h2
ULFM_TRANSPORT=xswitch finds "an emulated interconnect" 0 'h2 +network +ok' h2
ULFM_PORTS=40000-40003 finds "a range of ports" 0 'h1 > h2 +data +ok' h2
ULFM_INTERFACE=docker0 finds "a bridge that both have" 1 'h1 > h2 +data +FAILED .*172.17.0.1' h2
ULFM_INTERFACE=eth7 finds "an interface that is not there" 1 'network +FAILED .*names no interface' h2
ULFM_TRANSPORT=ofi finds "libfabric, if it is asked for" 0 'h2 +network +ok +transport ofi by (net|tcp);' h2
ULFM_TRANSPORT=mux,provider=nosuch finds "a provider that is not there" 1 'h2 +network +FAILED .*no provider nosuch' h2
ULFM_TRANSPORT=ofi FI_PROVIDER=psm3 finds "a variable that hides the providers" 1 'h2 +network +FAILED .*FI_PROVIDER' h2
# hides FILE STATUS PATTERN: it cannot be had on host 2, which makes a difference.
hides() {
    on_host 2 mount --bind /dev/null "$stage/$1" || exit 1
    finds "no $1" "$2" "$3" h2
    on_host 2 umount "$stage/$1"
}
hides lib/libmpi.so.12 1 'h2 +version +FAILED .*no lib/libmpi.so.12'
hides bin/hydra_pmi_proxy 1 'h2 +version +FAILED .*hydra_pmi_proxy.*copy the whole installation'
hides bin/ulfm_hostd 0 'h2 +version +warning .*ulfm_hostd.*emulated'
# takes_port K NUMBER: something else listens there on host K.
takes_port() {
    on_host "$1" python3 -c 'import socket, sys, time
s = socket.create_server(("", int(sys.argv[1])))
print("up", flush=True)
time.sleep(10000)' "$2" >"$hosts_folder/taken.$2" &
    until grep -qs up "$hosts_folder/taken.$2"; do
        kill -0 $! || exit 1
        sleep 0.02
    done
}
takes_port 2 40100
ULFM_PORTS=40100-40100 finds "all of a range of ports is taken" 1 'h2 +network +FAILED .*has 1 port, and none is free here' h2
takes_port 1 40200
MPIEXEC_PORT_RANGE=40200:40200 finds "all of mpiexec's range of ports is taken" 1 'h1 +mpiexec +FAILED .*MPIEXEC_PORT_RANGE' h2

# prints_first TEXT: what the launcher prints on the other host before the agent answers.
prints_first() {
    printf '#!/bin/bash\necho %q\nexec %q "$@"\n' "$1" "$hosts_launcher" >"$hosts_folder/prints"
    chmod +x "$hosts_folder/prints"
}
prints_first 'ulfm_doctor: {"id": 0, "now": 1.5}'
hosts_launcher=$hosts_folder/prints finds "an answer to another question" 0 '^2 hosts' h2
for answer in '{"host": "h2"}' '{"id": 1, "host": "h2"}'; do
    prints_first "ulfm_doctor: $answer"
    hosts_launcher=$hosts_folder/prints finds "an agent of another version, $answer" 1 'h2 +start +FAILED .*another version' h2
done
printf '#!/bin/bash\nprintf "no end of line"\nexec %q "$@"\n' "$hosts_launcher" >"$hosts_folder/prints"
hosts_launcher=$hosts_folder/prints finds "a shell that prints without an end of line" 0 '^2 hosts' h2
printf '#!/bin/bash\nexit 0\n' >"$hosts_folder/prints"
hosts_launcher=$hosts_folder/prints finds "a shell that ends" 1 'h2 +start +FAILED .*echo hello' h2
(
    mkdir "$hosts_folder/gone" && cd "$hosts_folder/gone" && rmdir ../gone
    finds "a folder that is gone" 2 'the current folder has no path' h2
    exit $((failures != 0))
) || failures=$((failures + 1))
(
    mkdir -p "$hosts_folder/some/folder" && on_host 2 mount -t tmpfs none "$hosts_folder/some" && cd "$hosts_folder/some/folder"
    finds "a folder that the other host has not" 1 'h2 +folder +FAILED .*folder is not there' h2
    exit $((failures != 0))
) || failures=$((failures + 1))
if on_host 2 sh -c 'echo 1 >/proc/sys/net/ipv6/bindv6only' 2>/dev/null; then
    finds "a host whose listeners are of one family" 0 'h1 > h2 +data +ok' h2
    on_host 2 sh -c 'echo 0 >/proc/sys/net/ipv6/bindv6only'
fi
finds "a host that nobody knows" 1 'nosuch +start +FAILED' nosuch
on_host 2 ip link set eth0 mtu 1300
finds "a host with another MTU" 0 'warning .*MTU' h2
on_host 2 ip link set eth0 mtu 1500
on_host 2 sh -c 'sed "s/^10.77.0.1 h1/127.0.1.1 h1/" /etc/hosts >/dev/shm/hosts && mount --bind /dev/shm/hosts /etc/hosts'
finds "a host that takes our name for its own" 1 'h2 +name +FAILED .*that is not this host' h2
on_host 2 sh -c 'echo fd77::1 h1 >/dev/shm/v6 && mount --bind /dev/shm/v6 /etc/hosts'
finds "a host that knows an IPv6 address of ours only" 0 'h2 +name +ok .*fd77::1' h2
grep -qE 'h2 +mpiexec +ok .*fd77::1' "$out" || { echo "FAIL mpiexec over IPv6" && cat "$out" && failures=$((failures + 1)); }
cut_cable 3
finds "a cable that is cut" 1 'h1 > h3 +data +FAILED .*(no answer|No route)' h3
exit $((failures != 0))
