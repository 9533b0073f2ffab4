#!/usr/bin/env bash
# MPI_Error_string stays within its buffer, however long the description of an error is.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

compile strings <<'C'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
static struct { char text[MPI_MAX_ERROR_STRING], behind[4096]; } it;
int main(int argc, char **argv)
{
    MPI_Comm made;
    int length, error, lengths;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (lengths = 1; lengths < MPI_MAX_PORT_NAME; lengths += 3) {
        char port[MPI_MAX_PORT_NAME] = "";
        snprintf(port, sizeof port, "tag#0$%.*s$", lengths, "ulfm#direct:0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefgh"
                 "ijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefgh"
                 "ijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz");
        error = MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &made);
        memset(&it, 'x', sizeof it);
        it.behind[sizeof it.behind - 1] = 0;
        MPI_Error_string(error, it.text, &length);
        if (error == 0 || length >= MPI_MAX_ERROR_STRING || (int) strnlen(it.text, sizeof it.text) != length ||
            strspn(it.behind, "x") != sizeof it.behind - 1) {
            printf("WRONG: port of %d characters: error %d, %d characters\n", lengths, error, length);
            break;
        }
    }
    if (lengths >= MPI_MAX_PORT_NAME) puts("all within their buffers");
    MPI_Finalize();
    return 0;
}
C
timeout "$patience" "$mpiexec" -n 1 "$work/strings" >"$work/out" 2>"$work/err" || fail "exit status $?"
grep -q '^all within' "$work/out" || fail "an error string is longer than its buffer"
echo "error strings of all lengths end within their buffers"
