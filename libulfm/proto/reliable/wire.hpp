// What the protocol puts in front of a frame.
//
//   crc 4 | what 1 | header length 1 | credit 2 | stream 4 | number 4 | [acknowledgement 16] | [part 8]
//                                                                     stream 4, next 4, held 8   offset 4, zero 4
//
// Little-endian. `what` says which of the brackets are there. The checksum is over the frame's own header and data,
// then over this header behind it, so that sending a frame again need not read its data again. A header that does
// not fit beside this one travels in front of the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/frame.hpp"

namespace ulfm::reliable {

inline constexpr std::size_t kWireLeast = 16;
inline constexpr std::size_t kWireMost = 40;
inline constexpr std::size_t kHeaderLimit = 255;  ///< of any frame: see the contract

/// What a frame brings to the layers above.
enum class Payload : std::uint8_t { none = 0, first = 1, more = 2, bye = 3 };

/// How far a receiver is with one stream.
struct Ack {
  std::uint32_t stream = 0;
  std::uint32_t next = 0;    ///< everything before it has been taken in
  std::uint64_t held = 0;    ///< bit i: number next + 1 + i is there already
  std::uint16_t credit = 0;  ///< numbers below next + credit may be sent
  bool twice = false;        ///< since the last acknowledgement something has come that was there already
};

struct WireHeader {
  Payload payload = Payload::none;
  bool has_ack = false;
  bool probe = false;  ///< the receiver is asked to acknowledge at once
  bool part = false;   ///< only a piece of the frame's data, beginning at `offset`
  bool last = false;   ///< of the pieces
  bool header_in_data = false;
  std::uint8_t header = 0;  ///< bytes of the frame's own header
  std::uint32_t stream = 0, number = 0;
  std::uint32_t offset = 0;
  Ack ack;

  std::size_t size() const noexcept { return kWireLeast + (has_ack ? 16 : 0) + (part ? 8 : 0); }
};

/// Writes header.size() bytes to `to`. `body` is the CRC32C of the frame's own header and data.
void encode(const WireHeader& header, std::uint32_t body, std::byte* to) noexcept;

/// Reads it from a frame that arrived; false when a checksum or a length is wrong, and nothing of it may be believed.
bool decode(const Frame& frame, WireHeader& header) noexcept;

/// a before b, for numbers that go round.
constexpr bool before(std::uint32_t a, std::uint32_t b) noexcept { return static_cast<std::int32_t>(a - b) < 0; }

}  // namespace ulfm::reliable
