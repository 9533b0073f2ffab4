# For the scripts that run MPI programs over emulated interconnects: a folder to work in, and how runs are checked.
# shellcheck shell=bash
: "${ULFM_STAGE:?stage folder}"
stage=$(cd "$ULFM_STAGE" && pwd -P) || exit 1
run=$stage/bin/ulfmrun
programs=$stage/share/ulfm/examples/bin
[[ -x $programs/trapezoid ]] || exit 77
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
unset "${!ULFM_@}"
failures=0
patience=${patience:-250} # seconds for a run; a script may set it before

fail() {
    echo "FAIL $1: $2"
    sed 's/^/     | /' out err | tail -n 8
    failures=$((failures + 1))
}

# check_run NAME PATTERN CODE: a job has ended with that code, which is to be 0, and has printed what matches.
check_run() {
    if (($3 == 124)); then
        fail "$1" "it did not end"
    elif (($3 != 0)); then
        fail "$1" "exit code $3"
    elif ! grep -q -e "$2" out; then
        fail "$1" "no line like '$2'"
    else
        echo "ok   $1"
    fi
}

# over NAME PATTERN OPTIONS... PROGRAM: ends with 0 and prints what matches.
over() {
    local name=$1 pattern=$2 code=0
    shift 2
    timeout -k 10 "$patience" "$run" "$@" </dev/null >out 2>err || code=$?
    check_run "$name" "$pattern" "$code"
}

# refused NAME PATTERN OPTIONS...: a failure that says so.
refused() {
    local name=$1 pattern=$2 code=0
    shift 2
    timeout -k 10 "$patience" "$run" "$@" </dev/null >out 2>err || code=$?
    if ((code == 0)); then
        fail "$name" "it ran"
    elif ((code == 124)); then
        fail "$name" "it did not end"
    elif ! grep -q -e "$pattern" err; then
        fail "$name" "no line like '$pattern'"
    else
        echo "ok   $name"
    fi
}

answer=9.000004291534424e+00
bad_network='drop=1e-2,corrupt=1e-3,duplicate=1e-3,reorder=1e-2,seed=7'
