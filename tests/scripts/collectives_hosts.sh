#!/usr/bin/env bash
# Collectives of ranks on several hosts: through segments within the hosts and in trees between them they give what MPICH's
# own algorithms give, and what each rank computes for itself; in places alike on all hosts and not; over tcp and ofi.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/hosts_common.bash"

"$stage/bin/mpicc" -O1 -Wno-stringop-overflow "$here/collectives_hosts.c" -o "$scratch/computed" || exit 1
"$stage/bin/mpicc" -O1 "$here/collectives.c" -o "$scratch/drawn" || exit 1
cd "$scratch" || exit 1
hosts_up 4
cases=${ULFM_COLLECTIVES_CASES:-100}

# computed NAME HOSTS OPTIONS...: no result is wrong.
computed() {
    local name=$1 n=$2
    shift 2
    on "$n" "$name" '^0 failures$' "$@"
}
computed "one host" 1 -genv ULFM_COLLECTIVES on -n 4 ./computed 11 10
computed "one rank on each of 2 hosts" 2 -n 2 ./computed 1 8
computed "one rank on each of 3 hosts" 3 -n 3 ./computed 2 8
computed "one rank on each of 4 hosts" 4 -n 4 ./computed 3 6
computed "ranks take turns on 2 hosts" 2 -ppn 1 -n 6 ./computed 4 6
computed "4 ranks on each of 2 hosts" 2 -ppn 4 -n 8 ./computed 5 4
computed "more ranks on one host" 2 -ppn 3 -n 5 ./computed 6 6
computed "2 ranks on each of 3 hosts" 3 -ppn 2 -n 6 ./computed 7 6
computed "fault tolerance" 2 --ft -ppn 2 -n 4 ./computed 8 5
computed "MPICH's choice of an algorithm" 2 -genv MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM recursive_doubling \
    -genv MPIR_CVAR_BCAST_INTRA_ALGORITHM binomial -genv MPIR_CVAR_REDUCE_INTRA_ALGORITHM binomial \
    -genv MPIR_CVAR_SCAN_INTRA_ALGORITHM recursive_doubling -ppn 2 -n 4 ./computed 9 5
computed "ofi" 2 --transport mux,provider=net -ppn 2 -n 4 ./computed 10 5
computed "nobody waits for a rank ahead" 3 -n 3 ./computed ahead
computed "nor where hosts have several" 2 -ppn 2 -n 4 ./computed ahead
computed "a block that is too long" 2 -ppn 2 -n 4 ./computed errors

# sums NAME SETTING HOSTS PPN RANKS SEED [MORE...]: the checksum of each rank.
sums() {
    local name=$1 setting=$2 n=$3 each=$4 ranks=$5
    shift 5
    ULFM_COLLECTIVES=$setting ULFM_STATS=1 on_hosts "$n" -ppn "$each" -n "$ranks" ./drawn "$1" "$cases" "${@:2}" >out 2>err ||
        fail "$name, ULFM_COLLECTIVES=$setting" "exit code $?"
    sort -n out >"sums.$setting"
}

# alike NAME HOSTS PPN RANKS SEED [MORE...]: drawn collectives with and without segments.
alike() {
    local name=$1
    shift
    sums "$name" off "$@"
    ! grep -q 'through shared memory' err || fail "$name" "ULFM_COLLECTIVES=off, and some were shared"
    for setting in auto on; do
        sums "$name" "$setting" "$@"
        if ! cmp sums.off "sums.$setting"; then
            fail "$name, ULFM_COLLECTIVES=$setting" "results differ"
        elif [[ $setting == on ]] && ! grep -q 'collectives through shared memory:' err; then
            fail "$name, ULFM_COLLECTIVES=on" "none was shared within a host"
        else
            echo "ok   $name, ULFM_COLLECTIVES=$setting"
        fi
    done
}
alike "drawn, 2 hosts" 2 2 4 1
alike "drawn, in turns on 2 hosts" 2 1 5 2
alike "drawn, 3 hosts" 3 2 6 3
alike "drawn, threads" 2 2 4 4 threads
exit $((failures != 0))
