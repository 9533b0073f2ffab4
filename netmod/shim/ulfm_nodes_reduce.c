/* Reductions of ranks on several hosts (decisions 0059 and 0066). Part of ulfm_coll.c; see ulfm_nodes.c. */

/* ---- reductions to a root ---------------------------------------------------------------------------------------- */

/* What a rank combines. */
typedef struct summing {
    const char *own;            /* its own data */
    char *sum;                  /* NULL: not its to make */
    char *other;                /* room for what comes from others */
} summing_t;

/* Where nobody else is on the head's node, the first sum comes to its place, and the head's own data are added: nothing
 * is copied. */
static int nodes_reduce_piece(const summing_t * s, MPI_Aint count, MPI_Datatype type, MPI_Op op, const tree_t * tree,
                              MPIR_Comm * comm)
{
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;
    int mpi_errno = MPI_SUCCESS, i, made = s->own == s->sum;

    if (comm->node_comm) {
        mpi_errno = MPIR_Reduce_impl(tree->is_head && made ? MPI_IN_PLACE : s->own, s->sum, count, type, op,
                                     tree->in_node, comm->node_comm, &errflag);
        made = 1;
    } else if (tree->downs && !made && has_gaps(type)) {
        mpi_errno = nodes_copy(s->own, s->sum, count, type);
        made = 1;
    }
    for (i = 0; i < tree->downs && !mpi_errno; i++) {
        mpi_errno = nodes_receive(made ? s->other : s->sum, count, type, tree->down[i], MPIR_REDUCE_TAG, comm);
        if (!mpi_errno)
            mpi_errno = MPIR_Reduce_local(made ? s->other : s->own, s->sum, count, type, op);
        made = 1;
    }
    if (tree->up >= 0 && !mpi_errno)
        mpi_errno = nodes_send(made ? s->sum : s->own, count, type, tree->up, MPIR_REDUCE_TAG, comm);
    return mpi_errno;
}

static int nodes_reduce(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype type, MPI_Op op, int root,
                        MPIR_Comm * comm, int *mpi_errno)
{
    const int is_root = comm->rank == root;
    void *memory = NULL, *more = NULL;
    char *sum = NULL, *other = NULL;
    pieces_t cut;
    MPI_Aint at;
    tree_t tree;

    if (!count || MPIR_CVAR_REDUCE_INTRA_ALGORITHM != MPIR_CVAR_REDUCE_INTRA_ALGORITHM_auto || !MPIR_Op_is_commutative(op) ||
        !nodes_take(comm))
        return 0;
    cut = nodes_pieces(count, type, nodes_count(comm));
    tree_make(comm, root, cut.many, &tree);
    if (tree.is_head && !is_root && (comm->node_comm || tree.downs))
        sum = nodes_memory(cut.per, type, &memory, comm);
    if (tree.downs > 1 || (tree.downs && (comm->node_comm || sendbuf == MPI_IN_PLACE || has_gaps(type))))
        other = nodes_memory(cut.per, type, &more, comm);
    for (at = 0; at < count && !*mpi_errno; at += cut.per) {
        const MPI_Aint far = at * cut.extent;
        summing_t s = {.own = (const char *) sendbuf + far,.sum = sum,.other = other };
        if (is_root)
            s.sum = (char *) recvbuf + far;
        if (is_root && sendbuf == MPI_IN_PLACE)
            s.own = s.sum;
        *mpi_errno = nodes_reduce_piece(&s, nodes_piece(&cut, at), type, op, &tree, comm);
    }
    nodes_free(memory);
    nodes_free(more);
    return 1;
}

/* ---- reductions for all ------------------------------------------------------------------------------------------ */

/* The elements of `count` that are the i-th of so many. */
typedef struct share {
    MPI_Aint first, count;
} share_t;

static share_t nodes_share(MPI_Aint count, int many, int i)
{
    const MPI_Aint first = count * i / many;

    return (share_t) {.first = first,.count = count * (i + 1) / many - first };
}

/* Ranks, and the shares of each. */
typedef struct sharing {
    group_t peers;
    share_t share[NODES_MOST_LANES];
} sharing_t;

static MPI_Aint sharing_longest(const sharing_t * s)
{
    MPI_Aint longest = 0;
    int i;

    for (i = 0; i < s->peers.many; i++)
        longest = MPL_MAX(longest, s->share[i].count);
    return longest;
}

