/* MPI's nonblocking collectives through the segment that the ranks of a communicator share (libulfm's
 * coll/nonblocking.hpp). Part of ulfm_netmod.c.
 *
 * MPICH's MPIR_I*_impl functions ask here first (see the patch). As with blocking calls (ulfm_coll.c) whether a call goes
 * this way depends on nothing but what is the same in every rank. A blocking call makes the segment, or the first that
 * initializes a persistent one: a nonblocking one must not wait for others. In Igatherv, Iscatterv and Ialltoallv no rank
 * knows all sizes; the long blocks of these go by messages of their own, of which both ranks know by themselves.
 *
 * poll finishes what can be finished; a call's request is a plain one of MPICH's nonblocking collectives.
 *
 * MPIR_*_init_impl ask here, too, with the persistent request in *request. Its call is then described and kept, with room
 * of its own in the segment, since ranks may start persistent calls in different orders. */

/* A buffer of a call. When it is packed the bytes are there while the call is under way, and the type is held. */
typedef struct icoll_buffer {
    void *packed;
    void *buffer;
    MPI_Aint count;
    MPI_Datatype type;
} icoll_buffer_t;

/* What a call needs until it has finished; in its request. */
typedef struct icall {
    MPIR_Request *next, *previous;      /* of all that are under way */
    icoll_buffer_t in, out;
    coll_blocks_t *in_blocks, *out_blocks;      /* of different sizes */
    MPIR_Sched_t messages;      /* for what is too long, or NULL; while the call is made */
    struct icoll_kept *kept;    /* what owns all that, of a persistent call */
} icall_t;

/* A persistent call. */
typedef struct icoll_kept {
    ulfm_coll *coll;
    ulfm_coll_call call;
    icall_t about;
    int users;                  /* its request, and a start that is under way */
} icoll_kept_t;

#define ICALL(req) ((icall_t *) (req)->ch.netmod_area.padding)

static MPIR_Request *icalls;

MPL_static_assert(sizeof(icall_t) <= MPIDI_NEM_REQ_NETMOD_AREA_LEN, "a call's request has no room for it");

/* Whether this call is made here. `bytes` as in coll_take(); *request is a persistent one or NULL. */
static int icoll_take(MPIR_Comm * comm, int kind, int defined, MPI_Aint bytes, MPIR_Request ** request, int *mpi_errno)
{
    coll_state_t *state;
    int way = ULFM_COLL_SHARED;

    if (!coll_may_take(comm, kind, bytes) || coll_first == ULFM_COLL_BY_MULTICAST || !(state = coll_state(comm))
        || state->opening)
        return 0;
    if (*request && !state->decided)
        coll_decide(comm, state, mpi_errno);
    if (!state->decided) {
        state->calls++;
        way = ULFM_COLL_FIRST;
    } else if (!state->coll)
        way = ULFM_COLL_NO_SEGMENT;
    else if (!defined)
        way = ULFM_COLL_OPERATION;
    else if (!ulfm->coll_fits(state->coll, kind, bytes))
        way = ULFM_COLL_LONG;
    /* A persistent call is counted when it is started. */
    if (way != ULFM_COLL_SHARED || !*request)
        ulfm->coll_count(nm, kind, way);
    return way == ULFM_COLL_SHARED;
}

static void icoll_link(MPIR_Request * req)
{
    ICALL(req)->previous = NULL;
    ICALL(req)->next = icalls;
    if (icalls)
        ICALL(icalls)->previous = req;
    icalls = req;
}

static void icoll_unlink(MPIR_Request * req)
{
    if (ICALL(req)->previous)
        ICALL(ICALL(req)->previous)->next = ICALL(req)->next;
    else
        icalls = ICALL(req)->next;
    if (ICALL(req)->next)
        ICALL(ICALL(req)->next)->previous = ICALL(req)->previous;
}

/* ---- buffers --------------------------------------------------------------------------------------------------- */

