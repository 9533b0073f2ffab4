/* Blocks for neighbours, and from them, through the segment that the ranks of a communicator share. Part of
 * ulfm_netmod.c; what does not fit goes by messages (ulfm_neighbors.c).
 *
 * A rank writes what it has for its neighbours where they look, and goes on when it has theirs: neither a message's way
 * through a ring nor a turn of all ranks, of which each call of each rank would cost more than the data. */

/* No block is longer, whatever else its rank gives. */
#define NEAR_MOST 4000

/* Others are for communicators of which is known that they are used. */
#define MOST_WITH_TOPOLOGY 16

/* A communicator has a topology now, which all its ranks know: it gets its segment, for ranks without neighbours may make
 * no call later. If it gets none, its fifth collective tries again. */
void MPIDI_nem_ulfm_has_topology(MPIR_Comm * comm)
{
    coll_state_t *state;

    if (!nm || !MPIDI_nem_ulfm_collectives || coll_first < 0 || MPIR_CVAR_ENABLE_FT ||
        !coll_may_take(comm, ULFM_COLL_NEIGHBORS, 1) || !(state = coll_state(comm)) || state->decided || state->opening ||
        nodes_spread(comm) != SPREAD_NOT)
        return;
    state->opening = 1;
    (void) coll_open(comm, state, segments_with_topology < MOST_WITH_TOPOLOGY);
    state->opening = 0;
    if (state->coll) {
        state->decided = state->with_topology = 1;
        segments_with_topology++;
    }
}

/* Whether this call goes through the segment; the same in all neighbours. */
static int near_takes(const MPIR_Comm * comm)
{
    const coll_state_t *state = nm && MPIDI_nem_ulfm_collectives && !MPIR_CVAR_ENABLE_FT ? COLL_STATE(comm) : NULL;

    if (!state || !state->coll || state->opening)
        return 0;
    ulfm->coll_count(nm, ULFM_COLL_NEIGHBORS, ULFM_COLL_SHARED);
    return 1;
}

/* Who the neighbours are is told once. */
static int near_open(coll_state_t * state, const MPIDI_nem_ulfm_neighbor_t * in, int indegree,
                     const MPIDI_nem_ulfm_neighbor_t * out, int outdegree)
{
    int *ranks = MPL_malloc(((size_t) indegree + outdegree + 1) * sizeof(int), MPL_MEM_COMM);
    int i, rc;

    if (!ranks)
        return segment_give_up(state);
    for (i = 0; i < indegree; i++)
        ranks[i] = in[i].rank;
    for (i = 0; i < outdegree; i++)
        ranks[indegree + i] = out[i].rank;
    rc = ulfm->coll_near_open(state->coll, ranks, indegree, ranks + indegree, outdegree);
    MPL_free(ranks);
    state->has_near = rc == 0;
    return rc;
}

/* The same block for all. */
static int is_one_for_all(const MPIDI_nem_ulfm_neighbor_t * out, int outdegree)
{
    int i;
    for (i = 1; i < outdegree; i++)
        if (out[i].buf != out->buf || out[i].count != out->count || out[i].type != out->type)
            return 0;
    return 1;
}

static int near_write(const MPIDI_nem_ulfm_neighbor_t * out, size_t bytes, char *at)
{
    memcpy(at, &bytes, sizeof bytes);
    if (bytes == 0)
        return MPI_SUCCESS;
    if (HANDLE_IS_BUILTIN(out->type)) {
        memcpy(at + ULFM_NEAR_HEADER, out->buf, bytes);
        return MPI_SUCCESS;
    }
    return MPIR_Localcopy(out->buf, out->count, out->type, at + ULFM_NEAR_HEADER, (MPI_Aint) bytes, MPI_BYTE);
}

/* Writes the blocks, and posts them. Those of more than *longest bytes, which is -1 at first, are for messages. */
static int near_give(coll_state_t * state, const MPIDI_nem_ulfm_neighbor_t * out, int outdegree, MPI_Aint * longest,
                     int *mpi_errno)
{
    static const size_t by_message = ULFM_NEAR_BY_MESSAGE;
    const int is_one = is_one_for_all(out, outdegree);
    char *blocks;
    size_t room, step = 0;
    int i, rc;

    rc = ulfm->coll_near_begin(state->coll, &blocks, &room);
    if (rc != 0)
        return rc;
    if (room == 0 || outdegree == 0) {
        ulfm->coll_near_post(state->coll, 0);
        return 0;
    }
    *longest = (MPI_Aint) MPL_MIN((is_one ? room : room / (size_t) outdegree / 8 * 8) - ULFM_NEAR_HEADER, NEAR_MOST);
    for (i = 0; !is_one && i < outdegree; i++) {
        const MPI_Aint bytes = coll_bytes(out[i].count, out[i].type);
        step = MPL_MAX(step, bytes > *longest ? 0 : (size_t) bytes);
    }
    step = is_one ? 0 : (step + ULFM_NEAR_HEADER + 7) / 8 * 8;
    for (i = 0; i < (is_one ? 1 : outdegree) && *mpi_errno == MPI_SUCCESS; i++) {
        const size_t bytes = (size_t) coll_bytes(out[i].count, out[i].type);
        if ((MPI_Aint) bytes > *longest)
            memcpy(blocks + (size_t) i * step, &by_message, sizeof by_message);
        else if (is_one || out[i].rank >= 0)
            *mpi_errno = near_write(&out[i], bytes, blocks + (size_t) i * step);
    }
    ulfm->coll_near_post(state->coll, step);
    return 0;
}

static int near_read(MPIDI_nem_ulfm_neighbor_t * in, const char *block, size_t bytes)
{
    const size_t room = (size_t) coll_bytes(in->count, in->type);
    int mpi_errno = MPI_SUCCESS;

    MPIR_ERR_CHKANDJUMP2(bytes > room, mpi_errno, MPI_ERR_TRUNCATE, "**truncate", "**truncate %d %d", (int) bytes,
                         (int) room);
    if (bytes == 0)
        goto fn_exit;
    if (HANDLE_IS_BUILTIN(in->type))
        memcpy(in->buf, block + ULFM_NEAR_HEADER, bytes);
    else
        mpi_errno = MPIR_Localcopy(block + ULFM_NEAR_HEADER, (MPI_Aint) bytes, MPI_BYTE, in->buf, in->count, in->type);
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Each block is taken, or is found to come by a message. */
static int near_get(coll_state_t * state, MPIDI_nem_ulfm_neighbor_t * in, int indegree, int *mpi_errno)
{
    const char *block;
    size_t bytes;
    int i, rc, error;

    for (i = 0; i < indegree; i++) {
        in[i].done = 1;
        if (in[i].rank < 0)
            continue;
        rc = ulfm->coll_near_take(state->coll, i, in[i].rank, &block);
        if (rc != 0)
            return rc;
        if (block)
            memcpy(&bytes, block, sizeof bytes);
        if (!block || bytes == ULFM_NEAR_BY_MESSAGE)
            in[i].done = 0;
        else if ((error = near_read(&in[i], block, bytes)) && *mpi_errno == MPI_SUCCESS)
            *mpi_errno = error;
    }
    ulfm->coll_near_end(state->coll);
    return 0;
}
