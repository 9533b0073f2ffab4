// What travels on a channel (Nugent 1988, "Channel Protocol" and "Message Routing"). Bits go out from the
// lowest.
#pragma once

#include <bit>
#include <cstdint>

namespace ulfm::fabric::dcm {

inline constexpr std::uint32_t kWordNibbles = 5;        ///< of a data word: 2 start bits, RDY, EOM, 16 bits of data
inline constexpr std::uint32_t kShortProbeNibbles = 3;  ///< 2 start bits, RDY, EOM, 8 bits

/// Data format: D15 .. D0 EOM RDY 0 0.
constexpr std::uint32_t data_format(std::uint16_t data, bool eom, bool rdy) noexcept {
  return std::uint32_t{data} << 4 | std::uint32_t{eom} << 3 | std::uint32_t{rdy} << 2;
}
/// Status nibble: X RDY 1 1.
constexpr std::uint32_t status_nibble(bool rdy) noexcept { return std::uint32_t{rdy} << 2 | 3; }
/// The first nibble of whatever is sent has the start bits and RDY; that of a word also EOM.
constexpr bool is_status(std::uint32_t first_nibble) noexcept { return (first_nibble & 3) == 3; }
constexpr bool rdy_of(std::uint32_t first_nibble) noexcept { return (first_nibble >> 2 & 1) != 0; }
constexpr bool eom_of(std::uint32_t first_nibble) noexcept { return (first_nibble >> 3 & 1) != 0; }
static_assert(data_format(0xffff, true, false) == 0xffff8 && status_nibble(true) == 7);

/// Ways into a router, each with a routing element: the channels 0 to 6, the gateway, the node's source.
/// Ways out of it: the channels 0 to 6, the gateway, the node's sink.
inline constexpr std::uint32_t kGateway = 7;
inline constexpr std::uint32_t kNode = 8;
inline constexpr std::uint32_t kWays = 9;

/// An end of messages: node n of 2^d is n, the gateway of its router 2^d + n.
/// The routing probe: source XOR destination, a bit for each channel; the high 8 bits are zero. Bit 7 leaves
/// by the gateway.
constexpr std::uint16_t routing_probe(std::uint32_t from, std::uint32_t to, std::uint32_t routers) noexcept {
  return static_cast<std::uint16_t>(((from ^ to) & (routers - 1)) | (to >= routers ? 1u << kGateway : 0u));
}

/// The way out that a probe asks for at a router: the lowest bit set above the channel it came by; a message
/// that begins here looks at all of them. No bit left: the node's sink.
constexpr std::uint32_t requested(std::uint16_t probe, std::uint32_t in) noexcept {
  const std::uint32_t seen = in < kGateway ? (2u << in) - 1 : 0u;
  const std::uint32_t left = probe & 0xffu & ~seen;
  return left != 0 ? static_cast<std::uint32_t>(std::countr_zero(left)) : kNode;
}

/// Ways in that may ask for a way out, a bit each: lower channels, the gateway and the node's source.
constexpr std::uint32_t requesters(std::uint32_t out) noexcept {
  constexpr std::uint32_t kSources = 1u << kGateway | 1u << kNode;
  if (out == kGateway) return ((1u << kGateway) - 1) | 1u << kNode;
  if (out == kNode) return ((1u << kGateway) - 1) | 1u << kGateway;
  return ((1u << out) - 1) | kSources;
}

/// Round robin: the first of the ways in of `asking`, counted from the one behind `last`.
constexpr std::uint32_t next_in_turn(std::uint32_t asking, std::uint32_t last) noexcept {
  const std::uint32_t later = asking & ~((2u << last) - 1);
  return static_cast<std::uint32_t>(std::countr_zero(later != 0 ? later : asking));
}

/// 16-bit words of a message behind its probe, without the checksum: the high half of the first 32-bit word,
/// and the data in whole 32-bit words.
constexpr std::uint32_t words_behind_probe(std::uint32_t bytes) noexcept {
  return 1 + 2 * (bytes / 4 + (bytes % 4 != 0 ? 1 : 0));
}

}  // namespace ulfm::fabric::dcm
