#include "port/node.hpp"

#include <unistd.h>

#include <cstdlib>
#include <optional>

#include <fmt/core.h>

#include "base/virtual_time.hpp"

namespace ulfm {
namespace {

using HostClock = std::chrono::steady_clock;

constexpr unsigned long kMostProcesses = 65536;
constexpr std::chrono::seconds kCloseWithin{10};  // a peer that never reads must not hold a closing port for ever

// Frames that the ports have moved either way.
std::uint64_t frames_of(std::span<PortCore* const> ports) {
  std::uint64_t sum = 0;
  for (const PortCore* port : ports) sum += port->frames_sent() + port->frames_received();
  return sum;
}

// Looks for who has ended now and then: a wait may be too short, or too busy, ever to sleep.
Result<void> find_failure(std::span<PortCore* const> ports, HostClock::time_point now) {
  Error error;
  for (PortCore* port : ports) {
    port->look_for_dead_at(now);
    if (port->take_failure(error)) return fail(std::move(error));
  }
  return {};
}

// Of a process that a host program has loaded, or of that program, on an emulated interconnect; elsewhere 0.
int number_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr ? static_cast<int>(std::strtoul(text, nullptr, 10) % kMostProcesses) : 0;
}

// Longest sleep of a wait that something may end which rings no bell.
constexpr std::chrono::milliseconds kPortNap{1};

std::string rank_key(int rank) { return fmt::format("ulfm-card-{}", rank); }

}  // namespace

Result<std::unique_ptr<Node>> Node::create(bool alone) {
  auto config = Config::load();
  if (!config) return fail(config.error());
  std::unique_ptr<Node> node(new Node);
  if (!alone) {
    auto pmi = Pmi::join();
    if (!pmi) return fail(pmi.error());
    node->pmi_ = std::move(*pmi);
  }
  Process::Place place{node->rank(), node->size(), alone ? 2 : node->size(), alone};
  if (alone) {
    place.rank = number_of("ULFM_FABRIC_RANK"), place.first = number_of("ULFM_FABRIC_HOST");
    if (std::getenv("ULFM_FABRIC_RANK") == nullptr) place.name = fmt::format("process {}", getpid());
  }
  auto process = Process::start(std::move(*config), place);
  if (!process) return fail(process.error());
  node->process_ = std::move(*process);
  if (node->pmi_) {
    if (auto ok = node->pmi_->put(rank_key(node->rank()), node->card()); !ok) return fail(ok.error());
    if (auto ok = node->pmi_->barrier(); !ok) return fail(ok.error());
  }
  return node;
}

Node::~Node() {
  for (std::uint16_t i = 0; i < kPortsPerProcess; ++i)
    if (table_[i]) (void)close(i);
  if (process_) process_->report_statistics();
  if (pmi_) (void)pmi_->finalize();
}

Result<void> Node::barrier() {
  if (!pmi_) return {};
  if (VirtualTime* time = VirtualTime::of_process(); time != nullptr) [[unlikely]]
    time->barrier();  // and then the host's, in which nobody's time goes on
  return pmi_->barrier();
}

Result<void> Node::put(const std::string& key, const std::string& value) {
  if (pmi_) return pmi_->put(fmt::format("u-{}", key), value);
  return fail(Errc::unavailable, "this process is alone: there is nobody to exchange keys with");
}

Result<std::string> Node::get(const std::string& key) {
  if (pmi_) return pmi_->get(fmt::format("u-{}", key));
  return fail(Errc::unavailable, "this process is alone: there is nobody to exchange keys with");
}

// ---- names ----------------------------------------------------------------------------------------------------------

Result<std::uint32_t> Node::process_of_card(std::string_view card) {
  if (card.empty() || card.size() > kMostCard) return fail(Errc::protocol, "no address of a process");
  std::lock_guard lock(names_lock_);
  // What arrives from a process names it without its endpoint key, which is known from elsewhere or not needed.
  const auto [it, added] =
      by_card_.try_emplace(std::string(control::identity_of(card)), static_cast<std::uint32_t>(cards_.size()));
  if (added) cards_.emplace_back(card);
  else if (cards_[it->second].size() < card.size()) cards_[it->second] = card;
  return it->second;
}

