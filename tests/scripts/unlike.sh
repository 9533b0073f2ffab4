#!/usr/bin/env bash
# The same data described by unlike types on different ranks, types whose extent is not their true one, buffers that do not
# matter, operations that do not fit, reads beyond the end of a file, MPI_Comm_join: unlike.c, over shared memory and over tcp.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
compile unlike <"$(dirname "${BASH_SOURCE[0]}")/unlike.c"
for transport in direct tcp; do
    for ranks in 2 3 4 5 8; do
        says_right unlike "$ranks ranks over $transport" --transport "$transport" -n "$ranks" "$work/unlike" "$work/file" join
    done
done
says_right unlike "by messages" -genv ULFM_COLLECTIVES off -n 4 "$work/unlike" "$work/file"
echo "unlike types, and buffers that do not matter, are right"