static void *icoll_buffer(icoll_buffer_t * about, const void *buffer, MPI_Aint count, MPI_Datatype type, int copy,
                          int *mpi_errno)
{
    void *data = coll_pack(buffer, count, type, copy, &about->packed, mpi_errno);

    about->buffer = (void *) buffer;
    about->count = count;
    about->type = type;
    if (about->packed)
        MPIR_Datatype_add_ref_if_not_builtin(type);
    return data;
}

/* What the call takes; a persistent one takes it when it is started. */
static void *icoll_in(icall_t * about, const void *buffer, MPI_Aint count, MPI_Datatype type, MPIR_Request ** request,
                      int *mpi_errno)
{
    return icoll_buffer(&about->in, buffer, count, type, !*request, mpi_errno);
}

/* And for what it brings. */
static void *icoll_out(icall_t * about, void *buffer, MPI_Aint count, MPI_Datatype type, int *mpi_errno)
{
    return *mpi_errno == MPI_SUCCESS ? icoll_buffer(&about->out, buffer, count, type, 0, mpi_errno) : NULL;
}

static void icoll_free_buffer(icoll_buffer_t * about)
{
    if (!about->packed)
        return;
    MPL_free(about->packed);
    MPIR_Datatype_release_if_not_builtin(about->type);
}

static void icoll_free_blocks(coll_blocks_t * blocks)
{
    if (!blocks)
        return;
    MPIR_Datatype_release_if_not_builtin(blocks->type);
    coll_free_blocks(blocks);
    MPL_free(blocks);
}

static void icoll_free(icall_t * call)
{
    icoll_free_buffer(&call->in);
    icoll_free_buffer(&call->out);
    icoll_free_blocks(call->in_blocks);
    icoll_free_blocks(call->out_blocks);
}

/* Blocks that last as long as the call. */
static coll_blocks_t *icoll_blocks(const void *buffer, const MPI_Aint * counts, const MPI_Aint * displs,
                                   MPI_Datatype type, int ranks, int filled, int *mpi_errno)
{
    coll_blocks_t *blocks = NULL;
    MPI_Aint *lasting;

    if (*mpi_errno != MPI_SUCCESS)
        return NULL;
    blocks = MPL_malloc(sizeof *blocks + 2 * ranks * sizeof *lasting, MPL_MEM_BUFFER);
    MPIR_ERR_CHKANDJUMP(!blocks, *mpi_errno, MPI_ERR_OTHER, "**nomem");
    lasting = (MPI_Aint *) (blocks + 1);
    memcpy(lasting, counts, ranks * sizeof *counts);
    memcpy(lasting + ranks, displs, ranks * sizeof *displs);
    MPIR_Datatype_add_ref_if_not_builtin(type);
    *mpi_errno = coll_make_blocks(blocks, buffer, lasting, lasting + ranks, type, ranks, filled);
  fn_fail:
    return blocks;
}

static void icoll_let_go(icoll_kept_t * kept)
{
    if (--kept->users > 0)
        return;
    icoll_free(&kept->about);
    MPL_free(kept);
}

/* ---- beginning and ending -------------------------------------------------------------------------------------- */

/* The result is there, or `error` says why it never will be. */
static int icoll_settle(icall_t * call, int error)
{
    int mpi_errno = error;
    const icoll_buffer_t *out = &call->out;

    if (mpi_errno == MPI_SUCCESS && out->packed)
        mpi_errno = MPIR_Localcopy(out->packed, coll_bytes(out->count, out->type), MPI_BYTE, out->buffer, out->count,
                                   out->type);
    if (mpi_errno == MPI_SUCCESS && call->out_blocks && call->out_blocks->packed)
        mpi_errno = coll_copy_blocks(call->out_blocks, out->buffer, 1);
    if (call->kept)
        icoll_let_go(call->kept);
    else
        icoll_free(call);
    return mpi_errno;
}

/* As coll_error(). After a death this process leaves the communicator's collectives, with the next progress. */
static int icoll_error(MPIR_Comm * comm, int rc)
{
    const int mpi_errno = coll_error(comm, rc);

    if (MPIR_ERR_GET_CLASS(mpi_errno) == MPIX_ERR_PROC_FAILED)
        MPIDI_CH3I_Comm_leave(comm);
    return mpi_errno;
}

