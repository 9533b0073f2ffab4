/* Gathers for all ranks on several hosts (decisions 0064 and 0066). Part of ulfm_coll.c; see ulfm_nodes.c. */

/* Blocks of all ranks as they travel: those of this node first, then of the nodes behind it, of each in the order of
 * its ranks. */
typedef struct row {
    const coll_blocks_t *blocks;        /* as they are wanted */
    char *data;
    MPI_Aint *at;               /* where the i-th node from here begins, and the end */
    int nodes, here;
} row_t;

/* A rank's node, counted from here. */
static int row_place_of(const row_t * row, const MPIR_Comm * comm, int rank)
{
    return (comm->internode_table[rank] - row->here + row->nodes) % row->nodes;
}

static void row_make(row_t * row, const coll_blocks_t * blocks, MPIR_Comm * comm)
{
    int i;

    *row = (row_t) {.blocks = blocks,.nodes = comm->node_count,.here = node_of(comm, comm->rank) };
    row->at = MPL_calloc(row->nodes + 1, sizeof *row->at, MPL_MEM_BUFFER);
    if (!row->at)
        nodes_without_memory(comm);
    for (i = 0; i < comm->local_size; i++)
        row->at[row_place_of(row, comm, i) + 1] += blocks->bytes[i];
    for (i = 0; i < row->nodes; i++)
        row->at[i + 1] += row->at[i];
    row->data = MPL_malloc(row->at[row->nodes], MPL_MEM_BUFFER);
    if (!row->data)
        nodes_without_memory(comm);
}

/* The blocks of a node's ranks, of which the communicator has `many`. Lengths are the same in all ranks; where the
 * blocks lie is each rank's own matter. */
static void node_blocks(const coll_blocks_t * blocks, const MPIR_Comm * comm, int node, int many, MPI_Aint * counts,
                        MPI_Aint * at)
{
    int rank, i;

    for (rank = i = 0; i < many; rank++) {
        if (node_of(comm, rank) != node)
            continue;
        counts[i] = blocks->bytes[rank];
        at[i++] = blocks->at[rank];
    }
}

/* The head collects the blocks of its node's ranks, one behind the other. */
static int row_collect(const row_t * row, const char *in, MPIR_Comm * comm)
{
    MPIR_Comm *node = comm->node_comm;
    const int many = node->local_size;
    MPI_Aint counts[many], at[many], end = 0;
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;
    int i, alike = 1;

    node_blocks(row->blocks, comm, row->here, many, counts, at);
    for (i = 0; i < many; end += counts[i++]) {
        at[i] = end;
        alike = alike && counts[i] == counts[0];
    }
    if (alike)
        return MPIR_Gather_impl(in, counts[0], MPI_BYTE, row->data, counts[0], MPI_BYTE, 0, node, &errflag);
    return MPIR_Gatherv_impl(in, counts[node->rank], MPI_BYTE, row->data, counts, at, MPI_BYTE, 0, node, &errflag);
}

/* The heads double the nodes that they know (Bruck et al. 1997). */
static int row_exchange(const row_t * row, MPIR_Comm * comm)
{
    int mpi_errno = MPI_SUCCESS, known;

    for (known = 1; known < row->nodes && !mpi_errno; known *= 2) {
        const int more = MPL_MIN(known, row->nodes - known);
        const swap_t swap = {.out = row->data,.out_count = row->at[more],
            .to = head_of(comm, (row->here - known + row->nodes) % row->nodes),
            .in = row->data + row->at[known],.in_count = row->at[known + more] - row->at[known],
            .from = head_of(comm, (row->here + known) % row->nodes)
        };
        mpi_errno = nodes_swap(swap, MPI_BYTE, MPIR_ALLGATHER_TAG, comm);
    }
    return mpi_errno;
}

/* To where the blocks of the ranks are wanted. The row is used up. */
static void row_place(row_t * row, const MPIR_Comm * comm)
{
    const coll_blocks_t *blocks = row->blocks;
    int rank;

    for (rank = 0; rank < comm->local_size; rank++) {
        MPI_Aint *at = &row->at[row_place_of(row, comm, rank)];
        memcpy(blocks->data + blocks->at[rank], row->data + *at, blocks->bytes[rank]);
        *at += blocks->bytes[rank];
    }
}

