#!/usr/bin/env bash
# As many communicators as 20 bits of context id allow: each is used, the last one too many is an error that says so, and
# freed ones can be had again. Communicators beyond those with a shared segment use messages.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

compile many <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 40000 };
static MPI_Comm comms[MOST];
static int rank, size;

static void use(MPI_Comm comm, int i)
{
    int sum = 0, got = -1;
    MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Sendrecv(&i, 1, MPI_INT, (rank + 1) % size, i % 1000, &got, 1, MPI_INT, (rank + size - 1) % size, i % 1000, comm,
                 MPI_STATUS_IGNORE);
    if (sum != size * i || got != i) {
        printf("rank %d, communicator %d: sum %d, message %d\n", rank, i, sum, got);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* Duplicates, splits and nonblocking duplicates in turn, up to `most`; how many there are then. */
static int make(int from, int most, char *why)
{
    int rc = MPI_SUCCESS, length;
    while (from < most && rc == MPI_SUCCESS) {
        if (from % 3 == 0)
            rc = MPI_Comm_dup(MPI_COMM_WORLD, &comms[from]);
        else if (from % 3 == 1)
            rc = MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comms[from]);
        else {
            MPI_Request request;
            rc = MPI_Comm_idup(MPI_COMM_WORLD, &comms[from], &request);
            if (rc == MPI_SUCCESS)
                rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        if (rc == MPI_SUCCESS)
            from++;
        else
            MPI_Error_string(rc, why, &length);
    }
    return from;
}

int main(int argc, char **argv)
{
    char why[MPI_MAX_ERROR_STRING] = "";
    int i, made, most = atoi(argv[1]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    made = make(0, most < MOST ? most : 100, why);
    for (i = 0; i < made; i += 7)
        use(comms[i], i);
    if (most == MOST) {         /* duplicates only: a nonblocking one may not fail at all places at once */
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        int rc = MPI_SUCCESS, length;
        while (made < MOST && (rc = MPI_Comm_dup(MPI_COMM_WORLD, &comms[made])) == MPI_SUCCESS)
            made++;
        if (rc != MPI_SUCCESS)
            MPI_Error_string(rc, why, &length);
    }
    use(comms[made - 1], made - 1);
    for (i = 0; i < made; i += 2)
        MPI_Comm_free(&comms[i]);
    for (i = 0; i < made; i += 2)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (i = made - 100; i < made; i++)
        use(comms[i], i);
    for (i = 0; i < made; i++)
        MPI_Comm_free(&comms[i]);
    if (rank == 0)
        printf("made %d: %s\n", made, why);
    MPI_Finalize();
    return 0;
}
C
run() { timeout "$patience" "$mpiexec" -n "$1" "$work/many" "$2" >"$work/out" 2>&1 || { cat "$work/out" >&2; fail "$1 ranks, $2 communicators: exit status $?"; }; }
run 3 5000
grep -q '^made 5000: $' "$work/out" || fail "5000 communicators: $(<"$work/out")"
run 2 40000
made=$(sed -n 's/^made \([0-9]*\): .*/\1/p' "$work/out" | head -n 1)
grep -q 'oo many communicators' "$work/out" || fail "the one too many is no error that says so"
((${made:-0} > 32000)) || fail "one too many: $(<"$work/out")"

# 1,000 that are used so often that they want a segment: there are 32, and what they take is given back.
compile used <<'C'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
static long shared_kb(void)
{
    char line[256];
    long kb = 0, total = 0;
    int ours = 0;
    FILE *maps = fopen("/proc/self/smaps", "r");
    while (fgets(line, sizeof line, maps)) {
        if (strchr(line, '-') && strchr(line, ' ') && !strstr(line, "kB"))
            ours = strstr(line, "ulfm-collectives") != NULL;
        if (ours && sscanf(line, "Rss: %ld", &kb) == 1)
            total += kb;
    }
    fclose(maps);
    return total;
}
int main(int argc, char **argv)
{
    enum { COMMS = 1000 };
    static MPI_Comm comms[COMMS];
    int rank, i, k, sum;
    long most;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (i = 0; i < COMMS; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        for (k = 0; k < 10; k++)
            MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_MAX, comms[i]);
        if (sum != i)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    most = shared_kb();
    for (i = 0; i < COMMS; i++)
        MPI_Comm_free(&comms[i]);
    if (rank == 0)
        printf("%ld %ld\n", most, shared_kb());
    MPI_Finalize();
    return 0;
}
C
timeout "$patience" "$mpiexec" -n 2 "$work/used" >"$work/out" 2>&1 || { cat "$work/out" >&2; fail "1,000 used communicators: exit status $?"; }
read -r most left <"$work/out"
((most > 0 && most < 2048)) || fail "1,000 used communicators have $most KB of shared memory in a process"
((left < most / 8)) || fail "$left KB of $most stayed when they were freed"

echo "5000 communicators are used, $made can be had, the next is an error; segments are given back"

# A group of another communicator, where nobody has asked this one for its own.
compile group <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    MPI_Comm copy, made;
    MPI_Group group;
    int rank, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Comm_create_group(copy, group, 8, &made);
    MPI_Comm_rank(made, &rank);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, made);
    if (rank == 0)
        printf("%d\n", sum);
    MPI_Finalize();
    return 0;
}
C
timeout "$patience" "$mpiexec" -n 3 "$work/group" >"$work/out" 2>&1 || { cat "$work/out" >&2; fail "MPI_Comm_create_group: exit status $?"; }
[[ $(<"$work/out") == 3 ]] || fail "MPI_Comm_create_group: $(<"$work/out")"
