/* Blocking collectives of ranks on several hosts: within a host through its segment, and between hosts by messages,
 * which carry each byte as seldom as can be. MPICH 4.0's own choice knows the hosts in none of these calls (decision
 * 0059). Part of ulfm_coll.c.
 *
 * One rank of each host is its head: the root of the call, or the first one. Long data go in pieces, and from host to
 * host in a chain, so that all hosts and the ranks of each work at the same time.
 *
 * As in ulfm_coll.c, the way of a call depends on nothing but what MPI says is the same in every rank. With fault
 * tolerance all calls are MPICH's, whose ends after a failure are known one by one. */

/* Pieces go at once, by the default eager limits. Long data go in pieces that ask first, or an early sender would fill
 * the memory of a receiver that waits for something else. */
#define NODES_PIECE ((MPI_Aint) 64 * 1024)
#define NODES_LONG ((MPI_Aint) 2 * 1024 * 1024)
#define NODES_LONG_PIECE ((MPI_Aint) 512 * 1024)
#define NODES_DOUBLING ((MPI_Aint) 128 * 1024)  /* longest allreduce whose hosts exchange all they have */
#define NODES_LANE ((MPI_Aint) 8 * 1024)        /* shortest part of one that a rank brings to the other hosts */
#define NODES_ROW ((MPI_Aint) 64 * 1024)        /* longest blocks of all that go from head to head */
#define NODES_MOST_LANES 8      /* hosts that parts are exchanged between without a detour */

/* Data that are cut into pieces of whole elements. */
typedef struct pieces {
    MPI_Aint count, per, extent;
    int many;
} pieces_t;

static pieces_t nodes_pieces(MPI_Aint count, MPI_Datatype type, int nodes)
{
    pieces_t cut = {.count = count,.per = count };
    const MPI_Aint bytes = coll_bytes(count, type);

    MPIR_Datatype_get_extent_macro(type, cut.extent);
    if (bytes > NODES_PIECE)
        cut.per = MPL_MAX(1, (bytes > NODES_LONG ? NODES_LONG_PIECE : NODES_PIECE) / coll_bytes(1, type));
    cut.many = cut.per > 0 && count / cut.per > 2 * nodes;
    return cut;
}

static MPI_Aint nodes_piece(const pieces_t * cut, MPI_Aint first)
{
    return MPL_MIN(cut->per, cut->count - first);
}

/* The others would wait for this rank. */
static void nodes_without_memory(MPIR_Comm * comm)
{
    MPID_Abort(comm, MPI_SUCCESS, 1,
               "there is no memory for a collective over hosts, in which the other ranks wait for this one");
}

/* ---- who is where ------------------------------------------------------------------------------------------------ */

static int node_of(const MPIR_Comm * comm, int rank)
{
    return comm->internode_table ? comm->internode_table[rank] : rank;
}

static int head_of(const MPIR_Comm * comm, int node)
{
    int rank = 0;

    if (!comm->internode_table)
        return node;
    while (comm->internode_table[rank] != node)
        rank++;
    return rank;
}

/* The rank of that node which is the `index`-th there. */
static int peer_on(const MPIR_Comm * comm, int node, int index)
{
    int rank = head_of(comm, node);

    while (index > 0)
        index -= comm->internode_table[++rank] == node;
    return rank;
}

/* As many ranks on each node; 0 when they differ. */
static int nodes_even(const MPIR_Comm * comm)
{
    const int each = comm->local_size / comm->node_count;
    int node, rank, there;

    for (node = 0; node < comm->node_count; node++) {
        for (rank = there = 0; rank < comm->local_size; rank++)
            there += comm->internode_table[rank] == node;
        if (there != each)
            return 0;
    }
    return each;
}

/* Ranks of which MPICH makes no nodes, because each is alone on its own or all are on one. */
static int nodes_alone(MPIR_Comm * comm)
{
    int nodes;

    if (!is_of_one_job(comm))
        return 0;
    nodes = nodes_of(comm);
    if (!nodes)
        nodes_without_memory(comm);
    return nodes == comm->local_size;
}

