/* Messages that are done with at once. Part of ulfm_netmod.c.
 *
 * A blocking receive whose message is there when it is called, or comes soon: from its frame into the program's buffer,
 * without a request and without CH3's queues; MPID_Recv asks first (patch 78). And a send of a short message for which
 * there is room; MPID_Isend and MPID_Send ask first (patch 79). */

/* After so many in a row one goes the usual way, by which everything else makes progress. */
#define QUICK_IN_A_ROW 64

/* So many requests that are for other messages, of other threads say, are looked at. */
#define QUICK_BESIDE 16

static inline void hold(const ulfm_nm_frame * frame)
{
    held = *frame;
    has_held = 1;
}

static inline int next_frame(ulfm_nm_frame * frame)
{
    if (unlikely(has_held)) {
        *frame = held;
        has_held = 0;
        return 1;
    }
    return ulfm->next(nm, frame);
}

/* One message may be what both the request and such a receive match. Wildcards are in receives only. */
static inline int may_match_both(const MPIR_Request * req, int rank, int tag, int context_id)
{
    const MPIDI_Message_match_parts_t *match = &req->dev.match.parts;

    return match->context_id == (MPIR_Context_id_t) context_id &&
        (rank == MPI_ANY_SOURCE || match->rank == MPI_ANY_SOURCE || match->rank == rank) &&
        (tag == MPI_ANY_TAG || match->tag == MPI_ANY_TAG || MPIR_TAG_MASK_ERROR_BITS(match->tag) == tag);
}

static inline int none_of(const MPIR_Request * req, int rank, int tag, int context_id)
{
    int i;

    for (i = 0; req && i < QUICK_BESIDE; i++, req = req->next)
        if (may_match_both(req, rank, tag, context_id))
            return 0;
    return !req;
}

/* Nothing that was called or came before this receive can be meant: then the next message may be taken out of turn with
 * the queues. What waits to be sent is sent by the usual way. */
static inline int nothing_pending(int rank, int tag, int context_id)
{
    return none_of(*MPID_Recvq_posted_head_ptr, rank, tag, context_id) &&
        none_of(*MPID_Recvq_unexpected_head_ptr, rank, tag, context_id) && !waiting_head && !copying_head &&
        !multicast_waiting && !n_leaving && !has_held;
}

/* Another thread waits for the lock that this one holds. */
static inline int lock_is_wanted(void)
{
#ifdef MPICH_IS_THREADED
    return MPIR_IS_THREADED && MPL_atomic_relaxed_load_int(&MPIR_THREAD_GLOBAL_ALLFUNC_MUTEX.waiting);
#else
    return 0;
#endif
}

/* So often a receive asks for a message that comes soon: for as long as an answer of another host takes. One that may be
 * longer than a frame, or asks first, is better posted by then. */
#define QUICK_LOOKS 16
#define QUICK_ROOM 16384

/* The next frame, if it is there or comes soon. Only a frame can end such a receive, so it need not leave its turns to
 * the progress engine, which costs more than most messages. */
static inline int next_frame_soon(ulfm_nm_frame * frame, intptr_t room)
{
    int got, looks = room <= QUICK_ROOM ? QUICK_LOOKS : 1;

    do
        got = ulfm->next_soon(nm, frame);
    while (got == 0 && --looks > 0 && !icalls && !lock_is_wanted());
    return got > 0;
}

/* An eager message. */
typedef struct eager_message {
    MPIDI_Message_match_parts_t match;
    const void *data;
    intptr_t size;
    int is_whole;               /* it lies in one frame */
} eager_message_t;

/* What the frame's message is when it is an eager one; all else is for CH3's handlers. */
static inline int eager_message(const ulfm_nm_frame * frame, eager_message_t * message)
{
    const MPIDI_CH3_Pkt_t *pkt = frame->header;

    message->data = frame->data;
    message->size = frame->length;
    message->is_whole = 1;
    if (is_compact(frame)) {
        compact_match(frame, &message->match);
    } else if (pkt->type == MPIDI_CH3_PKT_EAGERSHORT_SEND && frame->header_length == sizeof pkt->eagershort_send) {
        message->match = pkt->eagershort_send.match.parts;
        message->data = pkt->eagershort_send.data;
        message->size = pkt->eagershort_send.data_sz;
    } else if (pkt->type == MPIDI_CH3_PKT_EAGER_SEND && frame->header_length == sizeof pkt->eager_send) {
        message->match = pkt->eager_send.match.parts;
        message->size = pkt->eager_send.data_sz;
        message->is_whole = (size_t) message->size == frame->length;
    } else {
        return 0;
    }
    return 1;
}

