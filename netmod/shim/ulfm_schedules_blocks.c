/* MPI_Iallgather and MPI_Ialltoall of ranks on several hosts, and the persistent ones, as schedules: short blocks, which
 * go as in ulfm_nodes_gather.c and ulfm_nodes_alltoall.c (decision 0067). Part of ulfm_netmod.c; see ulfm_schedules.c.
 *
 * What moves blocks is called by the schedule where its turn comes. */

static void plan_call(plan_t * p, MPIR_Sched_cb_t * function, void *state)
{
    if (!p->mpi_errno)
        p->mpi_errno = MPIR_Sched_cb(function, state, p->s);
}

/* ---- a gather for all -------------------------------------------------------------------------------------------- */

/* Blocks of one length as they travel: those of this node first, then of the nodes behind it. */
typedef struct line {
    char *data, *out;
    int *place;                 /* of each rank's block */
    MPI_Aint bytes;             /* of a block */
} line_t;

/* `first`: for each node, counted from here, the place of its first block, and the end. */
static line_t *line_make(const plan_t * p, MPI_Aint bytes, int *first)
{
    const MPIR_Comm *comm = p->comm;
    const int nodes = comm->node_count, ranks = comm->local_size, here = node_of(comm, comm->rank);
    line_t *line = plan_state(p, sizeof *line + ranks * sizeof *line->place);
    int node, rank, place = 0;

    *line = (line_t) {.data = plan_state(p, ranks * bytes),.place = (int *) (line + 1),.bytes = bytes };
    for (node = 0; node < nodes; node++) {
        first[node] = place;
        for (rank = 0; rank < ranks; rank++)
            if (node_of(comm, rank) == (here + node) % nodes)
                line->place[rank] = place++;
    }
    first[nodes] = place;
    return line;
}

static int line_end(MPIR_Comm * comm, int tag, void *state)
{
    const line_t *line = state;
    int rank;

    for (rank = 0; rank < comm->local_size; rank++)
        memcpy(line->out + rank * line->bytes, line->data + line->place[rank] * line->bytes, line->bytes);
    return MPI_SUCCESS;
}

/* The head gets the blocks of its node. */
static void plan_collect(plan_t * p, const line_t * line)
{
    const MPIR_Comm *comm = p->comm;
    const int here = node_of(comm, comm->rank);
    int rank;

    for (rank = 0; rank < comm->local_size; rank++)
        if (rank != comm->rank && node_of(comm, rank) == here)
            plan_receive(p, line->data + line->place[rank] * line->bytes, line->bytes, MPI_BYTE, rank);
    plan_barrier(p);
}

/* As row_exchange(). */
static void plan_exchange(plan_t * p, const line_t * line, const int *first)
{
    const int nodes = p->comm->node_count, here = node_of(p->comm, p->comm->rank);
    int known;

    for (known = 1; known < nodes; known *= 2) {
        const int more = MPL_MIN(known, nodes - known);
        plan_send(p, line->data, first[more] * line->bytes, MPI_BYTE, head_of(p->comm, (here - known + nodes) % nodes));
        plan_receive(p, line->data + first[known] * line->bytes, (first[known + more] - first[known]) * line->bytes,
                     MPI_BYTE, head_of(p->comm, (here + known) % nodes));
        plan_barrier(p);
    }
}

int MPIDI_nem_ulfm_schedule_iallgather(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
                                       MPI_Aint recvcount, MPI_Datatype recvtype, MPIR_Comm * comm, MPIR_Sched_t s)
{
    const MPI_Aint all = recvcount * comm->local_size, bytes = coll_bytes(recvcount, recvtype);
    const int head = head_of(comm, node_of(comm, comm->rank));
    plan_t p = {.comm = comm,.s = s };
    int first[comm->node_count + 1];
    line_t *line = line_make(&p, bytes, first);
    pieces_t whole = {.count = comm->local_size * bytes,.per = comm->local_size * bytes,.extent = 1 };
    char *own = line->data + line->place[comm->rank] * bytes;
    tree_t tree;

    if (sendbuf == MPI_IN_PLACE)
        plan_copy(&p, coll_at(recvbuf, comm->rank * recvcount, recvtype), recvcount, recvtype, own, bytes, MPI_BYTE);
    else
        plan_copy(&p, sendbuf, sendcount, sendtype, own, bytes, MPI_BYTE);
    if (comm->rank == head) {
        plan_collect(&p, line);
        plan_exchange(&p, line, first);
    } else {
        plan_send(&p, own, bytes, MPI_BYTE, head);
        plan_barrier(&p);
    }
    tree_of_node(comm, &tree);
    plan_down(&p, &tree, line->data, &whole, MPI_BYTE);
    plan_barrier(&p);
    line->out = plan_bytes(&p, recvbuf, all, recvtype, 0);
    plan_call(&p, line_end, line);
    plan_bytes_end(&p, line->out, recvbuf, all, recvtype);
    return plan_end(&p);
}