Result<std::uint32_t> Node::process_of_rank(int rank) {
  if (rank < 0 || rank >= size())
    return fail(Errc::invalid, fmt::format("rank {}: the job has ranks 0 to {}", rank, size() - 1));
  {
    std::lock_guard lock(names_lock_);
    if (const auto it = by_rank_.find(rank); it != by_rank_.end()) return it->second;
  }
  std::string card = this->card();
  if (rank != this->rank()) {
    auto got = pmi_->get(rank_key(rank));
    if (!got) return fail(got.error());
    card = std::move(*got);
  }
  auto process = process_of_card(card);
  if (!process) return process;
  std::lock_guard lock(names_lock_);
  by_rank_[rank] = *process;
  return process;
}

std::string Node::card_of(std::uint32_t process) {
  std::lock_guard lock(names_lock_);
  return process < cards_.size() ? cards_[process] : "";
}

// ---- port table -----------------------------------------------------------------------------------------------------

Result<PortCore*> Node::open(std::uint16_t number, std::uint32_t slot_bytes, std::uint32_t depth) {
  std::lock_guard lock(table_lock_);
  if (number == kNoPort) {
    number = 0;
    while (number < kPortsPerProcess && table_[number]) ++number;
    if (number == kPortsPerProcess)
      return fail(Errc::full, fmt::format("all {} ports of this process are open", kPortsPerProcess));
  }
  if (depth > 32768 || slot_bytes > (1u << 20))
    return fail(
        Errc::too_large,
        fmt::format("a port of {} buffers of {} bytes: at most 32768 of 1 MB (a message may be longer than a buffer)",
                    depth, slot_bytes));
  // The application's sizes are of its data; the message header comes on top.
  const InletOptions options{depth, slot_bytes != 0 ? static_cast<std::uint32_t>(slot_bytes + kMessageHeader) : 0};
  auto inlet = process_->open(number, options);
  if (!inlet) return fail(inlet.error());
  const auto setting = [&](const char* row) { return static_cast<std::uint32_t>(config().number(row)); };
  auto port = std::make_unique<PortCore>(*this, number, std::move(*inlet), depth != 0 ? depth : setting("DEPTH"),
                                         options.slot != 0 ? options.slot : setting("SLOT"),
                                         static_cast<std::size_t>(config().number("CACHE")));
  std::lock_guard interface(interface_lock_);  // the interface reads the table
  table_[number] = std::move(port);
  return table_[number].get();
}

Result<void> Node::close(std::uint16_t number) {
  PortCore* port = this->port(number);
  if (port == nullptr) return fail(Errc::stale, fmt::format("port {} is not open", number));
  // Posted messages leave first.
  const auto until = HostClock::now() + kCloseWithin;
  auto flushed = flush(*port, kCloseWithin);
  while (!flushed && flushed.error().code == Errc::peer_failed && HostClock::now() < until)
    flushed = flush(*port, until - HostClock::now());
  std::unique_ptr<PortCore> closed;  // its inlet may wait for its last frames: not under the locks
  say_byes(*port, until);
  std::scoped_lock both(table_lock_, interface_lock_);
  process_->note_closed_port(number, port->counters());
  closed = std::move(table_[number]);
  return {};
}

// A peer to which nobody says bye takes this process's end for a death. One that reads slowly has no room for it yet.
void Node::say_byes(PortCore& port, std::chrono::steady_clock::time_point until) {
  VirtualTime* const time = VirtualTime::of_process();
  const std::uint64_t last =
      time != nullptr ? time->now() + std::chrono::nanoseconds(kCloseWithin).count() * 1000ull : 0;
  PortCore* const self = &port;
  Waiter waiter(wait_policy());
  for (;;) {
    {
      std::scoped_lock both(table_lock_, interface_lock_);
      if (port.send_byes()) return;
    }
    port.absorb();  // the other side may be doing the same
    if (time != nullptr ? time->now() >= last : HostClock::now() > until) return;
    if (time != nullptr) {
      (void)sleep_timed(*time, std::span(&self, 1), StallKind::room, last);
    } else if (waiter.step()) {
      park(std::array{self}, kPortNap);
      port.look_for_dead();
    }
  }
}

