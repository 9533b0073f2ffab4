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

# check_end NAME WANTED PATTERN CODE: what was run has ended, with 0 ("good") or not ("bad"), and said what matches.
check_end() {
    local name=$1 wanted=$2 pattern=$3 code=$4 became=good
    ((code == 0)) || became=bad
    if ((code == 124)); then
        fail "$name" "it did not end"
    elif [[ $became != "$wanted" ]]; then
        fail "$name" "exit code $code"
    elif ! grep -q -e "$pattern" out err; then
        fail "$name" "no line like '$pattern'"
    else
        echo "ok   $name"
    fi
}

# Waits until a job exchanges: it makes the file begun.
begun() {
    for _ in $(seq 6000); do
        [[ -e begun ]] && break
        sleep 0.02
    done
    rm begun
}
