/*
 * Gathers and scatters of blocks of different sizes between two ranks, when they do not go through a segment: one message,
 * received where it belongs. MPICH has requests for all ranks, and waits for them together. Included by ulfm_coll.c.
 */

static int is_of_two(const MPIR_Comm * comm)
{
    return comm->comm_kind == MPIR_COMM_KIND__INTRACOMM && comm->local_size == 2;
}

static void pair_end(MPIR_Errflag_t errflag, int *mpi_errno)
{
    if (*mpi_errno == MPI_SUCCESS && errflag != MPIR_ERR_NONE)
        MPIR_ERR_SET(*mpi_errno, errflag, "**coll_fail");
}

static int pair_gatherv(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
                        const MPI_Aint * recvcounts, const MPI_Aint * displs, MPI_Datatype recvtype, int root,
                        MPIR_Comm * comm, int *mpi_errno)
{
    const int other = !comm->rank;
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;

    if (!is_of_two(comm))
        return 0;
    if (comm->rank != root) {
        if (sendcount != 0)
            *mpi_errno = MPIC_Send(sendbuf, sendcount, sendtype, root, MPIR_GATHERV_TAG, comm, &errflag);
    } else {
        if (sendbuf != MPI_IN_PLACE && recvcounts[root] != 0)
            *mpi_errno = MPIR_Localcopy(sendbuf, sendcount, sendtype, coll_at(recvbuf, displs[root], recvtype),
                                        recvcounts[root], recvtype);
        if (*mpi_errno == MPI_SUCCESS && recvcounts[other] != 0)
            *mpi_errno = MPIC_Recv(coll_at(recvbuf, displs[other], recvtype), recvcounts[other], recvtype, other,
                                   MPIR_GATHERV_TAG, comm, MPI_STATUS_IGNORE, &errflag);
    }
    pair_end(errflag, mpi_errno);
    return 1;
}

static int pair_scatterv(const void *sendbuf, const MPI_Aint * sendcounts, const MPI_Aint * displs,
                         MPI_Datatype sendtype, void *recvbuf, MPI_Aint recvcount, MPI_Datatype recvtype, int root,
                         MPIR_Comm * comm, int *mpi_errno)
{
    const int other = !comm->rank;
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;

    if (!is_of_two(comm))
        return 0;
    if (comm->rank != root) {
        if (recvcount != 0)
            *mpi_errno = MPIC_Recv(recvbuf, recvcount, recvtype, root, MPIR_SCATTERV_TAG, comm, MPI_STATUS_IGNORE,
                                   &errflag);
    } else {
        if (sendcounts[other] != 0)
            *mpi_errno = MPIC_Send(coll_at(sendbuf, displs[other], sendtype), sendcounts[other], sendtype, other,
                                   MPIR_SCATTERV_TAG, comm, &errflag);
        if (*mpi_errno == MPI_SUCCESS && recvbuf != MPI_IN_PLACE && sendcounts[root] != 0)
            *mpi_errno = MPIR_Localcopy(coll_at(sendbuf, displs[root], sendtype), sendcounts[root], sendtype,
                                        recvbuf, recvcount, recvtype);
    }
    pair_end(errflag, mpi_errno);
    return 1;
}
