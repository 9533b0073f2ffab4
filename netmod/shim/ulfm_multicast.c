/* MPI's blocking collectives over a network that copies a message to many: MPI_Barrier, MPI_Bcast, MPI_Allgather,
 * MPI_Reduce and MPI_Allreduce. Part of ulfm_netmod.c.
 *
 * What is multicast is an ordinary eager message of CH3, one frame, which is the next message on the connection to each
 * member: receivers match it as they match any other, and order, failures, revocation, threads and reports are CH3's.
 * Whom the multicast leaves out, because earlier messages to it wait for room, gets the same message by itself. So
 * there is nothing to agree upon: whether a call goes this way depends on the communicator, the kind and the bytes alone.
 *
 * A root may run ahead of the others by MULTICAST_AHEAD bytes of each communicator, counted alike in all ranks. The
 * broadcast that would go beyond begins with a message from everyone to the root, up a tree: all have come to it then.
 * No rank leaves a barrier, an allreduce or an allgather before all have come to it, so these begin the count anew. */

#define MULTICAST_AHEAD (256 * 1024)
#define MULTICAST_LEAST 1024    /* what the shortest message counts as: for its receiver it is a request, too */
#define MULTICAST_RECEIVES 16   /* of a long message, posted at once */
#define MULTICAST_HEADER sizeof(multicast_pkt_t)
#define MULTICAST_SHORT 64      /* bytes that go with any header in one piece */
#define MULTICAST_CHILDREN 128  /* of a rank in a tree; all there are with 65,536 ranks and the steepest delay */
#define MULTICAST_STEEPEST 16

/* MPIDI_CH3_Pkt_eager_send_t in 8 bytes: the network carries so many without fetching them. The length is that of the
 * frame. */
typedef struct multicast_pkt {
    uint32_t what;              /* MULTICAST_TYPE, the two error bits of a tag, 9 bits of tag, 20 of context */
    uint32_t who;               /* the sender's rank in the communicator, and above MULTICAST_RANK the context's generation */
} multicast_pkt_t;
#define MULTICAST_TYPE 0x80000000u      /* as a packet's type this is below 0 */
#define MULTICAST_FAILED 0x40000000u
#define MULTICAST_ERROR 0x20000000u
#define MULTICAST_CONTEXT 0xfffffu
#define MULTICAST_RANK 0xfffffu
#if MPIR_CONTEXT_ID_BITS > 20 || MPIR_CONTEXT_GENERATION_SHIFT != 20
#error "a context of MPI does not fit into multicast_pkt_t"
#endif

typedef struct coll_multicast {
    ulfm_nm_group *group;       /* NULL until this rank sends to the others */
    int members;                /* of the group */
    int *ranks;                 /* of the members, */
    ulfm_nm_vc **outs;          /* and the connections to them when the group was made */
    char *wanted;               /* by rank: the message has to go there yet */
    char *marks, *tried;        /* by member: of one attempt */
    int nodes;                  /* that the ranks are on */
    MPI_Aint piece;             /* most bytes of a message */
    MPI_Aint ahead;             /* how many a root may still send before it hears of everyone */
} coll_multicast_t;

/* A message that goes to many. */
typedef struct multicast_send {
    MPIR_Comm *comm;
    coll_multicast_t *state;
    multicast_pkt_t pkt;
    const void *data;
    MPI_Aint bytes;
    int goes_on, done;
    struct multicast_send *next;        /* those that wait for room */
} multicast_send_t;

static multicast_send_t *multicast_waiting;

/* ---- the communicator -------------------------------------------------------------------------------------------- */

static void multicast_close(coll_multicast_t * state)
{
    if (state->group && nm)
        ulfm->group_close(state->group);
    state->group = NULL;
    state->members = 0;
}

static void multicast_free(coll_multicast_t * state)
{
    if (!state)
        return;
    multicast_close(state);
    MPL_free(state->ranks);
    MPL_free(state->outs);
    MPL_free(state->wanted);
    MPL_free(state);
}

/* Members of another job may be elsewhere. */
static int is_of_one_job(MPIR_Comm * comm)
{
    int i;

    for (i = 0; i < comm->local_size; i++) {
        MPIDI_VC_t *vc;
        MPIDI_Comm_get_vc(comm, i, &vc);
        if (vc->pg != MPIDI_Process.my_pg)
            return 0;
    }
    return 1;
}

