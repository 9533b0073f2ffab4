/* Who has left the collectives of a communicator (MPIDI_CH3I_Comm_leave() of ch3u_comm.c): its word to the others,
 * which comes behind all that it has sent them, and their questions. Included by ulfm_netmod.c. */

/* Somebody waits for us in a communicator in which we go on, or which is not made here. */
typedef struct question {
    MPIDI_VC_t *vc;
    MPIR_Context_id_t here, there;      /* its ids for us and for who asks */
    MPIR_Context_id_t parent;   /* of what it comes from; 0 when who asks does not know */
    int how;                    /* its id was found: MPIDI_CH3I_BY_COLLECTIVE and so on */
    struct question *next;
} question_t;

static question_t *questions;
static void answer_questions(void);
static int left_any;            /* this process has left some communicator's collectives, or could not make one */

static void send_word(MPIDI_VC_t * vc, own_pkt_t pkt)
{
    MPIR_Request *sreq = NULL;

    if (is_gone(vc))
        return;
    if (vc->state == MPIDI_VC_STATE_INACTIVE)
        MPIDI_CHANGE_VC_STATE(vc, ACTIVE);
    (void) ulfm_iStartContigMsg(vc, &pkt, sizeof pkt, NULL, 0, &sreq);
    if (sreq)
        MPIR_Request_free(sreq);
}

/* Of a communicator, by the id that its receiver receives with: see below for how. */
static void send_left(MPIDI_VC_t * vc, MPIR_Context_id_t id, int how)
{
    const own_pkt_t pkt = { OWN_TYPE, OWN_LEFT, id, 0, how, 0, 0 };

    send_word(vc, pkt);
}

/* Members that could not make their part of a window: they never come to its end (MPI_Win_free). Or that have not made the
 * communicator: they come to no agreement in it. */
typedef struct absentee {
    MPIR_Context_id_t id;       /* of the communicator, as we receive with */
    const MPIDI_VC_t *vc;       /* NULL: ourselves */
    struct absentee *next;
} absentee_t;

static absentee_t *absentees;

/* With OWN_LEFT, of the communicator: its collectives go on without us; its agreements too; we have none; we may have failed
 * in the agreement on one that comes from it. */
enum { LEFT, WILL_NOT_COME, NOT_MADE, CHILD_FAILED };