/* A persistent call is described, and owns what is packed. 0: messages. */
static int icoll_keep(MPIR_Comm * comm, ulfm_coll_call * call, icall_t * about, MPIR_Request * req, int *mpi_errno)
{
    ulfm_coll *coll = COLL_STATE(comm)->coll;
    icoll_kept_t *kept = MPL_malloc(sizeof *kept, MPL_MEM_OTHER);

    if (!kept && *mpi_errno == MPI_SUCCESS)
        MPIR_ERR_SET(*mpi_errno, MPI_ERR_OTHER, "**nomem");
    if (*mpi_errno != MPI_SUCCESS) {
        coll_give_up(comm);
        goto fn_fail;
    }
    call->kept = ulfm->coll_keep(coll, call);
    if (call->kept < 0)
        *mpi_errno = icoll_error(comm, call->kept);
    else if (call->kept == 0)
        ulfm->coll_count(nm, call->kind, ULFM_COLL_NO_ROOM);
    if (call->kept <= 0)
        goto fn_fail;
    *kept = (icoll_kept_t) {.coll = coll,.call = *call,.about = *about,.users = 1 };
    kept->about.kept = kept;
    req->u.persist_coll.sched = kept;
    return 1;
  fn_fail:
    MPL_free(kept);
    icoll_free(about);
    return *mpi_errno != MPI_SUCCESS;
}

/* A message of the call, which is not packed. */
static void icoll_message(icall_t * about, MPIR_Comm * comm, int tag, int is_sent, const void *buffer, MPI_Aint count,
                          MPI_Datatype type, int rank, int *mpi_errno)
{
    if (*mpi_errno == MPI_SUCCESS && !about->messages) {
        *mpi_errno = MPIR_Sched_create(&about->messages, MPIR_SCHED_KIND_REGULAR);
        if (*mpi_errno == MPI_SUCCESS)
            MPIR_Sched_set_tag(about->messages, tag);
    }
    if (*mpi_errno != MPI_SUCCESS)
        return;
    *mpi_errno = is_sent ? MPIR_Sched_send(buffer, count, type, rank, comm, about->messages)
        : MPIR_Sched_recv((void *) buffer, count, type, rank, comm, about->messages);
}

/* The messages of a call have arrived: the callback of their request, where the call's is noted. */
static int icoll_messages_done(MPIR_Request * messages)
{
    MPIR_Request *req = *(MPIR_Request **) messages->ch.netmod_area.padding;

    if (messages->status.MPI_ERROR != MPI_SUCCESS)
        req->status.MPI_ERROR = messages->status.MPI_ERROR;
    return MPID_Request_complete(req);
}

/* Sends and receives what is too long. Returns how many things the call still waits for. */
static int icoll_start_messages(MPIR_Comm * comm, icall_t * about, MPIR_Request * req, int *mpi_errno)
{
    MPIR_Request *messages = NULL;

    if (!about->messages)
        return 0;
    *mpi_errno = MPIR_Sched_start(about->messages, comm, &messages);
    if (*mpi_errno != MPI_SUCCESS)
        return 0;
    *(MPIR_Request **) messages->ch.netmod_area.padding = req;
    messages->dev.request_completed_cb = icoll_messages_done;
    MPIR_Request_free(messages);
    return 1;
}

