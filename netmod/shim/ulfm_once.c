/* Long messages that are copied once (decision 0025). A message longer than the eager limit asks first; the answer then
 * says where the receiver's buffer is, and the sender writes into it, by the kernel, from process to process. When the
 * receiver waits, without a message of its own to copy, and each of the two has a core, the sender offers the front half,
 * which the receiver reads.
 *
 *   sender                                     receiver
 *   request to send           ------------>
 *                             <------------    clear to send, with the buffer's address
 *   OWN_HALF: read the front  ------------>
 *   writes the back                            reads the front
 *   OWN_WRITTEN               ------------>
 *                             <------------    OWN_READ
 *
 * Where that cannot be done (another layout than contiguous bytes, a kernel that forbids it) the message goes as
 * CH3's rendezvous does. With fault tolerance all go that way: a receive that is revoked gives its buffer back to the
 * program while the sender may still write.
 *
 * Copies go on piece by piece from poll. Included by ulfm_netmod.c. */

/* What is copied at a time, some 20 us, and how many such pieces before frames are looked at again. */
#define ONCE_PIECE ((size_t) 256 * 1024)
#define ONCE_PIECES 4
/* A half ends on a page, so that the two processes do not write to the same one. */
#define ONCE_PAGE ((size_t) 4096)

/* The answer, longer than CH3's. */
typedef struct cts_pkt {
    MPIDI_CH3_Pkt_rndv_clr_to_send_t cts;
    int32_t waits;              /* the receiver is in a call that waits, and has nothing else to do */
    uint64_t address;           /* of its buffer; 0: none that could be written to */
} cts_pkt_t;

/* The packets of this file: these are own packets too. */
typedef struct once_pkt {
    MPIDI_CH3_Pkt_type_t type;  /* OWN_TYPE */
    int32_t what;
    MPI_Request yours, mine;
    uint64_t address;           /* HALF: where the front is */
    uint64_t length;            /* HALF: of it; READ: 0 when it could not be read */
} once_pkt_t;

enum { OWN_PART = 1, THEIR_PART = 2 };

int MPIDI_nem_ulfm_will_wait;   /* MPID_Recv and MPID_Mrecv answer a message that asked before them (patch 99zzm) */

static MPIR_Request *copying_head, *copying_tail;       /* requests with something to copy, in their order */

#define COPYING(req) (&REQ_AREA(req)->copying)

static int send_once(MPIDI_VC_t * vc, int what, MPI_Request yours, MPI_Request mine, const void *address,
                     size_t length)
{
    once_pkt_t pkt = { OWN_TYPE, what, yours, mine, (uint64_t) (uintptr_t) address, length };
    MPIR_Request *sreq = NULL;
    int mpi_errno = ulfm_iStartContigMsg(vc, &pkt, sizeof pkt, NULL, 0, &sreq);

    if (sreq)
        MPIR_Request_free(sreq);
    return mpi_errno;
}

/* Where the bytes of a request are, or are to come; NULL when they are not in one row. */
static char *row_of(const MPIR_Request * req, intptr_t * bytes)
{
    int contiguous;
    MPI_Aint first;
    MPIR_Datatype *type;

    MPIDI_Datatype_get_info(req->dev.user_count, req->dev.datatype, contiguous, *bytes, type, first);
    (void) type;
    return contiguous ? (char *) req->dev.user_buf + first : NULL;
}

/* CH3's answer, with the receiver's buffer in it where the message fits it and may be copied once. */
static void offer_buffer(MPIDI_VC_t * vc, const void *cts, cts_pkt_t * pkt)
{
    MPIR_Request *rreq;
    intptr_t room = 0;
    char *row;

    memset(pkt, 0, sizeof *pkt);
    MPIR_Memcpy(&pkt->cts, cts, sizeof pkt->cts);
    MPIR_Request_get_ptr(pkt->cts.receiver_req_id, rreq);
    row = row_of(rreq, &room);
    if (!row || rreq->dev.recv_data_sz > room || MPIR_CVAR_ENABLE_FT)
        return;
    COPYING(rreq)->measured = 1;
    if (!ulfm->long_begins(AREA(vc)->out, (size_t) rreq->dev.recv_data_sz))
        return;
    pkt->address = (uint64_t) (uintptr_t) row;
    /* Else it has its own copies to make. */
    pkt->waits = ((in_frame && blocking) || MPIDI_nem_ulfm_will_wait) && !sends_asking;
    COPYING(rreq)->here = row;
    COPYING(rreq)->parts = THEIR_PART;
}

