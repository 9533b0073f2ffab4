// The netmod's side of the library: one port whose frames go straight to MPICH's packet handlers.

#include <ulfm/netmod.h>
#include <ulfm/ulfm.h>

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/last_error.hpp"
#include "base/job_record.hpp"
#include "base/last_words.hpp"
#include "base/virtual_time.hpp"
#include "base/wait.hpp"
#include "coll/collective.hpp"
#include "coll/counts.hpp"
#include "fabric/models.hpp"
#include "fabric/topology/topology.hpp"
#include "job/stall_board.hpp"
#include "port/node.hpp"
#include "port/stall.hpp"
#include "proto/stack.hpp"
#include "reduce/kernels.h"
#include "transport/registry.hpp"

using namespace ulfm;

namespace {
constexpr std::uint16_t kMpiPort = 1;
// Looks for closed and dead peers cost system calls: at most so often, however long the wait.
constexpr std::uint32_t kLookTurns = 1024;
constexpr auto kLookEvery = std::chrono::milliseconds(20);
// Without a core of one's own: yields with a look behind each before MPICH's progress has its turn, which costs two to
// three times a yield. A wait that something else may end has that turn sooner.
constexpr int kYieldsOfBlock = 64, kYieldsOfWait = 4;
}  // namespace

struct ulfm_nm_vc {
  std::unique_ptr<Outlet> outlet;
  ulfm_nm* owner;
  bool cut_off = false;  ///< seen and said
};

struct ulfm_nm_group {
  /// As many as a frame has room for beside data.
  struct Part {
    std::unique_ptr<Multicast> multicast;
    std::size_t first, size;
  };
  ulfm_nm* owner;
  std::vector<ulfm_nm_vc*> members;  ///< nullptr: disconnected since
  std::vector<Part> parts;
  std::vector<std::uint32_t> who;
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
  std::uint32_t idle_turns = 0;  // since something came or went
  ulfm_nm_vc* full = nullptr;    // the connection that was the last to have no room
  std::chrono::steady_clock::time_point looked{};
  std::int64_t dead = -1;
  StallWatch stall{config.number("STALL_REPORT")};
  std::optional<StallBoard> board;  // none: this process reports for itself
  void (*describe)(ulfm_nm_waits*) = nullptr;
  std::chrono::steady_clock::time_point idle_since{};
  int idle_how = 0;
  bool sends_waiting = false;
  bool card_published = false;
  std::string name;       // the card without its key
  bool lost_way = false;  // a process that lives could not be connected to
  Frame current;
  bool spent = false;  // MPICH has done with `current`, whose room is given back at the next look
  std::vector<void*> cookies;
  std::vector<ulfm_nm_vc*> vcs;
  std::vector<ulfm_nm_group*> groups;
  int places = 0;  ///< see places_of(); 0: not asked for yet
  std::string origin_card;
  coll::Counts collectives;
  int segments = 0;  // of communicators, open
};

