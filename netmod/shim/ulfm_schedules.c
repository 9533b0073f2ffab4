/* Nonblocking and persistent collectives of ranks on several hosts, as schedules of MPICH's. MPICH 4.0's own choice knows
 * the hosts in a few of them only, and sends long data twice (decision 0065). Part of ulfm_netmod.c.
 *
 * All ranks are in one tree: the heads of the nodes as in ulfm_nodes.c, and below each head the ranks of its node. Data
 * go along it in pieces, so that a rank passes one on while the next one comes.
 *
 * A schedule starts its entries in their order, and a barrier waits for all before it. Reductions and copies are over
 * when they are started, so that what follows one of them needs no barrier.
 *
 * What a rank cannot schedule the others would wait for: without memory for it the job ends. */

/* Of a broadcast that is not very long. With shorter ones, ranks that share cores take too many turns. */
#define PLAN_PIECE ((MPI_Aint) 256 * 1024)

typedef struct plan {
    MPIR_Comm *comm;
    MPIR_Sched_t s;
    int mpi_errno;
} plan_t;

/* ---- entries ----------------------------------------------------------------------------------------------------- */

static void plan_send(plan_t * p, const void *data, MPI_Aint count, MPI_Datatype type, int to)
{
    if (!p->mpi_errno)
        p->mpi_errno = MPIR_Sched_send(data, count, type, to, p->comm, p->s);
}

static void plan_receive(plan_t * p, void *data, MPI_Aint count, MPI_Datatype type, int from)
{
    if (!p->mpi_errno)
        p->mpi_errno = MPIR_Sched_recv(data, count, type, from, p->comm, p->s);
}

/* inout = in op inout */
static void plan_combine(plan_t * p, const void *in, void *inout, MPI_Aint count, MPI_Datatype type, MPI_Op op)
{
    if (!p->mpi_errno)
        p->mpi_errno = MPIR_Sched_reduce(in, inout, count, type, op, p->s);
}

static void plan_copy(plan_t * p, const void *from, MPI_Aint count, MPI_Datatype type, void *to, MPI_Aint to_count,
                      MPI_Datatype to_type)
{
    if (!p->mpi_errno)
        p->mpi_errno = MPIR_Sched_copy(from, count, type, to, to_count, to_type, p->s);
}

static void plan_barrier(plan_t * p)
{
    if (!p->mpi_errno)
        p->mpi_errno = MPIR_Sched_barrier(p->s);
}

/* Memory that the schedule frees. */
static void *plan_state(const plan_t * p, size_t bytes)
{
    void *state = MPIR_Sched_alloc_state(p->s, bytes);

    if (!state)
        nodes_without_memory(p->comm);
    return state;
}

/* Where the program's blocks lie as bytes: in `buffer`, or in memory of the schedule, into which they are copied now or
 * from which plan_bytes_end() copies them. */
static char *plan_bytes(plan_t * p, const void *buffer, MPI_Aint count, MPI_Datatype type, int copy)
{
    MPI_Aint lb;
    char *data;

    if (is_flat(type, &lb))
        return (char *) buffer + lb;
    data = plan_state(p, coll_bytes(count, type));
    if (copy)
        plan_copy(p, buffer, count, type, data, coll_bytes(count, type), MPI_BYTE);
    return data;
}

static void plan_bytes_end(plan_t * p, const char *data, void *buffer, MPI_Aint count, MPI_Datatype type)
{
    MPI_Aint lb;

    if (!is_flat(type, &lb))
        plan_copy(p, data, coll_bytes(count, type), MPI_BYTE, buffer, count, type);
}

/* Memory that lasts as long as the schedule, at the place of the first element. */
static char *plan_room(const plan_t * p, MPI_Aint count, MPI_Datatype type)
{
    MPI_Aint extent, true_lb, true_extent;

    MPIR_Datatype_get_extent_macro(type, extent);
    MPIR_Type_get_true_extent_impl(type, &true_lb, &true_extent);
    return (char *) plan_state(p, MPL_MAX(1, count * MPL_MAX(extent, true_extent))) - true_lb;
}

