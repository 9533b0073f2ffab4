#!/usr/bin/env bash
# What MPI_Comm_spawn asks for and is not there, or is no MPI program, ends the job with a sentence and a status that is
# not 0; whoever asked does not wait for ever.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

compile spawner <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    MPI_Comm parent, children;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        if (argc > 1 && strcmp(argv[1], "leave") == 0) _exit(3);
        MPI_Comm_disconnect(&parent);
    } else {
        const int self = strcmp(argv[1], "self") == 0 || strcmp(argv[1], "leave") == 0;
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Comm_spawn(self ? argv[0] : argv[1], argv + 1, atoi(argv[2]), MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                       MPI_ERRCODES_IGNORE);
        if (strcmp(argv[1], "leave") == 0) MPI_Barrier(children);
        MPI_Comm_disconnect(&children);
        puts("went on");
    }
    MPI_Finalize();
    return 0;
}
C

# ends STATUS PATTERN LAUNCHER-WITH-OPTIONS... -- ARGUMENTS...
ends() {
    local want=$1 pattern=$2 code=0 launcher=()
    shift 2
    while [[ $1 != -- ]]; do launcher+=("$1") && shift; done
    shift
    timeout -k 5 "$patience" "${launcher[@]}" "$work/spawner" "$@" >"$work/out" 2>&1 </dev/null || code=$?
    ((code == want)) || fail "${launcher[*]##*/} spawner $*: exit status $code and not $want: $(cat "$work/out")"
    grep -q -- "$pattern" "$work/out" || fail "${launcher[*]##*/} spawner $*: no line like $pattern: $(cat "$work/out")"
}

ends 127 'cannot run ./nosuch: No such file' "$stage/bin/mpiexec" -n 1 -- ./nosuch 1
ends 127 'cannot run ./nosuch: No such file' "$stage/bin/ulfmrun" -n 3 -- ./nosuch 2
ends 1 'ended without MPI_Finalize: it called exit with status 0' "$stage/bin/mpiexec" -n 2 -- /bin/true 2
ends 1 'ended without MPI_Finalize: it called exit with status 1' "$stage/bin/ulfmrun" -n 2 -- /bin/false 1
ends 0 'went on' "$stage/bin/mpiexec" -n 2 -- self 2
ends 0 'went on' "$stage/bin/ulfmrun" --ft -n 2 -- self 2
ends 3 'it called exit with status 3' "$stage/bin/mpiexec" -n 2 -- leave 2

# No processes at all: an error on all ranks, whether they want the codes or not; and so is a folder that is not there,
# which ends a job that does not survive deaths.
compile asks <<'C'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    MPI_Comm parent, children;
    MPI_Info info;
    int rank, class, turn, good = 0, codes[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Info_create(&info);
        if (strcmp(argv[1], "nothing")) MPI_Info_set(info, "wdir", argv[1]);
        for (turn = 0; turn < 4; turn++) {
            codes[0] = codes[1] = -1;
            MPI_Error_class(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, strcmp(argv[1], "nothing") ? 2 : 0, info, 1, MPI_COMM_WORLD,
                                           &children, turn % 2 ? codes : MPI_ERRCODES_IGNORE), &class);
            good += class == MPI_ERR_SPAWN && codes[1] == (turn % 2 && strcmp(argv[1], "nothing") ? MPI_ERR_SPAWN : -1);
        }
        printf("rank %d: %d right\n", rank, good);
        MPI_Info_free(&info);
    }
    MPI_Finalize();
    return 0;
}
C
# asked STATUS PATTERN COUNT OPTIONS... -- WHAT
asked() {
    local status=0
    timeout -k 5 "$patience" "$stage/bin/ulfmrun" "${@:4:$#-5}" -n 3 "$work/asks" "${@: -1}" >"$work/out" 2>&1 </dev/null || status=$?
    ((status == $1)) || fail "asks ${*:4}: exit status $status and not $1: $(cat "$work/out")"
    (($(grep -c "$2" "$work/out") >= $3)) || fail "asks ${*:4}: fewer than $3 lines like $2: $(cat "$work/out")"
    ! grep -E 'assert|proxy:|lost' "$work/out" || fail "asks ${*:4}: a trace"
}
asked 0 ': 4 right$' 3 -- nothing
asked 0 ': 4 right$' 3 --ft -- nothing
asked 0 ': 4 right$' 3 --ft -- /nosuch
asked 0 'asks in the folder /nosuch: No such file or directory; -wdir names another one' 4 --ft -- /nosuch
asked 127 'asks in the folder /nosuch: No such file or directory; -wdir names another one' 1 -- /nosuch