/* Elements of a piece, in which shares are summed: the same in all ranks. */
static MPI_Aint sharing_piece(const sharing_t * s, MPI_Datatype type)
{
    const MPI_Aint bytes = s->peers.many == 2 ? NODES_TWO_PIECE : NODES_LONG_PIECE;

    return MPL_MAX(1, MPL_MIN(sharing_longest(s), bytes / coll_bytes(1, type)));
}

/* How a rank adds up its share, of which the others give it theirs: piece by piece of each of them. Between two nodes one
 * is added while the next one comes; of more, ranks that share cores take too many turns for that. */
typedef struct adding {
    const sharing_t *s;
    const char *part, *own;
    char *sum, *other;
    MPI_Datatype type;
    MPI_Aint per, extent;
    int tag, turns, direct;     /* steps of a turn; what comes first goes to the sum's place */
    MPIR_Request *receiving[2], *sending[2];
} adding_t;

static MPI_Aint adding_count(const adding_t * a, const share_t * share, int step)
{
    return MPL_MAX(0, MPL_MIN(a->per, share->count - step % a->turns * a->per));
}

static char *adding_place(const adding_t * a, int step)
{
    if (a->direct && step < a->turns)
        return a->sum + step * a->per * a->extent;
    return a->other + step % 2 * a->per * a->extent;
}

static int adding_start(adding_t * a, int step, MPIR_Comm * comm)
{
    const sharing_t *s = a->s;
    const group_t *g = &s->peers;
    const int turn = 1 + step / a->turns, to = (g->mine + turn) % g->many, from = (g->mine - turn + g->many) % g->many;
    MPI_Aint in = adding_count(a, &s->share[g->mine], step), out = adding_count(a, &s->share[to], step);
    const MPI_Datatype wire = nodes_wire(a->type, &in);
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;
    int mpi_errno = MPI_SUCCESS;

    (void) nodes_wire(a->type, &out);
    if (in)
        mpi_errno = MPIC_Irecv(adding_place(a, step), in, wire, g->rank[from], a->tag, comm, &a->receiving[step % 2]);
    if (out && !mpi_errno)
        mpi_errno = MPIC_Isend(a->part + (s->share[to].first + step % a->turns * a->per) * a->extent, out, wire,
                               g->rank[to], a->tag, comm, &a->sending[step % 2], &errflag);
    return mpi_errno;
}

static int adding_finish(adding_t * a, int step, MPI_Op op)
{
    const MPI_Aint n = adding_count(a, &a->s->share[a->s->peers.mine], step), far = step % a->turns * a->per * a->extent;
    const int direct = a->direct && step < a->turns;
    int mpi_errno = nodes_wait(&a->receiving[step % 2]), of_send;

    if (n && !mpi_errno)
        mpi_errno = MPIR_Reduce_local(direct ? a->own + far : adding_place(a, step), a->sum + far, n, a->type, op);
    of_send = nodes_wait(&a->sending[step % 2]);
    return mpi_errno ? mpi_errno : of_send;
}

/* The sum is at the share's place in `part`, or apart. `other` is room for two pieces. After an error it goes on, for the
 * others wait, and nothing is to come to that room any more. Returns the first error. */
static int nodes_sum_shares(const char *part, char *sum, char *other, const sharing_t * s, MPI_Datatype type, MPI_Op op,
                            int tag, MPIR_Comm * comm)
{
    const share_t *mine = &s->share[s->peers.mine];
    adding_t a = {.s = s,.part = part,.sum = sum,.other = other,.type = type,.per = sharing_piece(s, type),.tag = tag };
    const int ahead = s->peers.many == 2;
    int mpi_errno = MPI_SUCCESS, i, steps;

    MPIR_Datatype_get_extent_macro(type, a.extent);
    a.own = part + mine->first * a.extent;
    a.direct = a.own != sum && !has_gaps(type);
    if (a.own != sum && !a.direct)
        mpi_errno = nodes_copy(a.own, sum, mine->count, type);
    a.turns = (sharing_longest(s) + a.per - 1) / a.per;
    steps = a.turns * (s->peers.many - 1);
    for (i = 0; i < steps + ahead; i++) {
        const int of_start = i < steps ? adding_start(&a, i, comm) : MPI_SUCCESS;
        const int of_finish = i >= ahead ? adding_finish(&a, i - ahead, op) : MPI_SUCCESS;
        mpi_errno = mpi_errno ? mpi_errno : of_start ? of_start : of_finish;
    }
    return mpi_errno;
}

