/* Messages that are done with at once. Part of ulfm_netmod.c.
 *
 * A blocking receive whose message is there when it is called, or comes soon: from its frame into the program's buffer,
 * without a request and without CH3's queues; MPID_Recv asks first (patch 78). And a nonblocking send of a few bytes for
 * which there is room; MPID_Isend asks first (patch 79). */

/* After so many in a row one goes the usual way, by which everything else makes progress. */
#define QUICK_IN_A_ROW 64

/* Nothing that was called or came before this receive can be meant: then the next message may be taken out of turn with
 * the queues. What waits to be sent is sent by the usual way. */
static inline int nothing_pending(void)
{
    return !*MPID_Recvq_posted_head_ptr && !*MPID_Recvq_unexpected_head_ptr && !waiting_head && !copying_head &&
        !multicast_waiting && !n_leaving;
}

/* What the frame's message says of itself when it is the whole of a short one for such a receive, and its data; NULL for
 * all else, which is for CH3's handlers. */
static inline const MPIDI_Message_match_parts_t *wanted_message(const ulfm_nm_frame * frame, int rank, int tag, int context_id,
                                                                intptr_t room, const void **data, intptr_t * size)
{
    const MPIDI_CH3_Pkt_t *pkt = frame->header;
    const MPIDI_VC_t *vc = frame->cookie;
    const MPIDI_Message_match_parts_t *match;

    if (frame->kind != ULFM_NM_FIRST || frame->fresh || !vc || vc->state != MPIDI_VC_STATE_ACTIVE)
        return NULL;
    if (pkt->type == MPIDI_CH3_PKT_EAGERSHORT_SEND && frame->header_length == sizeof pkt->eagershort_send) {
        match = &pkt->eagershort_send.match.parts;
        *data = pkt->eagershort_send.data;
        *size = pkt->eagershort_send.data_sz;
    } else if (pkt->type == MPIDI_CH3_PKT_EAGER_SEND && frame->header_length == sizeof pkt->eager_send &&
               (size_t) pkt->eager_send.data_sz == frame->length) {
        match = &pkt->eager_send.match.parts;
        *data = frame->data;
        *size = pkt->eager_send.data_sz;
    } else {
        return NULL;
    }
    if (match->context_id != (MPIR_Context_id_t) context_id || *size > room ||
        (rank != MPI_ANY_SOURCE && match->rank != rank))
        return NULL;
    return match->tag == tag || (tag == MPI_ANY_TAG && match->tag == MPIR_TAG_MASK_ERROR_BITS(match->tag)) ? match : NULL;
}

/* 1: received, or failed with *mpi_errno. 0: to be posted, as ever. */
int MPIDI_nem_ulfm_recv_now(void *buf, MPI_Aint count, MPI_Datatype datatype, int rank, int tag, int context_id,
                            MPI_Status * status, int *mpi_errno)
{
    static unsigned in_a_row = 0;
    int contig, received;
    intptr_t room, size = 0;
    MPI_Aint true_lb;
    MPIR_Datatype *type;
    const void *data = NULL;
    const MPIDI_Message_match_parts_t *match;
    ulfm_nm_frame frame;

    *mpi_errno = MPI_SUCCESS;
    if (!nm || MPIR_IS_THREADED || !nothing_pending() || ++in_a_row % QUICK_IN_A_ROW == 0)
        return 0;
    MPIDI_Datatype_get_info(count, datatype, contig, room, type, true_lb);
    if (!contig || !ulfm->next_soon(nm, &frame))
        return 0;
    match = wanted_message(&frame, rank, tag, context_id, room, &data, &size);
    received = match != NULL;
    if (received) {
        if (size != 0)
            memcpy(MPIR_get_contig_ptr(buf, true_lb), data, size);
        if (status != MPI_STATUS_IGNORE) {
            status->MPI_SOURCE = match->rank;
            status->MPI_TAG = match->tag;
            status->MPI_ERROR = MPI_SUCCESS;
            MPIR_STATUS_SET_COUNT(*status, size);
            MPIR_STATUS_SET_CANCEL_BIT(*status, FALSE);
        }
    } else {
        *mpi_errno = handle_frame(&frame);
    }
    ulfm->release(nm, &frame);
    return received || *mpi_errno != MPI_SUCCESS;
}

/* Every frame has room for as much (kLeastFrame), so such a message goes whole or not at all. */
#define QUICK_SEND 64

/* 1: sent, and *request is complete; it can be cancelled as ever. 0: as ever. */
int MPIDI_nem_ulfm_isend_now(MPIDI_VC_t * vc, const void *data, intptr_t size, int rank, int tag, MPIR_Comm * comm,
                             int context_id, MPIR_Request ** request)
{
    vc_area_t *area = AREA(vc);
    struct iovec piece = { (void *) data, (size_t) size };
    MPIDI_CH3_Pkt_eager_send_t pkt;
    MPIR_Request *sreq;

    if (size > QUICK_SEND || vc->ch.iSendContig != ulfm_iSendContig || vc->state != MPIDI_VC_STATE_ACTIVE ||
        !area->out || area->queue.head)
        return 0;
    sreq = MPIR_Request_create(MPIR_REQUEST_KIND__SEND);
    if (!sreq)
        return 0;
    MPIDI_Pkt_init(&pkt, MPIDI_CH3_PKT_EAGER_SEND);
    pkt.match.parts.rank = comm->rank;
    pkt.match.parts.tag = tag;
    pkt.match.parts.context_id = context_id;
    pkt.sender_req_id = sreq->handle;
    pkt.data_sz = size;
    if (ulfm->begin(area->out, &pkt, sizeof pkt, &piece, size != 0) != size) {
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
