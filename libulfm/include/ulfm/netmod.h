/* What the MPICH netmod calls: a table of functions, fetched once from libulfm.so.0.
 *
 * MPICH is built against this header only. The shim loads the library at MPI_Init and asks for the table, so the
 * library can be changed without building MPICH again, as long as ULFM_NM_ABI stays. All calls are made under MPICH's
 * global lock: one thread at a time. Nothing blocks except `idle` when it is allowed to. */
#ifndef ULFM_NETMOD_H
#define ULFM_NETMOD_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ULFM_NM_ABI 23
#define ULFM_NM_LIBRARY "libulfm.so.0"
#define ULFM_NM_ENTRY "ulfm_nm_table"
#define ULFM_NM_HELLO 160 /* most bytes a connection may say about itself */

typedef struct ulfm_nm ulfm_nm;             /* one port, open for MPI */
typedef struct ulfm_nm_vc ulfm_nm_vc;       /* sending half of a virtual connection */
typedef struct ulfm_nm_group ulfm_nm_group; /* several of them, to which the network copies a frame */

/* Numbered as the library numbers its kinds of frames. */
enum { ULFM_NM_FIRST = 2, ULFM_NM_MORE = 3, ULFM_NM_BYE = 5, ULFM_NM_LOST = 9 };

/* One piece of a message, in place; valid until it is released. For BYE and LOST only origin and cookie are set. The
 * library's own frame, with the cookie behind it: the inlet writes where MPICH reads, and nothing is copied. */
typedef struct __attribute__((may_alias)) ulfm_nm_frame {
  const void* header;
  const void* data;
  uint32_t header_length;
  uint32_t length;
  uint8_t kind;
  uint8_t fresh;  /* first frame from this origin: ask origin() who it is and set a cookie */
  uint8_t shared; /* shared, source and position: where the frame lies; the library's */
  uint32_t origin;
  uint32_t source;
  uint64_t position;
  void* cookie;
} ulfm_nm_frame;

/* Who an origin is. Valid until the next call of next(). */
typedef struct ulfm_nm_origin {
  const char* card;
  const void* hello;
  size_t hello_length;
} ulfm_nm_origin;

enum {
  ULFM_NM_IDLE_TEST = 0,     /* MPI_Test and the like: return soon */
  ULFM_NM_IDLE_THREADED = 1, /* other threads want the lock */
  ULFM_NM_IDLE_WAIT = 2,     /* a blocking wait with other things to look after: short naps */
  ULFM_NM_IDLE_BLOCK = 3,    /* nothing but this port can end the wait: may sleep */
  ULFM_NM_IDLE_AGAIN = 4     /* a blocking wait that comes once more before it sleeps: return soon */
};

/* How a long message of a connection is copied once: by its sender alone, or each of the two processes, which have a core
 * each, copies a half. */
enum { ULFM_NM_COPY_ALONE = 1, ULFM_NM_COPY_TOGETHER = 2 };

/* Writes the next `bytes` of a message's data to `to`. */
typedef void (*ulfm_nm_pack)(void* message, void* to, size_t bytes);

enum { ULFM_NM_LOOK = 1, ULFM_NM_ARRIVED = 2, ULFM_NM_GIVEN_UP = 3 };

/* Operations and types of the reduction kernels. The order of the operations is that of MPICH's operation handles: handle & 15. */
enum {
  ULFM_OP_NONE,
  ULFM_OP_MAX,
  ULFM_OP_MIN,
  ULFM_OP_SUM,
  ULFM_OP_PROD,
  ULFM_OP_LAND,
  ULFM_OP_BAND,
  ULFM_OP_LOR,
  ULFM_OP_BOR,
  ULFM_OP_LXOR,
  ULFM_OP_BXOR,
  ULFM_OP_MINLOC,
  ULFM_OP_MAXLOC,
  ULFM_OP_COUNT
};