static void append_copying(MPIDI_VC_t * vc, MPIR_Request * req)
{
    COPYING(req)->vc = vc;
    COPYING(req)->active = 1;
    COPYING(req)->next = NULL;
    if (copying_head)
        COPYING(copying_tail)->next = req;
    else
        copying_head = req;
    copying_tail = req;
}

static void stop_copying(MPIR_Request * req)
{
    MPIR_Request *before = NULL, *one;

    if (!COPYING(req)->active)
        return;
    for (one = copying_head; one != req; one = COPYING(one)->next)
        before = one;
    if (before)
        COPYING(before)->next = COPYING(req)->next;
    else
        copying_head = COPYING(req)->next;
    if (copying_tail == req)
        copying_tail = before;
    COPYING(req)->active = 0;
}

static int is_receive(const MPIR_Request * req)
{
    return req->kind == MPIR_REQUEST_KIND__RECV;
}

/* As if the answer had had no buffer in it. */
static int send_as_ever(MPIDI_VC_t * vc, MPIR_Request * sreq)
{
    MPIDI_CH3_Pkt_t pkt;
    MPIR_Request *none = NULL;
    intptr_t length = 0;

    unlink_asking(vc, sreq);
    MPIDI_Pkt_init(&pkt.rndv_clr_to_send, MPIDI_CH3_PKT_RNDV_CLR_TO_SEND);
    pkt.rndv_clr_to_send.sender_req_id = sreq->handle;
    pkt.rndv_clr_to_send.receiver_req_id = COPYING(sreq)->theirs;
    return MPIDI_CH3_PktHandler_RndvClrToSend(vc, &pkt, NULL, &length, &none);
}

/* One of the two parts is done. */
static int part_done(MPIDI_VC_t * vc, MPIR_Request * req, int part)
{
    COPYING(req)->parts &= ~part;
    if (COPYING(req)->parts)
        return MPI_SUCCESS;
    unlink_asking(vc, req);
    if (is_receive(req))
        ulfm->long_ends(AREA(vc)->out, (size_t) req->dev.recv_data_sz, 1);
    else
        ulfm->count_copy(AREA(vc)->out, COPYING(req)->bytes);
    return MPID_Request_complete(req);
}

/* The kernel does not copy. A sender that has offered a half waits for what becomes of it: until then the receiver may
 * read; a receiver gets the whole message by the connection, and its own part is never done. */
static int cannot_copy(MPIDI_VC_t * vc, MPIR_Request * req)
{
    COPYING(req)->failed = 1;
    if (is_receive(req))
        return send_once(vc, OWN_READ, COPYING(req)->theirs, req->handle, NULL, 0);
    return COPYING(req)->parts & THEIR_PART ? MPI_SUCCESS : send_as_ever(vc, req);
}

static int copy_piece(MPIR_Request * req)
{
    copying_t *c = COPYING(req);
    MPIDI_VC_t *vc = c->vc;
    const size_t n = c->left < ONCE_PIECE ? c->left : ONCE_PIECE;
    const int reads = is_receive(req);
    int mpi_errno;

    if (!ulfm->copy(AREA(vc)->out, !reads, c->here, c->there, n)) {
        stop_copying(req);
        return cannot_copy(vc, req);
    }
    c->here += n;
    c->there += n;
    c->left -= n;
    if (c->left)
        return MPI_SUCCESS;
    stop_copying(req);
    mpi_errno = send_once(vc, reads ? OWN_READ : OWN_WRITTEN, c->theirs, req->handle, NULL, 1);
    return mpi_errno ? mpi_errno : part_done(vc, req, OWN_PART);
}

