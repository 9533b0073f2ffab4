/* Blocking collectives of neighbours. Part of ulfm_netmod.c.
 *
 * Each neighbour gets one message. Most come soon, and are copied from their frames into the program's buffers, without
 * requests and without CH3's queues; a receive is posted for what does not (MPII_Neighbor_messages waits for those). */

#include "ulfm_neighbors.h"

#include "ulfm_near.c"

/* Looks without one of the messages after which receives are posted: whoever waits longer is told of failures, sleeps,
 * and is seen by ULFM_STALL_REPORT, as in any other wait. */
#define NEIGHBOR_LOOKS 8

/* A call whose receives begin. */
typedef struct neighbor_call {
    MPIDI_nem_ulfm_neighbor_t *in;
    int n, left;                /* of `in`: all, and those not done */
    int tag;
    MPIR_Comm *comm;
    MPIR_Request **requests;    /* of receives and sends, so many */
    int *begun;
    int mpi_errno;              /* to post a receive */
} neighbor_call_t;

static neighbor_call_t *neighbors;      /* the call that awaits messages without requests, or NULL */

/* ---- receives ---------------------------------------------------------------------------------------------------- */

static void post_neighbor(neighbor_call_t * call, MPIDI_nem_ulfm_neighbor_t * in)
{
    if (call->mpi_errno == MPI_SUCCESS) {
        call->mpi_errno = MPIC_Irecv(in->buf, in->count, in->type, in->rank, call->tag, call->comm,
                                     &call->requests[*call->begun]);
        *call->begun += call->mpi_errno == MPI_SUCCESS;
    }
    in->done = 1;
    call->left--;
}

static void post_neighbors(neighbor_call_t * call)
{
    int i;
    for (i = 0; i < call->n; i++)
        if (!call->in[i].done)
            post_neighbor(call, &call->in[i]);
}

static int neighbors_context(const MPIR_Comm * comm)
{
    return comm->recvcontext_id + MPIR_CONTEXT_INTRA_COLL;
}

static int came_unexpected(const neighbor_call_t * call, int rank)
{
    return *MPID_Recvq_unexpected_head_ptr &&
        MPIDI_CH3U_Recvq_FU(rank, call->tag, neighbors_context(call->comm), MPI_STATUS_IGNORE);
}

/* Receives at once for what is there already, and for messages of this rank to itself, which no frame brings. */
static void post_what_came(neighbor_call_t * call)
{
    int i;
    for (i = 0; i < call->n; i++) {
        MPIDI_nem_ulfm_neighbor_t *in = &call->in[i];
        if (in->done)
            continue;
        if (in->rank < 0) {     /* MPI_PROC_NULL */
            in->done = 1;
            call->left--;
        } else if (in->rank == call->comm->rank || came_unexpected(call, in->rank)) {
            post_neighbor(call, in);
        }
    }
}

/* The first block that the next message of that rank is for. */
static MPIDI_nem_ulfm_neighbor_t *neighbor_block(const neighbor_call_t * call, int rank)
{
    int i;
    for (i = 0; i < call->n; i++)
        if (!call->in[i].done && call->in[i].rank == rank)
            return &call->in[i];
    return NULL;
}

/* 1: one of the messages, and taken. What may be one but is not a whole message, does not fit or is not the next, is for
 * receives, which are posted then. */
static int from_neighbor(const ulfm_nm_frame * frame)
{
    const MPIDI_VC_t *vc = frame->cookie;
    neighbor_call_t *call = neighbors;
    MPIDI_nem_ulfm_neighbor_t *in;
    eager_message_t message;

    if (frame->kind != ULFM_NM_FIRST || call->left == 0)
        return 0;
    if (frame->fresh || !vc || vc->state != MPIDI_VC_STATE_ACTIVE || !eager_message(frame, &message) ||
        !message.is_whole || MPIR_TAG_CHECK_ERROR_BIT(message.match.tag))
        goto by_receives;
    if (message.match.tag != call->tag || message.match.context_id != neighbors_context(call->comm) ||
        !(in = neighbor_block(call, message.match.rank)))
        return 0;
    if (message.size > in->room || came_unexpected(call, in->rank))
        goto by_receives;
    if (message.size != 0)
        memcpy(in->place, message.data, message.size);
    mid_message = 0;
    in->done = 1;
    if (--call->left == 0)
        MPIDI_CH3_Progress_signal_completion();
    return 1;
  by_receives:
    in_frame = 1;
    post_neighbors(call);
    in_frame = 0;
    return 0;
}