/* Begins the call, which owns what is packed, or keeps a persistent one. 1: taken. */
static int icoll_start(MPIR_Comm * comm, ulfm_coll_call * call, icall_t * about, MPIR_Request ** request,
                       int *mpi_errno)
{
    MPIR_Request *req;
    int rc = 0, awaited;

    if (*request)
        return icoll_keep(comm, call, about, *request, mpi_errno);
    req = MPIR_Request_create(MPIR_REQUEST_KIND__COLL);
    if (!req && *mpi_errno == MPI_SUCCESS)
        MPIR_ERR_SET(*mpi_errno, MPI_ERR_OTHER, "**nomem");
    if (*mpi_errno != MPI_SUCCESS) {
        coll_give_up(comm);
        goto fn_fail;
    }
    MPIR_Comm_add_ref(comm);
    req->comm = comm;
    *ICALL(req) = *about;
    rc = ulfm->coll_start(COLL_STATE(comm)->coll, call, req);
    if (rc < 0) {
        *mpi_errno = icoll_error(comm, rc);
        goto fn_fail;
    }
    awaited = icoll_start_messages(comm, about, req, mpi_errno);
    if (rc == 1) {
        req->status.MPI_ERROR = icoll_settle(about, *mpi_errno);
    } else {
        icoll_link(req);
        awaited++;
    }
    if (awaited)
        MPIR_Request_add_ref(req);
    MPIR_cc_set(&req->cc, awaited);
    *request = req;
  fn_exit:
    return 1;
  fn_fail:
    (void) icoll_settle(about, *mpi_errno);
    if (about->messages)
        MPIR_Sched_free(about->messages);
    if (req)
        MPIR_Request_free(req);
    goto fn_exit;
}

/* Called by MPI_Start. */
int MPIDI_nem_ulfm_start(MPIR_Request * preq)
{
    int mpi_errno = MPI_SUCCESS;
    icoll_kept_t *kept = preq->u.persist_coll.sched;
    icall_t about = kept->about;
    ulfm_coll_call call = kept->call;

    preq->u.persist_coll.real_request = NULL;
    /* After a failure. */
    if (COLL_STATE(preq->comm)->coll != kept->coll) {
        mpi_errno = icoll_error(preq->comm, INT_MIN);
        goto fn_exit;
    }
    if (about.in.packed)
        mpi_errno = MPIR_Localcopy(about.in.buffer, about.in.count, about.in.type, about.in.packed,
                                   coll_bytes(about.in.count, about.in.type), MPI_BYTE);
    ulfm->coll_count(nm, call.kind, ULFM_COLL_SHARED);
    kept->users++;
    icoll_start(preq->comm, &call, &about, &preq->u.persist_coll.real_request, &mpi_errno);
  fn_exit:
    return mpi_errno;
}

/* Called when a persistent request is freed. */
void MPIDI_nem_ulfm_free(MPIR_Request * preq)
{
    icoll_let_go(preq->u.persist_coll.sched);
}

/* A communicator that was revoked, or that a member has left: its calls end. */
static void icoll_end_revoked(void)
{
    MPIR_Request *req;

    for (req = icalls; req; req = ICALL(req)->next)
        if (req->comm->revoked & (MPIR_COMM_ENDED | MPIR_COMM_MEMBER_LEFT))
            coll_give_up(req->comm);
}

/* Called by poll while calls are under way. */
static int icoll_progress(void)
{
    static int inside;          /* to find out why others gave up takes progress */
    int mpi_errno = MPI_SUCCESS;
    MPIR_Request *req;
    int why;

    if (inside)
        goto fn_exit;
    inside = 1;
    if (MPIR_CVAR_ENABLE_FT)
        icoll_end_revoked();
    while ((req = ulfm->coll_finished(nm, &why))) {
        int failed;
        icoll_unlink(req);
        failed = icoll_settle(ICALL(req), why ? icoll_error(req->comm, why) : MPI_SUCCESS);
        if (failed)
            req->status.MPI_ERROR = failed;
        mpi_errno = MPID_Request_complete(req);
        MPIR_ERR_CHECK(mpi_errno);
    }
  fn_fail:
    inside = 0;
  fn_exit:
    return mpi_errno;
}

/* ---- the calls: 1 when taken, with *mpi_errno ------------------------------------------------------------------ */

int MPIDI_nem_ulfm_ibarrier(MPIR_Comm * comm, MPIR_Request ** request, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_BARRIER };
    icall_t about = { 0 };
    if (!icoll_take(comm, call.kind, 1, 0, request, mpi_errno))
        return *mpi_errno != MPI_SUCCESS;
    return icoll_start(comm, &call, &about, request, mpi_errno);
}

