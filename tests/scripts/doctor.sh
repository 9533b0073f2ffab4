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
    'h2 +name +ok +h1 is 10.77.0.1' 'h2 +clock +ok' 'h2 +mpiexec +ok' 'h2 > h3 +data +ok +10.77.0.3 .same network as eth0.'; do
    grep -qE -- "$line" "$out" || { echo "FAIL no line like '$line'" && failures=$((failures + 1)); }
done
printf 'h1:4\n# a comment\nh2:4\n' >"$hosts_folder/hostfile"
finds "a hostfile, and only what is not well" 0 '^2 hosts' -q -f "$hosts_folder/hostfile"
(($(wc -l <"$out") == 1)) || { echo "FAIL --quiet is not" && cat "$out" && failures=$((failures + 1)); }
ULFM_PORTS=40000-40003 finds "a range of ports" 0 'h1 > h2 +data +ok' h2
ULFM_INTERFACE=docker0 finds "a bridge that both have" 1 'h1 > h2 +data +FAILED .*172.17.0.1' h2
ULFM_INTERFACE=eth7 finds "an interface that is not there" 1 'network +FAILED .*names no interface' h2
finds "a host that nobody knows" 1 'nosuch +start +FAILED' nosuch
on_host 2 ip link set eth0 mtu 1200
finds "a host with another MTU" 0 'warning .*MTU' h2
on_host 2 ip link set eth0 mtu 1500
on_host 2 sh -c 'sed "s/^10.77.0.1 h1/127.0.1.1 h1/" /etc/hosts >/dev/shm/hosts && mount --bind /dev/shm/hosts /etc/hosts'
finds "a host that takes our name for its own" 1 'h2 +name +FAILED .*that is not this host' h2
cut_cable 3
finds "a cable that is cut" 1 'h1 > h3 +data +FAILED .*(no answer|No route)' h3
exit $((failures != 0))
