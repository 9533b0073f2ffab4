/* Requests that an answer of the other side completes, kept on a list of their connection: a rendezvous that waits for
 * clear-to-send, a receive that has sent clear-to-send and whose data have not begun, a synchronous send. CH3 finds
 * them only by the handle that the answer names. When no answer can come, because the process has died or the
 * communicator was revoked, CH3 alone would never complete them.
 *
 * Included by ulfm_netmod.c. */

static void stop_copying(MPIR_Request * req);
static MPIDI_CH3_PktHandler_Fcn on_clear_to_send;

/* Which packets ask for an answer. */
static unsigned char asks[MPIDI_CH3_PKT_END_ALL + 1];

/* The request that the answer to this packet will name. */
static MPIR_Request *asking_request(const MPIDI_CH3_Pkt_t * pkt)
{
    MPIR_Request *req = NULL;
    switch (pkt->type) {
        case MPIDI_CH3_PKT_RNDV_REQ_TO_SEND:
            MPIR_Request_get_ptr(pkt->rndv_req_to_send.sender_req_id, req);
            break;
        case MPIDI_CH3_PKT_RNDV_CLR_TO_SEND:
            MPIR_Request_get_ptr(pkt->rndv_clr_to_send.receiver_req_id, req);
            break;
        case MPIDI_CH3_PKT_EAGER_SYNC_SEND:
            MPIR_Request_get_ptr(pkt->eager_sync_send.sender_req_id, req);
            break;
        case MPIDI_CH3_PKT_CANCEL_SEND_REQ:
            MPIR_Request_get_ptr(pkt->cancel_send_req.sender_req_id, req);
            break;
        default:
            break;
    }
    return req;
}

static int sends_asking;        /* of the requests on such lists */

/* Sends that another process was asked to cancel: each waits for its answer, also a send that is complete. */
typedef struct cancel {
    const MPIDI_VC_t *vc;
    MPIR_Request *req;
    struct cancel *next;
} cancel_t;

static cancel_t *cancels;

/* Without memory its end is not seen when the process dies. */
static void note_cancel(const MPIDI_VC_t * vc, MPIR_Request * req)
{
    cancel_t *one = MPL_malloc(sizeof *one, MPL_MEM_OTHER);

    if (!one)
        return;
    one->vc = vc;
    one->req = req;
    one->next = cancels;
    cancels = one;
}

/* The next one of that connection, or of that request of it; NULL: none. It is forgotten. */
static MPIR_Request *take_cancel(const MPIDI_VC_t * vc, const MPIR_Request * req)
{
    cancel_t **at = &cancels;
    cancel_t *one;
    MPIR_Request *found;

    while (*at && !((*at)->vc == vc && (!req || (*at)->req == req)))
        at = &(*at)->next;
    one = *at;
    if (!one)
        return NULL;
    *at = one->next;
    found = one->req;
    MPL_free(one);
    return found;
}

static void link_asking(MPIDI_VC_t * vc, MPIR_Request * req)
{
    req_area_t *area = REQ_AREA(req);
    sends_asking += req->kind == MPIR_REQUEST_KIND__SEND;
    area->abandoned = 0;
    memset(&area->copying, 0, sizeof area->copying);
    area->previous_asking = NULL;
    area->next_asking = AREA(vc)->asking;
    if (area->next_asking)
        REQ_AREA(area->next_asking)->previous_asking = req;
    AREA(vc)->asking = req;
}

static void unlink_asking(MPIDI_VC_t * vc, MPIR_Request * req)
{
    req_area_t *area = REQ_AREA(req);
    sends_asking -= req->kind == MPIR_REQUEST_KIND__SEND;
    stop_copying(req);
    if (area->previous_asking)
        REQ_AREA(area->previous_asking)->next_asking = area->next_asking;
    else
        AREA(vc)->asking = area->next_asking;
    if (area->next_asking)
        REQ_AREA(area->next_asking)->previous_asking = area->previous_asking;
}

/* A packet has gone, or waits to go. */
static void note_question(MPIDI_VC_t * vc, const void *pkt)
{
    const MPIDI_CH3_Pkt_type_t type = ((const MPIDI_CH3_Pkt_t *) pkt)->type;
    if (likely(type >= MPIDI_CH3_PKT_END_ALL || !asks[type]))
        return;
    if (type == MPIDI_CH3_PKT_CANCEL_SEND_REQ)
        note_cancel(vc, asking_request(pkt));
    else
        link_asking(vc, asking_request(pkt));
}

