/* Teams: processes of one host that make collective calls through memory that they share (ulfm-collectives(7)).
 *
 * A team is for libraries that have collective calls of their own, as libnx2 has. Its members make the same calls in
 * the same order, one thread of each at a time. A process that waits in a call does nothing else, except that it calls
 * `progress` now and then. When a call has failed the others' calls fail too, and the team can only be closed. Results
 * of reductions are applied in the order of the members, so they are the same in all of them, and in every run.
 *
 * There are teams over the transport `direct` only: over an emulated interconnect the messages are what is asked for.
 * Functions return 0 or a negative ULFM_ERR_*; ulfm_last_error() then has the sentence. Sizes are bytes. */
#ifndef ULFM_TEAM_H
#define ULFM_TEAM_H

#include <ulfm/ulfm.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ulfm_team ulfm_team;

/** Longest ticket, with its ending zero. */
#define ULFM_TEAM_TICKET 64

/** Called now and then by the thread that waits in a call of the team. */
typedef void (*ulfm_team_progress)(void* arg);
/** inout[i] = inout[i] OP in[i] for `count` elements. Called in any member's process. */
typedef void (*ulfm_team_combine)(void* inout, const void* in, size_t count);

/** Member 0 makes the team and writes a ticket, with which the other members of the job join. A member that got an
 *  error has to say so to the others, by messages: nobody may call a team that somebody could not join.
 *  ULFM_ERR_UNAVAILABLE: not over this transport, on other hosts, or switched off (ULFM_COLLECTIVES=off). */
ULFM_API int ulfm_team_create(ulfm_job job, int size, ulfm_team_progress progress, void* arg, char* ticket,
                              ulfm_team** team);
ULFM_API int ulfm_team_join(ulfm_job job, const char* ticket, int member, int size, ulfm_team_progress progress,
                            void* arg, ulfm_team** team);
/** Before the job is left. NULL is nothing. */
ULFM_API void ulfm_team_close(ulfm_team* team);

enum { ULFM_TEAM_REDUCE, ULFM_TEAM_GATHER };

/** 1 when calls of that kind with so many bytes from a member (the most that one has) gain from the shared memory, 0
 *  when messages are as fast. The same in all members, which ask at the same place. */
ULFM_API int ulfm_team_gains(ulfm_team* team, int kind, size_t bytes);

/** All members have come. */
ULFM_API int ulfm_team_barrier(ulfm_team* team);
/** out = in of member 0 OP in of member 1 ..., for each of `count` elements of `element` bytes; `in` may be `out`. */
ULFM_API int ulfm_team_reduce(ulfm_team* team, const void* in, void* out, size_t count, size_t element,
                              ulfm_team_combine combine);
/** sizes[m] bytes of member m, one behind the other, which are in[0 .. sizes[own]) there. All know all sizes. */
ULFM_API int ulfm_team_gather(ulfm_team* team, const void* in, void* out, const size_t* sizes);

#ifdef __cplusplus
}
#endif
#endif
