/* MPI's nonblocking collectives through the segment that the ranks of a communicator share (libulfm's
 * coll/nonblocking.hpp). Part of ulfm_netmod.c.
 *
 * MPICH's MPIR_I*_impl functions ask here first (see the patch). As with blocking calls (ulfm_coll.c) whether a call goes
 * this way depends on nothing but what is the same in every rank. A blocking call makes the segment: a nonblocking one
 * must not wait for others. Calls with blocks of different sizes stay MPICH's, and so do persistent ones.
 *
 * poll finishes what can be finished; a call's request is a plain one of MPICH's nonblocking collectives. */

/* What a call needs until it has finished; in its request. */
typedef struct icall {
    MPIR_Request *next, *previous;      /* of all that are under way */
    void *packed_in, *packed_out;
    void *recvbuf;              /* where packed_out belongs */
    MPI_Aint count;
    MPI_Datatype type;
} icall_t;

#define ICALL(req) ((icall_t *) (req)->ch.netmod_area.padding)

static MPIR_Request *icalls;

/* Whether this call is made here. `bytes` as in coll_take(). */
static int icoll_take(MPIR_Comm * comm, int kind, int defined, MPI_Aint bytes)
{
    coll_state_t *state;
    int way = ULFM_COLL_SHARED;

    if (!coll_may_take(comm, kind, bytes) || coll_first == ULFM_COLL_BY_MULTICAST || !(state = coll_state(comm))
        || state->opening)
        return 0;
    if (!state->decided) {
        state->calls++;
        way = ULFM_COLL_FIRST;
    } else if (!state->coll)
        way = ULFM_COLL_NO_SEGMENT;
    else if (!defined)
        way = ULFM_COLL_OPERATION;
    else if (!ulfm->coll_fits(state->coll, kind, bytes))
        way = ULFM_COLL_LONG;
    ulfm->coll_count(nm, kind, way);
    return way == ULFM_COLL_SHARED;
}

static void icoll_link(MPIR_Request * req)
{
    ICALL(req)->previous = NULL;
    ICALL(req)->next = icalls;
    if (icalls)
        ICALL(icalls)->previous = req;
    icalls = req;
}

static void icoll_unlink(MPIR_Request * req)
{
    if (ICALL(req)->previous)
        ICALL(ICALL(req)->previous)->next = ICALL(req)->next;
    else
        icalls = ICALL(req)->next;
    if (ICALL(req)->next)
        ICALL(ICALL(req)->next)->previous = ICALL(req)->previous;
}

/* The result is there, or `error` says why it never will be. */
static int icoll_settle(const icall_t * call, int error)
{
    int mpi_errno = error;

    coll_unpack(call->recvbuf, call->count, call->type, call->packed_out, 1, &mpi_errno);
    MPL_free(call->packed_in);
    if (call->packed_out)
        MPIR_Datatype_release_if_not_builtin(call->type);
    return mpi_errno;
}

/* As coll_error(). After a death this process leaves the communicator's collectives, with the next progress. */
static int icoll_error(MPIR_Comm * comm, int rc)
{
    const int mpi_errno = coll_error(comm, rc);

    if (MPIR_ERR_GET_CLASS(mpi_errno) == MPIX_ERR_PROC_FAILED)
        MPIDI_CH3I_Comm_leave(comm);
    return mpi_errno;
}

/* Begins the call, which owns what is packed. Always taken: 1. */
static int icoll_start(MPIR_Comm * comm, ulfm_coll_call * call, icall_t * about, MPIR_Request ** request,
                       int *mpi_errno)
{
    ulfm_coll *coll = COLL_STATE(comm)->coll;
    MPIR_Request *req = MPIR_Request_create(MPIR_REQUEST_KIND__COLL);
    int rc = 0;

    *request = NULL;
    if (about->packed_out)
        MPIR_Datatype_add_ref_if_not_builtin(about->type);
    if (!req && *mpi_errno == MPI_SUCCESS)
        MPIR_ERR_SET(*mpi_errno, MPI_ERR_OTHER, "**nomem");
    if (*mpi_errno != MPI_SUCCESS) {
        /* This rank cannot do its part. */
        call->kind = ULFM_COLL_KINDS;
        (void) ulfm->coll_run(coll, call);
        goto fn_fail;
    }
    MPIR_Comm_add_ref(comm);
    req->comm = comm;
    *ICALL(req) = *about;
    rc = ulfm->coll_start(coll, call, req);
    if (rc < 0) {
        *mpi_errno = icoll_error(comm, rc);
        goto fn_fail;
    }
    if (rc == 1) {
        req->status.MPI_ERROR = icoll_settle(about, MPI_SUCCESS);
        MPIR_cc_set(&req->cc, 0);
    } else {
        MPIR_Request_add_ref(req);
        icoll_link(req);
    }
    *request = req;
  fn_exit:
    return 1;
  fn_fail:
    (void) icoll_settle(about, *mpi_errno);
    if (req)
        MPIR_Request_free(req);
    goto fn_exit;
}

