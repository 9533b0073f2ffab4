#!/usr/bin/env bash
# A limit that forbids the segments ends the job with need, finding and remedy, at once, and not with a signal.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

compile hello <<'C'
#include <mpi.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
C
"$mpiexec" -n 2 "$work/hello" >"$work/out" 2>&1 || fail "without a limit it must work: exit code $?"

status=0
(ulimit -f 100 && exec timeout -k 10 "$patience" "$mpiexec" -n 2 "$work/hello") 2>&1 | cat >"$work/out" || status=$?
((status != 0)) || fail "the limit went unnoticed"
((status != 124 && status != 137)) || fail "the job hung"
for part in "needed [0-9.]+ [KMG]B" "found a file size limit of [0-9.]+ KB" "ulimit -f unlimited"; do
    grep -qE "$part" "$work/out" || fail "the output lacks \"$part\""
done
! grep -qiE "file size limit exceeded|signal 25" "$work/out" || fail "a rank was ended by SIGXFSZ"
echo "a file size limit is explained"
