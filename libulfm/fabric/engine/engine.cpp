#include "fabric/engine/engine.hpp"

#include <unistd.h>

#include <array>
#include <bit>
#include <cstdio>
#include <cstdlib>

#include "base/wait.hpp"
#include "job/liveness.hpp"

namespace ulfm::fabric {
namespace {

// Looks with work undone by the poller after which another takes over: it computes or has no core.
constexpr std::uint32_t kPatience = 100;
constexpr std::uint64_t kBudget = 4096;  // events between two looks at the sending queues
constexpr int kRounds = 256;             // of these before one process has done enough for the others
constexpr std::uint32_t kNobody = 0xffffffff;
// A sleep ends late by the system's timer slack and the time to wake; a paced model is to be on time, so the last of a
// wait is awake.
constexpr std::uint64_t kWakeEarly = 100'000;  // nanoseconds
constexpr std::uint64_t kLate = 100'000;       // nanoseconds that a paced model may be late without a word

std::string title_of(const FabricArena& arena) {
  const ArenaHeader& h = arena.header();
  return {h.title, strnlen(h.title, sizeof h.title)};
}

// A thread that makes progress by itself looks as often as the host lets it, and its looks would take the process's
// time.
Result<void> check_alone(const FabricArena& arena) {
  if (arena.sizes().timed == 0) return {};
  for (const char* name : {"MPIR_CVAR_ASYNC_PROGRESS", "MPICH_ASYNC_PROGRESS"}) {
    const char* value = std::getenv(name);
    if (value != nullptr &&
        std::string_view("1 yes Yes YES true True TRUE on On ON").find(value) != std::string::npos && *value != 0)
      return fail(Errc::invalid, std::string(name) + "=" + value +
                                     ": threads that make progress by themselves work by the host's time; leave it "
                                     "out with --time virtual");
  }
  return {};
}

}  // namespace

FabricEngine::FabricEngine(FabricArena arena, std::unique_ptr<Model> model)
    : arena_(std::move(arena)),
      model_(std::move(model)),
      wait_(WaitPolicy::for_processes(static_cast<int>(arena_.sizes().processes))),
      own_core_(wait_.has_own_core()),
      process_(arena_.header().engine_pid.load(std::memory_order_relaxed) != 0),
      paced_(model_->paced()),
      pools_(model_->has_pools()),
      recovers_(model_->can_recover()) {}

Result<std::unique_ptr<FabricEngine>> FabricEngine::over(Result<FabricArena> arena) {
  if (!arena) return fail(arena.error());
  auto kind = arena->kind();
  if (!kind) return fail(std::move(kind.error()));
  auto model = (*kind)->attach(arena->model(), arena->sizes().model_bytes);
  if (!model) return fail(model.error());
  return std::unique_ptr<FabricEngine>(new FabricEngine(std::move(*arena), std::move(*model)));
}

Result<std::unique_ptr<FabricEngine>> FabricEngine::join_as(Result<FabricArena> arena, std::uint32_t process) {
  auto engine = over(std::move(arena));
  if (!engine) return engine;
  FabricEngine& e = **engine;
  if (auto ok = check_alone(e.arena_); !ok) return fail(ok.error());
  if (auto ok = e.claim_endpoint(process); !ok) return fail(ok.error());
  if (e.arena_.sizes().timed != 0) e.clock_ = std::make_unique<VirtualClock>(e, e.arena_, *e.model_, e.self_);
  return engine;
}

Result<std::unique_ptr<FabricEngine>> FabricEngine::join() {
  const char* rank = std::getenv("PMI_RANK");
  if (rank == nullptr) rank = std::getenv("ULFM_FABRIC_RANK");  // of a pair that no launcher started
  return join_as(FabricArena::of_this_job(),
                 rank != nullptr ? static_cast<std::uint32_t>(std::strtoul(rank, nullptr, 10)) : 0);
}

FabricEngine::~FabricEngine() {
  retire();
  clock_.reset();
  const std::string late = self_ == 0 ? how_late() : "";
  if (!late.empty()) std::fprintf(stderr, "ulfm: the %s %s\n", title_of(arena_).c_str(), late.c_str());
  if (self_ != kEngineProcess)
    arena_.endpoint(self_).state.store(EndpointState::left, std::memory_order_release);  // pairs with may_reuse()
}

// ---- endpoints ------------------------------------------------------------------------------------------------------

// Its process has left, or died, and none of its frames is on its way or held. Not that of a process that died while it
// moved the network: that another one has its number must not hide it.
bool FabricEngine::may_reuse(std::uint32_t i) const {
  const Endpoint& endpoint = arena_.endpoint(i);
  const EndpointState state = endpoint.state.load(std::memory_order_acquire);
  if (state == EndpointState::free || (state != EndpointState::left && is_alive(i))) return false;
  if (arena_.header().holder.load(std::memory_order_acquire) == i + 1) return false;
  for (std::uint32_t s = 0; s < arena_.sizes().slots; ++s)
    if (arena_.slot(i * arena_.sizes().slots + s).state.load(std::memory_order_acquire) != SlotState::free)
      return false;
  return true;
}

// From here on the endpoint can be used again when this process dies.
void FabricEngine::mark_claimed(std::uint32_t i) {
  Endpoint& endpoint = arena_.endpoint(i);
  endpoint.pid = getpid();
  endpoint.started = start_time(getpid());
  endpoint.state.store(EndpointState::claimed, std::memory_order_release);  // pairs with may_reuse()
}

// An endpoint that is nobody's any more, marked as this process's; `all` when there is none. One process at a time
// looks, or two could take the same one, one behind the other: the state they see is the same again.
std::uint32_t FabricEngine::reuse_endpoint() {
  std::atomic<std::int32_t>& reuser = arena_.header().reuser;
  // Acquire and release hand on what the one before has marked. Whoever died at it is replaced.
  for (std::int32_t seen = 0; !reuser.compare_exchange_weak(seen, getpid(), std::memory_order_acquire);) {
    if (seen != 0 && !ulfm::is_alive(seen, 0)) continue;
    seen = 0;
    yield_now();
  }
  const std::uint32_t all = arena_.sizes().endpoints;
  std::uint32_t i = 0;
  while (i < all && !may_reuse(i)) ++i;
  if (i < all) mark_claimed(i);
  reuser.store(0, std::memory_order_release);
  return i;
}

// In virtual time a process of the job has the endpoint of its rank, so that ranks break ties.
Result<std::uint32_t> FabricEngine::find_endpoint(std::uint32_t process) {
  ArenaHeader& h = arena_.header();
  const std::uint32_t all = arena_.sizes().endpoints;
  EndpointState unused = EndpointState::free;
  if (arena_.sizes().timed != 0 && process < arena_.sizes().processes &&
      arena_.endpoint(process).state.compare_exchange_strong(unused, EndpointState::claimed, std::memory_order_acq_rel))
    return mark_claimed(process), process;
  std::uint32_t i = h.endpoints_used.load(std::memory_order_relaxed);
  while (i < all && !h.endpoints_used.compare_exchange_weak(i, i + 1, std::memory_order_acq_rel)) {
  }
  if (i < all) mark_claimed(i);
  else i = reuse_endpoint();
  if (i >= all)
    return fail(Errc::full, "the emulated interconnect of this job has room for " + std::to_string(all) +
                                " processes, and all are in use");
  return i;
}

Result<void> FabricEngine::claim_endpoint(std::uint32_t process) {
  auto found = find_endpoint(process);
  if (!found) return fail(found.error());
  const std::uint32_t i = *found;
  Endpoint& endpoint = arena_.endpoint(i);
  if (auto ok = arena_.commit_slots(i); !ok) return ok;
  endpoint.node = arena_.node_of_rank(process);
  // In virtual time the same in each run: what is kept by cards is gone through in their order.
  endpoint.token = arena_.sizes().timed != 0 ? ((endpoint.token >> 32) + 1) << 32 | i : random_token();
  endpoint.job_id.store(0, std::memory_order_relaxed);
  for (auto& generation : endpoint.generation)
    if (generation.load(std::memory_order_relaxed) % 2 == 1) generation.fetch_add(1, std::memory_order_relaxed);
  endpoint.state.store(EndpointState::ready, std::memory_order_release);  // pairs with whoever reads its card
  self_ = i;
  sent_ = endpoint.taken;
  owners_.assign(arena_.sizes().slots, kNobody);
  return {};
}

bool FabricEngine::is_alive(std::uint32_t i) const {
  if (clock_ != nullptr && i < arena_.sizes().endpoints &&
      arena_.clock(i).state.load(std::memory_order_acquire) == ClockState::ended)
    return !clock_->has_ended(i);  // in virtual time, whatever the host's process does
  return runs(i);
}

bool FabricEngine::runs(std::uint32_t i) const {
  const ArenaHeader& h = arena_.header();
  if (i == kEngineProcess)
    return ulfm::is_alive(h.engine_pid.load(std::memory_order_relaxed),
                          h.engine_started.load(std::memory_order_relaxed));
  if (i >= kObservers) {
    return ulfm::is_alive(static_cast<pid_t>(i - kObservers), 0);
  }
  return i < arena_.sizes().endpoints && ulfm::is_alive(arena_.endpoint(i).pid, arena_.endpoint(i).started);
}

// ---- sending --------------------------------------------------------------------------------------------------------

std::uint32_t FabricEngine::add_sender() {
  std::lock_guard lock(sending_);
  for (std::uint32_t i = 0; i < on_their_way_.size(); ++i)
    if (on_their_way_[i] == kNobody) return on_their_way_[i] = 0, i;
  on_their_way_.push_back(0);
  return static_cast<std::uint32_t>(on_their_way_.size() - 1);
}

void FabricEngine::remove_sender(std::uint32_t sender) {
  std::lock_guard lock(sending_);
  for (std::uint32_t& owner : owners_)
    if (owner == sender) owner = kNobody;  // still on its way, and nobody's any more
  on_their_way_[sender] = kNobody;
}

// The index list: slots come back in about the order in which they left, so the search goes round.
std::int64_t FabricEngine::take_slot(std::uint32_t sender) {
  std::lock_guard lock(sending_);
  const std::uint32_t count = arena_.sizes().slots;
  // One sender may have half of them, so that a destination that does not read holds up nobody else.
  const std::uint32_t looks = on_their_way_[sender] >= count / 2 ? 2 * count : count;
  for (std::uint32_t i = 0; i < looks; ++i) {
    next_slot_ = next_slot_ + 1 < count ? next_slot_ + 1 : 0;
    std::uint32_t& owner = owners_[next_slot_];
    Slot& slot = arena_.slot(self_ * count + next_slot_);
    if (slot.state.load(std::memory_order_acquire) != SlotState::free) continue;  // pairs with whoever released it
    if (owner != kNobody) --on_their_way_[owner];
    owner = kNobody;
    if (on_their_way_[sender] >= count / 2) continue;
    owner = sender;
    ++on_their_way_[sender];
    slot.state.store(SlotState::used, std::memory_order_relaxed);
    return self_ * count + next_slot_;
  }
  return -1;
}

void FabricEngine::submit(std::uint32_t slot) {
  {
    std::lock_guard lock(sending_);
    const std::uint32_t count = arena_.sizes().slots;
    arena_.sending_queue(self_)[sent_ & (count - 1)].store(queue_entry(sent_, count, slot),
                                                           std::memory_order_release);  // pairs with take_sending_queue
    ++sent_;
  }
  if (clock_ == nullptr) return notify();
  arena_.header().pending[self_ / 64].fetch_or(std::uint64_t{1} << self_ % 64,
                                               std::memory_order_seq_cst);  // see take_in()
}

/// There is something for whoever holds the engine to look at.
void FabricEngine::notify() noexcept {
  ArenaHeader& h = arena_.header();
  // A full barrier: either whoever has the engine sees this when it lets go, or we see that it has let go.
  h.pending[self_ / 64].fetch_or(std::uint64_t{1} << self_ % 64, std::memory_order_seq_cst);
  if (process_) return h.engine_bell.ring();
  const std::uint32_t poller = h.poller.load(std::memory_order_seq_cst);
  if (poller == 0 || poller == self_ + 1) step();
}

// ---- who does the work ----------------------------------------------------------------------------------------------

bool FabricEngine::any_pending() const noexcept {
  const ArenaHeader& h = arena_.header();
  const std::uint32_t words = (arena_.sizes().endpoints + 63) / 64;
  for (std::uint32_t w = 0; w < words; ++w)
    if (h.pending[w].load(std::memory_order_seq_cst) != 0) return true;
  return false;
}

bool FabricEngine::has_work() const noexcept {
  return any_pending() || arena_.header().moving.load(std::memory_order_acquire) != 0 || is_due();
}

// Without pacing no clock is read: nothing is ever noted.
bool FabricEngine::is_due() const noexcept {
  const std::uint64_t due = arena_.header().due.load(std::memory_order_relaxed);
  return due != 0 && monotonic_now() >= due;
}

std::chrono::nanoseconds FabricEngine::next_deadline() const noexcept {
  const std::uint64_t due = arena_.header().due.load(std::memory_order_acquire);  // pairs with note_due()
  if (due == 0 || (process_ && self_ != kEngineProcess)) return std::chrono::nanoseconds::max();
  if (self_ != kEngineProcess && arena_.endpoint(self_).coming.load(std::memory_order_relaxed) == 0)
    return std::chrono::nanoseconds::max();
  const std::uint64_t wake = due - std::min(due, kWakeEarly), now = monotonic_now();
  return std::chrono::nanoseconds(wake > now ? wake - now : 0);
}

void FabricEngine::progress() noexcept {
  if ((process_ && self_ != kEngineProcess) || clock_ != nullptr) return;
  ArenaHeader& h = arena_.header();
  std::uint32_t poller = h.poller.load(std::memory_order_relaxed);
  const bool mine = poller == self_ + 1;
  if (!has_work()) {
    if (patience_.load(std::memory_order_relaxed) != 0) patience_.store(0, std::memory_order_relaxed);
    if (poller == 0 && own_core_) h.poller.compare_exchange_strong(poller, self_ + 1, std::memory_order_relaxed);
    return;
  }
  if (mine || poller == 0) {
    step();
  } else if (patience_.fetch_add(1, std::memory_order_relaxed) >= kPatience) {
    patience_.store(0, std::memory_order_relaxed);
    if (own_core_) h.poller.store(self_ + 1, std::memory_order_relaxed);
    step();
  }
}

void FabricEngine::retire() noexcept {
  std::uint32_t mine = self_ + 1;
  // A full barrier: a sender that still saw us has made its frame visible to the look that follows.
  arena_.header().poller.compare_exchange_strong(mine, 0, std::memory_order_seq_cst);
}

bool FabricEngine::step() noexcept {
  if ((process_ && self_ != kEngineProcess) || clock_ != nullptr) return false;
  ArenaHeader& h = arena_.header();
  do {
    std::uint32_t nobody = 0;
    // Spares the compare-and-swap. One order with what notify() has noted: either this finds the engine free, or its
    // holder finds what is pending.
    if (const std::uint32_t holder = h.holder.load(std::memory_order_seq_cst); holder != 0) {
      if (holder > kObservers) replace_observer(holder);
      return false;
    }
    if (!h.holder.compare_exchange_strong(nobody, self_ + 1, std::memory_order_acquire))  // pairs with the exchange
      return false;
    const bool done = work();
    h.holder.exchange(0, std::memory_order_seq_cst);
    if (!done) return yield_engine(), true;
  } while (any_pending());
  return true;
}

// The others send faster than the network is moved, and this process has its own work: somebody else's turn, who may
// be asleep because we were at it.
void FabricEngine::yield_engine() noexcept {
  retire();
  wake_all(arena_);
}

void wake_all(FabricArena& arena) noexcept {
  if (arena.header().engine_pid.load(std::memory_order_relaxed) != 0) return arena.header().engine_bell.ring();
  for (std::uint32_t e = 0; e < arena.sizes().endpoints; ++e)
    for (std::uint32_t port = 0; port < kPorts; ++port)
      if (arena.endpoint(e).generation[port].load(std::memory_order_acquire) % 2 == 1) arena.box(e, port).bell.ring();
}

// Who only reads has changed nothing: when it dies, the engine is free. The swap hands on what the holder before it has
// released.
void FabricEngine::replace_observer(std::uint32_t holder) noexcept {
  if (!is_alive(holder - 1)) arena_.header().holder.compare_exchange_strong(holder, 0, std::memory_order_acq_rel);
}

bool FabricEngine::acquire() {
  if (clock_ != nullptr) return clock_->lock(), true;
  Waiter waiter(wait_);
  std::uint32_t nobody = 0;
  while (!arena_.header().holder.compare_exchange_strong(nobody, self_ + 1, std::memory_order_acquire)) {
    nobody = 0;
    if (!waiter.step()) continue;
    if (!why_broken().empty()) return false;
    yield_now();  // no sleep: whoever holds the network rings no bell
  }
  return true;
}

void FabricEngine::release() {
  if (clock_ != nullptr) return clock_->unlock();
  arena_.header().holder.exchange(0, std::memory_order_seq_cst);
  if (any_pending()) step();
}

bool FabricEngine::has_on_the_way(std::uint32_t from) {
  if (!acquire()) return false;
  const std::uint32_t count = arena_.sizes().slots;
  const Endpoint& endpoint = arena_.endpoint(from);
  const std::uint32_t entry =
      arena_.sending_queue(from)[endpoint.taken & (count - 1)].load(std::memory_order_acquire);  // pairs with submit
  // In virtual time what is still in its queue lies in our future: what was sent by now has been taken.
  bool found = clock_ == nullptr && entry == queue_entry(endpoint.taken, count, entry & kSlotMask);
  // Its process may have ended before it said so. For our own look, in release().
  if (found) arena_.header().pending[from / 64].fetch_or(std::uint64_t{1} << from % 64, std::memory_order_seq_cst);
  for (std::uint32_t s = from * count; !found && s < (from + 1) * count; ++s)
    found = arena_.slot_progress(s).pieces != 0 &&
            (arena_.slot_progress(s).to == self_ || arena_.slot_progress(s).to == kMany);
  release();
  return found;
}

void FabricEngine::quiesce() {
  if (acquire()) release();
}

std::string FabricEngine::statistics() {
  if (!acquire()) return "";
  const ArenaHeader& h = arena_.header();
  std::string text = "ulfm: stats " + title_of(arena_) + ": frames refused " + std::to_string(h.refused.load()) +
                     " lost " + std::to_string(h.lost.load()) +
                     (recovers_ ? " recoveries " + std::to_string(h.recoveries.load()) : "") + "\n" +
                     model_->statistics();
  release();
  return text;
}

std::string FabricEngine::why_broken() {
  ArenaHeader& h = arena_.header();
  // Nothing is read behind these loads: acquire keeps the second one behind the first and the look at the process.
  const std::uint32_t holder = h.holder.load(std::memory_order_acquire);
  const bool kept = is_kept();
  const bool died =
      holder != 0 && holder != self_ + 1 && !runs(holder - 1) && h.holder.load(std::memory_order_acquire) == holder;
  if (died && holder > kObservers) replace_observer(holder);
  else if (died && !(kept && holder == kEngineProcess + 1) && !take_over(holder))
    h.broken.store(holder, std::memory_order_relaxed);
  if (process_ && self_ != kEngineProcess && !kept && !is_alive(kEngineProcess))
    h.broken.store(kEngineProcess + 1, std::memory_order_relaxed);
  const std::uint32_t broken = h.broken.load(std::memory_order_relaxed);
  if (broken == 0) return "";
  const std::int32_t pid = broken - 1 < arena_.sizes().endpoints ? arena_.endpoint(broken - 1).pid
                                                                 : h.engine_pid.load(std::memory_order_relaxed);
  return "process " + std::to_string(pid) + " died while it moved the " + title_of(arena_) +
         "; what was on its way is lost";
}

// ---- the work, for whoever holds the engine -------------------------------------------------------------------------

// True when nothing is left to do.
bool FabricEngine::work() noexcept {
  ArenaHeader& h = arena_.header();
  std::array<Ending, 64> endings;
  if (paced_ || model_->due() != kNothingDue) catch_up();
  for (int round = 0; round < kRounds; ++round) {
    take_sending_queues();
    const std::size_t ended = model_->run(kBudget, endings);
    for (std::size_t i = 0; i < ended; ++i) end(endings[i]);
    if (ended == 0 && model_->idle() && !any_pending()) {
      if (paced_) note_due();
      if (h.moving.load(std::memory_order_relaxed) != 0) h.moving.store(0, std::memory_order_relaxed);
      return true;
    }
  }
  h.moving.store(1, std::memory_order_release);  // pairs with has_work()
  return false;
}

void FabricEngine::catch_up() noexcept {
  ArenaHeader& h = arena_.header();
  const std::uint64_t now = monotonic_now() - h.began;
  if (const std::uint64_t due = paced_ ? model_->due() : kNothingDue; due < now && now - due > kLate) {
    ++h.late;
    h.most_late = std::max(h.most_late, now - due);
  }
  model_->advance(now);
}

std::string FabricEngine::how_late() const {
  const ArenaHeader& h = arena_.header();
  if (!paced_ || h.late == 0) return "";
  return "fell behind its pace " + std::to_string(h.late) + " times, by " + std::to_string(h.most_late / 1000) +
         " us at most: frames came that much later than the machine's; --time virtual does not depend on this host";
}

// For those who wait: when somebody must look again.
void FabricEngine::note_due() noexcept {
  ArenaHeader& h = arena_.header();
  const std::uint64_t due = model_->due();
  h.due.store(due == kNothingDue ? 0 : h.began + due, std::memory_order_release);  // pairs with next_deadline()
}

// A frame has begun its way over a paced model. Its receiver may be asleep and not know that it must look again; from
// here to note_due() it finds something to do.
void FabricEngine::announce(const Destination& to) noexcept {
  arena_.header().due.store(1, std::memory_order_release);  // pairs with next_deadline()
  if (arena_.endpoint(to.endpoint).generation[to.port].load(std::memory_order_acquire) % 2 == 1)
    arena_.box(to.endpoint, to.port).bell.ring();
}

void FabricEngine::take_sending_queues() noexcept {
  ArenaHeader& h = arena_.header();
  const std::uint32_t words = (arena_.sizes().endpoints + 63) / 64;
  for (std::uint32_t w = 0; w < words; ++w) {
    if (h.pending[w].load(std::memory_order_relaxed) == 0) continue;  // a bit missed here any_pending() sees
    std::uint64_t bits = h.pending[w].exchange(0, std::memory_order_seq_cst);
    for (; bits != 0; bits &= bits - 1) {
      const std::uint32_t endpoint = w * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
      if (endpoint >= arena_.sizes().endpoints) continue;
      if (pools_) model_->woken(endpoint);
      take_sending_queue(endpoint);
    }
  }
}

void FabricEngine::take_sending_queue(std::uint32_t i) noexcept {
  Endpoint& endpoint = arena_.endpoint(i);
  const std::uint32_t count = arena_.sizes().slots;
  const auto* queue = arena_.sending_queue(i);
  for (;;) {
    const std::uint32_t entry =
        queue[endpoint.taken & (count - 1)].load(std::memory_order_acquire);  // pairs with submit
    const std::uint32_t slot = entry & kSlotMask;
    if (entry != queue_entry(endpoint.taken, count, slot)) return;
    if (recovers_) note_taking(i, slot);
    ++endpoint.taken;
    // A process can send its own slots only.
    if (slot / count == i && !send(slot)) {
      --endpoint.taken;
      arena_.header().pending[i / 64].fetch_or(std::uint64_t{1} << i % 64, std::memory_order_seq_cst);
      return;
    }
    if (recovers_) note_nothing();
  }
}

// From the sending queue into the network: the card divides what is longer than a frame. False when it has to wait.
bool FabricEngine::send(std::uint32_t index) noexcept {
  const ArenaSizes& sizes = arena_.sizes();
  Slot& slot = arena_.slot(index);
  if (slot.receivers != 0) return send_to_many(index);
  const Destination destination = destination_of(slot);
  const std::uint32_t to = destination.endpoint, bytes = slot.header + slot.length;
  if (to >= sizes.endpoints || destination.port >= kPorts || bytes > sizes.slot_bytes) {
    arena_.header().refused.fetch_add(1, std::memory_order_relaxed);
    return give_back(index), true;
  }
  const std::uint32_t here = arena_.endpoint(index / sizes.slots).node, there = arena_.endpoint(to).node;
  if (here == there) return finish(index, true), true;  // the card of a node gives its own processes what is theirs
  if (!model_->reaches(here, there)) return finish(index, false), true;
  SlotProgress& progress = arena_.slot_progress(index);
  progress.lost = 0;
  progress.pieces = static_cast<std::uint16_t>(bytes == 0 ? 1 : (bytes + sizes.frame_bytes - 1) / sizes.frame_bytes);
  progress.to = static_cast<std::uint16_t>(to);
  if (paced_) {
    count_coming(to, 1);
    catch_up();  // it begins now, and not when the model was last looked at
  }
  Parties parties{index / sizes.slots, to, destination.port, (slot.goes_on & kGoesOn) != 0};
  std::uint32_t left = bytes;
  for (std::uint32_t piece = 0; piece < progress.pieces; ++piece) {
    const std::uint32_t length = std::min(left, sizes.frame_bytes);
    if (!model_->inject_between(parties, index * sizes.pieces() + piece, here, there, length))
      end({index * sizes.pieces() + piece, here});
    parties.goes_on = true;
    left -= length;
  }
  if (paced_) announce(destination);
  return true;
}

void FabricEngine::end(const Ending& ending) noexcept {
  if (recovers_) return end_whole(ending);
  const std::uint32_t index = ending.frame / arena_.sizes().pieces();
  if (index >= arena_.sizes().all_slots()) return;
  SlotProgress& progress = arena_.slot_progress(index);
  if (progress.to == kMany) return end_of_many(index, ending);
  if (!ending.delivered) ++progress.lost;
  if (--progress.pieces != 0) return;
  if (paced_) count_coming(progress.to, -1);
  finish(index, progress.lost == 0);
}

void FabricEngine::count_coming(std::uint32_t to, std::int32_t more) noexcept {
  if (to >= arena_.sizes().endpoints) return;
  std::atomic<std::uint32_t>& coming = arena_.endpoint(to).coming;
  coming.store(coming.load(std::memory_order_relaxed) + static_cast<std::uint32_t>(more), std::memory_order_relaxed);
}

// A whole frame of the transport is there, or will never be: into its port's box, after the card's own checks.
void FabricEngine::finish(std::uint32_t index, bool delivered) noexcept {
  ArenaHeader& h = arena_.header();
  const Destination to = destination_of(arena_.slot(index));
  if (!delivered || !is_open(to)) {
    (delivered ? h.refused : h.lost).fetch_add(1, std::memory_order_relaxed);
    if (recovers_) note_nothing();
    return give_back(index);
  }
  put_into_box(index, to.endpoint, to.port);
}

bool FabricEngine::finish_timed(std::uint32_t index, bool delivered) noexcept {
  ArenaHeader& h = arena_.header();
  const Destination to = destination_of(arena_.slot(index));
  if (!delivered || !is_open(to))
    return (delivered ? h.refused : h.lost).fetch_add(1, std::memory_order_relaxed), false;
  put_into_box(index, to.endpoint, to.port);
  return true;
}

// Read once, for what was checked must be what is used: the slot is its process's, which can write into it at any time.
FabricEngine::Destination FabricEngine::destination_of(const Slot& slot) noexcept {
  const auto once = [](const auto& value) {
    return *const_cast<const volatile std::decay_t<decltype(value)>*>(&value);
  };
  return {once(slot.to), once(slot.port), once(slot.port_generation)};
}

bool FabricEngine::is_open(const Destination& to) const noexcept {
  return to.endpoint < arena_.sizes().endpoints && to.port < kPorts && to.generation % 2 == 1 &&
         arena_.endpoint(to.endpoint).generation[to.port].load(std::memory_order_acquire) == to.generation;
}

void FabricEngine::put_into_box(std::uint32_t index, std::uint32_t to, std::uint32_t port) noexcept {
  PortBox& box = arena_.box(to, port);
  const std::uint32_t count = arena_.sizes().box_entries;
  if (recovers_) note_delivering(index, to, port);
  box.entries[box.delivered & (count - 1)].store(queue_entry(box.delivered, count, index),
                                                 std::memory_order_release);  // pairs with the port's inlet
  ++box.delivered;
  box.bell.ring();
}

void FabricEngine::give_back(std::uint32_t slot) noexcept {
  arena_.slot(slot).state.store(SlotState::free, std::memory_order_release);  // pairs with the sender's search
}

}  // namespace ulfm::fabric
