// What a coprocessor makes of a list of destinations: the fewest messages (thesis, sections 3.2.2 and 3.3).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fabric/pointdesign/decoders.hpp"

namespace ulfm::fabric::pointdesign {

/// One message that leaves one port; a broadcast leaves all of them at once.
struct Outgoing {
  Reach reach = Reach::unicast;
  Processors who;
  std::uint32_t port = 0;  ///< not of a broadcast
  std::uint32_t card = 0;  ///< unicast: where it ends
  std::uint8_t mask = 0;   ///< multicast: cards of the port
  friend bool operator==(const Outgoing&, const Outgoing&) = default;
};

/// The fewest messages of these formats that reach every node of `to` once and no other, the source's own processor
/// left out. Cards behind one port share a message when the same code fits them; a card in neither the row nor the
/// column of the source has messages of its own, since a header has room for one mask (thesis, section 3.2.2); what is
/// meant on every card can go by broadcasts. The nodes must exist; doubles count once.
std::vector<Outgoing> plan(const CardGeometry& geometry, std::uint32_t source, std::span<const std::uint32_t> to);

/// The fewest numbers and codes that make up each of these sets of processors, with no processor in two of a set's.
std::vector<Processors> fewest_codes(std::span<const std::uint32_t> sets, std::uint32_t processors);

/// The message as bits. Only for a geometry that fits_formats().
Cimf to_cimf(const Outgoing& message, const CardGeometry& geometry, std::uint32_t source, bool dma,
             std::uint32_t address);

}  // namespace ulfm::fabric::pointdesign