/* And gives the sum to all. */
static int nodes_give_shares(char *part, const sharing_t * s, MPI_Datatype type, int tag, MPIR_Comm * comm)
{
    const group_t *g = &s->peers;
    int mpi_errno = MPI_SUCCESS, turn;
    MPI_Aint extent;

    MPIR_Datatype_get_extent_macro(type, extent);
    for (turn = 1; turn < g->many && !mpi_errno; turn++) {
        const int to = (g->mine + turn) % g->many, from = (g->mine - turn + g->many) % g->many;
        const swap_t swap = {.out = part + s->share[g->mine].first * extent,.out_count = s->share[g->mine].count,
            .to = g->rank[to],.in = part + s->share[from].first * extent,.in_count = s->share[from].count,
            .from = g->rank[from]
        };
        mpi_errno = nodes_swap(swap, type, tag, comm);
    }
    return mpi_errno;
}

/* A part of the data is this rank's and those of its peers. */
static int nodes_exchange_shares(char *part, MPI_Aint count, MPI_Datatype type, MPI_Op op, MPIR_Comm * comm)
{
    MPI_Aint extent;
    void *memory;
    sharing_t s;
    char *other;
    int i, mpi_errno;

    group_of_peers(comm, &s.peers);
    for (i = 0; i < s.peers.many; i++)
        s.share[i] = nodes_share(count, s.peers.many, i);
    other = nodes_memory(2 * sharing_piece(&s, type), type, &memory, comm);
    MPIR_Datatype_get_extent_macro(type, extent);
    mpi_errno = nodes_sum_shares(part, part + s.share[s.peers.mine].first * extent, other, &s, type, op, MPIR_ALLREDUCE_TAG,
                                 comm);
    if (!mpi_errno)
        mpi_errno = nodes_give_shares(part, &s, type, MPIR_ALLREDUCE_TAG, comm);
    nodes_free(memory);
    return mpi_errno;
}

/* Each rank of a node has a part of the node's sum, brings it to the other nodes, and all ranks of the node collect the
 * parts. */
static int nodes_allreduce_lanes(const void *in, void *out, MPI_Aint count, MPI_Datatype type, MPI_Op op,
                                 MPIR_Comm * comm)
{
    MPIR_Comm *node = comm->node_comm;
    const int each = node->local_size;
    MPI_Aint counts[each], displs[each];
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;
    int mpi_errno, i;
    void *memory;
    char *part;

    for (i = 0; i < each; i++) {
        const share_t share = nodes_share(count, each, i);
        displs[i] = share.first;
        counts[i] = share.count;
    }
    part = nodes_memory(counts[node->rank], type, &memory, comm);
    mpi_errno = MPIR_Reduce_scatter_impl(in, part, counts, type, op, node, &errflag);
    if (!mpi_errno)
        mpi_errno = nodes_exchange_shares(part, counts[node->rank], type, op, comm);
    if (!mpi_errno)
        mpi_errno = MPIR_Allgatherv_impl(part, counts[node->rank], type, out, counts, displs, type, node, &errflag);
    nodes_free(memory);
    return mpi_errno;
}

/* Two ranks, each of which computes what the other does, in the same order. */
static int nodes_allreduce_two(const void *sendbuf, char *recvbuf, MPI_Aint count, MPI_Datatype type, MPI_Op op,
                               MPIR_Comm * comm)
{
    const int in_place = sendbuf == MPI_IN_PLACE, low = comm->rank == 0;
    const int apart = in_place || !low || has_gaps(type);
    const void *own = in_place ? recvbuf : sendbuf;
    void *memory = NULL;
    char *other = apart ? nodes_memory(count, type, &memory, comm) : recvbuf;
    const swap_t swap = {.out = own,.out_count = count,.to = !comm->rank,
        .in = other,.in_count = count,.from = !comm->rank
    };
    int mpi_errno = nodes_swap(swap, type, MPIR_ALLREDUCE_TAG, comm);

    if (!low && !in_place && !mpi_errno)
        mpi_errno = nodes_copy(own, recvbuf, count, type);
    if (!mpi_errno)
        mpi_errno = MPIR_Reduce_local(low ? own : other, low ? other : recvbuf, count, type, op);
    if (low && apart && !mpi_errno)
        mpi_errno = nodes_copy(other, recvbuf, count, type);
    nodes_free(memory);
    return mpi_errno;
}

