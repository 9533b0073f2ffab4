// The tree of decoders behind a port: two, then four, then the queues of eight cards (thesis, section 3.1, figure 6).
// Each decoder looks at the header for itself and hands the message to none, one or both of what is below it.
#pragma once

#include <cstdint>

#include "fabric/pointdesign/formats.hpp"
#include "fabric/pointdesign/geometry.hpp"

namespace ulfm::fabric::pointdesign {

/// What became of a message at a port.
struct TreePass {
  std::uint8_t upper = 0;   ///< decoders of the first level that handed it on, a bit each of two
  std::uint8_t lower = 0;   ///< and of the second, of four
  std::uint8_t queues = 0;  ///< queues that have it, of eight; bit 0 is the first card of the port
  friend bool operator==(const TreePass&, const TreePass&) = default;
};

/// The queues that a CIMF message names at that port, taken from its fields at once. `own` is the coordinate of the
/// card itself in the port's section, which a broadcast leaves out.
inline std::uint8_t queues_of(const Cimf& m, const CardGeometry& g, std::uint32_t port, std::uint32_t own) noexcept {
  const std::uint32_t section = port / g.section_ports(), first = port % g.section_ports() * kPortCards;
  const std::uint32_t left = g.radix - first, there = left >= kPortCards ? 0xffu : (1u << left) - 1;
  const bool varies_dd0 = g.dimensions == 1 || section == 1;
  if (m.cdd == Reach::broadcast)
    return static_cast<std::uint8_t>(own - first < kPortCards ? there & ~(1u << (own - first)) : there);
  if (m.cdd != Reach::unicast)
    return (m.cdd == Reach::multicast_dd0) == varies_dd0 ? static_cast<std::uint8_t>(m.mask() & there) : 0;
  const std::uint32_t card = (varies_dd0 ? m.dd0 : m.dd1) - std::uint32_t{first};
  return card < kPortCards ? static_cast<std::uint8_t>(1u << card & there) : 0;
}

/// The levels above a set of queues.
constexpr TreePass pass_to(std::uint8_t queues) noexcept {
  TreePass pass;
  pass.queues = queues;
  for (std::uint32_t d = 0; d < 4; ++d)
    if ((queues >> 2 * d & 3) != 0) pass.lower = static_cast<std::uint8_t>(pass.lower | 1u << d);
  for (std::uint32_t d = 0; d < 2; ++d)
    if ((pass.lower >> 2 * d & 3) != 0) pass.upper = static_cast<std::uint8_t>(pass.upper | 1u << d);
  return pass;
}

/// What the hardware at the last level makes of a CIMF for the queue of a card.
Dmf to_dmf(const Cimf& message, const CardGeometry& geometry, std::uint32_t source, std::uint32_t section,
           std::uint32_t coordinate) noexcept;

/// DD0 and DD1 of a card.
constexpr std::uint8_t dd0_of(const CardGeometry& g, std::uint32_t card) noexcept {
  return static_cast<std::uint8_t>(g.dimensions == 1 ? card : card / g.radix);
}
constexpr std::uint8_t dd1_of(const CardGeometry& g, std::uint32_t card) noexcept {
  return static_cast<std::uint8_t>(g.dimensions == 1 ? 0 : card % g.radix);
}

}  // namespace ulfm::fabric::pointdesign
