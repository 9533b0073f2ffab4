/* Arrivals that interrupt a thread, for libraries whose programs have handlers: see libnx2. */
#ifndef ULFM_INTERRUPT_H
#define ULFM_INTERRUPT_H

#include <ulfm/ulfm.h>

#ifdef __cplusplus
extern "C" {
#endif

/** From now on what arrives after ulfm_watch_begin() sends the signal SIGURG to that thread of this process
 *  (gettid(2)), by
 *  the sender's own hand where both are on one host, and ulfm_watch_wait() then ends by its time limit or
 *  ulfm_watch_end()
 *  only. Once after each beginning. 0: as before. One thread to a process; any thread may call. */
ULFM_API int ulfm_watch_interrupts(ulfm_port port, int thread);

/** Whoever has just served others from a core that processes share lets them go on, as a wait would: gives the core
 *  away once. Nothing where each process has its own core, and where it would go to somebody who computes for long.
 *  Threads as for ulfm_post(). */
ULFM_API int ulfm_give_way(ulfm_port port);

#ifdef __cplusplus
}
#endif
#endif
