// Waiting by looking: how the two sides of a measurement wait where no port waits for them.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/wait.hpp"

namespace perf {

/// Two processes measure; with a core for each a wait looks long before it yields. bind_side() asks first, while the
/// cores can still be seen: a bound process, and the child of one, sees one.
inline const ulfm::WaitPolicy& look_policy() {
  static const ulfm::WaitPolicy policy = [] {
    auto p = ulfm::WaitPolicy::for_processes(2);
    if (p.has_own_core()) p.spins = 100000;
    return p;
  }();
  return policy;
}

/// Finds out that a process which computes has the core meanwhile: sixty-four looks then take a time slice.
class LookTimes {
 public:
  /// Behind each look in vain: whether further ones would be in vain, too, and keep the other side from its turn.
  bool core_is_lost() noexcept {
    if (++looks_ % kLooks != 0) return false;
    const auto now = Clock::now();
    if (looks_ != kLooks && now - last_ > kSlice) ulfm::note_lost_core(now);
    last_ = now;
    return ulfm::core_is_lost(now);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint32_t kLooks = 64;
  static constexpr std::chrono::milliseconds kSlice{1};

  Clock::time_point last_{};
  std::uint32_t looks_ = 0;
};

/// Calls `look` until it is true; false when it was not for so long that sleeping is due.
template <typename Look>
bool look_a_while(Look&& look) {
  if (look()) return true;
  ulfm::Waiter waiter(look_policy());
  LookTimes times;
  while (!look())
    if (waiter.step() || times.core_is_lost()) return false;
  return true;
}

/// Calls `look` until it is true. A long wait calls `patient` now and then, which may throw.
template <typename Look, typename Patient>
void look_until(Look&& look, Patient&& patient) {
  while (!look_a_while(look)) {
    patient();
    ulfm::yield_now();
  }
}

}  // namespace perf