/* It does not go after all. A send that was to be cancelled is completed by the call. */
static void forget_question(MPIDI_VC_t * vc, const void *pkt)
{
    const MPIDI_CH3_Pkt_type_t type = ((const MPIDI_CH3_Pkt_t *) pkt)->type;
    if (type >= MPIDI_CH3_PKT_END_ALL || !asks[type])
        return;
    if (type == MPIDI_CH3_PKT_CANCEL_SEND_REQ)
        (void) take_cancel(vc, asking_request(pkt));
    else
        unlink_asking(vc, asking_request(pkt));
}

/* The answer is there. False when nobody waits for it any more, and it is to be dropped. */
static int take_answer(MPIDI_VC_t * vc, MPIR_Request * req)
{
    const int wanted = !REQ_AREA(req)->abandoned;
    unlink_asking(vc, req);
    if (!wanted)
        MPIR_Request_free(req); /* the list's own reference */
    return wanted;
}

/* The last byte of a long message that is measured has come. */
static void arrived(MPIDI_VC_t * vc)
{
    ulfm->long_ends(AREA(vc)->out, AREA(vc)->arriving, 0);
    AREA(vc)->arriving = 0;
}

/* Data that nobody wants are dropped: without a request, so are the frames that continue them. */
static int on_rndv_data(MPIDI_VC_t * vc, MPIDI_CH3_Pkt_t * pkt, void *data, intptr_t * length, MPIR_Request ** req_p)
{
    MPIR_Request *rreq;
    int mpi_errno;
    MPIR_Request_get_ptr(pkt->rndv_send.receiver_req_id, rreq);
    *req_p = NULL;
    if (REQ_AREA(rreq)->copying.measured)
        AREA(vc)->arriving = (size_t) rreq->dev.recv_data_sz;
    if (!take_answer(vc, rreq))
        return MPI_SUCCESS;
    mpi_errno = MPIDI_CH3_PktHandler_RndvSend(vc, pkt, data, length, req_p);
    if (AREA(vc)->arriving && !*req_p)
        arrived(vc);
    return mpi_errno;
}

static int on_sync_ack(MPIDI_VC_t * vc, MPIDI_CH3_Pkt_t * pkt, void *data, intptr_t * length, MPIR_Request ** req_p)
{
    MPIR_Request *sreq;
    MPIR_Request_get_ptr(pkt->eager_sync_ack.sender_req_id, sreq);
    *req_p = NULL;
    if (!take_answer(vc, sreq))
        return MPI_SUCCESS;
    return MPIDI_CH3_PktHandler_EagerSyncAck(vc, pkt, data, length, req_p);
}

/* A send that was cancelled in time gets no other answer. */
static int on_cancel_answer(MPIDI_VC_t * vc, MPIDI_CH3_Pkt_t * pkt, void *data, intptr_t * length,
                            MPIR_Request ** req_p)
{
    MPIR_Request *sreq;
    MPIR_Request_get_ptr(pkt->cancel_send_resp.sender_req_id, sreq);
    (void) take_cancel(vc, sreq);
    if (pkt->cancel_send_resp.ack && (MPIDI_Request_get_msg_type(sreq) == MPIDI_REQUEST_RNDV_MSG ||
                                      MPIDI_Request_get_type(sreq) == MPIDI_REQUEST_TYPE_SSEND) &&
        !take_answer(vc, sreq)) {
        /* A revocation has completed what waited for that answer */
        *length = 0;
        *req_p = NULL;
        return MPID_Request_complete(sreq);
    }
    return MPIDI_CH3_PktHandler_CancelSendResp(vc, pkt, data, length, req_p);
}

static void watch_answers(void)
{
    asks[MPIDI_CH3_PKT_RNDV_REQ_TO_SEND] = 1;
    asks[MPIDI_CH3_PKT_RNDV_CLR_TO_SEND] = 1;
    asks[MPIDI_CH3_PKT_EAGER_SYNC_SEND] = 1;
    asks[MPIDI_CH3_PKT_CANCEL_SEND_REQ] = 1;
    handlers[MPIDI_CH3_PKT_RNDV_CLR_TO_SEND] = on_clear_to_send;
    handlers[MPIDI_CH3_PKT_RNDV_SEND] = on_rndv_data;
    handlers[MPIDI_CH3_PKT_EAGER_SYNC_ACK] = on_sync_ack;
    handlers[MPIDI_CH3_PKT_CANCEL_SEND_RESP] = on_cancel_answer;
}

