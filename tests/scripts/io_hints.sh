#!/usr/bin/env bash
# Hints of MPI-IO: files are right with each of them, collective and not, blocking and not; one that cannot be is not taken,
# and MPI_File_get_info tells what is.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

"$mpicc" -O1 "$(dirname "${BASH_SOURCE[0]}")/io_hints.c" -o "$work/hints" || fail "mpicc cannot compile io_hints.c"

# hint KEY VALUE EXPECTED: on both kinds of file system.
hint() {
    local prefix
    for prefix in '' nfs:; do
        rm -f "$work/file"
        timeout -k 5 "$patience" "$mpiexec" -n 3 "$work/hints" "$prefix$work/file" "$@" >"$work/out" 2>&1 ||
            fail "$prefix $1=$2: exit status $?"
        grep -qx 'hints: right' "$work/out" || fail "$prefix $1=$2: wrong"
    done
    echo "ok   $1=$2"
}
for pair in romio_cb_fr_type=64 romio_cb_fr_alignment=4096 romio_cb_ds_threshold=10 romio_cb_alltoall=disable \
    romio_cb_read=enable romio_cb_write=enable romio_cb_write=disable romio_cb_read=disable romio_ds_write=enable \
    romio_ds_write=disable romio_ds_read=disable romio_no_indep_rw=true cb_nodes=1 cb_buffer_size=1 cb_buffer_size=100 \
    ind_rd_buffer_size=1 ind_wr_buffer_size=10 'cb_config_list=*:*' romio_min_fdomain_size=1 romio_min_fdomain_size=100000 \
    striping_unit=7 striping_unit=0; do
    hint "${pair%%=*}" "${pair#*=}" "${pair#*=}"
done
# Those that cannot be.
for value in 0 -5 abc 16M '' 99999999999; do hint cb_buffer_size "${value:- }" 16777216; done
for value in 0 -1 x; do
    hint ind_rd_buffer_size "$value" 4194304
    hint ind_wr_buffer_size "$value" 524288
done
hint cb_nodes 99 1
hint romio_min_fdomain_size -1 none
hint romio_cb_pfr enable disable
for list in nosuch:1 ::: 'nosuch:*,:'; do
    hint cb_config_list "$list" '*:1'
    grep -q "MPI-IO: the hint cb_config_list needs hosts .*; found \"${list//\*/\\*}\"; \*:1 is used" "$work/out" ||
        fail "cb_config_list $list is not told"
done
