#!/usr/bin/env bash
# What ranks print and read: a line is never torn by another rank's, a prompt is seen before its answer is wanted, and input of
# any length reaches a rank that reads slowly, late, in part, or not at all.
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
echo "lines of three ranks are whole, a prompt comes before its answer, and input of any length arrives"
