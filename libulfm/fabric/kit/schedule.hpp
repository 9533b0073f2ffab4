// Scheduled changes of a model, in its arena: how many have happened, and all of them in the order of their times.
#pragma once

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "base/align.hpp"
#include "fabric/model.hpp"

namespace ulfm::fabric {

inline constexpr std::uint32_t kMostSteps = 256;

/// Errc::too_large when there are more than a model plans for.
inline Result<void> check_steps(std::size_t count) {
  if (count <= kMostSteps) return {};
  return fail(Errc::too_large, fmt::format("{} scheduled changes; at most {} can be planned", count, kMostSteps));
}

/// `Step` has a member `at`, in nanoseconds since the job began. A view, as one process has it. Others may write
/// anything into the arena: what is read stays within the steps that there were when the view was made.
template <typename Step>
class Schedule {
 public:
  static constexpr std::size_t bytes(std::size_t steps) noexcept {
    return up_to_line(sizeof(std::uint64_t) + steps * sizeof(Step));
  }
  /// Writes them to zeroed memory.
  static void write(std::byte* memory, const std::vector<Step>& steps) {
    std::copy(steps.begin(), steps.end(), reinterpret_cast<Step*>(memory + sizeof(std::uint64_t)));
  }
  Schedule(std::byte* memory, std::uint32_t steps) noexcept : memory_(memory), steps_(steps) {}

  /// Number of the first that has not happened wholly.
  std::uint32_t next() const noexcept { return std::min(happened().load(std::memory_order_relaxed), steps_); }
  std::uint64_t due() const noexcept { return next() < steps_ ? step(next()).at : kNothingDue; }
  /// Lets everything happen that is due by then. A step counts when it is over. If a process dies in it, the next one
  /// does it again, so a step must find nothing to do the second time.
  template <typename Happen>
  void advance(std::uint64_t nanoseconds, Happen happen) {
    while (due() <= nanoseconds) {
      const Step now = step(next());
      happen(now);
      happened().store(next() + 1, std::memory_order_relaxed);
    }
  }

 private:
  /// Relaxed: only the holder of the engine uses it, and acquiring the engine orders one holder after the other.
  std::atomic<std::uint32_t>& happened() const noexcept {
    return *reinterpret_cast<std::atomic<std::uint32_t>*>(memory_);
  }
  const Step& step(std::uint32_t i) const noexcept {
    return reinterpret_cast<const Step*>(memory_ + sizeof(std::uint64_t))[i];
  }
  std::byte* memory_;
  std::uint32_t steps_;
};

}  // namespace ulfm::fabric