/* It begins a message of a connection that is known and open. */
static inline int begins_message(const ulfm_nm_frame * frame)
{
    const MPIDI_VC_t *vc = frame->cookie;

    return frame->kind == ULFM_NM_FIRST && !frame->fresh && vc && vc->state == MPIDI_VC_STATE_ACTIVE;
}

/* It is one for such a receive. */
static inline int wanted_message(const ulfm_nm_frame * frame, int rank, int tag, int context_id, intptr_t room,
                                 eager_message_t * message)
{
    const MPIDI_Message_match_parts_t *match = &message->match;

    if (!begins_message(frame) || !eager_message(frame, message))
        return 0;
    if (match->context_id != (MPIR_Context_id_t) context_id || message->size > room ||
        (rank != MPI_ANY_SOURCE && match->rank != rank))
        return 0;
    return match->tag == tag || (tag == MPI_ANY_TAG && match->tag == MPIR_TAG_MASK_ERROR_BITS(match->tag));
}

/* 1: received, or failed with *mpi_errno. 0: to be posted, as ever. */
int MPIDI_nem_ulfm_recv_now(void *buf, MPI_Aint count, MPI_Datatype datatype, int rank, int tag, int context_id,
                            MPI_Status * status, int *mpi_errno)
{
    static unsigned in_a_row = 0;
    int contig, received;
    intptr_t room;
    MPI_Aint true_lb;
    MPIR_Datatype *type;
    eager_message_t message;
    ulfm_nm_frame frame;

    *mpi_errno = MPI_SUCCESS;
    if (!nm || lock_is_wanted() || !nothing_pending(rank, tag, context_id) || ++in_a_row % QUICK_IN_A_ROW == 0)
        return 0;
    MPIDI_Datatype_get_info(count, datatype, contig, room, type, true_lb);
    if (!contig || !next_frame_soon(&frame, room))
        return 0;
    received = wanted_message(&frame, rank, tag, context_id, room, &message);
    if (received && !message.is_whole) {
        hold(&frame);
        return 0;
    }
    if (received) {
        if (message.size != 0)
            memcpy(MPIR_get_contig_ptr(buf, true_lb), message.data, message.size);
        if (status != MPI_STATUS_IGNORE) {
            status->MPI_SOURCE = message.match.rank;
            status->MPI_TAG = message.match.tag;
            status->MPI_ERROR = MPI_SUCCESS;
            MPIR_STATUS_SET_COUNT(*status, message.size);
            MPIR_STATUS_SET_CANCEL_BIT(*status, FALSE);
        }
    } else {
        *mpi_errno = handle_frame(&frame);
    }
    ulfm->release(nm, &frame);
    return received || *mpi_errno != MPI_SUCCESS;
}

/* To copy so much twice takes longer than another turn of progress; a shorter message is as quick either way. */
#define EARLY_SIZE 8192

/* A long message that no receive is posted for. */
static inline int is_early(const ulfm_nm_frame * frame)
{
    eager_message_t message;

    return begins_message(frame) && eager_message(frame, &message) && message.size >= EARLY_SIZE &&
        none_of(*MPID_Recvq_posted_head_ptr, message.match.rank, MPIR_TAG_MASK_ERROR_BITS(message.match.tag),
                message.match.context_id);
}

/* 1: a message for the first of the receives that are posted, from its frame into the program's buffer. 0: for CH3's
 * handlers, with nothing done. Most programs post receives in the order in which their messages come. */