static int plan_end(const plan_t * p)
{
    if (p->mpi_errno)
        nodes_without_memory(p->comm);
    return p->mpi_errno;
}

/* ---- the tree of all ranks --------------------------------------------------------------------------------------- */

/* Adds the ranks of this node, of which the head is the root. */
static void tree_add_node(const MPIR_Comm * comm, int chain, tree_t * tree)
{
    const int node = node_of(comm, comm->rank);
    places_t p;
    int many, i;

    if (!comm->node_comm)
        return;
    many = comm->node_comm->local_size;
    p = places_in((comm->node_comm->rank - tree->in_node + many) % many, many, chain);
    if (p.up >= 0)
        tree->up = peer_on(comm, node, (p.up + tree->in_node) % many);
    for (i = 0; i < p.downs; i++)
        tree->down[tree->downs++] = peer_on(comm, node, (p.down[i] + tree->in_node) % many);
}

static void tree_of_all(const MPIR_Comm * comm, int root, int chain, tree_t * tree)
{
    tree_make(comm, root, chain, tree);
    tree_add_node(comm, chain, tree);
}

/* Of this node only. */
static void tree_of_node(const MPIR_Comm * comm, tree_t * tree)
{
    *tree = (tree_t) {.up = -1,.is_head = !comm->node_comm || comm->node_comm->rank == 0 };
    tree_add_node(comm, 0, tree);
}

/* ---- down the tree ----------------------------------------------------------------------------------------------- */

static void plan_down(plan_t * p, const tree_t * tree, char *data, const pieces_t * cut, MPI_Datatype type)
{
    MPI_Aint at, next;
    int i;

    if (tree->up >= 0 && tree->downs)
        plan_receive(p, data, nodes_piece(cut, 0), type, tree->up);
    for (at = 0; at < cut->count; at = next) {
        next = at + cut->per;
        if (tree->up >= 0 && !tree->downs) {
            plan_receive(p, data + at * cut->extent, nodes_piece(cut, at), type, tree->up);
        } else if (tree->up >= 0) {
            plan_barrier(p);
            if (next < cut->count)
                plan_receive(p, data + next * cut->extent, nodes_piece(cut, next), type, tree->up);
        }
        for (i = 0; i < tree->downs; i++)
            plan_send(p, data + at * cut->extent, nodes_piece(cut, at), type, tree->down[i]);
    }
}

int MPIDI_nem_ulfm_schedule_ibcast(void *buffer, MPI_Aint count, MPI_Datatype type, int root, MPIR_Comm * comm,
                                   MPIR_Sched_t s)
{
    const MPI_Aint bytes = coll_bytes(count, type);
    pieces_t cut = nodes_pieces(bytes, MPI_BYTE, comm->local_size);
    plan_t p = {.comm = comm,.s = s };
    tree_t tree;
    char *data;

    if (comm->local_size == 2) {
        cut.per = bytes;        /* as in nodes_bcast() */
    } else if (bytes > NODES_PIECE && bytes <= NODES_LONG) {
        cut.per = PLAN_PIECE;
        cut.many = 0;
    }
    tree_of_all(comm, root, cut.many, &tree);
    data = plan_bytes(&p, buffer, count, type, tree.up < 0);
    plan_down(&p, &tree, data, &cut, MPI_BYTE);
    if (tree.up >= 0) {
        plan_barrier(&p);
        plan_bytes_end(&p, data, buffer, count, type);
    }
    return plan_end(&p);
}

/* ---- up the tree ------------------------------------------------------------------------------------------------- */

/* What a rank combines. What comes from the first of those below goes to the sum's place, and the rank's own data are
 * added, unless these are there already. */
