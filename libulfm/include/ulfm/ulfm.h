/* ULFM, user-level fast message: the C interface.
 *
 * Applications own ports; a port number in a send queue starts a message; a transport moves it. A message is composed
 * in place in a port's send buffer and read in place at the other end.
 *
 * Conventions. Functions return 0 or a positive result on success and a negative ULFM_ERR_* on failure;
 * ulfm_last_error() then has the sentence (per thread). Handles are numbers: using one after its object was closed is
 * ULFM_ERR_STALE, never a crash. A job and its ports may be used from several threads, each port by one thread at a
 * time. Nothing is thrown across this interface. Sizes are bytes, times nanoseconds.
 *
 * Source of the design: Zhou et al., "A fast message passing mechanism at user level for cluster computing" (1999),
 * sections 2.1 to 2.4: port, port table, send queue, buffer tags, message cache. */
#ifndef ULFM_ULFM_H
#define ULFM_ULFM_H

#include <stddef.h>
#include <stdint.h>

#define ULFM_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

enum {
  ULFM_OK = 0,
  ULFM_ERR_INVALID = -1,
  ULFM_ERR_FULL = -2,
  ULFM_ERR_NOT_FOUND = -3,
  ULFM_ERR_CLOSED = -4,
  ULFM_ERR_STALE = -5,
  ULFM_ERR_BUSY = -6,
  ULFM_ERR_TOO_LARGE = -7,
  ULFM_ERR_NO_MEMORY = -8,
  ULFM_ERR_PEER_FAILED = -9,
  ULFM_ERR_PROTOCOL = -10,
  ULFM_ERR_TIMED_OUT = -11,
  ULFM_ERR_UNAVAILABLE = -12,
  ULFM_ERR_SYSTEM = -13
};

/** Version of the library, "major.minor.patch". */
ULFM_API const char* ulfm_version(void);
/** Name of an error number, e.g. "peer_failed". */
ULFM_API const char* ulfm_error_name(int error);
/** Sentence of the last failure in this thread, its first 1023 bytes; "" when there was none. Valid until the next
 * call.
 *  Also in functions that run at exit(). */
ULFM_API const char* ulfm_last_error(void);

/* ---- what there is -------------------------------------------------------------------------------------------- */

/** Number of transports this library knows, and their names (for 0 <= i < count; NULL outside). */
ULFM_API int ulfm_transport_count(void);
ULFM_API const char* ulfm_transport_name(int i);
/** Why a transport cannot be used here; "" when it can. Valid until the next call in this thread. */
ULFM_API const char* ulfm_transport_unavailable(int i);

/* ---- job ------------------------------------------------------------------------------------------------------- */

typedef uint64_t ulfm_job;
typedef uint64_t ulfm_port;

/** Where a port is: a process known to the job and a port number there. */
typedef struct ulfm_address {
  uint32_t process;
  uint16_t port;
  uint16_t reserved;
} ulfm_address;

/** Joins the job this process was launched in (mpiexec, ulfmrun); alone, rank 0 of 1, when it was not launched. */
ULFM_API int ulfm_job_join(ulfm_job* job);
/** The same without a launcher: always alone. Its ports can be reached through ulfm_job_card. */
ULFM_API int ulfm_job_alone(ulfm_job* job);
/** Closes every port and leaves. Collective only in the launcher's books: nobody is waited for. */
ULFM_API int ulfm_job_leave(ulfm_job job);
ULFM_API int ulfm_job_rank(ulfm_job job);
ULFM_API int ulfm_job_size(ulfm_job job);
/** Returns when every process of the job has called it. */
ULFM_API int ulfm_job_barrier(ulfm_job job);
/** Name of the transport that carries this job's messages, e.g. "direct"; NULL for a stale handle. */
ULFM_API const char* ulfm_job_transport(ulfm_job job);
/** What suits that transport, in bytes, for libraries that divide messages themselves. 0: nothing in particular, or a
 *  stale handle. */
