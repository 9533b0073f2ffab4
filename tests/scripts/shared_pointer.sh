#!/usr/bin/env bash
# A file's shared pointer: each record is written and read once, whoever comes first; where all ranks are on one node the
# pointer is a word in memory, elsewhere a file with locks.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

compile shared <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { RECORDS = 150, INTS = 4 };
static int rank, size;
static void check(int right, const char *what)
{
    if (right) return;
    printf("rank %d: %s is wrong\n", rank, what);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
}
/* A record: who wrote it, its number, and two derived from them. */
static void make(int *record, int from, int i)
{
    record[0] = from, record[1] = i, record[2] = from ^ i, record[3] = ~i;
}
static void verify(const int *record, char *seen)
{
    int like[INTS];
    check(record[0] >= 0 && record[0] < size && record[1] >= 0 && record[1] < RECORDS, "a record");
    make(like, record[0], record[1]);
    check(!memcmp(record, like, sizeof like), "a record");
    check(++seen[record[0] * RECORDS + record[1]] == 1, "the number of a record's copies");
}
int main(int argc, char **argv)
{
    int record[INTS], count;
    MPI_File file;
    MPI_Status status;
    MPI_Offset at;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *seen = calloc(size, RECORDS), *all = calloc(size, RECORDS);
    for (int round = 0; round < 2; round++) {
        check(!MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), "open");
        MPI_File_set_size(file, 0);
        MPI_File_set_view(file, 64 * round, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
        for (int i = 0; i < RECORDS; i++) {
            make(record, rank, i);
            check(!MPI_File_write_shared(file, record, INTS, MPI_INT, &status), "write_shared");
        }
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_File_get_position_shared(file, &at);
        check(at == (MPI_Offset)size * RECORDS * INTS, "the position after all");
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
        memset(seen, 0, size * RECORDS);
        while (MPI_File_read_shared(file, record, INTS, MPI_INT, &status),
               MPI_Get_count(&status, MPI_INT, &count), count == INTS)
            verify(record, seen);
        MPI_Allreduce(seen, all, size * RECORDS, MPI_CHAR, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < size * RECORDS; i++) check(all[i] == 1, "the number of times a record was read");
        MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
        MPI_File_get_position_shared(file, &at);
        check(at == 0, "the position in a new view");
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_File_seek_shared(file, 0, MPI_SEEK_END);
        MPI_File_write_ordered(file, &rank, sizeof rank, MPI_BYTE, &status);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_File_get_position_shared(file, &at);
        check(at == 64 * round + (MPI_Offset)size * (RECORDS * INTS + 1) * (int)sizeof(int), "the position at the end");
        MPI_File_close(&file);
    }
    if (rank == 0) puts("every record once");
    MPI_Finalize();
    return 0;
}
C
for options in "-n 1" "-n 2" "-n 4" "-n 4 --transport xswitch --topology chain:4"; do
    # shellcheck disable=SC2086 # options and their values
    timeout "$patience" "$stage/bin/ulfmrun" $options "$work/shared" "$work/file" >"$work/out" 2>&1 || fail "$options: exit status $?"
    grep -qx 'every record once' "$work/out" || fail "$options: no result"
    left=$(compgen -G "$work/.file*" || true)
    [[ -z $left ]] || fail "$options: $left is left behind"
done
echo "shared pointers of files: every record once"