/* A turn of the copies, the oldest first: they end one after the other. */
static int copy_pieces(void)
{
    int mpi_errno = MPI_SUCCESS;
    int pieces;

    for (pieces = 0; copying_head && pieces < ONCE_PIECES && !mpi_errno; pieces++)
        mpi_errno = copy_piece(copying_head);
    return mpi_errno;
}

/* The first piece at once, unless others come before it. */
static int start_copying(MPIDI_VC_t * vc, MPIR_Request * req)
{
    append_copying(vc, req);
    return copying_head == req ? copy_piece(req) : MPI_SUCCESS;
}

/* The answer has a buffer in it. 0: the message goes as ever. */
static int begin_copying(MPIDI_VC_t * vc, MPIR_Request * sreq, const cts_pkt_t * pkt, int *mpi_errno)
{
    MPIR_Request *rts_sreq;
    copying_t *c = COPYING(sreq);
    intptr_t bytes = 0;
    char *row = row_of(sreq, &bytes);
    size_t half = 0;
    const int how = row && bytes && !MPIR_CVAR_ENABLE_FT ? ulfm->copies_once(AREA(vc)->out) : 0;

    if (!how)
        return 0;
    MPIDI_Request_fetch_and_clear_rts_sreq(sreq, &rts_sreq);
    if (rts_sreq)
        MPIR_Request_free(rts_sreq);
    link_asking(vc, sreq);
    c->theirs = pkt->cts.receiver_req_id;
    c->bytes = (size_t) bytes;
    c->parts = OWN_PART;
    if (how == ULFM_NM_COPY_TOGETHER && pkt->waits)
        half = (c->bytes / 2) & ~(ONCE_PAGE - 1);
    if (half) {
        c->parts |= THEIR_PART;
        *mpi_errno = send_once(vc, OWN_HALF, c->theirs, sreq->handle, row, half);
    }
    c->here = row + half;
    c->there = pkt->address + half;
    c->left = c->bytes - half;
    if (!*mpi_errno)
        *mpi_errno = start_copying(vc, sreq);
    return 1;
}

static int on_clear_to_send(MPIDI_VC_t * vc, MPIDI_CH3_Pkt_t * pkt, void *data, intptr_t * length,
                            MPIR_Request ** req_p)
{
    MPIR_Request *sreq;
    const cts_pkt_t *answer = (const cts_pkt_t *) pkt;
    int mpi_errno = MPI_SUCCESS;
    MPIR_Request_get_ptr(pkt->rndv_clr_to_send.sender_req_id, sreq);
    *req_p = NULL;
    *length = 0;
    if (!take_answer(vc, sreq))
        return answer->address ? send_once(vc, OWN_WITHDRAWN, answer->cts.receiver_req_id, MPI_REQUEST_NULL, NULL, 0) :
            MPI_SUCCESS;
    if (answer->address && begin_copying(vc, sreq, answer, &mpi_errno))
        return mpi_errno;
    return MPIDI_CH3_PktHandler_RndvClrToSend(vc, pkt, data, length, req_p);
}

/* The sender's communicator was revoked before our answer came to it. */
static int on_withdrawn(MPIDI_VC_t * vc, MPIR_Request * rreq)
{
    int error = MPI_SUCCESS;

    MPIR_ERR_SET(error, MPIX_ERR_REVOKED, "**revoked");
    return take_answer(vc, rreq) ? fail_request(rreq, error) : MPI_SUCCESS;
}

static int on_once(MPIDI_VC_t * vc, const once_pkt_t * pkt)
{
    MPIR_Request *req;

    MPIR_Request_get_ptr(pkt->yours, req);
    switch (pkt->what) {
        case OWN_HALF:
            COPYING(req)->theirs = pkt->mine;
            COPYING(req)->there = pkt->address;
            COPYING(req)->left = pkt->length;
            COPYING(req)->parts |= OWN_PART;
            return start_copying(vc, req);
        case OWN_WRITTEN:
            return part_done(vc, req, THEIR_PART);
        case OWN_WITHDRAWN:
            return on_withdrawn(vc, req);
        default:               /* OWN_READ */
            if (pkt->length && !COPYING(req)->failed)
                return part_done(vc, req, THEIR_PART);
            stop_copying(req);
            return send_as_ever(vc, req);
    }
}
