/* MPI's blocking collectives through a segment that the ranks of a communicator share, or by the network's multicast
 * (ulfm_multicast.c). Part of ulfm_netmod.c.
 *
 * MPICH's MPIR_*_impl functions ask here first (see the patch). Whether a call goes this way must be the same in every
 * rank, so it depends on nothing but what MPI says is the same in every rank: the communicator, how many calls there
 * were on it, the operation, and the bytes. Types may differ between ranks, so they play no part where data only move:
 * what is not contiguous is packed first. */

static int ready_to_send(MPIDI_VC_t * vc);

/* What a collective of a communicator that has been revoked, or has lost a member, ends with. */
static int coll_ended(const MPIR_Comm * comm)
{
    int mpi_errno = MPI_SUCCESS;
    if ((comm->revoked & MPIR_COMM_REVOKED) && !comm->dev.ends_with_members)
        MPIR_ERR_SET(mpi_errno, MPIX_ERR_REVOKED, "**revoked");
    else
        MPIR_ERR_SET(mpi_errno, MPIX_ERR_PROC_FAILED, "**proc_failed");
    return mpi_errno;
}

#include "ulfm_multicast.c"

typedef struct coll_state {
    ulfm_coll *coll;            /* NULL: none (yet) */
    coll_multicast_t *multicast;        /* the same */
    int calls;                  /* that might have gone this way */
    size_t ahead;               /* bytes of calls that go by messages in any case, see coll_without */
    int opening;                /* the ranks are making one, or in a part of a collective: MPICH's own go on */
    int decided;                /* they have tried */
    int has_near;               /* the ranks know each other's neighbours */
    int with_topology;          /* the segment was made with that */
    int error;                  /* of the progress engine, during a wait */
    int spread, even;           /* over nodes, and ranks on each: ulfm_nodes.c */
} coll_state_t;

int MPIDI_nem_ulfm_collectives; /* the job may use them at all */
static int coll_first;          /* calls of a communicator that go by messages */
static MPIR_Comm *coll_running; /* whose collective this process is in */
static int coll_kind;
static int segments_with_topology;

#define COLL_STATE(comm) ((coll_state_t *) (comm)->dev.ch.netmod_priv)

/* ---- the communicator's segment ------------------------------------------------------------------------------- */

/* NULL without memory. */
static coll_state_t *coll_state(MPIR_Comm * comm)
{
    if (!COLL_STATE(comm))
        comm->dev.ch.netmod_priv = MPL_calloc(1, sizeof(coll_state_t), MPL_MEM_COMM);
    return COLL_STATE(comm);
}

/* The state is made with the communicator. A process that had no memory for it later would count its calls otherwise than
 * the others, which would wait for it. */
