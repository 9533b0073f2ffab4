#!/usr/bin/env bash
# More elements than an int can count: matched probes, persistent and ready messages, broadcasts that do not wait,
# one-sided operations of every kind and files move 2.2 GB in one call, to another rank and to the same one.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"
"$mpicc" -O1 "$(dirname "${BASH_SOURCE[0]}")/large_counts.c" -o "$work/large" || fail "mpicc cannot compile large_counts.c"

# right MODE RANKS OPTIONS...
right() { says_right "$1" "$1, ${*:2}" -n "$2" "${@:3}" "$work/large" "$1" "$work/file"; }

# One of each kind, and with TESTS_ALL set all of them: each moves gigabytes, most of which is time for page faults.
right mprobe 2
right send_init 2 --transport tcp
# Two ways of MPICH: from 8 ranks on, or as many as the variable says, the parts go round.
right ibcast 2
right bcast_init 3 -genv MPIR_CVAR_BCAST_MIN_PROCS 3
# By shared memory or a copy of the kernel, by messages, and to the process itself.
right put 2
right rget_accumulate 1
ULFM_ONE_COPY=off right raccumulate 2 --transport tcp
right files_all 2
[[ -n ${TESTS_ALL:-} ]] || exit 0

for mode in improbe send_init ssend_init rsend_init rsend; do
    right $mode 2
done
right mprobe 2 --transport tcp
right ibcast 3
right bcast_init 2
right bcast_init 3
right ibcast 8
for mode in put put_of_made rput get rget no_op accumulate raccumulate get_accumulate; do
    right $mode 1
done
for mode in put_of_made rput get rget no_op accumulate raccumulate get_accumulate rget_accumulate; do
    right $mode 2
done
for mode in put rget get_accumulate; do
    ULFM_ONE_COPY=off right $mode 2 --transport tcp
done
right files 1
