#!/usr/bin/env bash
# Memory of windows that cannot be had: MPI_Win_allocate does without sharing, MPI_Win_allocate_shared is an error of the
# same class in all processes, and so is memory that one process alone does not get. Nobody waits for ever.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

# Each process says which class it got, or that the data are right.
compile window <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
int main(int argc, char **argv)
{
    const int shared = !strcmp(argv[1], "shared");
    const MPI_Aint bytes = (MPI_Aint)atol(argv[2]) << 20;
    int rank, size, class = MPI_SUCCESS, length;
    char *mine, text[MPI_MAX_ERROR_STRING] = "";
    MPI_Win window;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (argc > 3 && (argv[3][0] == 'a' || rank == size - 1)) { /* beyond which there is no memory */
        struct rlimit limit = {(rlim_t)atol(argv[4]) << 20, (rlim_t)atol(argv[4]) << 20};
        setrlimit(RLIMIT_AS, &limit);
    }
    for (int times = 0; times < 2; ++times) {
        MPI_Info info = MPI_INFO_NULL;
        if (times) { /* each its own from the beginning */
            MPI_Info_create(&info);
            MPI_Info_set(info, "alloc_shm", shared ? "true" : "false");
        }
        const int error = shared ? MPI_Win_allocate_shared(bytes, 1, info, MPI_COMM_WORLD, &mine, &window)
                                 : MPI_Win_allocate(bytes, 1, info, MPI_COMM_WORLD, &mine, &window);
        if (times) MPI_Info_free(&info);
        if (error != MPI_SUCCESS) {
            MPI_Error_class(error, &class);
            MPI_Error_string(error, text, &length);
            printf("rank %d: %s\n", rank, class == MPI_ERR_NO_MEM ? "no memory" : class == MPI_ERR_RMA_SHARED ? "not shared" : text);
            continue;
        }
        const int right = (rank + size - 1) % size + 1;
        memset(mine, 0, sizeof(int));
        mine[bytes - 1] = 0;
        char own = (char)(rank + 1);
        MPI_Win_fence(0, window);
        MPI_Put(&own, 1, MPI_CHAR, (rank + 1) % size, bytes - 1, 1, MPI_CHAR, window);
        MPI_Win_fence(0, window);
        int sum = 1;
        MPI_Win_lock_all(0, window);
        MPI_Accumulate(&sum, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, window);
        MPI_Win_unlock_all(window);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) memcpy(&sum, mine, sizeof sum);
        printf("rank %d: %s\n", rank, mine[bytes - 1] == right && (rank != 0 || sum == size) ? "right" : "wrong");
        MPI_Win_free(&window);
    }
    MPI_Finalize();
    return 0;
}
C

# expect WHAT RANKS WORD...: each of so many ranks says that, twice, when ulfmrun runs the program with these words.
expect() {
    timeout -k 5 "$patience" "${world[@]}" "$stage/bin/ulfmrun" -n "$2" "${runner[@]}" "$work/window" "${@:3}" >"$work/out" 2>&1 </dev/null ||
        fail "${*:3}: exit status $?"
    (($(grep -cx "rank [0-9]*: $1" "$work/out") == 2 * $2)) || fail "${*:3}: not all say \"$1\""
    grep -x "rank [0-9]*: $1" "$work/out" | sort -u | wc -l | grep -qx "$2" || fail "${*:3}: not each says \"$1\""
}
world=() runner=()
expect right 3 allocate 8
expect right 3 shared 8
# More than any process may map, and more than one of them may.
expect 'no memory' 3 allocate 8000 all 6000
expect 'no memory' 3 allocate 8000 one 6000
expect 'not shared' 3 shared 8000 all 6000
# All of it is more than one may map, and its own is not.
expect right 3 allocate 500 one 1200
expect 'not shared' 3 shared 500 one 1200

# Where no memory file can be made, as without a descriptor: a file in /dev/shm, and when that is full, no sharing.
printf '%s\n' '#define _GNU_SOURCE' '#include <errno.h>' '#include <string.h>' '#include <sys/mman.h>' '#include <sys/syscall.h>' \
    '#include <unistd.h>' 'int memfd_create(const char *name, unsigned flags) {' \
    '  if (!strcmp(name, "mpi window")) return errno = EMFILE, -1;' \
    '  return (int)syscall(SYS_memfd_create, name, flags);' '}' >"$work/none.c"
"${CC:-cc}" -shared -fPIC -O1 "$work/none.c" -o "$work/none.so" || fail "no preloaded library"
runner=(-genv LD_PRELOAD "$work/none.so")
expect right 3 allocate 8
expect right 3 shared 8
for namespace in "unshare -m" "unshare -r -m"; do
    read -ra words <<<"$namespace"
    "${words[@]}" mount -t tmpfs -o size=1m none /dev/shm 2>/dev/null || continue
    # shellcheck disable=SC2016 # the inner shell's
    world=("${words[@]}" bash -c 'mount -t tmpfs -o size=1m none /dev/shm && exec "$@"' world)
    expect right 3 allocate 8
    expect 'not shared' 3 shared 8
    break
done
[[ -z $(find /dev/shm -name 'mpich_shar_tmp*' -newer "$work/none.c") ]] || fail "files are left in /dev/shm"