static int coll_comm_created(MPIR_Comm * comm, void *unused)
{
    int mpi_errno = MPI_SUCCESS;

    comm->dev.ch.netmod_priv = NULL;
    if (comm->comm_kind == MPIR_COMM_KIND__INTRACOMM && comm->local_size >= 2)
        MPIR_ERR_CHKANDJUMP(!coll_state(comm), mpi_errno, MPI_ERR_OTHER, "**nomem");
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* The communicator of a window: its making and its end are this many calls at most, which do not count, or each window
 * would end with a segment that nothing else has used. Later ones are those of fences. */
#define COLL_OF_WINDOW 16

static void coll_expect(MPIR_Comm * comm, int calls)
{
    if (comm && COLL_STATE(comm))
        COLL_STATE(comm)->calls = -calls;
}

void MPIDI_nem_ulfm_is_for_window(MPIR_Comm * comm)
{
    if (!MPIDI_nem_ulfm_collectives || coll_first <= 0)
        return;
    coll_expect(comm, COLL_OF_WINDOW);
    coll_expect(comm->node_comm, COLL_OF_WINDOW);
    coll_expect(comm->node_roots_comm, COLL_OF_WINDOW);
}

static int coll_comm_destroyed(MPIR_Comm * comm, void *unused)
{
    coll_state_t *state = COLL_STATE(comm);
    if (state && state->coll && nm)     /* after MPI_Finalize the process takes its segments along */
        ulfm->coll_close(state->coll);
    if (state && state->with_topology)
        segments_with_topology--;
    if (state)
        multicast_free(state->multicast);
    MPL_free(state);
    comm->dev.ch.netmod_priv = NULL;
    return MPI_SUCCESS;
}

static int coll_init(void)
{
    int mpi_errno = MPI_SUCCESS;
    coll_first = ulfm->coll_after(nm, MPIR_CVAR_ENABLE_FT);
    if (coll_first < 0 && coll_first != ULFM_COLL_BY_MULTICAST)
        goto fn_exit;
    mpi_errno = MPIDI_CH3U_Comm_register_create_hook(coll_comm_created, NULL);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPIDI_CH3U_Comm_register_destroy_hook(coll_comm_destroyed, NULL);
    MPIR_ERR_CHECK(mpi_errno);
    MPIDI_nem_ulfm_collectives = 1;
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* What must be the same in all processes of a job: processes tell each other with their first message. */
static int coll_setting(void)
{
    return coll_first;
}

static void coll_settings_differ(int rank)
{
    char why[200];
    snprintf(why, sizeof why, "ranks %d and %d have different values of ULFM_COLLECTIVES, ULFM_PROTOCOL, ULFM_FAULT "
             "or MPIR_CVAR_ENABLE_FT, and would wait for each other in vain: give all the same", MPIR_Process.rank, rank);
    MPID_Abort(MPIR_Process.comm_world, MPI_SUCCESS, 1, why);
}

/* Called while a collective waits: other messages go on, and other threads. */
static int coll_progress(void *arg)
{
    MPIR_Comm *comm = arg;
    int mpi_errno = MPID_Progress_test(NULL);
    if (mpi_errno == MPI_SUCCESS && (comm->revoked & (MPIR_COMM_ENDED | MPIR_COMM_MEMBER_LEFT)))
        mpi_errno = coll_ended(comm);
    MPID_THREAD_CS_YIELD(GLOBAL, MPIR_THREAD_GLOBAL_ALLFUNC_MUTEX);
    COLL_STATE(comm)->error = mpi_errno;
    return mpi_errno != MPI_SUCCESS;
}

/* A collective that others gave up: because of a failure or a revocation, of which this rank may not have heard yet. */
static int coll_given_up(MPIR_Comm * comm)
{
    const time_t end = time(NULL) + (MPIR_CVAR_ENABLE_FT ? 2 : 0);
    int error = MPIDI_CH3U_Comm_failed(comm);

    if (!error && (comm->revoked & (MPIR_COMM_LOST_MEMBER | MPIR_COMM_MEMBER_LEFT)))
        error = coll_ended(comm);
    while (!error && time(NULL) < end && MPID_Progress_test(NULL) == MPI_SUCCESS)
        error = MPIDI_CH3U_Comm_failed(comm);
    return error;
}

/* All ranks come here at the same call. Rank 0 makes the segment; all have it, or nobody uses it: as when one of them
 * does not want it. Until that is known the state has none, and so the two collectives in here are MPICH's own. */
static int coll_open(MPIR_Comm * comm, coll_state_t * state, int wants)
{
    int mpi_errno = MPI_SUCCESS;
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;
    ulfm_coll *coll = NULL;
    char ticket[ULFM_COLL_TICKET] = "";
    int mine = 0, all = 0;

    if (comm->rank == 0 && wants)
        mine = ulfm->coll_open(nm, ticket, 0, comm->local_size, MPIR_IS_THREADED, coll_progress, comm,
                               &coll) == 0;
    mpi_errno = MPIR_Bcast_impl(ticket, sizeof ticket, MPI_BYTE, 0, comm, &errflag);
    MPIR_ERR_CHECK(mpi_errno);
    if (comm->rank != 0 && ticket[0] && wants)
        mine = ulfm->coll_open(nm, ticket, comm->rank, comm->local_size, MPIR_IS_THREADED, coll_progress, comm,
                               &coll) == 0;
    mpi_errno = MPIR_Allreduce_impl(&mine, &all, 1, MPI_INT, MPI_MIN, comm, &errflag);
    MPIR_ERR_CHECK(mpi_errno);
    if (errflag == MPIR_ERR_OTHER)
        mpi_errno = coll_given_up(comm);
    MPIR_ERR_CHECK(mpi_errno);
    MPIR_ERR_CHKANDJUMP(errflag, mpi_errno, errflag, "**coll_fail");
  fn_exit:
    if (mpi_errno == MPI_SUCCESS && all)
        state->coll = coll;
    else if (coll)
        ulfm->coll_close(coll);
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Of a communicator over hosts, as far as is known: not, with one rank on each, with several on one of them. */
enum { SPREAD_UNKNOWN, SPREAD_NOT, SPREAD_ALONE, SPREAD_SEVERAL };

static int nodes_spread(MPIR_Comm * comm);

/* In a call that may wait for the others. */
static void coll_decide(MPIR_Comm * comm, coll_state_t * state, int *mpi_errno)
{
    state->decided = 1;
    if (nodes_spread(comm) != SPREAD_NOT)
        return;                 /* that is for the ranks of each host: ulfm_nodes.c */
    state->opening = 1;
    *mpi_errno = coll_open(comm, state, 1);
    state->opening = 0;
}

/* Calls without bytes are MPICH's, and some ranks do not even come here then. */
static int coll_may_take(const MPIR_Comm * comm, int kind, MPI_Aint bytes)
{
    return comm->comm_kind == MPIR_COMM_KIND__INTRACOMM && comm->local_size >= 2 && !(comm->revoked & MPIR_COMM_ENDED)
        && (bytes != 0 || kind == ULFM_COLL_BARRIER);
}

/* Whether this call is made here: by the segment, which is made when it is time, or by multicast. `bytes` is what each
 * rank hands over, or receives. */
static int coll_take(MPIR_Comm * comm, int kind, int defined, MPI_Aint bytes, int *mpi_errno)
{
    coll_state_t *state;
    int way = ULFM_COLL_SHARED;

    if (!coll_may_take(comm, kind, bytes) || !(state = coll_state(comm)) || state->opening)
        return 0;
    if (coll_first == ULFM_COLL_BY_MULTICAST) {
        if (!state->decided)
            state->multicast = multicast_create(comm);
        state->decided = 1;
        return multicast_take(comm, state->multicast, kind, bytes);
    }
    /* Nonblocking calls count too, and cannot make the segment: once there were enough, any call does that waits. */
    if (!state->decided && state->calls < coll_first &&
        ulfm->coll_without(nm, kind, (size_t) bytes, comm->local_size, &state->ahead)) {
        ulfm->coll_count(nm, kind, ULFM_COLL_ROOTED);
        return 0;
    }
    if (!state->decided && state->calls++ >= coll_first)
        coll_decide(comm, state, mpi_errno);
    if (!state->decided)
        way = ULFM_COLL_FIRST;
    else if (!state->coll)
        way = ULFM_COLL_NO_SEGMENT;
    else if (!defined)
        way = ULFM_COLL_OPERATION;
    else
        way = ulfm->coll_way(state->coll, kind, bytes);
    ulfm->coll_count(nm, kind, way);
    return way == ULFM_COLL_SHARED;
}

/* The error of a call that the segment did not make, for what coll_run or coll_start returned, which is negative. */
static int coll_error(MPIR_Comm * comm, int rc)
{
    int mpi_errno = MPI_SUCCESS;

    if (rc >= -comm->local_size)
        MPIR_ERR_SET1(mpi_errno, MPIX_ERR_PROC_FAILED, "**comm_fail", "**comm_fail %d", -1 - rc);
    else if ((mpi_errno = coll_given_up(comm)) == MPI_SUCCESS)
        MPIR_ERR_SET1(mpi_errno, MPI_ERR_OTHER, "**fail", "**fail %s",
                      "another rank of the communicator gave this collective up, or there is no memory for it");
    return mpi_errno;
}

static int icoll_progress(void);        /* ulfm_icoll.c */

/* This rank cannot do its part: the others' calls fail. */
static int segment_give_up(coll_state_t * state)
{
    const ulfm_coll_call call = {.kind = ULFM_COLL_KINDS };

    return ulfm->coll_run(state->coll, &call);
}

/* Nobody waits for this process any more. The segment stays, for calls may be under way in it, which are told by it. */
static void coll_give_up(MPIR_Comm * comm)
{
    coll_state_t *state = comm ? COLL_STATE(comm) : NULL;

    if (state && state->coll && comm != coll_running)   /* who is in a call leaves it by coll_progress() */
        (void) segment_give_up(state);
}

/* Collectives of this communicator have failed here: nobody waits for this process in a segment. */
static void coll_leave(MPIR_Comm * comm)
{
    if (!MPIDI_nem_ulfm_collectives)
        return;
    coll_give_up(comm);
    coll_give_up(comm->node_comm);
    coll_give_up(comm->node_roots_comm);
    coll_give_up(comm->local_comm);
}

/* The segment cannot be used any more after a failure; the others find out too, at the latest in their next call. `rc` is
 * what the call returned, and *mpi_errno why it could not be made, if so. */
static void coll_fail(MPIR_Comm * comm, int rc, int *mpi_errno)
{
    coll_state_t *state = COLL_STATE(comm);

    /* Nonblocking calls that are under way fail first. */
    (void) icoll_progress();
    ulfm->coll_close(state->coll);
    state->coll = NULL;
    if (*mpi_errno == MPI_SUCCESS)
        *mpi_errno = rc > 0 ? state->error : coll_error(comm, rc);
    if (MPIR_ERR_GET_CLASS(*mpi_errno) == MPIX_ERR_PROC_FAILED) {
        MPIDI_CH3I_Comm_leave(comm);
        MPIDI_CH3I_Comm_end_with_members();
    }
}

/* 0: the call is MPICH's after all. */
static int coll_run(MPIR_Comm * comm, ulfm_coll_call * call, int *mpi_errno)
{
    coll_state_t *state = COLL_STATE(comm);
    int failed = *mpi_errno;    /* to pack the data */
    int rc;

    if (state->multicast) {
        /* Without memory to pack the data this rank cannot do its part, and the others wait. */
        if (failed)
            MPID_Abort(comm, failed, 1, NULL);
        state->opening = 1;
        multicast_run(comm, state->multicast, call, mpi_errno);
        state->opening = 0;
        return 1;
    }
    if (failed)
        call->kind = ULFM_COLL_KINDS;
    coll_running = comm;
    coll_kind = call->kind;
    rc = ulfm->coll_run(state->coll, call);
    coll_running = NULL;

    if (likely(rc == 0))
        return 1;
    if (rc == ULFM_COLL_TOO_LONG)
        return 0;
    coll_fail(comm, rc, mpi_errno);
    return 1;
}

/* ---- buffers --------------------------------------------------------------------------------------------------- */

static MPI_Aint coll_bytes(MPI_Aint count, MPI_Datatype type)
{
    MPI_Aint size;
    MPIR_Datatype_get_size_macro(type, size);
    return size * count;
}

static char *coll_at(const void *buffer, MPI_Aint index, MPI_Datatype type)
{
    MPI_Aint extent;
    MPIR_Datatype_get_extent_macro(type, extent);
    return (char *) buffer + index * extent;
}

/* Elements of that type lie one behind the other, without gaps and in order, from *lb on: a basic one, or one that a
 * program has made of them, as of the two parts of a complex number. */
static int is_flat(MPI_Datatype type, MPI_Aint * lb)
{
    MPIR_Datatype *made;

    *lb = 0;
    if (HANDLE_IS_BUILTIN(type))
        return 1;
    MPIR_Datatype_get_ptr(type, made);
    *lb = made->true_lb;
    return made->is_contig && made->size == made->extent;
}

/* The data as bytes: where they are when the type is flat, else in memory that *packed owns. */
static void *coll_pack(const void *buffer, MPI_Aint count, MPI_Datatype type, int copy, void **packed, int *mpi_errno)
{
    MPI_Aint bytes = coll_bytes(count, type), lb;
    if (is_flat(type, &lb))
        return (char *) buffer + lb;
    *packed = MPL_malloc(bytes ? bytes : 1, MPL_MEM_BUFFER);
    if (!*packed)
        MPIR_ERR_SET(*mpi_errno, MPI_ERR_OTHER, "**nomem");
    else if (copy)
        *mpi_errno = MPIR_Localcopy(buffer, count, type, *packed, bytes, MPI_BYTE);
    return *packed;
}

static void coll_unpack(void *buffer, MPI_Aint count, MPI_Datatype type, void *packed, int wanted, int *mpi_errno)
{
    if (packed && wanted && *mpi_errno == MPI_SUCCESS)
        *mpi_errno = MPIR_Localcopy(packed, coll_bytes(count, type), MPI_BYTE, buffer, count, type);
    MPL_free(packed);
}

/* Of the predefined types that MPICH has made of others: MPI_FLOAT_INT to MPI_LONG_DOUBLE_INT. */
static int is_pair(MPI_Datatype type)
{
    return type >= MPI_FLOAT_INT && type <= MPI_LONG_DOUBLE_INT;
}

/* ---- blocks of different sizes ----------------------------------------------------------------------------------- */

/* What a rank has for each, or gets from each: as bytes where they are when the type is flat, else one behind the other
 * in memory of its own. */
typedef struct coll_blocks {
    size_t *bytes, *at;         /* one piece of memory */
    char *data;
    void *packed;
    const MPI_Aint *counts, *displs;
    MPI_Datatype type;
    int ranks;
} coll_blocks_t;

static void coll_free_blocks(coll_blocks_t * blocks)
{
    MPL_free(blocks->bytes);
    MPL_free(blocks->packed);
}

/* Copies between the buffer and the packed memory. */
static int coll_copy_blocks(const coll_blocks_t * blocks, void *buffer, int out)
{
    int mpi_errno = MPI_SUCCESS;
    int i;
    for (i = 0; i < blocks->ranks && mpi_errno == MPI_SUCCESS; i++) {
        char *mine = coll_at(buffer, blocks->displs[i], blocks->type);
        char *packed = blocks->data + blocks->at[i];
        if (blocks->counts[i] == 0)
            continue;
        if (out)
            mpi_errno = MPIR_Localcopy(packed, blocks->bytes[i], MPI_BYTE, mine, blocks->counts[i], blocks->type);
        else
            mpi_errno = MPIR_Localcopy(mine, blocks->counts[i], blocks->type, packed, blocks->bytes[i], MPI_BYTE);
    }
    return mpi_errno;
}

static int coll_make_blocks(coll_blocks_t * blocks, const void *buffer, const MPI_Aint * counts,
                            const MPI_Aint * displs, MPI_Datatype type, int ranks, int filled)
{
    int mpi_errno = MPI_SUCCESS;
    MPI_Aint lb;
    const int flat = is_flat(type, &lb);
    size_t total = 0;
    int i;

    *blocks = (coll_blocks_t) {.counts = counts,.displs = displs,.type = type,.ranks = ranks };
    blocks->bytes = MPL_malloc(2 * ranks * sizeof *blocks->bytes, MPL_MEM_BUFFER);
    MPIR_ERR_CHKANDJUMP(!blocks->bytes, mpi_errno, MPI_ERR_OTHER, "**nomem");
    blocks->at = blocks->bytes + ranks;
    for (i = 0; i < ranks; i++) {
        blocks->bytes[i] = coll_bytes(counts[i], type);
        blocks->at[i] = flat ? (size_t) coll_bytes(displs[i], type) : total;
        total += blocks->bytes[i];
    }
    blocks->data = (char *) buffer + lb;
    if (flat)
        goto fn_exit;
    blocks->data = blocks->packed = MPL_malloc(total ? total : 1, MPL_MEM_BUFFER);
    MPIR_ERR_CHKANDJUMP(!blocks->packed, mpi_errno, MPI_ERR_OTHER, "**nomem");
    if (filled)
        mpi_errno = coll_copy_blocks(blocks, (void *) buffer, 0);
  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

#include "ulfm_nodes.c"
#include "ulfm_nodes_gather.c"
#include "ulfm_nodes_reduce.c"
#include "ulfm_nodes_alltoall.c"
#include "ulfm_pairs.c"

/* ---- the calls: 1 when taken, with *mpi_errno ------------------------------------------------------------------ */

int MPIDI_nem_ulfm_barrier(MPIR_Comm * comm, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_BARRIER };
    if (!coll_take(comm, call.kind, 1, 0, mpi_errno))
        return *mpi_errno != MPI_SUCCESS;
    coll_run(comm, &call, mpi_errno);
    return 1;
}

int MPIDI_nem_ulfm_bcast(void *buffer, MPI_Aint count, MPI_Datatype datatype, int root,
                         MPIR_Comm * comm, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_BCAST,.root = root };
    void *packed = NULL;
    call.count = coll_bytes(count, datatype);
    if (!coll_take(comm, call.kind, 1, call.count, mpi_errno))
        return *mpi_errno != MPI_SUCCESS || nodes_bcast(buffer, count, datatype, root, comm, mpi_errno);
    call.out = coll_pack(buffer, count, datatype, comm->rank == root, &packed, mpi_errno);
    coll_run(comm, &call, mpi_errno);
    coll_unpack(buffer, count, datatype, packed, comm->rank != root, mpi_errno);
    return 1;
}

/* Of gather and allgather; root -1 is all. */
static int coll_gather(int kind, const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
                       MPI_Aint recvcount, MPI_Datatype recvtype, int root, MPIR_Comm * comm, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = kind,.root = root };
    void *packed_in = NULL, *packed_out = NULL;
    int receives = root < 0 || comm->rank == root;
    MPI_Aint all = recvcount * comm->local_size;

    call.count = receives ? coll_bytes(recvcount, recvtype) : coll_bytes(sendcount, sendtype);
    if (!coll_take(comm, kind, 1, call.count, mpi_errno))
        return *mpi_errno != MPI_SUCCESS;
    if (sendbuf == MPI_IN_PLACE)
        call.in = coll_pack(coll_at(recvbuf, comm->rank * recvcount, recvtype), recvcount, recvtype, 1, &packed_in,
                            mpi_errno);
    else
        call.in = coll_pack(sendbuf, sendcount, sendtype, 1, &packed_in, mpi_errno);
    if (receives && *mpi_errno == MPI_SUCCESS)
        call.out = coll_pack(recvbuf, all, recvtype, 0, &packed_out, mpi_errno);
    coll_run(comm, &call, mpi_errno);
    if (receives)
        coll_unpack(recvbuf, all, recvtype, packed_out, 1, mpi_errno);
    MPL_free(packed_in);
    return 1;
}

int MPIDI_nem_ulfm_gather(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
                          MPI_Aint recvcount, MPI_Datatype recvtype, int root, MPIR_Comm * comm, int *mpi_errno)
{
    return coll_gather(ULFM_COLL_GATHER, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm,
                       mpi_errno);
}

int MPIDI_nem_ulfm_allgather(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
                             MPI_Aint recvcount, MPI_Datatype recvtype, MPIR_Comm * comm, int *mpi_errno)
{
    return coll_gather(ULFM_COLL_ALLGATHER, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, -1, comm,
                       mpi_errno) ||
        nodes_allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, mpi_errno);
}

