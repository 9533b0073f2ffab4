# Sourced by the scripts that run MPI programs. Sets $stage, $mpicc, $mpiexec and $work, which is removed at the end.
# shellcheck shell=bash
stage=${ULFM_STAGE:?}
mpicc=$stage/bin/mpicc
mpiexec=$stage/bin/mpiexec
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
patience=${ULFM_TEST_PATIENCE:-240}

if [[ ! -x $mpicc || ! -x $mpiexec ]]; then
    echo "no mpicc and mpiexec in $stage/bin"
    rm -rf "$work"
    exit 77
fi

fail() {
    printf '%s\n' "$*" >&2
    [[ ! -s $work/out ]] || tail -n 40 "$work/out" >&2
    exit 1
}

# compile NAME: the C program on standard input, as $work/NAME.
compile() {
    cat >"$work/$1.c"
    "$mpicc" -O1 -I"$(dirname "${BASH_SOURCE[0]}")" "$work/$1.c" -o "$work/$1" -lm || fail "mpicc cannot compile $1.c"
}

# survives WORDS OPTION...: with --ft the job says WORDS and does not hang; some rank dies.
survives() {
    local words=$1 status=0
    shift
    timeout -s KILL "$patience" "$stage/bin/ulfmrun" --ft "$@" >"$work/out" 2>&1 || status=$?
    ((status != 137)) || fail "$* hangs"
    grep -qx "$words" "$work/out" || fail "$*: exit status $status"
}

# goes_on PROGRAM RANKS LEFT HOW OPTION...: with --ft so many ranks of `PROGRAM HOW` are left, which find nothing wrong; the
# others die by no fault.
goes_on() {
    local program=$1 ranks=$2 left=$3 how=$4
    shift 4
    timeout "$patience" "$stage/bin/ulfmrun" --ft "$@" -n "$ranks" "$work/$program" "$how" </dev/null >"$work/out" 2>&1 || true
    grep -qx "$how: wrong 0, $left left" "$work/out" || fail "$ranks ranks, $how $*"
    ! grep -Eq 'signal (6|11)' "$work/out" || fail "$ranks ranks, $how $*: a fault"
}

# says_right WHAT NAME WORD...: ulfmrun with these words ends well, and a rank prints "WHAT: right". NAME tells of it.
says_right() {
    timeout -k 5 "$patience" "$stage/bin/ulfmrun" "${@:3}" >"$work/out" 2>&1 || fail "$2: exit status $?"
    grep -qx "$1: right" "$work/out" || fail "$2: no result"
    echo "ok   $2"
}