/* Of a communicator of one job. */
static int nodes_of(MPIR_Comm * comm)
{
    char *seen = MPL_calloc(MPIR_Process.num_nodes, 1, MPL_MEM_COMM);
    int i, nodes = 0;

    for (i = 0; seen && i < comm->local_size; i++) {
        MPIDI_VC_t *vc;
        MPIDI_Comm_get_vc(comm, i, &vc);
        nodes += !seen[vc->node_id];
        seen[vc->node_id] = 1;
    }
    MPL_free(seen);
    return nodes;               /* 0 without memory */
}

/* NULL when multicast is nothing for this communicator, which all ranks find alike. */
static coll_multicast_t *multicast_create(MPIR_Comm * comm)
{
    const int size = comm->local_size;
    coll_multicast_t *state;
    MPI_Aint piece;

    if (size < 3 || !is_of_one_job(comm))
        return NULL;            /* one receiver is no multicast */
    piece = (MPI_Aint) ulfm->group_limit(nm, size - 1, MULTICAST_HEADER);
    if (piece == 0)
        return NULL;
    state = MPL_calloc(1, sizeof *state, MPL_MEM_COMM);
    if (state) {
        state->piece = piece;
        state->ahead = MULTICAST_AHEAD;
        state->nodes = nodes_of(comm);
        state->ranks = MPL_calloc(size, sizeof *state->ranks, MPL_MEM_COMM);
        state->outs = MPL_calloc(size, sizeof *state->outs, MPL_MEM_COMM);
        state->wanted = MPL_calloc(size, 3, MPL_MEM_COMM);
    }
    if (!state || !state->nodes || !state->ranks || !state->outs || !state->wanted)
        MPID_Abort(comm, MPI_SUCCESS, 1, "there is no memory for a communicator's collectives: the others count on it");
    state->marks = state->wanted + size;
    state->tried = state->marks + size;
    return state;
}

/* Connections to all that can be reached, as one. Who cannot gets its messages by itself: CH3 has the error. */
static void multicast_open(MPIR_Comm * comm, coll_multicast_t * state)
{
    int i;

    for (i = 0; i < comm->local_size; i++) {
        MPIDI_VC_t *vc;
        MPIDI_Comm_get_vc(comm, i, &vc);
        if (i == comm->rank || vc->state == MPIDI_VC_STATE_MORIBUND || ready_to_send(vc) != MPI_SUCCESS)
            continue;
        state->ranks[state->members] = i;
        state->outs[state->members++] = AREA(vc)->out;
    }
    state->group = ulfm->group_open(nm, state->outs, state->members, MULTICAST_HEADER);
}

/* ---- the header -------------------------------------------------------------------------------------------------- */

static multicast_pkt_t multicast_pkt(const MPIR_Comm * comm, int tag, MPIR_Errflag_t errflag)
{
    const MPIR_Context_id_t context = comm->context_id + MPIR_CONTEXT_INTRA_COLL;
    multicast_pkt_t pkt;

    pkt.what = MULTICAST_TYPE | (uint32_t) tag << 20 | (context & MULTICAST_CONTEXT);
    if (errflag == MPIR_ERR_PROC_FAILED)
        pkt.what |= MULTICAST_FAILED;
    else if (errflag != MPIR_ERR_NONE)
        pkt.what |= MULTICAST_ERROR;
    pkt.who = (context & MPIR_CONTEXT_GENERATION_MASK) | (uint32_t) comm->rank;
    return pkt;
}

/* What CH3 knows. False when the frame does not begin with such a header. */
static int multicast_spread(const ulfm_nm_frame * frame, MPIDI_CH3_Pkt_t * pkt)
{
    const multicast_pkt_t *from = frame->header;
    int tag;

    if (frame->header_length != sizeof *from || !(from->what & MULTICAST_TYPE))
        return 0;
    tag = (int) (from->what >> 20 & 0x1ff);
    if (from->what & MULTICAST_FAILED)
        MPIR_TAG_SET_PROC_FAILURE_BIT(tag);
    else if (from->what & MULTICAST_ERROR)
        MPIR_TAG_SET_ERROR_BIT(tag);
    MPIDI_Pkt_init(&pkt->eager_send, MPIDI_CH3_PKT_EAGER_SEND);
    pkt->eager_send.match.parts.rank = (MPIDI_Rank_t) (from->who & MULTICAST_RANK);
    pkt->eager_send.match.parts.tag = tag;
    pkt->eager_send.match.parts.context_id =
        (from->who & MPIR_CONTEXT_GENERATION_MASK) | (from->what & MULTICAST_CONTEXT);
    pkt->eager_send.sender_req_id = MPI_REQUEST_NULL;
    pkt->eager_send.data_sz = (intptr_t) frame->length;
    return 1;
}