typedef struct fold {
    const char *own;
    char *sum;                  /* all of it, or room for two pieces */
    char *room;                 /* for two pieces of each other one that something comes from */
    int in_turns;               /* sum is room for two pieces */
    pieces_t cut;
    MPI_Datatype type;
    MPI_Op op;
} fold_t;

static char *fold_sum(const fold_t * f, MPI_Aint at)
{
    return f->sum + (f->in_turns ? at / f->cut.per % 2 * f->cut.per : at) * f->cut.extent;
}

static int fold_direct(const fold_t * f, int down)
{
    return down == 0 && f->own != f->sum;
}

static char *fold_place(const fold_t * f, int down, MPI_Aint at)
{
    if (fold_direct(f, down))
        return fold_sum(f, at);
    return f->room + (2 * down + at / f->cut.per % 2) * f->cut.per * f->cut.extent;
}

static void fold_receive(plan_t * p, const tree_t * tree, const fold_t * f, MPI_Aint at)
{
    int i;

    for (i = 0; i < tree->downs && at < f->cut.count; i++)
        plan_receive(p, fold_place(f, i, at), nodes_piece(&f->cut, at), f->type, tree->down[i]);
}

static void fold_add(plan_t * p, const tree_t * tree, const fold_t * f, MPI_Aint at)
{
    int i;

    for (i = 0; i < tree->downs && at < f->cut.count; i++)
        plan_combine(p, fold_direct(f, i) ? f->own + at * f->cut.extent : fold_place(f, i, at), fold_sum(f, at),
                     nodes_piece(&f->cut, at), f->type, f->op);
}

/* `sum`: where it is wanted, or NULL. */
static fold_t fold_make(plan_t * p, const tree_t * tree, const void *own, void *sum, const pieces_t * cut,
                        MPI_Datatype type, MPI_Op op)
{
    fold_t f = {.own = own,.sum = sum,.cut = *cut,.type = type,.op = op,.in_turns = !sum };

    if (tree->downs && !sum)
        f.sum = plan_room(p, MPL_MIN(2 * cut->per, cut->count), type);
    if (tree->downs > fold_direct(&f, 0))
        f.room = plan_room(p, 2 * tree->downs * cut->per, type);
    return f;
}

static void plan_up(plan_t * p, const tree_t * tree, const void *own, void *sum, const pieces_t * cut, MPI_Datatype type,
                    MPI_Op op)
{
    const fold_t f = fold_make(p, tree, own, sum, cut, type, op);
    MPI_Aint at, next;

    fold_receive(p, tree, &f, 0);
    for (at = 0; at < cut->count; at = next) {
        next = at + cut->per;
        if (tree->downs)
            plan_barrier(p);
        fold_receive(p, tree, &f, next);
        fold_add(p, tree, &f, at);
        if (tree->up >= 0)
            plan_send(p, tree->downs ? fold_sum(&f, at) : f.own + at * cut->extent, nodes_piece(cut, at), type, tree->up);
    }
}

int MPIDI_nem_ulfm_schedule_ireduce(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype type, MPI_Op op,
                                    int root, MPIR_Comm * comm, MPIR_Sched_t s)
{
    const pieces_t cut = nodes_pieces(count, type, comm->local_size);
    plan_t p = {.comm = comm,.s = s };
    tree_t tree;

    if (!MPIR_Op_is_commutative(op))
        return MPIR_Ireduce_intra_sched_binomial(sendbuf, recvbuf, count, type, op, root, comm, s);
    tree_of_all(comm, root, cut.many, &tree);
    plan_up(&p, &tree, sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, comm->rank == root ? recvbuf : NULL, &cut, type, op);
    return plan_end(&p);
}

/* ---- for all ----------------------------------------------------------------------------------------------------- */

