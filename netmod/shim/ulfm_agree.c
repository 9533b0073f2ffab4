/* Agreement among the living members of a communicator, for MPIX_Comm_agree and MPIX_Comm_shrink.
 *
 * Each member gives a vote to the coordinator, the lowest rank that it does not know to have failed. The coordinator
 * joins the votes, and when it has one of every member that has not failed it tells all the decision. When a
 * coordinator dies, the members vote again with the next one, and that one asks everybody first: whoever has a decision
 * already answers with it, so that two processes that live never end with different ones. A decision stays known until
 * the next agreement of the communicator is decided, for that needs the vote of every living member, all of whom have
 * left this one. A vote may come before its receiver enters the agreement, and find no memory there: who has ever lost one
 * asks for those that are missing. This needs a failure detector that errs for a while only by not knowing; on a host a process that has
 * ended is known to have ended. Coordinators that take turns are those of Chandra and Toueg, "Unreliable failure
 * detectors for reliable distributed systems" (1996), section 6; the detector spares the majority.
 *
 * Votes travel as packets of the netmod, so they are answered from any call that makes progress, and a revoked
 * communicator does not stop them. Included by ulfm_netmod.c. */

/* What is agreed on: flags by AND, failures by OR, acknowledged failures by AND, context ids that are free by AND, and
 * the largest of the generations that they offer. */
typedef struct ballot {
    uint32_t flag;
    uint32_t members;
    uint32_t generation;
    uint32_t contexts[MPIR_CONTEXT_WINDOW];
    uint8_t ranks[];            /* bits of the failed ones, of the acknowledged ones, of those that have no such communicator */
} ballot_t;

typedef struct agreement {
    struct agreement *next;
    uint64_t group;             /* which communicator, see group_of() */
    int32_t number;             /* of the group's agreements, from 0 */
    int32_t members;
    int coordinator;            /* whom we gave our vote to */
    int entered, decided, asked;
    uint8_t *voted;             /* members whose votes are in the ballot */
    ballot_t *ballot;           /* votes so far, then the decision */
} agreement_t;

static agreement_t *agreements; /* the newest first */
static int has_lost_votes;      /* some vote came to this process that it could not keep */
static const agreement_t *agreeing;     /* the one that this process waits in, for the table of waits */
static MPIR_Comm *agreeing_comm;

/* More than any job has: a ballot that says so is none. */
#define MOST_MEMBERS (1u << 24)

/* How many finished ones are kept, of communicators that are no more. */
#define OLD_AGREEMENTS 64

static size_t rank_bytes(int members) { return ((size_t) members + 7) / 8; }
static size_t ballot_bytes(int members) { return sizeof(ballot_t) + 3 * rank_bytes(members); }
static uint8_t *failed_bits(ballot_t * b) { return b->ranks; }
static uint8_t *acked_bits(ballot_t * b) { return b->ranks + rank_bytes((int) b->members); }
static uint8_t *absent_bits(ballot_t * b) { return b->ranks + 2 * rank_bytes((int) b->members); }
static int has_bit(const uint8_t * bits, int i) { return bits[i / 8] >> (i % 8) & 1; }
static void set_bit(uint8_t * bits, int i) { bits[i / 8] |= (uint8_t) (1 << (i % 8)); }

/* ---- members ----------------------------------------------------------------------------------------------------- */

/* Both groups of an intercommunicator, in the same order for all. */
static int count_members(const MPIR_Comm * comm)
{
    return comm->comm_kind == MPIR_COMM_KIND__INTERCOMM ? comm->local_size + comm->remote_size : comm->local_size;
}

static MPIDI_VC_t *member(const MPIR_Comm * comm, int i)
{
    const int intercomm = comm->comm_kind == MPIR_COMM_KIND__INTERCOMM;
    const int first = comm->is_low_group ? comm->local_size : comm->remote_size;
    if (!intercomm)
        return comm->dev.vcrt->vcr_table[i];
    if ((i < first) == (comm->is_low_group != 0))
        return comm->dev.local_vcrt->vcr_table[i < first ? i : i - first];
    return comm->dev.vcrt->vcr_table[i < first ? i : i - first];
}

