/* One-sided transfers on memory that is not shared, with another process of this host: the kernel copies from process
 * to process (decision 0025), and the other one has nothing to do. MPIDI_CH3I_Put and _Get ask, when the epoch has been
 * granted. With fault tolerance they go by messages, whose failures are seen. Included by ulfm_netmod.c. */

/* `here` is NULL in an epoch in which the target need not come: then messages would wait for it. In others they may take
 * less time (decision 0058). */
int MPIDI_nem_ulfm_reaches(MPIDI_VC_t * vc, const void *here, MPI_Aint bytes)
{
    if (!ulfm || !AREA(vc)->out || MPIR_CVAR_ENABLE_FT)
        return 0;
    return here ? ulfm->copy_pays(AREA(vc)->out, here, (size_t) bytes) : ulfm->copies_once(AREA(vc)->out) != 0;
}

/* 0: the kernel does not copy, or only a part, and messages have to bring all of it. */
int MPIDI_nem_ulfm_reach(MPIDI_VC_t * vc, int writes, void *here, void *there, MPI_Aint bytes)
{
    if (!ulfm->copy(AREA(vc)->out, writes, here, (uint64_t) (uintptr_t) there, (size_t) bytes))
        return 0;
    if (writes)
        ulfm->count_copy(AREA(vc)->out, (size_t) bytes);
    return 1;
}
