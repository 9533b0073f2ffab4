/* MPI_Alltoall of ranks on several hosts (decision 0067). Part of ulfm_coll.c; see ulfm_nodes.c.
 *
 * Short blocks go with those of the other ranks of their node: each rank gives the ranks in its place on the other nodes
 * what is for their nodes, and the ranks of a node exchange what they have got. With P ranks on each node that is one
 * message to a node for each rank, where there were P, and each byte is copied once more. */

/* ---- between nodes ----------------------------------------------------------------------------------------------- */

/* All are begun before one is waited for. After an error too, all are over: nothing comes to this memory any more. */
static int peers_exchange(const group_t * g, const char *out, char *in, MPI_Aint bytes, MPIR_Comm * comm)
{
    MPIR_Request *receiving[NODES_GROUP] = { 0 }, *sending[NODES_GROUP] = { 0 };
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;
    int mpi_errno = MPI_SUCCESS, turn;

    for (turn = 1; turn < g->many && !mpi_errno; turn++) {
        const int from = (g->mine - turn + g->many) % g->many;
        mpi_errno = MPIC_Irecv(in + from * bytes, bytes, MPI_BYTE, g->rank[from], MPIR_ALLTOALL_TAG, comm,
                               &receiving[from]);
    }
    for (turn = 1; turn < g->many && !mpi_errno; turn++) {
        const int to = (g->mine + turn) % g->many;
        mpi_errno = MPIC_Isend(out + to * bytes, bytes, MPI_BYTE, g->rank[to], MPIR_ALLTOALL_TAG, comm, &sending[to],
                               &errflag);
    }
    for (turn = 0; turn < g->many; turn++) {
        const int received = nodes_wait(&receiving[turn]), sent = nodes_wait(&sending[turn]);
        mpi_errno = mpi_errno ? mpi_errno : received ? received : sent;
    }
    return mpi_errno;
}

/* ---- the order of blocks ----------------------------------------------------------------------------------------- */

/* Blocks on their way, by the order of order_by_place(). `rows` and `others` have room for the blocks of all ranks. */
typedef struct lanes {
    const char *in;
    char *rows, *others, *out;
    const int *order;
    MPI_Aint bytes;             /* of a block */
    int nodes, each, here;      /* ranks on each node, and the node of this one */
} lanes_t;

static MPI_Aint lanes_row(const lanes_t * l)
{
    return l->each * l->bytes;
}

/* rows: what goes to each node; the own node's is there. */
static void lanes_begin(const lanes_t * l)
{
    char *row = l->rows;
    int node, place;

    for (node = 0; node < l->nodes; node++)
        for (place = 0; place < l->each; place++, row += l->bytes)
            memcpy(row, l->in + l->order[place * l->nodes + node] * l->bytes, l->bytes);
    memcpy(l->others + l->here * lanes_row(l), l->rows + l->here * lanes_row(l), lanes_row(l));
}

/* others: what came from each node. rows: what goes to each rank of this one. */
static void lanes_turn(const lanes_t * l)
{
    char *row = l->rows;
    int node, place;

    for (place = 0; place < l->each; place++)
        for (node = 0; node < l->nodes; node++, row += l->bytes)
            memcpy(row, l->others + node * lanes_row(l) + place * l->bytes, l->bytes);
}

/* others: what came from each rank of this node. */
static void lanes_end(const lanes_t * l)
{
    int i;

    for (i = 0; i < l->each * l->nodes; i++)
        memcpy(l->out + l->order[i] * l->bytes, l->others + i * l->bytes, l->bytes);
}

/* `order` has room for all ranks. */
static lanes_t lanes_make(const char *in, char *out, char *rows, int *order, MPI_Aint bytes, const MPIR_Comm * comm)
{
    (void) order_by_place(comm, order);
    return (lanes_t) {.in = in,.rows = rows,.others = rows + comm->local_size * bytes,.out = out,.order = order,
        .bytes = bytes,.nodes = comm->node_count,.each = comm->node_comm->local_size,.here = node_of(comm, comm->rank)
    };
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

/* call->in and out: as coll_pack() gave them. */
static void nodes_alltoall(const ulfm_coll_call * call, MPIR_Comm * comm, int *mpi_errno)
{
    const MPI_Aint bytes = call->count, column = comm->node_count * bytes;
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;
    int order[comm->local_size];
    group_t peers;
    void *memory;
    char *rows;
    lanes_t l;

    if (*mpi_errno)
        nodes_without_memory(comm);
    group_of_peers(comm, &peers);
    rows = nodes_memory(2 * comm->local_size * bytes, MPI_BYTE, &memory, comm);
    l = lanes_make(call->in, call->out, rows, order, bytes, comm);
    lanes_begin(&l);
    *mpi_errno = peers_exchange(&peers, l.rows, l.others, lanes_row(&l), comm);
    lanes_turn(&l);
    if (!*mpi_errno)
        *mpi_errno = MPIR_Alltoall_impl(l.rows, column, MPI_BYTE, l.others, column, MPI_BYTE, comm->node_comm, &errflag);
    if (!*mpi_errno)
        lanes_end(&l);
    nodes_free(memory);
}

/* Where nodes are alike and have several ranks. */
static int alltoall_has_lanes(MPI_Aint bytes, MPIR_Comm * comm)
{
    return bytes > 0 && bytes <= NODES_BLOCK && nodes_take(comm) && nodes_spread(comm) == SPREAD_SEVERAL &&
        COLL_STATE(comm)->even >= 2 && COLL_STATE(comm)->even <= NODES_GROUP && comm->node_count <= NODES_GROUP;
}

static int nodes_take_alltoall(MPI_Aint bytes, MPIR_Comm * comm)
{
    return alltoall_has_lanes(bytes, comm) &&
        MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM == MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM_auto;
}
