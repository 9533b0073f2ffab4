/* calls WHAT [SHARE [SIZE...]]: time of one use of every call of a group (sends, types, windows, collectives, objects),
 * or of the calls of that name (of windows: as far as the name goes, such as created:lock), on an even number of ranks.
 * Point-to-point calls join each even rank with the next one. The time is that of the slowest rank; the median of
 * batches of about 4 ms, divided by SHARE. Lines "call bytes us". */
#include "bench.h"

enum { kBatches = 5, kMany = 64, kLongest = 1 << 20 };
static int ranks, rank, peer, first; /* first: this one of a pair begins */
static char *out, *in;               /* kLongest bytes for each rank, and as many again for gaps */
static double batch_time = 4e-3;

/* ---- sends: one round trip, or what the name says --------------------------------------------------------------- */

typedef int (*Send)(const void*, int, MPI_Datatype, int, int, MPI_Comm);

static void receive(int bytes) { MPI_Recv(in, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }

static void there_and_back(Send send, void (*take)(int), int bytes) {
  if (first) send(out, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
  take(bytes);
  if (!first) send(out, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
}

static void send(int bytes) { there_and_back(MPI_Send, receive, bytes); }
static void ssend(int bytes) { there_and_back(MPI_Ssend, receive, bytes); }
static void bsend(int bytes) { there_and_back(MPI_Bsend, receive, bytes); }

static void receive_any(int bytes) {
  MPI_Recv(in, bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
static void send_to_any(int bytes) {
  /* Other pairs must not be in the way. */
  if (ranks == 2) there_and_back(MPI_Send, receive_any, bytes);
}

static void receive_probed(int bytes) {
  MPI_Status status;
  MPI_Probe(peer, 1, MPI_COMM_WORLD, &status);
  receive(bytes);
}
static void probe(int bytes) { there_and_back(MPI_Send, receive_probed, bytes); }

static void receive_asked_for(int bytes) {
  int there = 0;
  while (!there) MPI_Iprobe(peer, MPI_ANY_TAG, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
  receive(bytes);
}
static void iprobe(int bytes) { there_and_back(MPI_Send, receive_asked_for, bytes); }

static void receive_matched(int bytes) {
  MPI_Message message;
  MPI_Mprobe(peer, 1, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  MPI_Mrecv(in, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
}
static void mprobe(int bytes) { there_and_back(MPI_Send, receive_matched, bytes); }

static void receive_tested(int bytes) {
  MPI_Request request;
  int done = 0;
  MPI_Irecv(in, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &request);
  while (!done) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}
static void test(int bytes) { there_and_back(MPI_Send, receive_tested, bytes); }

static int isend_and_wait(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  MPI_Request request;
  MPI_Isend(data, count, type, to, tag, comm, &request);
  return MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void isend(int bytes) { there_and_back(isend_and_wait, receive, bytes); }

static int issend_and_wait(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  MPI_Request request;
  MPI_Issend(data, count, type, to, tag, comm, &request);
  return MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void issend(int bytes) { there_and_back(issend_and_wait, receive, bytes); }

static void sendrecv(int bytes) {
  MPI_Sendrecv(out, bytes, MPI_BYTE, peer, 1, in, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
static void sendrecv_replace(int bytes) {
  MPI_Sendrecv_replace(out, bytes, MPI_BYTE, peer, 1, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
static void sendrecv_self(int bytes) {
  MPI_Sendrecv(out, bytes, MPI_BYTE, rank, 1, in, bytes, MPI_BYTE, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void exchange(int bytes) {
  MPI_Request both[2];
  MPI_Irecv(in, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &both[0]);
  MPI_Isend(out, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &both[1]);
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}

static void persistent(int bytes) {
  static MPI_Request both[2];
  static int prepared = -1;
  if (bytes != prepared) {
    if (prepared >= 0)
      for (int i = 0; i < 2; ++i) MPI_Request_free(&both[i]);
    MPI_Recv_init(in, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &both[0]);
    MPI_Send_init(out, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &both[1]);
    prepared = bytes;
  }
  MPI_Startall(2, both);
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}

static void waitany(int bytes) {
  MPI_Request some[8];
  int index;
  for (int i = 0; i < 4; ++i) MPI_Irecv(in + i * bytes, bytes, MPI_BYTE, peer, i, MPI_COMM_WORLD, &some[i]);
  for (int i = 0; i < 4; ++i) MPI_Isend(out, bytes, MPI_BYTE, peer, 3 - i, MPI_COMM_WORLD, &some[4 + i]);
  for (int i = 0; i < 8; ++i) MPI_Waitany(8, some, &index, MPI_STATUS_IGNORE);
}

static void cancel(int bytes) {
  MPI_Request request;
  MPI_Irecv(in, bytes, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* ---- sends: kMany of them, and an answer; the time of all ------------------------------------------------------- */

static void answer(void) {
  if (first) MPI_Recv(NULL, 0, MPI_BYTE, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  else MPI_Send(NULL, 0, MPI_BYTE, peer, 3, MPI_COMM_WORLD);
}

/* All of them are in the same memory, which the standard forbids for receives; no library minds. */
static void begin_all(MPI_Request* all, int bytes, int sending, int tag_step) {
  for (int i = 0; i < kMany; ++i)
    if (sending) MPI_Isend(out, bytes, MPI_BYTE, peer, 8 + i * tag_step, MPI_COMM_WORLD, &all[i]);
    else MPI_Irecv(in, bytes, MPI_BYTE, peer, 8 + i * tag_step, MPI_COMM_WORLD, &all[i]);
}

static void stream(int bytes) {
  MPI_Request all[kMany];
  begin_all(all, bytes, first, 0);
  MPI_Waitall(kMany, all, MPI_STATUSES_IGNORE);
  answer();
}

static void stream_both(int bytes) {
  MPI_Request all[2 * kMany];
  begin_all(all, bytes, 0, 0);
  begin_all(all + kMany, bytes, 1, 0);
  MPI_Waitall(2 * kMany, all, MPI_STATUSES_IGNORE);
}

static void flood(int bytes) {
  for (int i = 0; i < kMany; ++i)
    if (first) MPI_Send(out, bytes, MPI_BYTE, peer, 8, MPI_COMM_WORLD);
    else MPI_Recv(in, bytes, MPI_BYTE, peer, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  answer();
}

/* Each comes before its receive; the last one is taken first. */
static void early(int bytes) {
  MPI_Request all[kMany];
  begin_all(all, bytes, 1, 1);
  MPI_Sendrecv(NULL, 0, MPI_BYTE, peer, 7, NULL, 0, MPI_BYTE, peer, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = kMany - 1; i >= 0; --i) MPI_Recv(in, bytes, MPI_BYTE, peer, 8 + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Waitall(kMany, all, MPI_STATUSES_IGNORE);
}

/* ---- types: a round trip of data with gaps ---------------------------------------------------------------------- */

/* `bytes` in all, in blocks with gaps of half their length, kept until the next length. */
static MPI_Datatype kept = MPI_DATATYPE_NULL;
static MPI_Datatype blocks_of(int block, int bytes) {
  static int of_block, of_bytes;
  if (kept != MPI_DATATYPE_NULL && block == of_block && bytes == of_bytes) return kept;
  if (kept != MPI_DATATYPE_NULL) MPI_Type_free(&kept);
  MPI_Type_vector(bytes / block, block, block + block / 2, MPI_BYTE, &kept);
  MPI_Type_commit(&kept);
  of_block = block, of_bytes = bytes;
  return kept;
}

static void gaps(int block, int bytes) {
  const MPI_Datatype type = bytes < block ? MPI_BYTE : blocks_of(block, bytes);
  if (first) MPI_Send(out, 1, type, peer, 1, MPI_COMM_WORLD);
  MPI_Recv(in, 1, type, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (!first) MPI_Send(out, 1, type, peer, 1, MPI_COMM_WORLD);
}
static void gaps_8(int bytes) { gaps(8, bytes); }
static void gaps_64(int bytes) { gaps(64, bytes); }
static void gaps_512(int bytes) { gaps(512, bytes); }
static void gaps_4096(int bytes) { gaps(4096, bytes); }

static void gaps_from_flat(int bytes) {
  const MPI_Datatype type = blocks_of(8, bytes);
  if (first) MPI_Send(out, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
  MPI_Recv(in, 1, type, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (!first) MPI_Send(out, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
}

static void gaps_exchange(int bytes) {
  const MPI_Datatype type = blocks_of(8, bytes);
  MPI_Sendrecv(out, 1, type, peer, 1, in, 1, type, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void pack(int bytes) {
  int place = 0;
  MPI_Pack(out, 1, blocks_of(8, bytes), in, kLongest, &place, MPI_COMM_WORLD);
}
static void unpack(int bytes) {
  int place = 0;
  MPI_Unpack(in, bytes, &place, out, 1, blocks_of(8, bytes), MPI_COMM_WORLD);
}
static void type_vector(int bytes) {
  MPI_Datatype type;
  MPI_Type_vector(bytes, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Type_free(&type);
}

/* ---- windows ---------------------------------------------------------------------------------------------------- */

static MPI_Win created, allocated;

static void put(MPI_Win win, int bytes) { MPI_Put(out, bytes, MPI_BYTE, peer, 0, bytes, MPI_BYTE, win); }
static void get(MPI_Win win, int bytes) { MPI_Get(in, bytes, MPI_BYTE, peer, 0, bytes, MPI_BYTE, win); }
static void add(MPI_Win win, int bytes) {
  MPI_Accumulate(out, bytes / 8, MPI_LONG, peer, 0, bytes / 8, MPI_LONG, MPI_SUM, win);
}
static void get_add(MPI_Win win, int bytes) {
  MPI_Get_accumulate(out, bytes / 8, MPI_LONG, in, bytes / 8, MPI_LONG, peer, 0, bytes / 8, MPI_LONG, MPI_SUM, win);
}
static void fetch_add(MPI_Win win, int bytes) {
  (void)bytes;
  MPI_Fetch_and_op(out, in, MPI_LONG, peer, 0, MPI_SUM, win);
}
static void fetch_one(MPI_Win win, int bytes) {
  (void)bytes;
  MPI_Fetch_and_op(out, in, MPI_LONG, 0, 0, MPI_SUM, win);
}
static void swap(MPI_Win win, int bytes) {
  (void)bytes;
  MPI_Compare_and_swap(out, out, in, MPI_LONG, peer, 0, win);
}
static void put_many(MPI_Win win, int bytes) {
  for (int i = 0; i < 16; ++i) put(win, bytes);
}
static void get_many(MPI_Win win, int bytes) {
  for (int i = 0; i < 16; ++i) get(win, bytes);
}
static void rput(MPI_Win win, int bytes) {
  MPI_Request request;
  MPI_Rput(out, bytes, MPI_BYTE, peer, 0, bytes, MPI_BYTE, win, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

typedef void (*Access)(MPI_Win, int);

static void fenced(Access access, MPI_Win win, int bytes) {
  if (access) access(win, bytes);
  MPI_Win_fence(0, win);
}
static void locked(Access access, MPI_Win win, int bytes) {
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, peer, 0, win);
  if (access) access(win, bytes);
  MPI_Win_unlock(peer, win);
}
/* While one of the pair computes no answer: it waits in a receive. */
static void locked_in_turn(Access access, MPI_Win win, int bytes) {
  if (first) locked(access, win, bytes);
  answer();
}
/* Inside an epoch of MPI_Win_lock_all, which main() begins and ends. */
static void flushed(Access access, MPI_Win win, int bytes) {
  access(win, bytes);
  MPI_Win_flush_all(win);
}
static void started(Access access, MPI_Win win, int bytes) {
  static MPI_Group one = MPI_GROUP_NULL;
  if (one == MPI_GROUP_NULL) {
    MPI_Group all;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &peer, &one);
    MPI_Group_free(&all);
  }
  MPI_Win_post(one, 0, win);
  MPI_Win_start(one, 0, win);
  if (access) access(win, bytes);
  MPI_Win_complete(win);
  MPI_Win_wait(win);
}

/* ---- collectives ------------------------------------------------------------------------------------------------ */

static void barrier(int bytes) { (void)bytes, MPI_Barrier(MPI_COMM_WORLD); }
static void bcast(int bytes) { MPI_Bcast(out, bytes, MPI_BYTE, 0, MPI_COMM_WORLD); }
static void bcast_by_turns(int bytes) {
  static int root;
  MPI_Bcast(out, bytes, MPI_BYTE, root++ % ranks, MPI_COMM_WORLD);
}
static void reduce(int bytes) { MPI_Reduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD); }
static void allreduce(int bytes) { MPI_Allreduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }
static void allreduce_in_place(int bytes) {
  MPI_Allreduce(MPI_IN_PLACE, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
static void maxloc(int bytes) {
  MPI_Allreduce(out, in, bytes / 16 ? bytes / 16 : 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
}
static void gather(int bytes) { MPI_Gather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, 0, MPI_COMM_WORLD); }
static void scatter(int bytes) { MPI_Scatter(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, 0, MPI_COMM_WORLD); }
static void allgather(int bytes) { MPI_Allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD); }
static void alltoall(int bytes) { MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD); }
static void scan(int bytes) { MPI_Scan(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }
static void exscan(int bytes) { MPI_Exscan(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }
static void reduce_scatter(int bytes) {
  MPI_Reduce_scatter_block(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static int lengths[1024], places[1024]; /* of the calls with a length for each rank */
static void set_lengths(int bytes) {
  for (int i = 0; i < ranks; ++i) lengths[i] = bytes, places[i] = i * bytes;
}
static void gatherv(int bytes) {
  set_lengths(bytes);
  MPI_Gatherv(out, bytes, MPI_BYTE, in, lengths, places, MPI_BYTE, 0, MPI_COMM_WORLD);
}
static void scatterv(int bytes) {
  set_lengths(bytes);
  MPI_Scatterv(out, lengths, places, MPI_BYTE, in, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}
static void allgatherv(int bytes) {
  set_lengths(bytes);
  MPI_Allgatherv(out, bytes, MPI_BYTE, in, lengths, places, MPI_BYTE, MPI_COMM_WORLD);
}
static void alltoallv(int bytes) {
  set_lengths(bytes);
  MPI_Alltoallv(out, lengths, places, MPI_BYTE, in, lengths, places, MPI_BYTE, MPI_COMM_WORLD);
}

#define BEGUN_AND_WAITED_FOR(NAME, CALL)   \
  static void NAME(int bytes) {            \
    MPI_Request request;                   \
    (void)bytes;                           \
    CALL;                                  \
    MPI_Wait(&request, MPI_STATUS_IGNORE); \
  }
BEGUN_AND_WAITED_FOR(ibarrier, MPI_Ibarrier(MPI_COMM_WORLD, &request))
BEGUN_AND_WAITED_FOR(ibcast, MPI_Ibcast(out, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request))
BEGUN_AND_WAITED_FOR(ireduce, MPI_Ireduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD, &request))
BEGUN_AND_WAITED_FOR(iallreduce, MPI_Iallreduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request))
BEGUN_AND_WAITED_FOR(igather, MPI_Igather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request))
BEGUN_AND_WAITED_FOR(iallgather, MPI_Iallgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD, &request))
BEGUN_AND_WAITED_FOR(ialltoall, MPI_Ialltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD, &request))
BEGUN_AND_WAITED_FOR(iscan, MPI_Iscan(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request))

/* ---- communicators, windows and other objects: made and freed --------------------------------------------------- */

static void comm_dup(int bytes) {
  MPI_Comm comm;
  (void)bytes;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_free(&comm);
}
static void comm_dup_and_barrier(int bytes) {
  MPI_Comm comm;
  (void)bytes;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int i = 0; i < 4; ++i) MPI_Barrier(comm);
  MPI_Comm_free(&comm);
}
static void comm_split(int bytes) {
  MPI_Comm comm;
  (void)bytes;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm);
  MPI_Comm_free(&comm);
}
static void comm_split_type(int bytes) {
  MPI_Comm comm;
  (void)bytes;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &comm);
  MPI_Comm_free(&comm);
}
static void comm_create_group(int bytes) {
  MPI_Comm comm;
  MPI_Group all;
  (void)bytes;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Comm_create_group(MPI_COMM_WORLD, all, 1, &comm);
  MPI_Group_free(&all);
  MPI_Comm_free(&comm);
}
static void cart_create(int bytes) {
  MPI_Comm comm;
  const int around = 1;
  (void)bytes;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &around, 1, &comm);
  MPI_Comm_free(&comm);
}
static void intercomm_create(int bytes) {
  MPI_Comm mine, comm;
  (void)bytes;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &mine);
  MPI_Intercomm_create(mine, 0, MPI_COMM_WORLD, 1 - rank % 2, 1, &comm);
  MPI_Comm_free(&comm);
  MPI_Comm_free(&mine);
}
static void win_create(int bytes) {
  MPI_Win win;
  MPI_Win_create(in, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_free(&win);
}
static void win_allocate(int bytes) {
  MPI_Win win;
  char* base;
  MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  MPI_Win_free(&win);
}
static void win_create_dynamic(int bytes) {
  MPI_Win win;
  (void)bytes;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_free(&win);
}
static void alloc_mem(int bytes) {
  void* memory;
  MPI_Alloc_mem(bytes, MPI_INFO_NULL, &memory);
  *(char*)memory = 1;
  MPI_Free_mem(memory);
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

typedef struct {
  const char *group, *name;
  void (*call)(int bytes);
  int longest; /* bytes; 0: its length says nothing */
} Call;

static const Call kCalls[] = {
    {"sends", "send", send, kLongest},
    {"sends", "ssend", ssend, kLongest},
    {"sends", "bsend", bsend, kLongest / 8},
    {"sends", "isend", isend, kLongest},
    {"sends", "issend", issend, kLongest},
    {"sends", "send_to_any", send_to_any, kLongest},
    {"sends", "probe", probe, kLongest},
    {"sends", "iprobe", iprobe, kLongest},
    {"sends", "mprobe", mprobe, kLongest},
    {"sends", "test", test, kLongest},
    {"sends", "sendrecv", sendrecv, kLongest},
    {"sends", "sendrecv_replace", sendrecv_replace, kLongest},
    {"sends", "sendrecv_self", sendrecv_self, kLongest},
    {"sends", "exchange", exchange, kLongest},
    {"sends", "persistent", persistent, kLongest},
    {"sends", "waitany", waitany, kLongest / 4},
    {"sends", "cancel", cancel, 0},
    {"sends", "stream", stream, kLongest / 4},
    {"sends", "stream_both", stream_both, kLongest / 4},
    {"sends", "flood", flood, kLongest / 4},
    {"sends", "early", early, kLongest / 4},
    {"types", "gaps_8", gaps_8, kLongest},
    {"types", "gaps_64", gaps_64, kLongest},
    {"types", "gaps_512", gaps_512, kLongest},
    {"types", "gaps_4096", gaps_4096, kLongest},
    {"types", "gaps_from_flat", gaps_from_flat, kLongest},
    {"types", "gaps_exchange", gaps_exchange, kLongest},
    {"types", "pack", pack, kLongest},
    {"types", "unpack", unpack, kLongest},
    {"types", "type_vector", type_vector, 0},
    {"collectives", "barrier", barrier, 0},
    {"collectives", "bcast", bcast, kLongest},
    {"collectives", "bcast_by_turns", bcast_by_turns, kLongest},
    {"collectives", "reduce", reduce, kLongest},
    {"collectives", "allreduce", allreduce, kLongest},
    {"collectives", "allreduce_in_place", allreduce_in_place, kLongest},
    {"collectives", "maxloc", maxloc, kLongest},
    {"collectives", "gather", gather, kLongest},
    {"collectives", "scatter", scatter, kLongest},
    {"collectives", "allgather", allgather, kLongest},
    {"collectives", "alltoall", alltoall, kLongest},
    {"collectives", "scan", scan, kLongest},
    {"collectives", "exscan", exscan, kLongest},
    {"collectives", "reduce_scatter", reduce_scatter, kLongest},
    {"collectives", "gatherv", gatherv, kLongest},
    {"collectives", "scatterv", scatterv, kLongest},
    {"collectives", "allgatherv", allgatherv, kLongest},
    {"collectives", "alltoallv", alltoallv, kLongest},
    {"collectives", "ibarrier", ibarrier, 0},
    {"collectives", "ibcast", ibcast, kLongest},
    {"collectives", "ireduce", ireduce, kLongest},
    {"collectives", "iallreduce", iallreduce, kLongest},
    {"collectives", "igather", igather, kLongest},
    {"collectives", "iallgather", iallgather, kLongest},
    {"collectives", "ialltoall", ialltoall, kLongest},
    {"collectives", "iscan", iscan, kLongest},
    {"objects", "comm_dup", comm_dup, 0},
    {"objects", "comm_dup_and_barrier", comm_dup_and_barrier, 0},
    {"objects", "comm_split", comm_split, 0},
    {"objects", "comm_split_type", comm_split_type, 0},
    {"objects", "comm_create_group", comm_create_group, 0},
    {"objects", "cart_create", cart_create, 0},
    {"objects", "intercomm_create", intercomm_create, 0},
    {"objects", "win_create", win_create, kLongest},
    {"objects", "win_allocate", win_allocate, kLongest},
    {"objects", "win_create_dynamic", win_create_dynamic, 0},
    {"objects", "alloc_mem", alloc_mem, kLongest},
};

/* Uses of a window: how it is synchronised, and what is done. */
typedef struct {
  const char* name;
  void (*around)(Access, MPI_Win, int);
} Epoch;
typedef struct {
  const char* name;
  Access access;
  int longest;
} Use;
static const Epoch kEpochs[] = {
    {"fence", fenced}, {"start", started}, {"lock", locked}, {"lock_in_turn", locked_in_turn}, {"flush", flushed}};
static const Use kUses[] = {{"nothing", NULL, 0},
                            {"put", put, kLongest},
                            {"get", get, kLongest},
                            {"add", add, kLongest},
                            {"get_add", get_add, kLongest},
                            {"fetch_add", fetch_add, 0},
                            {"fetch_one", fetch_one, 0},
                            {"swap", swap, 0},
                            {"put_many", put_many, kLongest / 16},
                            {"get_many", get_many, kLongest / 16},
                            {"rput", rput, kLongest}};
static const Epoch* epoch;
static const Use* use;
static MPI_Win window;
static void use_window(int bytes) { epoch->around(use->access, window, bytes); }

/* ---- measuring -------------------------------------------------------------------------------------------------- */

static double batch(void (*call)(int), int bytes, int count) {
  double mine, slowest;
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < count; ++i) call(bytes);
  mine = (MPI_Wtime() - start) / count;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

static void time_of(const char* name, void (*call)(int), int bytes) {
  double time[kBatches], before = batch(call, bytes, 2);
  int count = 2;
  while (before * count < batch_time / 4 && count < 4096) before = batch(call, bytes, count *= 4);
  const double wanted = batch_time / before;
  count = wanted < 2 ? 2 : wanted > 20000 ? 20000 : (int)wanted;
  for (int i = 0; i < kBatches; ++i) time[i] = batch(call, bytes, count);
  if (rank == 0) printf("%s %d %.4f\n", name, bytes, bench_median(time, kBatches) * 1e6);
  fflush(stdout);
}

static void all_sizes(const char* name, void (*call)(int), int longest, int argc, char** argv) {
  static const int usual[] = {8, 1 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20};
  const int own = argc > 3 ? argc - 3 : 0, sizes = own ? own : (int)(sizeof usual / sizeof *usual);
  if (longest == 0) time_of(name, call, 8);
  for (int i = 0; longest && i < sizes; ++i) {
    const int bytes = own ? (int)bench_number(argv[3 + i]) : usual[i];
    if (bytes <= longest) time_of(name, call, bytes);
  }
}

/* A use that asks a rank which is not the peer needs an epoch with all. */
static int is_allowed(int passive) {
  if (use->access == NULL) return !passive;
  if (use->access == rput) return passive;
  return use->access != fetch_one || passive || epoch->around == fenced;
}

static void all_windows(int argc, char** argv) {
  char name[64];
  void *exposed = bench_buffer(kLongest), *base;
  MPI_Win_create(exposed, kLongest, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &created);
  MPI_Win_allocate(kLongest, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &allocated);
  memset(base, 0, kLongest);
  for (int w = 0; w < 2; ++w)
    for (unsigned e = 0; e < sizeof kEpochs / sizeof *kEpochs; ++e)
      for (unsigned u = 0; u < sizeof kUses / sizeof *kUses; ++u) {
        epoch = &kEpochs[e], use = &kUses[u], window = w ? allocated : created;
        const int passive = epoch->around == flushed;
        if (!is_allowed(passive)) continue;
        snprintf(name, sizeof name, "%s:%s:%s", w ? "allocated" : "created", epoch->name, use->name);
        if (strcmp(argv[1], "windows") != 0 && strncmp(argv[1], name, strlen(argv[1])) != 0) continue;
        if (epoch->around == fenced) MPI_Win_fence(0, window);
        if (passive) MPI_Win_lock_all(0, window);
        all_sizes(name, use_window, use->longest, argc, argv);
        if (passive) MPI_Win_unlock_all(window);
        if (epoch->around == fenced) MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
      }
  MPI_Win_free(&created);
  MPI_Win_free(&allocated);
  free(exposed);
}

int main(int argc, char** argv) {
  bench_needs(argc, 1, "calls sends|types|windows|collectives|objects|CALL [SHARE [SIZE...]]");
  bench_pin();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks % 2 || ranks > 1024) {
    if (rank == 0) fprintf(stderr, "bench: calls needs an even number of ranks, 1024 at most; there are %d\n", ranks);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  first = rank % 2 == 0, peer = first ? rank + 1 : rank - 1;
  if (argc > 2 && atoi(argv[2]) > 1) batch_time /= atoi(argv[2]);
  out = bench_buffer((size_t)kLongest * (ranks + 1)), in = bench_buffer((size_t)kLongest * (ranks + 1));
  void* attached = bench_buffer(2 * kLongest);
  MPI_Buffer_attach(attached, 2 * kLongest);
  if (strcmp(argv[1], "windows") == 0 || strchr(argv[1], ':')) all_windows(argc, argv);
  for (unsigned i = 0; i < sizeof kCalls / sizeof *kCalls; ++i)
    if (strcmp(argv[1], kCalls[i].group) == 0 || strcmp(argv[1], kCalls[i].name) == 0)
      all_sizes(kCalls[i].name, kCalls[i].call, kCalls[i].longest, argc, argv);
  if (kept != MPI_DATATYPE_NULL) MPI_Type_free(&kept);
  MPI_Buffer_detach(&attached, &(int){0});
  MPI_Finalize();
  return 0;
}
