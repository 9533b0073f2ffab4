// CRC32C, the checksum of iSCSI (RFC 3720, section 12.1): polynomial 0x1EDC6F41, reflected.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ulfm {

/// The CRC32C of `size` bytes; `before` is that of the bytes in front of them, 0 when there are none. Any thread.
std::uint32_t crc32c(const std::byte* bytes, std::size_t size, std::uint32_t before = 0) noexcept;

/// The ways there are to compute it, each on its own: tests hold them against each other.
struct Crc32cWay {
  const char* name;
  bool usable;  ///< on this machine, in this build
  std::uint32_t (*compute)(const std::byte* bytes, std::size_t size, std::uint32_t before) noexcept;
};
inline constexpr std::size_t kCrc32cWays = 3;
/// Best first; the last one is usable everywhere.
const Crc32cWay (&crc32c_ways() noexcept)[kCrc32cWays];

}  // namespace ulfm
