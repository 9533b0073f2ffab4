// What the model of a network counts while it moves units. Plain values, up to the cycle before now().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ulfm::fabric::xswitch {

/// A channel leaving a port of a switch or of a node.
struct ChannelCounters {
  std::uint64_t frames = 0;         ///< ID-EOFs sent, bad ones too
  std::uint64_t data_units = 0;     ///< data and check units sent
  std::uint64_t routing_units = 0;  ///< routing characters sent
  std::uint64_t stops = 0;          ///< ID-STOPs sent
  std::uint64_t gos = 0;            ///< ID-GOs sent
  std::uint64_t wait_cycles = 0;    ///< held by the other side's ID-STOP with a frame to send: in a Wait state
  std::uint64_t lost_frames = 0;    ///< ID-EOFs that vanished on this channel
  std::uint64_t lost_units = 0;     ///< units of frames that did, ID-EOFs too
  friend bool operator==(const ChannelCounters&, const ChannelCounters&) = default;
};

inline constexpr std::size_t kBuckets = 8;

/// The FIFO of an input port of a switch, or that of a node.
struct FifoCounters {
  std::uint64_t arbitration_cycles = 0;  ///< cycles in which a head waited for its output
  std::uint64_t bad_ends = 0;            ///< frames cut on the way in, ended by this port
  std::uint64_t lost_units = 0;          ///< thrown away here: without a head, or with their switch
  /// Cycles by occupancy at their end. [0]: empty; [i]: above (i - 1) / 7 of the FIFO and up to i / 7.
  std::array<std::uint64_t, kBuckets> occupancy{};
  friend bool operator==(const FifoCounters&, const FifoCounters&) = default;
};

/// Largest occupancy that belongs to a bucket.
constexpr std::uint32_t bucket_end(std::size_t bucket, std::uint32_t fifo_units) noexcept {
  return static_cast<std::uint32_t>(fifo_units * bucket / (kBuckets - 1));
}

struct SwitchPortCounters {
  ChannelCounters out;
  FifoCounters in;
  friend bool operator==(const SwitchPortCounters&, const SwitchPortCounters&) = default;
};

/// Units of frames, network-wide: what came in is still there or went one of the ways out.
struct Balance {
  std::uint64_t entered = 0;   ///< sent by nodes
  std::uint64_t inserted = 0;  ///< bad ID-EOFs made by input ports
  std::uint64_t left = 0;      ///< taken by nodes
  std::uint64_t stripped = 0;  ///< routing characters that switches took off
  std::uint64_t lost = 0;      ///< vanished on channels or thrown away
  std::uint64_t present = 0;   ///< in FIFOs and on channels now
  bool holds() const noexcept { return entered + inserted == left + stripped + lost + present; }
  friend bool operator==(const Balance&, const Balance&) = default;
};

}  // namespace ulfm::fabric::xswitch
