// What others need to reach this process over a network: who it is, and all addresses of its host.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace ulfm::ofi {

/// How likely an address of another host leads there. Bridges and tunnels have the same address on many hosts.
enum class Link : std::uint8_t { physical = 0, veth = 1, virtual_link = 2 };

struct Address {
  std::uint32_t ip = 0;  ///< IPv4, host order
  Link link = Link::physical;
  friend bool operator==(const Address&, const Address&) = default;
};

inline constexpr std::size_t kMostAddresses = 4;  // a card has to fit beside others

/// Identity of a process. Whoever wants to connect has to know the token, and so has to have got the card.
struct Card {
  std::uint64_t host = 0;
  std::uint64_t token = 0;
  std::int32_t pid = 0;
  std::uint16_t port = 0;          ///< where it listens
  std::vector<Address> addresses;  ///< likeliest first, at most kMostAddresses
};

/// "ofi:<host><token>.<pid>.<port>;<address><link>,..."
std::string encode(const Card& card);
/// Errc::protocol for anything that encode() does not write.
Result<Card> decode(std::string_view text);

/// "10.1.0.2".
std::string text_of(std::uint32_t ip);

}  // namespace ulfm::ofi