int MPIDI_nem_ulfm_scatter(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
                           MPI_Aint recvcount, MPI_Datatype recvtype, int root, MPIR_Comm * comm, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_SCATTER,.root = root };
    void *packed_in = NULL, *packed_out = NULL;
    int sends = comm->rank == root, in_place = recvbuf == MPI_IN_PLACE;

    call.count = sends ? coll_bytes(sendcount, sendtype) : coll_bytes(recvcount, recvtype);
    if (!coll_take(comm, call.kind, 1, call.count * comm->local_size, mpi_errno))
        return *mpi_errno != MPI_SUCCESS;
    if (sends)
        call.in = coll_pack(sendbuf, sendcount * comm->local_size, sendtype, 1, &packed_in, mpi_errno);
    if (in_place)
        call.out = (char *) call.in + root * call.count;
    else if (*mpi_errno == MPI_SUCCESS)
        call.out = coll_pack(recvbuf, recvcount, recvtype, 0, &packed_out, mpi_errno);
    coll_run(comm, &call, mpi_errno);
    if (!in_place)
        coll_unpack(recvbuf, recvcount, recvtype, packed_out, 1, mpi_errno);
    MPL_free(packed_in);
    return 1;
}

int MPIDI_nem_ulfm_alltoall(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
                            MPI_Aint recvcount, MPI_Datatype recvtype, MPIR_Comm * comm, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_ALLTOALL };
    void *packed_in = NULL, *packed_out = NULL;
    MPI_Aint all = recvcount * comm->local_size;
    int shared;

    call.count = coll_bytes(recvcount, recvtype);
    shared = coll_take(comm, call.kind, 1, call.count * comm->local_size, mpi_errno);
    if (!shared && (*mpi_errno || !nodes_take_alltoall(call.count, comm)))
        return *mpi_errno != MPI_SUCCESS;
    if (sendbuf == MPI_IN_PLACE)
        call.in = coll_pack(recvbuf, all, recvtype, 1, &packed_in, mpi_errno);
    else
        call.in = coll_pack(sendbuf, sendcount * comm->local_size, sendtype, 1, &packed_in, mpi_errno);
    if (*mpi_errno == MPI_SUCCESS)
        call.out = coll_pack(recvbuf, all, recvtype, 0, &packed_out, mpi_errno);
    if (shared)
        coll_run(comm, &call, mpi_errno);
    else
        nodes_alltoall(&call, comm, mpi_errno);
    coll_unpack(recvbuf, all, recvtype, packed_out, 1, mpi_errno);
    MPL_free(packed_in);
    return 1;
}