/* On each node up to the head, between the heads, and down again. */
static int plan_by_heads(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype type, MPI_Op op,
                         MPIR_Comm * comm, MPIR_Sched_t s)
{
    const pieces_t cut = nodes_pieces(count, type, comm->local_size);
    plan_t p = {.comm = comm,.s = s };
    tree_t tree;

    tree_of_node(comm, &tree);
    if (!tree.downs && tree.is_head && sendbuf != MPI_IN_PLACE)
        plan_copy(&p, sendbuf, count, type, recvbuf, count, type);
    plan_up(&p, &tree, sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, recvbuf, &cut, type, op);
    plan_barrier(&p);
    if (tree.is_head && !p.mpi_errno)
        p.mpi_errno = MPIR_Iallreduce_intra_sched_recursive_doubling(MPI_IN_PLACE, recvbuf, count, type, op,
                                                                     comm->node_roots_comm, s);
    plan_barrier(&p);
    plan_down(&p, &tree, recvbuf, &cut, type);
    return plan_end(&p);
}

static void group_of_node(const MPIR_Comm * comm, group_t * g)
{
    int rank;

    *g = (group_t) {.mine = comm->node_comm->rank };
    for (rank = 0; rank < comm->local_size; rank++)
        if (node_of(comm, rank) == node_of(comm, comm->rank))
            g->rank[g->many++] = rank;
}

/* All shares are cut alike, as the longest one. */
static pieces_t share_pieces(const group_t * g, MPI_Aint count, MPI_Datatype type, const plan_t * p)
{
    return nodes_pieces((count + g->many - 1) / g->many, type, p->comm->local_size);
}

/* A piece of the share of the index-th of the group. */
static share_t share_piece(const group_t * g, MPI_Aint count, int index, const pieces_t * cut, MPI_Aint at)
{
    const share_t share = nodes_share(count, g->many, index);

    return (share_t) {.first = share.first + at,.count = MPL_MAX(0, MPL_MIN(cut->per, share.count - at)) };
}

/* To each of the group its own. */
static void plan_send_pieces(plan_t * p, const group_t * g, const char *data, MPI_Aint count, MPI_Datatype type,
                             const pieces_t * cut, MPI_Aint at)
{
    int i;

    for (i = 1; i < g->many; i++) {
        const int to = (g->mine + i) % g->many;
        const share_t piece = share_piece(g, count, to, cut, at);
        if (piece.count)
            plan_send(p, data + piece.first * cut->extent, piece.count, type, g->rank[to]);
    }
}

/* Each of the group gets the sum of its share. All send and receive a piece before they wait for it, and one ahead. */
static void plan_sum_shares(plan_t * p, const group_t * g, const char *own, char *sum, MPI_Aint count,
                            MPI_Datatype type, MPI_Op op)
{
    const pieces_t cut = share_pieces(g, count, type, p);
    const share_t mine = nodes_share(count, g->many, g->mine);
    const MPI_Aint far = mine.first * cut.extent;
    pieces_t of_mine = cut;
    tree_t others = {.up = -1 };
    MPI_Aint at;
    fold_t f;
    int i;

    of_mine.count = mine.count;
    for (i = 1; i < g->many; i++)
        others.down[others.downs++] = g->rank[(g->mine - i + g->many) % g->many];
    f = fold_make(p, &others, own + far, sum + far, &of_mine, type, op);
    plan_send_pieces(p, g, own, count, type, &cut, 0);
    fold_receive(p, &others, &f, 0);
    for (at = 0; at < cut.count; at += cut.per) {
        plan_barrier(p);
        if (at + cut.per < cut.count)
            plan_send_pieces(p, g, own, count, type, &cut, at + cut.per);
        fold_receive(p, &others, &f, at + cut.per);
        fold_add(p, &others, &f, at);
    }
    plan_barrier(p);
}