int MPIDI_nem_ulfm_ibcast(void *buffer, MPI_Aint count, MPI_Datatype datatype, int root,
                          MPIR_Comm * comm, MPIR_Request ** request, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_BCAST,.root = root };
    icall_t about = { 0 };

    call.count = coll_bytes(count, datatype);
    if (!icoll_take(comm, call.kind, 1, call.count, request, mpi_errno))
        return *mpi_errno != MPI_SUCCESS;
    if (comm->rank == root)
        call.out = icoll_in(&about, buffer, count, datatype, request, mpi_errno);
    else
        call.out = icoll_out(&about, buffer, count, datatype, mpi_errno);
    return icoll_start(comm, &call, &about, request, mpi_errno);
}

/* What this rank gives: the sender's buffer, or, in place, `recvcount` elements of `recvbuf` from `first` on. Only then
 * need the receiver's arguments mean anything. */
static const void *icoll_own(icall_t * about, const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype,
                             const void *recvbuf, MPI_Aint first, MPI_Aint recvcount, MPI_Datatype recvtype,
                             MPIR_Request ** request, int *mpi_errno)
{
    if (sendbuf == MPI_IN_PLACE)
        return icoll_in(about, coll_at(recvbuf, first, recvtype), recvcount, recvtype, request, mpi_errno);
    return icoll_in(about, sendbuf, sendcount, sendtype, request, mpi_errno);
}

/* Of gather and allgather; root -1 is all. */
static int icoll_gather(int kind, const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
                        MPI_Aint recvcount, MPI_Datatype recvtype, int root, MPIR_Comm * comm,
                        MPIR_Request ** request, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = kind,.root = root };
    icall_t about = { 0 };
    int receives = root < 0 || comm->rank == root;

    call.count = receives ? coll_bytes(recvcount, recvtype) : coll_bytes(sendcount, sendtype);
    if (!icoll_take(comm, kind, 1, call.count, request, mpi_errno))
        return *mpi_errno != MPI_SUCCESS;
    call.in = icoll_own(&about, sendbuf, sendcount, sendtype, recvbuf, comm->rank * recvcount, recvcount, recvtype,
                        request, mpi_errno);
    if (receives && *mpi_errno == MPI_SUCCESS)
        call.out = icoll_out(&about, recvbuf, recvcount * comm->local_size, recvtype, mpi_errno);
    return icoll_start(comm, &call, &about, request, mpi_errno);
}

int MPIDI_nem_ulfm_igather(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
                           MPI_Aint recvcount, MPI_Datatype recvtype, int root, MPIR_Comm * comm,
                           MPIR_Request ** request, int *mpi_errno)
{
    return icoll_gather(ULFM_COLL_GATHER, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm,
                        request, mpi_errno);
}

int MPIDI_nem_ulfm_iallgather(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
                              MPI_Aint recvcount, MPI_Datatype recvtype, MPIR_Comm * comm,
                              MPIR_Request ** request, int *mpi_errno)
{
    return icoll_gather(ULFM_COLL_ALLGATHER, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, -1, comm,
                        request, mpi_errno);
}

/* A root whose own block stays where it is gets nothing. */
int MPIDI_nem_ulfm_iscatter(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
                            MPI_Aint recvcount, MPI_Datatype recvtype, int root, MPIR_Comm * comm,
                            MPIR_Request ** request, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_SCATTER,.root = root };
    icall_t about = { 0 };
    int sends = comm->rank == root;

    call.count = sends ? coll_bytes(sendcount, sendtype) : coll_bytes(recvcount, recvtype);
    if (!icoll_take(comm, call.kind, 1, call.count * comm->local_size, request, mpi_errno))
        return *mpi_errno != MPI_SUCCESS;
    if (sends)
        call.in = icoll_in(&about, sendbuf, sendcount * comm->local_size, sendtype, request, mpi_errno);
    if (recvbuf != MPI_IN_PLACE && *mpi_errno == MPI_SUCCESS)
        call.out = icoll_out(&about, recvbuf, recvcount, recvtype, mpi_errno);
    return icoll_start(comm, &call, &about, request, mpi_errno);
}