/* One rank on each node. */
static int nodes_allreduce_alone(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype type, MPI_Op op,
                                 MPIR_Comm * comm, int *mpi_errno)
{
    const int nodes = comm->local_size;
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;
    void *memory = NULL;
    char *sum = recvbuf;

    if (coll_bytes(count, type) <= NODES_DOUBLING && nodes == 2) {
        *mpi_errno = nodes_allreduce_two(sendbuf, recvbuf, count, type, op, comm);
        return 1;
    }
    if (coll_bytes(count, type) <= NODES_DOUBLING) {
        *mpi_errno = MPIR_Allreduce_intra_recursive_doubling(sendbuf, recvbuf, count, type, op, comm, &errflag);
        return 1;
    }
    if (nodes > NODES_MOST_LANES || !MPIR_Op_is_commutative(op))
        return 0;
    if (has_gaps(type))
        sum = nodes_memory(count, type, &memory, comm);
    if (sendbuf != MPI_IN_PLACE || sum != recvbuf)
        *mpi_errno = nodes_copy(sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, sum, count, type);
    if (!*mpi_errno)
        *mpi_errno = nodes_exchange_shares(sum, count, type, op, comm);
    if (!*mpi_errno && sum != recvbuf)
        *mpi_errno = nodes_copy(sum, recvbuf, count, type);
    nodes_free(memory);
    return 1;
}

static int nodes_allreduce(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype type, MPI_Op op,
                           MPIR_Comm * comm, int *mpi_errno)
{
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;
    MPI_Aint part;

    if (!count || MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM != MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM_auto || !nodes_take(comm))
        return 0;
    if (nodes_spread(comm) == SPREAD_ALONE)
        return nodes_allreduce_alone(sendbuf, recvbuf, count, type, op, comm, mpi_errno);
    if (!MPIR_Op_is_commutative(op))
        return 0;
    part = COLL_STATE(comm)->even > 1 ? coll_bytes(count, type) / COLL_STATE(comm)->even : 0;
    if (part >= NODES_LANE && comm->node_count <= NODES_MOST_LANES)
        *mpi_errno = nodes_allreduce_lanes(sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, recvbuf, count, type, op, comm);
    else
        *mpi_errno = MPIR_Allreduce_intra_smp(sendbuf, recvbuf, count, type, op, comm, &errflag);
    if (errflag != MPIR_ERR_NONE && !*mpi_errno)
        MPIR_ERR_SET(*mpi_errno, errflag, "**coll_fail");
    return 1;
}

/* ---- reductions whose parts go to the ranks ---------------------------------------------------------------------- */

/* The elements that each rank gets, in the order of the ranks. */
typedef struct portions {
    const MPI_Aint *counts;     /* NULL: `each` */
    MPI_Aint each;
    MPI_Aint all;               /* the sum */
} portions_t;

static MPI_Aint portion(const portions_t * p, int rank)
{
    return p->counts ? p->counts[rank] : p->each;
}

/* How much goes to the ranks of each place, and of this rank's place to the one of each node. */
static void portions_by_place(const portions_t * p, const int *order, sharing_t * s, MPI_Aint * counts,
                              const MPIR_Comm * comm)
{
    int i;

    for (i = 0; i < comm->local_size; i++) {
        const int place = i / s->peers.many, node = i % s->peers.many;
        if (node == 0)
            counts[place] = 0;
        if (place == comm->node_comm->rank)
            s->share[node] = (share_t) {.first = counts[place],.count = portion(p, order[i]) };
        counts[place] += portion(p, order[i]);
    }
}

static int copy_in_order(const portions_t * p, const int *order, const char *in, char *row, MPI_Datatype type,
                         const MPIR_Comm * comm)
{
    MPI_Aint extent, at, first[comm->local_size];
    int mpi_errno = MPI_SUCCESS, i;

    MPIR_Datatype_get_extent_macro(type, extent);
    for (i = 0, at = 0; i < comm->local_size; at += portion(p, i++))
        first[i] = at;
    for (i = 0; i < comm->local_size && !mpi_errno; i++) {
        const MPI_Aint n = portion(p, order[i]);
        if (n)
            mpi_errno = nodes_copy(in + first[order[i]] * extent, row, n, type);
        row += n * extent;
    }
    return mpi_errno;
}

