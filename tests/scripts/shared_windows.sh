#!/usr/bin/env bash
# MPI_Win_allocate_shared: on a host and on a node of an emulated interconnect members see each other's memory; over
# several nodes it is refused with MPI_ERR_RMA_SHARED at each member, and the job goes on.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/mpi_common.bash"

compile shared <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    MPI_Comm node;
    MPI_Win window;
    int rank, size, members, class = MPI_SUCCESS, disp, *base = NULL, *first;
    MPI_Aint bytes;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &members);
    int error = MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
    MPI_Error_class(error, &class);
    if (members == size ? error != MPI_SUCCESS : class != MPI_ERR_RMA_SHARED)
        printf("rank %d: class %d with %d of %d on the node\n", rank, class, members, size);
    if (error == MPI_SUCCESS) MPI_Win_free(&window);
    MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, node, &base, &window);
    MPI_Win_fence(0, window);
    *base = rank;
    MPI_Win_fence(0, window);
    MPI_Win_shared_query(window, 0, &bytes, &disp, &first);
    if (*first < 0 || *first > rank) printf("rank %d sees %d of the node's first\n", rank, *first);
    MPI_Win_free(&window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("over, %d on the first node\n", members);
    MPI_Finalize();
    return 0;
}
C

# on MEMBERS OPTION...
on() {
    timeout "$patience" "$stage/bin/ulfmrun" "${@:2}" "$work/shared" >"$work/out" 2>&1 ||
        fail "over ${*:2}: status $?: $(cat "$work/out")"
    [[ $(<"$work/out") == "over, $1 on the first node" ]] || fail "over ${*:2}: $(cat "$work/out")"
    echo "ok   over ${*:2}"
}
on 4 -n 4
on 1 --transport xswitch --topology th8 -n 4
on 4 -genv ULFM_SHARE host --transport xswitch --topology th8 -n 4
on 1 --transport dcm --topology cube:2 -n 4
on 4 --transport tcp -n 4
