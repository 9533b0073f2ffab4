/* Compact headers. Part of ulfm_netmod.c.
 *
 * CH3's packet of an eager message takes 32 of the 48 bytes that a cell of a lane has for header and data. Where memory
 * is shared, a message goes with what matching needs, and one of 32 bytes still is one cache line. Everywhere else the
 * bytes of a header are what a link carries and a model charges, and packets stay as CH3 makes them. */

/* Two words, each written at once: the copy into the cell reads them as such. */
typedef struct compact_pkt {
    uint64_t what;              /* COMPACT, the context id, and the tag above them */
    uint64_t who;               /* the sender's rank in the communicator, and above it its request, as in CH3's packet */
} compact_pkt_t;
#define COMPACT 0x80000000u     /* as a packet's type this is below 0 */
#if MPIR_CONTEXT_ID_BITS + MPIR_CONTEXT_GENERATION_WIDTH > 31
#error "a context of MPI does not fit into compact_pkt_t"
#endif

/* Every frame has room for as many bytes of data (kLeastFrame), whatever the network. */
#define QUICK_SEND 64
/* With a compact header: the copy of a longer message takes longer than CH3's way to it. */
#define QUICK_COMPACT 2048

/* For a connection that has just been made. */
static void choose_sizes(MPIDI_VC_t * vc)
{
    intptr_t eager;

    vc->eager_max_msg_sz = ulfm->eager_limit(nm, AREA(vc)->out);
    eager = vc->eager_max_msg_sz - (intptr_t) sizeof(MPIDI_CH3_Pkt_eager_send_t);
    AREA(vc)->compact = ulfm->shares_memory(AREA(vc)->out);
    AREA(vc)->quick = AREA(vc)->compact ? MPL_MAX(QUICK_SEND, MPL_MIN(QUICK_COMPACT, eager)) : QUICK_SEND;
}

static inline void compact_fill(compact_pkt_t * pkt, int rank, int tag, int context_id, MPI_Request request)
{
    pkt->what = (uint64_t) (uint32_t) tag << 32 | COMPACT | (uint32_t) context_id;
    pkt->who = (uint64_t) (uint32_t) request << 32 | (uint32_t) rank;
}

static inline int is_compact(const ulfm_nm_frame * frame)
{
    const compact_pkt_t *pkt = frame->header;
    return frame->header_length == sizeof *pkt && (pkt->what & COMPACT);
}

static inline void compact_match(const ulfm_nm_frame * frame, MPIDI_Message_match_parts_t * match)
{
    const compact_pkt_t *pkt = frame->header;
    match->tag = (int32_t) (pkt->what >> 32);
    match->context_id = (uint32_t) pkt->what & ~COMPACT;
    match->rank = (MPIDI_Rank_t) pkt->who;
}

/* CH3's packet of such a frame; 0 when it has another header. */
static inline int compact_spread(const ulfm_nm_frame * frame, MPIDI_CH3_Pkt_t * pkt)
{
    const compact_pkt_t *from = frame->header;

    if (!is_compact(frame))
        return 0;
    MPIDI_Pkt_init(&pkt->eager_send, MPIDI_CH3_PKT_EAGER_SEND);
    compact_match(frame, &pkt->eager_send.match.parts);
    pkt->eager_send.sender_req_id = (MPI_Request) (from->who >> 32);
    pkt->eager_send.data_sz = (intptr_t) frame->length;
    return 1;
}
