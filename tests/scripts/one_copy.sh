#!/usr/bin/env bash
# Long messages that are copied once: the right bytes and no others, whatever the receiver does meanwhile, also where the
# kernel refuses to copy, in the middle of a message too; and where they must not be copied past the network, they are not.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
cp "$(dirname "${BASH_SOURCE[0]}")/one_copy.c" "$work/"
# GCC 12 warns of MPICH's MPI_STATUSES_IGNORE.
"$mpicc" -O1 -Wno-stringop-overflow "$work/one_copy.c" -o "$work/one_copy" || fail "mpicc cannot compile one_copy.c"

"$mpicc" -O1 -std=gnu11 "$(dirname "${BASH_SOURCE[0]}")/epochs.c" -o "$work/epochs" || fail "mpicc cannot compile epochs.c"

# The kernel's copies fail: from the first on, or now and then.
cat >"$work/refuse.c" <<'C'
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
static int refused(void)
{
    static int calls;
    const char *every = getenv("REFUSE_EVERY"), *rank = getenv("REFUSE_RANK"), *own = getenv("PMI_RANK");
    if (rank && own && strcmp(rank, own)) return 0;
    if (++calls % (every ? atoi(every) : 1)) return 0;
    const char *said = getenv("REFUSE_SAYS");
    if (said) close(creat(said, 0600));
    errno = EPERM;
    return 1;
}
ssize_t process_vm_readv(pid_t p, const struct iovec *a, unsigned long n, const struct iovec *b, unsigned long m, unsigned long f)
{
    return refused() ? -1 : syscall(SYS_process_vm_readv, p, a, n, b, m, f);
}
ssize_t process_vm_writev(pid_t p, const struct iovec *a, unsigned long n, const struct iovec *b, unsigned long m, unsigned long f)
{
    return refused() ? -1 : syscall(SYS_process_vm_writev, p, a, n, b, m, f);
}
C
cc -shared -fPIC "$work/refuse.c" -o "$work/refuse.so"

# run NAME RANKS OPTIONS...: the whole program; its counters in $work/out.
run() {
    timeout "$patience" "$stage/bin/ulfmrun" --stats -n "$2" "${@:3}" "$work/one_copy" >"$work/out" 2>&1 ||
        fail "$1: exit status $?"
    grep -qx 'all messages are right' "$work/out" || fail "$1: no result"
}
copied() { grep -q ' copied once: messages [1-9]' "$work/out"; }

for ranks in 2 4; do
    run "$ranks ranks, on" "$ranks" -genv ULFM_ONE_COPY on
    copied || fail "$ranks ranks: nothing was copied once"
    run "$ranks ranks, by halves of short ones" "$ranks" -genv ULFM_ONE_COPY on -genv ULFM_EAGER 3000
    run "$ranks ranks, auto" "$ranks"
done
run "off" 2 -genv ULFM_ONE_COPY off
! copied || fail "ULFM_ONE_COPY=off is not heeded"
for every in 1 2 7; do
    run "refused each ${every}th time" 2 -genv ULFM_ONE_COPY on -genv LD_PRELOAD "$work/refuse.so" -genv REFUSE_EVERY $every
done
run "one rank's copies refused" 2 -genv ULFM_ONE_COPY on -genv LD_PRELOAD "$work/refuse.so" -genv REFUSE_RANK 1
copied || fail "nothing was copied once by the other rank"
for other in "--transport xswitch" "--fault drop=1e-4" "--ft" "-genv ULFM_PROTOCOL always"; do
    # shellcheck disable=SC2086 # an option and its value
    run "$other" 2 $other -genv ULFM_ONE_COPY on
    ! copied || fail "$other: messages were copied past the network"
done

# One-sided transfers on memory that is not shared are copied in the same way. Two ranks may have a core each: then messages take part.
ranks=3
windows() {
    timeout "$patience" "$stage/bin/ulfmrun" --stats -n $ranks "${@:2}" "$work/epochs" create 7 60 >"$work/out" 2>&1 ||
        fail "windows, $1: exit status $?"
    grep -qx 'epochs: right' "$work/out" || fail "windows, $1: no result"
}
windows auto
copied || fail "windows: nothing was copied once"
ranks=2 windows "auto, two ranks"
windows on -genv ULFM_ONE_COPY on
copied || fail "windows: nothing was copied once"
windows off -genv ULFM_ONE_COPY off
! copied || fail "windows: ULFM_ONE_COPY=off is not heeded"
for every in 1 2; do windows "refused each ${every}th time" -genv LD_PRELOAD "$work/refuse.so" -genv REFUSE_EVERY $every; done
for other in "--transport xswitch" "--ft"; do
    # shellcheck disable=SC2086 # an option and its value
    windows "$other" $other
    ! copied || fail "windows, $other: bytes were copied past the network"
done

