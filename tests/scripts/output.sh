#!/usr/bin/env bash
# What ranks print and read: a line is never torn by another rank's, a prompt is seen before its answer is wanted, what was
# printed before MPI_Abort arrives, and input of any length reaches a rank that reads slowly, late, in part, or not at all.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

compile lines <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 3000; i++) {
        puts("a line of one rank");
        if (i % 100 == 0) MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
C
"$stage/bin/ulfmrun" -n 3 "$work/lines" >"$work/out" || fail "lines: exit status $?"
whole=$(grep -cxF 'a line of one rank' "$work/out" || true)
((whole == 9000)) || fail "$whole of 9000 lines are whole"
(($(wc -l <"$work/out") == 9000)) || fail "there are lines that nobody has written"

compile prompt <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, answer = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        printf("How many? ");
        if (scanf("%d", &answer) != 1) MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Bcast(&answer, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 1) printf("%d it is\n", answer);
    MPI_Finalize();
    return 0;
}
C
mkfifo "$work/in"
"$stage/bin/ulfmrun" -n 2 "$work/prompt" <"$work/in" >"$work/out" 2>&1 &
job=$!
exec 3>"$work/in"
end=$((SECONDS + patience))
until grep -q 'How many? ' "$work/out"; do
    ((SECONDS < end)) || { kill "$job"; fail "the prompt has not come before its answer"; }
    sleep 0.1
done
echo 42 >&3
exec 3>&-
wait "$job" || fail "prompt: exit status $?"
grep -q '42 it is' "$work/out" || fail "the answer has not come"
compile reads <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
/* Rank 0 reads so many bytes of its input, in pieces with pauses, and then closes it. */
int main(int argc, char **argv)
{
    static char piece[5000];
    long want = atol(argv[1]), got = 0, n = 1;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; rank == 0 && got < want && n > 0; i++) {
        long most = want - got < (long)sizeof piece ? want - got : (long)sizeof piece;
        if (i % 50 == 0) usleep(20000);
        got += n = read(0, piece, most);
        for (long k = 0; k < n; k++)
            if (piece[k] != (char)('a' + (got - n + k) % 23)) MPI_Abort(MPI_COMM_WORLD, 3);
    }
    close(0);
    for (int i = 0; i < 100; i++) MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("read %ld bytes\n", got);
    MPI_Finalize();
    return 0;
}
C
python3 -c 'import sys; sys.stdout.write("".join(chr(97 + i % 23) for i in range(23)) * 100000)' >"$work/long"
size=$(stat -c %s "$work/long")
for want in 0 1 100000 $((size + 1)); do
    timeout "$patience" "$stage/bin/ulfmrun" -n 2 "$work/reads" $want <"$work/long" >"$work/out" 2>&1 ||
        fail "reads $want of $size bytes: exit status $?"
    grep -qx "read $((want > size ? size : want)) bytes" "$work/out" || fail "reads $want of $size bytes: read others"
done

