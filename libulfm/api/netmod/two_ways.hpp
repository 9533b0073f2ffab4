// Which of two ways long messages of a host should come: by frames, or copied by the kernel. Decision 0027.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "api/netmod/size_class.hpp"

namespace ulfm::netmod {

/// Learned at the receiver, which sees the whole of both ways: from the clear-to-send to the last byte, whoever copies.
/// Times add up while at least one long message is on its way, so that a stream counts as its throughput. Each class of
/// sizes, powers of two, tries both ways in turn, a block of messages each, keeps to the faster one, and tries again
/// after ever more messages. A class that is new begins as its nearest smaller neighbour goes. A way changes only when
/// nothing is on its way, or after many messages. Not for two threads at once.
class TwoWays {
 public:
  enum Way : std::uint8_t { frames, kernel };
  using Time = std::chrono::steady_clock::time_point;

  static constexpr int kBlock = 4;       ///< messages of a trial
  static constexpr int kFirstRest = 64;  ///< messages between two series of trials; doubles each time
  static constexpr int kMostRest = 1 << 14;
  static constexpr int kMostBusy = 256;  ///< messages after which a block ends although others are on their way

  /// A message of that many bytes is let in now: how it should come.
  Way begins(std::size_t bytes, Time now) noexcept;
  /// One of that many bytes is there.
  void ends(std::size_t bytes, Time now) noexcept;

 private:
  struct Class {
    Way way = frames;
    bool known = false;
    int trials = 0;  ///< left, this block included; 0: at rest
    int rest = kFirstRest;
    int messages = 0;  ///< of this block
    double time_ns = 0, bytes = 0;
    std::array<double, 2> cost{};  ///< ns for a byte, the least of its blocks in this series; 0: none yet
  };

  void start(std::size_t index) noexcept;
  void end_busy(Time now) noexcept;
  void end_block(Class& c) noexcept;
  void decide(Class& c) noexcept;

  std::array<Class, kSizeClasses> classes_;
  std::uint64_t touched_ = 0;  ///< classes with messages since `since_`, a bit each
  int on_their_way_ = 0;
  double bytes_ = 0;  ///< that have come since then
  Time since_{};
};

}  // namespace ulfm::netmod