/* And gives it to all of them. */
static void plan_give_shares(plan_t * p, const group_t * g, char *sum, MPI_Aint count, MPI_Datatype type)
{
    const pieces_t cut = share_pieces(g, count, type, p);
    MPI_Aint at;
    int i;

    for (at = 0; at < cut.count; at += cut.per) {
        const share_t mine = share_piece(g, count, g->mine, &cut, at);
        for (i = 1; i < g->many; i++) {
            const int to = (g->mine + i) % g->many, from = (g->mine - i + g->many) % g->many;
            const share_t theirs = share_piece(g, count, from, &cut, at);
            if (mine.count)
                plan_send(p, sum + mine.first * cut.extent, mine.count, type, g->rank[to]);
            if (theirs.count)
                plan_receive(p, sum + theirs.first * cut.extent, theirs.count, type, g->rank[from]);
        }
    }
    plan_barrier(p);
}

/* Each rank sums a part of its node's data, and a share of that with its peers on the other nodes. */
static int plan_by_shares(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype type, MPI_Op op,
                          MPIR_Comm * comm, MPIR_Sched_t s)
{
    const char *own = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
    share_t part = {.count = count };
    plan_t p = {.comm = comm,.s = s };
    group_t node, peers;
    MPI_Aint extent;
    char *sum;

    MPIR_Datatype_get_extent_macro(type, extent);
    if (comm->node_comm) {
        group_of_node(comm, &node);
        part = nodes_share(count, node.many, node.mine);
        plan_sum_shares(&p, &node, own, recvbuf, count, type, op);
        own = recvbuf;
    }
    group_of_peers(comm, &peers);
    sum = (char *) recvbuf + part.first * extent;
    plan_sum_shares(&p, &peers, own + part.first * extent, sum, part.count, type, op);
    plan_give_shares(&p, &peers, sum, part.count, type);
    if (comm->node_comm)
        plan_give_shares(&p, &node, recvbuf, count, type);
    return plan_end(&p);
}

/* Whether nodes are alike and few. */
static int plan_has_shares(MPIR_Comm * comm)
{
    const int each = nodes_spread(comm) == SPREAD_ALONE ? 1 : COLL_STATE(comm)->even;

    return nodes_count(comm) <= NODES_MOST_LANES && each >= 1 && each <= NODES_GROUP;
}

int MPIDI_nem_ulfm_schedule_iallreduce(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype type, MPI_Op op,
                                       MPIR_Comm * comm, MPIR_Sched_t s)
{
    const int commutes = MPIR_Op_is_commutative(op), doubles = coll_bytes(count, type) <= NODES_DOUBLING;

    if (commutes && doubles && nodes_spread(comm) == SPREAD_SEVERAL)
        return plan_by_heads(sendbuf, recvbuf, count, type, op, comm, s);
    if (commutes && !doubles && plan_has_shares(comm))
        return plan_by_shares(sendbuf, recvbuf, count, type, op, comm, s);
    if (doubles || !HANDLE_IS_BUILTIN(op) || count < comm->coll.pof2)
        return MPIR_Iallreduce_intra_sched_recursive_doubling(sendbuf, recvbuf, count, type, op, comm, s);
    return MPIR_Iallreduce_intra_sched_reduce_scatter_allgather(sendbuf, recvbuf, count, type, op, comm, s);
}

/* The heads double the nodes that they know of. */
int MPIDI_nem_ulfm_schedule_ibarrier(MPIR_Comm * comm, MPIR_Sched_t s)
{
    const int nodes = nodes_count(comm), here = node_of(comm, comm->rank);
    plan_t p = {.comm = comm,.s = s };
    tree_t tree;
    int i;

    tree_of_node(comm, &tree);
    for (i = 0; i < tree.downs; i++)
        plan_receive(&p, NULL, 0, MPI_BYTE, tree.down[i]);
    plan_barrier(&p);
    if (tree.up >= 0) {
        plan_send(&p, NULL, 0, MPI_BYTE, tree.up);
        plan_receive(&p, NULL, 0, MPI_BYTE, tree.up);
        plan_barrier(&p);
    }
    for (i = 1; i < nodes && tree.is_head; i *= 2) {
        plan_send(&p, NULL, 0, MPI_BYTE, head_of(comm, (here + i) % nodes));
        plan_receive(&p, NULL, 0, MPI_BYTE, head_of(comm, (here - i + nodes) % nodes));
        plan_barrier(&p);
    }
    for (i = 0; i < tree.downs; i++)
        plan_send(&p, NULL, 0, MPI_BYTE, tree.down[i]);
    return plan_end(&p);
}

