// The one type that owns waiting: spin, pause, yield, park.
//
// Nothing else in the library calls sched_yield or usleep; futexes are the doorbell's and the virtual clock's. A
// Waiter lives as long as one wait; the loop looks for its event and calls step() while it is not there. Budgets come
// from what was measured at start and from how many processes share the cores: with a core for each a wait spins
// long, without it yields from the first turns on.
// A yield to a process that computes takes long: after such yields waits sleep for a while (decision 0011). A yield
// that switches to another process shows that the core is shared: waits then yield from their first turns on (decision
// 0016).
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace ulfm {

enum class Rung : std::uint8_t { spin, pause, yield, park };
inline constexpr std::array<const char*, 4> kRungNames{"spin", "pause", "yield", "park"};

/// How often each rung was taken, by this process.
struct WaitCounters {
  std::array<std::atomic<std::uint64_t>, 4> steps{};
  /// A load and a store: this is on the way of every message, and of two threads that count at once one may lose.
  void count(Rung rung, std::uint64_t n = 1) noexcept {
    auto& counter = steps[static_cast<std::size_t>(rung)];
    counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
};
extern constinit WaitCounters g_wait_counters;
inline WaitCounters& wait_counters() noexcept { return g_wait_counters; }

/// Budgets of the ladder.
struct WaitPolicy {
  std::uint32_t spins = 32;                       ///< turns with nothing but the look itself
  std::uint32_t pauses = 2000;                    ///< then turns with one pause instruction, so many at most
  std::chrono::nanoseconds pause_for{30'000};     ///< and for so long at most: then others may need the core after all
  std::chrono::nanoseconds yield_for{2'000'000};  ///< then yields, for so long
  std::chrono::nanoseconds park_limit{100'000'000};  ///< then sleeps, each at most so long
  std::chrono::nanoseconds slow_yield{2'000'000};    ///< a yield that takes longer did not go to a process that waits

  /// There is a core for each process: the next answer may be awaited look by look (see Inlet::spin).
  bool has_own_core() const noexcept { return spins >= 32; }

  /// The policy for `processes` on this host and the cores this process may use.
  static WaitPolicy for_processes(int processes) noexcept;
};

/// Cores this process and the others of its launcher (Hydra's proxy, or else the parent) may run on.
int usable_cores() noexcept;

class Waiter {
 public:
  /// `in_vain`: how long waits for the same have been in vain until now. After the time of the ladder this one sleeps
  /// soon.
  explicit Waiter(const WaitPolicy& policy, std::chrono::nanoseconds in_vain = {}) noexcept
      : policy_(&policy), spins_(spins_now(policy)), patience_out_(in_vain >= policy.pause_for + policy.yield_for) {}

  /// One turn without result. Spins, pauses or yields; returns true when the next thing to do is to park.
  bool step() noexcept {
    if (++turns_ <= spins_) return false;
    return slow_step();
  }
  /// Begin again from the first rung, after something came.
  void reset() noexcept {
    flush();
    turns_ = paused_ = 0;
    spins_ = spins_now(*policy_);
    yielding_since_ = {};
    cpu_contended_ = patience_out_ = false;
  }
  ~Waiter() { flush(); }

  /// Turns since the last reset.
  std::uint32_t turns() const noexcept { return turns_; }

 private:
  static std::uint32_t spins_now(const WaitPolicy& policy) noexcept;
  bool slow_step() noexcept;
  void flush() noexcept;

  const WaitPolicy* policy_;
  std::uint32_t spins_;  // the policy's, or fewer where the core turned out to be shared
  std::uint32_t turns_ = 0, paused_ = 0;
  std::chrono::steady_clock::time_point pausing_since_{}, yielding_since_{};
  bool patience_out_;           // as this wait began
  bool cpu_contended_ = false;  // on the cores of the job, as this wait began
};

/// One processor hint that this is a spin loop.
inline void cpu_pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Behind each look of a loop that does nothing else: the next look begins when this one has its answer. Otherwise a
/// processor has dozens of looks under way, drops them all when the line changes, and takes the core from a hardware
/// thread that shares it (decision 0007).
inline void after_look() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_lfence();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

/// The last yields of this process ran somebody else: what it waits for comes during a yield or not at all.
bool core_is_shared() noexcept;

/// Another process computes on this core: yields to it are slow, and waits sleep. So for a while after it was noticed.
bool core_is_lost(std::chrono::steady_clock::time_point now) noexcept;

/// The core was lost for a time slice while this process did not mean to give it away.
void note_lost_core(std::chrono::steady_clock::time_point now) noexcept;

/// Give the core to another process once; counted as a yield.
void yield_now() noexcept;

/// The same, and learns from the time that it took what other processes do on this core.
void yield_and_learn(const WaitPolicy& policy, std::chrono::steady_clock::time_point now) noexcept;

}  // namespace ulfm
