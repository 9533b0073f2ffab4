#!/usr/bin/env bash
# Files that cannot be written (a full disk) or read, by blocking, nonblocking, collective and split calls: each process
# hears of it, by the error handler of the file, and none waits for ever. Over shared memory and over tcp.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
compile files_that_fail <"$(dirname "${BASH_SOURCE[0]}")/files_that_fail.c"
for ranks in 1 2 3 4; do
    says_right "files that fail" "$ranks ranks" -n "$ranks" "$work/files_that_fail" "$work/file$ranks"
done
says_right "files that fail" "over tcp" --transport tcp -n 2 "$work/files_that_fail" "$work/file"
echo "what a file cannot do is told"