/* ---- prefix reductions ------------------------------------------------------------------------------------------- */

/* As prefix_piece() of ulfm_nodes.c. A sum that another rank gets is changed after the barrier that waits for its way
 * there. */
static void plan_prefix_piece(plan_t * p, prefix_t x, MPI_Aint count, MPI_Datatype type, MPI_Op op)
{
    const int rank = p->comm->rank, size = p->comm->local_size;
    int step;

    for (step = 1; step < size; step *= 2) {
        const int goes_on = rank + 2 * step < size;
        char *come = x.before && step == 1 ? x.before : x.other;
        if (rank + step < size)
            plan_send(p, x.have, count, type, rank + step);
        if (rank < step)
            continue;
        plan_receive(p, come, count, type, rank - step);
        plan_barrier(p);
        if (x.before && step > 1)
            plan_combine(p, come, x.before, count, type, op);
        if (x.before && !goes_on)
            continue;
        if (x.have != x.room)
            plan_copy(p, x.have, count, type, x.room, count, type);
        plan_combine(p, come, x.room, count, type, op);
        x.have = x.room;
    }
}

/* In place, MPI_Iexscan's own data are where the result comes: they are put aside. */
static int plan_prefix(int exclusive, const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype type, MPI_Op op,
                       MPIR_Comm * comm, MPIR_Sched_t s)
{
    const int rank = comm->rank, excludes = exclusive && rank > 0, in_place = sendbuf == MPI_IN_PLACE;
    const pieces_t cut = nodes_pieces(count, type, comm->local_size);
    plan_t p = {.comm = comm,.s = s };
    char *room = NULL, *other = NULL;
    MPI_Aint at;

    if (excludes && rank + 1 < comm->local_size)
        room = plan_room(&p, cut.per, type);
    if (rank > excludes)
        other = plan_room(&p, cut.per, type);
    if (!exclusive && !in_place)
        plan_copy(&p, sendbuf, count, type, recvbuf, count, type);
    for (at = 0; at < count; at += cut.per) {
        const MPI_Aint n = nodes_piece(&cut, at);
        char *result = (char *) recvbuf + at * cut.extent;
        prefix_t x = {.have = result,.room = result,.other = other };
        if (exclusive && !in_place)
            x.have = (const char *) sendbuf + at * cut.extent;
        if (excludes) {
            x.room = room;
            x.before = result;
        }
        if (excludes && in_place && room) {
            plan_copy(&p, result, n, type, room, n, type);
            x.have = room;
        }
        plan_prefix_piece(&p, x, n, type, op);
        if (room)
            plan_barrier(&p);
    }
    return plan_end(&p);
}

int MPIDI_nem_ulfm_schedule_iscan(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype type, MPI_Op op,
                                  MPIR_Comm * comm, MPIR_Sched_t s)
{
    return plan_prefix(0, sendbuf, recvbuf, count, type, op, comm, s);
}

int MPIDI_nem_ulfm_schedule_iexscan(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype type, MPI_Op op,
                                    MPIR_Comm * comm, MPIR_Sched_t s)
{
    return plan_prefix(1, sendbuf, recvbuf, count, type, op, comm, s);
}

/* Whether the calls of this communicator are scheduled here. */
int MPIDI_nem_ulfm_schedules(MPIR_Comm * comm, MPI_Aint count, MPI_Datatype type)
{
    return coll_bytes(count, type) > 0 && coll_state(comm) && nodes_take(comm);
}
