// The netmod's side of the library: one port whose frames go straight to MPICH's packet handlers.

#include <ulfm/netmod.h>
#include <ulfm/ulfm.h>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "api/last_error.hpp"
#include "base/last_words.hpp"
#include "base/virtual_time.hpp"
#include "base/wait.hpp"
#include "port/node.hpp"
#include "proto/stack.hpp"
#include "transport/registry.hpp"

using namespace ulfm;

namespace {
constexpr std::uint16_t kMpiPort = 1;
// Looks for closed and dead peers cost system calls: at most so often, however long the wait.
constexpr std::uint32_t kLookTurns = 1024;
constexpr auto kLookEvery = std::chrono::milliseconds(20);
}  // namespace

struct ulfm_nm_vc {
  std::unique_ptr<Outlet> outlet;
  ulfm_nm* owner;
};

struct ulfm_nm {
  ulfm_nm(Config c, TransportStack s, std::unique_ptr<Inlet> i, WaitPolicy p, int rank_)
      : config(std::move(c)),
        transport_name(std::move(s.name)),
        transport(std::move(s.transport)),
        inlet(std::move(i)),
        policy(p),
        waiter(policy),
        rank(rank_) {}

  Config config;
  std::string transport_name;  // with its decorators
  std::unique_ptr<Transport> transport;
  PortCounters counters;  // before the inlet, whose last frames count too
  std::unique_ptr<Inlet> inlet;
  WaitPolicy policy;
  Waiter waiter;
  int rank;
  std::uint32_t idle_turns = 0;
  std::chrono::steady_clock::time_point looked{};
  std::int64_t dead = -1;
  bool lost_way = false;  // a process that lives could not be connected to
  Frame current;
  bool spent = false;  // MPICH has done with `current`, whose room is given back at the next look
  std::vector<void*> cookies;
  std::string origin_card;
};