# The last words of a rank are why a job has ended.
compile aborts <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1) {
        puts("last words");
        fprintf(stderr, "the reason\n");
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
C
abort_often() {
    local status
    for _ in {1..12}; do
        status=0
        timeout "$patience" "$stage/bin/ulfmrun" -n 3 "$work/aborts" >"$work/out.$1" 2>"$work/err.$1" || status=$?
        ((status == 3)) || fail "an abort with 3 ended with $status"
        grep -qx 'last words' "$work/out.$1" || fail "what was printed before MPI_Abort is lost"
        grep -qx 'the reason' "$work/err.$1" || fail "what was written to stderr before MPI_Abort is lost"
        grep -q 'application called MPI_Abort' "$work/err.$1" || fail "MPI_Abort's own words are lost"
    done
}
runs=()
for i in {1..6}; do
    abort_often "$i" &
    runs+=($!)
done
for run in "${runs[@]}"; do wait "$run"; done

# A process that a rank has left behind holds its output: the job ends nevertheless.
cat >"$work/leaves" <<'S'
setsid sh -c 'echo $$ >>"$1"; exec sleep 1000' sh "$1.left" &
exec "$1"
S
timeout "$patience" "$stage/bin/ulfmrun" -n 2 sh "$work/leaves" "$work/aborts" >"$work/out" 2>&1 && fail "no abort"
xargs kill <"$work/aborts.left"
grep -qx 'last words' "$work/out" || fail "with a process left behind the last words are lost"

# Output that nobody takes: no stack of functions.
status=0
timeout "$patience" "$stage/bin/ulfmrun" -n 2 yes 2>"$work/err" | head -1 >"$work/out" || status=$?
((status == 141)) || fail "ulfmrun | head: exit status $status"
[[ ! -s $work/err ]] || fail "ulfmrun | head says: $(head -1 "$work/err")"
# Nor does the launcher write for ever what nobody takes: here the proxy names ranks that have ended, behind the first line.
printf '#include <mpi.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\nint main(void)\n{\n    MPI_Init(0, 0);\n    puts("one");\n    fflush(stdout);\n    usleep(300000);\n    exit(3);\n}\n' >"$work/exits.c"
"$stage/bin/mpicc" -w "$work/exits.c" -o "$work/exits" || exit 1
for _ in {1..5}; do
    status=0
    timeout -k 1 "$patience" "$stage/bin/ulfmrun" -n 3 "$work/exits" 2>&1 | head -1 >"$work/out" || status=$?
    ((status != 124 && status != 137)) || { fail "ulfmrun 2>&1 | head does not end" && break; }
done
! timeout "$patience" "$stage/bin/ulfmrun" -n 2 "$work/lines" >/dev/full 2>"$work/err" || fail "a full disk went unnoticed"
grep -q 'cannot be written (No space left on device)' "$work/err" || fail "a full disk: $(head -1 "$work/err")"
(($(wc -l <"$work/err") == 1)) || fail "a full disk is told in $(wc -l <"$work/err") lines"
timeout "$patience" "$stage/bin/ulfmrun" -n 2 "$work/lines" 2>&- >"$work/out" || fail "2>&-: exit status $?"
(($(wc -l <"$work/out") == 6000)) || fail "2>&-: $(wc -l <"$work/out") of 6000 lines"
# With a closed descriptor 1, a segment that the launcher makes must not receive what the ranks print. Each job is one
# chance of the two ranks to touch it at a bad moment.
for _ in {1..8}; do
    timeout "$patience" "$stage/bin/ulfmrun" -n 2 "$work/lines" >&- 2>"$work/err" || fail ">&-: exit status $? $(cat "$work/err")"
    [[ ! -s $work/err ]] || fail ">&-: $(head -1 "$work/err")"
done
status=0
timeout "$patience" "$stage/bin/ulfmrun" -n 1 sh -c 'p=$(cut -d" " -f4 /proc/$PPID/stat); readlink /proc/$p/fd/1 >&2' >&- 2>"$work/err" || status=$?
grep -qx /dev/null "$work/err" || fail "ulfmrun >&-: status $status, the launcher prints into $(cat "$work/err")"

# Others than rank 0 find the end of their input; programs without MPI may end one by one.
echo 'for rank 0' >"$work/input"
timeout "$patience" "$stage/bin/ulfmrun" -n 3 cat <"$work/input" >"$work/out" || fail "cat: exit status $?"
grep -qx 'for rank 0' "$work/out" || fail "cat has not copied its input"
# More arguments than Hydra had room for.
# shellcheck disable=SC2046
timeout "$patience" "$mpiexec" -n 2 sh -c 'echo $#' sh $(seq 20000) </dev/null >"$work/out" || fail "20,000 arguments: exit status $?"
(($(grep -cx 20000 "$work/out") == 2)) || fail "20,000 arguments did not arrive"
# Ranks whose outputs go elsewhere, by a wrapper or after MPI_Init, or are closed: nothing of theirs is left for the launcher
# to read, and they are served all the same.
compile elsewhere <<'C'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    if (strcmp(argv[1], "closed") == 0)
        for (int fd = 0; fd < 3; fd++) close(fd);
    MPI_Init(&argc, &argv);
    if (strcmp(argv[1], "later") == 0 && (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)))
        return 1;
    for (int i = 0; i < 10; i++) MPI_Barrier(MPI_COMM_WORLD);
    printf("elsewhere: right\n");
    MPI_Finalize();
    return argc > 2 ? 7 : 0;
}
C
printf '#!/bin/sh\nexec >"%s/rank.$PMI_RANK" 2>&1 </dev/null\nexec "$@"\n' "$work" >"$work/wrapper"
chmod +x "$work/wrapper"
for how in "$work/elsewhere later" "$work/elsewhere closed" "$work/wrapper $work/elsewhere as_ever"; do
    read -ra command <<<"$how"
    timeout -k 5 "$patience" "$stage/bin/ulfmrun" -n 3 "${command[@]}" >"$work/out" 2>&1 || fail "$how: exit status $?"
done
(($(cat "$work"/rank.? | grep -cx 'elsewhere: right') == 3)) || fail "ranks behind a wrapper have not printed"
status=0
timeout -k 5 "$patience" "$stage/bin/ulfmrun" -n 3 "$work/wrapper" "$work/elsewhere" as_ever 7 >"$work/out" 2>&1 || status=$?
((status == 7)) || fail "the status of ranks behind a wrapper: $status"
# A signal to mpiexec reaches them.
# shellcheck disable=SC2016
timeout -k 5 "$patience" "$stage/bin/ulfmrun" -n 2 sh -c 'exec >/dev/null 2>&1; : >"$1.$PMI_RANK"; exec sleep 1000' sh "$work/begun" \
    >"$work/out" 2>&1 &
launched=$!
until [[ -e $work/begun.0 && -e $work/begun.1 ]]; do
    kill -0 $launched || fail "ranks without outputs did not begin"
    sleep 0.1
done
kill -TERM $launched
status=0
wait $launched || status=$?
((status != 137 && status != 0)) || fail "SIGTERM, and ranks without outputs: status $status"

echo "lines of three ranks are whole, a prompt comes before its answer, last words arrive, and input of any length too"
