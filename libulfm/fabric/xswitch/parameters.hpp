// Sizes of an X-Switch network, and whether they can work.
#pragma once

#include <cstdint>

#include "base/error.hpp"

namespace ulfm::fabric::xswitch {

/// One size for the whole network, in units and cycles; a topology may have other latencies for some of its links
/// (Topology::latency). The paper gives none of them; these are ours.
struct Parameters {
  std::uint32_t fifo_units = 64;  ///< of an input port
  std::uint32_t stop_at = 48;     ///< occupancy that sends ID-STOP
  std::uint32_t go_at = 16;       ///< occupancy that sends ID-GO again
  std::uint32_t link_cycles = 1;  ///< a unit's way over a link
  std::uint32_t check_units = 4;  ///< check bytes behind the data
};

inline constexpr std::uint32_t kMostFifoUnits = 16384;
inline constexpr std::uint32_t kMostLinkCycles = 64;
inline constexpr std::uint32_t kMostCheckUnits = 64;

/// Room that a FIFO needs above the threshold for ID-STOP. The command leaves a cycle after the threshold is
/// reached and is on its way for a link's cycles; what the other side sent until it arrives is on its way for
/// as many. One unit more is for the ID-EOF that an input port makes itself when a frame is cut.
constexpr std::uint32_t headroom(std::uint32_t link_cycles) noexcept { return 2 * link_cycles + 1; }

/// Errc::invalid when a FIFO could overflow, or would never ask for more.
Result<void> check(const Parameters& parameters);

}  // namespace ulfm::fabric::xswitch