Result<void> Node::connect(PortCore& port, PortAddress to) {
  std::lock_guard lock(interface_lock_);
  return port.connect(to);
}

Result<void> Node::connect(PortCore& port, std::span<const PortAddress> all) {
  std::lock_guard lock(interface_lock_);
  return port.connect(all);
}

// ---- the interface --------------------------------------------------------------------------------------------------

void Node::serve_port(PortCore& port) {
  while (port.posted != 0 && port.transmit()) --port.posted;
}

void Node::serve_stalled() {
  bool still = false;
  for (const auto& port : table_) {
    if (port && port->posted != 0) {
      serve_port(*port);
      still = still || port->posted != 0;
    }
    if (port && port->is_passing_on()) {
      port->pass_on();
      still = still || port->is_passing_on();
    }
  }
  stalled_.store(still, std::memory_order_relaxed);
}

bool Node::send_at_once(PortCore& port, PortAddress to, Gather& data, std::size_t size) {
  if (!interface_lock_.try_lock()) return false;
  const bool sent = send_queue_.empty() && port.send_at_once(to, data, size);
  interface_lock_.unlock();
  if (sends_pending()) [[unlikely]]
    drive();  // others have posted meanwhile, and found the interface busy
  return sent;
}

void Node::serve(PortCore& port) {
  // The send queue has a place for every send buffer there can be.
  if (!serve_at_once(port)) [[unlikely]]
    send_queue_.push(port.number());
  if (sends_pending()) [[unlikely]]
    drive();
}

void Node::pass_on(PortCore& port, const std::shared_ptr<Tree>& tree, HeapBytes bytes, std::size_t size) {
  std::lock_guard lock(interface_lock_);
  port.pass_on(tree, std::move(bytes), size);
  if (port.is_passing_on()) stalled_.store(true, std::memory_order_relaxed);
}

// When the interface is idle and nothing of this port waits: the number would go in and straight out again.
inline bool Node::serve_at_once(PortCore& port) {
  if (!interface_lock_.try_lock()) return false;
  const bool idle = port.posted == 0 && send_queue_.empty();
  if (idle && !port.transmit()) [[unlikely]] {
    port.posted = 1;
    stalled_.store(true, std::memory_order_relaxed);
  }
  interface_lock_.unlock();
  return idle;
}

void Node::drive() {
  // The thread that holds the lock serves for the others. It checks again after the unlock, so that no number is left.
  do {
    std::unique_lock lock(interface_lock_, std::try_to_lock);
    if (!lock) return;
    std::uint16_t number = 0;
    while (send_queue_.pop(number))
      if (PortCore* port = table_[number].get()) {
        ++port->posted;
        serve_port(*port);
        if (port->posted != 0) stalled_.store(true, std::memory_order_relaxed);
      }
    if (stalled_.load(std::memory_order_relaxed)) serve_stalled();
  } while (!send_queue_.empty());
}

// ---- waiting --------------------------------------------------------------------------------------------------------

void Node::park(std::span<PortCore* const> ports, std::chrono::nanoseconds left) {
  const auto most = wait_policy().park_limit;
  auto limit = left.count() < 0 ? most : std::min<std::chrono::nanoseconds>(left, most);
  // Room at a destination rings no bell: short naps then.
  if (sends_pending()) limit = std::min<std::chrono::nanoseconds>(limit, kPortNap);
  std::vector<Inlet*> inlets;
  for (PortCore* port : ports) inlets.push_back(&port->inlet());
  Process::park(inlets, limit);
}

