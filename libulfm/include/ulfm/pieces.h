/* Messages sent from where they lie, for libraries that have protocols of their own over ports: see libnx2. */
#ifndef ULFM_PIECES_H
#define ULFM_PIECES_H

#include <sys/uio.h>

#include <ulfm/ulfm.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Sends what the pieces make together as one message, without a send buffer: 1, and the pieces may be changed again.
 *  0, with nothing done, when it cannot go at once and in one frame (no room, or others wait before it), when a message
 *  is being composed, or when the address cannot be reached: ulfm_compose() and ulfm_post() do it then, or say why not.
 *  `count` is 1 or more. Threads as for ulfm_post(). Below 0: an error. */
ULFM_API int ulfm_send_pieces(ulfm_port port, ulfm_address to, const struct iovec* pieces, int count);

#ifdef __cplusplus
}
#endif
#endif
