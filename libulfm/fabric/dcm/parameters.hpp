// Sizes and times of the routers, and whether they can work.
#pragma once

#include <cstdint>

#include "base/error.hpp"

namespace ulfm::fabric::dcm {

/// A cycle is the time of a nibble: a channel of 2.8 MB/s sends 28 million bits in a second (16 of 20 are
/// data), so that 7 cycles are a microsecond.
inline constexpr std::uint64_t kCyclesPerMicrosecond = 7;

/// One size for the whole network, in 16-bit words and cycles. ulfm-dcm(7) says where each comes from.
struct Parameters {
  std::uint32_t hop_cycles = 1;      ///< a nibble's way to the next router
  std::uint32_t route_cycles = 14;   ///< a routing element looks at a probe
  std::uint32_t dma_cycles = 3;      ///< a 32-bit word between a node's memory and its router
  std::uint32_t fifo_words = 64;     ///< of a node's sink
  std::uint32_t stop_at = 32;        ///< occupancy at which a sink is not ready any more
  std::uint32_t go_at = 16;          ///< occupancy at which it is ready again
  std::uint32_t send_cycles = 0;     ///< software before the first frame of a message
  std::uint32_t receive_cycles = 0;  ///< software behind it
};

inline constexpr std::uint32_t kMostHopCycles = 4;
inline constexpr std::uint32_t kMostFifoWords = 4096;

/// Words that can come after a sink has said that it is not ready. RDY waits for the end of a word of at most
/// 5 cycles at each of at most 7 routers, the source ends its word, and what it sent meanwhile is still on
/// its way.
constexpr std::uint32_t headroom(std::uint32_t hop_cycles) noexcept {
  return (7 * (hop_cycles + 4) + 5 + 7 * hop_cycles) / 5 + 2;
}

/// Errc::invalid when a FIFO could overflow, or the sizes are not such as the models take.
Result<void> check(const Parameters& parameters);

}  // namespace ulfm::fabric::dcm