/* A communicator that was revoked, or that a member has left: its calls end. */
static void icoll_end_revoked(void)
{
    ulfm_coll_call none = {.kind = ULFM_COLL_KINDS };
    MPIR_Request *req;

    for (req = icalls; req; req = ICALL(req)->next)
        if ((req->comm->revoked & (MPIR_COMM_ENDED | MPIR_COMM_MEMBER_LEFT)) && COLL_STATE(req->comm)->coll)
            (void) ulfm->coll_run(COLL_STATE(req->comm)->coll, &none);
}

/* Called by poll while calls are under way. */
static int icoll_progress(void)
{
    static int inside;          /* to find out why others gave up takes progress */
    int mpi_errno = MPI_SUCCESS;
    MPIR_Request *req;
    int why;

    if (inside)
        goto fn_exit;
    inside = 1;
    if (MPIR_CVAR_ENABLE_FT)
        icoll_end_revoked();
    while ((req = ulfm->coll_finished(nm, &why))) {
        icoll_unlink(req);
        req->status.MPI_ERROR = icoll_settle(ICALL(req), why ? icoll_error(req->comm, why) : MPI_SUCCESS);
        mpi_errno = MPID_Request_complete(req);
        MPIR_ERR_CHECK(mpi_errno);
    }
  fn_fail:
    inside = 0;
  fn_exit:
    return mpi_errno;
}

/* ---- the calls: 1 when taken, with *mpi_errno ------------------------------------------------------------------ */

int MPIDI_nem_ulfm_ibarrier(MPIR_Comm * comm, MPIR_Request ** request, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_BARRIER };
    icall_t about = { 0 };
    return icoll_take(comm, call.kind, 1, 0) && icoll_start(comm, &call, &about, request, mpi_errno);
}

/* The buffer of a call for what it brings. */
static void *icoll_out(icall_t * about, void *buffer, MPI_Aint count, MPI_Datatype type, int copy, int *mpi_errno)
{
    about->recvbuf = buffer;
    about->count = count;
    about->type = type;
    return coll_pack(buffer, count, type, copy, &about->packed_out, mpi_errno);
}

int MPIDI_nem_ulfm_ibcast(void *buffer, MPI_Aint count, MPI_Datatype datatype, int root,
                          MPIR_Comm * comm, MPIR_Request ** request, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_BCAST,.root = root };
    icall_t about = { 0 };

    call.count = coll_bytes(count, datatype);
    if (!icoll_take(comm, call.kind, 1, call.count))
        return 0;
    if (comm->rank == root)
        call.out = coll_pack(buffer, count, datatype, 1, &about.packed_in, mpi_errno);
    else
        call.out = icoll_out(&about, buffer, count, datatype, 0, mpi_errno);
    return icoll_start(comm, &call, &about, request, mpi_errno);
}

/* Of gather and allgather; root -1 is all. */
static int icoll_gather(int kind, const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
                        MPI_Aint recvcount, MPI_Datatype recvtype, int root, MPIR_Comm * comm,
                        MPIR_Request ** request, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = kind,.root = root };
    icall_t about = { 0 };
    int receives = root < 0 || comm->rank == root;

    call.count = receives ? coll_bytes(recvcount, recvtype) : coll_bytes(sendcount, sendtype);
    if (!icoll_take(comm, kind, 1, call.count))
        return 0;
    if (sendbuf == MPI_IN_PLACE)
        call.in = coll_pack(coll_at(recvbuf, comm->rank * recvcount, recvtype), recvcount, recvtype, 1,
                            &about.packed_in, mpi_errno);
    else
        call.in = coll_pack(sendbuf, sendcount, sendtype, 1, &about.packed_in, mpi_errno);
    if (receives && *mpi_errno == MPI_SUCCESS)
        call.out = icoll_out(&about, recvbuf, recvcount * comm->local_size, recvtype, 0, mpi_errno);
    return icoll_start(comm, &call, &about, request, mpi_errno);
}

int MPIDI_nem_ulfm_igather(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
                           MPI_Aint recvcount, MPI_Datatype recvtype, int root, MPIR_Comm * comm,
                           MPIR_Request ** request, int *mpi_errno)
{
    return icoll_gather(ULFM_COLL_GATHER, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm,
                        request, mpi_errno);
}

int MPIDI_nem_ulfm_iallgather(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
                              MPI_Aint recvcount, MPI_Datatype recvtype, MPIR_Comm * comm,
                              MPIR_Request ** request, int *mpi_errno)
{
    return icoll_gather(ULFM_COLL_ALLGATHER, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, -1, comm,
                        request, mpi_errno);
}