static inline int into_first_posted(const ulfm_nm_frame * frame)
{
    MPIDI_Message_match match;
    MPIR_Request *rreq;

    if (!*MPID_Recvq_posted_head_ptr || !begins_message(frame) || !is_compact(frame))
        return 0;
    compact_match(frame, &match.parts);
    if (MPIR_TAG_CHECK_ERROR_BIT(match.parts.tag))
        return 0;
    rreq = MPIDI_CH3U_Recvq_DP_first(&match, (intptr_t) frame->length);
    if (!rreq)
        return 0;
    mid_message = 0;
    if (frame->length != 0)
        memcpy(rreq->dev.user_buf, frame->data, frame->length);
    rreq->status.MPI_SOURCE = match.parts.rank;
    rreq->status.MPI_TAG = match.parts.tag;
    MPIR_STATUS_SET_COUNT(rreq->status, frame->length);
    in_frame = 1;
    (void) MPID_Request_complete(rreq); /* cannot fail: it has no error of its own */
    in_frame = 0;
    return 1;
}

/* A message of that size may go at once: no earlier one waits, and nobody has asked for another limit of eager ones. */
static inline int may_send_now(const MPIDI_VC_t * vc, intptr_t size, const MPIR_Comm * comm)
{
    return vc->ch.iSendContig == ulfm_iSendContig && size <= AREA(vc)->quick && AREA(vc)->out && !AREA(vc)->queue.head &&
        vc->state == MPIDI_VC_STATE_ACTIVE && (size <= QUICK_SEND || comm->hints[MPIR_COMM_HINT_EAGER_THRESH] == -1);
}

static inline int send_compact(MPIDI_VC_t * vc, const void *data, intptr_t size, int tag, const MPIR_Comm * comm,
                               int context_id, MPI_Request request)
{
    compact_pkt_t pkt;

    compact_fill(&pkt, comm->rank, tag, context_id, request);
    return ulfm->send_whole(AREA(vc)->out, &pkt, sizeof pkt, data, (size_t) size);
}

static inline int send_packet(MPIDI_VC_t * vc, const void *data, intptr_t size, int tag, const MPIR_Comm * comm,
                              int context_id, MPI_Request request)
{
    MPIDI_CH3_Pkt_eager_send_t pkt;

    MPIDI_Pkt_init(&pkt, MPIDI_CH3_PKT_EAGER_SEND);
    pkt.match.parts.rank = comm->rank;
    pkt.match.parts.tag = tag;
    pkt.match.parts.context_id = context_id;
    pkt.sender_req_id = request;
    pkt.data_sz = size;
    return ulfm->send_whole(AREA(vc)->out, &pkt, sizeof pkt, data, (size_t) size);
}

/* A blocking send. 1: sent. 0: as ever, which is also the way of networks that charge for the bytes of headers. */
int MPIDI_nem_ulfm_send_now(MPIDI_VC_t * vc, const void *data, intptr_t size, int tag, MPIR_Comm * comm, int context_id)
{
    return may_send_now(vc, size, comm) && AREA(vc)->compact &&
        send_compact(vc, data, size, tag, comm, context_id, MPI_REQUEST_NULL);
}

/* 1: sent, and *request is complete; it can be cancelled as ever. 0: as ever. */
int MPIDI_nem_ulfm_isend_now(MPIDI_VC_t * vc, const void *data, intptr_t size, int rank, int tag, MPIR_Comm * comm,
                             int context_id, MPIR_Request ** request)
{
    MPIR_Request *sreq;

    if (!may_send_now(vc, size, comm))
        return 0;
    sreq = MPIR_Request_create(MPIR_REQUEST_KIND__SEND);
    if (!sreq)
        return 0;
    if (!(AREA(vc)->compact ? send_compact : send_packet) (vc, data, size, tag, comm, context_id, sreq->handle)) {
        MPIR_Request_free(sreq);
        return 0;
    }
    MPIR_cc_set(&sreq->cc, 0);
    MPIDI_Request_set_type(sreq, MPIDI_REQUEST_TYPE_SEND);
    sreq->comm = comm;
    MPIR_Comm_add_ref(comm);
    sreq->dev.partner_request = NULL;
    sreq->dev.match.parts.rank = rank;
    sreq->dev.match.parts.tag = tag;
    sreq->dev.match.parts.context_id = context_id;
    *request = sreq;
    return 1;
}
