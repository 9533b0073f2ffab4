// What others need to reach this process over a network: who it is, and the addresses of its host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/ip.hpp"

namespace ulfm::hosts {

/// How likely an address of another host leads there. Bridges and tunnels have the same address on many hosts.
enum class LinkKind : std::uint8_t { physical = 0, veth = 1, virtual_link = 2 };

struct Address {
  Ip ip;
  LinkKind link = LinkKind::physical;
  friend bool operator==(const Address&, const Address&) = default;
};

/// Of the addresses in a card, each 5 bytes for IPv4 and 17 for IPv6: a card has to fit beside others.
inline constexpr std::size_t kAddressBytes = 60;
/// The first ones that fit.
std::vector<Address> those_that_fit(const std::vector<Address>& addresses);

/// Identity of a process. A process that connects has to know the token, and so has to have got the card.
struct ProcessCard {
  std::uint64_t host = 0;
  std::uint64_t token = 0;
  std::int32_t pid = 0;
  std::uint16_t port = 0;          ///< where it listens
  std::vector<Address> addresses;  ///< likeliest first, at most kAddressBytes
};

/// The name of the transport, ':' and base64 (RFC 4648, section 5) of host, token, pid, port and the addresses.
std::string encode(std::string_view transport, const ProcessCard& card);
/// Errc::protocol for anything that encode() does not write for that transport.
Result<ProcessCard> decode(std::string_view transport, std::string_view text);
/// The same of a card that is this one or, as that of a mux, has it among others with '&' between them.
Result<ProcessCard> decode_part(std::string_view transport, std::string_view card);

/// The first frame of a connection: length of the card in two bytes, the card, the hello.
std::vector<std::byte> introduction(std::string_view card, std::span<const std::byte> hello);
/// Views of such bytes.
struct Introduction {
  std::string_view card;
  std::span<const std::byte> hello;
  ProcessCard process;  ///< its part of the card
};
/// Errc::protocol for anything that introduction() does not write.
Result<Introduction> read_introduction(std::string_view transport, std::span<const std::byte> bytes);

}  // namespace ulfm::hosts
