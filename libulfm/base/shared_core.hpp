// What the yields of a process tell of its core: whether others that wait run there too.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace ulfm {

/// Some switches to others within a short time mean that they wait on this core, too, although there may be a core for
/// each process. What a wait is for then comes during a yield or not at all. Time counts, and not the yields without a
/// switch: those to a process of another session are in vain, one after the other, until the system finds that this
/// session has had its part. A yield that takes long may have been a switch; only the system's count says so, because
/// interrupts make yields long, too, 1.4 to 3.2 of them a millisecond on virtual machines (decision 0061). Any thread;
/// of two that note at once one may be lost.
class SharedCore {
 public:
  using Clock = std::chrono::steady_clock;

  /// A yield took as long as one that runs another process, and not as long as one that runs a process that computes.
  static bool like_switch(Clock::duration yield) noexcept { return yield > kSwitched && yield < kComputed; }

  /// A yield is over, and others have had the core so many times since the last one that was noted.
  void note(int switches, Clock::time_point now) noexcept {
    const std::int64_t at = std::chrono::nanoseconds(now.time_since_epoch()).count();
    const std::int64_t noted = noted_.load(std::memory_order_relaxed);
    const std::int64_t forgotten = (at - noted) / kForgotten.count();
    const int known = switches_.load(std::memory_order_relaxed);
    if (switches == 0 && (known == 0 || forgotten == 0)) return;
    const auto left = static_cast<int>(std::max<std::int64_t>(known - forgotten, 0));
    switches_.store(std::min(left + switches, kRemembered), std::memory_order_relaxed);
    noted_.store(known == 0 ? at : noted + forgotten * kForgotten.count(), std::memory_order_relaxed);
  }

  /// As of the last yield.
  bool found() const noexcept { return switches_.load(std::memory_order_relaxed) >= kEnough; }

 private:
  static constexpr std::chrono::microseconds kSwitched{3};        // a yield that runs another process takes longer
  static constexpr std::chrono::microseconds kComputed{500};      // and so long only one that computes
  static constexpr std::chrono::nanoseconds kForgotten{400'000};  // one switch in so long
  static constexpr int kEnough = 6, kRemembered = 24;

  std::atomic<int> switches_{0};
  std::atomic<std::int64_t> noted_{0};  // when that was true; nanoseconds of the clock
};

}  // namespace ulfm