int MPIDI_nem_ulfm_ialltoall(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
                             MPI_Aint recvcount, MPI_Datatype recvtype, MPIR_Comm * comm,
                             MPIR_Request ** request, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_ALLTOALL };
    icall_t about = { 0 };
    MPI_Aint all = recvcount * comm->local_size;

    call.count = coll_bytes(recvcount, recvtype);
    if (!icoll_take(comm, call.kind, 1, call.count * comm->local_size, request, mpi_errno))
        return *mpi_errno != MPI_SUCCESS;
    call.in = icoll_own(&about, sendbuf, sendcount * comm->local_size, sendtype, recvbuf, 0, all, recvtype, request,
                        mpi_errno);
    if (*mpi_errno == MPI_SUCCESS)
        call.out = icoll_out(&about, recvbuf, all, recvtype, mpi_errno);
    return icoll_start(comm, &call, &about, request, mpi_errno);
}

static void icoll_out_blocks(ulfm_coll_call * call, icall_t * about, void *recvbuf, const MPI_Aint * counts,
                             const MPI_Aint * displs, MPI_Datatype type, int ranks, int *mpi_errno)
{
    about->out.buffer = recvbuf;
    about->out_blocks = icoll_blocks(recvbuf, counts, displs, type, ranks, 0, mpi_errno);
    if (*mpi_errno == MPI_SUCCESS) {
        call->out = about->out_blocks->data;
        call->out_bytes = about->out_blocks->bytes;
        call->out_at = about->out_blocks->at;
    }
}

static void icoll_in_blocks(ulfm_coll_call * call, icall_t * about, const void *sendbuf, const MPI_Aint * counts,
                            const MPI_Aint * displs, MPI_Datatype type, int ranks, int *mpi_errno)
{
    about->in_blocks = icoll_blocks(sendbuf, counts, displs, type, ranks, 1, mpi_errno);
    if (*mpi_errno == MPI_SUCCESS) {
        call->in = about->in_blocks->data;
        call->in_bytes = about->in_blocks->bytes;
        call->in_at = about->in_blocks->at;
    }
}

/* Whether a call in which no rank knows all sizes is made here; and which blocks are too long, and the tag of their
 * messages, which all ranks count. */
static int icoll_take_blocks(MPIR_Comm * comm, int kind, size_t * longest, int *tag, MPIR_Request ** request,
                             int *mpi_errno)
{
    if (!icoll_take(comm, kind, 1, 1, request, mpi_errno))
        return 0;
    *longest = ulfm->coll_block(COLL_STATE(comm)->coll, kind);
    *mpi_errno = MPIR_Sched_next_tag(comm, tag);
    return *mpi_errno == MPI_SUCCESS;
}

/* Those of the blocks that are too long, which nobody unpacks then. */
static void icoll_messages(icall_t * about, MPIR_Comm * comm, int tag, coll_blocks_t * blocks, int is_sent,
                           const void *buffer, size_t longest, int *mpi_errno)
{
    MPI_Aint *counts;
    int i;

    if (*mpi_errno != MPI_SUCCESS)
        return;
    counts = (MPI_Aint *) blocks->counts;
    for (i = 0; i < comm->local_size; i++) {
        if (blocks->bytes[i] <= longest || i == comm->rank)
            continue;
        icoll_message(about, comm, tag, is_sent, coll_at(buffer, blocks->displs[i], blocks->type), counts[i],
                      blocks->type, i, mpi_errno);
        counts[i] = 0;
    }
}

