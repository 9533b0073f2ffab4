// Which of two ways a long one-sided transfer within a host should go: by messages, or copied by the kernel.
// Decision 0058.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>

#include "api/netmod/size_class.hpp"

namespace ulfm::netmod {

/// Learned at the origin, for each class of sizes, powers of two. The kernel's copies are measured, a few of them in a
/// series; the least counts. What messages take follows from how long the origin reads the data: both sides copy at the
/// same time, one piece behind the other, and a trip comes to that. At rest a class goes the faster way, and begins
/// another series after ever more transfers. Not for two threads at once.
class WindowWays {
 public:
  enum Way { messages, kernel };
  using Nanoseconds = std::chrono::nanoseconds;

  static constexpr int kCopies = 4;      ///< copies by the kernel that a series measures
  static constexpr int kFirstRest = 64;  ///< transfers between two series; doubles each time
  static constexpr int kMostRest = 1 << 14;
  static constexpr Nanoseconds kTrip{2500};  ///< of a message that nothing precedes, there and back
  static constexpr double kBehind = 1.25;    ///< of the time of reading: the reader's end is behind the writer's

  /// Whether a series begins with the next transfer of that many bytes, for which reading_took() is wanted before.
  [[nodiscard]] bool wants_reading(std::size_t bytes) const noexcept;
  /// How long it takes to read so many bytes at the origin.
  void reading_took(std::size_t bytes, Nanoseconds time) noexcept;
  /// How the next transfer of that many bytes is to go.
  Way next(std::size_t bytes) noexcept;
  /// A copy by the kernel of that many bytes took so long.
  void copy_took(std::size_t bytes, Nanoseconds time) noexcept;

 private:
  struct Class {
    int copies = kCopies;  ///< left to measure in this series; 0: at rest
    int left = 0;          ///< transfers until the next series
    int rest = kFirstRest;
    Way way = kernel;
    double read = 0, copy = 0;  ///< ns for a byte in this series, the least; 0: none yet
  };

  void decide(Class& c, std::size_t bytes) noexcept;

  std::array<Class, kSizeClasses> classes_;
};

}  // namespace ulfm::netmod