bool Node::look() {
  std::unique_lock lock(table_lock_, std::try_to_lock);
  return lock && std::ranges::any_of(table_, [](const auto& port) { return port && port->inlet().look(); });
}

bool Node::park(std::chrono::nanoseconds limit, WaitWord other, const Look& look) {
  std::lock_guard lock(table_lock_);
  std::vector<Inlet*> inlets;
  for (const auto& port : table_)
    if (port) inlets.push_back(&port->inlet());
  if (sends_pending()) limit = std::min<std::chrono::nanoseconds>(limit, kPortNap);
  return inlets.empty() ? other.sleep(limit) : Process::park(inlets, limit, other, look);
}

// In virtual time: nobody spins, and what ends a wait is an arrival, room, or a moment.
Result<std::size_t> Node::wait_timed(VirtualTime& time, std::span<PortCore* const> ports,
                                     std::chrono::nanoseconds limit, Arrival& arrival) {
  const std::uint64_t until =
      limit.count() < 0 ? kNoMoment : time.now() + static_cast<std::uint64_t>(limit.count()) * 1000;
  for (;;) {
    for (std::size_t i = 0; i < ports.size(); ++i)
      if (ports[i]->poll(arrival)) return i;
    if (sends_pending()) drive();
    Error error;
    for (PortCore* port : ports)
      if (port->take_failure(error)) return fail(std::move(error));
    if (time.now() >= until) {
      time.spend_look();
      return fail(Errc::timed_out, fmt::format("no message came to port {} in {} ms of virtual time",
                                               ports.front()->number(), limit.count() / 1000000));
    }
    const bool looks_on = sleep_timed(time, ports, StallKind::any, until);
    for (PortCore* port : ports)
      if (looks_on) port->look_for_dead();
    if (looks_on && time.has_places())
      return fail(Errc::timed_out, "a process that this one has started may have ended");
  }
}

// True when processes have ended: a caller that waits for them must check.
bool Node::sleep_timed(VirtualTime& time, std::span<PortCore* const> ports, StallKind kind, std::uint64_t until) {
  for (PortCore* port : ports) until = std::min(until, moment_after(time.now(), port->inlet().next_deadline()));
  return process_->wait_timed(time, until, VirtualTime::Patience::only_arrivals,
                              [&] { return stall_state(ports, kind, HostClock::now()); });
}

Result<std::size_t> Node::wait(std::span<PortCore* const> ports, std::chrono::nanoseconds limit, Arrival& arrival) {
  if (ports.empty()) return fail(Errc::invalid, "waiting for no port would never end");
  if (VirtualTime* time = VirtualTime::of_process(); time != nullptr) [[unlikely]]
    return wait_timed(*time, ports, limit, arrival);
  Waiter waiter(wait_policy(), ports.front()->waited_in_vain());
  std::optional<HostClock::time_point> start;  // read when something does not come at once: short messages cost less
  std::uint64_t frames = 0;
  StallWatch stall = process_->new_stall_watch();
  const bool look_on = ports.size() == 1 && wait_policy().has_own_core();
  for (;;) {
    for (std::size_t i = 0; i < ports.size(); ++i)
      if (ports[i]->poll(arrival)) return i;
    if (sends_pending()) drive();
    else if (look_on) ports.front()->inlet().spin(kSpinTurns);
    const bool patience_out = waiter.step();
    if (waiter.turns() % 64 != 0 && !patience_out) continue;
    const auto now = HostClock::now();
    if (!start) {
      start = now;
      frames = frames_of(ports);
    }
    if (auto ok = find_failure(ports, now); !ok) return fail(ok.error());
    report_stalls(stall, ports, StallKind::any, *start, now);
    const auto left = limit.count() >= 0 ? limit - (now - *start) : std::chrono::nanoseconds(-1);
    if (limit.count() >= 0 && left.count() <= 0) {
      ports.front()->note_wait_in_vain(now - *start);
      return fail(Errc::timed_out,
                  fmt::format("no message came to port {} in {} ms", ports.front()->number(), limit.count() / 1000000));
    }
    // Pieces of a long message come and go: an answer is near, and a yield or a sleep would only lose time.
    if (const std::uint64_t moved = frames_of(ports); moved != frames) {
      frames = moved;
      waiter.reset();
    } else if (patience_out) {
      park(ports, left);
    }
  }
}