int MPIDI_nem_ulfm_iallgatherv(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
                               const MPI_Aint * recvcounts, const MPI_Aint * displs, MPI_Datatype recvtype,
                               MPIR_Comm * comm, MPIR_Request ** request, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_ALLGATHERV };
    icall_t about = { 0 };

    if (comm->comm_kind != MPIR_COMM_KIND__INTRACOMM)
        return 0;               /* as in MPIDI_nem_ulfm_allgatherv() */
    if (!icoll_take(comm, call.kind, 1, coll_bytes(longest_block(recvcounts, comm), recvtype), request, mpi_errno))
        return *mpi_errno != MPI_SUCCESS;
    call.in = icoll_own(&about, sendbuf, sendcount, sendtype, recvbuf, displs[comm->rank], recvcounts[comm->rank],
                        recvtype, request, mpi_errno);
    icoll_out_blocks(&call, &about, recvbuf, recvcounts, displs, recvtype, comm->local_size, mpi_errno);
    return icoll_start(comm, &call, &about, request, mpi_errno);
}

int MPIDI_nem_ulfm_igatherv(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
                            const MPI_Aint * recvcounts, const MPI_Aint * displs, MPI_Datatype recvtype, int root,
                            MPIR_Comm * comm, MPIR_Request ** request, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_GATHERV,.root = root };
    icall_t about = { 0 };
    int tag;
    size_t longest;

    if (*request || !icoll_take_blocks(comm, call.kind, &longest, &tag, request, mpi_errno))
        return *mpi_errno != MPI_SUCCESS;
    if (comm->rank == root) {
        icoll_out_blocks(&call, &about, recvbuf, recvcounts, displs, recvtype, comm->local_size, mpi_errno);
        icoll_messages(&about, comm, tag, about.out_blocks, 0, recvbuf, longest, mpi_errno);
        if (sendbuf == MPI_IN_PLACE && *mpi_errno == MPI_SUCCESS)
            ((MPI_Aint *) about.out_blocks->counts)[root] = 0;  /* it stays as it is */
        else if (*mpi_errno == MPI_SUCCESS)
            call.in = icoll_in(&about, sendbuf, sendcount, sendtype, request, mpi_errno);
    } else {
        call.count = coll_bytes(sendcount, sendtype);
        if (call.count > longest)
            icoll_message(&about, comm, tag, 1, sendbuf, sendcount, sendtype, root, mpi_errno);
        else
            call.in = icoll_in(&about, sendbuf, sendcount, sendtype, request, mpi_errno);
    }
    return icoll_start(comm, &call, &about, request, mpi_errno);
}

int MPIDI_nem_ulfm_iscatterv(const void *sendbuf, const MPI_Aint * sendcounts, const MPI_Aint * displs,
                             MPI_Datatype sendtype, void *recvbuf, MPI_Aint recvcount, MPI_Datatype recvtype, int root,
                             MPIR_Comm * comm, MPIR_Request ** request, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_SCATTERV,.root = root };
    icall_t about = { 0 };
    int tag;
    size_t longest;

    if (*request || !icoll_take_blocks(comm, call.kind, &longest, &tag, request, mpi_errno))
        return *mpi_errno != MPI_SUCCESS;
    if (comm->rank == root) {
        icoll_in_blocks(&call, &about, sendbuf, sendcounts, displs, sendtype, comm->local_size, mpi_errno);
        icoll_messages(&about, comm, tag, about.in_blocks, 1, sendbuf, longest, mpi_errno);
    }
    call.count = recvbuf == MPI_IN_PLACE ? 0 : coll_bytes(recvcount, recvtype);
    if (comm->rank != root && call.count > longest)
        icoll_message(&about, comm, tag, 0, recvbuf, recvcount, recvtype, root, mpi_errno);
    else if (recvbuf != MPI_IN_PLACE)
        call.out = icoll_out(&about, recvbuf, recvcount, recvtype, mpi_errno);
    return icoll_start(comm, &call, &about, request, mpi_errno);
}

