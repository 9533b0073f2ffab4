# For the scripts about NX/2: a folder for what they build, and how they run programs and count failures.
: "${ULFM_STAGE:?stage folder}" "${ULFM_SOURCE:?source folder}"
stage=$ULFM_STAGE
programs=$ULFM_SOURCE/tests/nx2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
failures=0
[[ -x $stage/bin/mpiexec ]] || { echo "skipped: no mpiexec in the stage" && exit 77; }

# ran WHAT CODE PATTERN COMMAND...: the exit code must be that one, and its output have a line that matches.
ran() {
    local what=$1 want=$2 pattern=$3 code=0
    shift 3
    timeout -k 5 120 "$@" </dev/null >out 2>&1 || code=$?
    if ((code == want)) && grep -qE -- "$pattern" out; then
        echo "ok   $what"
    else
        echo "FAIL $what: exit code $code, wanted $want and a line like '$pattern'"
        head -n 20 out | sed 's/^/     | /'
        failures=$((failures + 1))
    fi
}

finish() {
    echo "$failures failures"
    exit $((failures > 0))
}
