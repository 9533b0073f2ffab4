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
#define NODES_TWO_PIECE ((MPI_Aint) 256 * 1024) /* of shares that two nodes exchange */
#define NODES_DOUBLING ((MPI_Aint) 128 * 1024)  /* longest allreduce whose hosts exchange all they have */
#define NODES_LANE ((MPI_Aint) 8 * 1024)        /* shortest part of one that a rank brings to the other hosts */
#define NODES_ROW ((MPI_Aint) 64 * 1024)        /* longest blocks of all that go from head to head */
#define NODES_BLOCK ((MPI_Aint) 4 * 1024)       /* longest one for each rank that goes with those of others */
#define NODES_MOST_LANES 8      /* hosts that parts are exchanged between without a detour */
#define NODES_GROUP 64          /* most ranks that share the work on the same data */

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

/* Ranks that each have a share of the same data. */
typedef struct group {
    int many, mine;             /* the index of this rank */
    int rank[NODES_GROUP];
} group_t;

/* Those in the place of this one on each node. */
static void group_of_peers(const MPIR_Comm * comm, group_t * g)
{
    *g = (group_t) {.mine = node_of(comm, comm->rank) };
    for (; g->many < nodes_count(comm); g->many++)
        g->rank[g->many] = comm->node_comm ? peer_on(comm, g->many, comm->node_comm->rank) : g->many;
}

/* The ranks by their place on their node, and by their nodes; nodes are alike. Returns whether that is their order. */
static int order_by_place(const MPIR_Comm * comm, int *order)
{
    const int nodes = comm->node_count;
    int seen[NODES_GROUP] = { 0 }, rank, in_order = 1;

    for (rank = 0; rank < comm->local_size; rank++) {
        const int node = node_of(comm, rank), place = seen[node]++ * nodes + node;
        order[place] = rank;
        in_order = in_order && place == rank;
    }
    return in_order;
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
    int is_head;                /* the others have nobody in the heads' tree */
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

/* Memory for so many elements, at the place of the first one; *memory is for nodes_free(). It is kept for the next call:
 * malloc would give it back to the system, and each call would fault in all its pages. */
static char *nodes_memory(MPI_Aint count, MPI_Datatype type, void **memory, MPIR_Comm * comm)
{
    MPI_Aint extent, true_lb, true_extent;

    MPIR_Datatype_get_extent_macro(type, extent);
    MPIR_Type_get_true_extent_impl(type, &true_lb, &true_extent);
    *memory = MPIDI_nem_ulfm_kept_alloc(MPL_MAX(1, count * MPL_MAX(extent, true_extent)));
    if (!*memory)
        nodes_without_memory(comm);
    return (char *) *memory - true_lb;
}

static void nodes_free(void *memory)
{
    MPIDI_nem_ulfm_kept_free(memory);
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

/* Of one that was begun; NULL: there is none. */
static int nodes_wait(MPIR_Request ** request)
{
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;
    int mpi_errno = MPI_SUCCESS;

    if (!*request)
        return MPI_SUCCESS;
    mpi_errno = MPIC_Wait(*request, &errflag);
    if (!mpi_errno)
        mpi_errno = (*request)->status.MPI_ERROR;
    MPIR_Request_free(*request);
    *request = NULL;
    return mpi_errno;
}