/* Any operation, up a tree to the root. Long ones are MPICH's own; 0 then. */
static int coll_reduce_up(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype datatype, MPI_Op op,
                          int root, MPIR_Comm * comm, int *mpi_errno, MPIR_Errflag_t * errflag)
{
    MPI_Aint extent;
    int delay;

    MPIR_Datatype_get_extent_macro(datatype, extent);
    delay = ulfm->group_pays(nm, ULFM_COLL_REDUCE, comm->local_size, COLL_STATE(comm)->multicast->nodes,
                             count * extent);
    if (delay != 0)
        multicast_reduce(comm, delay, sendbuf, recvbuf, count, datatype, op, root, mpi_errno, errflag);
    return delay != 0;
}

static void coll_reduce_multicast(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype datatype, MPI_Op op,
                                  int root, MPIR_Comm * comm, int *mpi_errno)
{
    coll_state_t *state = COLL_STATE(comm);
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;

    state->opening = 1;
    (void) coll_reduce_up(sendbuf, recvbuf, count, datatype, op, root, comm, mpi_errno, &errflag);
    multicast_end(state->multicast, ULFM_COLL_REDUCE, mpi_errno, errflag);
    state->opening = 0;
}

/* What a reduction to rank 0 has found goes to all at once. */
static void coll_allreduce_multicast(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype datatype,
                                     MPI_Op op, MPIR_Comm * comm, int *mpi_errno)
{
    coll_state_t *state = COLL_STATE(comm);
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;
    const void *in = sendbuf == MPI_IN_PLACE && comm->rank != 0 ? recvbuf : sendbuf;
    void *packed = NULL, *data;
    int failed = MPI_SUCCESS;

    state->opening = 1;
    if (!coll_reduce_up(in, recvbuf, count, datatype, op, 0, comm, mpi_errno, &errflag))
        multicast_note(MPIR_Reduce_impl(in, recvbuf, count, datatype, op, 0, comm, &errflag), mpi_errno, &errflag);
    data = coll_pack(recvbuf, count, datatype, comm->rank == 0, &packed, &failed);
    if (failed)
        MPID_Abort(comm, failed, 1, NULL);
    multicast_bcast(comm, state->multicast, data, coll_bytes(count, datatype), 0, 0, mpi_errno, &errflag);
    coll_unpack(recvbuf, count, datatype, packed, comm->rank != 0, mpi_errno);
    multicast_end(state->multicast, ULFM_COLL_ALLREDUCE, mpi_errno, errflag);
    state->opening = 0;
}