enum {
  ULFM_TYPE_NONE,
  ULFM_TYPE_I8,
  ULFM_TYPE_I16,
  ULFM_TYPE_I32,
  ULFM_TYPE_I64,
  ULFM_TYPE_U8,
  ULFM_TYPE_U16,
  ULFM_TYPE_U32,
  ULFM_TYPE_U64,
  ULFM_TYPE_F16, /* _Float16; no kernels where the compiler lacks it */
  ULFM_TYPE_F32,
  ULFM_TYPE_F64,
  ULFM_TYPE_FLONG, /* long double */
  ULFM_TYPE_F128,  /* __float128 of x86 */
  ULFM_TYPE_C32,   /* complex as in C99: a product restores infinities from NaNs */
  ULFM_TYPE_C64,
  ULFM_TYPE_CLONG,
  ULFM_TYPE_X32, /* complex as in Fortran and C++'s bindings: the product is the plain formula */
  ULFM_TYPE_X64,
  ULFM_TYPE_XLONG,
  ULFM_TYPE_BOOL,    /* _Bool */
  ULFM_TYPE_LOGICAL, /* Fortran's, 32 bits: 0 is false */
  ULFM_TYPE_2INT,    /* pairs of a value and a location, for MINLOC and MAXLOC */
  ULFM_TYPE_FLOAT_INT,
  ULFM_TYPE_DOUBLE_INT,
  ULFM_TYPE_LONG_INT,
  ULFM_TYPE_SHORT_INT,
  ULFM_TYPE_FLONG_INT,
  ULFM_TYPE_2FLOAT,
  ULFM_TYPE_2DOUBLE,
  ULFM_TYPE_COUNT
};

/* inout[i] = inout[i] OP in[i] for `count` elements. No alignment is needed; the two may be the same array, and may
 * not overlap otherwise. */
typedef void (*ulfm_kernel)(void* inout, const void* in, size_t count);
/* Collectives through a segment that the ranks of a communicator share: see ulfm-collectives(7). */
typedef struct ulfm_coll ulfm_coll;
#define ULFM_COLL_TICKET 64

enum {
  ULFM_COLL_BARRIER,
  ULFM_COLL_BCAST,
  ULFM_COLL_REDUCE,
  ULFM_COLL_ALLREDUCE,
  ULFM_COLL_REDUCE_SCATTER,
  ULFM_COLL_SCAN,
  ULFM_COLL_EXSCAN,
  ULFM_COLL_GATHER,
  ULFM_COLL_ALLGATHER,
  ULFM_COLL_SCATTER,
  ULFM_COLL_ALLTOALL,
  ULFM_COLL_GATHERV,
  ULFM_COLL_ALLGATHERV,
  ULFM_COLL_SCATTERV,
  ULFM_COLL_ALLTOALLV,
  ULFM_COLL_NEIGHBORS, /* of all five kinds; by coll_near_open and what follows it */
  ULFM_COLL_KINDS
};

/* From one rank to all; or from each to all. */
enum { ULFM_GROUP_ONE = 1, ULFM_GROUP_EACH = 2 };

/* What coll_after says when collectives go by the network's multicast. */
#define ULFM_COLL_BY_MULTICAST (-2)

/* How a call was made: through the segment, or by MPICH's own algorithms because it was one of the communicator's
 * first, because there is no segment, for its operation or type, for its size, or because it has a root and messages run
 * ahead, where ranks share cores or two exchange few bytes. Over a network with multicast: by that, or by MPICH's
 * own algorithms because multicast has nothing for the call or the communicator. A persistent call is by messages where
 * each rank has a core, or when there is no room for it. */
enum {
  ULFM_COLL_SHARED,
  ULFM_COLL_FIRST,
  ULFM_COLL_NO_SEGMENT,
  ULFM_COLL_OPERATION,
  ULFM_COLL_LONG,
  ULFM_COLL_ROOTED,
  ULFM_COLL_MULTICAST,
  ULFM_COLL_NO_MULTICAST,
  ULFM_COLL_NO_ROOM,
  ULFM_COLL_WAYS
};