# Collectives of long data in memory that the kernel copies for no other process, in place too. Secret memory is not in every kernel.
compile kept <<'C'
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
enum { MOST = 1 << 20, INTS = MOST / 4 };
static int rank, ranks, wrong;
static MPI_Comm comm = MPI_COMM_NULL;
/* Once a copy was refused, a communicator's calls go another way. */
static void fresh(void)
{
    if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
}
static int *memory(const char *kind)
{
    int fd = -1, protection = PROT_READ | PROT_WRITE, how = MAP_PRIVATE | MAP_ANONYMOUS;
    if (!strcmp(kind, "written")) protection = PROT_WRITE; /* of this process's reads the processor takes no notice */
    if (!strcmp(kind, "secret")) {
        fd = syscall(447 /* memfd_secret */, 0);
        if (fd < 0 || ftruncate(fd, 2 * MOST)) return NULL;
        how = MAP_SHARED;
    }
    void *at = mmap(NULL, 2 * MOST, protection, how, fd, 0);
    return at == MAP_FAILED ? NULL : at;
}
static void fill(int *at, int n, int from)
{
    for (int i = 0; i < n; i++) at[i] = i % 1000 + from;
}
static void check(const char *call, const int *at, int n, int factor, int from)
{
    for (int i = 0; i < n; i++)
        if (at[i] != factor * (i % 1000) + from) {
            printf("rank %d: %s: element %d is %d\n", rank, call, i, at[i]);
            wrong = 1;
            return;
        }
}
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int *a = memory(argv[1]), *b = memory(argv[1]), all = a && b, sum = ranks * (ranks - 1) / 2, part = INTS / ranks;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    for (int root = 0; all && root < ranks; root++) {
        fill(a, INTS, rank);
        fresh();
        MPI_Allreduce(MPI_IN_PLACE, a, INTS, MPI_INT, MPI_SUM, comm);
        check("Allreduce in place", a, INTS, ranks, sum);
        fill(a, INTS, rank);
        fresh();
        MPI_Reduce(rank == root ? MPI_IN_PLACE : a, rank == root ? a : NULL, INTS, MPI_INT, MPI_SUM, root, comm);
        if (rank == root) check("Reduce in place", a, INTS, ranks, sum);
        fill(a, INTS, rank);
        fresh();
        MPI_Bcast(a, INTS, MPI_INT, root, comm);
        check("Bcast", a, INTS, 1, root);
        fill(b, part, rank);
        fresh();
        MPI_Allgather(b, part, MPI_INT, a, part, MPI_INT, comm);
        for (int r = 0; r < ranks; r++) check("Allgather", a + r * part, part, 1, r);
        fill(a, INTS, -1);
        fresh();
        MPI_Gather(b, part, MPI_INT, a, part, MPI_INT, root, comm);
        for (int r = 0; rank == root && r < ranks; r++) check("Gather", a + r * part, part, 1, r);
        for (int r = 0; r < ranks; r++) fill(a + r * part, part, root + r);
        fresh();
        MPI_Scatter(a, part, MPI_INT, b, part, MPI_INT, root, comm);
        check("Scatter", b, part, 1, root + rank);
        for (int r = 0; r < ranks; r++) fill(a + r * part, part, 10 * rank + r);
        fresh();
        MPI_Alltoall(MPI_IN_PLACE, part, MPI_INT, a, part, MPI_INT, comm);
        for (int r = 0; r < ranks; r++) check("Alltoall in place", a + r * part, part, 1, 10 * r + rank);
        fill(a, part * ranks, rank);
        fresh();
        MPI_Reduce_scatter_block(MPI_IN_PLACE, a, part, MPI_INT, MPI_SUM, comm);
        for (int i = 0; i < part && !wrong; i++)
            if (a[i] != ranks * ((i + rank * part) % 1000) + sum) wrong = printf("Reduce_scatter_block: element %d\n", i);
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) puts(!all ? "no such memory" : wrong ? "wrong" : "right");
    MPI_Finalize();
    return wrong;
}
C
# kept NAME MEMORY OPTIONS...: each call is the first one of its communicator.
kept() {
    timeout "$patience" "$stage/bin/ulfmrun" -n 2 -genv ULFM_COLLECTIVES on "${@:3}" "$work/kept" "$2" >"$work/out" 2>&1 ||
        fail "collectives, $1: exit status $?"
    grep -qx right "$work/out" || { [[ $2 == secret ]] && grep -qx 'no such memory' "$work/out"; } ||
        fail "collectives, $1: no result"
}
for memory in common written secret; do kept "$memory memory" $memory; done
for every in 2 7; do
    rm -f "$work/said"
    kept "refused each ${every}th time" common -genv LD_PRELOAD "$work/refuse.so" -genv REFUSE_EVERY $every -genv REFUSE_SAYS "$work/said"
    # Ranks that share a core copy twice.
    (($(nproc) < 2)) || [[ -e $work/said ]] || fail "collectives: nothing was copied once"
done

# One of the two is killed in the middle of a copy: the other does not wait, and the job ends.
compile dies <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int rank, dies = atoi(argv[1]);
    const int size = 64 << 20;
    char *a = calloc(1, size), *b = calloc(1, size);
    MPI_Request q[2];
    MPI_Status ignored[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == dies && fork() == 0) {
        usleep(20000 + 7000 * atoi(argv[2]));
        kill(getppid(), SIGKILL);
        _exit(0);
    }
    for (;;) {
        MPI_Irecv(b, size, MPI_CHAR, !rank, 0, MPI_COMM_WORLD, q);
        MPI_Isend(a, size, MPI_CHAR, !rank, 0, MPI_COMM_WORLD, q + 1);
        MPI_Waitall(2, q, ignored);
    }
}
C
for round in 1 2 3 4 5 6; do
    status=0
    timeout "$patience" "$stage/bin/ulfmrun" -genv ULFM_ONE_COPY on -n 2 "$work/dies" $((round % 2)) "$round" >"$work/out" 2>&1 ||
        status=$?
    ((status != 0 && status != 124)) || fail "a rank was killed: exit status $status"
done
echo "long messages that are copied once are right, refused copies too, and none goes past the network"
