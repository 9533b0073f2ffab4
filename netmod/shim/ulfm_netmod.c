/* The Nemesis netmod "ulfm": MPICH's virtual connections over ULFM.
 *
 * This file owns every MPICH type; the work is behind the function table of libulfm.so (ulfm/netmod.h), fetched at
 * MPI_Init. It is compiled inside MPICH by an #include at the end of netmod/none/none.c.
 *
 *   sending     CH3 packet header (only the bytes of its own struct) + data -> one message; what finds no room waits
 *               in the connection's queue and goes on from poll
 *   receiving   the packet handlers are called on the bytes in the slot; data that continue a message are copied
 *               straight into the request's own vectors
 *   connecting  on first use, with a hello that says which process (or which accepted port) this is
 *   long        messages copied once, from process to process: ulfm_once.c
 *   one-sided   long transfers on memory that is not shared: ulfm_window.c
 *   short       eager messages with a header of 16 bytes where memory is shared, taken as they come: ulfm_quick.c
 *   gaps        data with gaps, packed into frames and unpacked from them: ulfm_gaps.c
 *   kept        where early messages and temporary memory of collectives lie: ulfm_kept.c
 *   answers     requests that only the other side can complete are on a list of their connection: ulfm_answers.c
 *   leaving     who has met a failure in a collective tells the others: ulfm_left.c
 *   agreement   MPIX_Comm_agree and _shrink, also when members die in the middle of it: ulfm_agree.c
 *   closing     CH3's close protocol; a packet for a connection that is closed here is answered with `closed`
 */
#include "mpid_nem_impl.h"
#include "mpid_nem_inline.h"
#include <dlfcn.h>
#include "netmod.h"             /* a copy of ulfm/netmod.h */

#define CARD_KEY "ulfm"
/* Of ulfm/ulfm.h: ULFM_ERR_NOT_FOUND, ULFM_ERR_STALE and ULFM_ERR_PEER_FAILED. */
#define NOT_FOUND (-3)
#define STALE (-5)
#define PEER_FAILED (-9)
#define VC_MAGIC 0x756c666d76633031ull

/* What a connection says about itself. */
enum hello_kind { HELLO_RANK = 1, HELLO_CONNECT = 2, HELLO_ACCEPT = 3 };
typedef struct hello {
    int32_t kind;
    int32_t rank;               /* RANK: of the sender in its process group */
    int32_t tag;                /* CONNECT: of the port name */
    int32_t collectives;        /* RANK: its ULFM_COLLECTIVES, see coll_setting() */
    uint64_t connector;         /* CONNECT: names the connecting side's VC; ACCEPT: the same, back */
    char pg_id[ULFM_NM_HELLO - 24];
} hello_t;

/* Packets of our own: these look like CH3 packets of a type CH3 does not use. */
enum own_packet { OWN_HELLO = 1, OWN_CLOSED = 2, OWN_VOTE = 3, OWN_QUESTION = 4, OWN_DECISION = 5, OWN_HALF = 6,
    OWN_WRITTEN = 7, OWN_READ = 8, OWN_WITHDRAWN = 9, OWN_LEFT = 10, OWN_ASK = 11, OWN_SETTLED = 12
};
typedef struct own_pkt {
    MPIDI_CH3_Pkt_type_t type;  /* OWN_TYPE */
    int32_t what;
    /* of agreements; of LEFT and ASK `group` is an id of a communicator, and `from` that of who asks; of ASK `asked` is how
     * it was found, of SETTLED the round */
    uint64_t group;
    int32_t number;
    int32_t from;
    int32_t asked;
    int32_t members;            /* of SETTLED */
} own_pkt_t;
#define OWN_SHORT offsetof(own_pkt_t, group)
#define OWN_TYPE ((MPIDI_CH3_Pkt_type_t) 0x7fff)

typedef struct vc_area {
    uint64_t magic;
    ulfm_nm_vc *out;            /* NULL until the first send */
    MPIDI_VC_t *next_waiting;   /* list of connections with queued sends */
    MPIDI_VC_t *next_open;      /* list of connections that can send */
    struct {
        MPIR_Request *head, *tail;
    } queue;
    char *card;                 /* temporary connections: whom to connect to */
    MPIR_Request *asking;       /* requests that an answer of the other side completes */
    size_t arriving;            /* length of the long message of which frames come, when that is measured */
    uint64_t connector;
    intptr_t quick;             /* longest message that is sent by ulfm_quick.c, */
    int8_t compact;             /* with a compact header */
    int8_t waiting, open, hello_kind, terminating;
    int8_t ending;              /* its process has died, and more of what it has sent may come */
} vc_area_t;

/* A message that is copied once: see ulfm_once.c. */
typedef struct copying {
    MPIR_Request *next;         /* list of those with something to copy, while active */
    MPIDI_VC_t *vc;
    char *here;                 /* what this process copies next, */
    uint64_t there;             /* its place in the other one, */
    size_t left;                /* and how much that is */
    size_t bytes;               /* of the message; sender */
    MPI_Request theirs;
    uint8_t active, failed;
    uint8_t measured;           /* receiver: long_begins() has been called */
    uint8_t parts;              /* of OWN_PART and THEIR_PART, what has still to be done; 0: it goes as ever */
} copying_t;

typedef struct req_area {
    int begun;                  /* the header has gone */
    int header_length;
    MPIR_Request *next_asking, *previous_asking;        /* see ulfm_answers.c */
    int abandoned;
    int packs;                  /* its data are packed into the frames: see ulfm_gaps.c */
    copying_t copying;
} req_area_t;

#define AREA(vc) ((vc_area_t *) (vc)->ch.netmod_area.padding)
#define REQ_AREA(req) ((req_area_t *) (req)->ch.netmod_area.padding)

static const ulfm_nm_api *ulfm;
static ulfm_nm *nm;
static MPIDI_CH3_PktHandler_Fcn *handlers[MPIDI_CH3_PKT_END_ALL + 1];
static MPIDI_VC_t *waiting_head;
static MPIDI_VC_t *open_head;
static ulfm_nm_vc *leaving[64]; /* disconnects that found no room for their goodbye */
static int n_leaving;
static int host_processes = 1;  /* that share its cores */
int MPIDI_nem_ulfm_emulates;    /* MPI's nodes are those of an emulated interconnect (see the patch) */
static int node_processes = 1;  /* that MPI takes for neighbours: the host's, or those of an emulated node */
static int progress_seen;       /* completion count at the previous poll: see how_to_idle() */
static int empty_polls;
static int timed;              /* in virtual time */
static uint64_t next_connector = 1;
static int in_frame;            /* a frame is being handled: the next one would take its place */
static int mid_message;         /* the last frame did not end its message */

/* The beginning of a long message that was found before its receive was posted, which is about to be: it is handled in
 * the next turn, or else the message would take a detour through memory of CH3's. Meanwhile no other frame is taken. */
static ulfm_nm_frame held;
static int has_held;

static int look_at_all;         /* a peer was given up: see look_at_closing() */
static int n_ending;            /* connections that are `ending`, */
static int last_words;          /* and frames that have come since there is one */
static int blocking;            /* the last poll was that of a call that waits */

/* Looks of a threaded wait while a message is on its way. The lock is given away after every turn and hard to win
 * back from threads that probe in a loop, so a long message would otherwise move a piece at each stroke of luck. */
#define THREADED_LOOKS 5000

/* Most frames that are read at once because somebody died. */
#define LAST_WORDS 4096