/* In front of a neighbour's block: its bytes as a size_t, or that it comes by a message. */
#define ULFM_NEAR_HEADER sizeof(size_t)
#define ULFM_NEAR_BY_MESSAGE ((size_t)-1)

typedef struct ulfm_coll_call {
  int kind;
  int root;
  const void* in; /* what these may be to each other: coll/collective.hpp */
  void* out;      /* BCAST: the data */
  size_t count;   /* elements of a reduction; else bytes for each rank; of a V kind, what this rank has or gets */
  size_t extent;  /* of a reduction */
  ulfm_kernel kernel;
  size_t first, mine; /* REDUCE_SCATTER: the elements this rank wants */
  /* The V kinds: bytes for each rank, or from it, and where they are; of GATHERV and SCATTERV at the root only. */
  const size_t *in_bytes, *in_at, *out_bytes, *out_at;
  int kept; /* of a persistent call: what coll_keep returned; else 0 */
} ulfm_coll_call;

/* What coll_run returns when a V kind has more to move than messages do as well: nothing has been done, in any rank. */
#define ULFM_COLL_TOO_LONG (INT_MIN + 2)

/* What an MPI wait needs, for reports about waits that do not end. Numbered as StallKind (job/stall_board.hpp). */
enum {
  ULFM_WAIT_MESSAGE,       /* that `rank` sends a message with `tag` */
  ULFM_WAIT_ANY,           /* that anybody does */
  ULFM_WAIT_CLEAR_TO_SEND, /* that `rank` receives a message of `bytes`, which was announced */
  ULFM_WAIT_DATA,          /* the bytes of a message that `rank` announced */
  ULFM_WAIT_TAKEN,         /* that `rank` receives a synchronous send */
  ULFM_WAIT_ROOM,          /* that `rank` takes what was sent before; `bytes` is how many messages wait */
  ULFM_WAIT_COLLECTIVE     /* that `rank` comes to the collective `name` */
};

typedef struct ulfm_nm_wait {
  int kind;
  int rank; /* in the job; -1: anybody, -2: of another job */
  int tag;  /* -1: any */
  uint64_t bytes;
  const char* name; /* of the communicator, or of the collective */
} ulfm_nm_wait;

typedef struct ulfm_nm_waits {
  int blocked;      /* inside an MPI call that waits */
  unsigned posted;  /* receives that wait for messages */
  unsigned arrived; /* messages that wait for receives */
  unsigned unsent;  /* messages that wait for room */
  void (*add)(struct ulfm_nm_waits* waits, const ulfm_nm_wait* wait);
} ulfm_nm_waits;