/* A node's head collects its ranks' blocks, exchanges them with the other heads, and gives all to its ranks. */
static int heads_gather(const coll_blocks_t * blocks, MPIR_Comm * comm)
{
    const char *own = blocks->data + blocks->at[comm->rank];
    MPIR_Comm *node = comm->node_comm;
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;
    int mpi_errno = MPI_SUCCESS;
    row_t row;

    row_make(&row, blocks, comm);
    if (node)
        mpi_errno = row_collect(&row, own, comm);
    else
        memcpy(row.data, own, blocks->bytes[comm->rank]);
    if (!mpi_errno && (!node || node->rank == 0))
        mpi_errno = row_exchange(&row, comm);
    if (!mpi_errno && node)
        mpi_errno = MPIR_Bcast_impl(row.data, row.at[row.nodes], MPI_BYTE, 0, node, &errflag);
    if (!mpi_errno)
        row_place(&row, comm);
    MPL_free(row.at);
    MPL_free(row.data);
    return mpi_errno;
}

/* All ranks of a node get blocks of which each has one. Those of one length are gathered as such in all ranks; one that
 * wants them apart puts them there afterwards. */
static int gather_in_node(char *data, const MPI_Aint * counts, const MPI_Aint * at, MPIR_Comm * node)
{
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;
    int i, alike = 1, apart = 0, mpi_errno;
    char *row = data + at[0];

    for (i = 1; i < node->local_size; i++) {
        alike = alike && counts[i] == counts[0];
        apart = apart || at[i] != at[0] + i * counts[0];
    }
    if (!alike)
        return MPIR_Allgatherv_impl(MPI_IN_PLACE, 0, MPI_BYTE, data, counts, at, MPI_BYTE, node, &errflag);
    if (apart) {
        row = MPL_malloc(node->local_size * counts[0], MPL_MEM_BUFFER);
        if (!row)
            nodes_without_memory(node);
        memcpy(row + node->rank * counts[0], data + at[node->rank], counts[0]);
    }
    mpi_errno = MPIR_Allgather_impl(MPI_IN_PLACE, 0, MPI_BYTE, row, counts[0], MPI_BYTE, node, &errflag);
    for (i = 0; apart && !mpi_errno && i < node->local_size; i++)
        memcpy(data + at[i], row + i * counts[0], counts[0]);
    if (apart)
        MPL_free(row);
    return mpi_errno;
}

/* Each rank exchanges its block with the ranks in its place on the other nodes; those of a node then have all blocks
 * among them. */
static int lanes_gather(const coll_blocks_t * blocks, MPIR_Comm * comm)
{
    MPIR_Comm *node = comm->node_comm;
    const int nodes = comm->node_count, here = node_of(comm, comm->rank), many = node->local_size;
    MPI_Aint counts[many], at[many];
    int mpi_errno = MPI_SUCCESS, turn;

    for (turn = 1; turn < nodes && !mpi_errno; turn++) {
        const int to = peer_on(comm, (here + turn) % nodes, node->rank);
        const int from = peer_on(comm, (here - turn + nodes) % nodes, node->rank);
        const swap_t swap = {.out = blocks->data + blocks->at[comm->rank],.out_count = blocks->bytes[comm->rank],
            .to = to,.in = blocks->data + blocks->at[from],.in_count = blocks->bytes[from],.from = from
        };
        mpi_errno = nodes_swap(swap, MPI_BYTE, MPIR_ALLGATHER_TAG, comm);
    }
    for (turn = 0; turn < nodes && !mpi_errno; turn++) {
        node_blocks(blocks, comm, turn, many, counts, at);
        mpi_errno = gather_in_node(blocks->data, counts, at, node);
    }
    return mpi_errno;
}

