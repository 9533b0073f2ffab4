// Packets between a board and the PC host (Fang and Lei, An efficient MPI device layer extension library, 2017, section
// 3.3.1). The paper names the fields; widths, places and byte order are ours. Everything is little-endian.
//
//   control packet, 20 bytes     0 ID = 0 | 1 port of the process | 2 zero, 2 | 4 sequence number, 4 | 8 source port, 2
//                                10 destination port, 2 | 12 source process, 2 | 14 destination process, 2 | 16 length,
//                                4
//   data packet, 16 bytes        0 ID = 1 | 1 zero, 3 | 4 sequence number, 4 | 8 fragment number, 2 | 10 zero, 2
//   and its data behind          12 bytes of data, 4
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ulfm::fabric::pcie {

inline constexpr std::size_t kControlBytes = 20;
inline constexpr std::size_t kDataHeaderBytes = 16;

/// Goes before the data of a message: where from, where to, and how much.
struct ControlPacket {
  std::uint8_t inner_port = 0;  ///< port (of ULFM) of the destination process: which of its pools
  std::uint32_t sequence = 0;   ///< tells the message from all others on its way
  std::uint16_t source_port = 0, destination_port = 0;        ///< endpoints: the boards
  std::uint16_t source_process = 0, destination_process = 0;  ///< of the job
  std::uint32_t length = 0;                                   ///< bytes of the whole message
  friend bool operator==(const ControlPacket&, const ControlPacket&) = default;
};

/// What stands in front of a packet's data.
struct DataHeader {
  std::uint32_t sequence = 0;
  std::uint16_t fragment = 0;  ///< from 1; 0: the message is not divided
  std::uint32_t length = 0;    ///< bytes of data in this packet
  friend bool operator==(const DataHeader&, const DataHeader&) = default;
};

std::array<std::byte, kControlBytes> encode(const ControlPacket& packet) noexcept;
std::array<std::byte, kDataHeaderBytes> encode(const DataHeader& header) noexcept;

/// False when the bytes are too few, the ID is another one, or a byte that must be zero is not; `packet` is then as it
/// was.
bool decode(std::span<const std::byte> bytes, ControlPacket& packet) noexcept;
bool decode(std::span<const std::byte> bytes, DataHeader& header) noexcept;

}  // namespace ulfm::fabric::pcie