static int note_absentee(MPIR_Context_id_t id, const MPIDI_VC_t * vc)
{
    int mpi_errno = MPI_SUCCESS;
    absentee_t *one = MPIDI_CH3I_Word_alloc(sizeof *one);

    MPIR_ERR_CHKANDJUMP(!one, mpi_errno, MPI_ERR_OTHER, "**nomem");
    one->id = id;
    one->vc = vc;
    one->next = absentees;
    absentees = one;
    MPIDI_CH3_Progress_signal_completion();
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static int is_absent(const MPIR_Comm * comm, const MPIDI_VC_t * vc)
{
    const absentee_t *one;

    for (one = absentees; one; one = one->next)
        if (one->id == comm->recvcontext_id && one->vc == vc)
            return 1;
    return 0;
}

/* The window is no more, here; or, with `vc`, that connection. */
static void forget_absentees(MPIR_Context_id_t id, const MPIDI_VC_t * vc)
{
    absentee_t **at = &absentees;

    while (*at) {
        absentee_t *one = *at;
        if (vc ? one->vc == vc : one->id == id) {
            *at = one->next;
            MPIDI_CH3I_Word_free(one);
        } else {
            at = &one->next;
        }
    }
}

static void forget_all_absentees(void)
{
    while (absentees)
        forget_absentees(absentees->id, NULL);
}

/* Communicators with a dead member, or whose collectives have failed, that were freed here last: this process comes to none
 * of their collectives any more, whatever others from the same parent it agrees on. */
static struct {
    int is_noted;
    MPIR_Context_id_t id;
} freed[64];
static unsigned freed_noted;

#define FREED (sizeof freed / sizeof *freed)

static int *place_of_freed(MPIR_Context_id_t id)
{
    unsigned i;

    for (i = 0; i < FREED; i++)
        if (freed[i].is_noted && freed[i].id == id)
            return &freed[i].is_noted;
    return NULL;
}

static int was_freed(MPIR_Context_id_t id)
{
    return place_of_freed(id) != NULL;
}

static void note_freed(MPIR_Context_id_t id)
{
    const unsigned at = freed_noted++ % FREED;

    freed[at].is_noted = 1;
    freed[at].id = id;
}

/* Members of other groups that have the same parent hear of it too, and make no such communicator. Those words go when
 * the id comes again, with its next generation. */
static int left_comm_created(MPIR_Comm * comm, void *unused)
{
    absentee_t **at = &absentees;
    int *again = place_of_freed(comm->recvcontext_id);

    if (again)
        *again = 0;
    while (*at) {
        absentee_t *one = *at;
        const MPIR_Context_id_t differing = one->id ^ comm->recvcontext_id;
        if (differing && !(differing & ~MPIR_CONTEXT_GENERATION_MASK)) {
            *at = one->next;
            MPIDI_CH3I_Word_free(one);
        } else {
            at = &one->next;
        }
    }
    return MPI_SUCCESS;
}

static int left_comm_destroyed(MPIR_Comm * comm, void *unused)
{
    forget_absentees(comm->recvcontext_id, NULL);
    /* Of one whose members all live and go on, what others wait for has been sent */
    if (!MPIR_CONTEXT_READ_FIELD(SUBCOMM, comm->recvcontext_id) && !MPIR_CONTEXT_READ_FIELD(IS_LOCALCOMM, comm->context_id) &&
        ((comm->revoked & ~MPIR_COMM_FAILED_MEMBER) || MPIDI_CH3I_Comm_has_failed_member(comm)))
        note_freed(comm->recvcontext_id);
    if (questions)
        answer_questions();     /* one that is given up is asked for as long as others wait in theirs */
    return MPI_SUCCESS;
}

static int left_init(void)
{
    int mpi_errno = MPI_SUCCESS;

    if (!MPIR_CVAR_ENABLE_FT)
        goto fn_exit;
    mpi_errno = MPIDI_CH3U_Comm_register_create_hook(left_comm_created, NULL);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPIDI_CH3U_Comm_register_destroy_hook(left_comm_destroyed, NULL);
    MPIR_ERR_CHECK(mpi_errno);
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* One that is not made here, though others have it: the agreement on it has failed, or will be done yet, or it was freed.
 * Who has left anything, and does not agree on one from the same parent now in that way, is taken for one in which it has
 * failed. */
static int is_left(MPIR_Context_id_t id, MPIR_Context_id_t parent, int how)
{
    if (was_freed(id))
        return 1;
    if (MPIDI_CH3I_Comm_is_made(id))
        return !MPIDI_CH3I_Comm_goes_on(id);
    return left_any && !MPIDI_CH3I_Comm_may_come(id, parent, how);
}

/* Who has not made it comes to no agreement in it either. Who has freed it may have decided one, of which it tells. */
static int how_left(MPIR_Context_id_t id)
{
    return MPIDI_CH3I_Comm_is_made(id) || was_freed(id) ? LEFT : WILL_NOT_COME;
}

static void answer_questions(void)
{
    question_t **at = &questions;

    while (*at) {
        question_t *one = *at;
        if (is_left(one->here, one->parent, one->how)) {
            *at = one->next;
            send_left(one->vc, one->there, how_left(one->here));
            MPIDI_CH3I_Word_free(one);
        } else {
            at = &one->next;
        }
    }
}

static void forget_questions(const MPIDI_VC_t * vc)
{
    question_t **at = &questions;

    while (*at) {
        question_t *one = *at;
        if (!vc || one->vc == vc) {
            *at = one->next;
            MPIDI_CH3I_Word_free(one);
        } else {
            at = &one->next;
        }
    }
}

/* What a member has to say about a communicator. */
static int on_word(MPIDI_VC_t * vc, MPIR_Context_id_t id, int how)
{
    int mpi_errno = MPI_SUCCESS;

    if (how == CHILD_FAILED) {
        MPIDI_CH3I_Comm_mark_children(id);
        goto fn_exit;
    }
    if (how != NOT_MADE)
        mpi_errno = MPIDI_CH3I_Comm_member_left(id, vc);
    MPIR_ERR_CHECK(mpi_errno);
    if (how != LEFT)
        mpi_errno = note_absentee(id, vc);
    MPIR_ERR_CHECK(mpi_errno);
    if (how == NOT_MADE)
        mpi_errno = MPIDI_CH3I_Comm_revoked_by(id, vc);
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static int on_left(MPIDI_VC_t * vc, const own_pkt_t * pkt)
{
    int mpi_errno = MPI_SUCCESS;
    question_t *one;

    if (pkt->what == OWN_LEFT)
        return on_word(vc, (MPIR_Context_id_t) pkt->group, pkt->from);
    if (is_left((MPIR_Context_id_t) pkt->group, (MPIR_Context_id_t) pkt->number, pkt->asked)) {
        send_left(vc, (MPIR_Context_id_t) pkt->from, how_left((MPIR_Context_id_t) pkt->group));
        goto fn_exit;
    }
    one = MPIDI_CH3I_Word_alloc(sizeof *one);
    MPIR_ERR_CHKANDJUMP(!one, mpi_errno, MPI_ERR_OTHER, "**nomem");
    one->vc = vc;
    one->here = (MPIR_Context_id_t) pkt->group;
    one->there = (MPIR_Context_id_t) pkt->from;
    one->parent = (MPIR_Context_id_t) pkt->number;
    one->how = pkt->asked;
    one->next = questions;
    questions = one;
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* To the processes of a group but ourselves, by the id that they receive with. */
static void tell_group(MPIDI_VCRT_t * vcrt, int size, int self, MPIR_Context_id_t id, int how)
{
    int i;

    for (i = 0; vcrt && i < size; i++)
        if (i != self)
            send_left(vcrt->vcr_table[i], id, how);
}

/* Collectives of this communicator have failed here. */
void MPIDI_nem_ulfm_leave(MPIR_Comm * comm)
{
    const int inter = comm->comm_kind == MPIR_COMM_KIND__INTERCOMM;

    if (!nm)
        return;
    left_any = 1;
    coll_leave(comm);
    tell_group(comm->dev.vcrt, comm->remote_size, inter ? -1 : comm->rank, comm->context_id, LEFT);
    if (inter)
        tell_group(comm->dev.local_vcrt, comm->local_size, comm->rank, comm->recvcontext_id, LEFT);
    answer_questions();
}

/* A window could not be made here, after its communicator. Other members may have theirs, and end it with an agreement
 * (MPI_Win_free), to which this process does not come. */
void MPIDI_nem_ulfm_made_no_window(MPIR_Comm * comm)
{
    if (!nm || !MPIR_CVAR_ENABLE_FT)
        return;
    tell_group(comm->dev.vcrt, comm->remote_size, comm->rank, comm->context_id, WILL_NOT_COME);
    forget_absentees(comm->recvcontext_id, NULL);
}

/* This process comes to no agreement in the communicator any more. */
static void be_absent(const MPIR_Comm * comm)
{
    const int inter = comm->comm_kind == MPIR_COMM_KIND__INTERCOMM;

    if (have_been_absent(comm))
        return;
    (void) note_absentee(comm->recvcontext_id, NULL);
    tell_group(comm->dev.vcrt, comm->remote_size, inter ? -1 : comm->rank, comm->context_id, WILL_NOT_COME);
    if (inter)
        tell_group(comm->dev.local_vcrt, comm->local_size, comm->rank, comm->recvcontext_id, WILL_NOT_COME);
}

static int have_been_absent(const MPIR_Comm * comm)
{
    return is_absent(comm, NULL);
}

/* This process has not made a communicator that was to come from `from`, or has not handed it out: the others that have it
 * are to revoke it (MPIR_Comm_not_made() of commutil.c). The ids are those that the local and the remote group receive
 * with; 0: nobody there is told. */
void MPIDI_nem_ulfm_made_no_comm(MPIR_Comm * from, MPIR_Context_id_t here, MPIR_Context_id_t there)
{
    const int inter = from->comm_kind == MPIR_COMM_KIND__INTERCOMM;

    if (!nm || !MPIR_CVAR_ENABLE_FT)
        return;
    MPIDI_CH3I_Comm_forget_child(here);
    left_any = 1;
    answer_questions();
    if (here)
        tell_group(inter ? from->dev.local_vcrt : from->dev.vcrt, from->local_size, from->rank, here, NOT_MADE);
    if (inter && there)
        tell_group(from->dev.vcrt, from->remote_size, -1, there, NOT_MADE);
}

/* The same, of a single process. */
void MPIDI_nem_ulfm_tell_not_made(MPIDI_VC_t * vc, MPIR_Context_id_t id)
{
    if (nm && MPIR_CVAR_ENABLE_FT)
        send_left(vc, id, NOT_MADE);
}

/* The agreement on a communicator that was to come from this one has failed here: the others that have it ask us. */
void MPIDI_nem_ulfm_child_failed(MPIR_Comm * parent)
{
    const int inter = parent->comm_kind == MPIR_COMM_KIND__INTERCOMM;

    if (nm && MPIR_CVAR_ENABLE_FT)
        tell_group(inter ? parent->dev.local_vcrt : parent->dev.vcrt, parent->local_size, parent->rank,
                   parent->recvcontext_id, CHILD_FAILED);
}

/* An agreement on an id has ended: some questions may have waited for that. */
void MPIDI_nem_ulfm_agreed(void)
{
    if (questions)
        answer_questions();
}

/* A group could not make its communicator here (MPI_Comm_create_group). Others of it may have made theirs, and the
 * collectives of the one that it was to come from go on. */
void MPIDI_nem_ulfm_made_none(void)
{
    if (!nm || !MPIR_CVAR_ENABLE_FT)
        return;
    left_any = 1;
    answer_questions();
}

void MPIDI_nem_ulfm_ask_whether_left(MPIR_Comm * comm, MPIDI_VC_t * vc)
{
    const MPIR_Context_id_t here = comm->recvcontext_id;
    own_pkt_t pkt = { OWN_TYPE, OWN_ASK, here, 0, here, MPIDI_CH3I_Comm_born(here), 0 };
    int i, is_remote = comm->comm_kind == MPIR_COMM_KIND__INTERCOMM;

    if (!nm)
        return;
    for (i = 0; is_remote && i < comm->local_size; i++)
        is_remote = comm->dev.local_vcrt->vcr_table[i] != vc;
    if (is_remote)
        pkt.group = comm->context_id;
    pkt.number = (int32_t) MPIDI_CH3I_Comm_parent_of(here, is_remote);
    send_word(vc, pkt);
}