static int nm_flush_vc(MPIDI_VC_t * vc);
static int handle_frame(const ulfm_nm_frame * frame);
static void *place_of(void *cookie, size_t * length);
static int finish_termination(MPIDI_VC_t * vc);
static int fail_vc(MPIDI_VC_t * vc);
static void forget_questions(const MPIDI_VC_t * vc);
static void forget_absentees(MPIR_Context_id_t id, const MPIDI_VC_t * vc);
static void forget_all_absentees(void);
static int left_init(void);
static int ulfm_iStartContigMsg(MPIDI_VC_t * vc, void *hdr, intptr_t hdr_sz, void *data, intptr_t data_sz,
                                MPIR_Request ** sreq_ptr);

#include "ulfm_compact.c"
#include "ulfm_answers.c"
#include "ulfm_once.c"
#include "ulfm_window.c"
#include "ulfm_kept.c"

/* ---- start and end ------------------------------------------------------------------------------------------------ */

static int load_library(void)
{
    int mpi_errno = MPI_SUCCESS;
    const char *path = getenv("ULFM_NETMOD_LIBRARY");
    void *library = dlopen(path && *path ? path : ULFM_NM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ulfm_nm_entry entry = library ? (ulfm_nm_entry) dlsym(library, ULFM_NM_ENTRY) : NULL;

    MPIR_ERR_CHKANDJUMP1(!entry, mpi_errno, MPI_ERR_OTHER, "**fail", "**fail %s", dlerror());
    ulfm = entry(ULFM_NM_ABI);
    MPIR_ERR_CHKANDJUMP1(!ulfm, mpi_errno, MPI_ERR_OTHER, "**fail", "**fail %s",
                         "libulfm.so.0 is of another version than this MPI library's netmod");
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

#include "ulfm_reduce.c"
#include "ulfm_coll.c"
#include "ulfm_icoll.c"
#include "ulfm_schedules.c"
#include "ulfm_schedules_blocks.c"

static void describe_waits(ulfm_nm_waits * waits);      /* ulfm_stall.c, which looks into agreements too */

/* The nodes of an emulated interconnect in place of the hosts: collectives and shared windows then see the machine
 * that is emulated. Everything MPICH has derived from the hosts is derived again, as its build_locality() does. */
static int put_on_nodes(MPIDI_PG_t * pg, int nodes)
{
    int mpi_errno = MPI_SUCCESS;
    int i, here = MPIR_Process.node_map[MPIR_Process.rank];
    int *roots = MPL_malloc(nodes * sizeof(int), MPL_MEM_ADDRESS);
    int *locals = MPL_malloc(MPIR_Process.size * sizeof(int), MPL_MEM_ADDRESS);

    MPIR_ERR_CHKANDJUMP(!roots || !locals, mpi_errno, MPI_ERR_OTHER, "**nomem");
    MPIR_Process.num_nodes = nodes;
    MPIR_Process.local_size = 0;
    for (i = 0; i < nodes; i++)
        roots[i] = -1;
    for (i = 0; i < MPIR_Process.size; i++) {
        int node = MPIR_Process.node_map[i];
        if (roots[node] < 0)
            roots[node] = i;
        if (i == MPIR_Process.rank)
            MPIR_Process.local_rank = MPIR_Process.local_size;
        if (node == here)
            locals[MPIR_Process.local_size++] = i;
        pg->vct[i].node_id = node;
    }
    MPL_free(MPIR_Process.node_root_map);
    MPL_free(MPIR_Process.node_local_map);
    MPIR_Process.node_root_map = roots;
    MPIR_Process.node_local_map = locals;
  fn_exit:
    return mpi_errno;
  fn_fail:
    MPL_free(roots);
    MPL_free(locals);
    goto fn_exit;
}

/* Called by nemesis before it makes its shared segment (see the patch): with this netmod no process of the host uses
 * that segment, whose size grows with the square of the processes, so nemesis is told that it is alone. init() puts
 * the truth back for everything that comes later: collectives and shared windows know the node as it is. */
int MPIDI_nem_ulfm_claim_host(void)
{
    int mpi_errno = MPID_nem_choose_netmod();
    int nodes;
    MPIR_ERR_CHECK(mpi_errno);
    if (MPID_nem_netmod_id != MPIDI_NEM_ULFM)
        goto fn_exit;
    mpi_errno = load_library();
    MPIR_ERR_CHECK(mpi_errno);
    use_kernels();
    host_processes = MPIR_Process.local_size;
    nodes = ulfm->nodes(MPIR_Process.size, MPIR_Process.node_map);
    if (nodes > 0) {
        MPIDI_nem_ulfm_emulates = 1;
        mpi_errno = put_on_nodes(MPIDI_Process.my_pg, nodes);
        MPIR_ERR_CHECK(mpi_errno);
    }
    node_processes = MPIR_Process.local_size;
    MPIR_Process.local_size = 1;
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static int put_card(char **bc_val_p, int *val_max_sz_p)
{
    int mpi_errno = MPI_SUCCESS;
    int rc = MPL_str_add_string_arg(bc_val_p, val_max_sz_p, CARD_KEY, ulfm->card(nm));
    MPIR_ERR_CHKANDJUMP(rc != MPL_SUCCESS, mpi_errno, MPI_ERR_OTHER, "**buscard");
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* MPI_Finalize has begun, and has closed no connection yet. */
static int begin_finalize(void *unused)
{
    if (nm)
        ulfm->ending(nm);
    return MPI_SUCCESS;
}

static int ulfm_init(MPIDI_PG_t * pg, int pg_rank, char **bc_val_p, int *val_max_sz_p)
{
    int mpi_errno = MPI_SUCCESS;
    int rc;

    MPIR_Assert(sizeof(vc_area_t) <= sizeof(((MPIDI_VC_t *) 0)->ch.netmod_area));
    MPIR_Assert(sizeof(icall_t) <= sizeof(((MPIR_Request *) 0)->ch.netmod_area));
    MPIR_Assert(sizeof(req_area_t) <= sizeof(((MPIR_Request *) 0)->ch.netmod_area));
    MPIR_Process.local_size = node_processes;

    rc = ulfm->open((const char *) pg->id, pg_rank, pg->size, host_processes, &nm);
    MPIR_ERR_CHKANDJUMP1(rc != 0, mpi_errno, MPI_ERR_OTHER, "**fail", "**fail %s", ulfm->last_error());
    MPIR_Add_finalize(begin_finalize, NULL, MPIR_FINALIZE_CALLBACK_PRIO + 1);
    kept_start();
    timed = ulfm->timed(nm);
    ulfm->use_places(nm, place_of);
    mpi_errno = MPIDI_CH3_PktHandler_Init(handlers, MPIDI_CH3_PKT_END_ALL + 1);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPID_nem_lmt_pkthandler_init(handlers, MPIDI_CH3_PKT_END_ALL + 1);
    MPIR_ERR_CHECK(mpi_errno);
    watch_answers();
    ulfm->on_stall(nm, describe_waits);
    mpi_errno = put_card(bc_val_p, val_max_sz_p);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = left_init();
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = coll_init();
    MPIR_ERR_CHECK(mpi_errno);
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static int ulfm_get_business_card(int my_rank, char **bc_val_p, int *val_max_sz_p)
{
    return put_card(bc_val_p, val_max_sz_p);
}

static void retry_leaving(int force)
{
    int i, kept = 0;
    for (i = 0; i < n_leaving; i++)
        if (!ulfm->disconnect(nm, leaving[i], force))
            leaving[kept++] = leaving[i];
    n_leaving = kept;
}

static void unlink_open(MPIDI_VC_t * vc)
{
    MPIDI_VC_t **p = &open_head;
    while (*p && *p != vc)
        p = &AREA(*p)->next_open;
    if (*p)
        *p = AREA(vc)->next_open;
    AREA(vc)->open = 0;
}

static void unlink_waiting(MPIDI_VC_t * vc)
{
    MPIDI_VC_t **p = &waiting_head;
    while (*p && *p != vc)
        p = &AREA(*p)->next_waiting;
    if (*p)
        *p = AREA(vc)->next_waiting;
    AREA(vc)->waiting = 0;
}

/* Lets go of the sending half; a later send connects anew. */
static void close_out(MPIDI_VC_t * vc)
{
    vc_area_t *area = AREA(vc);
    if (area->waiting)
        unlink_waiting(vc);
    if (!area->out)
        return;
    unlink_open(vc);
    n_ending -= area->ending;
    area->ending = 0;
    if (!ulfm->disconnect(nm, area->out, n_leaving == 64))
        leaving[n_leaving++] = area->out;
    area->out = NULL;
}

/* Until all that this process has sent has gone to its receivers or is in their rooms: nobody may look for long. */
int MPIDI_nem_ulfm_drain(void)
{
    int mpi_errno = MPI_SUCCESS;
    MPID_Progress_state progress_state;

    MPID_Progress_start(&progress_state);
    while (nm && (waiting_head || multicast_waiting) && !mpi_errno)
        mpi_errno = MPID_Progress_wait(&progress_state);
    MPID_Progress_end(&progress_state);
    return mpi_errno;
}

static int ulfm_finalize(void)
{
    if (nm)
        ulfm->leave(nm);
    while (open_head)
        close_out(open_head);
    forget_questions(NULL);
    forget_all_absentees();
    retry_leaving(1);
    if (nm)
        ulfm->close(nm);
    nm = NULL;
    has_held = 0;
    kept_end();
    /* nemesis frees its segment next, which it made as a process alone on its host */
    MPIR_Process.local_size = 1;
    return MPI_SUCCESS;
}

/* ---- connecting --------------------------------------------------------------------------------------------------- */

static int card_of(MPIDI_VC_t * vc, char *card, int size)
{
    int mpi_errno = MPI_SUCCESS;
    char *bc = NULL;
    int rc, bc_size;

    if (AREA(vc)->card) {
        MPL_strncpy(card, AREA(vc)->card, size);
        goto fn_exit;
    }
    MPIR_ERR_CHKANDJUMP(!vc->pg, mpi_errno, MPI_ERR_OTHER, "**fail");
    if (ulfm->card_of(nm, (const char *) vc->pg->id, vc->pg_rank, card, size))
        goto fn_exit;
    bc_size = MPIR_pmi_max_val_size();
    bc = MPL_malloc(bc_size, MPL_MEM_ADDRESS);
    MPIR_ERR_CHKANDJUMP(!bc, mpi_errno, MPI_ERR_OTHER, "**nomem");
    mpi_errno = vc->pg->getConnInfo(vc->pg_rank, bc, bc_size, vc->pg);
    MPIR_ERR_CHECK(mpi_errno);
    rc = MPL_str_get_string_arg(bc, CARD_KEY, card, size);
    MPIR_ERR_CHKANDJUMP1(rc != MPL_SUCCESS, mpi_errno, MPI_ERR_OTHER, "**fail", "**fail %s",
                         "the other process does not use the ulfm netmod");
  fn_exit:
    MPL_free(bc);
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static void say_hello(MPIDI_VC_t * vc, hello_t * hello)
{
    memset(hello, 0, sizeof *hello);
    hello->kind = AREA(vc)->hello_kind;
    hello->rank = MPIDI_Process.my_pg_rank;
    hello->tag = vc->port_name_tag;
    hello->collectives = coll_setting();
    hello->connector = AREA(vc)->connector;
    MPL_strncpy(hello->pg_id, MPIDI_Process.my_pg->id, sizeof hello->pg_id);
}

/* Makes the sending half. Only who has gone has failed: what this process lacks (memory, descriptors) is no death of the
 * other one. */
static int connect_vc(MPIDI_VC_t * vc)
{
    int mpi_errno = MPI_SUCCESS;
    vc_area_t *area = AREA(vc);
    char card[256];
    hello_t hello;
    int rc;

    mpi_errno = card_of(vc, card, sizeof card);
    if (unlikely(mpi_errno) && MPIR_CVAR_ENABLE_FT && vc->pg == MPIDI_Process.my_pg) {
        /* Who ended before MPI_Init has left no card: the launcher knows of it. */
        (void) MPIDI_CH3U_Check_for_failed_procs();
        if (vc->state == MPIDI_VC_STATE_MORIBUND)
            MPIR_ERR_SETANDJUMP1(mpi_errno, MPIX_ERR_PROC_FAILED, "**comm_fail", "**comm_fail %d", vc->pg_rank);
    }
    MPIR_ERR_CHECK(mpi_errno);
    say_hello(vc, &hello);
    rc = ulfm->connect(nm, card, &hello, sizeof hello, &area->out);
    if (unlikely(rc != 0)) {
        const int gone = rc == PEER_FAILED || rc == NOT_FOUND || rc == STALE;
        MPIR_ERR_SET2(mpi_errno, gone ? MPIX_ERR_PROC_FAILED : MPI_ERR_OTHER, "**comm_fail", "**comm_fail %d %s",
                      vc->pg_rank, ulfm->last_error());
        /* A process opens its port before others hear of it, so one without has closed it: it has ended, or is about to,
         * and neither messages nor a goodbye reach it. Nobody but the client waits at the other end of a temporary
         * connection. */
        if (gone && (vc->pg || area->hello_kind == HELLO_ACCEPT))
            (void) fail_vc(vc);
        goto fn_exit;
    }
    area->next_open = open_head;
    open_head = vc;
    area->open = 1;
    choose_sizes(vc);
    if (vc->state == MPIDI_VC_STATE_INACTIVE)
        MPIDI_CHANGE_VC_STATE(vc, ACTIVE);
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

#include "ulfm_gaps.c"

/* ---- sending ------------------------------------------------------------------------------------------------------ */

static void enqueue(MPIDI_VC_t * vc, MPIR_Request * sreq)
{
    vc_area_t *area = AREA(vc);
    MPIDI_CH3I_Sendq_enqueue(&area->queue, sreq);
    if (!area->waiting) {
        area->waiting = 1;
        area->next_waiting = waiting_head;
        waiting_head = vc;
    }
}

/* Takes `n` bytes off the front of the request's vectors. */
static void consume_iov(MPIR_Request * sreq, size_t n)
{
    struct iovec *iov = &sreq->dev.iov[sreq->dev.iov_offset];
    while (sreq->dev.iov_count > 0 && n >= iov->iov_len) {
        n -= iov->iov_len;
        ++iov;
        ++sreq->dev.iov_offset;
        --sreq->dev.iov_count;
    }
    if (n > 0) {
        iov->iov_base = (char *) iov->iov_base + n;
        iov->iov_len -= n;
    }
}

static ptrdiff_t begin_request(ulfm_nm_vc * out, MPIR_Request * sreq, const void *hdr, size_t hdr_sz)
{
    const struct iovec *iov = &sreq->dev.iov[sreq->dev.iov_offset];

    if (unlikely(REQ_AREA(sreq)->packs))
        return ulfm->begin_packed(out, hdr, hdr_sz, pack_next, sreq, iov->iov_len);
    return ulfm->begin(out, hdr, hdr_sz, iov, sreq->dev.iov_count);
}

static ptrdiff_t continue_request(ulfm_nm_vc * out, MPIR_Request * sreq)
{
    const struct iovec *iov = &sreq->dev.iov[sreq->dev.iov_offset];

    if (unlikely(REQ_AREA(sreq)->packs))
        return ulfm->more_packed(out, pack_next, sreq, iov->iov_len);
    return ulfm->more(out, iov, sreq->dev.iov_count);
}

/* Sends what the request holds as far as there is room. *gone: everything went, and the request is completed. */
static int advance(MPIDI_VC_t * vc, MPIR_Request * sreq, int *gone)
{
    int mpi_errno = MPI_SUCCESS;
    vc_area_t *area = AREA(vc);
    req_area_t *req = REQ_AREA(sreq);

    *gone = 0;
    for (;;) {
        ptrdiff_t sent;
        int complete = 1;
        if (!req->begun) {
            sent = begin_request(area->out, sreq, &sreq->dev.pending_pkt, req->header_length);
            if (sent < 0)
                goto fn_exit;
            req->begun = 1;
        } else {
            sent = continue_request(area->out, sreq);
        }
        consume_iov(sreq, sent);
        if (sreq->dev.iov_count > 0)
            goto fn_exit;
        if (sreq->dev.OnDataAvail) {
            mpi_errno = sreq->dev.OnDataAvail(vc, sreq, &complete);
            MPIR_ERR_CHECK(mpi_errno);
        } else {
            mpi_errno = MPID_Request_complete(sreq);
            MPIR_ERR_CHECK(mpi_errno);
        }
        if (complete) {
            *gone = 1;
            goto fn_exit;
        }
        sreq->dev.iov_offset = 0;       /* reloaded: more of the same message */
    }
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static int ready_to_send(MPIDI_VC_t * vc)
{
    return likely(AREA(vc)->out) ? MPI_SUCCESS : connect_vc(vc);
}

static int ulfm_iStartContigMsg(MPIDI_VC_t * vc, void *hdr, intptr_t hdr_sz, void *data, intptr_t data_sz,
                                MPIR_Request ** sreq_ptr)
{
    int mpi_errno = MPI_SUCCESS;
    vc_area_t *area = AREA(vc);
    struct iovec piece = { data, (size_t) data_sz };
    ptrdiff_t sent = -1;
    MPIR_Request *sreq;
    cts_pkt_t answer;

    *sreq_ptr = NULL;
    mpi_errno = ready_to_send(vc);
    if (unlikely(mpi_errno)) {
        /* A close to a process that has died is no error: there is nothing left to close. */
        if (((MPIDI_CH3_Pkt_t *) hdr)->type == MPIDI_CH3_PKT_CLOSE && vc->state == MPIDI_VC_STATE_MORIBUND)
            mpi_errno = MPI_SUCCESS;
        /* Nobody waits for an answer to a process that has died, to what it wrote before. It is no failure of the call
         * that has found its packet. Who passes a revocation on counts those that can be told. */
        if (in_frame && MPIR_ERR_GET_CLASS(mpi_errno) == MPIX_ERR_PROC_FAILED &&
            ((MPIDI_CH3_Pkt_t *) hdr)->type != MPIDI_CH3_PKT_REVOKE) {
            note_question(vc, hdr);
            mpi_errno = fail_questions(vc, mpi_errno);
        }
        goto fn_exit;
    }
    note_question(vc, hdr);
    if (unlikely(((MPIDI_CH3_Pkt_t *) hdr)->type == MPIDI_CH3_PKT_RNDV_CLR_TO_SEND)) {
        offer_buffer(vc, hdr, &answer);
        hdr = &answer;
        hdr_sz = sizeof answer;
    }
    if (!area->queue.head) {
        sent = ulfm->begin(area->out, hdr, hdr_sz, &piece, data_sz != 0);
        if (sent == data_sz)
            goto fn_exit;
    }
    sreq = MPIR_Request_create(MPIR_REQUEST_KIND__SEND);
    if (!sreq)
        forget_question(vc, hdr);
    MPIR_ERR_CHKANDJUMP(!sreq, mpi_errno, MPI_ERR_OTHER, "**nomem");
    MPIR_Object_set_ref(sreq, 2);
    sreq->dev.OnDataAvail = NULL;
    sreq->ch.vc = vc;
    MPIR_Memcpy(&sreq->dev.pending_pkt, hdr, hdr_sz);
    REQ_AREA(sreq)->begun = sent >= 0;
    REQ_AREA(sreq)->header_length = (int) hdr_sz;
    REQ_AREA(sreq)->packs = 0;
    if (sent < 0)
        sent = 0;
    sreq->dev.iov[0].iov_base = (char *) data + sent;
    sreq->dev.iov[0].iov_len = data_sz - sent;
    sreq->dev.iov_offset = 0;
    sreq->dev.iov_count = data_sz > sent;
    enqueue(vc, sreq);
    *sreq_ptr = sreq;
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* The request is the caller's, with its vectors in dev.iov already. */
static int start_request(MPIDI_VC_t * vc, MPIR_Request * sreq, void *hdr, intptr_t hdr_sz)
{
    int mpi_errno = MPI_SUCCESS;
    int gone = 0, begun = 0;

    mpi_errno = ready_to_send(vc);
    if (unlikely(mpi_errno)) {
        /* Of a death the caller learns by the request. Any other error is the call's, which then waits for nothing:
         * in MPI_Sendrecv the other side may have no way to this process either. */
        const int error = mpi_errno;
        mpi_errno = fail_request(sreq, error);
        MPIR_ERR_CHECK(mpi_errno);
        if (MPIR_ERR_GET_CLASS(error) != MPIX_ERR_PROC_FAILED)
            mpi_errno = error;
        goto fn_exit;
    }
    note_question(vc, hdr);
    /* Most messages go at once and whole; they need nothing of what waiting ones do. */
    if (likely(!AREA(vc)->queue.head && !sreq->dev.OnDataAvail)) {
        ptrdiff_t sent = begin_request(AREA(vc)->out, sreq, hdr, hdr_sz);
        begun = sent >= 0;
        if (begun)
            consume_iov(sreq, sent);
        if (begun && sreq->dev.iov_count == 0) {
            mpi_errno = MPID_Request_complete(sreq);
            goto fn_exit;
        }
    }
    sreq->ch.vc = vc;
    if ((void *) &sreq->dev.pending_pkt != hdr)
        MPIR_Memcpy(&sreq->dev.pending_pkt, hdr, hdr_sz);
    REQ_AREA(sreq)->begun = begun;
    REQ_AREA(sreq)->header_length = (int) hdr_sz;
    if (!AREA(vc)->queue.head && sreq->dev.OnDataAvail) {
        mpi_errno = advance(vc, sreq, &gone);
        MPIR_ERR_CHECK(mpi_errno);
    }
    if (!gone)
        enqueue(vc, sreq);
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Of data in one piece, or of data that are packed from there. */
static int start_piece(MPIDI_VC_t * vc, MPIR_Request * sreq, void *hdr, intptr_t hdr_sz, void *data, intptr_t data_sz,
                       int packs)
{
    sreq->dev.iov[0].iov_base = data;
    sreq->dev.iov[0].iov_len = data_sz;
    sreq->dev.iov_offset = 0;
    sreq->dev.iov_count = data_sz != 0;
    REQ_AREA(sreq)->packs = packs;
    return start_request(vc, sreq, hdr, hdr_sz);
}

static int ulfm_iSendContig(MPIDI_VC_t * vc, MPIR_Request * sreq, void *hdr, intptr_t hdr_sz, void *data,
                            intptr_t data_sz)
{
    return start_piece(vc, sreq, hdr, hdr_sz, data, data_sz, 0);
}

static int ulfm_iSendIov(MPIDI_VC_t * vc, MPIR_Request * sreq, void *hdr, intptr_t hdr_sz, struct iovec *iov, int n_iov)
{
    MPIR_Assert(n_iov <= MPL_IOV_LIMIT);
    memmove(sreq->dev.iov, iov, n_iov * sizeof(struct iovec));
    sreq->dev.iov_offset = 0;
    sreq->dev.iov_count = n_iov;
    REQ_AREA(sreq)->packs = 0;
    return start_request(vc, sreq, hdr, hdr_sz);
}

/* Data with gaps, from msg_offset to msgsize of what the request describes. */
static int ulfm_SendNoncontig(MPIDI_VC_t * vc, MPIR_Request * sreq, void *hdr, intptr_t hdr_sz, struct iovec *hdr_iov,
                              int n_hdr_iov)
{
    int mpi_errno = MPI_SUCCESS;

    if (n_hdr_iov > 0 || !packs_into_frames(vc))
        return MPIDI_CH3_SendNoncontig_iov(vc, sreq, hdr, hdr_sz, hdr_iov, n_hdr_iov);
    sreq->dev.OnDataAvail = sreq->dev.OnFinal;
    mpi_errno = start_piece(vc, sreq, hdr, hdr_sz, sreq->dev.user_buf, sreq->dev.msgsize - sreq->dev.msg_offset, 1);
    if (mpi_errno) {
        MPIR_Request_free(sreq);
        MPIR_ERR_SETANDJUMP(mpi_errno, MPI_ERR_OTHER, "**ch3|eagermsg");
    }
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Goes on with a connection's queue. */
static int nm_flush_vc(MPIDI_VC_t * vc)
{
    int mpi_errno = MPI_SUCCESS;
    vc_area_t *area = AREA(vc);

    while (area->queue.head) {
        MPIR_Request *sreq = area->queue.head;
        int gone = 0;
        mpi_errno = advance(vc, sreq, &gone);
        MPIR_ERR_CHECK(mpi_errno);
        if (!gone)
            goto fn_exit;
        MPIDI_CH3I_Sendq_dequeue(&area->queue, &sreq);
    }
    unlink_waiting(vc);
    if (area->terminating)
        mpi_errno = finish_termination(vc);
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* ---- receiving ---------------------------------------------------------------------------------------------------- */

/* A packet of our own to the other side, in the order of its messages: it waits for room as they do. */
static int send_own(MPIDI_VC_t * vc, int what)
{
    own_pkt_t pkt = { OWN_TYPE, what };
    MPIR_Request *sreq = NULL;
    int mpi_errno = ulfm_iStartContigMsg(vc, &pkt, OWN_SHORT, NULL, 0, &sreq);

    if (sreq)
        MPIR_Request_free(sreq);
    return mpi_errno;
}

#include "ulfm_agree.c"
#include "ulfm_settle.c"
#include "ulfm_left.c"
#include "ulfm_stall.c"

static MPIDI_VC_t *find_connector(uint64_t connector)
{
    MPIDI_VC_t *vc = open_head;
    while (vc && !(AREA(vc)->hello_kind == HELLO_CONNECT && AREA(vc)->connector == connector))
        vc = AREA(vc)->next_open;
    return vc;
}

/* Someone connected to a port name: a temporary connection for MPI_Comm_accept. */
static int accept_connection(const ulfm_nm_origin * who, const hello_t * hello, MPIDI_VC_t ** vc_p)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_VC_t *vc = MPL_malloc(sizeof(MPIDI_VC_t), MPL_MEM_ADDRESS);
    MPIR_ERR_CHKANDJUMP(!vc, mpi_errno, MPI_ERR_OTHER, "**nomem");
    MPIDI_VC_Init(vc, NULL, 0);
    AREA(vc)->card = MPL_strdup(who->card);
    AREA(vc)->hello_kind = HELLO_ACCEPT;
    AREA(vc)->connector = hello->connector;
    vc->port_name_tag = hello->tag;
    if (vc->state == MPIDI_VC_STATE_INACTIVE)
        MPIDI_CHANGE_VC_STATE(vc, ACTIVE);
    *vc_p = vc;
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Which connection an origin's frames belong to; NULL when to none that still exists. */
static int identify(uint32_t origin, MPIDI_VC_t ** vc_p)
{
    int mpi_errno = MPI_SUCCESS;
    ulfm_nm_origin who;
    hello_t hello;
    MPIDI_VC_t *vc = NULL;
    MPIDI_PG_t *pg = NULL;

    *vc_p = NULL;
    if (ulfm->origin(nm, origin, &who) != 0 || who.hello_length != sizeof hello)
        goto fn_exit;
    MPIR_Memcpy(&hello, who.hello, sizeof hello);
    hello.pg_id[sizeof hello.pg_id - 1] = '\0';
    switch (hello.kind) {
        case HELLO_RANK:
            mpi_errno = MPIDI_PG_Find(hello.pg_id, &pg);
            MPIR_ERR_CHECK(mpi_errno);
            if (pg && hello.rank >= 0 && hello.rank < MPIDI_PG_Get_size(pg))
                MPIDI_PG_Get_vc(pg, hello.rank, &vc);
            if (vc && pg == MPIDI_Process.my_pg && hello.collectives != coll_setting())
                coll_settings_differ(hello.rank);
            break;
        case HELLO_CONNECT:
            mpi_errno = accept_connection(&who, &hello, &vc);
            MPIR_ERR_CHECK(mpi_errno);
            break;
        case HELLO_ACCEPT:
            vc = find_connector(hello.connector);
            break;
        default:
            break;
    }
    if (vc)
        ulfm->set_cookie(nm, origin, vc);
    *vc_p = vc;
    if (vc && hello.kind == HELLO_CONNECT) {
        /* May answer "no such port" at once, hence only now that the connection is complete. */
        mpi_errno = MPIDI_CH3I_Acceptq_enqueue(vc, hello.tag);
        MPIR_ERR_CHECK(mpi_errno);
    }
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static int own_packet(MPIDI_VC_t * vc, const ulfm_nm_frame * frame)
{
    const own_pkt_t *pkt = frame->header;

    if (pkt->what == OWN_SETTLED) {
        if (frame->header_length >= sizeof *pkt)
            on_settled(pkt);
        return MPI_SUCCESS;
    }
    if (pkt->what >= OWN_LEFT)
        return on_left(vc, pkt);
    if (pkt->what >= OWN_HALF)
        return on_once(vc, frame->header);
    if (pkt->what >= OWN_VOTE)
        return on_agreement(vc, pkt, frame);
    /* `closed`: the other side had finished with this connection before our close reached it. */
    if (pkt->what == OWN_CLOSED && (vc->state == MPIDI_VC_STATE_LOCAL_CLOSE || vc->state == MPIDI_VC_STATE_CLOSE_ACKED))
        return fail_vc(vc);
    return MPI_SUCCESS;
}

/* A packet that comes after its sender has been found to have failed, and so counts no more: it names requests that have
 * failed with it, or asks for an answer. Others bring all that they are about. */
static int comes_late(const MPIDI_VC_t * vc, int type)
{
    return vc->state == MPIDI_VC_STATE_MORIBUND && type != MPIDI_CH3_PKT_EAGERSHORT_SEND &&
        type != MPIDI_CH3_PKT_EAGER_SEND && type != MPIDI_CH3_PKT_READY_SEND && type != MPIDI_CH3_PKT_REVOKE;
}

/* A message of a handshake of connect and accept that this process has left: nobody will receive it. */
static int is_of_handshake_left(const MPIDI_VC_t * vc, int type)
{
    return !vc->pg && vc->state != MPIDI_VC_STATE_ACTIVE && vc->state != MPIDI_VC_STATE_REMOTE_CLOSE &&
        (type == MPIDI_CH3_PKT_EAGERSHORT_SEND || type == MPIDI_CH3_PKT_EAGER_SEND || type == MPIDI_CH3_PKT_RNDV_REQ_TO_SEND);
}

/* The other side has left a handshake that goes on here: what waits for it fails. A handshake that has succeeded leaves
 * nothing that waits. */
static int end_handshake(MPIDI_VC_t * vc)
{
    int mpi_errno = MPI_SUCCESS;
    int error = MPI_SUCCESS;

    if (vc->state != MPIDI_VC_STATE_REMOTE_CLOSE)
        goto fn_exit;
    MPIR_ERR_SET1(error, MPIX_ERR_PROC_FAILED, "**comm_fail", "**comm_fail %d", vc->pg_rank);
    mpi_errno = fail_questions(vc, error);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPIDI_CH3U_Complete_posted_with_error(vc);
    MPIR_ERR_CHECK(mpi_errno);
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static int first_frame(MPIDI_VC_t * vc, const ulfm_nm_frame * frame)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_CH3_Pkt_t *pkt = (MPIDI_CH3_Pkt_t *) frame->header;
    intptr_t used = frame->length;
    MPIR_Request *rreq = NULL;
    MPIDI_CH3_Pkt_t spread;
    const int temporary = !vc->pg;

    if (compact_spread(frame, &spread) || multicast_spread(frame, &spread))
        pkt = &spread;
    if (pkt->type == OWN_TYPE)
        return own_packet(vc, frame);
    if (vc->state == MPIDI_VC_STATE_INACTIVE)
        MPIDI_CHANGE_VC_STATE(vc, ACTIVE);
    if (vc->state == MPIDI_VC_STATE_INACTIVE_CLOSED) {
        (void) send_own(vc, OWN_CLOSED);        /* whoever cannot be reached does not wait for it either */
        return MPI_SUCCESS;
    }
    if (unlikely(comes_late(vc, pkt->type) || is_of_handshake_left(vc, pkt->type)))
        return MPI_SUCCESS;
    MPIR_ERR_CHKANDJUMP(pkt->type < 0 || pkt->type >= MPIDI_CH3_PKT_END_ALL || !handlers[pkt->type], mpi_errno,
                        MPI_ERR_INTERN, "**intern");
    mid_message = 0;
    mpi_errno = handlers[pkt->type] (vc, pkt, (void *) frame->data, &used, &rreq);
    MPIR_ERR_CHECK(mpi_errno);
    if (unlikely(temporary) && pkt->type == MPIDI_CH3_PKT_CLOSE)
        mpi_errno = end_handshake(vc);
    MPIR_ERR_CHECK(mpi_errno);
    if (!rreq)
        goto fn_exit;           /* a close packet may have been the end of the connection: no more of vc */
    rreq->dev.iov_offset = 0;
    vc->ch.recv_active = rreq;
    if ((size_t) used < frame->length)
        mpi_errno = take_data(vc, rreq, (char *) frame->data + used, frame->length - used);
    mid_message = vc->ch.recv_active != NULL;
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Where the next data of the message that is arriving on a connection belong. */
static void *place_of(void *cookie, size_t * length)
{
    const MPIDI_VC_t *vc = cookie;
    const MPIR_Request *rreq = vc->ch.recv_active;

    if (!rreq || rreq->dev.drop_data || rreq->dev.iov_count == 0)
        return NULL;
    *length = rreq->dev.iov[rreq->dev.iov_offset].iov_len;
    return rreq->dev.iov[rreq->dev.iov_offset].iov_base;
}

static int handle_frame(const ulfm_nm_frame * frame)
{
    MPIDI_VC_t *vc = frame->cookie;
    int mpi_errno = MPI_SUCCESS;

    in_frame = 1;
    if (unlikely(frame->fresh)) {
        mpi_errno = identify(frame->origin, &vc);
        MPIR_ERR_CHECK(mpi_errno);
    }
    if (unlikely(!vc))
        goto fn_exit;           /* of a connection that is no more */
    switch (frame->kind) {
        case ULFM_NM_FIRST:
            mpi_errno = first_frame(vc, frame);
            break;
        case ULFM_NM_MORE:
            if (!vc->ch.recv_active)
                break;          /* of a message that CH3 refused */
            mpi_errno = take_data(vc, vc->ch.recv_active, (char *) frame->data, frame->length);
            mid_message = vc->ch.recv_active != NULL;
            if (AREA(vc)->arriving && !mid_message)
                arrived(vc);
            break;
        case ULFM_NM_BYE:
            break;
        default:
            mid_message = 0;
            if (vc->state != MPIDI_VC_STATE_INACTIVE)   /* unused or properly closed: its exit is no failure */
                mpi_errno = fail_vc(vc);
            break;
    }
  fn_exit:
    in_frame = 0;
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

#include "ulfm_quick.c"

static int ulfm_poll(int in_blocking_poll);

#include "ulfm_neighbors.c"

/* ---- progress ----------------------------------------------------------------------------------------------------- */

/* Connections whose close waits for a process that has gone, or by which one of another job connects or is to accept.
 * Everything it wrote has been read before. When a peer has been given up, any connection may be one to it, also those on
 * which nothing waits here. */
static int look_at_closing(void)
{
    int mpi_errno = MPI_SUCCESS;
    int all = look_at_all || MPIR_CVAR_ENABLE_FT;
    MPIDI_VC_t *vc, *next;

    look_at_all = 0;
    for (vc = open_head; vc; vc = next) {
        next = AREA(vc)->next_open;
        int closing = vc->state == MPIDI_VC_STATE_LOCAL_CLOSE || vc->state == MPIDI_VC_STATE_CLOSE_ACKED;
        if (!closing && !AREA(vc)->waiting && !vc->connreq_obj && !all)
            continue;
        if (!ulfm->listening(AREA(vc)->out)) {
            ulfm_nm_frame frame;
            while (next_frame(&frame)) {
                mpi_errno = handle_frame(&frame);
                ulfm->release(nm, &frame);
                MPIR_ERR_CHECK(mpi_errno);
            }
            look_at_all = all;  /* there may be more of them */
            closing = vc->state == MPIDI_VC_STATE_LOCAL_CLOSE || vc->state == MPIDI_VC_STATE_CLOSE_ACKED;
            if (closing || AREA(vc)->waiting || vc->connreq_obj || (all && AREA(vc)->open))
                mpi_errno = fail_vc(vc);
            MPIR_ERR_CHECK(mpi_errno);
            break;              /* the list may have changed */
        }
    }
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* look_at_closing() takes a connection for ended when nothing more comes. Others may send without a pause. */
static int end_all_ending(void)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_VC_t *vc;

    while (n_ending && !mpi_errno) {
        for (vc = open_head; !AREA(vc)->ending; vc = AREA(vc)->next_open);
        mpi_errno = fail_vc(vc);
    }
    return mpi_errno;
}

static int connect_other_world(MPIDI_VC_t * vc)
{
    if (vc->pg == MPIDI_Process.my_pg || AREA(vc)->magic != VC_MAGIC || AREA(vc)->out ||
        vc->state == MPIDI_VC_STATE_MORIBUND || vc->state == MPIDI_VC_STATE_INACTIVE_CLOSED)
        return MPI_SUCCESS;
    return connect_vc(vc);
}

/* A collective may wait for a member that has left it because it knows of a death. */
static int connect_members(const MPIR_Comm * comm)
{
    int mpi_errno = MPI_SUCCESS;
    int i;

    for (i = 0; i < comm->remote_size && !mpi_errno; i++)
        mpi_errno = connect_other_world(comm->dev.vcrt->vcr_table[i]);
    return mpi_errno;
}

/* Receives from processes of other worlds, of whose deaths the launcher does not tell: a connection does, and nobody may
 * have had a reason to make one. */
static int connect_awaited(void)
{
    int mpi_errno = MPI_SUCCESS;
    const MPIR_Comm *seen = NULL;
    MPIR_Request *req;

    for (req = *MPID_Recvq_posted_head_ptr; req && !mpi_errno; req = req->next) {
        MPIDI_VC_t *vc;
        if (!req->comm)
            continue;
        if (req->comm != seen && (req->dev.match.parts.context_id & MPIR_CONTEXT_SUFFIX_MASK) == MPIR_CONTEXT_INTRA_COLL) {
            seen = req->comm;
            mpi_errno = connect_members(MPIDI_CH3I_Comm_outer(req->comm));
        }
        if (mpi_errno || req->dev.mask.parts.rank != (MPIDI_Rank_t) ~ 0 || req->dev.match.parts.rank < 0 ||
            req->dev.match.parts.rank >= req->comm->remote_size)
            continue;
        MPIDI_Comm_get_vc(req->comm, req->dev.match.parts.rank, &vc);
        mpi_errno = connect_other_world(vc);       /* when it fails the list may have changed */
    }
    return MPIR_ERR_GET_CLASS(mpi_errno) == MPIX_ERR_PROC_FAILED ? MPI_SUCCESS : mpi_errno;
}

/* What was lost on the way to a peer that was given up may be what others wait for, and nobody but this process knows
 * that it is lost: unless the program has said that it copes with errors, the job ends here and does not hang. Within
 * MPI_Init it cannot have said so, and is asked later. With --ft the call may fail, and those who have spawned the process
 * go on. */
static int asks_later;

static void end_unless_coped_with(void)
{
    const MPIR_Errhandler *handler = MPIR_Process.comm_world ? MPIR_Process.comm_world->errhandler : NULL;

    asks_later = MPIR_CVAR_ENABLE_FT && MPL_atomic_load_int(&MPIR_Process.mpich_state) != MPICH_MPI_STATE__INITIALIZED;
    if (asks_later)
        return;
    if (handler == NULL || handler->handle == MPI_ERRORS_ARE_FATAL || handler->handle == MPI_ERRORS_ABORT)
        MPID_Abort(MPIR_Process.comm_world, MPI_SUCCESS, 1,
                   "a peer was given up and messages to it are lost, so the job ends (MPI_ERRORS_ARE_FATAL)");
}

/* Nothing but a frame can end this wait: two polls in a row found nothing and nothing was completed in between. The
 * count is read relaxed, here and below: it only tells that something was completed. */
static int how_to_idle(int in_blocking_poll)
{
    int count = MPL_atomic_relaxed_load_int(&MPIDI_CH3I_progress_completion_count);
    int unchanged = count == progress_seen;

    progress_seen = count;
    if (MPIR_IS_THREADED)
        return ULFM_NM_IDLE_THREADED;
    if (!in_blocking_poll)
        return ULFM_NM_IDLE_TEST;
    if (!unchanged || ++empty_polls < 2)
        return ULFM_NM_IDLE_AGAIN;
    return MPID_nem_safe_to_block_recv()? ULFM_NM_IDLE_BLOCK : ULFM_NM_IDLE_WAIT;
}

static int ulfm_poll(int in_blocking_poll)
{
    int mpi_errno = MPI_SUCCESS;
    ulfm_nm_frame frame;
    int got, news, looks = 0, waited = 0;
    const int count = MPL_atomic_relaxed_load_int(&MPIDI_CH3I_progress_completion_count);
    /* In virtual time, and only a frame can end this turn of the wait: what has come need not be looked for. One frame a
     * turn, so that what is behind this function does the same whether the next has come already or not. */
    const int awaited = timed && in_blocking_poll && !MPIR_IS_THREADED && !waiting_head && !multicast_waiting &&
        !copying_head && !n_leaving && MPID_nem_safe_to_block_recv();

    blocking = in_blocking_poll;
  again:
    got = awaited && !has_held ? ulfm->next_awaited(nm, &frame) : next_frame(&frame);
    if (got) {
        int budget = 16;
        empty_polls = 0;
        do {
            if (count != MPL_atomic_relaxed_load_int(&MPIDI_CH3I_progress_completion_count) && is_early(&frame)) {
                hold(&frame);
                break;
            }
            if (!(unlikely(neighbors) && from_neighbor(&frame)) && !into_first_posted(&frame))
                mpi_errno = handle_frame(&frame);
            ulfm->release(nm, &frame);
            MPIR_ERR_CHECK(mpi_errno);
            /* Something the caller has waited for it wants at once; where messages were there before it looked there
             * are often more, and each turn of MPICH's progress for one of them costs as much as its message. */
        } while (--budget && !awaited && !has_held && !have_all_neighbors() &&
                 (!waited || count == MPL_atomic_relaxed_load_int(&MPIDI_CH3I_progress_completion_count)) &&
                 ulfm->next_at_hand(nm, &frame));
        if (unlikely(n_ending) && (last_words += 16 - budget) > LAST_WORDS)
            mpi_errno = end_all_ending();
        MPIR_ERR_CHECK(mpi_errno);
    }
    if (unlikely(multicast_waiting))
        multicast_flush();
    if (unlikely(waiting_head)) {
        MPIDI_VC_t *vc, *next;
        for (vc = waiting_head; vc; vc = next) {
            next = AREA(vc)->next_waiting;
            mpi_errno = nm_flush_vc(vc);
            MPIR_ERR_CHECK(mpi_errno);
        }
    }
    if (unlikely(icalls)) {
        mpi_errno = icoll_progress();
        MPIR_ERR_CHECK(mpi_errno);
    }
    if (unlikely(copying_head)) {
        mpi_errno = copy_pieces();
        MPIR_ERR_CHECK(mpi_errno);
        got = 1;
    }
    /* What has waited for room and has gone now is as good as something that came: the caller looks first. */
    if (!got && count == MPL_atomic_relaxed_load_int(&MPIDI_CH3I_progress_completion_count)) {
        if (unlikely(n_leaving))
            retry_leaving(0);
        news = ulfm->idle(nm, how_to_idle(in_blocking_poll), waiting_head || multicast_waiting);
        if (news == ULFM_NM_ARRIVED) {
            waited = 1;
            goto again;
        }
        if (unlikely(news == ULFM_NM_GIVEN_UP))
            look_at_all = 1;
        if (unlikely(news == ULFM_NM_LOOK || news == ULFM_NM_GIVEN_UP))
            mpi_errno = look_at_closing();
        MPIR_ERR_CHECK(mpi_errno);
        if (unlikely(news == ULFM_NM_LOOK && MPIR_CVAR_ENABLE_FT && blocking))
            mpi_errno = connect_awaited();
        MPIR_ERR_CHECK(mpi_errno);
        if (unlikely(news == ULFM_NM_LOOK))
            MPIDI_CH3I_Port_look_at_awaited();
        if (unlikely(news == ULFM_NM_GIVEN_UP || (asks_later && news == ULFM_NM_LOOK)))
            end_unless_coped_with();
    }
    if (MPIR_IS_THREADED && in_blocking_poll && (mid_message || waiting_head || multicast_waiting) && ++looks < THREADED_LOOKS &&
        count == MPL_atomic_relaxed_load_int(&MPIDI_CH3I_progress_completion_count))
        goto again;
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* ---- virtual connections ------------------------------------------------------------------------------------------ */

static int ulfm_vc_init(MPIDI_VC_t * vc)
{
    vc_area_t *area = AREA(vc);

    memset(area, 0, sizeof *area);
    area->magic = VC_MAGIC;
    area->hello_kind = HELLO_RANK;
    vc->connreq_obj = NULL;     /* CH3 sets it when somebody connects, and leaves it as it is otherwise */
    vc->ch.iStartContigMsg = ulfm_iStartContigMsg;
    vc->ch.iSendContig = ulfm_iSendContig;
    vc->ch.iSendIov = ulfm_iSendIov;
    vc->sendNoncontig_fn = ulfm_SendNoncontig;
    vc->ch.recv_active = NULL;
    vc->ch.lmt_rts_queue.head = vc->ch.lmt_rts_queue.tail = NULL;
    vc->eager_max_msg_sz = ulfm->eager_limit(nm, NULL);
    return MPI_SUCCESS;
}

static void forget_vc(MPIDI_VC_t * vc)
{
    vc_area_t *area = AREA(vc);
    close_out(vc);
    forget_questions(vc);
    forget_absentees(0, vc);
    ulfm->drop_cookie(nm, vc);
}

static int ulfm_vc_destroy(MPIDI_VC_t * vc)
{
    vc_area_t *area = AREA(vc);
    if (area->magic != VC_MAGIC)
        return MPI_SUCCESS;     /* never came to vc_init */
    if (nm)
        forget_vc(vc);
    MPL_free(area->card);
    area->card = NULL;
    area->magic = 0;
    return MPI_SUCCESS;
}

static int ulfm_connect_to_root(const char *business_card, MPIDI_VC_t * new_vc)
{
    int mpi_errno = MPI_SUCCESS;
    vc_area_t *area = AREA(new_vc);
    char card[256];
    int rc;

    rc = MPL_str_get_string_arg(business_card, CARD_KEY, card, sizeof card);
    MPIR_ERR_CHKANDJUMP(rc != MPL_SUCCESS, mpi_errno, MPI_ERR_OTHER, "**argstr_missinghost");
    mpi_errno = MPIDI_GetTagFromPort(business_card, &new_vc->port_name_tag);
    MPIR_ERR_CHECK(mpi_errno);
    area->card = MPL_strdup(card);
    area->hello_kind = HELLO_CONNECT;
    area->connector = next_connector++;
    mpi_errno = connect_vc(new_vc);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = send_own(new_vc, OWN_HELLO);    /* the acceptor learns of us by our first frame */
    MPIR_ERR_CHECK(mpi_errno);
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* The connection is over: by the close protocol, everything sent; CH3 hears of it once. */
static int finish_termination(MPIDI_VC_t * vc)
{
    AREA(vc)->terminating = 0;
    close_out(vc);
    return MPIDI_CH3U_Handle_connection(vc, MPIDI_VC_EVENT_TERMINATED);
}

/* What a connection still has to send, completed with the error. */
static int fail_queue(MPIDI_VC_t * vc, int error)
{
    int mpi_errno = MPI_SUCCESS;
    vc_area_t *area = AREA(vc);

    if (area->waiting)
        unlink_waiting(vc);
    while (area->queue.head) {
        MPIR_Request *sreq;
        MPIDI_CH3I_Sendq_dequeue(&area->queue, &sreq);
        note_failure(sreq);
        sreq->status.MPI_ERROR = error;
        mpi_errno = MPID_Request_complete(sreq);
        MPIR_ERR_CHECK(mpi_errno);
    }
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Without fault tolerance the launcher ends the job and says which rank has died, on which host and of what. It may hear
 * of it later than we do, between hosts above all, and all that it would say then is that we gave up. */
static void leave_it_to_the_launcher(const MPIDI_VC_t * vc)
{
    static int waited = 0;
    struct timespec left = { 2, 0 };

    if (waited || MPIR_CVAR_ENABLE_FT || vc->pg != MPIDI_Process.my_pg)
        return;
    waited = 1;
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

/* The other side is gone: what waits for it fails. */
static int fail_vc(MPIDI_VC_t * vc)
{
    int mpi_errno = MPI_SUCCESS;
    int error = MPI_SUCCESS;

    leave_it_to_the_launcher(vc);
    MPIR_ERR_SET1(error, MPIX_ERR_PROC_FAILED, "**comm_fail", "**comm_fail %d", vc->pg_rank);
    mpi_errno = fail_queue(vc, error);
    MPIR_ERR_CHECK(mpi_errno);
    /* CH3 takes the news once, and both it and we may have found out */
    if (vc->state == MPIDI_VC_STATE_MORIBUND || vc->state == MPIDI_VC_STATE_INACTIVE_CLOSED) {
        close_out(vc);
        goto fn_exit;
    }
    mpi_errno = fail_questions(vc, error);
    MPIR_ERR_CHECK(mpi_errno);
    if (vc->ch.recv_active) {
        MPIR_Request *rreq = vc->ch.recv_active;
        vc->ch.recv_active = NULL;
        mid_message = 0;
        note_failure(rreq);
        rreq->status.MPI_ERROR = error;
        mpi_errno = MPID_Request_complete(rreq);
        MPIR_ERR_CHECK(mpi_errno);
    }
    mpi_errno = finish_termination(vc);
    MPIR_ERR_CHECK(mpi_errno);
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* The launcher says that the process has died. What it sent before counts. */
static int read_last_words(void)
{
    int mpi_errno = MPI_SUCCESS;
    ulfm_nm_frame frame;
    int looks;

    for (looks = 0; !in_frame && looks < LAST_WORDS && next_frame(&frame); looks++) {
        mpi_errno = handle_frame(&frame);
        ulfm->release(nm, &frame);
        MPIR_ERR_CHECK(mpi_errno);
    }
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static int ulfm_vc_terminate(MPIDI_VC_t * vc)
{
    if (vc->state != MPIDI_VC_STATE_CLOSED) {
        int mpi_errno = nm ? read_last_words() : MPI_SUCCESS;
        /* Some of it may still be on its way through an emulated network: look_at_closing() goes on. On another host a
         * process may be lost that still listens. */
        if (!mpi_errno && MPIR_CVAR_ENABLE_FT && host_processes == MPIR_Process.size && nm && AREA(vc)->out &&
            ulfm->listening(AREA(vc)->out)) {
            last_words = n_ending ? last_words : 0;
            n_ending += !AREA(vc)->ending;
            AREA(vc)->ending = 1;
            return MPI_SUCCESS;
        }
        return mpi_errno ? mpi_errno : fail_vc(vc);
    }
    if (AREA(vc)->queue.head) {
        AREA(vc)->terminating = 1;      /* our last packets have to go first; poll does it */
        return MPI_SUCCESS;
    }
    return finish_termination(vc);
}

static int ulfm_get_ordering(int *ordering)
{
    *ordering = 1;
    return MPI_SUCCESS;
}

MPID_nem_netmod_funcs_t MPIDI_nem_ulfm_funcs = {
    .init = ulfm_init,
    .finalize = ulfm_finalize,
    .poll = ulfm_poll,
    .get_business_card = ulfm_get_business_card,
    .connect_to_root = ulfm_connect_to_root,
    .vc_init = ulfm_vc_init,
    .vc_destroy = ulfm_vc_destroy,
    .vc_terminate = ulfm_vc_terminate,
    .anysource_iprobe = NULL,
    .anysource_improbe = NULL,
    .get_ordering = ulfm_get_ordering,
};
