// The endpoint key: what a process adds to its card so that others can open a control connection to it.
//
//   direct:5f0c...+tcp:127.0.0.1:41234:<secret, 64 hexadecimal digits>
//   direct:5f0c...+unix:0001f:<secret>
//
// It goes where the card goes, into the key-value space of the job (Fang and Lei 2017, section 3: each process puts its
// port under a key, the others fetch it), and nowhere else: a process that has it may connect.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace ulfm::control {

enum class SocketKind : std::uint8_t { tcp, unix_socket };
inline constexpr std::array<const char*, 2> kKindNames{"tcp", "unix"};

inline constexpr std::size_t kSecretBytes = 32;
using Secret = std::array<std::uint8_t, kSecretBytes>;

/// Where a process listens, and what shows that one may connect.
struct EndpointKey {
  SocketKind kind = SocketKind::tcp;
  std::uint32_t address = 0;  ///< tcp: IPv4, host order
  std::uint16_t port = 0;     ///< tcp
  std::string name;           ///< unix: in the abstract name space, 1 to 20 hexadecimal digits
  Secret secret{};
};

/// "tcp:127.0.0.1:41234:5e..."; at most 100 characters, printable, no blanks.
std::string encode(const EndpointKey& key);
/// Errc::protocol for anything that encode() does not write.
Result<EndpointKey> decode_key(std::string_view text);

/// The card without its endpoint key, and without what a transport over several wrote behind a '&': the same for
/// everybody who speaks of that process.
std::string_view identity_of(std::string_view card) noexcept;
/// The whole address without the endpoint key: one may print it, and connect by it.
std::string_view without_key(std::string_view card) noexcept;
/// The text of the endpoint key in a card; "" when it has none.
std::string_view key_in(std::string_view card) noexcept;
std::string join_card(std::string_view identity, const EndpointKey& key);

}  // namespace ulfm::control