/* Those of the predefined operations on the predefined types have a kernel. */
static void coll_describe_reduction(ulfm_coll_call * call, const void *sendbuf, void *recvbuf, MPI_Aint count,
                                    MPI_Datatype datatype, MPI_Op op)
{
    MPI_Aint extent;

    if (HANDLE_IS_BUILTIN(op) && (op & 15) < N_OPS && (HANDLE_IS_BUILTIN(datatype) || is_pair(datatype)))
        call->kernel = kernels[op & 15][type_index(datatype)];
    MPIR_Datatype_get_extent_macro(datatype, extent);
    call->extent = extent;
    call->count = count;
    call->in = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
    call->out = recvbuf;
}

/* The segment's ranks copy whole elements; what is in the gaps of the program's memory stays as it is. */
static void coll_reduce_gaps(ulfm_coll_call * call, void *recvbuf, MPI_Aint count, MPI_Datatype datatype,
                             MPIR_Comm * comm, int *mpi_errno)
{
    const int wanted = call->kind == ULFM_COLL_REDUCE ? comm->rank == call->root :
        call->kind != ULFM_COLL_EXSCAN || comm->rank > 0;
    const MPI_Aint results = call->kind == ULFM_COLL_REDUCE_SCATTER ? (MPI_Aint) call->mine : count;
    char *memory = MPL_malloc((count + results) * (MPI_Aint) call->extent, MPL_MEM_BUFFER);

    if (memory) {
        copy_pairs(call->in, memory, count, datatype);
        call->in = memory;
        call->out = memory + count * (MPI_Aint) call->extent;
    } else
        MPIR_ERR_SET(*mpi_errno, MPI_ERR_OTHER, "**nomem");
    coll_run(comm, call, mpi_errno);
    if (wanted && !*mpi_errno)
        copy_pairs(call->out, recvbuf, results, datatype);
    MPL_free(memory);
}

