/* What this process waits for, for the job's table of waits (ULFM_STALL_REPORT): the receives that are posted, the sends
 * that wait for an answer or for room, the collective through shared memory that it is in, and the agreement.
 *
 * Included by ulfm_netmod.c. */

extern MPIR_Request **const MPID_Recvq_posted_head_ptr;
extern MPIR_Request **const MPID_Recvq_unexpected_head_ptr;

static int rank_in_job(const MPIDI_VC_t * vc)
{
    return vc->pg == MPIDI_Process.my_pg ? vc->pg_rank : -2;
}

static int rank_of_member(MPIR_Comm * comm, int rank)
{
    MPIDI_VC_t *vc;
    if (!comm || rank < 0 || rank >= comm->remote_size)
        return -2;
    MPIDI_Comm_get_vc(comm, rank, &vc);
    return rank_in_job(vc);
}

static void describe_receives(ulfm_nm_waits * waits)
{
    MPIR_Request *req;

    for (req = *MPID_Recvq_unexpected_head_ptr; req; req = req->next)
        waits->arrived++;
    for (req = *MPID_Recvq_posted_head_ptr; req; req = req->next) {
        ulfm_nm_wait wait = { ULFM_WAIT_ANY, -1, -1, 0, req->comm ? req->comm->name : "" };
        waits->posted++;
        if (req->dev.mask.parts.tag == ~0)
            wait.tag = req->dev.match.parts.tag;
        if (req->dev.mask.parts.rank == (MPIDI_Rank_t) ~ 0) {
            wait.kind = ULFM_WAIT_MESSAGE;
            wait.rank = rank_of_member(req->comm, req->dev.match.parts.rank);
        }
        waits->add(waits, &wait);
    }
}

static void describe_asking(ulfm_nm_waits * waits, MPIDI_VC_t * vc, MPIR_Request * req)
{
    ulfm_nm_wait wait = { ULFM_WAIT_CLEAR_TO_SEND, rank_in_job(vc), req->dev.match.parts.tag, 0, "" };
    MPI_Aint size = 0;

    if (req->kind == MPIR_REQUEST_KIND__RECV)
        wait.kind = ULFM_WAIT_DATA;
    else if (MPIDI_Request_get_type(req) == MPIDI_REQUEST_TYPE_SSEND)
        wait.kind = ULFM_WAIT_TAKEN;
    else {
        MPIR_Datatype_get_size_macro(req->dev.datatype, size);
        wait.bytes = (uint64_t) (size * req->dev.user_count);
    }
    if (req->comm)
        wait.name = req->comm->name;
    waits->add(waits, &wait);
}

static void describe_connections(ulfm_nm_waits * waits)
{
    MPIDI_VC_t *vc;

    for (vc = open_head; vc; vc = AREA(vc)->next_open) {
        ulfm_nm_wait wait = { ULFM_WAIT_ROOM, rank_in_job(vc), -1, 0, "" };
        MPIR_Request *req;
        for (req = AREA(vc)->asking; req; req = REQ_AREA(req)->next_asking)
            if (!REQ_AREA(req)->abandoned)
                describe_asking(waits, vc, req);
        for (req = AREA(vc)->queue.head; req; req = req->next)
            wait.bytes++;
        waits->unsent += (unsigned) wait.bytes;
        if (wait.bytes)
            waits->add(waits, &wait);
    }
}

/* That `missing` comes to a collective of the communicator. */
static void describe_collective(ulfm_nm_waits * waits, MPIR_Comm * comm, int kind, int missing, int nonblocking)
{
    static const char *const names[][2] = { {"MPI_Barrier", "MPI_Ibarrier"}, {"MPI_Bcast", "MPI_Ibcast"},
    {"MPI_Reduce", "MPI_Ireduce"}, {"MPI_Allreduce", "MPI_Iallreduce"}, {"MPI_Reduce_scatter", "MPI_Ireduce_scatter"},
    {"MPI_Scan", "MPI_Iscan"}, {"MPI_Exscan", "MPI_Iexscan"}, {"MPI_Gather", "MPI_Igather"},
    {"MPI_Allgather", "MPI_Iallgather"}, {"MPI_Scatter", "MPI_Iscatter"}, {"MPI_Alltoall", "MPI_Ialltoall"},
    {"MPI_Gatherv"}, {"MPI_Allgatherv"}, {"MPI_Scatterv"}, {"MPI_Alltoallv"}, {"a collective of neighbours"}
    };
    ulfm_nm_wait wait = { ULFM_WAIT_COLLECTIVE, rank_of_member(comm, missing), -1, 0, "a collective" };

    if (missing < 0)
        return;
    if (kind >= 0 && kind < (int) (sizeof names / sizeof *names) && names[kind][nonblocking])
        wait.name = names[kind][nonblocking];
    waits->add(waits, &wait);
}

/* Of each communicator the oldest nonblocking call under way; the calls of one are mostly in a row. */
static void describe_calls(ulfm_nm_waits * waits)
{
    const MPIR_Comm *seen = NULL;
    MPIR_Request *req;

    for (req = icalls; req; req = ICALL(req)->next) {
        int missing = -1, kind = -1;
        if (req->comm != seen && COLL_STATE(req->comm)->coll)
            kind = ulfm->coll_begun(COLL_STATE(req->comm)->coll, &missing);
        if (kind >= 0)
            describe_collective(waits, req->comm, kind, missing, 1);
        seen = req->comm;
    }
}

/* MPIX_Comm_agree and _shrink, and MPI_Win_free with --ft: the coordinator waits for votes, the others for it. */
static void describe_agreement(ulfm_nm_waits * waits)
{
    const int leads = agreeing->coordinator == my_index(agreeing_comm);
    const int whom = leads ? first_without_vote(agreeing_comm, agreeing) : agreeing->coordinator;
    ulfm_nm_wait wait = { ULFM_WAIT_COLLECTIVE, -2, -1, 0, "an agreement" };

    if (whom < 0)
        return;
    wait.rank = rank_in_job(member(agreeing_comm, whom));
    waits->add(waits, &wait);
}

/* MPI_Win_free after a failure. */
static void describe_settlement(ulfm_nm_waits * waits)
{
    const int whom = first_unsettled(settling_comm, settling, settling_round);
    ulfm_nm_wait wait = { ULFM_WAIT_COLLECTIVE, -2, -1, 0, "the end of a window" };

    if (whom < 0)
        return;
    wait.rank = rank_in_job(member(settling_comm, whom));
    waits->add(waits, &wait);
}

static void describe_waits(ulfm_nm_waits * waits)
{
    waits->blocked = blocking || coll_running;
    if (coll_running)
        describe_collective(waits, coll_running, coll_kind, ulfm->coll_missing(COLL_STATE(coll_running)->coll), 0);
    describe_calls(waits);
    if (agreeing)
        describe_agreement(waits);
    if (settling)
        describe_settlement(waits);
    describe_connections(waits);
    describe_receives(waits);
}
