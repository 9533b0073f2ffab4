#!/usr/bin/env bash
# A process that ends before MPI_Init, for which others wait in it, ends the job with a sentence and its status, or 1. So
# does a program without MPI among others. A job of programs without MPI ends as they do.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
compile waits <<'C'
#include <mpi.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Finalize();
    return 0;
}
C
cat >"$work/gives_up" <<EOF
#!/bin/sh
# WHEN STATUS: rank 1 ends, at once or when the others have come to MPI_Init and wait
if [ "\$PMI_RANK" = 1 ]; then
    [ "\$1" = early ] || until [ "\$(cat "$work"/marks/* 2>/dev/null | wc -l)" -ge 2 ]; do sleep 0.05; done
    exit "\$2"
fi
echo here >"$work/marks/\$PMI_RANK"
exec "$work/waits"
EOF
chmod +x "$work/gives_up"

# ends STATUS PATTERN COMMAND...
ends() {
    local status=0
    rm -rf "$work/marks" && mkdir "$work/marks"
    timeout -k 5 "$patience" "${@:3}" >"$work/out" 2>&1 </dev/null || status=$?
    ((status == $1)) || fail "${*:3}: exit status $status and not $1"
    (($(grep -c -e "$2" "$work/out") == 1)) || fail "${*:3}: not one line like $2"
    echo "ok   ${*:3}"
}
for launcher in mpiexec ulfmrun; do
    for when in early late; do
        ends 3 '^mpiexec: rank 1 (process [0-9]*) on .* ended without MPI_Finalize: it called exit with status 3$' \
            "$stage/bin/$launcher" -n 3 "$work/gives_up" $when 3
        ends 1 'rank 1 .* ended without MPI_Finalize: it called exit with status 0$' "$stage/bin/$launcher" -n 3 "$work/gives_up" $when 0
    done
done
ends 1 'rank 2 .* ended without MPI_Finalize: it called exit with status 0$' "$stage/bin/mpiexec" -n 2 "$work/waits" : -n 1 true
ends 0 '^one$' "$stage/bin/mpiexec" -n 2 true : -n 1 echo one
ends 4 '^one$' "$stage/bin/mpiexec" -n 2 true : -n 1 sh -c 'echo one; exit 4'

# With --ft it is a process that has failed, whatever the first call is that needs it.
compile copes <<'C'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    int number = 1, rank, class, error;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (!strcmp(argv[1], "send")) error = MPI_Send(&number, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    else if (!strcmp(argv[1], "ssend")) error = MPI_Ssend(&number, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    else if (!strcmp(argv[1], "recv")) error = MPI_Recv(&number, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else error = MPI_Barrier(MPI_COMM_WORLD);
    MPI_Error_class(error, &class);
    printf("rank %d: %s\n", rank, class == MPIX_ERR_PROC_FAILED ? "a process has failed" : "WRONG");
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
C
cat >"$work/leaves" <<EOF
#!/bin/sh
[ "\$PMI_RANK" = 1 ] && exit 3
exec "$work/copes" "\$@"
EOF
chmod +x "$work/leaves"
for transport in direct tcp xswitch; do
    for call in send ssend recv barrier; do
        timeout -k 5 "$patience" "$stage/bin/ulfmrun" --ft --transport $transport -n 3 "$work/leaves" $call >"$work/out" 2>&1 </dev/null || true
        (($(grep -c '^rank [02]: a process has failed$' "$work/out") == 2)) || fail "--ft, $transport, $call: $(cat "$work/out")"
        echo "ok   --ft, $transport, $call"
    done
done