static int coll_reduce(ulfm_coll_call * call, const void *sendbuf, void *recvbuf, MPI_Aint count,
                       MPI_Datatype datatype, MPI_Op op, MPIR_Comm * comm, int *mpi_errno)
{
    coll_describe_reduction(call, sendbuf, recvbuf, count, datatype, op);
    if (!coll_take(comm, call->kind, call->kernel != NULL, count * call->extent, mpi_errno))
        return *mpi_errno != MPI_SUCCESS;
    if (COLL_STATE(comm)->multicast && call->kind == ULFM_COLL_REDUCE) {
        coll_reduce_multicast(sendbuf, recvbuf, count, datatype, op, call->root, comm, mpi_errno);
        return 1;
    }
    if (COLL_STATE(comm)->multicast) {
        coll_allreduce_multicast(sendbuf, recvbuf, count, datatype, op, comm, mpi_errno);
        return 1;
    }
    if (has_gaps(datatype))
        coll_reduce_gaps(call, recvbuf, count, datatype, comm, mpi_errno);
    else
        coll_run(comm, call, mpi_errno);
    return 1;
}

int MPIDI_nem_ulfm_reduce(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype datatype, MPI_Op op,
                          int root, MPIR_Comm * comm, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_REDUCE,.root = root };
    return coll_reduce(&call, sendbuf, recvbuf, count, datatype, op, comm, mpi_errno) ||
        nodes_reduce(sendbuf, recvbuf, count, datatype, op, root, comm, mpi_errno);
}