typedef struct ulfm_nm_api {
  uint32_t abi;
  const char* version;

  /* Sentence of the last failure. */
  const char* (*last_error)(void);

  /* Where the ranks are on an emulated interconnect: writes the node of each and returns how many nodes there are,
   * numbered from 0. 0, with nothing written, when the nodes are the hosts. Called before open(). */
  int (*nodes)(int size, int* node_of);

  /* Opens the port of process `rank` in the process group `job_id`. `local_processes` shares this host, for the choice
   * of waiting. */
  int (*open)(const char* job_id, int rank, int size, int local_processes, ulfm_nm** nm);
  void (*close)(ulfm_nm* nm);
  /* MPI_Finalize has begun: where processes share cores, disconnect() leaves mapped what it would unmap, until close(). */
  void (*ending)(ulfm_nm* nm);
  /* Before close() and the last disconnect(): where processes share cores, waits up to 100 ms until the others of this
   * host are here too. What follows is work for the kernel, which would keep from their cores those that still run. */
  void (*leave)(ulfm_nm* nm);
  const char* (*card)(ulfm_nm* nm);
  /* The card of a process, when it can be found without the launcher's key-value space: 1, or 0 when not so. */
  int (*card_of)(ulfm_nm* nm, const char* job_id, int rank, char* card, size_t size);
  /* The longest message that is sent without asking first; to a process without a connection yet when `vc` is NULL. */
  size_t (*eager_limit)(ulfm_nm* nm, const ulfm_nm_vc* vc);

  /* A virtual connection to the process with that card. 0 or a negative ULFM_ERR_*. */
  int (*connect)(ulfm_nm* nm, const char* card, const void* hello, size_t hello_length, ulfm_nm_vc** vc);
  /* Ends it; what was sent before arrives. 1 done, 0 no room now: call again later. */
  int (*disconnect)(ulfm_nm* nm, ulfm_nm_vc* vc, int force);
  /* The other side can still receive. */
  int (*listening)(ulfm_nm_vc* vc);
  /* Frames go through memory that both processes map, and nothing on the way looks into them. */
  int (*shares_memory)(ulfm_nm_vc* vc);

  /* Begins a message: the header and as much of the data as there is room for. Bytes of data taken, or -1 when not
   * even the header went. */
  ptrdiff_t (*begin)(ulfm_nm_vc* vc, const void* header, size_t header_length, const struct iovec* data, int pieces);
  /* A whole message whose data lie in one piece, as one frame: 1. 0, with nothing taken, when there is no room for it
   * now, or when frames are shorter. */
  int (*send_whole)(ulfm_nm_vc* vc, const void* header, size_t header_length, const void* data, size_t length);
  /* Goes on with what was begun. Bytes taken. */
  ptrdiff_t (*more)(ulfm_nm_vc* vc, const struct iovec* data, int pieces);
  /* As begin() and more(), of `length` bytes of data that `pack` writes into the frames, each once and in order. Only for
   * connections that share memory. */
  ptrdiff_t (*begin_packed)(ulfm_nm_vc* vc, const void* header, size_t header_length, ulfm_nm_pack pack, void* message,
                            size_t length);
  ptrdiff_t (*more_packed)(ulfm_nm_vc* vc, ulfm_nm_pack pack, void* message, size_t length);

  /* A long message of so many bytes is let in, into memory that the other process of the connection could copy to. Not 0:
   * tell it where that memory is, for this is the faster way. Each call has its long_ends. */
  int (*long_begins)(ulfm_nm_vc* vc, size_t bytes);
  /* The message is there; `once` when it was not frames that brought it. */
  void (*long_ends)(ulfm_nm_vc* vc, size_t bytes, int once);
  /* How a long message is to go to a process that has told where its memory is: ULFM_NM_COPY_, or 0: by frames. */
  int (*copies_once)(ulfm_nm_vc* vc);
  /* A one-sided transfer of so many bytes, from or to `here`, in an epoch in which the target takes part: 1 when a copy by
   * the kernel takes less time than messages, 0 when it does not or cannot be made. Reads `here` to find out. */
  int (*copy_pays)(ulfm_nm_vc* vc, const void* here, size_t bytes);
  /* Copies between `here` and the address `there` of the other process, into it when `write` is not 0. 1, or 0 when that
   * cannot be done; a part may have been copied, and copies_once() is 0 from then on. */
  int (*copy)(ulfm_nm_vc* vc, int write, void* here, uint64_t there, size_t bytes);
  /* For the statistics: a message of so many bytes went that way. */
  void (*count_copy)(ulfm_nm_vc* vc, size_t bytes);

  /* The next frame: 1, or 0 when there is none. The caller may hold several frames. */
  int (*next)(ulfm_nm* nm, ulfm_nm_frame* frame);
  /* Not 0 in virtual time. */
  int (*timed)(ulfm_nm* nm);
  /* As next(), in a blocking wait of one thread that has nothing else to look after. In virtual time what has come is
   * not looked for: the wait sees it. */
  int (*next_awaited)(ulfm_nm* nm, ulfm_nm_frame* frame);
  /* As next(), right behind a frame: a look that costs a system call and can find nothing is left out. */
  int (*next_at_hand)(ulfm_nm* nm, ulfm_nm_frame* frame);
  /* As next(), for a receive that has just been called: a process with a core of its own looks on for a while. -1 when
   * there is none and it is of no use to ask again at once: others need the core, or in virtual time, where each look
   * costs time. */
  int (*next_soon)(ulfm_nm* nm, ulfm_nm_frame* frame);
  /* Ends the caller's use of that frame. Frames may be released in any order, each once. */
  void (*release)(ulfm_nm* nm, const ulfm_nm_frame* frame);
  /* `place` says where the next data belong of the message that is arriving from the origin with that cookie, as far as
   * they lie in one piece, and how long that is; NULL when it does not know. Data of ULFM_NM_MORE may then lie there
   * already. It is called during next(), with every frame of that origin handled that came before. */
  void (*use_places)(ulfm_nm* nm, void* (*place)(void* cookie, size_t* length));
  int (*origin)(ulfm_nm* nm, uint32_t index, ulfm_nm_origin* origin);
  void (*set_cookie)(ulfm_nm* nm, uint32_t index, void* cookie);
  /* No origin has this cookie any more: a connection may have had several origins. */
  void (*drop_cookie)(ulfm_nm* nm, const void* cookie);

  /* A turn without result. ULFM_NM_LOOK now and then, when it is time to look for closed and dead peers;
   * ULFM_NM_ARRIVED when a frame came meanwhile; ULFM_NM_GIVEN_UP when a peer stopped answering, so that listening()
   * is false for connections that seemed fine; else 0. */
  int (*idle)(ulfm_nm* nm, int how, int sends_waiting);

  /* The kernel of ULFM_OP_ on ULFM_TYPE_ for this machine; NULL when the operation is not defined on the type. */
  ulfm_kernel (*kernel)(int op, int type);

  /* Multicast in the network. Most bytes of data of a message to `members` at once, with a header of that length; 0
   * when there is no such thing. The same in all processes of a job. */
  size_t (*group_limit)(ulfm_nm* nm, int members, size_t header_length);
  /* Whether a collective of so many ranks on so many nodes, of so many bytes from each, is quicker by multicast. In
   * virtual time that follows from what messages and bytes cost there; else always. 0, or a ULFM_GROUP_; of a barrier
   * and a reduction to one rank, whose messages go up a tree, how many times as long a message takes from end to end
   * as its receiver's software does alone. */
  int (*group_pays)(ulfm_nm* nm, int kind, int ranks, int nodes, size_t bytes);
  /* These connections as one destination of messages with such headers. One that is disconnected later is left out. */
  ulfm_nm_group* (*group_open)(ulfm_nm* nm, ulfm_nm_vc* const* vcs, int count, size_t header_length);
  void (*group_close)(ulfm_nm_group* group);
  /* A message within the limit to the members whose mark is set, as the next one of each connection; on each, the message
   * before must have gone whole. `goes_on`: in virtual time, with the message before. The marks of those that it
   * went to are cleared. 1: the others get it by begin(); 0: there is no room now, for some at least: again after the next
   * idle(), to which this is a send that waits. */
  int (*group_send)(ulfm_nm_group* group, const void* header, size_t header_length, const void* data, size_t length,
                    int goes_on, char* marks);

  /* Whether this job's collectives may go through shared segments: how many calls of a communicator go by messages
   * first, or -1 when none may, or ULFM_COLL_BY_MULTICAST. The same in all processes of a job. */
  int (*coll_after)(ulfm_nm* nm, int fault_tolerant);
  /* Whether a call, of a communicator of so many ranks without a segment yet, would go by messages with one too; the
   * communicator's `*ahead` is 0 at first. The same in all ranks. */
  int (*coll_without)(ulfm_nm* nm, int kind, size_t bytes, int size, size_t* ahead);
  /* Rank 0 makes the segment and writes the ticket; the others then attach with it. `progress` is called while waiting
   * and gives up with a positive number; `threaded`: others want the lock, so there are no sleeps. 0 or ULFM_ERR_*. */
  int (*coll_open)(ulfm_nm* nm, char* ticket, int rank, int size, int threaded, int (*progress)(void*), void* arg,
                   ulfm_coll** coll);
  void (*coll_close)(ulfm_coll* coll);
  /* The way for a call of that kind, of which a rank hands over or gets so many bytes (V kinds: the most, where all
   * know it): ULFM_COLL_SHARED, _LONG or _ROOTED. The same in all ranks. */
  int (*coll_way)(ulfm_coll* coll, int kind, size_t bytes);
  /* Kind ULFM_COLL_KINDS: this rank cannot do its part, and the others' calls fail.
   * 0; what progress returned; -1 - rank of a process that died; ULFM_COLL_TOO_LONG; less: no memory, or another rank
   * gave up. */
  int (*coll_run)(ulfm_coll* coll, const ulfm_coll_call* call);
  /* Nonblocking calls of a communicator, made in the same order in all ranks. Whether one of that kind, of which
   * a rank hands over or gets so many bytes, may be made here; the same in all ranks. */
  int (*coll_fits)(ulfm_coll* coll, int kind, size_t bytes);
  /* Of GATHERV, SCATTERV and ALLTOALLV no rank knows all sizes: blocks of more bytes than this are left out, and the
   * caller moves them by itself. */
  size_t (*coll_block)(ulfm_coll* coll, int kind);
  /* Room for a persistent call that fits: what goes into its `kept`, the same in all ranks, which ask in the same order;
   * 0: there is none, or messages are quicker; less: as coll_run. */
  int (*coll_keep)(ulfm_coll* coll, const ulfm_coll_call* call);
  /* Begins a call, a persistent one in any order beside others. The buffers stay as they are until it has finished. 1: it has, already; 0: coll_finished will return the
   * cookie; else why not, as coll_run. */
  int (*coll_start)(ulfm_coll* coll, const ulfm_coll_call* call, void* cookie);
  /* Goes on with all that was begun, of all communicators. A call that has finished, in any order, and in *why 0 or, as
   * coll_run, why it has not; NULL when there is none. */
  void* (*coll_finished)(ulfm_nm* nm, int* why);
  /* The kind of the oldest call that was begun and has not finished, with a rank that it waits for, or -1. -1: none. */
  int (*coll_begun)(ulfm_coll* coll, int* missing);
  /* For the statistics: a call of this kind went this way. */
  void (*coll_count)(ulfm_nm* nm, int kind, int way);
  /* A rank that has not come to the call that this rank is in; -1 when all have. */
  int (*coll_missing)(ulfm_coll* coll);
  /* Blocks for neighbours and from them, a call in five steps, of ranks that give or get nothing too. What is not 0 is as
   * coll_run's. Before the first: the ranks that this one gets blocks from, and gives them to, in order; negative: nobody.
   * Of two from the same rank the first is for the first. */
  int (*coll_near_open)(ulfm_coll* coll, const int* from, int n_from, const int* to, int n_to);
  /* Where the blocks go: in order, `step` apart, which is told then, and each as ULFM_NEAR_HEADER bytes, which hold how
   * many bytes there are, and those. No room: they go by messages, and nobody looks. */
  int (*coll_near_begin)(ulfm_coll* coll, char** blocks, size_t* room);
  /* They are there. `step` 0: one for all. */
  void (*coll_near_post)(ulfm_coll* coll, size_t step);
  /* The block from rank `from`, the `index`-th of those; NULL when it comes by a message. */
  int (*coll_near_take)(ulfm_coll* coll, int index, int from, const char** block);
  /* All of them have been read. */
  void (*coll_near_end)(ulfm_coll* coll);

  /* `describe` is called, during idle(), when somebody asks what this process waits for. */
  void (*on_stall)(ulfm_nm* nm, void (*describe)(ulfm_nm_waits* waits));
} ulfm_nm_api;

/* The table; NULL when the library does not have that ABI. */
typedef const ulfm_nm_api* (*ulfm_nm_entry)(uint32_t abi);

#ifdef __cplusplus
}
#endif
#endif