static int nodes_spread(MPIR_Comm * comm)
{
    coll_state_t *state = COLL_STATE(comm);

    if (state->spread == SPREAD_UNKNOWN) {
        state->spread = SPREAD_NOT;
        if (comm->hierarchy_kind == MPIR_COMM_HIERARCHY_KIND__PARENT && comm->node_count >= 2) {
            state->spread = SPREAD_SEVERAL;
            state->even = nodes_even(comm);
        } else if (comm->hierarchy_kind != MPIR_COMM_HIERARCHY_KIND__NODE && nodes_alone(comm))
            state->spread = SPREAD_ALONE;
    }
    return state->spread;
}

/* Whether calls of this communicator are made here. */
static int nodes_take(MPIR_Comm * comm)
{
    return comm->comm_kind == MPIR_COMM_KIND__INTRACOMM && comm->local_size >= 2 && COLL_STATE(comm) &&
        coll_first != ULFM_COLL_BY_MULTICAST && !MPIR_CVAR_ENABLE_FT &&
        !(comm->revoked & MPIR_COMM_ENDED) && nodes_spread(comm) != SPREAD_NOT;
}

static int nodes_count(const MPIR_Comm * comm)
{
    return comm->internode_table ? comm->node_count : comm->local_size;
}

/* ---- trees of the heads of all nodes ----------------------------------------------------------------------------- */

/* Places in a tree of so many, whose root is place 0: those next to one. */
typedef struct places {
    int up;                     /* -1 at the root */
    int downs;
    int down[32];               /* the one with the most behind it first */
} places_t;

/* A chain for data in many pieces, else a binomial tree. */
static places_t places_in(int place, int many, int chain)
{
    places_t p = {.up = -1 };
    int step = 1;

    if (chain) {
        p.up = place - 1;
        if (place + 1 < many)
            p.down[p.downs++] = place + 1;
        return p;
    }
    while (step < many && !(place & step))
        step <<= 1;
    if (place > 0)
        p.up = place - step;
    while (step >>= 1)
        if (place + step < many)
            p.down[p.downs++] = place + step;
    return p;
}

/* A rank's place in a call with a root. */
typedef struct tree {
    int is_head;                /* the others have nobody in the tree */
    int in_node;                /* the head's rank in its node's communicator */
    int up;                     /* rank, -1 at the root */
    int downs;
    int down[64];               /* ranks, the one with the most behind it first */
} tree_t;

static int tree_rank(const MPIR_Comm * comm, int place, int root)
{
    const int root_node = node_of(comm, root);
    const int node = (place + root_node) % nodes_count(comm);

    return node == root_node ? root : head_of(comm, node);
}

static void tree_make(const MPIR_Comm * comm, int root, int chain, tree_t * tree)
{
    const int nodes = nodes_count(comm);
    const int place = (node_of(comm, comm->rank) - node_of(comm, root) + nodes) % nodes;
    const places_t p = places_in(place, nodes, chain);
    const int head = tree_rank(comm, place, root);
    int i;

    *tree = (tree_t) {.is_head = head == comm->rank,.in_node = comm->node_comm ? comm->intranode_table[head] : 0,.up = -1 };
    if (!tree->is_head)
        return;
    if (p.up >= 0)
        tree->up = tree_rank(comm, p.up, root);
    for (i = 0; i < p.downs; i++)
        tree->down[tree->downs++] = tree_rank(comm, p.down[i], root);
}

/* ---- broadcast --------------------------------------------------------------------------------------------------- */

/* Down the tree, and to the ranks of this node. */
static int nodes_bcast_piece(void *data, MPI_Aint bytes, const tree_t * tree, MPIR_Comm * comm)
{
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;
    int mpi_errno = MPI_SUCCESS, i;

    if (tree->up >= 0)
        mpi_errno = MPIC_Recv(data, bytes, MPI_BYTE, tree->up, MPIR_BCAST_TAG, comm, MPI_STATUS_IGNORE, &errflag);
    for (i = 0; i < tree->downs && !mpi_errno; i++)
        mpi_errno = MPIC_Send(data, bytes, MPI_BYTE, tree->down[i], MPIR_BCAST_TAG, comm, &errflag);
    if (comm->node_comm && !mpi_errno)
        mpi_errno = MPIR_Bcast_impl(data, bytes, MPI_BYTE, tree->in_node, comm->node_comm, &errflag);
    return mpi_errno;
}