/* In place, long blocks would be overwritten before they are sent. */
int MPIDI_nem_ulfm_ialltoallv(const void *sendbuf, const MPI_Aint * sendcounts, const MPI_Aint * sdispls,
                              MPI_Datatype sendtype, void *recvbuf, const MPI_Aint * recvcounts,
                              const MPI_Aint * rdispls, MPI_Datatype recvtype, MPIR_Comm * comm,
                              MPIR_Request ** request, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_ALLTOALLV };
    icall_t about = { 0 };
    int tag;
    size_t longest;

    if (*request || sendbuf == MPI_IN_PLACE
        || !icoll_take_blocks(comm, call.kind, &longest, &tag, request, mpi_errno))
        return *mpi_errno != MPI_SUCCESS;
    icoll_out_blocks(&call, &about, recvbuf, recvcounts, rdispls, recvtype, comm->local_size, mpi_errno);
    icoll_messages(&about, comm, tag, about.out_blocks, 0, recvbuf, longest, mpi_errno);
    icoll_in_blocks(&call, &about, sendbuf, sendcounts, sdispls, sendtype, comm->local_size, mpi_errno);
    icoll_messages(&about, comm, tag, about.in_blocks, 1, sendbuf, longest, mpi_errno);
    return icoll_start(comm, &call, &about, request, mpi_errno);
}

/* Of the reductions: the predefined operations on the predefined types. */
static int icoll_reduce(ulfm_coll_call * call, const void *sendbuf, void *recvbuf, MPI_Aint count,
                        MPI_Datatype datatype, MPI_Op op, MPIR_Comm * comm, MPIR_Request ** request, int *mpi_errno)
{
    icall_t about = { 0 };
    int defined;

    coll_describe_reduction(call, sendbuf, recvbuf, count, datatype, op);
    defined = call->kernel && !has_gaps(datatype);      /* the segment copies what is in gaps, too */
    if (!icoll_take(comm, call->kind, defined, count * call->extent, request, mpi_errno))
        return *mpi_errno != MPI_SUCCESS;
    return icoll_start(comm, call, &about, request, mpi_errno);
}

int MPIDI_nem_ulfm_ireduce(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype datatype, MPI_Op op,
                           int root, MPIR_Comm * comm, MPIR_Request ** request, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_REDUCE,.root = root };
    return icoll_reduce(&call, sendbuf, recvbuf, count, datatype, op, comm, request, mpi_errno);
}

int MPIDI_nem_ulfm_iallreduce(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype datatype, MPI_Op op,
                              MPIR_Comm * comm, MPIR_Request ** request, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_ALLREDUCE };
    return icoll_reduce(&call, sendbuf, recvbuf, count, datatype, op, comm, request, mpi_errno);
}

int MPIDI_nem_ulfm_iscan(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype datatype, MPI_Op op,
                         MPIR_Comm * comm, MPIR_Request ** request, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_SCAN };
    return icoll_reduce(&call, sendbuf, recvbuf, count, datatype, op, comm, request, mpi_errno);
}

int MPIDI_nem_ulfm_iexscan(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype datatype, MPI_Op op,
                           MPIR_Comm * comm, MPIR_Request ** request, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_EXSCAN };
    return icoll_reduce(&call, sendbuf, recvbuf, count, datatype, op, comm, request, mpi_errno);
}

int MPIDI_nem_ulfm_ireduce_scatter(const void *sendbuf, void *recvbuf, const MPI_Aint * recvcounts,
                                   MPI_Datatype datatype, MPI_Op op, MPIR_Comm * comm, MPIR_Request ** request,
                                   int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_REDUCE_SCATTER };
    const MPI_Aint total = coll_parts(&call, recvcounts, comm);
    return icoll_reduce(&call, sendbuf, recvbuf, total, datatype, op, comm, request, mpi_errno);
}

int MPIDI_nem_ulfm_ireduce_scatter_block(const void *sendbuf, void *recvbuf, MPI_Aint recvcount,
                                         MPI_Datatype datatype, MPI_Op op, MPIR_Comm * comm,
                                         MPIR_Request ** request, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_REDUCE_SCATTER,.first = comm->rank * recvcount,.mine = recvcount };
    return icoll_reduce(&call, sendbuf, recvbuf, recvcount * comm->local_size, datatype, op, comm, request,
                        mpi_errno);
}
