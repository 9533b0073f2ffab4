/* Who has left the collectives of a communicator (MPIDI_CH3I_Comm_leave() of ch3u_comm.c): its word to the others,
 * which comes behind all that it has sent them, and their questions. Included by ulfm_netmod.c. */

/* Somebody waits for us in a communicator in which we go on, or which is not made here. */
typedef struct question {
    MPIDI_VC_t *vc;
    MPIR_Context_id_t here, there;      /* its ids for us and for who asks */
    struct question *next;
} question_t;

static question_t *questions;
static int left_any;            /* this process has left some communicator's collectives, or could not make one */

static void send_left(MPIDI_VC_t * vc, int what, MPIR_Context_id_t id, MPIR_Context_id_t back)
{
    own_pkt_t pkt = { OWN_TYPE, what, id, 0, back, 0, 0 };
    MPIR_Request *sreq = NULL;

    if (is_gone(vc))
        return;
    if (vc->state == MPIDI_VC_STATE_INACTIVE)
        MPIDI_CHANGE_VC_STATE(vc, ACTIVE);
    (void) ulfm_iStartContigMsg(vc, &pkt, sizeof pkt, NULL, 0, &sreq);
    if (sreq)
        MPIR_Request_free(sreq);
}

/* Members that could not make their part of a window: they never come to its end (MPI_Win_free). */
typedef struct absentee {
    MPIR_Context_id_t id;       /* of the window's communicator, as we receive with */
    const MPIDI_VC_t *vc;
    struct absentee *next;
} absentee_t;

static absentee_t *absentees;

#define WILL_NOT_COME 1         /* with OWN_LEFT */

static int note_absentee(MPIR_Context_id_t id, const MPIDI_VC_t * vc)
{
    int mpi_errno = MPI_SUCCESS;
    absentee_t *one = MPL_malloc(sizeof *one, MPL_MEM_COMM);

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
            MPL_free(one);
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

/* One that is not made here, though others have it: the call that makes it has failed, or will be done yet. Who has
 * left anything is taken for one in which it has failed. */
static int is_left(MPIR_Context_id_t id)
{
    return !MPIDI_CH3I_Comm_goes_on(id) && (MPIDI_CH3I_Comm_is_made(id) || left_any);
}

static void answer_questions(void)
{
    question_t **at = &questions;

    while (*at) {
        question_t *one = *at;
        if (is_left(one->here)) {
            *at = one->next;
            send_left(one->vc, OWN_LEFT, one->there, 0);
            MPL_free(one);
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
            MPL_free(one);
        } else {
            at = &one->next;
        }
    }
}

static int on_left(MPIDI_VC_t * vc, const own_pkt_t * pkt)
{
    int mpi_errno = MPI_SUCCESS;
    question_t *one;

    if (pkt->what == OWN_LEFT) {
        MPIDI_CH3I_Comm_member_left((MPIR_Context_id_t) pkt->group, vc);
        if (pkt->from == WILL_NOT_COME)
            mpi_errno = note_absentee((MPIR_Context_id_t) pkt->group, vc);
        goto fn_exit;
    }
    if (is_left((MPIR_Context_id_t) pkt->group)) {
        send_left(vc, OWN_LEFT, (MPIR_Context_id_t) pkt->from, 0);
        goto fn_exit;
    }
    one = MPL_malloc(sizeof *one, MPL_MEM_COMM);
    MPIR_ERR_CHKANDJUMP(!one, mpi_errno, MPI_ERR_OTHER, "**nomem");
    one->vc = vc;
    one->here = (MPIR_Context_id_t) pkt->group;
    one->there = (MPIR_Context_id_t) pkt->from;
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
            send_left(vcrt->vcr_table[i], OWN_LEFT, id, how);
}

/* Collectives of this communicator have failed here. */
void MPIDI_nem_ulfm_leave(MPIR_Comm * comm)
{
    const int inter = comm->comm_kind == MPIR_COMM_KIND__INTERCOMM;

    if (!nm)
        return;
    left_any = 1;
    coll_leave(comm);
    tell_group(comm->dev.vcrt, comm->remote_size, inter ? -1 : comm->rank, comm->context_id, 0);
    if (inter)
        tell_group(comm->dev.local_vcrt, comm->local_size, comm->rank, comm->recvcontext_id, 0);
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
    int i, ours = 0;

    if (!nm)
        return;
    for (i = 0; comm->comm_kind == MPIR_COMM_KIND__INTERCOMM && i < comm->local_size; i++)
        ours |= comm->dev.local_vcrt->vcr_table[i] == vc;
    send_left(vc, OWN_ASK, ours ? comm->recvcontext_id : comm->context_id, comm->recvcontext_id);
}