/* The member that has this rank in our group, or in the remote one. */
static int index_of(const MPIR_Comm * comm, int rank, int is_remote)
{
    if (comm->comm_kind == MPIR_COMM_KIND__INTERCOMM && is_remote == (comm->is_low_group != 0))
        return (is_remote ? comm->local_size : comm->remote_size) + rank;
    return rank;
}

static int my_index(const MPIR_Comm * comm)
{
    return index_of(comm, comm->rank, 0);
}

/* Whoever has left MPI gives no votes either. */
static int is_gone(const MPIDI_VC_t * vc)
{
    return vc->state == MPIDI_VC_STATE_MORIBUND || vc->state == MPIDI_VC_STATE_INACTIVE_CLOSED ||
        MPIDI_CH3U_Failed_index(vc) >= 0;
}

/* ulfm_left.c */
void MPIDI_nem_ulfm_ask_whether_left(MPIR_Comm * comm, MPIDI_VC_t * vc);
static int is_absent(const MPIR_Comm * comm, const MPIDI_VC_t * vc);
static void be_absent(const MPIR_Comm * comm);
static int have_been_absent(const MPIR_Comm * comm);

/* Nobody waits for this member. */
static int is_away(const MPIR_Comm * comm, int i)
{
    const MPIDI_VC_t *vc = member(comm, i);
    return is_gone(vc) || is_absent(comm, vc);
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    while (n--)
        hash = (hash ^ *p++) * 0x100000001b3ull;        /* FNV-1a */
    return hash;
}

