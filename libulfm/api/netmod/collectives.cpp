// Collectives of a communicator through a shared segment.
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "api/last_error.hpp"
#include "api/netmod/channel.hpp"
#include "base/wait_word.hpp"

namespace ulfm::netmod {
namespace {

static_assert(coll::kTicketBytes == ULFM_COLL_TICKET);

// Calls by messages before a communicator gets its segment: most communicators are hardly used.
constexpr int kFirstCalls = 4;
// Segments of a process; more communicators than that stay with messages.
constexpr int kMostSegments = 32;
// Of a call whose blocks have different sizes.
constexpr std::size_t kMostRounds = 4;

bool always(const ulfm_nm* nm) { return nm->always_segments; }

std::size_t most_rounds(const ulfm_nm* nm) {
  return always(nm) ? std::numeric_limits<std::size_t>::max() : kMostRounds;
}

// What comes by messages ends the sleep too: others may work on this rank's memory while it waits in a barrier.
bool sleep_beside(ulfm_nm& nm, WaitWord call, const Look& look) {
  Inlet* const inlet = nm.inlet.get();
  return Process::park(std::span(&inlet, 1), nm.sends_waiting ? kShortNap : coll::kLongestNap, call, look);
}

}  // namespace

int coll_after(ulfm_nm* nm, int fault_tolerant) {
  const std::string& setting = nm->process->config().text("COLLECTIVES");
  if (setting == "off") return -1;
  if (nm->process->transport().multicast_frame(2, 0) != 0) return ULFM_COLL_BY_MULTICAST;
  // Over other emulated interconnects, or one with faults, the messages themselves are what is asked for. On several
  // hosts a failure in the middle of a call would have to end its parts, too.
  const std::string& name = nm->process->transport_name();
  if (name != "direct" && (name != "mux" || fault_tolerant != 0)) return -1;
  nm->cores_of_host = static_cast<int>(sysconf(_SC_NPROCESSORS_CONF));
  nm->always_segments = setting == "on";
  return nm->always_segments ? 0 : kFirstCalls;
}

int coll_without(ulfm_nm* nm, int kind, std::size_t bytes, int size, std::size_t* ahead) {
  return coll::goes_without_segment(kind, bytes, size, nm->cores_of_host, always(nm), *ahead) ? 1 : 0;
}

// No exception passes into C.
int coll_open(ulfm_nm* nm, char* ticket, int rank, int size, int threaded, int (*progress)(void*), void* arg,
              ulfm_coll** out) try {
  if (nm->segments >= kMostSegments) return report({Errc::full, "too many communicators with a segment"});
  coll::WaitHooks hooks{[progress, arg] { return progress(arg); }, [nm] { return nm->inlet->look(); }, {}};
  if (threaded == 0) hooks.sleep = [nm](WaitWord call, const Look& look) { return sleep_beside(*nm, call, look); };
  const bool shared_cores = !nm->own_core;
  auto made = rank == 0 ? coll::Collective::create(size, shared_cores, nm->process->wait_policy(), std::move(hooks))
                        : coll::Collective::attach(ticket, rank, size, nm->process->wait_policy(), std::move(hooks));
  if (!made) return report(made.error());
  if (nm->process->config().text("ONE_COPY") == "off") (*made)->without_one_copy();
  if (rank == 0) {
    const std::string text = (*made)->ticket();
    ticket[text.copy(ticket, ULFM_COLL_TICKET - 1)] = 0;
  }
  ++nm->segments;
  *out = new ulfm_coll{std::move(*made), nm};
  return 0;
} catch (const std::bad_alloc&) {
  return report({Errc::no_memory, "there is no memory for a communicator's segment"});
}

void coll_close(ulfm_coll* coll) {
  std::erase(coll->owner->busy, coll);
  --coll->owner->segments;
  delete coll;
}

int coll_way(ulfm_coll* coll, int kind, std::size_t bytes) {
  return coll->collective->way(kind, bytes, always(coll->owner));
}

int coll_run(ulfm_coll* coll, const ulfm_coll_call* call) {
  coll::Collective& c = *coll->collective;
  const ulfm_coll_call& x = *call;
  switch (x.kind) {
    case ULFM_COLL_BARRIER: return c.barrier();
    case ULFM_COLL_BCAST: return c.bcast(x.out, x.count, x.root);
    case ULFM_COLL_REDUCE: return c.reduce(x.in, x.out, x.count, x.extent, x.kernel, x.root);
    case ULFM_COLL_ALLREDUCE: return c.reduce(x.in, x.out, x.count, x.extent, x.kernel, -1);
    case ULFM_COLL_REDUCE_SCATTER: return c.reduce_part(x.in, x.out, x.count, x.extent, x.kernel, x.first, x.mine);
    case ULFM_COLL_SCAN: return c.scan(x.in, x.out, x.count, x.extent, x.kernel, false);
    case ULFM_COLL_EXSCAN: return c.scan(x.in, x.out, x.count, x.extent, x.kernel, true);
    case ULFM_COLL_GATHER: return c.gather(x.in, x.out, x.count, x.root);
    case ULFM_COLL_ALLGATHER: return c.allgather(x.in, x.out, x.count);
    case ULFM_COLL_SCATTER: return c.scatter(x.in, x.out, x.count, x.root);
    case ULFM_COLL_ALLTOALL: return c.alltoall(x.in, x.out, x.count);
    case ULFM_COLL_GATHERV:
      return c.gather_blocks(x.in, x.count, x.out, {x.out_bytes, x.out_at}, x.root, most_rounds(coll->owner));
    case ULFM_COLL_ALLGATHERV: return c.allgather_blocks(x.in, x.out, {x.out_bytes, x.out_at});
    case ULFM_COLL_SCATTERV:
      return c.scatter_blocks(x.in, {x.in_bytes, x.in_at}, x.out, x.count, x.root, most_rounds(coll->owner));
    case ULFM_COLL_ALLTOALLV:
      return c.alltoall_blocks(x.in, {x.in_bytes, x.in_at}, x.out, {x.out_bytes, x.out_at}, most_rounds(coll->owner));
    default: return c.give_up();
  }
}

int coll_missing(ulfm_coll* coll) { return coll->collective->missing(); }

// ---- neighbours -----------------------------------------------------------------------------------------------------

int coll_near_open(ulfm_coll* coll, const int* from, int n_from, const int* to, int n_to) try {
  return coll->collective->near_open(std::span(from, static_cast<std::size_t>(n_from)),
                                     std::span(to, static_cast<std::size_t>(n_to)));
} catch (const std::bad_alloc&) {
  return coll->collective->give_up();
}

int coll_near_begin(ulfm_coll* coll, char** blocks, std::size_t* room) {
  std::byte* place = nullptr;
  const int why = coll->collective->near_begin(place, *room);
  *blocks = reinterpret_cast<char*>(place);
  return why;
}

void coll_near_post(ulfm_coll* coll, std::size_t step) { coll->collective->near_post(step); }

int coll_near_take(ulfm_coll* coll, int index, int from, const char** block) {
  const std::byte* found = nullptr;
  const int why = coll->collective->near_take(index, from, found);
  *block = reinterpret_cast<const char*>(found);
  return why;
}

void coll_near_end(ulfm_coll* coll) { coll->collective->near_end(); }

// ---- nonblocking calls --------------------------------------------------------------------------------------------

int coll_fits(ulfm_coll* coll, int kind, std::size_t bytes) { return coll->collective->fits(kind, bytes) ? 1 : 0; }

std::size_t coll_block(ulfm_coll* coll, int kind) { return coll->collective->longest_block(kind); }

int coll_keep(ulfm_coll* coll, const ulfm_coll_call* call) {
  return coll->collective->keep(*call, always(coll->owner));
}

int coll_start(ulfm_coll* coll, const ulfm_coll_call* call, void* cookie) {
  const bool was_busy = coll->collective->has_calls();
  const int rc = coll->collective->start(*call, cookie);
  if (!was_busy && coll->collective->has_calls()) coll->owner->busy.push_back(coll);
  return rc;
}

namespace {

void* take_finished(ulfm_nm& nm, int& why) {
  void* cookie = nullptr;
  for (auto at = nm.busy.begin(); cookie == nullptr && at != nm.busy.end();) {
    coll::Collective& c = *(*at)->collective;
    cookie = c.finished(why);
    at = c.has_calls() ? at + 1 : nm.busy.erase(at);
  }
  return cookie;
}

}  // namespace

// The caller asks until there is nothing more: one look in all is enough.
void* coll_finished(ulfm_nm* nm, int* why) {
  void* cookie = take_finished(*nm, *why);
  if (cookie == nullptr && !std::exchange(nm->has_advanced, false) && advance_calls(*nm)) {
    cookie = take_finished(*nm, *why);
    nm->has_advanced = cookie != nullptr;
  }
  if (cookie != nullptr) begin_waits_anew(*nm);
  return cookie;
}

int coll_begun(ulfm_coll* coll, int* missing) {
  const coll::Collective& c = *coll->collective;
  if (!c.has_open_calls()) return -1;
  *missing = c.missing_in_call();
  return c.kind_of_call();
}

bool advance_calls(ulfm_nm& nm) {
  bool has_finished = false;
  for (ulfm_coll* coll : nm.busy) has_finished |= coll->collective->advance();
  return has_finished;
}

// Of several communicators only the first can ring here: short naps look at the others.
void sleep_for_calls(ulfm_nm& nm, std::chrono::nanoseconds limit) {
  if (nm.busy.size() > 1) limit = std::min<std::chrono::nanoseconds>(limit, kShortNap);
  Inlet* const inlet = nm.inlet.get();
  coll::Collective& first = *nm.busy.front()->collective;
  first.sleep_for_calls([&](WaitWord call, bool short_nap) {
    if (short_nap) limit = std::min<std::chrono::nanoseconds>(limit, kShortNap);
    (void)Process::park(std::span(&inlet, 1), limit, call, [&first] { return first.advance(); });
  });
}

void coll_count(ulfm_nm* nm, int kind, int way) { nm->process->count_collective(kind, way); }

}  // namespace ulfm::netmod
