/* What is on its way between the living members of a window arrives before the window goes, when a member has failed.
 *
 * Calls on such a window end where they are: a lock that was asked for may be granted later, and a lock message may lie
 * unread at a member that is about to free its window. So after the agreement of MPI_Win_free each member sends a packet
 * to every other, in the order of its messages, and waits for theirs: then it has taken in, and answered, whatever they
 * asked it for. A second round brings the answers. Nothing new begins meanwhile, for progress leaves a window alone whose
 * communicator has failed. Included by ulfm_netmod.c. */

enum { SETTLE_ROUNDS = 2 };

typedef struct settlement {
    struct settlement *next;
    uint64_t group;             /* and number: of the agreement before it */
    int32_t number;
    int32_t members;
    uint8_t *heard;             /* for each round the members whose packets have come */
} settlement_t;

static settlement_t *settlements;
static int settles_deaf;        /* there was no memory to note a packet: nobody may wait for it */
static const settlement_t *settling;    /* the one that this process waits in, for the table of waits */
static MPIR_Comm *settling_comm;
static int settling_round;

static settlement_t *find_settlement(uint64_t group, int number, int members)
{
    settlement_t *s = settlements;

    while (s && (s->group != group || s->number != number))
        s = s->next;
    if (s)
        return s->members == members ? s : NULL;
    s = MPL_calloc(1, sizeof *s, MPL_MEM_OTHER);
    if (!s)
        return NULL;
    s->heard = MPL_calloc(SETTLE_ROUNDS, rank_bytes(members), MPL_MEM_OTHER);
    if (!s->heard) {
        MPL_free(s);
        return NULL;
    }
    s->group = group;
    s->number = number;
    s->members = members;
    s->next = settlements;
    settlements = s;
    return s;
}

/* This one of the group, and those before it. */
static void drop_settlements(uint64_t group, int number)
{
    settlement_t **at = &settlements;

    while (*at) {
        settlement_t *s = *at;
        if (s->group == group && s->number <= number) {
            *at = s->next;
            MPL_free(s->heard);
            MPL_free(s);
        } else {
            at = &s->next;
        }
    }
}

static void on_settled(const own_pkt_t * pkt)
{
    const int members = pkt->members, round = pkt->asked;
    settlement_t *s;

    if (members <= 0 || pkt->from < 0 || pkt->from >= members || round < 0 || round >= SETTLE_ROUNDS)
        return;
    s = find_settlement(pkt->group, pkt->number, members);
    if (s)
        set_bit(s->heard + (size_t) round * rank_bytes(members), pkt->from);
    else
        settles_deaf = 1;
    MPIDI_CH3_Progress_signal_completion();
}

static void tell_settled(MPIR_Comm * comm, uint64_t group, int number, int round)
{
    own_pkt_t pkt = { OWN_TYPE, OWN_SETTLED, group, number, my_index(comm), round, count_members(comm) };
    int i;

    for (i = 0; i < pkt.members; i++) {
        MPIDI_VC_t *vc = member(comm, i);
        MPIR_Request *sreq = NULL;
        if (i == pkt.from || is_gone(vc))
            continue;
        if (vc->state == MPIDI_VC_STATE_INACTIVE)
            MPIDI_CHANGE_VC_STATE(vc, ACTIVE);
        (void) ulfm_iStartContigMsg(vc, &pkt, sizeof pkt, NULL, 0, &sreq);
        if (sreq)
            MPIR_Request_free(sreq);
    }
}

/* The first living member that has not come so far; -1 when there is none. */
static int first_unsettled(MPIR_Comm * comm, const settlement_t * s, int round)
{
    const uint8_t *heard = s->heard + (size_t) round * rank_bytes(s->members);
    int i;

    for (i = 0; i < s->members && !settles_deaf; i++)
        if (i != my_index(comm) && !has_bit(heard, i) && !is_away(comm, i))
            return i;
    return -1;
}

/* After an agreement, in which all have heard of the failure. Whoever could not agree waits for nobody, but holds up
 * nobody either. */
static void settle(MPIR_Comm * comm, int waits)
{
    const uint64_t group = group_of(comm);
    const int number = last_number(group);
    settlement_t *s = waits ? find_settlement(group, number, count_members(comm)) : NULL;
    MPID_Progress_state state;
    int round;

    settling = s;
    settling_comm = comm;
    MPID_Progress_start(&state);
    for (round = 0; round < SETTLE_ROUNDS; round++) {
        settling_round = round;
        tell_settled(comm, group, number, round);
        while (s && first_unsettled(comm, s, round) >= 0)
            if (MPID_Progress_wait(&state) != MPI_SUCCESS)
                s = NULL;
    }
    MPID_Progress_end(&state);
    settling = NULL;
    drop_settlements(group, number);
}