Result<void> Node::flush_timed(VirtualTime& time, PortCore& port, std::chrono::nanoseconds limit) {
  const std::uint64_t until =
      limit.count() < 0 ? kNoMoment : time.now() + static_cast<std::uint64_t>(limit.count()) * 1000;
  for (;;) {
    drive();
    port.absorb();
    const bool all_sent = port.all_sent();
    Error error;
    if (port.take_failure(error)) return fail(std::move(error));
    if (all_sent) return {};
    if (time.now() >= until)
      return fail(Errc::timed_out, fmt::format("port {}: messages are still on their way", port.number()));
    if (PortCore* const self = &port; sleep_timed(time, std::span(&self, 1), StallKind::room, until))
      port.look_for_dead();
  }
}

Result<void> Node::flush(PortCore& port, std::chrono::nanoseconds limit) {
  if (VirtualTime* time = VirtualTime::of_process(); time != nullptr) [[unlikely]]
    return flush_timed(*time, port, limit);
  Waiter waiter(wait_policy());
  const auto start = HostClock::now();
  std::uint64_t frames = port.frames_sent();
  StallWatch stall = process_->new_stall_watch();
  while (!port.all_sent()) {
    drive();
    port.absorb();  // the other side may be doing the same
    if (const std::uint64_t now = port.frames_sent(); now != frames) {
      frames = now;
      waiter.reset();  // room comes, and no bell rings for it: a sleep would only lose time
    }
    const auto now = HostClock::now();
    if (auto ok = find_failure(std::array{&port}, now); !ok) return fail(ok.error());
    if (limit.count() >= 0 && now - start > limit)
      return fail(Errc::timed_out, fmt::format("port {}: messages are still on their way", port.number()));
    report_stalls(stall, std::array{&port}, StallKind::room, start, now);
    if (waiter.step()) park(std::array{&port}, kPortNap);
  }
  // What could not be delivered is not on its way any more, either.
  Error error;
  if (port.take_failure(error)) return fail(std::move(error));
  return {};
}

// ---- waits that do not end ------------------------------------------------------------------------------------------

std::string Node::stall_text(std::span<PortCore* const> ports, StallKind kind, std::chrono::nanoseconds time) {
  const std::string who = process_->stall_prefix();
  const char* what = kind == StallKind::any ? "waits for a message" : "waits until what it posted has gone";
  std::string text = fmt::format("{}{} since {}\n", who, what, stall_time(time));
  std::unique_lock lock(interface_lock_, std::try_to_lock);  // a thread that has it is sending, which is no stall
  for (PortCore* port : ports) text += port->stall_lines(who, lock.owns_lock());
  return text;
}

StallState Node::stall_state(std::span<PortCore* const> ports, StallKind kind, StallWatch::Clock::time_point start) {
  StallState state{};
  state.pid = getpid();
  state.blocked = 1;
  state.since = start.time_since_epoch().count();
  for (const PortCore* port : ports) {
    if (kind == StallKind::any) ++state.posted;
    state.unsent += port->unsent();
    if (state.n == kMostStallWaits) ++state.more;
    else state.waits[state.n++] = {kind, -1, -1, port->number(), port->unsent(), {}};
  }
  return state;
}

void Node::report_stalls(StallWatch& stall, std::span<PortCore* const> ports, StallKind kind,
                         StallWatch::Clock::time_point start, StallWatch::Clock::time_point now) {
  process_->report_stalls(
      stall, start, now, [&] { return stall_state(ports, kind, start); },
      [&](std::chrono::nanoseconds time) { return stall_text(ports, kind, time); });
}

}  // namespace ulfm