enum {
  ULFM_SUITS_PIECE = 1, /**< pieces of a long message of that size, because each message costs its software much */
  ULFM_SUITS_COPIES = 2 /**< a group for messages to all up to that size, because the network copies them itself */
};
ULFM_API size_t ulfm_job_suits(ulfm_job job, int what);
/** Key-value exchange: a put is seen by others after the next barrier. Printable, no blanks; see the launcher's limits
 *  (Hydra: keys below 64, values below 1024 bytes). */
ULFM_API int ulfm_job_put(ulfm_job job, const char* key, const char* value);
ULFM_API int ulfm_job_get(ulfm_job job, const char* key, char* value, size_t size);
/** Printable address of this process (below 128 bytes), for processes that are not of this job. */
ULFM_API int ulfm_job_card(ulfm_job job, char* card, size_t size);

/** Address of port `port` of process `rank` of the job. */
ULFM_API int ulfm_job_address(ulfm_job job, int rank, uint16_t port, ulfm_address* address);
/** Address of a port of the process with that card. */
ULFM_API int ulfm_job_address_of_card(ulfm_job job, const char* card, uint16_t port, ulfm_address* address);

/* ---- ports ------------------------------------------------------------------------------------------------------ */

typedef struct ulfm_port_options {
  uint16_t number;     /**< 0..63; ULFM_ANY_PORT takes a free one */
  uint32_t slot_bytes; /**< size of one send and one receive buffer; 0: ULFM_SLOT */
  uint32_t depth;      /**< buffers each way; 1 is the original machine; 0: ULFM_DEPTH */
} ulfm_port_options;

#define ULFM_ANY_PORT 0xffff

/** Opens a port; `options` may be NULL. ULFM_ERR_BUSY when that number is open. */
ULFM_API int ulfm_port_open(ulfm_job job, const ulfm_port_options* options, ulfm_port* port);
/** Closes it: what was posted is sent first, what has arrived and was not read is dropped. */
ULFM_API int ulfm_port_close(ulfm_port port);
/** Its number, 0..63. */
ULFM_API int ulfm_port_number(ulfm_port port);

/** A send buffer of `size` bytes to compose a message in. ULFM_ERR_FULL while all `depth` buffers are on their way;
 *  ULFM_ERR_BUSY when a message is being composed already. Any size that memory allows. */
ULFM_API int ulfm_compose(ulfm_port port, size_t size, void** buffer);
/** Posts what was composed: tags the buffer and hands the port number to the interface, through the send queue when
 *  that is busy. Never blocks. */
ULFM_API int ulfm_post(ulfm_port port, ulfm_address to);
/** Gives the composed buffer back unsent. */
ULFM_API int ulfm_discard(ulfm_port port);

/* ---- groups ----------------------------------------------------------------------------------------------------- */

/* A group is several ports as one destination of one port's messages. The message is composed once. Where the network
 * copies messages itself (transport pointdesign) it leaves the sender once; on one host (direct) it is written once,
 * and
 * all receivers read the same bytes; elsewhere it is sent to each. Each member gets every message whole, once, and in
 * order with what else the port sends to it. */

typedef uint64_t ulfm_group;

/** Connects to `count` ports (1 or more) as a group; an address given twice counts once. ULFM_ERR_NOT_FOUND when one of
 *  them is not open, ULFM_ERR_PEER_FAILED when its process has ended. The group belongs to the port. */
ULFM_API int ulfm_group_open(ulfm_port port, const ulfm_address* members, int count, ulfm_group* group);
/** The same as a tree: where the transport neither copies messages nor lets receivers read the same bytes (tcp, ofi,
 *  and the emulated interconnects but pointdesign), each message leaves this port a few times, and members send it on
 *  to others whenever their program polls, waits or flushes at its port. Messages to the group are in order among each
 *  other; not with what the port sends to a member by itself. What a member that dies had not sent on is lost for those
 *  behind it, and later messages go round it. */
ULFM_API int ulfm_group_open_tree(ulfm_port port, const ulfm_address* members, int count, ulfm_group* group);
/** What was posted to it before is still sent. ULFM_ERR_STALE when it was closed before. */
ULFM_API int ulfm_group_close(ulfm_port port, ulfm_group group);
/** Posts what was composed to all members. Never blocks. A member that has died or closed its port is left out of the
 *  group from then on; the port's next wait or flush says so, with ULFM_ERR_PEER_FAILED, once. */
