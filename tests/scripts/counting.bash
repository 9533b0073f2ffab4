# For scripts that go on after a failure: a scratch folder, and failures that are counted.
# shellcheck shell=bash
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

fail() {
    echo "FAIL $*"
    failures=$((failures + 1))
}
