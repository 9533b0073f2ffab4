// What the yields of a process tell of its core: whether others that wait run there too.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace ulfm {

/// Some yields within a short time that ran another process for a short time mean that it shares the core, although
/// there may be a core for each process. What a wait is for then comes during a yield or not at all. Time counts, and
/// not the yields without a switch: those to a process of another session are in vain, one after the other, until the
/// system finds that this session has had its part. Time forgets more than there are yields that only an interrupt made
/// long, 1.4 a millisecond on a virtual machine: a process that yields all the time would go on to believe in them
/// (decision 0061). Any thread; of two that note at once one may be lost.
class SharedCore {
 public:
  using Clock = std::chrono::steady_clock;

  /// A yield that took so long and is over now.
  void note(Clock::duration yield, Clock::time_point now) noexcept {
    const std::int64_t at = std::chrono::nanoseconds(now.time_since_epoch()).count();
    const std::int64_t noted = noted_.load(std::memory_order_relaxed);
    const std::int64_t forgotten = (at - noted) / kForgotten.count();
    const bool switched = yield > kSwitched && yield < kComputed;
    const int known = switches_.load(std::memory_order_relaxed);
    if (!switched && (known == 0 || forgotten == 0)) return;
    const auto left = static_cast<int>(std::max<std::int64_t>(known - forgotten, 0));
    switches_.store(std::min(left + (switched ? 1 : 0), kRemembered), std::memory_order_relaxed);
    noted_.store(known == 0 ? at : noted + forgotten * kForgotten.count(), std::memory_order_relaxed);
  }

  /// As of the last yield.
  bool found() const noexcept { return switches_.load(std::memory_order_relaxed) >= kEnough; }

 private:
  static constexpr std::chrono::microseconds kSwitched{3};        // a yield that takes longer has run another process
  static constexpr std::chrono::microseconds kComputed{500};      // and so long only one that computes
  static constexpr std::chrono::nanoseconds kForgotten{400'000};  // one switch in so long
  static constexpr int kEnough = 6, kRemembered = 24;

  std::atomic<int> switches_{0};
  std::atomic<std::int64_t> noted_{0};  // when that was true; nanoseconds of the clock
};

}  // namespace ulfm
