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
