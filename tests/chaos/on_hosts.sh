#!/usr/bin/env bash
# on_hosts.sh N OPTION...: ulfmrun on N hosts, which are namespaces of this machine and end with it (tests/hosts/hosts.bash).
# Ends with 99 when processes of the job were left behind on a host.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../hosts/hosts.bash
. "$here/../hosts/hosts.bash"
stage=${ULFM_STAGE:?}
export hosts_limit=100000 # whoever runs this has patience of his own
hosts=$1
shift

# Processes of the hosts, but not their first ones and what holds those.
left_behind() { ps -eo pid=,ppid=,stat=,comm=,args= | awk -v us=$$ '$1 != us && $2 != us && $3 !~ /^Z/ && $4 !~ /^(ps|awk|sleep|unshare)$/'; }

hosts_up "$hosts"
on_hosts "$hosts" "$@"
status=$?
for _ in $(seq 200); do
    left=$(left_behind)
    [[ -n $left ]] || exit "$status"
    sleep 0.1
done
printf 'on_hosts.sh: left behind:\n%s\n' "$left" >&2
exit 99