/* A death has ended this request: so has it the collectives of its communicator, when it belongs to one. */
static void note_failure(const MPIR_Request * req)
{
    MPIDI_CH3I_Comm_note_failure(req->comm, req->dev.match.parts.tag, req->dev.match.parts.context_id);
}

/* Completes a request for all that it waits for: a synchronous send for its data and the answer. */
static int fail_request(MPIR_Request * req, int error)
{
    int mpi_errno = MPI_SUCCESS;
    int last = MPIR_Request_is_complete(req);

    if (MPIR_ERR_GET_CLASS(error) == MPIX_ERR_PROC_FAILED)
        note_failure(req);
    req->status.MPI_ERROR = error;
    while (!last) {
        last = MPIR_cc_get(req->cc) == 1;       /* the request may be gone after that */
        mpi_errno = MPID_Request_complete(req);
        MPIR_ERR_CHECK(mpi_errno);
    }
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* The other side is gone. */
static int fail_questions(MPIDI_VC_t * vc, int error)
{
    int mpi_errno = MPI_SUCCESS;
    MPIR_Request *cancelled;

    while ((cancelled = take_cancel(vc, NULL))) {       /* it was not */
        mpi_errno = MPID_Request_complete(cancelled);
        MPIR_ERR_CHECK(mpi_errno);
    }
    while (AREA(vc)->asking) {
        MPIR_Request *req = AREA(vc)->asking;
        if (!take_answer(vc, req))
            continue;
        mpi_errno = fail_request(req, error);
        MPIR_ERR_CHECK(mpi_errno);
    }
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static int belongs_to(const MPIR_Request * req, const MPIR_Comm * comm)
{
    return req->comm && (req->comm == comm || req->comm == comm->node_comm || req->comm == comm->node_roots_comm ||
                         req->comm == comm->local_comm);
}

/* The request fails; the answer to it, which names it by handle, may come nevertheless. */
static void abandon(MPIR_Request * req, int error)
{
    REQ_AREA(req)->abandoned = 1;
    MPIR_Request_add_ref(req);
    req->status.MPI_ERROR = error;
    (void) MPID_Request_complete(req);
}

/* A communicator was revoked (see the patch to mpid_comm_revoke.c). What its requests wait for may come nevertheless,
 * and names them by handle, so the list keeps them until then or until the connection ends. */
void MPIDI_nem_ulfm_revoked(MPIR_Comm * comm)
{
    int i, error = MPI_SUCCESS;

    if (!nm)
        return;
    if (comm->dev.ends_with_members)    /* a file's or a window's */
        MPIR_ERR_SET(error, MPIX_ERR_PROC_FAILED, "**proc_failed");
    else
        MPIR_ERR_SET(error, MPIX_ERR_REVOKED, "**revoked");
    for (i = 0; i < comm->remote_size; i++) {
        MPIDI_VC_t *vc;
        MPIR_Request *req, *next;
        MPIDI_Comm_get_vc(comm, i, &vc);
        if (AREA(vc)->magic != VC_MAGIC)
            continue;           /* our own */
        for (req = AREA(vc)->asking; req; req = next) {
            next = REQ_AREA(req)->next_asking;
            /* What the other side may be copying has its end from there */
            if (REQ_AREA(req)->abandoned || REQ_AREA(req)->copying.parts || !belongs_to(req, comm))
                continue;
            abandon(req, error);
        }
    }
}

/* Messages of collectives that have failed, here or where they go to or come from. As above, the list keeps the
 * requests; answers that come are dropped. */
void MPIDI_nem_ulfm_end_collectives(int error)
{
    MPIDI_VC_t *vc;
    MPIR_Request *req, *next;

    for (vc = open_head; vc; vc = AREA(vc)->next_open)
        for (req = AREA(vc)->asking; req; req = next) {
            next = REQ_AREA(req)->next_asking;
            if (REQ_AREA(req)->abandoned || REQ_AREA(req)->copying.parts)
                continue;
            MPIDI_CH3I_Comm_ask(req->comm, req->dev.match.parts.rank, req->dev.match.parts.tag,
                                req->dev.match.parts.context_id);
            if (!MPIDI_CH3I_Comm_ends(req))
                continue;
            note_failure(req);
            abandon(req, error);
        }
}