/* Two ranks. */
static int two_gather(const coll_blocks_t * blocks, MPIR_Comm * comm)
{
    const int other = !comm->rank;
    const swap_t swap = {.out = blocks->data + blocks->at[comm->rank],.out_count = blocks->bytes[comm->rank],
        .to = other,.in = blocks->data + blocks->at[other],.in_count = blocks->bytes[other],.from = other
    };

    return nodes_swap(swap, MPI_BYTE, MPIR_ALLGATHER_TAG, comm);
}

typedef int gather_way_t(const coll_blocks_t * blocks, MPIR_Comm * comm);

/* Where nodes have several ranks: short blocks by the heads, long ones by all ranks where the nodes are alike. NULL:
 * MPICH's. `bytes` of all ranks. */
static gather_way_t *gather_way(MPI_Aint bytes, MPIR_Comm * comm)
{
    if (!bytes || !nodes_take(comm))
        return NULL;
    if (nodes_spread(comm) != SPREAD_SEVERAL)
        return comm->local_size == 2 ? two_gather : NULL;
    if (bytes <= NODES_ROW)
        return heads_gather;
    return COLL_STATE(comm)->even >= 2 && comm->node_count <= NODES_MOST_LANES && bytes >= comm->node_count * NODES_ROW
        ? lanes_gather : NULL;
}

/* A rank whose own block cannot be copied takes part all the same, for the others wait for it. */
static void gather_all(gather_way_t * way, const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype,
                       void *recvbuf, const MPI_Aint * counts, const MPI_Aint * displs, MPI_Datatype recvtype,
                       MPIR_Comm * comm, int *mpi_errno)
{
    const int in_place = sendbuf == MPI_IN_PLACE;
    coll_blocks_t blocks;
    int gathered;

    if (coll_make_blocks(&blocks, recvbuf, counts, displs, recvtype, comm->local_size, 0))
        nodes_without_memory(comm);
    if (in_place) {
        sendbuf = coll_at(recvbuf, displs[comm->rank], recvtype);
        sendcount = counts[comm->rank];
        sendtype = recvtype;
    }
    if (!in_place || blocks.packed)
        *mpi_errno = MPIR_Localcopy(sendbuf, sendcount, sendtype, blocks.data + blocks.at[comm->rank],
                                    blocks.bytes[comm->rank], MPI_BYTE);
    gathered = way(&blocks, comm);
    if (!*mpi_errno)
        *mpi_errno = gathered;
    if (!*mpi_errno && blocks.packed)
        *mpi_errno = coll_copy_blocks(&blocks, recvbuf, 1);
    coll_free_blocks(&blocks);
}

static int nodes_allgather(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
                           MPI_Aint recvcount, MPI_Datatype recvtype, MPIR_Comm * comm, int *mpi_errno)
{
    const int ranks = comm->local_size;
    gather_way_t *way = gather_way(coll_bytes(recvcount, recvtype) * ranks, comm);
    MPI_Aint *counts, *displs;
    int i;

    if (!way || MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM != MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM_auto)
        return 0;
    counts = MPL_malloc(2 * ranks * sizeof *counts, MPL_MEM_BUFFER);
    if (!counts)
        nodes_without_memory(comm);
    displs = counts + ranks;
    for (i = 0; i < ranks; i++) {
        counts[i] = recvcount;
        displs[i] = i * recvcount;
    }
    gather_all(way, sendbuf, sendcount, sendtype, recvbuf, counts, displs, recvtype, comm, mpi_errno);
    MPL_free(counts);
    return 1;
}

static int nodes_allgatherv(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
                            const MPI_Aint * recvcounts, const MPI_Aint * displs, MPI_Datatype recvtype,
                            MPIR_Comm * comm, int *mpi_errno)
{
    gather_way_t *way;
    MPI_Aint all = 0;
    int i;

    for (i = 0; i < comm->local_size; i++)
        all += recvcounts[i];
    way = gather_way(coll_bytes(all, recvtype), comm);
    if (!way || MPIR_CVAR_ALLGATHERV_INTRA_ALGORITHM != MPIR_CVAR_ALLGATHERV_INTRA_ALGORITHM_auto)
        return 0;
    gather_all(way, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, mpi_errno);
    return 1;
}
