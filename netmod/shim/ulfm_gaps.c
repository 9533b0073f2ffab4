/* Data with gaps. Where memory is shared they are packed into the frames of their message, and unpacked from them: CH3
 * packs 32 KB at a time into memory of the request, from where they are copied to the frames, and the other way round.
 * Part of ulfm_netmod.c. */

#define ORIG_MSG_OFFSET_UNSET (-1)      /* as in ch3u_request.c */

static int ready_to_send(MPIDI_VC_t * vc);

static int packs_into_frames(MPIDI_VC_t * vc)
{
    return vc->state != MPIDI_VC_STATE_MORIBUND && ready_to_send(vc) == MPI_SUCCESS && ulfm->shares_memory(AREA(vc)->out);
}

/* What the library calls for the data of a frame. */
static void pack_next(void *message, void *to, size_t bytes)
{
    MPIR_Request *sreq = message;
    MPI_Aint packed = 0;

    (void) MPIR_Typerep_pack(sreq->dev.user_buf, sreq->dev.user_count, sreq->dev.datatype, sreq->dev.msg_offset, to,
                             (MPI_Aint) bytes, &packed);
    sreq->dev.msg_offset += packed;
}

/* Unpacks data of a frame; 0 when they are not whole elements. */
static int unpack_some(MPIR_Request * rreq, const char *data, size_t bytes)
{
    MPI_Aint unpacked = 0;

    if (MPIR_Typerep_unpack(data, (MPI_Aint) bytes, rreq->dev.user_buf, rreq->dev.user_count, rreq->dev.datatype,
                            rreq->dev.msg_offset, &unpacked) != MPI_SUCCESS || (size_t) unpacked != bytes)
        return 0;
    rreq->dev.msg_offset += unpacked;
    return 1;
}

/* A frame's lines are in the cache of the other process's core. Blocks that are shorter than a line are read so slowly that
 * too few lines would be on their way: those of a step are asked for while the one before it is unpacked. */
#define LINE 64
#define STEP 1024

static void ask_for_lines(const char *data, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += LINE)
        __builtin_prefetch(data + at);
}

static int unpack_in_steps(MPIR_Request * rreq, const char *data, size_t bytes)
{
    ask_for_lines(data, MPL_MIN(bytes, STEP));
    while (bytes > 0) {
        const size_t step = MPL_MIN(bytes, STEP);
        ask_for_lines(data + step, MPL_MIN(bytes - step, STEP));
        if (!unpack_some(rreq, data, step))
            return 0;
        data += step;
        bytes -= step;
    }
    return 1;
}

static int has_short_blocks(MPI_Datatype type)
{
    const MPIR_Datatype *dtp;

    MPIR_Datatype_get_ptr(type, dtp);
    return dtp->size < LINE * dtp->typerep.num_contig_blocks;
}

/* Data that CH3 would copy to the request's memory and unpack from there are unpacked where they are, all but the last few,
 * with which CH3 sees the message's end. How many these were; 0 when there is something in that memory already, when the
 * message is longer than its receive, or when its elements are others. */
static size_t unpack_from_frame(MPIR_Request * rreq, const char *data, size_t bytes)
{
    const int ends = rreq->dev.OnDataAvail == MPIDI_CH3_ReqHandler_UnpackSRBufComplete;
    struct iovec *rest = &rreq->dev.iov[rreq->dev.iov_offset];
    const intptr_t before = rreq->dev.msg_offset;
    size_t left;

    if (!ends && rreq->dev.OnDataAvail != MPIDI_CH3_ReqHandler_UnpackSRBufReloadIOV)
        return 0;
    if (rreq->dev.drop_data || rreq->dev.tmpbuf_off != 0 || rest->iov_base != rreq->dev.tmpbuf || data == rest->iov_base)
        return 0;
    if (!ends && rreq->dev.recv_data_sz != rreq->dev.msgsize - rreq->dev.orig_msg_offset)
        return 0;
    left = ends ? rest->iov_len : (size_t) (rreq->dev.msgsize - rreq->dev.msg_offset);
    if (bytes >= left)
        bytes = left - 1;
    bytes &= ~(size_t) 63;      /* whole elements */
    if (bytes == 0)
        return 0;
    if (!(has_short_blocks(rreq->dev.datatype) ? unpack_in_steps : unpack_some) (rreq, data, bytes)) {
        rreq->dev.msg_offset = before;
        return 0;
    }
    left -= bytes;
    if (left > (size_t) rreq->dev.tmpbuf_sz) {
        rest->iov_len = rreq->dev.tmpbuf_sz;
    } else {
        rest->iov_len = left;
        if (!ends)
            rreq->dev.orig_msg_offset = ORIG_MSG_OFFSET_UNSET;
        rreq->dev.OnDataAvail = MPIDI_CH3_ReqHandler_UnpackSRBufComplete;
    }
    return bytes;
}

/* The next data of the message that is arriving on a connection. */
static int take_data(MPIDI_VC_t * vc, MPIR_Request * rreq, char *data, size_t bytes)
{
    const size_t unpacked = unpack_from_frame(rreq, data, bytes);

    return unpacked < bytes ? MPID_nem_handle_pkt(vc, data + unpacked, bytes - unpacked) : MPI_SUCCESS;
}
