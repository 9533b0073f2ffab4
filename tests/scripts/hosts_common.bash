# For the scripts that run MPI programs on several hosts, which are namespaces of this machine: hosts.bash,
# fabric_common.bash, and both their folders go at the end.
# shellcheck shell=bash
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../hosts/hosts.bash
. "$here/../hosts/hosts.bash"
# shellcheck source=fabric_common.bash
. "$here/fabric_common.bash"
# shellcheck disable=SC2154
trap 'rm -rf "$scratch" "$hosts_folder"' EXIT
[[ -x $stage/bin/mpicc ]] || exit 77

# on N NAME PATTERN ARGUMENTS...: a job on N hosts ends with 0 and prints what matches.
on() {
    local n=$1 name=$2 pattern=$3 code=0
    shift 3
    on_hosts "$n" "$@" >out 2>err || code=$?
    check_run "$name" "$pattern" "$code"
}
