# For the scripts that run MPICH's tests over an emulated interconnect in several ways, `steps`: lines of
# name | tests | transport | topology | faults. Sourced with the variables `here`, `steps` and `more` (options of ulfmrun).
# shellcheck shell=bash
: "${here:?}" "${steps:?}"

names() { awk -F' *[|]' 'NF { print $1 }' <<<"$steps"; }

usage() {
    sed -n '2,4s/^# //p' "$0"
    printf 'steps: %s\n' "$(names | tr '\n' ' ')"
}

# one NAME TESTS TRANSPORT TOPOLOGY FAULTS
one() {
    local over="--transport $3 --topology $4${more:+ $more}" total code=0
    [[ -z $5 ]] || over+=" --fault '$5'"
    total=$("$here/run" "$2" --over "$over" --log "$here/../../build/logs/${0##*/}-$1.log" 2>&1) || code=$?
    grep '^FAILED' <<<"$total" || true
    printf '%-12s %s: %s\n' "$1" "$3 $4${5:+ with $5}" "$(tail -n 1 <<<"$total")"
    return "$code"
}

# run_steps [NAME...]: those, or all.
run_steps() {
    local failed=0 name step tests transport topology faults asked=("$@")
    for name in "${asked[@]}"; do
        [[ $name != -h && $name != --help ]] || { usage && exit 0; }
        names | grep -qx -- "$name" || { printf 'tests/mpich/%s: no step %s\n' "${0##*/}" "$name" >&2 && usage >&2 && exit 2; }
    done
    ((${#asked[@]})) || mapfile -t asked < <(names)
    for name in "${asked[@]}"; do
        while IFS='|' read -r step tests transport topology faults; do
            read -r step <<<"$step" && [[ $step == "$name" ]] || continue
            read -r tests <<<"$tests"
            read -r transport <<<"$transport"
            read -r topology <<<"$topology"
            one "$name" "$tests" "$transport" "$topology" "${faults# }" || failed=$((failed + 1))
        done <<<"$steps"
    done
    printf '%d steps, %d with failures\n' "${#asked[@]}" "$failed"
    ((failed == 0))
}
