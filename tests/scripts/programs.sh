#!/usr/bin/env bash
# The demo programs over every emulated interconnect, few and many processes, a good network and a bad one: each computes
# the same again in one process and compares (--check).
set -uo pipefail
: "${ULFM_STAGE:?stage folder}"
stage=$(cd "$ULFM_STAGE" && pwd -P) || exit 1
programs=$stage/share/ulfm/examples/bin
[[ -x $programs/halo ]] || exit 77
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
unset "${!ULFM_@}"
failures=0
bad_network='drop=1e-2,corrupt=1e-3,duplicate=1e-3,reorder=1e-2,seed=7'

# check OPTIONS... PROGRAM
check() {
    local code=0 start=$SECONDS
    timeout 300 "$stage/bin/ulfmrun" "$@" --check </dev/null >out 2>err || code=$?
    if ((code == 0)) && [[ -s out ]]; then
        passed=$((passed + 1))
    else
        echo "FAIL exit code $code after $((SECONDS - start)) s: ulfmrun $*"
        tail -n 5 out err | sed 's/^/     | /'
        failures=$((failures + 1))
    fi
}

for network in 'xswitch single:5' 'xswitch th8' 'xswitch tree:3' 'xswitch mesh:4x4' \
    'dcm cube:3' 'dcm cube:6' 'pcie boards:2x32' 'pcie boards:8x16'; do
    read -r transport topology <<<"$network"
    passed=0
    for processes in 4 16 64; do
        for program in pi mm lu halo trapezoid; do
            check --transport "$transport" --topology "$topology" -n $processes "$programs/$program"
            check --transport "$transport" --topology "$topology" --fault "$bad_network" -n $processes "$programs/$program"
        done
    done
    echo "ok   $network: $passed runs"
done
((failures == 0)) || exit 1