/* Whether it is scheduled here. */
int MPIDI_nem_ulfm_schedules_iallgather(MPIR_Comm * comm, MPI_Aint count, MPI_Datatype type)
{
    const MPI_Aint bytes = coll_bytes(count, type);

    return bytes > 0 && bytes <= NODES_BLOCK && bytes * comm->local_size <= NODES_ROW && coll_state(comm) &&
        nodes_take(comm) && nodes_spread(comm) == SPREAD_SEVERAL;
}

/* ---- of each to all ---------------------------------------------------------------------------------------------- */

static int plan_lanes_begin(MPIR_Comm * comm, int tag, void *state)
{
    lanes_begin(state);
    return MPI_SUCCESS;
}

static int plan_lanes_turn(MPIR_Comm * comm, int tag, void *state)
{
    lanes_turn(state);
    return MPI_SUCCESS;
}

static int plan_lanes_end(MPIR_Comm * comm, int tag, void *state)
{
    lanes_end(state);
    return MPI_SUCCESS;
}

/* Each of the group gets its row of all others, in their places. */
static void plan_rows(plan_t * p, const group_t * g, const char *rows, char *others, MPI_Aint bytes)
{
    int i;

    for (i = 1; i < g->many; i++) {
        const int to = (g->mine + i) % g->many, from = (g->mine - i + g->many) % g->many;
        plan_send(p, rows + to * bytes, bytes, MPI_BYTE, g->rank[to]);
        plan_receive(p, others + from * bytes, bytes, MPI_BYTE, g->rank[from]);
    }
    plan_barrier(p);
}

int MPIDI_nem_ulfm_schedule_ialltoall(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
                                      MPI_Aint recvcount, MPI_Datatype recvtype, MPIR_Comm * comm, MPIR_Sched_t s)
{
    const MPI_Aint ranks = comm->local_size, bytes = coll_bytes(recvcount, recvtype), column = comm->node_count * bytes;
    const int in_place = sendbuf == MPI_IN_PLACE;
    plan_t p = {.comm = comm,.s = s };
    lanes_t *l = plan_state(&p, sizeof *l + ranks * sizeof *l->order);
    char *out = plan_bytes(&p, recvbuf, ranks * recvcount, recvtype, in_place), *in = out;
    group_t node, peers;

    if (!in_place)
        in = plan_bytes(&p, sendbuf, ranks * sendcount, sendtype, 1);
    *l = lanes_make(in, out, plan_state(&p, 2 * ranks * bytes), (int *) (l + 1), bytes, comm);
    group_of_peers(comm, &peers);
    group_of_node(comm, &node);
    plan_call(&p, plan_lanes_begin, l);
    plan_rows(&p, &peers, l->rows, l->others, lanes_row(l));
    plan_call(&p, plan_lanes_turn, l);
    plan_copy(&p, l->rows + node.mine * column, column, MPI_BYTE, l->others + node.mine * column, column, MPI_BYTE);
    plan_rows(&p, &node, l->rows, l->others, column);
    plan_call(&p, plan_lanes_end, l);
    plan_bytes_end(&p, out, recvbuf, ranks * recvcount, recvtype);
    return plan_end(&p);
}

int MPIDI_nem_ulfm_schedules_ialltoall(MPIR_Comm * comm, MPI_Aint count, MPI_Datatype type)
{
    return coll_state(comm) && alltoall_has_lanes(coll_bytes(count, type), comm);
}