/* What comes now is for the next call, which takes it from its frame. */
static inline int have_all_neighbors(void)
{
    return unlikely(neighbors) && neighbors->left == 0;
}

/* Where the data belong; 0 when a type has gaps, for which there are receives. */
static int find_place(MPIDI_nem_ulfm_neighbor_t * in)
{
    int contig;
    MPI_Aint true_lb;
    MPIR_Datatype *type;

    MPIDI_Datatype_get_info(in->count, in->type, contig, in->room, type, true_lb);
    in->place = MPIR_get_contig_ptr(in->buf, true_lb);
    return contig;
}

static int may_await_neighbors(const neighbor_call_t * call)
{
    int i;
    if (!nm || timed || MPIR_IS_THREADED || call->comm->revoked)
        return 0;
    for (i = 0; i < call->n; i++)
        if (call->in[i].rank >= 0 && !find_place(&call->in[i]))
            return 0;
    return 1;
}

static int await_neighbors(neighbor_call_t * call)
{
    int mpi_errno = MPI_SUCCESS;
    int looks = 0, before = call->left;

    while (call->left != 0 && looks < NEIGHBOR_LOOKS && mpi_errno == MPI_SUCCESS) {
        mpi_errno = ulfm_poll(1);
        if (call->left == before)
            post_what_came(call);       /* by another way than this look */
        looks = call->left == before ? looks + 1 : 0;
        before = call->left;
    }
    return mpi_errno;
}

/* ---- sends ------------------------------------------------------------------------------------------------------- */

static int send_to_neighbor(const MPIDI_nem_ulfm_neighbor_t * out, int tag, MPIR_Comm * comm,
                            MPIR_Request ** requests, int *begun)
{
    int mpi_errno = MPI_SUCCESS;
    int contig;
    intptr_t size;
    MPI_Aint true_lb;
    MPIR_Datatype *type;
    MPIDI_VC_t *vc;
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;

    MPIDI_Datatype_get_info(out->count, out->type, contig, size, type, true_lb);
    if (contig && nm && !comm->revoked && out->rank >= 0 && out->rank != comm->rank) {
        MPIDI_Comm_get_vc_set_active(comm, out->rank, &vc);
        if (MPIDI_nem_ulfm_send_now(vc, MPIR_get_contig_ptr(out->buf, true_lb), size, tag, comm,
                                    comm->context_id + MPIR_CONTEXT_INTRA_COLL))
            goto fn_exit;
    }
    mpi_errno = MPIC_Isend(out->buf, out->count, out->type, out->rank, tag, comm, &requests[*begun], &errflag);
    *begun += mpi_errno == MPI_SUCCESS;
  fn_exit:
    return mpi_errno;
}

/* ---- through a segment ------------------------------------------------------------------------------------------- */

/* Each block's sender says there whether it is there, too. What is still a message then is left in `call`. A block that
 * does not fit is *wrong. */
static int take_from_segment(neighbor_call_t * call, int *wrong)
{
    int mpi_errno = MPI_SUCCESS, rc, i;

    coll_running = call->comm;
    coll_kind = ULFM_COLL_NEIGHBORS;
    rc = near_get(COLL_STATE(call->comm), call->in, call->n, wrong);
    coll_running = NULL;
    call->left = 0;
    for (i = 0; i < call->n; i++)
        call->left += !call->in[i].done;
    if (rc != 0)
        coll_fail(call->comm, rc, &mpi_errno);
    return mpi_errno;
}