struct ulfm_coll {
  std::unique_ptr<coll::Collective> collective;
  ulfm_nm* owner;
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

Result<ulfm_nm*> open_nm(const char* job_id, int rank, int size, int local_processes) {
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
  StallWatch::begin();
  const WaitPolicy policy = wait_policy_from(*config, local_processes);
  if (!policy.has_own_core()) (*inlet)->wake_source().expect_many_sleeps();
  stack->transport->introduce(job_id, static_cast<std::uint32_t>(rank), stack->transport->card());
  auto* nm = new ulfm_nm(std::move(*config), std::move(*stack), std::move(*inlet), policy, rank);
  if (auto board = StallBoard::attach(rank, size)) nm->board.emplace(std::move(*board));
  return nm;
}

// MPICH's error stack cuts long sentences, and this one tells what to do.
int nm_open(const char* job_id, int rank, int size, int local_processes, ulfm_nm** out) {
  auto nm = open_nm(job_id, rank, size, local_processes);
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

void nm_group_close(ulfm_nm_group* group) {
  std::erase(group->owner->groups, group);
  delete group;
}

void nm_close(ulfm_nm* nm) {
  nm->waiter.reset();
  while (!nm->groups.empty()) nm_group_close(nm->groups.back());
  give_back(nm);
  const std::string who = "rank " + std::to_string(nm->rank);
  std::string text = statistics_text(who, nm->transport_name.c_str(), kMpiPort, nm->counters, *nm->inlet);
  nm->inlet.reset();  // may send again what was lost of the last frames, which counts too
  text += stack_statistics_text(who, *nm->transport) + close_control(who, *nm->transport) + nm->collectives.text(who) +
          wait_statistics_text(who);
  const std::string& file = nm->config.text("STATS_FILE");
  if ((nm->config.flag("STATS") || !file.empty()) && nm->rank == 0) text += nm->transport->shared_statistics();
  // One write: lines of several ranks do not mix.
  if (nm->config.flag("STATS")) (void)!write(STDERR_FILENO, text.data(), text.size());
  record::leave_counters(file, nm->rank, text);
  delete nm;
}

// The first time it goes into the key-value space of the job, which only the job reads. Later it becomes part of a port
// name (MPI_Open_port), which programs print and hand on: without the endpoint key, which holds a secret. Who connects
// by such a name does without a control connection.
const char* nm_card(ulfm_nm* nm) {
  if (!std::exchange(nm->card_published, true)) return nm->transport->card().c_str();
  nm->name = control::identity_of(nm->transport->card());
  return nm->name.c_str();
}

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
  nm->vcs.push_back(*out);
  return 0;
}

int nm_disconnect(ulfm_nm* nm, ulfm_nm_vc* vc, int force) {
  if (!vc->outlet->bye() && !force && vc->outlet->peer_listening()) return 0;
  if (nm->full == vc) nm->full = nullptr;
  std::erase(nm->vcs, vc);
  for (ulfm_nm_group* group : nm->groups)
    std::replace(group->members.begin(), group->members.end(), vc, static_cast<ulfm_nm_vc*>(nullptr));
  delete vc;
  return 1;
}

// Who has gone counts as listening until all that it sent has been read: its last word may close the connection well.
int nm_listening(ulfm_nm_vc* vc) { return vc->outlet->peer_listening() || vc->owner->inlet->has_frame() ? 1 : 0; }

// Something came or went, so the next wait is another one. Without this whoever only sends would climb the ladder of
// its waits once and sleep in every wait after that.
void begin_waits_anew(ulfm_nm* nm) {
  if (nm->idle_turns == 0) return;
  nm->idle_turns = 0;
  nm->idle_since = {};
  nm->waiter.reset();
}

std::ptrdiff_t push_more(ulfm_nm_vc* vc, Gather& data, std::size_t total, std::size_t sent) {
  while (sent < total) {
    const std::size_t length = std::min(total - sent, vc->outlet->max_frame(0));
    if (!vc->outlet->push(Kind::more, {}, data, length)) {
      vc->owner->full = vc;
      break;
    }
    sent += length;
    begin_waits_anew(vc->owner);
  }
  vc->owner->counters.sent_bytes.add(sent);
  return static_cast<std::ptrdiff_t>(sent);
}

std::ptrdiff_t nm_begin(ulfm_nm_vc* vc, const void* header, std::size_t header_length, const iovec* pieces, int n) {
  Gather data(std::span(pieces, static_cast<std::size_t>(n)));
  const std::size_t total = n == 1 ? pieces[0].iov_len : data.remaining();
  // Every frame takes this much, so that a short message need not ask.
  const std::size_t length = total <= kLeastFrame ? total : std::min(total, vc->outlet->max_frame(header_length));
  if (!vc->outlet->push(Kind::first, {static_cast<const std::byte*>(header), header_length}, data, length)) {
    vc->owner->full = vc;
    return -1;
  }
  begin_waits_anew(vc->owner);
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

// ---- several at once

// Blocks of an allgather that are gathered first, all together: they go to all in one frame then.
constexpr std::size_t kGathered = 4096;

// The fewest frames that so many receivers need, as far as the transport knows a way; then each frame has as many.
std::size_t group_part(const ulfm_nm* nm, std::size_t members, std::size_t header_length) {
  for (std::size_t parts = 1; parts < members; ++parts)
    if (const std::size_t part = (members + parts - 1) / parts;
        nm->transport->multicast_frame(part, header_length) != 0)
      return part;
  return 0;
}

std::size_t nm_group_limit(ulfm_nm* nm, int members, std::size_t header_length) {
  const std::size_t part = group_part(nm, static_cast<std::size_t>(members), header_length);
  return part == 0 ? 0 : nm->transport->multicast_frame(part, header_length);
}

// Cards or switches of an emulated interconnect: the bytes of a multicast go to each once, for all nodes there.
int places_of(const Config& config) {
  constexpr int kUnknown = std::numeric_limits<int>::max();
  const fabric::ModelKind* kind = fabric::model_of_transport(config.text("TRANSPORT"));
  if (kind == nullptr) return kUnknown;
  const std::string& given = config.text("TOPOLOGY");
  auto topology = fabric::read_topology(given.empty() ? kind->default_topology : given);
  return topology ? static_cast<int>(topology->switches) : kUnknown;
}

// Up a tree (ulfm_multicast.c): a message takes `delay` receives from end to end, and after `receives` all have been
// heard of.
struct WayUp {
  int delay;
  double receives;
};

// Ranks that can be heard of in t receives: those of t - 1, and those behind the child whose message came last.
WayUp way_up(int ranks, double delay) {
  constexpr int kLeast = 2, kMost = 16;  // a flatter tree has one rank combine too much
  const int d = std::clamp(static_cast<int>(delay + 0.5), kLeast, kMost);
  std::vector<long> within(static_cast<std::size_t>(d), 1);
  while (within.back() < ranks) within.push_back(within.back() + within[within.size() - static_cast<std::size_t>(d)]);
  return {delay > kMost ? 0 : d, static_cast<double>(within.size() - 1) + std::max(0.0, delay - d)};
}

// Without virtual time: a reduction of so many bytes goes up a tree whole; of longer ones each rank combines a part.
constexpr std::size_t kReducedWhole = 2048;

// Software for each step of a tree or an exchange is what multicast saves; what it costs is that the sender's bytes go
// to each place by themselves. Powers of two are near enough, and so is a place for each node as long as there are
// places.
int nm_group_pays(ulfm_nm* nm, int kind, int ranks, int nodes, std::size_t bytes) {
  const MulticastCost cost = nm->transport->multicast_cost();
  const auto each = kind == ULFM_COLL_ALLGATHER ? ULFM_GROUP_EACH : ULFM_GROUP_ONE;
  if (cost.message == 0) {
    const auto all = static_cast<std::size_t>(ranks) * bytes;
    if (kind == ULFM_COLL_REDUCE) return bytes <= kReducedWhole ? way_up(ranks, 0).delay : 0;
    return each == ULFM_GROUP_EACH && all <= kGathered ? ULFM_GROUP_ONE : each;
  }
  if (nm->places == 0) nm->places = places_of(nm->config);
  const unsigned places = static_cast<unsigned>(std::min(nodes, nm->places));
  const double software = static_cast<double>(cost.message), steps = std::bit_width(static_cast<unsigned>(ranks - 1));
  const double one = static_cast<double>(cost.byte) * static_cast<double>(bytes);  // to one place
  const double others = places - 1, place_steps = std::bit_width(places - 1);
  const WayUp up = way_up(ranks, 2 * (software + one) / software);
  const double tree = up.receives * software / 2;
  // MPICH sends short ones whole, up a tree or in an exchange of all pairs, and of long ones a part to each.
  const auto by_messages = [&](double n) { return n * software + std::min(n * one, n * software + 2 * one); };
  // An exchange of all pairs takes those into a power of two first, and hands them the result.
  const double pairs =
      std::has_single_bit(static_cast<unsigned>(ranks)) ? steps : std::bit_width(static_cast<unsigned>(ranks)) + 1;
  switch (kind) {
    case ULFM_COLL_BARRIER: return tree <= (steps - 1) * software ? up.delay : 0;  // and one message to all
    case ULFM_COLL_BCAST: return software + others * one <= steps * software + place_steps * one ? each : 0;
    case ULFM_COLL_REDUCE: return tree <= by_messages(steps) ? up.delay : 0;
    case ULFM_COLL_ALLREDUCE: return up.delay != 0 && tree + software + others * one <= by_messages(pairs) ? each : 0;
    case ULFM_COLL_ALLGATHER:
      return (ranks - 1) * software / 2 + 2 * others * one <= steps * software + ranks * one ? each : 0;
    default: return 0;
  }
}

ulfm_nm_group* nm_group_open(ulfm_nm* nm, ulfm_nm_vc* const* vcs, int count, std::size_t header_length) {
  auto group = std::make_unique<ulfm_nm_group>(ulfm_nm_group{nm, {vcs, vcs + count}, {}, {}});
  const std::size_t all = group->members.size(), part = group_part(nm, all, header_length);
  for (std::size_t first = 0, size; first < all && part != 0; first += size) {
    size = std::min(part, all - first);
    std::vector<Outlet*> outlets;
    for (std::size_t i = first; i < first + size; ++i) outlets.push_back(vcs[i]->outlet.get());
    auto multicast = nm->transport->group(outlets);
    if (!multicast) break;  // those from here on get theirs one by one
    group->parts.push_back({std::move(multicast), first, size});
  }
  nm->groups.push_back(group.get());
  return group.release();
}

// False when there is no room now.
bool send_to_part(ulfm_nm_group& group, const ulfm_nm_group::Part& part, const Headers& header, const iovec& data,
                  char* marks) {
  std::vector<std::uint32_t>& who = group.who;
  who.clear();
  for (std::uint32_t i = 0; i < part.size; ++i)
    if (marks[part.first + i] != 0 && group.members[part.first + i] != nullptr) who.push_back(i);
  if (who.empty()) return true;
  const std::size_t before = who.size();
  Gather bytes(std::span(&data, 1));
  if (!part.multicast->push(Kind::first, header, bytes, data.iov_len, who)) return false;
  // From here on a mark is a member that is disconnected or left to its own outlet.
  for (std::size_t i = 0; i < part.size; ++i)
    if (group.members[part.first + i] != nullptr) marks[part.first + i] = 0;
  for (const std::uint32_t member : who) marks[part.first + member] = 1;
  PortCounters& counters = group.owner->counters;
  if (before != who.size()) counters.group_frames.add();
  counters.group_copies.add(before - who.size());
  return true;
}

int nm_group_send(ulfm_nm_group* group, const void* header, std::size_t header_length, const void* data,
                  std::size_t length, int goes_on, char* marks) {
  const iovec piece{const_cast<void*>(data), length};
  const VirtualTime::Charge charge = VirtualTime::charge();
  if (goes_on != 0) VirtualTime::set_charge(VirtualTime::Charge::none);
  bool gone = true;
  for (const ulfm_nm_group::Part& part : group->parts)
    gone = send_to_part(*group, part, {static_cast<const std::byte*>(header), header_length, 0}, piece, marks) && gone;
  VirtualTime::set_charge(charge);
  if (!gone) return 0;
  begin_waits_anew(group->owner);
  PortCounters& counters = group->owner->counters;
  counters.group_messages.add();
  counters.sent_messages.add();
  counters.sent_bytes.add(header_length + length);
  return 1;
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
  begin_waits_anew(nm);
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

void nm_drop_cookie(ulfm_nm* nm, const void* cookie) {
  std::replace(nm->cookies.begin(), nm->cookies.end(), const_cast<void*>(cookie), static_cast<void*>(nullptr));
}

void park(ulfm_nm* nm, std::chrono::nanoseconds limit, bool sends_waiting) {
  WakeSource& bell = nm->inlet->wake_source();
  Outlet* full = sends_waiting && nm->full != nullptr ? nm->full->outlet.get() : nullptr;
  RoomBell* room = full != nullptr ? full->room_bell() : nullptr;
  bell.arm();
  if (room != nullptr) room->arm();
  if (nm->inlet->has_frame() || (full != nullptr && full->has_room())) return bell.cancel();
  limit = std::min(limit, nm->inlet->next_deadline());
  if (limit.count() <= 0) return bell.cancel();
  wait_counters().count(Rung::park);
  room != nullptr ? bell.sleep(limit, *room) : bell.sleep(limit);
}

// What the library knows of a wait in MPI: not of requests, which are MPICH's, but of everybody it talks with.
void report_stall(ulfm_nm* nm, std::chrono::nanoseconds time) {
  const std::string who =
      "ulfm: stall rank " + std::to_string(nm->rank) + " (process " + std::to_string(getpid()) + "): ";
  std::string text =
      who + "nothing has come since " + stall_time(time) +
      (nm->idle_how == ULFM_NM_IDLE_BLOCK || nm->idle_how == ULFM_NM_IDLE_WAIT ? " in an MPI call that waits"
                                                                               : " while the program polls") +
      "; received " + std::to_string(nm->counters.received_messages.get()) + " messages, sent " +
      std::to_string(nm->counters.sent_messages.get()) + (nm->sends_waiting ? "; messages wait for room" : "") + "\n";
  for (const ulfm_nm_vc* vc : nm->vcs)
    text += who + "has a connection to " + vc->outlet->peer().text() +
            (vc->outlet->peer_listening() ? ", which runs" : ", which has ended or left") + "\n";
  for (std::uint32_t i = 0; i < nm->cookies.size(); ++i)
    if (const OriginInfo from = nm->inlet->origin(i); from.process)
      text += who + "hears from " + from.process.text() + "\n";
  write_stall_report(text);
}

// ---- the table of waits

struct Waits : ulfm_nm_waits {
  StallState* state;
};

void add_wait(ulfm_nm_waits* waits, const ulfm_nm_wait* wait) {
  StallState& state = *static_cast<Waits*>(waits)->state;
  if (state.n == kMostStallWaits) {
    ++state.more;
    return;
  }
  StallWait& to = state.waits[state.n++];
  to = {static_cast<StallKind>(wait->kind), wait->rank, wait->tag, 0, wait->bytes, {}};
  std::string_view(wait->name).copy(to.name, kStallName - 1);
}

StallState state_of(ulfm_nm* nm, std::chrono::steady_clock::time_point now) {
  StallState state{};
  state.pid = getpid();
  const auto since = nm->idle_since == std::chrono::steady_clock::time_point{} ? now : nm->idle_since;
  state.since = since.time_since_epoch().count();
  if (nm->describe == nullptr) return state;
  Waits waits{};
  waits.add = add_wait;
  waits.state = &state;
  nm->describe(&waits);
  state.blocked = waits.blocked;
  state.posted = waits.posted, state.arrived = waits.arrived, state.unsent = waits.unsent;
  return state;
}

void nm_on_stall(ulfm_nm* nm, void (*describe)(ulfm_nm_waits*)) { nm->describe = describe; }

void report_stalls(ulfm_nm* nm, std::chrono::steady_clock::time_point now) {
  const bool due = nm->stall.due(nm->idle_since, now);
  if (nm->board) take_part(*nm->board, due, now, [&] { return state_of(nm, now); });
  else if (due) report_stall(nm, now - nm->idle_since);
}

// The receiver of what we sent has stopped to take it. True once for each connection.
bool find_cut_off(ulfm_nm* nm) {
  bool found = false;
  for (ulfm_nm_vc* vc : nm->vcs)
    if (!vc->cut_off && vc->outlet->cut_off()) {
      found = vc->cut_off = true;
      say_before_the_end("rank " + std::to_string(nm->rank) + ": " + vc->outlet->peer().text() +
                         " takes nothing from this one any more; what was sent to it last may be lost");
    }
  return found;
}

int look_around(ulfm_nm* nm) {
  if (const std::string why = nm->inlet->why_broken(); !why.empty()) {
    // Nothing will ever arrive again, so no MPI call can end: the launcher ends the others.
    say_before_the_end("rank " + std::to_string(nm->rank) + ": " + why);
    if (control::Control* control = nm->transport->control()) control->abort(1, why);
    std::_Exit(1);
  }
  nm->dead = nm->inlet->find_dead();
  // What waits for room may wait for what the dead hold.
  for (ulfm_nm_group* group : nm->groups)
    for (const ulfm_nm_group::Part& part : group->parts)
      if (nm->sends_waiting) part.multicast->look_for_dead();
  int news = std::exchange(nm->lost_way, false) || find_cut_off(nm) ? ULFM_NM_GIVEN_UP : ULFM_NM_LOOK;
  for (Error error; nm->inlet->take_given_up(error); news = ULFM_NM_GIVEN_UP)
    say_before_the_end("rank " + std::to_string(nm->rank) + ": " + error.what);  // MPI's own error has a rank only
  return news;
}

// Something that can end the wait is there.
bool has_come(ulfm_nm* nm, bool sends_waiting) {
  return nm->inlet->look() || (sends_waiting && nm->full != nullptr && nm->full->outlet->has_room());
}

// With a core of one's own the answer, or room, is best awaited here, a look at a time. True when it is there.
bool look_on(ulfm_nm* nm, bool sends_waiting) {
  if (!sends_waiting || nm->full == nullptr) return nm->inlet->spin(kSpinTurns);
  for (std::uint32_t turn = 0; turn < kSpinTurns; ++turn)
    if (nm->inlet->spin(1) || nm->full->outlet->has_room()) return true;
  return false;
}

int look_around_now_and_then(ulfm_nm* nm) {
  const auto now = std::chrono::steady_clock::now();
  if (now - nm->looked < kLookEvery) return 0;
  nm->looked = now;
  if (nm->idle_since == std::chrono::steady_clock::time_point{}) {
    nm->idle_since = now;
    nm->stall.reset();
  }
  report_stalls(nm, now);
  return look_around(nm);
}

// In virtual time nobody spins and nobody naps: a wait ends with an arrival. What a test costs is for whoever knows
// that it was one; here it may be a turn of a wait, which costs the least there is.
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
  nm->idle_how = how;
  nm->sends_waiting = sends_waiting != 0;
  if (VirtualTime* time = VirtualTime::of_process(); time != nullptr) [[unlikely]]
    return idle_timed(nm, *time, how);
  const std::uint32_t every_so_many = nm->policy.has_own_core() ? kLookTurns : kLookTurns / kYieldsOfBlock;
  const int look = ++nm->idle_turns % every_so_many == 0 ? look_around_now_and_then(nm) : 0;
  if (how == ULFM_NM_IDLE_TEST || how == ULFM_NM_IDLE_THREADED) {
    // The caller has its own loop, which may be a busy one: let others have the core from time to time.
    // With threads the caller holds a lock that others want, and lets go of it itself: a yield here helps nobody.
    const std::uint32_t every = how == ULFM_NM_IDLE_TEST && !nm->policy.has_own_core() ? 16 : 1024;
    if (nm->idle_turns % every == 0) yield_now();
    return look;
  }
  // What is to be told of peers is told although something has come: room may come again and again and be taken by
  // others.
  const int arrived = look != 0 ? look : ULFM_NM_ARRIVED;
  if (nm->policy.has_own_core() && look_on(nm, sends_waiting != 0)) return arrived;
  for (int turns = how == ULFM_NM_IDLE_BLOCK ? kYieldsOfBlock : kYieldsOfWait; !nm->waiter.step();) {
    if (nm->policy.has_own_core() || --turns == 0) return look;
    if (has_come(nm, sends_waiting != 0)) return arrived;
  }
  if (how == ULFM_NM_IDLE_WAIT || sends_waiting) {
    // Something else may end this wait without ringing.
    park(nm, std::chrono::microseconds(500), sends_waiting != 0);
  } else {
    park(nm, nm->policy.park_limit, false);
  }
  return look_around_now_and_then(nm);
}

// ---- collectives --------------------------------------------------------------------------------------------------

// Calls by messages before a communicator gets its segment: most communicators are hardly used.
constexpr int kFirstCalls = 4;
// Segments of a process; more communicators than that stay with messages.
constexpr int kMostSegments = 32;
// Of a call whose blocks have different sizes.
constexpr std::size_t kMostRounds = 4;

int nm_coll_after(ulfm_nm* nm) {
  const std::string& setting = nm->config.text("COLLECTIVES");
  if (setting == "off") return -1;
  if (nm->transport->multicast_frame(2, 0) != 0) return ULFM_COLL_BY_MULTICAST;
  // Over other emulated interconnects, or one with faults, the messages themselves are what is asked for.
  if (nm->transport_name != "direct") return -1;
  return setting == "on" ? 0 : kFirstCalls;
}

int nm_coll_open(ulfm_nm* nm, char* ticket, int rank, int size, int threaded, int (*progress)(void*), void* arg,
                 ulfm_coll** out) {
  if (nm->segments >= kMostSegments) return report({Errc::full, "too many communicators with a segment"});
  coll::WaitHooks hooks{[progress, arg] { return progress(arg); }, threaded == 0};
  const bool shared_cores = !nm->policy.has_own_core();
  auto made = rank == 0 ? coll::Collective::create(size, shared_cores, nm->policy, std::move(hooks))
                        : coll::Collective::attach(ticket, rank, size, nm->policy, std::move(hooks));
  if (!made) return report(made.error());
  if (rank == 0) {
    const std::string text = (*made)->ticket();
    ticket[text.copy(ticket, ULFM_COLL_TICKET - 1)] = 0;
  }
  ++nm->segments;
  *out = new ulfm_coll{std::move(*made), nm};
  return 0;
}

void nm_coll_close(ulfm_coll* coll) {
  --coll->owner->segments;
  delete coll;
}

bool always(const ulfm_nm* nm) { return nm->config.text("COLLECTIVES") == "on"; }

int nm_coll_way(ulfm_coll* coll, int kind, std::size_t bytes) {
  return coll->collective->way(kind, bytes, always(coll->owner));
}

std::size_t most_rounds(const ulfm_nm* nm) {
  return always(nm) ? std::numeric_limits<std::size_t>::max() : kMostRounds;
}

int nm_coll_run(ulfm_coll* coll, const ulfm_coll_call* call) {
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

int nm_coll_missing(ulfm_coll* coll) { return coll->collective->missing(); }

void nm_coll_count(ulfm_nm* nm, int kind, int way) { nm->collectives.count(kind, way); }

constexpr ulfm_nm_api kTable{ULFM_NM_ABI,
                             ULFM_VERSION_STRING,
                             ulfm_last_error,
                             nm_nodes,
                             nm_open,
                             nm_close,
                             nm_card,
                             nm_card_of,
                             nm_eager_limit,
                             nm_connect,
                             nm_disconnect,
                             nm_listening,
                             nm_begin,
                             nm_more,
                             nm_next,
                             nm_release,
                             nm_origin,
                             nm_set_cookie,
                             nm_drop_cookie,
                             nm_idle,
                             ulfm_reduce_kernel,
                             nm_group_limit,
                             nm_group_pays,
                             nm_group_open,
                             nm_group_close,
                             nm_group_send,
                             nm_coll_after,
                             nm_coll_open,
                             nm_coll_close,
                             nm_coll_way,
                             nm_coll_run,
                             nm_coll_count,
                             nm_coll_missing,
                             nm_on_stall};

}  // namespace

extern "C" ULFM_API const ulfm_nm_api* ulfm_nm_table(std::uint32_t abi) {
  return abi == ULFM_NM_ABI ? &kTable : nullptr;
}
