// Sizes of an X-Switch network, and whether they can work.
#pragma once

#include <cstdint>

#include "base/error.hpp"

namespace ulfm::fabric::xswitch {

/// What an output polls first behind a frame.
enum class Arbitration : std::uint32_t {
  circulating,  ///< the next input: the paper's
  fixed         ///< the first input again
};

/// One size for the whole network, in units and cycles; a topology may have other latencies and rates for some of its
/// links (Topology::latency, Topology::rate). The paper gives none of them; these are ours.
struct Parameters {
  std::uint32_t fifo_units = 64;  ///< of an input port
  std::uint32_t stop_at = 48;     ///< occupancy that sends ID-STOP
  std::uint32_t go_at = 16;       ///< occupancy that sends ID-GO again
  std::uint32_t link_cycles = 1;  ///< a unit's way over a link
  std::uint32_t check_units = 4;  ///< check bytes behind the data
  Arbitration arbitration = Arbitration::circulating;
  std::uint32_t unit_cycles = 1;  ///< that a unit keeps the slowest link busy: 1, or what Topology::rate says
};

/// The input that an output of a switch with so many ports polls first behind a frame of `input`.
constexpr std::uint32_t polled_behind(const Parameters& p, std::uint32_t input, std::uint32_t ports) noexcept {
  return p.arbitration == Arbitration::fixed || input + 1 >= ports ? 0 : input + 1;
}

inline constexpr std::uint32_t kMostFifoUnits = 16384;
inline constexpr std::uint32_t kMostLinkCycles = 64;
inline constexpr std::uint32_t kMostUnitCycles = 32;
inline constexpr std::uint32_t kMostCheckUnits = 64;

/// Room that a FIFO needs above the threshold for ID-STOP. The command leaves a cycle after the threshold is
/// reached and is on its way for a link's cycles; what the other side sent until it arrives is on its way for
/// as many. One unit more is for the ID-EOF that an input port makes itself when a frame is cut.
constexpr std::uint32_t headroom(std::uint32_t link_cycles) noexcept { return 2 * link_cycles + 1; }

/// Errc::invalid when a FIFO could overflow, or would never ask for more.
Result<void> check(const Parameters& parameters);

}  // namespace ulfm::fabric::xswitch