/* The ranks of each node sum what those of each place get, which exchange it. */
static int reduce_scatter_several(const char *in, void *recvbuf, const portions_t * p, MPI_Datatype type, MPI_Op op,
                                  MPIR_Comm * comm)
{
    MPIR_Comm *node = comm->node_comm;
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;
    MPI_Aint counts[node->local_size], extent;
    int order[comm->local_size], mpi_errno;
    const int in_order = order_by_place(comm, order);
    const MPI_Aint reordered = in_order ? 0 : p->all;
    char *row, *part, *sum, *other;
    void *memory;
    sharing_t s;

    group_of_peers(comm, &s.peers);
    portions_by_place(p, order, &s, counts, comm);
    MPIR_Datatype_get_extent_macro(type, extent);
    row = nodes_memory(reordered + counts[node->rank] + 2 * sharing_piece(&s, type), type, &memory, comm);
    part = row + reordered * extent;
    sum = part + s.share[s.peers.mine].first * extent;
    other = part + counts[node->rank] * extent;
    mpi_errno = in_order ? MPI_SUCCESS : copy_in_order(p, order, in, row, type, comm);
    if (!mpi_errno)
        mpi_errno = MPIR_Reduce_scatter_impl(in_order ? in : row, part, counts, type, op, node, &errflag);
    if (!mpi_errno)
        mpi_errno = nodes_sum_shares(part, sum, other, &s, type, op, MPIR_REDUCE_SCATTER_TAG, comm);
    if (!mpi_errno && s.share[s.peers.mine].count)
        mpi_errno = nodes_copy(sum, recvbuf, s.share[s.peers.mine].count, type);
    nodes_free(memory);
    return mpi_errno;
}

/* A rank on each node. In place, the result comes where data still go from. */
static int reduce_scatter_alone(const char *in, void *recvbuf, const portions_t * p, MPI_Datatype type, MPI_Op op,
                                MPIR_Comm * comm)
{
    const MPI_Aint mine = portion(p, comm->rank);
    const int in_place = in == recvbuf;
    char *other, *sum;
    int mpi_errno, i;
    MPI_Aint extent, at = 0;
    void *memory;
    sharing_t s;

    group_of_peers(comm, &s.peers);
    for (i = 0; i < s.peers.many; at += portion(p, i++))
        s.share[i] = (share_t) {.first = at,.count = portion(p, i) };
    MPIR_Datatype_get_extent_macro(type, extent);
    other = nodes_memory(2 * sharing_piece(&s, type) + (in_place ? mine : 0), type, &memory, comm);
    sum = in_place ? other + 2 * sharing_piece(&s, type) * extent : recvbuf;
    mpi_errno = nodes_sum_shares(in, sum, other, &s, type, op, MPIR_REDUCE_SCATTER_TAG, comm);
    if (!mpi_errno && in_place && mine)
        mpi_errno = nodes_copy(sum, recvbuf, mine, type);
    nodes_free(memory);
    return mpi_errno;
}

/* A few nodes that are alike. Short data of more than two nodes with a rank each are MPICH's, in fewer turns. */
static int nodes_reduce_scatter(const void *sendbuf, void *recvbuf, const portions_t * p, MPI_Datatype type, MPI_Op op,
                                MPIR_Comm * comm, int *mpi_errno)
{
    const char *in = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
    const MPI_Aint bytes = coll_bytes(p->all, type);
    int alone;

    if (!bytes || !MPIR_Op_is_commutative(op) || !nodes_take(comm) || nodes_count(comm) > NODES_MOST_LANES)
        return 0;
    alone = nodes_spread(comm) == SPREAD_ALONE;
    if (alone ? comm->local_size > 2 && bytes <= NODES_ROW : COLL_STATE(comm)->even < 2)
        return 0;
    *mpi_errno = alone ? reduce_scatter_alone(in, recvbuf, p, type, op, comm)
        : reduce_scatter_several(in, recvbuf, p, type, op, comm);
    return 1;
}

/* ---- prefix reductions ------------------------------------------------------------------------------------------- */

/* Each rank sends what it has to the one `step` ahead, and adds what comes from the one as far behind; then twice as
 * far (Hillis and Steele 1986). Nobody waits for what a rank ahead of it computes. */
