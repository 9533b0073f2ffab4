// How a producer wakes a consumer that sleeps, at no cost while nobody sleeps.
//
// The producer publishes and then only *reads* `parked`, whose cache line stays shared while nobody sleeps. It has no
// fence between the two, so they may be reordered. The consumer issues a barrier for all processes instead (membarrier,
// MEMBARRIER_CMD_GLOBAL_EXPEDITED), between setting `parked` and its last check. Without such a barrier in the kernel,
// every sleep ends after a millisecond. Even with it, the kernel passes by a core on which a thread of the producer's
// process has ended, say, until another process has run there; so a long sleep looks once more after a millisecond, its
// announcement still standing (decision 0074).
//
// That suits processes with a core each, which rarely sleep. Processes that share cores sleep in every wait, and the
// barrier interrupts every core; there the producers fence (decision 0014).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/wait_word.hpp"

namespace ulfm {

/// The other direction: a sender that waits for room sleeps here; the receiver that makes room rings. Lies with the
/// ring that is full, in memory of its consumer, so it needs nothing but the mapping that the sender has; several may
/// sleep. Sleeps are rare (a consumer that reads is awaited awake), so the sleeper always issues the barrier.
struct RoomBell {
  std::atomic<std::uint32_t> awaited{0};  ///< wake()'s release pairs with the acquire in Doorbell::sleep

  /// Consumer: wake the sender that waits for room. Call after the releasing store.
  [[gnu::always_inline]] void ring() noexcept {
    std::atomic_signal_fence(std::memory_order_seq_cst);  // as in Doorbell::ring
    if (awaited.load(std::memory_order_relaxed) != 0) [[unlikely]]
      wake();
  }
  /// Sender: announce the sleep. Look once more for room after this, then Doorbell::sleep(limit, the result). It need
  /// not be cancelled: one ring in vain is all that comes of it.
  WaitWord arm() noexcept;
  void wake() noexcept;
};

/// Lives in a shared segment; any process that maps it may ring. There are two that it wakes: the owner, which sleeps
/// in a wait, and a watcher, another thread of its process that wants to know of arrivals while the owner is busy.
struct alignas(64) Doorbell {
  // Set by announce() and read by ring(), in an order that the barrier or the fences keep. wake_one()'s release pairs
  // with the acquire in sleep_on(): a woken thread finds what it was woken for.
  std::atomic<std::uint32_t> parked{0};
  std::atomic<std::uint32_t> watched{0};
  std::atomic<std::uint32_t> fenced{0};  ///< producers fence; set once, see expect_many_sleeps()

  /// Producer: wake the sleeper. Call after the publishing store. The fence pairs with that of announce().
  [[gnu::always_inline]] void ring() noexcept {
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the compiler must not do what the sleeper's barrier ends
    if (fenced.load(std::memory_order_relaxed) != 0) std::atomic_thread_fence(std::memory_order_seq_cst);
    if (is_awaited()) wake();
  }
  /// Somebody sleeps. Of use behind the publishing store and what orders the two, as in ring().
  bool is_awaited() const noexcept {
    return (parked.load(std::memory_order_relaxed) | watched.load(std::memory_order_relaxed)) != 0;
  }

  /// Owner: sleeps will be many. From now on producers pay for them, a fence with each ring, and no barrier is needed.
  void expect_many_sleeps() noexcept;

  /// Consumer: announce the sleep. Look once more at every source after this, then sleep() or cancel().
  void arm() noexcept;
  /// Consumer: stay awake after all. A producer that still sees the announcement wakes in vain.
  void cancel() noexcept { parked.store(0, std::memory_order_relaxed); }
  /// Consumer: sleep until rung, a signal, or `limit` has passed. True when rung.
  bool sleep(std::chrono::nanoseconds limit) noexcept;
  /// The same, and `other`, if any, ends it too: true when either did, or when `look` says so (sleep_on_any()).
  bool sleep(std::chrono::nanoseconds limit, WaitWord other, const Look& look);
  /// For the sleep of another bell, when this one is armed too. Good as long as the bell.
  WaitWord word() noexcept { return {&parked, fenced.load(std::memory_order_relaxed) != 0}; }

  /// Watcher: what is published after this ends watch_sleep().
  void watch() noexcept;
  /// Watcher: sleep until rung or `limit` has passed. True when rung.
  bool watch_sleep(std::chrono::nanoseconds limit) noexcept;
  /// Any thread of the process: ends watch_sleep().
  void end_watch() noexcept;

  void wake() noexcept;

 private:
  void announce(std::atomic<std::uint32_t>& sleeper) noexcept;
  bool sleep_on(std::atomic<std::uint32_t>& sleeper, std::chrono::nanoseconds limit) noexcept;
};
static_assert(sizeof(Doorbell) == 64);

}  // namespace ulfm