int MPIDI_nem_ulfm_allreduce(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype datatype, MPI_Op op,
                             MPIR_Comm * comm, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_ALLREDUCE };
    return coll_reduce(&call, sendbuf, recvbuf, count, datatype, op, comm, mpi_errno) ||
        nodes_allreduce(sendbuf, recvbuf, count, datatype, op, comm, mpi_errno);
}

int MPIDI_nem_ulfm_scan(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype datatype, MPI_Op op,
                        MPIR_Comm * comm, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_SCAN };
    return coll_reduce(&call, sendbuf, recvbuf, count, datatype, op, comm, mpi_errno) ||
        nodes_prefix(0, sendbuf, recvbuf, count, datatype, op, comm, mpi_errno);
}

int MPIDI_nem_ulfm_exscan(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype datatype, MPI_Op op,
                          MPIR_Comm * comm, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_EXSCAN };
    return coll_reduce(&call, sendbuf, recvbuf, count, datatype, op, comm, mpi_errno) ||
        nodes_prefix(1, sendbuf, recvbuf, count, datatype, op, comm, mpi_errno);
}

/* The elements that this rank wants; returns how many all ranks do. */
static MPI_Aint coll_parts(ulfm_coll_call * call, const MPI_Aint * recvcounts, const MPIR_Comm * comm)
{
    MPI_Aint total = 0;
    int i;
    for (i = 0; i < comm->local_size; i++) {
        if (i == comm->rank) {
            call->first = total;
            call->mine = recvcounts[i];
        }
        total += recvcounts[i];
    }
    return total;
}

int MPIDI_nem_ulfm_reduce_scatter(const void *sendbuf, void *recvbuf, const MPI_Aint * recvcounts,
                                  MPI_Datatype datatype, MPI_Op op, MPIR_Comm * comm, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_REDUCE_SCATTER };
    const MPI_Aint total = coll_parts(&call, recvcounts, comm);
    const portions_t portions = {.counts = recvcounts,.all = total };
    return coll_reduce(&call, sendbuf, recvbuf, total, datatype, op, comm, mpi_errno) ||
        (MPIR_CVAR_REDUCE_SCATTER_INTRA_ALGORITHM == MPIR_CVAR_REDUCE_SCATTER_INTRA_ALGORITHM_auto &&
         nodes_reduce_scatter(sendbuf, recvbuf, &portions, datatype, op, comm, mpi_errno));
}

int MPIDI_nem_ulfm_reduce_scatter_block(const void *sendbuf, void *recvbuf, MPI_Aint recvcount,
                                        MPI_Datatype datatype, MPI_Op op, MPIR_Comm * comm, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_REDUCE_SCATTER,.first = comm->rank * recvcount,.mine = recvcount };
    const portions_t portions = {.each = recvcount,.all = recvcount * comm->local_size };
    return coll_reduce(&call, sendbuf, recvbuf, portions.all, datatype, op, comm, mpi_errno) ||
        (MPIR_CVAR_REDUCE_SCATTER_BLOCK_INTRA_ALGORITHM == MPIR_CVAR_REDUCE_SCATTER_BLOCK_INTRA_ALGORITHM_auto &&
         nodes_reduce_scatter(sendbuf, recvbuf, &portions, datatype, op, comm, mpi_errno));
}

static MPI_Aint longest_block(const MPI_Aint * counts, const MPIR_Comm * comm)
{
    MPI_Aint longest = 0;
    int i;

    for (i = 0; i < comm->local_size; i++)
        longest = MPL_MAX(longest, counts[i]);
    return longest;
}

int MPIDI_nem_ulfm_allgatherv(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
                              const MPI_Aint * recvcounts, const MPI_Aint * displs, MPI_Datatype recvtype,
                              MPIR_Comm * comm, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_ALLGATHERV };
    coll_blocks_t out = { 0 };
    void *packed = NULL;
    int in_place = sendbuf == MPI_IN_PLACE;

    if (comm->comm_kind != MPIR_COMM_KIND__INTRACOMM)
        return 0;               /* there are as many counts as the other group has ranks */
    if (!coll_take(comm, call.kind, 1, coll_bytes(longest_block(recvcounts, comm), recvtype), mpi_errno))
        return *mpi_errno != MPI_SUCCESS ||
            nodes_allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, mpi_errno);
    *mpi_errno = coll_make_blocks(&out, recvbuf, recvcounts, displs, recvtype, comm->local_size, in_place);
    if (*mpi_errno == MPI_SUCCESS)
        call.in = in_place ? out.data + out.at[comm->rank]
            : coll_pack(sendbuf, sendcount, sendtype, 1, &packed, mpi_errno);
    call.out = out.data;
    call.out_bytes = out.bytes;
    call.out_at = out.at;
    coll_run(comm, &call, mpi_errno);
    if (*mpi_errno == MPI_SUCCESS && out.packed)
        *mpi_errno = coll_copy_blocks(&out, recvbuf, 1);
    coll_free_blocks(&out);
    MPL_free(packed);
    return 1;
}