# With --ft the call fails on all ranks, again and again, and the next spawn works; also without a launcher.
# A spawn of argv[2], by turns; "several": beside this program, before it and behind it.
compile copes <<'C'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
static MPI_Comm children;
static int spawn(char **argv, int turn, int root)
{
    int class, codes[3] = { 0, 0, 0 }, counts[2] = { 2, 1 };
    MPI_Info infos[2] = { MPI_INFO_NULL, MPI_INFO_NULL };
    char *commands[2] = { turn % 2 ? argv[2] : argv[0], turn % 2 ? argv[0] : argv[2] };
    if (!strcmp(argv[1], "several"))
        MPI_Error_class(MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, counts, infos, root, MPI_COMM_WORLD,
                                                &children, codes), &class);
    else
        MPI_Error_class(MPI_Comm_spawn(argv[2], MPI_ARGV_NULL, 3, MPI_INFO_NULL, root, MPI_COMM_WORLD, &children,
                                       turn ? codes : MPI_ERRCODES_IGNORE), &class);
    return class == MPI_ERR_SPAWN &&
           (!strcmp(argv[1], "one") && !turn ? 1 : codes[0] == MPI_ERR_SPAWN && codes[2] == MPI_ERR_SPAWN);
}
int main(int argc, char **argv)
{
    MPI_Comm parent;
    int rank, size, turn, good = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        MPI_Comm_disconnect(&parent);
    } else {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        for (turn = 0; turn < 4; turn++) good += spawn(argv, turn, size - 1);
        int rc = MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
        printf("rank %d: %d failed, then %d\n", rank, good, rc);
        fflush(stdout);
        if (rc == MPI_SUCCESS) MPI_Comm_disconnect(&children);
    }
    MPI_Finalize();
    return 0;
}
C
for what in ./nosuch /bin/true /bin/false; do
    for n in 1 3; do
        timeout -k 5 "$patience" "$stage/bin/ulfmrun" --ft -n $n "$work/copes" one $what >"$work/out" 2>&1 </dev/null ||
            fail "ulfmrun --ft -n $n, $what is spawned: exit status $?"
        (($(grep -c ': 4 failed, then 0$' "$work/out") == n)) || fail "ulfmrun --ft -n $n, $what is spawned"
    done
    timeout -k 5 "$patience" "$work/copes" one $what >"$work/out" 2>&1 </dev/null || fail "alone, $what is spawned: exit status $?"
    grep -q ': 4 failed, then 0$' "$work/out" || fail "alone, $what is spawned"
done

# Of several programs, one that cannot run or has no MPI_Init is awaited in MPI_Init by the others: they end, too.
for what in ./nosuch /bin/true; do
    timeout -k 5 "$patience" "$stage/bin/ulfmrun" --ft -n 2 "$work/copes" several $what >"$work/out" 2>&1 </dev/null ||
        fail "ulfmrun --ft, $what is spawned beside a program that runs: exit status $?: $(cat "$work/out")"
    (($(grep -c ': 4 failed, then 0$' "$work/out") == 2)) || fail "ulfmrun --ft, $what is spawned beside a program that runs"
    grep -q 'ended without MPI_Finalize: it called exit' "$work/out" || fail "nobody says why the spawn of $what fails"
    status=0
    timeout -k 5 "$patience" "$stage/bin/mpiexec" -n 2 "$work/copes" several $what >"$work/out" 2>&1 </dev/null || status=$?
    ((status != 0 && status < 124 || status == 127)) || fail "mpiexec, $what beside a program that runs: exit status $status"
done
# A member of the communicator has died: what has been started for the others ends too, long before MPI_Init gives up.
compile bereft <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    MPI_Comm parent, made;
    int rank, class, error;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (parent == MPI_COMM_NULL) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1) raise(SIGKILL);
        error = MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &made, MPI_ERRCODES_IGNORE);
        MPI_Error_class(error, &class);
        printf("rank %d: %s\n", rank, class == MPIX_ERR_PROC_FAILED ? "a process has failed" : "WRONG");
    }
    MPI_Finalize();
    return 0;
}
C
for _ in $(seq 10); do
    status=0
    timeout -k 5 120 "$stage/bin/ulfmrun" --ft -n 4 "$work/bereft" >"$work/out" 2>&1 </dev/null || status=$?
    ((status != 124)) || fail "what is spawned after a death stays in MPI_Init: $(cat "$work/out")"
    (($(grep -c ': a process has failed$' "$work/out") == 3)) || fail "a spawn after a death: $(cat "$work/out")"
done
# On a host whose launcher fails.
compile elsewhere <<'C'
#include <mpi.h>
int main(int argc, char **argv)
{
    MPI_Comm parent, made;
    MPI_Info info;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    MPI_Info_create(&info);
    MPI_Info_set(info, "host", "nohost.invalid");
    if (parent == MPI_COMM_NULL)
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, info, 0, MPI_COMM_WORLD, &made, MPI_ERRCODES_IGNORE);
    MPI_Finalize();
    return 0;
}
C
status=0
timeout -k 5 "$patience" "$mpiexec" -launcher ssh -launcher-exec /bin/false -n 1 "$work/elsewhere" >"$work/out" 2>&1 </dev/null || status=$?
((status == 1)) || fail "a spawn on a host whose launcher fails: exit status $status"
grep -q 'host nohost.invalid: /bin/false ended with status 1' "$work/out" || fail "nobody says why that spawn fails"

# The launcher is told line by line.
compile lines <<'C'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    MPI_Comm parent, children;
    char *broken[] = {"one\nhost=elsewhere", "three", NULL}, *whole[] = {"one", "two", NULL};
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        if (argc != 3 || strcmp(argv[1], "one") || strcmp(argv[2], "two")) puts("other arguments");
        MPI_Comm_disconnect(&parent);
    } else {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        const int error = MPI_Comm_spawn(argv[0], broken, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                                         MPI_ERRCODES_IGNORE);
        MPI_Comm_spawn(argv[0], whole, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
        MPI_Comm_disconnect(&children);
        puts(error != MPI_SUCCESS ? "told" : "not told");
    }
    MPI_Finalize();
    return 0;
}
C
timeout -k 5 "$patience" "$stage/bin/mpiexec" -n 2 "$work/lines" >"$work/out" 2>&1 </dev/null || fail "lines: $(cat "$work/out")"
grep -q 'an argument has a line break' "$work/out" || fail "lines: no sentence: $(cat "$work/out")"
[[ $(grep -cx told "$work/out") == 2 ]] || fail "lines: $(cat "$work/out")"
echo "programs that are not there, that are no MPI programs, and that leave end the job that spawns them"
