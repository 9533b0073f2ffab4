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

# What a kernel still asks for over a cable that was cut would fail the next connection too, for up to a second.
forget_neighbours() { for i in 1 2 3; do on_host $i ip neigh flush all; done; }

# check_cut NAME WHERE PATTERN MOST CODE TOOK PROGRAMS: a job has ended with that code, because cable 2 was cut for good, and
# the file out or err has a line that matches. That took at most MOST seconds. None of the programs (with commas) is left on
# host 2, after a while: nobody can tell it that the job has ended. Joins the cable.
check_cut() {
    local name=$1 where=$2 pattern=$3 most=$4 code=$5 took=$6 left
    for _ in $(seq 900); do
        left=$(on_host 2 ps -C "$7" -o stat=,args= | grep -v '^Z')
        [[ -n $left ]] || break
        sleep 0.1
    done
    join_cable 2
    forget_neighbours
    if ((code == 0 || code == 124 || code == 137)); then
        fail "$name" "exit code $code after $took s"
    elif ! grep -q -e "$pattern" "$where"; then
        fail "$name" "no line like '$pattern'"
    elif ((took > most)); then
        fail "$name" "it took $took s"
    elif [[ -n $left ]]; then
        fail "$name" "left on the other host: $left"
    else
        echo "ok   $name, $took s"
    fi
}
