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
    ((status == 0)) || grep -qE "needed [0-9.]+ [KMG]B.*ulimit -v unlimited|cannot fork|No space|annot allocate|Unable to allocate .*out of memory" "$work/out" ||
        fail "with ulimit -v $limit the job failed without saying why"
done
((works != 0)) || fail "no job with a limited address space worked"
echo "a limited address space is made do with, or explained ($works of 5 worked)"

# The ranks of the mask use up their descriptors before they first send; with "low" even the numbers that are open are
# beyond their limit.
compile greedy <<'C'
#include <mpi.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void note(const char *call, int code)
{
    int class;
    MPI_Error_class(code, &class);
    fprintf(stderr, "%s: %s\n", call, class == MPI_SUCCESS ? "done" : class == MPIX_ERR_PROC_FAILED ? "death" : "error");
}
int main(int argc, char **argv)
{
    int rank, size, other, low = strcmp(argv[2], "low") == 0;
    struct rlimit few = { low ? 3 : 64, 64 };
    /* Who cannot reach the others aborts in MPI_Finalize and takes them along: not before all have said what they saw. */
    int shared = open(getenv("GREEDY_SAID"), O_RDWR);
    atomic_int *said = mmap(NULL, sizeof *said, PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
    close(shared);
    MPI_Init(&argc, &argv);
    if (argc > 3) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (atoi(argv[1]) >> rank & 1) {
        setrlimit(RLIMIT_NOFILE, &few);
        while (open("/dev/null", O_RDONLY) >= 0)
            ;
    }
    note("sendrecv", MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &other, 1, MPI_INT, (rank + size - 1) % size, 0,
                                  MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    note("barrier", MPI_Barrier(MPI_COMM_WORLD));
    for (atomic_fetch_add(said, 1); argc > 3 && atomic_load(said) < size;)
        sched_yield();
    MPI_Finalize();
    return 0;
}
C

# greedy_says STATUS TIMES LINE ARGUMENTS...: how a job of 2 ends (0 or not), and how often a line is in its output
greedy_says() {
    local want=$1 times=$2 line=$3 status=0
    shift 3
    printf '\0\0\0\0' >"$work/said"
    GREEDY_SAID=$work/said timeout -k 10 60 "$mpiexec" -n 2 "$work/greedy" "$@" >"$work/out" 2>&1 || status=$?
    ((status != 124 && status != 137)) || fail "greedy $*: processes without descriptors hang: $(cat "$work/out")"
    (((status != 0) == want)) || fail "greedy $*: exit status $status"
    (($(grep -cE "$line" "$work/out") == times)) || fail "greedy $*: not $times lines like $line: $(cat "$work/out")"
    ! grep -qE "died|has ended|death" "$work/out" || fail "greedy $*: a process that lives is said to have died"
}
greedy_says 0 4 ': done$' 1 all
greedy_says 0 4 ': done$' 3 all
greedy_says 1 4 ': error$' 3 low return
greedy_says 1 0 ': done$' 1 low
grep -q "ulimit -n" "$work/out" || fail "it does not say what it lacks"
echo "a lack of descriptors is made do with, or explained"

# Each allocation in turn fails, in a process of one, whom nobody waits for.
compile no_memory_comm <"$(dirname "${BASH_SOURCE[0]}")/no_memory_comm.c"
for how in dup split split_type create create_group shrink cart; do
    timeout -k 10 "$patience" "$mpiexec" -n 1 "$work/no_memory_comm" $how >"$work/out" 2>&1 ||
        fail "$how without memory: exit status $?"
    grep -qE "^$how: [0-9]+ allocations, [1-9][0-9]* failures told" "$work/out" || fail "$how: no failure was told"
done
echo "who makes a communicator without memory is told"

# The same in a group, of which one lacks memory: nobody waits for ever, whoever has the communicator and whoever has not.
compile no_memory_group <"$(dirname "${BASH_SOURCE[0]}")/no_memory_group.c"
for how in dup split halves split_type create create_group shrink cart graph dist_graph inter merge dup_inter \
    idup idup_inter; do
    for rank in 0 1; do
        timeout -k 10 "$patience" "$stage/bin/ulfmrun" --ft -n 4 "$work/no_memory_group" $how $rank >"$work/out" 2>&1 ||
            fail "$how, rank $rank without memory: exit status $?"
        grep -qE "^$how: [0-9]+ allocations of rank $rank, [1-9][0-9]* failures told" "$work/out" ||
            fail "$how, rank $rank: no failure was told"
    done
done
echo "who does not make a communicator keeps nobody waiting"
