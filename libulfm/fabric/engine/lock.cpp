// Which process moves the model: the poller while it has work, otherwise any process that finds the engine free; one at
// a time. The lock is `holder` in the arena's header. A holder that died is replaced. Noting work (notify) pairs with
// releasing the lock, so that no work is forgotten.
#include <fmt/core.h>

#include "base/wait.hpp"

#include "fabric/engine/engine.hpp"

namespace ulfm::fabric {
namespace {

// So many checks find work that the poller has not done; then another process takes over, because the poller computes
// or has no core.
constexpr std::uint32_t kPatience = 100;

}  // namespace

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

/// Reports to the holder of the engine that this process's sending queue has something.
void FabricEngine::notify() noexcept {
  ArenaHeader& h = arena_.header();
  // A full barrier: either the holder sees this bit when it releases the engine, or we see that it has released it.
  h.pending[self_ / 64].fetch_or(std::uint64_t{1} << self_ % 64, std::memory_order_seq_cst);
  if (process_) return h.engine_bell.ring();
  const std::uint32_t poller = h.poller.load(std::memory_order_seq_cst);
  if (poller == 0 || poller == self_ + 1) step();
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
    yield_now();  // no sleep: the holder rings no bell when it releases the engine
  }
  return true;
}

void FabricEngine::release() {
  if (clock_ != nullptr) return clock_->unlock();
  arena_.header().holder.exchange(0, std::memory_order_seq_cst);
  if (any_pending()) step();
}

void FabricEngine::quiesce() {
  if (acquire()) release();
}

std::string FabricEngine::why_broken() {
  ArenaHeader& h = arena_.header();
  if (has_back_pressure() && clock_ == nullptr) admit_for_the_dead();
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
  return fmt::format("process {} died while it moved the {}; what was on its way is lost", pid, arena_.title());
}

}  // namespace ulfm::fabric
