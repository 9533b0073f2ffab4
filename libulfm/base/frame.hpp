// What transports move: frames. Nothing here knows how a transport keeps or carries them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ulfm {

inline constexpr int kPortsPerProcess = 64;

/// What a frame is. A transport may use the other values for what it says to itself (see base/cell.hpp); such frames
/// are never handed out.
enum class Kind : std::uint8_t {
  none = 0,
  first = 2,  ///< begins a message: header, then the first bytes of data
  more = 3,   ///< continues the message begun before by the same origin
  bye = 5,    ///< nothing more will come from this origin
};

/// A frame in place. Its bytes are valid until it is released at the inlet it came from.
struct Frame {
  const std::byte* header = nullptr;
  const std::byte* data = nullptr;
  std::uint32_t header_length = 0;
  std::uint32_t length = 0;  ///< bytes of data
  Kind kind = Kind::none;
  bool fresh = false;        ///< the first frame since this origin connected
  bool shared_room = false;  ///< lies in room that others wait for: whoever keeps it should copy it and release it
  std::uint32_t origin = 0;
  std::uint32_t source = 0;    ///< the transport's: where it lies; for release
  std::uint64_t position = 0;  ///< the transport's: where it lies; for release
};

}  // namespace ulfm
