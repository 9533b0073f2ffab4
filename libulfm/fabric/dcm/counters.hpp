// What the models of Direct-Connect routers count. Plain values, up to the cycle before now().
#pragma once

#include <cstdint>

namespace ulfm::fabric::dcm {

/// A way out of a router: a channel to another one, the gateway, or the node's sink.
struct CircuitCounters {
  std::uint64_t messages = 0;        ///< for which it was granted
  std::uint64_t held_cycles = 0;     ///< from grant to release
  std::uint64_t blocked = 0;         ///< requests that were not granted in the cycle they came
  std::uint64_t blocked_cycles = 0;  ///< that these waited, all together
  std::uint64_t probes = 0;          ///< routing probes let through: from the source; to a sink the restored ones
  std::uint64_t short_probes = 0;    ///< short routing probes let through
  std::uint64_t words = 0;           ///< data and checksum words sent; by a sink, words its FIFO was given
  std::uint64_t throttles = 0;       ///< times a message was interrupted; by a sink, times it was not ready any more
  std::uint64_t lost = 0;            ///< messages that were lost while they held it
  friend bool operator==(const CircuitCounters&, const CircuitCounters&) = default;
};

/// Words, network-wide: what sources have sent is still there or went one of the ways out.
struct WordBalance {
  std::uint64_t entered = 0;   ///< probes, data and checksums sent by sources
  std::uint64_t left = 0;      ///< taken by nodes and devices
  std::uint64_t stripped = 0;  ///< checksums, at the destination
  std::uint64_t lost = 0;      ///< with a link, a router or a node
  std::uint64_t present = 0;   ///< under way or in FIFOs now
  bool holds() const noexcept { return entered == left + stripped + lost + present; }
  friend bool operator==(const WordBalance&, const WordBalance&) = default;
};

}  // namespace ulfm::fabric::dcm