/* To one rank, with that header; as any other message when it is long or earlier ones wait. */
static int multicast_single(MPIR_Comm * comm, const void *data, MPI_Aint count, MPI_Datatype type, int rank, int tag,
                            MPIR_Errflag_t * errflag)
{
    struct iovec piece = { (void *) data, 0 };
    MPIDI_VC_t *vc;

    MPIR_Datatype_get_size_macro(type, piece.iov_len);
    piece.iov_len *= count;
    MPIDI_Comm_get_vc(comm, rank, &vc);
    if (piece.iov_len <= MULTICAST_SHORT && HANDLE_IS_BUILTIN(type) && !comm->revoked && AREA(vc)->out &&
        vc->state == MPIDI_VC_STATE_ACTIVE && !AREA(vc)->queue.head) {
        const multicast_pkt_t pkt = multicast_pkt(comm, tag, *errflag);
        if (ulfm->begin(AREA(vc)->out, &pkt, sizeof pkt, &piece, piece.iov_len != 0) == (ptrdiff_t) piece.iov_len)
            return MPI_SUCCESS;
    }
    return MPIC_Send(data, count, type, rank, tag, comm, errflag);
}

/* ---- one message to all ------------------------------------------------------------------------------------------ */

/* To the members whose connection is as it was when the group was made and has nothing waiting: a message that has gone
 * in part must not be cut in two. False when there is no room now. */
static int multicast_try(multicast_send_t * send)
{
    coll_multicast_t *state = send->state;
    int k, gone;

    for (k = 0; k < state->members; k++) {
        MPIDI_VC_t *vc;
        MPIDI_Comm_get_vc(send->comm, state->ranks[k], &vc);
        state->tried[k] = state->wanted[state->ranks[k]] && AREA(vc)->out == state->outs[k] && !AREA(vc)->queue.head;
        state->marks[k] = state->tried[k];
    }
    gone = ulfm->group_send(state->group, &send->pkt, sizeof send->pkt, send->data, send->bytes, send->goes_on,
                            state->marks);
    for (k = 0; k < state->members; k++)
        if (state->tried[k] && !state->marks[k])
            state->wanted[state->ranks[k]] = 0;
    return gone;
}

/* From poll: for room that has come. */
static void multicast_flush(void)
{
    multicast_send_t *send;

    for (send = multicast_waiting; send; send = send->next)
        if (!send->done && ((send->comm->revoked & MPIR_COMM_ENDED) || multicast_try(send))) {
            send->done = 1;
            MPIDI_CH3I_INCR_PROGRESS_COMPLETION_COUNT;
        }
}

static int multicast_wait(multicast_send_t * send)
{
    int mpi_errno = MPI_SUCCESS;
    multicast_send_t **p;
    MPID_Progress_state progress;

    send->next = multicast_waiting;
    multicast_waiting = send;
    MPID_Progress_start(&progress);
    while (!send->done && mpi_errno == MPI_SUCCESS)
        mpi_errno = MPID_Progress_wait(&progress);
    MPID_Progress_end(&progress);
    for (p = &multicast_waiting; *p != send; p = &(*p)->next);
    *p = send->next;
    return mpi_errno;
}