static int nodes_bcast(void *buffer, MPI_Aint count, MPI_Datatype type, int root, MPIR_Comm * comm, int *mpi_errno)
{
    const MPI_Aint bytes = coll_bytes(count, type);
    void *packed = NULL;
    pieces_t cut;
    MPI_Aint at;
    tree_t tree;
    char *data;

    if (!bytes || MPIR_CVAR_BCAST_INTRA_ALGORITHM != MPIR_CVAR_BCAST_INTRA_ALGORITHM_auto || !nodes_take(comm))
        return 0;
    data = coll_pack(buffer, count, type, comm->rank == root, &packed, mpi_errno);
    if (!data)
        nodes_without_memory(comm);
    cut = nodes_pieces(bytes, MPI_BYTE, nodes_count(comm));
    if (comm->local_size == 2)
        cut.per = bytes;        /* nobody has anything to do with a piece while the next one comes */
    tree_make(comm, root, cut.many, &tree);
    for (at = 0; at < bytes && !*mpi_errno; at += cut.per)
        *mpi_errno = nodes_bcast_piece(data + at, nodes_piece(&cut, at), &tree, comm);
    coll_unpack(buffer, count, type, packed, comm->rank != root, mpi_errno);
    return 1;
}

/* ---- what travels between nodes ---------------------------------------------------------------------------------- */

/* Memory for so many elements, at the place of the first one; *memory is to be freed. */
static char *nodes_memory(MPI_Aint count, MPI_Datatype type, void **memory, MPIR_Comm * comm)
{
    MPI_Aint extent, true_lb, true_extent;

    MPIR_Datatype_get_extent_macro(type, extent);
    MPIR_Type_get_true_extent_impl(type, &true_lb, &true_extent);
    *memory = MPL_malloc(MPL_MAX(1, count * MPL_MAX(extent, true_extent)), MPL_MEM_BUFFER);
    if (!*memory)
        nodes_without_memory(comm);
    return (char *) *memory - true_lb;
}

/* Of the predefined types, pairs such as MPI_DOUBLE_INT. The gaps in a program's memory are its own. */
static int has_gaps(MPI_Datatype type)
{
    MPI_Aint extent, size;

    if (!is_pair(type))
        return 0;
    MPIR_Datatype_get_extent_macro(type, extent);
    MPIR_Datatype_get_size_macro(type, size);
    return extent != size;
}

/* Pairs travel with their gaps, as bytes, which saves packing them. They come into memory of ours. */
static MPI_Datatype nodes_wire(MPI_Datatype type, MPI_Aint * count)
{
    MPI_Aint extent, true_lb, true_extent;

    if (!has_gaps(type))
        return type;
    MPIR_Datatype_get_extent_macro(type, extent);
    MPIR_Type_get_true_extent_impl(type, &true_lb, &true_extent);
    if (*count)
        *count = (*count - 1) * extent + true_extent;
    return MPI_BYTE;
}

/* The value and the place of each pair, and nothing of its gaps. */
static void copy_pairs(const char *from, char *to, MPI_Aint count, MPI_Datatype type)
{
    MPI_Aint extent, size, true_lb, true_extent, place, i;

    MPIR_Datatype_get_extent_macro(type, extent);
    MPIR_Datatype_get_size_macro(type, size);
    MPIR_Type_get_true_extent_impl(type, &true_lb, &true_extent);
    place = true_extent - (MPI_Aint) sizeof(int);
    for (i = 0; i < count; i++, from += extent, to += extent) {
        if (size == sizeof(double) + sizeof(int))
            memcpy(to, from, sizeof(double));
        else
            memcpy(to, from, size - sizeof(int));
        memcpy(to + place, from + place, sizeof(int));
    }
}

static int nodes_copy(const void *from, void *to, MPI_Aint count, MPI_Datatype type)
{
    if (!has_gaps(type))
        return MPIR_Localcopy(from, count, type, to, count, type);
    copy_pairs(from, to, count, type);
    return MPI_SUCCESS;
}