/* A root whose own block stays where it is gets nothing. */
int MPIDI_nem_ulfm_iscatter(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
                            MPI_Aint recvcount, MPI_Datatype recvtype, int root, MPIR_Comm * comm,
                            MPIR_Request ** request, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_SCATTER,.root = root };
    icall_t about = { 0 };
    int sends = comm->rank == root;

    call.count = sends ? coll_bytes(sendcount, sendtype) : coll_bytes(recvcount, recvtype);
    if (!icoll_take(comm, call.kind, 1, call.count * comm->local_size))
        return 0;
    if (sends)
        call.in = coll_pack(sendbuf, sendcount * comm->local_size, sendtype, 1, &about.packed_in, mpi_errno);
    if (recvbuf != MPI_IN_PLACE && *mpi_errno == MPI_SUCCESS)
        call.out = icoll_out(&about, recvbuf, recvcount, recvtype, 0, mpi_errno);
    return icoll_start(comm, &call, &about, request, mpi_errno);
}

int MPIDI_nem_ulfm_ialltoall(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype, void *recvbuf,
                             MPI_Aint recvcount, MPI_Datatype recvtype, MPIR_Comm * comm,
                             MPIR_Request ** request, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_ALLTOALL };
    icall_t about = { 0 };
    MPI_Aint all = recvcount * comm->local_size;

    call.count = coll_bytes(recvcount, recvtype);
    if (!icoll_take(comm, call.kind, 1, call.count * comm->local_size))
        return 0;
    if (sendbuf == MPI_IN_PLACE)
        call.in = coll_pack(recvbuf, all, recvtype, 1, &about.packed_in, mpi_errno);
    else
        call.in = coll_pack(sendbuf, sendcount * comm->local_size, sendtype, 1, &about.packed_in, mpi_errno);
    if (*mpi_errno == MPI_SUCCESS)
        call.out = icoll_out(&about, recvbuf, all, recvtype, 0, mpi_errno);
    return icoll_start(comm, &call, &about, request, mpi_errno);
}

/* Of the reductions: the predefined operations on the predefined types. */
static int icoll_reduce(ulfm_coll_call * call, const void *sendbuf, void *recvbuf, MPI_Aint count,
                        MPI_Datatype datatype, MPI_Op op, MPIR_Comm * comm, MPIR_Request ** request, int *mpi_errno)
{
    icall_t about = { 0 };

    coll_describe_reduction(call, sendbuf, recvbuf, count, datatype, op);
    return icoll_take(comm, call->kind, call->kernel != NULL, count * call->extent) &&
        icoll_start(comm, call, &about, request, mpi_errno);
}

int MPIDI_nem_ulfm_ireduce(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype datatype, MPI_Op op,
                           int root, MPIR_Comm * comm, MPIR_Request ** request, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_REDUCE,.root = root };
    return icoll_reduce(&call, sendbuf, recvbuf, count, datatype, op, comm, request, mpi_errno);
}

int MPIDI_nem_ulfm_iallreduce(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype datatype, MPI_Op op,
                              MPIR_Comm * comm, MPIR_Request ** request, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_ALLREDUCE };
    return icoll_reduce(&call, sendbuf, recvbuf, count, datatype, op, comm, request, mpi_errno);
}

int MPIDI_nem_ulfm_iscan(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype datatype, MPI_Op op,
                         MPIR_Comm * comm, MPIR_Request ** request, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_SCAN };
    return icoll_reduce(&call, sendbuf, recvbuf, count, datatype, op, comm, request, mpi_errno);
}

int MPIDI_nem_ulfm_iexscan(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype datatype, MPI_Op op,
                           MPIR_Comm * comm, MPIR_Request ** request, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_EXSCAN };
    return icoll_reduce(&call, sendbuf, recvbuf, count, datatype, op, comm, request, mpi_errno);
}

int MPIDI_nem_ulfm_ireduce_scatter(const void *sendbuf, void *recvbuf, const MPI_Aint * recvcounts,
                                   MPI_Datatype datatype, MPI_Op op, MPIR_Comm * comm, MPIR_Request ** request,
                                   int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_REDUCE_SCATTER };
    const MPI_Aint total = coll_parts(&call, recvcounts, comm);
    return icoll_reduce(&call, sendbuf, recvbuf, total, datatype, op, comm, request, mpi_errno);
}

int MPIDI_nem_ulfm_ireduce_scatter_block(const void *sendbuf, void *recvbuf, MPI_Aint recvcount,
                                         MPI_Datatype datatype, MPI_Op op, MPIR_Comm * comm,
                                         MPIR_Request ** request, int *mpi_errno)
{
    ulfm_coll_call call = {.kind = ULFM_COLL_REDUCE_SCATTER,.first = comm->rank * recvcount,.mine = recvcount };
    return icoll_reduce(&call, sendbuf, recvbuf, recvcount * comm->local_size, datatype, op, comm, request,
                        mpi_errno);
}
