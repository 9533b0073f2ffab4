// An address of a host, IPv4 or IPv6, and its text.
#pragma once

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace ulfm {

/// IPv6 as it is; IPv4 as ::ffff:a.b.c.d (RFC 4291, section 2.5.5.2), so that both compare and mask alike. All zero:
/// none.
struct Ip {
  std::array<std::uint8_t, 16> bytes{};

  static Ip v4(std::uint32_t host_order) noexcept {
    Ip ip;
    ip.bytes[10] = ip.bytes[11] = 0xff;
    for (unsigned i = 0; i < 4; ++i) ip.bytes[12 + i] = static_cast<std::uint8_t>(host_order >> (24 - 8 * i));
    return ip;
  }
  static std::optional<Ip> parse(const std::string& text) noexcept {
    Ip ip;
    in_addr four{};
    if (inet_pton(AF_INET, text.c_str(), &four) == 1) return v4(ntohl(four.s_addr));
    if (inet_pton(AF_INET6, text.c_str(), ip.bytes.data()) == 1) return ip;
    return std::nullopt;
  }

  explicit operator bool() const noexcept { return *this != Ip{}; }
  friend bool operator==(const Ip&, const Ip&) = default;

  bool is_v4() const noexcept {
    return std::all_of(bytes.begin(), bytes.begin() + 10, [](auto b) { return b == 0; }) && bytes[10] == 0xff &&
           bytes[11] == 0xff;
  }
  std::uint32_t as_v4() const noexcept {
    return std::uint32_t{bytes[12]} << 24 | std::uint32_t{bytes[13]} << 16 | std::uint32_t{bytes[14]} << 8 | bytes[15];
  }
  bool is_loopback() const noexcept {
    return is_v4() ? bytes[12] == 127 : *this == Ip{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
  }
  /// fe80::/10: good on one link only, and with the number of the interface beside it.
  bool is_link_local() const noexcept { return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80; }

  /// The first `bits` of both are the same; of an IPv4 address the bits are counted in its own 32.
  bool shares(const Ip& other, int bits) const noexcept {
    if (is_v4() != other.is_v4()) return false;
    if (is_v4()) bits += 96;
    for (int i = 0; i < bits; i += 8) {
      const auto mask = static_cast<std::uint8_t>(bits - i >= 8 ? 0xff : 0xff << (8 - (bits - i)));
      if (((bytes[static_cast<std::size_t>(i / 8)] ^ other.bytes[static_cast<std::size_t>(i / 8)]) & mask) != 0)
        return false;
    }
    return true;
  }

  /// "10.1.0.2" or "fd00::2".
  std::string text() const {
    char out[INET6_ADDRSTRLEN] = {};
    if (is_v4()) inet_ntop(AF_INET, bytes.data() + 12, out, sizeof out);
    else inet_ntop(AF_INET6, bytes.data(), out, sizeof out);
    return out;
  }
};

}  // namespace ulfm