/* Nobody but the root knows all sizes: whether they are too long turns out on the way. */
int MPIDI_nem_ulfm_gatherv(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
                           const MPI_Aint * recvcounts, const MPI_Aint * displs, MPI_Datatype recvtype, int root,
                           MPIR_Comm * comm, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_GATHERV,.root = root };
    coll_blocks_t out = { 0 };
    void *packed = NULL;
    int taken, receives = comm->rank == root, in_place = sendbuf == MPI_IN_PLACE;

    if (!coll_take(comm, call.kind, 1, 1, mpi_errno))
        return *mpi_errno != MPI_SUCCESS || pair_gatherv((block_t) {sendbuf, sendcount, sendtype}, recvbuf, recvcounts,
                                                         displs, recvtype, root, comm, mpi_errno);
    if (receives)
        *mpi_errno = coll_make_blocks(&out, recvbuf, recvcounts, displs, recvtype, comm->local_size, in_place);
    if (!in_place && *mpi_errno == MPI_SUCCESS) {
        call.count = coll_bytes(sendcount, sendtype);
        call.in = coll_pack(sendbuf, sendcount, sendtype, 1, &packed, mpi_errno);
    }
    call.out = out.data;
    call.out_bytes = out.bytes;
    call.out_at = out.at;
    taken = coll_run(comm, &call, mpi_errno);
    if (taken && *mpi_errno == MPI_SUCCESS && out.packed)
        *mpi_errno = coll_copy_blocks(&out, recvbuf, 1);
    coll_free_blocks(&out);
    MPL_free(packed);
    return taken;
}

int MPIDI_nem_ulfm_scatterv(const void *sendbuf, const MPI_Aint * sendcounts, const MPI_Aint * displs,
                            MPI_Datatype sendtype, void *recvbuf, MPI_Aint recvcount, MPI_Datatype recvtype, int root,
                            MPIR_Comm * comm, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_SCATTERV,.root = root };
    coll_blocks_t in = { 0 };
    void *packed = NULL;
    int taken, in_place = recvbuf == MPI_IN_PLACE;

    if (!coll_take(comm, call.kind, 1, 1, mpi_errno))
        return *mpi_errno != MPI_SUCCESS || pair_scatterv(sendbuf, sendcounts, displs, sendtype,
                                                          (block_t) {recvbuf, recvcount, recvtype}, root, comm, mpi_errno);
    if (comm->rank == root)
        *mpi_errno = coll_make_blocks(&in, sendbuf, sendcounts, displs, sendtype, comm->local_size, 1);
    if (!in_place && *mpi_errno == MPI_SUCCESS) {
        call.count = coll_bytes(recvcount, recvtype);
        call.out = coll_pack(recvbuf, recvcount, recvtype, 0, &packed, mpi_errno);
    }
    call.in = in.data;
    call.in_bytes = in.bytes;
    call.in_at = in.at;
    taken = coll_run(comm, &call, mpi_errno);
    coll_unpack(recvbuf, recvcount, recvtype, packed, taken, mpi_errno);
    coll_free_blocks(&in);
    return taken;
}

int MPIDI_nem_ulfm_alltoallv(const void *sendbuf, const MPI_Aint * sendcounts, const MPI_Aint * sdispls,
                             MPI_Datatype sendtype, void *recvbuf, const MPI_Aint * recvcounts,
                             const MPI_Aint * rdispls, MPI_Datatype recvtype, MPIR_Comm * comm, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_ALLTOALLV };
    coll_blocks_t in = { 0 }, out = { 0 };
    int taken, in_place = sendbuf == MPI_IN_PLACE;

    if (!coll_take(comm, call.kind, 1, 1, mpi_errno))
        return *mpi_errno != MPI_SUCCESS;
    *mpi_errno = coll_make_blocks(&out, recvbuf, recvcounts, rdispls, recvtype, comm->local_size, in_place);
    if (!in_place && *mpi_errno == MPI_SUCCESS)
        *mpi_errno = coll_make_blocks(&in, sendbuf, sendcounts, sdispls, sendtype, comm->local_size, 1);
    call.in = in_place ? out.data : in.data;
    call.in_bytes = in_place ? out.bytes : in.bytes;
    call.in_at = in_place ? out.at : in.at;
    call.out = out.data;
    call.out_bytes = out.bytes;
    call.out_at = out.at;
    taken = coll_run(comm, &call, mpi_errno);
    if (taken && *mpi_errno == MPI_SUCCESS && out.packed)
        *mpi_errno = coll_copy_blocks(&out, recvbuf, 1);
    coll_free_blocks(&in);
    coll_free_blocks(&out);
    return taken;
}
