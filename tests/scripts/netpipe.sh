#!/usr/bin/env bash
# Debian's prebuilt NetPIPE (linked with Debian's libmpich.so.12) runs unmodified over ULFM: results are there, its
# integrity check passes, and the counters of both ranks show messages.
set -uo pipefail
: "${ULFM_STAGE:?stage folder}"
program=$(command -v NPmpich2) || {
    echo "NPmpich2 is not installed (Debian package netpipe-mpich2)"
    exit 77
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
failures=0

report() { # CODE WHAT
    if (($1 == 0)); then
        echo "ok   $2"
    else
        echo "FAIL $2"
        tail -n 20 out err 2>/dev/null | sed 's/^/     | /'
        failures=$((failures + 1))
    fi
}

ULFM_STATS=1 timeout -k 10 300 "$ULFM_STAGE/bin/ulfmrun" -n 2 "$program" -n 500 -u 65536 -o np.out </dev/null >out 2>err
report $? "NPmpich2 -n 500 -u 65536 ends with 0"
[[ $(awk '$1 >= 1 && $2 > 0' np.out | wc -l) -gt 30 ]]
report $? "np.out has a line with a bandwidth for each size"
ranks=$(grep -c -E '^ulfm: stats .*: sent [1-9][0-9]* messages' err)
((ranks >= 2))
report $? "counters of both ranks show messages over ULFM (found $ranks)"

timeout -k 10 300 "$ULFM_STAGE/bin/ulfmrun" -n 2 "$program" -i -n 200 -u 65536 -o check.out </dev/null >out 2>err
report $? "NPmpich2 -i (integrity) ends with 0"
! grep -q -i -E 'integrity check failed|error' out err
report $? "integrity: no failure reported"
exit $((failures > 0))
