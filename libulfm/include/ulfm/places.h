/* Processes that a program starts itself, in the places of an emulated interconnect that ulfmrun --cube has made: see
 * libnx2, whose hosts load their nodes. All do nothing, and answer 0, in the host's time. */
#ifndef ULFM_PLACES_H
#define ULFM_PLACES_H

#include <stdint.h>

#include <ulfm/ulfm.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The caller has started process `pid` in `place`: that has a clock, which shows the caller's time, and nobody's time
 *  passes it from now on. The call takes the caller a nanosecond. From now on each wait of the caller ends also when
 *  such a process ends, with ULFM_ERR_TIMED_OUT. */
ULFM_API void ulfm_place_begin(int place, int64_t pid);
/** 1 when the process there has ended before the caller's time. Then its end ends no wait any more. */
ULFM_API int ulfm_place_has_ended(int place);
/** The process there has died, or never joined: nobody waits for its clock. Takes a nanosecond, too. */
ULFM_API void ulfm_place_end(int place);
/** The caller's time in nanoseconds; the question takes no time, unlike ulfm_time_now(). */
ULFM_API int64_t ulfm_place_now(void);
/** The same, when everything has been done that other processes do before that time. */
ULFM_API int64_t ulfm_place_settle(void);

#ifdef __cplusplus
}
#endif
#endif