namespace {

int nm_nodes(int size, int* node_of) {
  auto config = Config::load();
  // What is wrong with the settings is open()'s to say.
  if (!config || config->text("SHARE") == "host") return 0;
  auto descriptor = select_transport(config->text("TRANSPORT"));
  if (!descriptor) return 0;
  const std::vector<int> nodes = (*descriptor)->nodes(size);
  std::copy(nodes.begin(), nodes.end(), node_of);
  return nodes.empty() ? 0 : *std::max_element(nodes.begin(), nodes.end()) + 1;
}

Result<ulfm_nm*> open_nm(const char* job_id, int rank, int local_processes) {
  auto config = Config::load();
  if (!config) return fail(config.error());
  if (rank == 0)
    for (const std::string& warning : config->warnings()) std::fprintf(stderr, "ulfm: %s\n", warning.c_str());
  auto descriptor = select_transport(config->text("TRANSPORT"));
  if (!descriptor) return fail(descriptor.error());
  if (!(*descriptor)->links && !config->text("TOPOLOGY").empty())
    return fail(Errc::invalid,
                std::string("transport ") + (*descriptor)->name + " has no topology; unset ULFM_TOPOLOGY");
  auto stack = make_stack(*config, **descriptor, rank);
  if (!stack) return fail(stack.error());
  auto inlet = stack->transport->open(kMpiPort, InletOptions{});
  if (!inlet) return fail(inlet.error());
  const WaitPolicy policy = wait_policy_from(*config, local_processes);
  if (!policy.has_own_core()) (*inlet)->wake_source().expect_many_sleeps();
  stack->transport->introduce(job_id, static_cast<std::uint32_t>(rank), stack->transport->card());
  return new ulfm_nm(std::move(*config), std::move(*stack), std::move(*inlet), policy, rank);
}

// MPICH's error stack cuts long sentences, and this one tells what to do.
int nm_open(const char* job_id, int rank, int size, int local_processes, ulfm_nm** out) {
  (void)size;
  auto nm = open_nm(job_id, rank, local_processes);
  if (!nm) {
    say_before_the_end("rank " + std::to_string(rank) + ": " + nm.error().what);
    return report(nm.error());
  }
  *out = *nm;
  return 0;
}

void give_back(ulfm_nm* nm) {
  if (std::exchange(nm->spent, false)) nm->inlet->release(nm->current);
}

void nm_close(ulfm_nm* nm) {
  nm->waiter.reset();
  give_back(nm);
  const std::string who = "rank " + std::to_string(nm->rank);
  std::string text = statistics_text(who, nm->transport_name.c_str(), kMpiPort, nm->counters, *nm->inlet);
  nm->inlet.reset();  // may send again what was lost of the last frames, which counts too
  text += stack_statistics_text(who, *nm->transport) + close_control(who, *nm->transport) + wait_statistics_text(who);
  if (nm->config.flag("STATS") && nm->rank == 0) text += nm->transport->shared_statistics();
  // One write: lines of several ranks do not mix.
  if (nm->config.flag("STATS")) (void)!write(STDERR_FILENO, text.data(), text.size());
  delete nm;
}

const char* nm_card(ulfm_nm* nm) { return nm->transport->card().c_str(); }

int nm_card_of(ulfm_nm* nm, const char* job_id, int rank, char* card, std::size_t size) {
  const std::string found = nm->transport->card_of(job_id, static_cast<std::uint32_t>(rank));
  if (found.empty() || found.size() >= size) return 0;
  found.copy(card, found.size());
  card[found.size()] = 0;
  return 1;
}

std::size_t nm_eager_limit(ulfm_nm* nm) { return static_cast<std::size_t>(nm->config.number("EAGER")); }

// Without a way to a process that lives, what was to be sent to it is lost, and it waits for ever: that is like giving
// it up. A process that has gone is another matter: MPI has an error for it.
void lose_way(ulfm_nm* nm, const Error& error) {
  if (error.code == Errc::peer_failed || error.code == Errc::not_found || error.code == Errc::stale) return;
  if (!std::exchange(nm->lost_way, true)) say_before_the_end("rank " + std::to_string(nm->rank) + ": " + error.what);
}

int nm_connect(ulfm_nm* nm, const char* card, const void* hello, std::size_t length, ulfm_nm_vc** out) {
  auto outlet =
      nm->transport->connect(card, kMpiPort, kMpiPort, {static_cast<const std::byte*>(hello), length}, nm->counters);
  if (!outlet) {
    lose_way(nm, outlet.error());
    return report(outlet.error());
  }
  *out = new ulfm_nm_vc{std::move(*outlet), nm};
  return 0;
}

int nm_disconnect(ulfm_nm*, ulfm_nm_vc* vc, int force) {
  if (!vc->outlet->bye() && !force && vc->outlet->peer_listening()) return 0;
  delete vc;
  return 1;
}

// Who has gone counts as listening until all that it sent has been read: its last word may close the connection well.
int nm_listening(ulfm_nm_vc* vc) { return vc->outlet->peer_listening() || vc->owner->inlet->has_frame() ? 1 : 0; }

std::ptrdiff_t push_more(ulfm_nm_vc* vc, Gather& data, std::size_t total, std::size_t sent) {
  while (sent < total) {
    const std::size_t length = std::min(total - sent, vc->outlet->max_frame(0));
    if (!vc->outlet->push(Kind::more, {}, data, length)) break;
    sent += length;
  }
  vc->owner->counters.sent_bytes.add(sent);
  return static_cast<std::ptrdiff_t>(sent);
}

std::ptrdiff_t nm_begin(ulfm_nm_vc* vc, const void* header, std::size_t header_length, const iovec* pieces, int n) {
  Gather data(std::span(pieces, static_cast<std::size_t>(n)));
  const std::size_t total = n == 1 ? pieces[0].iov_len : data.remaining();
  // Every frame takes this much, so that a short message need not ask.
  const std::size_t length = total <= kLeastFrame ? total : std::min(total, vc->outlet->max_frame(header_length));
  if (!vc->outlet->push(Kind::first, {static_cast<const std::byte*>(header), header_length}, data, length)) return -1;
  vc->owner->counters.sent_messages.add();
  vc->owner->counters.sent_bytes.add(header_length);  // MPI puts its shortest messages into its header
  if (length == total) {
    vc->owner->counters.sent_bytes.add(total);
    return static_cast<std::ptrdiff_t>(total);
  }
  return push_more(vc, data, total, length);
}

std::ptrdiff_t nm_more(ulfm_nm_vc* vc, const iovec* pieces, int n) {
  Gather data(std::span(pieces, static_cast<std::size_t>(n)));
  return push_more(vc, data, data.remaining(), 0);
}

void*& cookie_of(ulfm_nm* nm, std::uint32_t origin) {
  if (origin >= nm->cookies.size()) nm->cookies.resize(origin + 1, nullptr);
  return nm->cookies[origin];
}

int fail_origin(ulfm_nm* nm, std::int64_t origin, ulfm_nm_frame* out) {
  const auto index = static_cast<std::uint32_t>(origin);
  *out = {};
  out->kind = ULFM_NM_LOST;
  out->origin = index;
  out->cookie = std::exchange(cookie_of(nm, index), nullptr);
  nm->inlet->drop_origin(index);
  return 1;
}

int nm_next(ulfm_nm* nm, ulfm_nm_frame* out) {
  Frame& frame = nm->current;
  give_back(nm);
  if (!nm->inlet->next(frame)) {
    if (const std::int64_t broken = nm->inlet->take_broken(); broken >= 0) return fail_origin(nm, broken, out);
    if (nm->dead >= 0) return fail_origin(nm, std::exchange(nm->dead, -1), out);
    return 0;
  }
  if (nm->idle_turns != 0) {
    nm->idle_turns = 0;
    nm->waiter.reset();
  }
  if (frame.fresh) cookie_of(nm, frame.origin) = nullptr;
  out->fresh = frame.fresh;
  out->origin = frame.origin;
  out->cookie = nm->cookies[frame.origin];
  out->header = frame.header;
  out->header_length = frame.header_length;
  out->data = frame.data;
  out->length = frame.length;
  if (frame.kind == Kind::bye) {
    out->kind = ULFM_NM_BYE;
    nm->cookies[frame.origin] = nullptr;
    return 1;
  }
  out->kind = frame.kind == Kind::first ? ULFM_NM_FIRST : ULFM_NM_MORE;
  nm->counters.received_messages.add(frame.kind == Kind::first ? 1 : 0);
  nm->counters.received_bytes.add(frame.header_length + frame.length);
  return 1;
}

void nm_release(ulfm_nm* nm, const ulfm_nm_frame* frame) {
  if (frame->kind == ULFM_NM_LOST) return;
  nm->spent = true;
  const bool bye = frame->kind == ULFM_NM_BYE;
  // Not now, as a rule: the program waits for what was in it.
  if (nm->current.shared_room || bye) give_back(nm);
  if (bye) nm->inlet->drop_origin(frame->origin);
}

int nm_origin(ulfm_nm* nm, std::uint32_t index, ulfm_nm_origin* out) {
  const OriginInfo info = nm->inlet->origin(index);
  if (!info.process) return report({Errc::not_found, "no such origin"});
  nm->origin_card = info.card;
  *out = {nm->origin_card.c_str(), info.hello.data(), info.hello.size()};
  return 0;
}

void nm_set_cookie(ulfm_nm* nm, std::uint32_t index, void* cookie) { cookie_of(nm, index) = cookie; }

void park(ulfm_nm* nm, std::chrono::nanoseconds limit) {
  WakeSource& bell = nm->inlet->wake_source();
  bell.arm();
  if (nm->inlet->has_frame()) return bell.cancel();
  limit = std::min(limit, nm->inlet->next_deadline());
  if (limit.count() <= 0) return bell.cancel();
  wait_counters().count(Rung::park);
  bell.sleep(limit);
}

int look_around(ulfm_nm* nm) {
  if (const std::string why = nm->inlet->why_broken(); !why.empty()) {
    // Nothing will ever arrive again, so no MPI call can end: the launcher ends the others.
    say_before_the_end("rank " + std::to_string(nm->rank) + ": " + why);
    if (control::Control* control = nm->transport->control()) control->abort(1, why);
    std::_Exit(1);
  }
  nm->dead = nm->inlet->find_dead();
  int news = std::exchange(nm->lost_way, false) ? ULFM_NM_GIVEN_UP : ULFM_NM_LOOK;
  for (Error error; nm->inlet->take_given_up(error); news = ULFM_NM_GIVEN_UP)
    say_before_the_end("rank " + std::to_string(nm->rank) + ": " + error.what);  // MPI's own error has a rank only
  return news;
}

int look_around_now_and_then(ulfm_nm* nm) {
  const auto now = std::chrono::steady_clock::now();
  if (now - nm->looked < kLookEvery) return 0;
  nm->looked = now;
  return look_around(nm);
}

// In virtual time nobody spins and nobody naps: a wait ends with an arrival. What a test costs is for whoever knows that
// it was one; here it may be a turn of a wait, which costs the least there is.
int idle_timed(ulfm_nm* nm, VirtualTime& time, int how) {
  if (how == ULFM_NM_IDLE_TEST) return time.spend(1, VirtualTime::Spent::messages), 0;
  if (how == ULFM_NM_IDLE_THREADED) {
    time.spend_look();
    if (++nm->idle_turns % kLookTurns == 0) yield_now();
    return 0;
  }
  const auto patience =
      how == ULFM_NM_IDLE_WAIT ? VirtualTime::Patience::others_too : VirtualTime::Patience::only_arrivals;
  const auto limit = nm->inlet->next_deadline();
  const std::uint64_t until =
      limit == kForever ? kNoMoment
                        : time.now() + static_cast<std::uint64_t>(std::max<std::int64_t>(limit.count(), 1)) * 1000;
  return time.wait(until, patience) == VirtualTime::Woken::ended ? look_around(nm) : 0;
}

int nm_idle(ulfm_nm* nm, int how, int sends_waiting) {
  if (VirtualTime* time = VirtualTime::of_process(); time != nullptr) [[unlikely]]
    return idle_timed(nm, *time, how);
  const int look = ++nm->idle_turns % kLookTurns == 0 ? look_around_now_and_then(nm) : 0;
  if (how == ULFM_NM_IDLE_TEST || how == ULFM_NM_IDLE_THREADED) {
    // The caller has its own loop, which may be a busy one: let others have the core from time to time.
    // With threads the caller holds a lock that others want, and lets go of it itself: a yield here helps nobody.
    const std::uint32_t every = how == ULFM_NM_IDLE_TEST && !nm->policy.has_own_core() ? 16 : 1024;
    if (nm->idle_turns % every == 0) yield_now();
    return look;
  }
  // With a core of one's own the answer is best awaited here, a look at a time; without one, not at all.
  if (nm->policy.has_own_core() && nm->inlet->spin(kSpinTurns)) return ULFM_NM_ARRIVED;
  if (!nm->waiter.step()) return look;
  if (how == ULFM_NM_IDLE_WAIT || sends_waiting) {
    // Something else may end this wait without ringing.
    park(nm, std::chrono::microseconds(500));
  } else {
    park(nm, nm->policy.park_limit);
  }
  return look_around_now_and_then(nm);
}

constexpr ulfm_nm_api kTable{
    ULFM_NM_ABI, ULFM_VERSION_STRING, ulfm_last_error, nm_nodes,      nm_open,      nm_close, nm_card,
    nm_card_of,  nm_eager_limit,      nm_connect,      nm_disconnect, nm_listening, nm_begin, nm_more,
    nm_next,     nm_release,          nm_origin,       nm_set_cookie, nm_idle};

}  // namespace

extern "C" ULFM_API const ulfm_nm_api* ulfm_nm_table(std::uint32_t abi) {
  return abi == ULFM_NM_ABI ? &kTable : nullptr;
}