/* The same number at all members; a later communicator of the same members and context id has it too. */
static uint64_t group_of(const MPIR_Comm * comm)
{
    uint64_t hash = 0xcbf29ce484222325ull;
    const int n = count_members(comm);
    MPIR_Context_id_t id = comm->context_id < comm->recvcontext_id ? comm->context_id : comm->recvcontext_id;
    int i;

    hash = mix(hash, &id, sizeof id);
    for (i = 0; i < n; i++) {
        const MPIDI_VC_t *vc = member(comm, i);
        hash = mix(hash, vc->pg->id, strlen((const char *) vc->pg->id));
        hash = mix(hash, &vc->pg_rank, sizeof vc->pg_rank);
    }
    return hash;
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

/* How many agreements each group has begun here. A later communicator of the same members and context id goes on from
 * there: with numbers of its own from 0 a vote of its first agreement would get the decision of an earlier one from
 * whoever still keeps that. All members count the same, for each agreement needs all of them that live. */
static struct {
    uint64_t group;
    int32_t begun;
} *counts;
static int groups_counted, room_for_counts;

/* The number of the group's next agreement; -1 without memory. */
static int next_number(uint64_t group)
{
    int i = groups_counted;

    while (--i >= 0)            /* the newest ones first */
        if (counts[i].group == group)
            return counts[i].begun++;
    if (groups_counted == room_for_counts) {
        const int room = room_for_counts ? 2 * room_for_counts : 16;
        void *more = MPL_realloc(counts, (size_t) room * sizeof *counts, MPL_MEM_OTHER);
        if (!more)
            return -1;
        counts = more;
        room_for_counts = room;
    }
    counts[groups_counted].group = group;
    counts[groups_counted++].begun = 1;
    return 0;
}

/* Of the one that the group has begun last. */
static int last_number(uint64_t group)
{
    int i = groups_counted;

    while (--i >= 0)
        if (counts[i].group == group)
            return counts[i].begun - 1;
    return -1;
}

static agreement_t *find_agreement(uint64_t group, int number)
{
    agreement_t *a = agreements;
    while (a && (a->group != group || a->number != number))
        a = a->next;
    return a;
}

static agreement_t *make_agreement(uint64_t group, int number, int members)
{
    agreement_t *a = MPL_calloc(1, sizeof *a, MPL_MEM_OTHER);
    if (!a)
        return NULL;
    a->group = group;
    a->number = number;
    a->members = members;
    a->voted = MPL_calloc(1, rank_bytes(members), MPL_MEM_OTHER);
    a->ballot = MPL_calloc(1, ballot_bytes(members), MPL_MEM_OTHER);
    if (!a->voted || !a->ballot) {
        MPL_free(a->voted);
        MPL_free(a->ballot);
        MPL_free(a);
        return NULL;
    }
    a->ballot->flag = ~0u;
    a->ballot->members = (uint32_t) members;
    memset(a->ballot->contexts, 0xff, sizeof a->ballot->contexts);
    memset(acked_bits(a->ballot), 0xff, rank_bytes(members));
    a->next = agreements;
    agreements = a;
    return a;
}

/* Those that nobody can ask about, and the oldest ones. */
static void drop_agreements(uint64_t group, int below)
{
    agreement_t **p = &agreements;
    int old = 0;
    while (*p) {
        agreement_t *a = *p;
        if ((a->group == group && a->number < below) || (a->decided && ++old > OLD_AGREEMENTS)) {
            *p = a->next;
            MPL_free(a->voted);
            MPL_free(a->ballot);
            MPL_free(a);
        } else {
            p = &a->next;
        }
    }
}

static void join_ballot(ballot_t * sum, const ballot_t * other)
{
    const size_t n = rank_bytes((int) sum->members);
    size_t i;

    sum->flag &= other->flag;
    sum->generation = MPL_MAX(sum->generation, other->generation);
    for (i = 0; i < MPIR_CONTEXT_WINDOW; i++)
        sum->contexts[i] &= other->contexts[i];
    for (i = 0; i < n; i++) {
        sum->ranks[i] |= other->ranks[i];
        sum->ranks[n + i] &= other->ranks[n + i];
        sum->ranks[2 * n + i] |= other->ranks[2 * n + i];
    }
}

/* ---- packets ----------------------------------------------------------------------------------------------------- */

/* A ballot as it is sent, perhaps to several members. It stays until all have it. */
typedef struct parcel {
    int users;
    size_t length;
    uint8_t bytes[];
} parcel_t;

/* NULL without memory. The caller is its first user. */
static parcel_t *make_parcel(const ballot_t * ballot, int members)
{
    const size_t length = ballot_bytes(members);
    parcel_t *parcel = MPL_malloc(sizeof *parcel + length, MPL_MEM_OTHER);

    if (!parcel)
        return NULL;
    parcel->users = 1;
    parcel->length = length;
    MPIR_Memcpy(parcel->bytes, ballot, length);
    return parcel;
}

static void leave_parcel(parcel_t * parcel)
{
    if (parcel && --parcel->users == 0)
        MPL_free(parcel);
}

static int parcel_sent(MPIR_Request * sreq)
{
    leave_parcel(sreq->dev.tmpbuf);
    sreq->dev.tmpbuf = NULL;
    return MPI_SUCCESS;
}

/* Whoever cannot be reached is found to have failed, here or by the launcher's word; that is no error of ours. A question
 * has no parcel. */
static void send_agreement(MPIDI_VC_t * vc, int what, int asked, int from, const agreement_t * a, parcel_t * parcel)
{
    own_pkt_t pkt = { OWN_TYPE, what, a->group, a->number, from, asked, 0 };
    MPIR_Request *sreq = NULL;

    if (is_gone(vc))
        return;
    if (vc->state == MPIDI_VC_STATE_INACTIVE)
        MPIDI_CHANGE_VC_STATE(vc, ACTIVE);
    (void) ulfm_iStartContigMsg(vc, &pkt, sizeof pkt, parcel ? parcel->bytes : NULL,
                                parcel ? (intptr_t) parcel->length : 0, &sreq);
    if (!sreq)
        return;
    if (parcel) {
        parcel->users++;
        sreq->dev.tmpbuf = parcel;
        sreq->dev.request_completed_cb = parcel_sent;
    }
    MPIR_Request_free(sreq);
}

/* To one that has missed the decision. */
static void send_decision(MPIDI_VC_t * vc, int from, const agreement_t * a)
{
    parcel_t *parcel = make_parcel(a->ballot, a->members);

    if (parcel)
        send_agreement(vc, OWN_DECISION, 1, from, a, parcel);
    leave_parcel(parcel);
}

static int on_agreement(MPIDI_VC_t * vc, const own_pkt_t * pkt, const ulfm_nm_frame * frame);

/* A vote or a decision that comes in several frames. */
typedef struct long_ballot {
    own_pkt_t pkt;
    size_t length;
    ballot_t ballot;
} long_ballot_t;

static int long_ballot_is_whole(MPIDI_VC_t * vc, MPIR_Request * rreq, int *complete)
{
    const long_ballot_t *whole = rreq->dev.tmpbuf;
    const ulfm_nm_frame frame = {.header = &whole->pkt,.header_length = sizeof whole->pkt,.data = &whole->ballot,
        .length = whole->length
    };
    int mpi_errno = on_agreement(vc, &whole->pkt, &frame);

    *complete = 1;
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPID_Request_complete(rreq);
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Also of one whose sender has died in the middle. */
static int leave_long_ballot(MPIR_Request * rreq)
{
    MPL_free(rreq->dev.tmpbuf);
    rreq->dev.tmpbuf = NULL;
    return MPI_SUCCESS;
}

/* Its first frame. What follows is taken in as that of a message is. */
static void begin_long_ballot(MPIDI_VC_t * vc, const own_pkt_t * pkt, const ulfm_nm_frame * frame, size_t length)
{
    MPIR_Request *rreq = MPIR_Request_create(MPIR_REQUEST_KIND__RECV);
    long_ballot_t *whole = rreq ? MPL_malloc(offsetof(long_ballot_t, ballot) + length, MPL_MEM_BUFFER) : NULL;

    if (!whole) {
        has_lost_votes = 1;
        if (rreq)
            MPIR_Request_free(rreq);
        return;
    }
    whole->pkt = *pkt;
    whole->length = length;
    MPIR_Memcpy(&whole->ballot, frame->data, frame->length);
    rreq->dev.tmpbuf = whole;
    rreq->dev.iov[0].iov_base = (char *) &whole->ballot + frame->length;
    rreq->dev.iov[0].iov_len = length - frame->length;
    rreq->dev.iov_offset = 0;
    rreq->dev.iov_count = 1;
    rreq->dev.OnDataAvail = long_ballot_is_whole;
    rreq->dev.request_completed_cb = leave_long_ballot;
    vc->ch.recv_active = rreq;
    mid_message = 1;
}

/* A vote, a question or a decision of another member. */
static int on_agreement(MPIDI_VC_t * vc, const own_pkt_t * pkt, const ulfm_nm_frame * frame)
{
    const ballot_t *ballot = frame->data;
    agreement_t *a = find_agreement(pkt->group, pkt->number);

    if (frame->header_length < sizeof *pkt)
        return MPI_SUCCESS;
    if (pkt->what != OWN_QUESTION && frame->length >= offsetof(ballot_t, generation) &&
        ballot->members <= MOST_MEMBERS && frame->length < ballot_bytes((int) ballot->members)) {
        begin_long_ballot(vc, pkt, frame, ballot_bytes((int) ballot->members));
        return MPI_SUCCESS;
    }
    if (pkt->what != OWN_QUESTION &&
        (frame->length < sizeof *ballot || frame->length != ballot_bytes((int) ballot->members) ||
         pkt->from < 0 || pkt->from >= (int) ballot->members || (a && a->members != (int) ballot->members)))
        return MPI_SUCCESS;
    if (a && a->decided) {
        if (pkt->what != OWN_DECISION)
            send_decision(vc, pkt->from, a);
        return MPI_SUCCESS;
    }
    if (pkt->what == OWN_VOTE) {
        if (!a)
            a = make_agreement(pkt->group, pkt->number, (int) ballot->members);
        if (!a) {
            has_lost_votes = 1;
        } else if (!has_bit(a->voted, pkt->from)) {
            set_bit(a->voted, pkt->from);
            join_ballot(a->ballot, ballot);
        }
    } else if (pkt->what == OWN_QUESTION && a && a->entered && pkt->from == a->coordinator) {
        a->coordinator = -1;    /* who asks has not got our vote, or will get it twice */
    } else if (pkt->what == OWN_DECISION && a && a->entered && (pkt->asked || pkt->from >= a->coordinator)) {
        MPIR_Memcpy(a->ballot, ballot, frame->length);
        a->decided = 1;
    }
    MPIDI_CH3_Progress_signal_completion();
    return MPI_SUCCESS;
}

/* ---- an agreement ------------------------------------------------------------------------------------------------ */

static void note_own_failures(MPIR_Comm * comm, ballot_t * ballot, uint8_t * acked)
{
    int i;
    for (i = 0; i < count_members(comm); i++) {
        const MPIDI_VC_t *vc = member(comm, i);
        const int at = MPIDI_CH3U_Failed_index(vc);
        if (i == my_index(comm))
            continue;
        if (at >= 0 || is_gone(vc))
            set_bit(failed_bits(ballot), i);
        if (is_absent(comm, vc) && !comm->dev.ends_with_members)
            set_bit(absent_bits(ballot), i);
        if (acked && at >= 0 && at < comm->dev.last_ack_rank)
            set_bit(acked, i);
    }
}

static int first_alive(MPIR_Comm * comm)
{
    int i = 0;
    while (i != my_index(comm) && is_away(comm, i))
        i++;
    return i;
}

/* The first living member whose vote is missing, as its coordinator sees it; -1 when there is none. */
static int first_without_vote(MPIR_Comm * comm, const agreement_t * a)
{
    int i;
    for (i = 0; i < a->members; i++)
        if (i != my_index(comm) && !has_bit(a->voted, i) && !is_away(comm, i))
            return i;
    return -1;
}

static void notify_all(MPIR_Comm * comm, int what, const agreement_t * a, parcel_t * parcel)
{
    int i;
    for (i = 0; i < a->members; i++)
        if (i != my_index(comm) && (what == OWN_DECISION || !has_bit(a->voted, i)))
            send_agreement(member(comm, i), what, 0, my_index(comm), a, parcel);
}

/* One look at what is to be done next: vote, ask, or decide. Nothing is decided that could not be told. */
static int go_on_agreeing(MPIR_Comm * comm, agreement_t * a, const ballot_t * own)
{
    int mpi_errno = MPI_SUCCESS;
    const int me = my_index(comm);
    const int coordinator = first_alive(comm);
    parcel_t *parcel = NULL;

    if (coordinator != me) {
        if (coordinator == a->coordinator)
            goto fn_exit;
        parcel = make_parcel(own, a->members);
        MPIR_ERR_CHKANDJUMP(!parcel, mpi_errno, MPI_ERR_OTHER, "**nomem");
        a->coordinator = coordinator;
        send_agreement(member(comm, coordinator), OWN_VOTE, 0, me, a, parcel);
        goto fn_exit;
    }
    a->coordinator = me;
    if ((me > 0 || has_lost_votes) && !a->asked) {
        a->asked = 1;           /* the one before may have told somebody already; or votes have come, and are gone */
        notify_all(comm, OWN_QUESTION, a, NULL);
    }
    if (!has_bit(a->voted, me)) {
        set_bit(a->voted, me);
        join_ballot(a->ballot, own);
    }
    if (first_without_vote(comm, a) < 0) {
        note_own_failures(comm, a->ballot, NULL);
        parcel = make_parcel(a->ballot, a->members);
        MPIR_ERR_CHKANDJUMP(!parcel, mpi_errno, MPI_ERR_OTHER, "**nomem");
        a->decided = 1;
        notify_all(comm, OWN_DECISION, a, parcel);
    }
  fn_exit:
    leave_parcel(parcel);
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Members that have not made this communicator are found, once it is known that there may be such. */
static void ask_for_absentees(MPIR_Comm * comm, int *have_asked)
{
    int i;

    if (*have_asked || !MPIDI_CH3I_Comm_is_left_child(comm->recvcontext_id))
        return;
    *have_asked = 1;
    for (i = 0; i < count_members(comm); i++)
        if (i != my_index(comm) && !is_away(comm, i))
            MPIDI_nem_ulfm_ask_whether_left(comm, member(comm, i));
}

/* Agrees on `own`, which becomes the decision. A process that once cannot, for want of memory, has no part in the
 * communicator's agreements any more: the others go on without it. */
static int agree(MPIR_Comm * comm, ballot_t * own)
{
    int mpi_errno = MPI_SUCCESS;
    const uint64_t group = group_of(comm);
    const int number = next_number(group);
    agreement_t *a = find_agreement(group, number);
    MPID_Progress_state state;
    int i, have_asked = 0;

    MPIR_ERR_CHKANDJUMP(!own || number < 0 || have_been_absent(comm), mpi_errno, MPI_ERR_OTHER, "**nomem");
    if (!a)
        a = make_agreement(group, number, count_members(comm));
    MPIR_ERR_CHKANDJUMP(!a, mpi_errno, MPI_ERR_OTHER, "**nomem");
    a->entered = 1;
    a->coordinator = -1;
    agreeing = a;
    agreeing_comm = comm;
    MPID_Progress_start(&state);
    for (;;) {
        /* Others may wait for this process in a collective, to which it will not come: with a dead member all of them fail */
        if ((comm->revoked & MPIR_COMM_FAILED_MEMBER) && !(comm->revoked & MPIR_COMM_LOST_MEMBER) &&
            MPIDI_CH3I_Comm_has_failed_member(comm))
            MPIDI_CH3I_Comm_leave(comm);
        ask_for_absentees(comm, &have_asked);
        mpi_errno = go_on_agreeing(comm, a, own);
        if (mpi_errno || a->decided)
            break;
        mpi_errno = MPID_Progress_wait(&state);
        if (mpi_errno)
            break;
    }
    MPID_Progress_end(&state);
    agreeing = NULL;
    MPIR_ERR_CHECK(mpi_errno);
    MPIR_Memcpy(own, a->ballot, ballot_bytes(a->members));
    drop_agreements(group, number);
    /* Now known to all, so that who acknowledges failures next acknowledges the same ones. */
    for (i = 0; i < count_members(comm); i++) {
        MPIDI_VC_t *vc = member(comm, i);
        if (i == my_index(comm) || !has_bit(failed_bits(own), i) || is_gone(vc))
            continue;
        mpi_errno = fail_vc(vc);
        MPIR_ERR_CHECK(mpi_errno);
    }
  fn_exit:
    return mpi_errno;
  fn_fail:
    if (!a || !a->decided)
        be_absent(comm);
    goto fn_exit;
}

static ballot_t *make_ballot(MPIR_Comm * comm, uint32_t flag)
{
    const int members = count_members(comm);
    ballot_t *own = MPL_calloc(1, ballot_bytes(members), MPL_MEM_OTHER);
    if (!own)
        return NULL;
    own->flag = flag;
    own->members = (uint32_t) members;
    memset(own->contexts, 0xff, sizeof own->contexts);
    (void) MPIDI_CH3U_Check_for_failed_procs();
    note_own_failures(comm, own, acked_bits(own));
    return own;
}

/* ---- what MPICH calls: see the patches to comm_impl.c ------------------------------------------------------------ */

int MPIDI_nem_ulfm_agrees(void)
{
    return nm != NULL;
}

static void settle(MPIR_Comm * comm, int waits);        /* ulfm_settle.c */

static int has_failures(ballot_t * decision)
{
    size_t i = 0;

    while (i < rank_bytes((int) decision->members) && !failed_bits(decision)[i])
        i++;
    return i < rank_bytes((int) decision->members);
}

int MPIDI_nem_ulfm_agree(MPIR_Comm * comm, int *flag)
{
    int mpi_errno = MPI_SUCCESS;
    ballot_t *own = make_ballot(comm, (uint32_t) * flag);
    int i;

    mpi_errno = agree(comm, own);
    if (comm->dev.ends_with_members && (mpi_errno || has_failures(own)))
        settle(comm, !mpi_errno);
    if (comm->dev.ends_with_members)
        forget_absentees(comm->recvcontext_id, NULL);
    MPIR_ERR_CHECK(mpi_errno);
    *flag = (int) own->flag;
    for (i = 0; i < (int) own->members; i++)
        if ((has_bit(failed_bits(own), i) && !has_bit(acked_bits(own), i)) || has_bit(absent_bits(own), i))
            MPIR_ERR_SETANDJUMP(mpi_errno, MPIX_ERR_PROC_FAILED, "**mpix_comm_agree");
  fn_exit:
    MPL_free(own);
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* The ranks of our group, or of the remote one, that the decision leaves, in their order; NULL without memory. */
static int *ranks_of_living(const MPIR_Comm * comm, ballot_t * decision, int is_remote, int *n)
{
    const int size = is_remote ? comm->remote_size : comm->local_size;
    int *ranks = MPL_malloc((size_t) size * sizeof(int), MPL_MEM_OTHER);
    int i;

    *n = 0;
    for (i = 0; ranks && i < size; i++) {
        const int at = index_of(comm, i, is_remote);
        if (!has_bit(failed_bits(decision), at) && !has_bit(absent_bits(decision), at))
            ranks[(*n)++] = i;
    }
    return ranks;
}

static int rank_among(const int *ranks, int n, int rank)
{
    int i = 0;

    while (i < n && ranks[i] < rank)
        i++;
    return i;
}

/* The communicator of the living with that context id, which all of them know: nothing is left to say. NULL when an
 * intercommunicator would have nobody on the other side. */
static int make_communicator(MPIR_Comm * comm, ballot_t * decision, MPIR_Context_id_t id, MPIR_Comm ** newcomm_p)
{
    int mpi_errno = MPI_SUCCESS;
    const int inter = comm->comm_kind == MPIR_COMM_KIND__INTERCOMM;
    int n, m;
    int *here = ranks_of_living(comm, decision, 0, &n), *there = ranks_of_living(comm, decision, inter, &m);
    MPIR_Comm *newcomm = NULL;

    MPIR_ERR_CHKANDJUMP(!here || !there, mpi_errno, MPI_ERR_OTHER, "**nomem");
    if (m == 0) {
        MPIR_Free_contextid(id);
        goto fn_exit;
    }
    mpi_errno = MPIR_Comm_create(&newcomm);
    MPIR_ERR_CHECK(mpi_errno);
    newcomm->context_id = newcomm->recvcontext_id = id;
    newcomm->comm_kind = comm->comm_kind;
    newcomm->is_low_group = comm->is_low_group;
    newcomm->rank = rank_among(here, n, comm->rank);
    newcomm->local_size = n;
    newcomm->remote_size = m;
    mpi_errno = MPII_Comm_create_map(n, m, here, there, comm, newcomm);
    MPIR_ERR_CHECK(mpi_errno);
    newcomm->errhandler = comm->errhandler;
    if (comm->errhandler)
        MPIR_Errhandler_add_ref(comm->errhandler);
    newcomm->tainted = 1;
    mpi_errno = MPIR_Comm_commit(newcomm);
    MPIR_ERR_CHECK(mpi_errno);
    *newcomm_p = newcomm;
  fn_exit:
    MPL_free(here);
    MPL_free(there);
    return mpi_errno;
  fn_fail:
    MPIR_Comm_not_made(comm, newcomm, id, inter ? id : 0);
    goto fn_exit;
}

/* The id by which threads of all members take turns: that of an intercommunicator's low group. A member of the other one
 * may have something else with it, which group_of() tells apart. */
static MPIR_Context_id_t common_id(const MPIR_Comm * comm)
{
    return comm->comm_kind == MPIR_COMM_KIND__INTERCOMM && !comm->is_low_group ? comm->context_id : comm->recvcontext_id;
}

/* Agrees once: `decision` with the failed ones, and an id that all have free; 0 when some process offered none, because
 * another thread has the ids there or `turn` is NULL, which the flag of the decision then says. */
static int agree_on_id(MPIR_Comm * comm, MPIR_Contextid_turn_t * turn, ballot_t ** decision, MPIR_Context_id_t * id)
{
    int mpi_errno = MPI_SUCCESS;
    int has_offered = 0;
    ballot_t *own = make_ballot(comm, ~0u);

    *id = 0;
    if (own && turn)
        MPIR_Contextid_offer(turn, own->contexts, &own->generation, &has_offered);
    if (own && !has_offered)
        own->flag = 0;
    mpi_errno = agree(comm, own);
    MPIR_ERR_CHKANDJUMP(!own, mpi_errno, MPI_ERR_OTHER, "**nomem");
    if (mpi_errno)
        memset(own->contexts, 0, sizeof own->contexts);
    if (has_offered)
        MPIR_Contextid_take(mpi_errno || own->flag ? own->contexts : NULL, own->generation, id);
    if (mpi_errno && !own->flag)
        be_absent(comm);        /* the others go on to another agreement */
    MPIR_ERR_CHECK(mpi_errno);
  fn_exit:
    *decision = own;
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_nem_ulfm_shrink(MPIR_Comm * comm, MPIR_Comm ** newcomm_p)
{
    int mpi_errno = MPI_SUCCESS;
    ballot_t *own = NULL;
    MPIR_Context_id_t id = 0;
    MPIR_Contextid_turn_t turn;

    *newcomm_p = NULL;
    MPIDI_CH3I_Comm_begin_shrunk(comm);
    /* Who has the ids keeps them from other calls until all members have come, which they may do in another order: where
     * there may be such calls a first agreement brings all, and no id */
    if (MPIR_IS_THREADED || MPIR_Contextid_is_looked_for())
        mpi_errno = agree_on_id(comm, NULL, &own, &id);
    MPIR_Contextid_begin(&turn, common_id(comm), group_of(comm));
    while (!mpi_errno && !(own && own->flag)) {
        if (own) {              /* others have the ids: let them go on */
            (void) MPID_Progress_test(NULL);
            MPID_THREAD_CS_YIELD(GLOBAL, MPIR_THREAD_GLOBAL_ALLFUNC_MUTEX);
        }
        MPL_free(own);
        mpi_errno = agree_on_id(comm, &turn, &own, &id);
    }
    MPIR_Contextid_end(&turn);
    MPIDI_CH3I_Comm_end_shrunk(comm, id);
    MPIR_ERR_CHECK(mpi_errno);
    MPIR_ERR_CHKANDJUMP(id == 0, mpi_errno, MPI_ERR_OTHER, "**toomanycomm");
    MPIR_ERR_CHKANDJUMP1(has_bit(failed_bits(own), my_index(comm)), mpi_errno, MPIX_ERR_PROC_FAILED, "**comm_fail",
                         "**comm_fail %d", comm->rank);
    mpi_errno = make_communicator(comm, own, id, newcomm_p);
    MPIR_ERR_CHECK(mpi_errno);
  fn_exit:
    MPL_free(own);
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}