static int nodes_send(const void *data, MPI_Aint count, MPI_Datatype type, int to, int tag, MPIR_Comm * comm)
{
    const MPI_Datatype wire = nodes_wire(type, &count);
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;

    return MPIC_Send(data, count, wire, to, tag, comm, &errflag);
}

static int nodes_receive(void *data, MPI_Aint count, MPI_Datatype type, int from, int tag, MPIR_Comm * comm)
{
    const MPI_Datatype wire = nodes_wire(type, &count);
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;

    return MPIC_Recv(data, count, wire, from, tag, comm, MPI_STATUS_IGNORE, &errflag);
}

/* What goes to one rank, and what comes from another one. */
typedef struct swap {
    const void *out;
    void *in;
    MPI_Aint out_count, in_count;
    int to, from;
} swap_t;

static int nodes_swap(swap_t s, MPI_Datatype type, int tag, MPIR_Comm * comm)
{
    const MPI_Datatype wire = nodes_wire(type, &s.out_count);
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;

    (void) nodes_wire(type, &s.in_count);
    return MPIC_Sendrecv(s.out, s.out_count, wire, s.to, tag, s.in, s.in_count, wire, s.from, tag, comm,
                         MPI_STATUS_IGNORE, &errflag);
}

/* ---- gathers for all --------------------------------------------------------------------------------------------- */

/* Blocks of all ranks as they travel: those of this node first, then of the nodes behind it, of each in the order of
 * its ranks. */
typedef struct row {
    char *data;
    MPI_Aint *at;               /* where the i-th node from here begins, and the end */
    MPI_Aint each;              /* bytes of a rank */
    int nodes, here;
} row_t;

/* A rank's node, counted from here. */
static int row_place_of(const row_t * row, const MPIR_Comm * comm, int rank)
{
    return (comm->internode_table[rank] - row->here + row->nodes) % row->nodes;
}