/* To those whom the multicast has left out. */
static int multicast_singles(multicast_send_t * send, int tag, MPIR_Errflag_t * errflag)
{
    MPIR_Comm *comm = send->comm;
    MPIR_Request *requests[MULTICAST_RECEIVES];
    MPI_Status statuses[MULTICAST_RECEIVES];
    int mpi_errno = MPI_SUCCESS, first_error = MPI_SUCCESS;
    int i, n = 0, changed = 0;

    for (i = 0; i <= comm->local_size; i++) {
        if (n == MULTICAST_RECEIVES || (n && i == comm->local_size)) {
            mpi_errno = MPIC_Waitall(n, requests, statuses, errflag);
            n = 0;
            MPIR_ERR_ADD(first_error, mpi_errno);
        }
        if (i == comm->local_size || !send->state->wanted[i])
            continue;
        mpi_errno = MPIC_Isend(send->data, send->bytes, MPI_BYTE, i, tag, comm, &requests[n], errflag);
        if (mpi_errno == MPI_SUCCESS)
            n++;
        else
            *errflag = MPIX_ERR_PROC_FAILED == MPIR_ERR_GET_CLASS(mpi_errno) ? MPIR_ERR_PROC_FAILED : MPIR_ERR_OTHER;
        MPIR_ERR_ADD(first_error, mpi_errno);
        mpi_errno = MPI_SUCCESS;
    }
    /* A connection that was made anew since belongs into the group again. */
    for (i = 0; i < send->state->members; i++) {
        MPIDI_VC_t *vc;
        MPIDI_Comm_get_vc(comm, send->state->ranks[i], &vc);
        changed |= AREA(vc)->out != send->state->outs[i];
    }
    if (changed)
        multicast_close(send->state);
    return first_error;
}

