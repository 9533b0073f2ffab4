/*
 * Gathers and scatters of blocks of different sizes between two ranks, when they do not go through a segment: one message,
 * received where it belongs. MPICH has requests for all ranks, and waits for them together. Included by ulfm_coll.c.
 */

/* A block of a rank, or none; after an error nothing is done. */
typedef struct {
    const void *data;
    MPI_Aint count;
    MPI_Datatype type;
} block_t;

static block_t nth_block(const void *buffer, const MPI_Aint * counts, const MPI_Aint * displs, MPI_Datatype type, int rank)
{
    return (block_t) {coll_at(buffer, displs[rank], type), counts[rank], type};
}

/* To the other rank, or from there. */
static void pair_move(block_t block, int sends, int tag, MPIR_Comm * comm, int *mpi_errno)
{
    const int other = !comm->rank;
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;

    if (block.count == 0 || *mpi_errno != MPI_SUCCESS)
        return;
    if (sends)
        *mpi_errno = MPIC_Send(block.data, block.count, block.type, other, tag, comm, &errflag);
    else
        *mpi_errno = MPIC_Recv((void *) block.data, block.count, block.type, other, tag, comm, MPI_STATUS_IGNORE, &errflag);
    if (*mpi_errno == MPI_SUCCESS && errflag != MPIR_ERR_NONE)
        MPIR_ERR_SET(*mpi_errno, errflag, "**coll_fail");
}

/* The root's own, which may be in its place already. */
static void pair_copy(block_t from, block_t to, int *mpi_errno)
{
    if (from.data != MPI_IN_PLACE && to.data != MPI_IN_PLACE && *mpi_errno == MPI_SUCCESS)
        *mpi_errno = MPIR_Localcopy(from.data, from.count, from.type, (void *) to.data, to.count, to.type);
}

static int is_of_two(const MPIR_Comm * comm)
{
    return comm->comm_kind == MPIR_COMM_KIND__INTRACOMM && comm->local_size == 2;
}

static int pair_gatherv(block_t own, void *recvbuf, const MPI_Aint * recvcounts, const MPI_Aint * displs,
                        MPI_Datatype recvtype, int root, MPIR_Comm * comm, int *mpi_errno)
{
    if (!is_of_two(comm))
        return 0;
    if (comm->rank != root) {
        pair_move(own, 1, MPIR_GATHERV_TAG, comm, mpi_errno);
        return 1;
    }
    if (recvcounts[root] != 0)
        pair_copy(own, nth_block(recvbuf, recvcounts, displs, recvtype, root), mpi_errno);
    pair_move(nth_block(recvbuf, recvcounts, displs, recvtype, !root), 0, MPIR_GATHERV_TAG, comm, mpi_errno);
    return 1;
}

static int pair_scatterv(const void *sendbuf, const MPI_Aint * sendcounts, const MPI_Aint * displs,
                         MPI_Datatype sendtype, block_t own, int root, MPIR_Comm * comm, int *mpi_errno)
{
    if (!is_of_two(comm))
        return 0;
    if (comm->rank != root) {
        pair_move(own, 0, MPIR_SCATTERV_TAG, comm, mpi_errno);
        return 1;
    }
    pair_move(nth_block(sendbuf, sendcounts, displs, sendtype, !root), 1, MPIR_SCATTERV_TAG, comm, mpi_errno);
    if (sendcounts[root] != 0)
        pair_copy(nth_block(sendbuf, sendcounts, displs, sendtype, root), own, mpi_errno);
    return 1;
}
