// A clock that can be replaced, so that a test decides when time passes.
#pragma once

#include <chrono>

namespace ulfm {

/// Nanoseconds since some moment; never goes back. Any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::chrono::nanoseconds now() noexcept = 0;
  /// The kernel's monotonic clock.
  static Clock& steady() noexcept;
};

inline Clock& Clock::steady() noexcept {
  class Steady final : public Clock {
    std::chrono::nanoseconds now() noexcept override { return std::chrono::steady_clock::now().time_since_epoch(); }
  };
  static Steady clock;
  return clock;
}

}  // namespace ulfm