static int multicast_one(MPIR_Comm * comm, coll_multicast_t * state, const void *data, MPI_Aint bytes, int tag,
                         int goes_on, MPIR_Errflag_t * errflag)
{
    multicast_send_t send = {.comm = comm,.state = state,.data = data,.bytes = bytes,.goes_on = goes_on };
    int mpi_errno = MPI_SUCCESS;

    if (!state->group)
        multicast_open(comm, state);
    send.pkt = multicast_pkt(comm, tag, *errflag);
    memset(state->wanted, 1, comm->local_size);
    state->wanted[comm->rank] = 0;
    if (likely(!(comm->revoked & MPIR_COMM_ENDED)) && unlikely(!multicast_try(&send))) {
        mpi_errno = multicast_wait(&send);
        MPIR_ERR_CHECK(mpi_errno);
    }
    if (unlikely(comm->revoked & MPIR_COMM_ENDED)) {
        mpi_errno = coll_ended(comm);
        goto fn_exit;
    }
    if (unlikely(memchr(state->wanted, 1, comm->local_size) != NULL))
        mpi_errno = multicast_singles(&send, tag, errflag);
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* ---- messages of any length -------------------------------------------------------------------------------------- */

/* An error does not keep a rank from doing its part: the others would wait for it. */
static void multicast_note(int error, int *mpi_errno, MPIR_Errflag_t * errflag)
{
    if (likely(error == MPI_SUCCESS))
        return;
    if (*errflag == MPIR_ERR_NONE)
        *errflag = MPIX_ERR_PROC_FAILED == MPIR_ERR_GET_CLASS(error) ? MPIR_ERR_PROC_FAILED : MPIR_ERR_OTHER;
    MPIR_ERR_ADD(*mpi_errno, error);
}

/* A rank's place in a tree in which all messages reach the root soonest when one takes `delay` times as long from end to
 * end as its receiver's software does alone: a parent can take a message each time, and what takes long to come is sent
 * by those with few ranks below. Everybody has a range of ranks that begins with it, its children those behind it in
 * order, so that a reduction is made in the order of ranks. (With a delay of 2 their sizes are Fibonacci's numbers; see
 * Karp, Sahay, Santos and Schauser, Optimal broadcast and summation in the LogP model, 1993.) */
typedef struct multicast_place {
    int parent;                 /* -1 for the root */
    int n;
    int children[MULTICAST_CHILDREN];   /* the last one first */
} multicast_place_t;

static multicast_place_t multicast_place(int size, int delay, int self)
{
    multicast_place_t place = {.parent = -1 };
    int within[2 * MULTICAST_CHILDREN];         /* ranks that can be heard of in so many receives */
    int t, first = 0;

    delay = MPL_MIN(MPL_MAX(delay, 2), MULTICAST_STEEPEST);
    for (t = 0; t < delay || within[t - 1] < size; t++)
        within[t] = t < delay ? 1 : within[t - 1] + within[t - delay];
    t--;
    while (size > 1) {
        int last;
        while (within[t - 1] >= size)
            t--;
        last = MPL_MIN(within[t - delay], size - 1);
        if (self >= first + size - last) {
            place.parent = first;
            first += size - last;
            size = last;
            t -= delay;
        } else {
            if (self == first)
                place.children[place.n++] = first + size - last;
            size -= last;
            t--;
        }
    }
    return place;
}

/* Everyone has come here when the root goes on: messages without data up a tree. */
static void multicast_up(MPIR_Comm * comm, coll_multicast_t * state, int root, int *mpi_errno,
                         MPIR_Errflag_t * errflag)
{
    const int size = comm->local_size;
    const int delay = ulfm->group_pays(nm, ULFM_COLL_BARRIER, size, state->nodes, 0);
    multicast_place_t place = multicast_place(size, delay, (comm->rank - root + size) % size);

    while (place.n > 0)
        multicast_note(MPIC_Recv(NULL, 0, MPI_BYTE, (place.children[--place.n] + root) % size, MPIR_BARRIER_TAG, comm,
                                 MPI_STATUS_IGNORE, errflag), mpi_errno, errflag);
    if (place.parent >= 0)
        multicast_note(multicast_single(comm, NULL, 0, MPI_BYTE, (place.parent + root) % size, MPIR_BARRIER_TAG,
                                        errflag), mpi_errno, errflag);
}

static void multicast_all(MPIR_Comm * comm, coll_multicast_t * state, const char *data, MPI_Aint bytes, int tag,
                          int *mpi_errno, MPIR_Errflag_t * errflag)
{
    MPI_Aint at = 0;

    do {
        const MPI_Aint length = MPL_MIN(bytes - at, state->piece);
        multicast_note(multicast_one(comm, state, data + at, length, tag, at != 0, errflag), mpi_errno, errflag);
        at += length;
    } while (at < bytes && !(comm->revoked & MPIR_COMM_ENDED));
}

/* What `root` sends by multicast_all(). With `up` all tell it first that they are here. */
static void multicast_receive(MPIR_Comm * comm, coll_multicast_t * state, char *data, MPI_Aint bytes, int root, int tag,
                              int up, int *mpi_errno, MPIR_Errflag_t * errflag)
{
    MPIR_Request *requests[MULTICAST_RECEIVES];
    MPI_Status statuses[MULTICAST_RECEIVES];
    MPI_Aint lengths[MULTICAST_RECEIVES], at = 0;

    do {
        int error = MPI_SUCCESS, n = 0, i;
        do {
            lengths[n] = MPL_MIN(bytes - at, state->piece);
            error = MPIC_Irecv(data + at, lengths[n], MPI_BYTE, root, tag, comm, &requests[n]);
            if (error)
                break;
            at += lengths[n++];
        } while (at < bytes && n < MULTICAST_RECEIVES);
        if (up)
            multicast_up(comm, state, root, mpi_errno, errflag);
        up = 0;
        if (n)
            multicast_note(MPIC_Waitall(n, requests, statuses, errflag), &error, errflag);
        for (i = 0; i < n && error == MPI_SUCCESS; i++)
            if (MPIR_STATUS_GET_COUNT(statuses[i]) != lengths[i])
                MPIR_ERR_SET2(error, MPI_ERR_OTHER, "**collective_size_mismatch", "**collective_size_mismatch %d %d",
                              (int) MPIR_STATUS_GET_COUNT(statuses[i]), (int) lengths[i]);
        if (error) {
            multicast_note(error, mpi_errno, errflag);
            return;
        }
    } while (at < bytes);
}

/* ---- the calls -------------------------------------------------------------------------------------------------- */

static void multicast_barrier(MPIR_Comm * comm, coll_multicast_t * state, int *mpi_errno, MPIR_Errflag_t * errflag)
{
    multicast_up(comm, state, 0, mpi_errno, errflag);
    if (comm->rank == 0)
        multicast_all(comm, state, NULL, 0, MPIR_BARRIER_TAG, mpi_errno, errflag);
    else
        multicast_receive(comm, state, NULL, 0, 0, MPIR_BARRIER_TAG, 0, mpi_errno, errflag);
}

/* Whether the root must hear of everyone before it goes on. */
static int multicast_goes_ahead(coll_multicast_t * state, MPI_Aint bytes)
{
    const MPI_Aint cost = MPL_MAX(bytes, MULTICAST_LEAST);
    const int up = state->ahead < cost;

    if (up)
        state->ahead = MULTICAST_AHEAD;
    state->ahead -= MPL_MIN(cost, state->ahead);
    return up;
}

static void multicast_bcast(MPIR_Comm * comm, coll_multicast_t * state, void *data, MPI_Aint bytes, int root, int up,
                            int *mpi_errno, MPIR_Errflag_t * errflag)
{
    if (comm->rank != root) {
        multicast_receive(comm, state, data, bytes, root, MPIR_BCAST_TAG, up, mpi_errno, errflag);
        return;
    }
    if (up)
        multicast_up(comm, state, root, mpi_errno, errflag);
    multicast_all(comm, state, data, bytes, MPIR_BCAST_TAG, mpi_errno, errflag);
}

/* Short blocks are gathered, which takes a message from each rank, and go to all in one message. Of longer ones each
 * rank sends its own to all, in turns of one message from each. */
static void multicast_allgather(MPIR_Comm * comm, coll_multicast_t * state, const char *in, char *out, MPI_Aint bytes,
                                int *mpi_errno, MPIR_Errflag_t * errflag)
{
    const int size = comm->local_size;
    MPIR_Request **requests;
    MPI_Status *statuses;
    MPI_Aint at;
    int i;

    if (ulfm->group_pays(nm, ULFM_COLL_ALLGATHER, size, state->nodes, bytes) == ULFM_GROUP_ONE) {
        const void *mine = comm->rank == 0 && in == out ? MPI_IN_PLACE : in;
        multicast_note(MPIR_Gather_impl(mine, bytes, MPI_BYTE, out, bytes, MPI_BYTE, 0, comm, errflag), mpi_errno,
                       errflag);
        multicast_bcast(comm, state, out, bytes * size, 0, 0, mpi_errno, errflag);
        return;
    }
    requests = MPL_malloc(size * (sizeof *requests + sizeof *statuses), MPL_MEM_BUFFER);
    statuses = (MPI_Status *) (requests + size);
    if (!requests)
        MPID_Abort(comm, MPI_SUCCESS, 1, "there is no memory for an allgather, on which the others count");
    if (out + comm->rank * bytes != in)
        memmove(out + comm->rank * bytes, in, bytes);
    for (at = 0; at < bytes && *mpi_errno == MPI_SUCCESS; at += state->piece) {
        const MPI_Aint length = MPL_MIN(bytes - at, state->piece);
        int n = 0;
        for (i = 1; i < size; i++) {
            const int from = (comm->rank + i) % size;
            const int error = MPIC_Irecv(out + from * bytes + at, length, MPI_BYTE, from, MPIR_ALLGATHER_TAG, comm,
                                         &requests[n]);
            multicast_note(error, mpi_errno, errflag);
            n += error == MPI_SUCCESS;
        }
        multicast_note(multicast_one(comm, state, out + comm->rank * bytes + at, length, MPIR_ALLGATHER_TAG, at != 0,
                                     errflag), mpi_errno, errflag);
        multicast_note(MPIC_Waitall(n, requests, statuses, errflag), mpi_errno, errflag);
    }
    MPL_free(requests);
}

/* With what has come from the ranks behind; mine are before theirs. */
static int multicast_combine(void *mine, void *theirs, MPI_Aint count, MPI_Datatype type, MPI_Op op, int commutes)
{
    int mpi_errno;

    if (commutes)
        return MPIR_Reduce_local(theirs, mine, count, type, op);
    mpi_errno = MPIR_Reduce_local(mine, theirs, count, type, op);
    return mpi_errno ? mpi_errno : MPIR_Localcopy(theirs, count, type, mine, count, type);
}

/* Up a tree to rank `top`: what each has from those behind it, in the order of ranks. `mine` is the rank's own part at
 * first, and changed; `theirs` is room for another. */
static void multicast_combine_up(MPIR_Comm * comm, int delay, void *mine, void *theirs, MPI_Aint count,
                                 MPI_Datatype type, MPI_Op op, int top, int *mpi_errno, MPIR_Errflag_t * errflag)
{
    const int size = comm->local_size, commutes = MPIR_Op_is_commutative(op);
    multicast_place_t place = multicast_place(size, delay, (comm->rank - top + size) % size);

    while (place.n > 0) {
        const int child = (place.children[--place.n] + top) % size;
        const int error = MPIC_Recv(theirs, count, type, child, MPIR_REDUCE_TAG, comm, MPI_STATUS_IGNORE, errflag);
        multicast_note(error, mpi_errno, errflag);
        multicast_note(multicast_combine(mine, theirs, count, type, op, commutes), mpi_errno, errflag);
    }
    if (place.parent >= 0)
        multicast_note(multicast_single(comm, mine, count, type, (place.parent + top) % size, MPIR_REDUCE_TAG, errflag),
                       mpi_errno, errflag);
}

/* A buffer for so many elements. There is memory, or the others wait in vain. */
static char *multicast_room(MPIR_Comm * comm, MPI_Aint count, MPI_Datatype type, MPI_Aint * lower)
{
    MPI_Aint true_extent, extent;
    char *room;

    MPIR_Type_get_true_extent_impl(type, lower, &true_extent);
    MPIR_Datatype_get_extent_macro(type, extent);
    room = MPL_malloc(count * MPL_MAX(extent, true_extent), MPL_MEM_BUFFER);
    if (!room)
        MPID_Abort(comm, MPI_SUCCESS, 1, "there is no memory for a reduction, on which the others count");
    return room - *lower;
}

/* An operation that does not commute begins with rank 0, whose result then goes to the root. */
static void multicast_reduce(MPIR_Comm * comm, int delay, const void *in, void *out, MPI_Aint count, MPI_Datatype type,
                             MPI_Op op, int root, int *mpi_errno, MPIR_Errflag_t * errflag)
{
    const int top = MPIR_Op_is_commutative(op) ? root : 0;
    MPI_Aint lower;
    char *theirs = multicast_room(comm, count, type, &lower);
    char *mine = comm->rank == root ? out : multicast_room(comm, count, type, &lower);

    if (in != MPI_IN_PLACE)
        multicast_note(MPIR_Localcopy(in, count, type, mine, count, type), mpi_errno, errflag);
    multicast_combine_up(comm, delay, mine, theirs, count, type, op, top, mpi_errno, errflag);
    if (top != root && comm->rank == top)
        multicast_note(multicast_single(comm, mine, count, type, root, MPIR_REDUCE_TAG, errflag), mpi_errno, errflag);
    if (top != root && comm->rank == root)
        multicast_note(MPIC_Recv(out, count, type, top, MPIR_REDUCE_TAG, comm, MPI_STATUS_IGNORE, errflag), mpi_errno,
                       errflag);
    if (mine != out)
        MPL_free(mine + lower);
    MPL_free(theirs + lower);
}

/* Whether the call goes this way. */
static int multicast_take(MPIR_Comm * comm, coll_multicast_t * state, int kind, MPI_Aint bytes)
{
    const int taken = state && (kind == ULFM_COLL_BARRIER || kind == ULFM_COLL_BCAST || kind == ULFM_COLL_ALLGATHER ||
                                kind == ULFM_COLL_REDUCE || kind == ULFM_COLL_ALLREDUCE) &&
        ulfm->group_pays(nm, kind, comm->local_size, state->nodes, bytes);
    /* Not the parts into which MPICH divides a program's call. */
    if (taken || comm->hierarchy_kind == MPIR_COMM_HIERARCHY_KIND__FLAT ||
        comm->hierarchy_kind == MPIR_COMM_HIERARCHY_KIND__PARENT)
        ulfm->coll_count(nm, kind, taken ? ULFM_COLL_MULTICAST : ULFM_COLL_NO_MULTICAST);
    return taken;
}

/* What an error anywhere makes of the call. Whoever leaves has heard of all, but in a broadcast or a reduction to one. */
static void multicast_end(coll_multicast_t * state, int kind, int *mpi_errno, MPIR_Errflag_t errflag)
{
    if (kind != ULFM_COLL_BCAST && kind != ULFM_COLL_REDUCE)
        state->ahead = MULTICAST_AHEAD;
    if (*mpi_errno == MPI_SUCCESS && errflag != MPIR_ERR_NONE)
        MPIR_ERR_SET(*mpi_errno, errflag, "**coll_fail");
}

static void multicast_run(MPIR_Comm * comm, coll_multicast_t * state, const ulfm_coll_call * call, int *mpi_errno)
{
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;

    if (call->kind == ULFM_COLL_BARRIER)
        multicast_barrier(comm, state, mpi_errno, &errflag);
    else if (call->kind == ULFM_COLL_BCAST)
        multicast_bcast(comm, state, call->out, call->count, call->root,
                        multicast_goes_ahead(state, call->count), mpi_errno, &errflag);
    else
        multicast_allgather(comm, state, call->in, call->out, call->count, mpi_errno, &errflag);
    multicast_end(state, call->kind, mpi_errno, errflag);
}
