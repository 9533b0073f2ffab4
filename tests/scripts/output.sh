#!/usr/bin/env bash
# What ranks print: a line is never torn by another rank's, and a prompt is seen before its answer is wanted.
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
echo "lines of three ranks are whole, and a prompt comes before its answer"