ULFM_API int ulfm_post_group(ulfm_port port, ulfm_group group);

/** A message in place. Stays valid until released; at most `depth` may be held. */
typedef struct ulfm_message {
  const void* bytes;
  size_t size;
  ulfm_address source;
  uint64_t handle;
} ulfm_message;

/** Takes the next message: 1 when there is one, 0 when not. */
ULFM_API int ulfm_poll(ulfm_port port, ulfm_message* message);
/** The same, waiting up to `timeout_ns` (negative: for ever). ULFM_ERR_TIMED_OUT; ULFM_ERR_PEER_FAILED, once for each
 *  process that died with a connection to this port, or, on shared memory and emulated interconnects, from this port,
 *  and once for each message to it that is known to be lost. */
ULFM_API int ulfm_wait(ulfm_port port, int64_t timeout_ns, ulfm_message* message);
/** Waits for a message at any of `count` ports; `*which` is the index of the one that has it. */
ULFM_API int ulfm_wait_any(const ulfm_port* ports, int count, int64_t timeout_ns, int* which, ulfm_message* message);
/** Clears the tag: the buffer may be written again. ULFM_ERR_STALE when it was released before. */
ULFM_API int ulfm_release(ulfm_port port, const ulfm_message* message);

/** Waits until everything posted has left the send buffers. ULFM_ERR_TIMED_OUT; ULFM_ERR_PEER_FAILED as ulfm_wait. */
ULFM_API int ulfm_flush(ulfm_port port, int64_t timeout_ns);

/* ---- watching --------------------------------------------------------------------------------------------------- */

/* One thread besides the port's own may sleep until something arrives there, to tell its owner, which is busy with
 * something else. It takes nothing, and nothing changes for the owner, who polls and waits as ever. */

/** Whatever arrives after this ends ulfm_watch_wait; what arrived before does not, so look for it in between. */
ULFM_API int ulfm_watch_begin(ulfm_port port);
/** Sleeps until an arrival or ulfm_watch_end since ulfm_watch_begin: 1; or for `timeout_ns` (0 or more):
 *  ULFM_ERR_TIMED_OUT. Begin again after either. */
ULFM_API int ulfm_watch_wait(ulfm_port port, int64_t timeout_ns);
/** Ends the watch from any thread: the watcher wakes up. */
ULFM_API int ulfm_watch_end(ulfm_port port);

/* ---- time ------------------------------------------------------------------------------------------------------- */

/** 1 in a job that runs in virtual time (ulfmrun --time), 0 in one that keeps the host's. */
ULFM_API int ulfm_time_is_virtual(void);
/** Nanoseconds: virtual ones since the job began, or those of the host's monotonic clock. In virtual time the question
 *  itself takes a moment, so that a loop that waits for a time ends. */
ULFM_API int64_t ulfm_time_now(void);
/** For libraries that carry a program's calls over ULFM: a call begins or ends, and what lies between two calls is the
 *  program's computing; a look has found nothing. They do nothing in the host's time. `call` is shown in tables. */
ULFM_API void ulfm_time_enter(const char* call);
ULFM_API void ulfm_time_leave(void);
ULFM_API void ulfm_time_look(void);
/** 1 while this thread, which has made calls, is in the program's own code of a job in virtual time. */
ULFM_API int ulfm_time_outside(void);
/** The program does nothing for so long, which takes no time of the host's; nothing without virtual time. */
ULFM_API void ulfm_time_sleep(int64_t nanoseconds);
/** For libraries that carry messages over ULFM: what software the messages that this thread sends from now on cost in
 *  virtual time: a message's; those of the library itself; none, for what goes on with the message before. */
enum { ULFM_TIME_MESSAGE = 0, ULFM_TIME_SYSTEM = 1, ULFM_TIME_GOES_ON = 2 };
ULFM_API void ulfm_time_charge(int what);
/** Between 1 and 0 processes may join the job: that everybody waits is no deadlock then. */
ULFM_API void ulfm_time_hold(int begin);

#ifdef __cplusplus
}
#endif
#endif
