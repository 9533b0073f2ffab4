#!/usr/bin/env bash
# MPI_Error_string stays within its buffer, however long the description of an error is, and knows a program's codes.
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

# Codes and classes that a program adds, also to classes of MPI's, and deletes.
compile codes <<'C'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
static int wrong;
static void expect(int code, int class, const char *text)
{
    char found[MPI_MAX_ERROR_STRING];
    int length, of, *last, flag;
    MPI_Error_string(code, found, &length);
    MPI_Error_class(code, &of);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag);
    if (strcmp(found, text) || of != class || !flag || *last < code || length != (int) strlen(text)) {
        printf("WRONG: code %d has class %d, not %d, and text \"%s\", not \"%s\"; the last one is %d\n", code, of, class,
               found, text, *last);
        wrong = 1;
    }
}
int main(int argc, char **argv)
{
    int own, code, of_own, i, error, count = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Add_error_code(MPI_ERR_ARG, &code);
    expect(code, MPI_ERR_ARG, "");
    MPI_Add_error_string(code, "of an argument");
    expect(code, MPI_ERR_ARG, "of an argument");
    MPI_Add_error_class(&own);
    MPI_Add_error_string(own, "of a class");
    MPI_Add_error_code(own, &of_own);
    MPI_Add_error_string(of_own, "of a code");
    expect(own, own, "of a class");
    expect(of_own, own, "of a code");
    expect(code, MPI_ERR_ARG, "of an argument");
    for (i = 0; i < 3; i++) {
        MPIX_Delete_error_code(code);
        MPI_Add_error_code(i == 1 ? own : MPI_ERR_COUNT, &code);
        expect(code, i == 1 ? own : MPI_ERR_COUNT, "");
        MPI_Add_error_string(code, "again");
        expect(code, i == 1 ? own : MPI_ERR_COUNT, "again");
    }
    MPIX_Delete_error_code(of_own);
    MPIX_Delete_error_class(own);
    for (i = 0; i < 3000 && !wrong; i++) {
        char text[20];
        error = MPI_Add_error_code(MPI_ERR_TAG, &of_own);
        if (error) continue;
        snprintf(text, sizeof text, "number %d", i);
        MPI_Add_error_string(of_own, text);
        expect(of_own, MPI_ERR_TAG, text);
        count++;
    }
    expect(code, MPI_ERR_COUNT, "again");
    if (!wrong && count == 2046) puts("codes: right");
    else printf("%d codes\n", count);
    MPI_Finalize();
    return 0;
}
C
timeout "$patience" "$mpiexec" -n 1 "$work/codes" >"$work/out" 2>"$work/err" || fail "codes: exit status $?"
grep -qx 'codes: right' "$work/out" || fail "codes that a program adds are wrong"
echo "codes and classes of a program have their strings"