static void row_make(row_t * row, MPI_Aint each, MPIR_Comm * comm)
{
    int i;

    *row = (row_t) {.each = each,.nodes = comm->node_count,.here = node_of(comm, comm->rank) };
    row->at = MPL_calloc(row->nodes + 1, sizeof *row->at, MPL_MEM_BUFFER);
    row->data = MPL_malloc(each * comm->local_size, MPL_MEM_BUFFER);
    if (!row->at || !row->data)
        nodes_without_memory(comm);
    for (i = 0; i < comm->local_size; i++)
        row->at[row_place_of(row, comm, i) + 1] += each;
    for (i = 0; i < row->nodes; i++)
        row->at[i + 1] += row->at[i];
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

/* A node's head collects its ranks' blocks, exchanges them with the other heads, and gives all to its ranks. */
static int row_gather(const row_t * row, const char *in, MPIR_Comm * comm)
{
    MPIR_Comm *node = comm->node_comm;
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;
    int mpi_errno = MPI_SUCCESS;

    if (node)
        mpi_errno = MPIR_Gather_impl(in, row->each, MPI_BYTE, row->data, row->each, MPI_BYTE, 0, node, &errflag);
    else
        memcpy(row->data, in, row->each);
    if (!mpi_errno && (!node || node->rank == 0))
        mpi_errno = row_exchange(row, comm);
    if (!mpi_errno && node)
        mpi_errno = MPIR_Bcast_impl(row->data, row->at[row->nodes], MPI_BYTE, 0, node, &errflag);
    return mpi_errno;
}

/* To where the blocks of the ranks are wanted. The row is used up. */
static void row_place(row_t * row, char *wanted, const MPIR_Comm * comm)
{
    int rank;

    for (rank = 0; rank < comm->local_size; rank++, wanted += row->each) {
        MPI_Aint *at = &row->at[row_place_of(row, comm, rank)];
        memcpy(wanted, row->data + *at, row->each);
        *at += row->each;
    }
}

/* Each rank exchanges its block with the ranks in its place on the other nodes; those of a node then have all blocks
 * among them. */
static int lanes_gather(char *blocks, MPI_Aint each, MPIR_Comm * comm)
{
    MPIR_Comm *node = comm->node_comm;
    const int nodes = comm->node_count, here = node_of(comm, comm->rank), many = node->local_size;
    MPI_Aint counts[many], at[many];
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;
    int mpi_errno = MPI_SUCCESS, turn, rank, i;

    for (turn = 1; turn < nodes && !mpi_errno; turn++) {
        const int to = peer_on(comm, (here + turn) % nodes, node->rank);
        const int from = peer_on(comm, (here - turn + nodes) % nodes, node->rank);
        const swap_t swap = {.out = blocks + comm->rank * each,.out_count = each,.to = to,
            .in = blocks + from * each,.in_count = each,.from = from
        };
        mpi_errno = nodes_swap(swap, MPI_BYTE, MPIR_ALLGATHER_TAG, comm);
    }
    for (i = 0; i < many; i++)
        counts[i] = each;
    for (turn = 0; turn < nodes && !mpi_errno; turn++) {
        for (i = rank = 0; i < many; rank++)
            if (node_of(comm, rank) == turn)
                at[i++] = rank * each;
        if (at[many - 1] - at[0] == (many - 1) * each)
            mpi_errno = MPIR_Allgather_impl(MPI_IN_PLACE, 0, MPI_BYTE, blocks + at[0], each, MPI_BYTE, node, &errflag);
        else
            mpi_errno = MPIR_Allgatherv_impl(MPI_IN_PLACE, 0, MPI_BYTE, blocks, counts, at, MPI_BYTE, node, &errflag);
    }
    return mpi_errno;
}

static int heads_gather(char *blocks, MPI_Aint each, MPIR_Comm * comm)
{
    int mpi_errno;
    row_t row;

    row_make(&row, each, comm);
    mpi_errno = row_gather(&row, blocks + comm->rank * each, comm);
    if (!mpi_errno)
        row_place(&row, blocks, comm);
    MPL_free(row.at);
    MPL_free(row.data);
    return mpi_errno;
}

/* Where nodes have several ranks: short blocks by the heads, long ones by all ranks where the nodes are alike. A rank
 * whose own block cannot be copied takes part all the same, for the others wait for it. */
static int nodes_allgather(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
                           MPI_Aint recvcount, MPI_Datatype recvtype, MPIR_Comm * comm, int *mpi_errno)
{
    const MPI_Aint each = coll_bytes(recvcount, recvtype), all = recvcount * comm->local_size;
    const int by_heads = each * comm->local_size <= NODES_ROW;
    const int nodes = comm->node_count;
    void *packed = NULL;
    char *blocks;
    int gathered;

    if (!each || MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM != MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM_auto || !nodes_take(comm) ||
        nodes_spread(comm) != SPREAD_SEVERAL)
        return 0;
    if (!by_heads && (COLL_STATE(comm)->even < 2 || nodes > NODES_MOST_LANES ||
                      each * comm->local_size < nodes * NODES_ROW))
        return 0;
    blocks = coll_pack(recvbuf, all, recvtype, sendbuf == MPI_IN_PLACE, &packed, mpi_errno);
    if (!blocks)
        nodes_without_memory(comm);
    if (sendbuf != MPI_IN_PLACE)
        *mpi_errno = MPIR_Localcopy(sendbuf, sendcount, sendtype, blocks + comm->rank * each, each, MPI_BYTE);
    gathered = by_heads ? heads_gather(blocks, each, comm) : lanes_gather(blocks, each, comm);
    if (!*mpi_errno)
        *mpi_errno = gathered;
    coll_unpack(recvbuf, all, recvtype, packed, 1, mpi_errno);
    return 1;
}

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
    MPL_free(memory);
    MPL_free(more);
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

/* A part of the data is this rank's and those of its peers, one on each node. Each adds up a share of it, of which the
 * others give it theirs, and gives the sum to all. */
static int nodes_exchange_shares(char *part, MPI_Aint count, MPI_Datatype type, MPI_Op op, const int *peers,
                                 MPIR_Comm * comm)
{
    const int nodes = nodes_count(comm), here = node_of(comm, comm->rank);
    const share_t mine = nodes_share(count, nodes, here);
    int mpi_errno = MPI_SUCCESS, turn;
    MPI_Aint extent;
    void *memory;
    char *own, *other = nodes_memory(mine.count, type, &memory, comm);

    MPIR_Datatype_get_extent_macro(type, extent);
    own = part + mine.first * extent;
    for (turn = 1; turn < nodes && !mpi_errno; turn++) {
        const int to = (here + turn) % nodes, from = (here - turn + nodes) % nodes;
        const share_t theirs = nodes_share(count, nodes, to);
        const swap_t swap = {.out = part + theirs.first * extent,.out_count = theirs.count,.to = peers[to],
            .in = other,.in_count = mine.count,.from = peers[from]
        };
        mpi_errno = nodes_swap(swap, type, MPIR_ALLREDUCE_TAG, comm);
        if (!mpi_errno && mine.count)
            mpi_errno = MPIR_Reduce_local(other, own, mine.count, type, op);
    }
    for (turn = 1; turn < nodes && !mpi_errno; turn++) {
        const int to = (here + turn) % nodes, from = (here - turn + nodes) % nodes;
        const share_t theirs = nodes_share(count, nodes, from);
        const swap_t swap = {.out = own,.out_count = mine.count,.to = peers[to],
            .in = part + theirs.first * extent,.in_count = theirs.count,.from = peers[from]
        };
        mpi_errno = nodes_swap(swap, type, MPIR_ALLREDUCE_TAG, comm);
    }
    MPL_free(memory);
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
    int mpi_errno, i, peers[NODES_MOST_LANES];
    void *memory;
    char *part;

    for (i = 0; i < each; i++) {
        const share_t share = nodes_share(count, each, i);
        displs[i] = share.first;
        counts[i] = share.count;
    }
    for (i = 0; i < comm->node_count; i++)
        peers[i] = peer_on(comm, i, node->rank);
    part = nodes_memory(counts[node->rank], type, &memory, comm);
    mpi_errno = MPIR_Reduce_scatter_impl(in, part, counts, type, op, node, &errflag);
    if (!mpi_errno)
        mpi_errno = nodes_exchange_shares(part, counts[node->rank], type, op, peers, comm);
    if (!mpi_errno)
        mpi_errno = MPIR_Allgatherv_impl(part, counts[node->rank], type, out, counts, displs, type, node, &errflag);
    MPL_free(memory);
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
    MPL_free(memory);
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
    int i, peers[NODES_MOST_LANES];

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
    for (i = 0; i < nodes; i++)
        peers[i] = i;
    if (has_gaps(type))
        sum = nodes_memory(count, type, &memory, comm);
    if (sendbuf != MPI_IN_PLACE || sum != recvbuf)
        *mpi_errno = nodes_copy(sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, sum, count, type);
    if (!*mpi_errno)
        *mpi_errno = nodes_exchange_shares(sum, count, type, op, peers, comm);
    if (!*mpi_errno && sum != recvbuf)
        *mpi_errno = nodes_copy(sum, recvbuf, count, type);
    MPL_free(memory);
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
    int mpi_errno = MPI_SUCCESS, step;

    for (step = 1; step < comm->local_size && !mpi_errno; step *= 2) {
        const int to = comm->rank + step, from = comm->rank - step;
        char *come = p.before && step == 1 && !has_gaps(type) ? p.before : p.other;
        MPIR_Request *sending = NULL;
        if (to < comm->local_size)
            mpi_errno = MPIC_Isend(p.have, length, wire, to, tag, comm, &sending, &errflag);
        if (from >= 0 && !mpi_errno)
            mpi_errno = nodes_receive(come, count, type, from, tag, comm);
        if (sending) {
            const int of_wait = MPIC_Wait(sending, &errflag), of_send = sending->status.MPI_ERROR;
            mpi_errno = mpi_errno ? mpi_errno : of_wait ? of_wait : of_send;
            MPIR_Request_free(sending);
        }
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
    MPL_free(memory);
    MPL_free(more);
    return 1;
}