typedef struct prefix {
    const char *have;           /* the sum of this rank and some behind it */
    char *room;                 /* where that is made, once something was added */
    char *before;               /* the sum of those behind it, of MPI_Exscan; NULL: have is the result */
    char *other;
} prefix_t;

static int prefix_add(prefix_t * p, const char *come, int first, int goes_on, MPI_Aint count, MPI_Datatype type,
                      MPI_Op op)
{
    int mpi_errno = MPI_SUCCESS;

    if (p->before && !first)
        mpi_errno = MPIR_Reduce_local(come, p->before, count, type, op);
    else if (p->before && come != p->before)
        mpi_errno = nodes_copy(come, p->before, count, type);
    if (!p->before || goes_on) {
        if (p->have != p->room && !mpi_errno)
            mpi_errno = nodes_copy(p->have, p->room, count, type);
        if (!mpi_errno)
            mpi_errno = MPIR_Reduce_local(come, p->room, count, type, op);
        p->have = p->room;
    }
    return mpi_errno;
}

static int prefix_piece(prefix_t p, MPI_Aint count, MPI_Datatype type, MPI_Op op, int tag, MPIR_Comm * comm)
{
    MPI_Aint length = count;
    const MPI_Datatype wire = nodes_wire(type, &length);
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;
    int mpi_errno = MPI_SUCCESS, of_send, step;

    for (step = 1; step < comm->local_size && !mpi_errno; step *= 2) {
        const int to = comm->rank + step, from = comm->rank - step;
        char *come = p.before && step == 1 && !has_gaps(type) ? p.before : p.other;
        MPIR_Request *sending = NULL;
        if (to < comm->local_size)
            mpi_errno = MPIC_Isend(p.have, length, wire, to, tag, comm, &sending, &errflag);
        if (from >= 0 && !mpi_errno)
            mpi_errno = nodes_receive(come, count, type, from, tag, comm);
        of_send = nodes_wait(&sending);
        mpi_errno = mpi_errno ? mpi_errno : of_send;
        if (from >= 0 && !mpi_errno)
            mpi_errno = prefix_add(&p, come, step == 1, comm->rank + 2 * step < comm->local_size, count, type, op);
    }
    return mpi_errno;
}

/* Both kinds; the result of MPI_Exscan is undefined in rank 0, whose buffer stays as it is. */
static int nodes_prefix(int exclusive, const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype type, MPI_Op op,
                        MPIR_Comm * comm, int *mpi_errno)
{
    const int in_place = sendbuf == MPI_IN_PLACE, goes_on = comm->rank + 1 < comm->local_size;
    const char *in = in_place ? recvbuf : sendbuf;
    void *memory = NULL, *more = NULL;
    char *room = NULL, *other = NULL;
    pieces_t cut;
    MPI_Aint at;

    if (!count || !nodes_take(comm) ||
        (exclusive ? MPIR_CVAR_EXSCAN_INTRA_ALGORITHM != MPIR_CVAR_EXSCAN_INTRA_ALGORITHM_auto
         : MPIR_CVAR_SCAN_INTRA_ALGORITHM != MPIR_CVAR_SCAN_INTRA_ALGORITHM_auto))
        return 0;
    cut = nodes_pieces(count, type, comm->local_size);
    if (exclusive && comm->rank > 0 && goes_on)
        room = nodes_memory(cut.per, type, &memory, comm);
    if (comm->rank > (exclusive && !has_gaps(type) ? 1 : 0))
        other = nodes_memory(cut.per, type, &more, comm);
    if (!exclusive && !in_place)
        *mpi_errno = nodes_copy(sendbuf, recvbuf, count, type);
    for (at = 0; at < count && !*mpi_errno; at += cut.per) {
        const MPI_Aint far = at * cut.extent, n = nodes_piece(&cut, at);
        prefix_t p = {.have = in + far,.room = room,.before = (char *) recvbuf + far,.other = other };
        if (!exclusive) {
            p.have = p.room = (char *) recvbuf + far;
            p.before = NULL;
        } else if (comm->rank == 0) {
            p.before = NULL;
        } else if (in_place && goes_on) {
            *mpi_errno = nodes_copy(in + far, room, n, type);
            p.have = room;
        }
        if (!*mpi_errno)
            *mpi_errno = prefix_piece(p, n, type, op, exclusive ? MPIR_EXSCAN_TAG : MPIR_SCAN_TAG, comm);
    }
    nodes_free(memory);
    nodes_free(more);
    return 1;
}
