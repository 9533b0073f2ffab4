// Sizes and settings of a point design, and what it counts.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "fabric/pointdesign/geometry.hpp"

namespace ulfm::fabric::pointdesign {

/// Which of several queues sends first (thesis, section 4.2). Whatever it says, a head that has waited `timeout` cycles
/// comes before it, the oldest first.
enum class Policy : std::uint32_t {
  farthest,  ///< whose head has the farthest to travel
  longest,   ///< that has the most messages: the design's
  history,   ///< that has sent the most so far
  through    ///< of messages that have travelled a line already; among others the longest
};
enum class Switching : std::uint32_t { store, wormhole };

inline constexpr std::uint32_t kMostFlits = 16;
/// A message that was turned away this often is stored where it arrives, whatever is full there.
inline constexpr std::uint32_t kMostRefusals = 8;
inline constexpr std::uint32_t kMessageBytes = 8;  ///< data in a message; more is fetched from the sender's memory

struct Parameters {
  std::uint32_t dimensions = 2, radix = 40, processors = 8;
  std::uint32_t frames = 0;  ///< messages of programs on their way at one time, at most
  std::uint32_t copies = 0;  ///< of them in the network at one time, at most
  Switching switching = Switching::store;
  Policy policy = Policy::longest;
  std::uint32_t flits = 1;     ///< cycles a message takes on a line; the first flit has the header
  std::uint32_t buffer = 2;    ///< wormhole: messages that wait at the end of a line for the next one
  std::uint32_t timeout = 64;  ///< cycles
  std::uint32_t queues = 0;    ///< of a processor, each with mini queues for several cards; 0: one to each card
  std::uint32_t speed = 0;     ///< messages such a queue sends in a cycle; 0: as many as it has mini queues
  std::uint32_t dma = 1;       ///< words that leave a processor's memory in a cycle
  std::uint32_t cycle = 10;    ///< nanoseconds

  CardGeometry geometry() const { return {dimensions, radix, processors}; }
  /// Mini queues in a queue.
  std::uint32_t minis() const noexcept {
    const std::uint32_t all = dimensions * radix;
    return queues == 0 ? 1 : (all + queues - 1) / queues;
  }
  /// Cycles that fetching takes.
  std::uint64_t fetch_cycles(std::uint32_t bytes) const noexcept {
    const std::uint64_t words = (std::uint64_t{bytes} + 7) / 8;
    return (words + dma - 1) / dma;
  }
};

/// Errc::invalid, with the number and its bounds.
Result<void> check(const Parameters& parameters);

/// The queue of a processor, or of through traffic, in front of a line.
struct QueueCounters {
  std::uint64_t sent = 0;
  std::uint64_t waited = 0;    ///< cycles that messages could have left and did not, all together
  std::uint32_t most = 0;      ///< messages in it
  std::uint32_t timeouts = 0;  ///< messages that left because of their age
  friend bool operator==(const QueueCounters&, const QueueCounters&) = default;
};
struct LineCounters {
  std::uint64_t messages = 0;
  std::uint64_t refused = 0;  ///< wormhole: turned away at its end
  std::uint64_t forced = 0;   ///< wormhole: stored there although the buffer was full, after kMostRefusals
  friend bool operator==(const LineCounters&, const LineCounters&) = default;
};
struct CardCounters {
  std::uint64_t arrived = 0;    ///< messages for its processors
  std::uint64_t delivered = 0;  ///< to its processors, a multicast once for each
  std::uint64_t through = 0;    ///< passed on to another card
  std::uint64_t rerouted = 0;   ///< because a line had died
  std::uint64_t lost = 0;
  std::uint64_t fetches = 0, fetched_bytes = 0;  ///< from senders' memories
  friend bool operator==(const CardCounters&, const CardCounters&) = default;
};
/// A port of a coprocessor, with the decoders behind it.
struct CoprocessorPortCounters {
  std::uint64_t unicasts = 0, multicasts = 0, broadcasts = 0;  ///< messages that left by it
  std::uint64_t upper = 0, lower = 0;                          ///< decoders of either level that handed one on
  std::uint64_t copies = 0;                                    ///< put into queues
  friend bool operator==(const CoprocessorPortCounters&, const CoprocessorPortCounters&) = default;
};
/// The network as a whole.
struct Totals {
  std::uint64_t entered = 0, left = 0, lost = 0;  ///< messages of programs
  std::uint64_t commands = 0;                     ///< PCTF messages, those with destinations only included
  std::uint64_t messages = 0;                     ///< CIMF messages
  friend bool operator==(const Totals&, const Totals&) = default;
};

}  // namespace ulfm::fabric::pointdesign
