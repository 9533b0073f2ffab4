#!/usr/bin/env bash
# A limit that forbids the segments ends the job with need, finding and remedy, at once, and not with a signal.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

compile hello <<'C'
#include <mpi.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 200; ++i)
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

# With room for its own segment and not for those of others, whole: it works, without lanes, or says why not. At every
# limit somebody gets stuck at another place.
works=0
for limit in 330000 360000 400000 500000 560000; do
    status=0
    (ulimit -v "$limit" && exec timeout -k 10 60 "$mpiexec" -n 3 "$work/hello") >"$work/out" 2>&1 || status=$?
    ((status != 124 && status != 137)) || fail "with ulimit -v $limit the job hung"
    ((status != 0)) || ((++works))
    ((status == 0)) || grep -qE "needed [0-9.]+ [KMG]B.*ulimit -v unlimited|cannot fork|No space|annot allocate" "$work/out" ||
        fail "with ulimit -v $limit the job failed without saying why"
done
((works != 0)) || fail "no job with a limited address space worked"
echo "a limited address space is made do with, or explained ($works of 5 worked)"

compile greedy <<'C'
#include <mpi.h>
#include <sys/resource.h>
#include <fcntl.h>
/* Rank 0 uses up its descriptors before it first sends. */
int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        struct rlimit few = { 64, 64 };
        setrlimit(RLIMIT_NOFILE, &few);
        while (open("/dev/null", O_RDONLY) >= 0)
            ;
        MPI_Send(&rank, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    }
    else if (rank == 1)
        MPI_Recv(&rank, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
C
status=0
timeout -k 10 60 "$mpiexec" -n 2 "$work/greedy" >"$work/out" 2>&1 || status=$?
((status != 0)) || fail "without descriptors nothing can be connected to"
((status != 124 && status != 137)) || fail "a process without descriptors hangs"
grep -q "ulimit -n" "$work/out" || fail "it does not say what it lacks"
! grep -qE "died|has ended" "$work/out" || fail "a process that lives is said to have died"
echo "a lack of descriptors is explained"
