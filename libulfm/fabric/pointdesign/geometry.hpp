// Where everything is in a generalized hypercube of cards: GH(n,k) with P processors to a card.
//
// Source: the NJIT Point Design (thesis on its communications interface, 1997/98; ulfm-pointdesign(7) has the table of
// what is from there and what is ours). A card has a number, its coordinates are the digits of that number in radix k,
// DD0 first. A *section* of a coprocessor has the ports that lead along one dimension: section 0 to the cards with the
// same DD0 (ports 0 to 4 of the design), section 1 to those with the same DD1. In general section s leads to the cards
// that differ in the digit of weight k^s.
#pragma once

#include <cstdint>

namespace ulfm::fabric::pointdesign {

inline constexpr std::uint32_t kNone = ~std::uint32_t{0};
inline constexpr std::uint32_t kPortCards = 8;       ///< destination cards behind a port
inline constexpr std::uint32_t kMostProcessors = 8;  ///< of a card: DP has three bits
inline constexpr std::uint32_t kMostDimensions = 8;
inline constexpr std::uint32_t kMostRadix = 255;
inline constexpr std::uint32_t kMostCards = 4096;
/// The six bits of a DD field hold card numbers below this; 62 and 63 have meanings of their own (formats.hpp).
inline constexpr std::uint32_t kFormatRadix = 62;

/// n, k and P. Cards are numbered 0 to k^n - 1; processor q of card c is node c * P + q.
struct CardGeometry {
  std::uint32_t dimensions = 0, radix = 0, processors = 0;
  std::uint32_t cards = 0;
  std::uint32_t weight[kMostDimensions] = {};  ///< of the digit of each section

  CardGeometry() = default;
  CardGeometry(std::uint32_t n, std::uint32_t k, std::uint32_t p) : dimensions(n), radix(k), processors(p), cards(1) {
    for (std::uint32_t s = 0; s < n; ++s) weight[s] = cards, cards *= k;
  }

  std::uint32_t nodes() const noexcept { return cards * processors; }
  std::uint32_t card_of(std::uint32_t node) const noexcept { return node / processors; }
  std::uint32_t processor_of(std::uint32_t node) const noexcept { return node % processors; }
  /// Coordinate that section s varies.
  std::uint32_t digit(std::uint32_t card, std::uint32_t section) const noexcept {
    return card / weight[section] % radix;
  }
  /// The card that section s leads to at coordinate j; the card itself when that is its own.
  std::uint32_t neighbour(std::uint32_t card, std::uint32_t section, std::uint32_t j) const noexcept {
    return card + (j - digit(card, section)) * weight[section];
  }

  /// Directions a card has: section s, coordinate j is s * k + j. One of each section is the card's own.
  std::uint32_t directions() const noexcept { return dimensions * radix; }
  std::uint32_t section_of(std::uint32_t direction) const noexcept { return direction / radix; }
  /// Queues of a processor: one for each card it has a line to, and its own. 79 in the design.
  std::uint32_t queues() const noexcept { return dimensions * (radix - 1) + 1; }
  /// Ports of a section, and of a coprocessor: 5 and 10 in the design.
  std::uint32_t section_ports() const noexcept { return (radix + kPortCards - 1) / kPortCards; }
  std::uint32_t ports() const noexcept { return dimensions * section_ports(); }
  std::uint32_t port_of(std::uint32_t direction) const noexcept {
    return section_of(direction) * section_ports() + direction % radix / kPortCards;
  }

  /// Lines are numbered by the card they lead to, then by section and by the coordinate they come from: the order in
  /// which a card looks at its arrivals.
  std::uint32_t lines() const noexcept { return cards * directions(); }
  std::uint32_t line_from(std::uint32_t card, std::uint32_t direction) const noexcept {
    const std::uint32_t s = section_of(direction);
    return neighbour(card, s, direction % radix) * directions() + s * radix + digit(card, s);
  }
  std::uint32_t line_target(std::uint32_t line) const noexcept { return line / directions(); }
  std::uint32_t line_section(std::uint32_t line) const noexcept { return line % directions() / radix; }
  std::uint32_t line_source(std::uint32_t line) const noexcept {
    return neighbour(line_target(line), line_section(line), line % radix);
  }
  /// Direction, at the card it leaves, of a line.
  std::uint32_t line_direction(std::uint32_t line) const noexcept {
    const std::uint32_t s = line_section(line);
    return s * radix + digit(line_target(line), s);
  }
  /// No line: a card's own place in a section.
  bool is_own(std::uint32_t line) const noexcept { return line_source(line) == line_target(line); }

  /// Lines on the shortest way between two cards.
  std::uint32_t hops(std::uint32_t a, std::uint32_t b) const noexcept {
    std::uint32_t count = 0;
    for (std::uint32_t s = 0; s < dimensions; ++s) count += digit(a, s) != digit(b, s);
    return count;
  }
  /// How far apart they stand, all dimensions together.
  std::uint32_t distance(std::uint32_t a, std::uint32_t b) const noexcept {
    std::uint32_t sum = 0;
    for (std::uint32_t s = 0; s < dimensions; ++s) {
      const std::uint32_t x = digit(a, s), y = digit(b, s);
      sum += x < y ? y - x : x - y;
    }
    return sum;
  }
  /// The 128-bit formats have room for its addresses.
  bool fits_formats() const noexcept { return dimensions <= 2 && radix <= kFormatRadix; }
};

}  // namespace ulfm::fabric::pointdesign
