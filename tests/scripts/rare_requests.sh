#!/usr/bin/env bash
# Kinds of requests and calls that few programs have: persistent sends of all kinds in front of receives, MPI_Testall of
# partitioned requests and persistent collectives, MPI_Isendrecv, pairs accumulated under a lock, MPI_Comm_split_type of an
# intercommunicator, MPI_File_set_size with a late process, MPI_ERRORS_ABORT, process sets that are not there.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
compile rare_requests <"$(dirname "${BASH_SOURCE[0]}")/rare_requests.c"

for transport in direct ofi; do
    for what in persistent together isendrecv; do
        says_right rare_requests "$what, 3 ranks, $transport" --transport $transport -n 3 "$work/rare_requests" "$what"
    done
    for ranks in 2 3 5; do
        says_right rare_requests "pairs, $ranks ranks, $transport" --transport $transport -n $ranks "$work/rare_requests" pairs
    done
done
says_right rare_requests "pairs, a small lock queue" -genv MPIR_CVAR_CH3_RMA_TARGET_LOCK_DATA_BYTES 20000 -n 4 \
    "$work/rare_requests" pairs
says_right rare_requests "pairs, a network" --transport xswitch --topology mesh:2x2 -n 4 "$work/rare_requests" pairs
says_right rare_requests "isendrecv, alone with nobody" -n 2 "$work/rare_requests" isendrecv
for ranks in 2 3 4 7; do says_right rare_requests "node, $ranks ranks" -n $ranks "$work/rare_requests" node; done
for prefix in '' nfs:; do
    says_right rare_requests "size ${prefix:-ufs:}" -n 3 "$work/rare_requests" size "$prefix$work/file"
done
says_right rare_requests "others" -n 2 "$work/rare_requests" others
if timeout -k 5 "$patience" "$mpiexec" -n 2 "$work/rare_requests" abort >"$work/out" 2>&1; then fail "MPI_ERRORS_ABORT: it ended well"; fi
! grep -q -e 'survived' -e 'signal 11' "$work/out" || fail "MPI_ERRORS_ABORT"
grep -qi 'invalid rank' "$work/out" || fail "MPI_ERRORS_ABORT does not tell the error"
echo "ok   MPI_ERRORS_ABORT"