static int give_to_segment(const neighbor_call_t * call, const MPIDI_nem_ulfm_neighbor_t * out, int outdegree,
                           MPI_Aint * longest)
{
    coll_state_t *state = COLL_STATE(call->comm);
    int mpi_errno = MPI_SUCCESS, rc = 0;

    coll_running = call->comm;
    coll_kind = ULFM_COLL_NEIGHBORS;
    if (!state->has_near)
        rc = near_open(state, call->in, call->n, out, outdegree);
    if (rc == 0)
        rc = near_give(state, out, outdegree, longest, &mpi_errno);
    coll_running = NULL;
    if (rc != 0)
        coll_fail(call->comm, rc, &mpi_errno);
    return mpi_errno;
}

/* No receive is begun before it is known to be for a message: the others' messages may come unexpected. */
static int through_segment(neighbor_call_t * call, const MPIDI_nem_ulfm_neighbor_t * out, int outdegree)
{
    int mpi_errno, i, wrong = MPI_SUCCESS;
    MPI_Aint longest = -1;      /* block that is not a message */
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;

    mpi_errno = give_to_segment(call, out, outdegree, &longest);
    for (i = 0; i < outdegree && mpi_errno == MPI_SUCCESS; i++)
        if (coll_bytes(out[i].count, out[i].type) > longest)
            mpi_errno = send_to_neighbor(&out[i], call->tag, call->comm, call->requests, call->begun);
    if (mpi_errno == MPI_SUCCESS)
        mpi_errno = take_from_segment(call, &wrong);
    else if (COLL_STATE(call->comm)->coll)      /* the neighbours would wait for the end of this call */
        coll_fail(call->comm, segment_give_up(COLL_STATE(call->comm)), &mpi_errno);
    if (mpi_errno == MPI_SUCCESS && call->left != 0 && may_await_neighbors(call)) {
        neighbors = call;
        mpi_errno = await_neighbors(call);
        neighbors = NULL;
    }
    if (mpi_errno == MPI_SUCCESS) {
        post_neighbors(call);
        mpi_errno = call->mpi_errno;
    }
    if (mpi_errno == MPI_SUCCESS && wrong) {    /* the other blocks arrive all the same */
        mpi_errno = MPIC_Waitall(*call->begun, call->requests, MPI_STATUSES_IGNORE, &errflag);
        *call->begun = 0;
    }
    return mpi_errno == MPI_SUCCESS ? wrong : mpi_errno;
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

/* See ulfm_neighbors.h. Before anything is sent, receives are posted, or this call awaits their messages: none that comes
 * from then on is unexpected. */
int MPIDI_nem_ulfm_neighbors(MPIDI_nem_ulfm_neighbor_t * in, int indegree, const MPIDI_nem_ulfm_neighbor_t * out,
                             int outdegree, int tag, MPIR_Comm * comm, MPIR_Request ** requests, int *begun)
{
    neighbor_call_t call = {.in = in,.n = indegree,.left = indegree,.tag = tag,.comm = comm,.requests = requests,.begun = begun };
    static unsigned in_a_row = 0;
    int mpi_errno = MPI_SUCCESS;
    int i;

    /* Messages that are always there would keep this rank from all else that makes progress. */
    if (nm && !MPIR_IS_THREADED && ++in_a_row % QUICK_IN_A_ROW == 0)
        mpi_errno = MPID_Progress_test(NULL);
    MPIR_ERR_CHECK(mpi_errno);
    if (near_takes(comm))
        return through_segment(&call, out, outdegree);
    if (may_await_neighbors(&call)) {
        post_what_came(&call);
        neighbors = &call;
    } else {
        post_neighbors(&call);
    }
    mpi_errno = call.mpi_errno;
    for (i = 0; i < outdegree && mpi_errno == MPI_SUCCESS; i++)
        mpi_errno = send_to_neighbor(&out[i], tag, comm, requests, begun);
    if (mpi_errno == MPI_SUCCESS)
        mpi_errno = await_neighbors(&call);
    neighbors = NULL;
    if (mpi_errno == MPI_SUCCESS)
        post_neighbors(&call);
  fn_fail:
    return mpi_errno != MPI_SUCCESS ? mpi_errno : call.mpi_errno;
}
