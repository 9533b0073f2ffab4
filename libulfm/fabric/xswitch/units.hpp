// The unit on a channel: 9 bits, the top one set in control characters (Li, THNPC-II, section 2.2). The paper
// names the characters and not their codes; the codes are ours.
#pragma once

#include <cstdint>

namespace ulfm::fabric::xswitch {

/// 0x000 to 0x0ff: data.
using Unit = std::uint16_t;

inline constexpr Unit kControl = 0x100;
inline constexpr Unit kIdle = 0x100;    ///< ID-IDLE: fills a cycle without anything to send
inline constexpr Unit kStop = 0x101;    ///< ID-STOP: the sender's FIFO is nearly full
inline constexpr Unit kGo = 0x102;      ///< ID-GO: it has room again
inline constexpr Unit kEnd = 0x103;     ///< ID-EOF: the last unit of a frame
inline constexpr Unit kBadEnd = 0x104;  ///< ID-EOF made by an input port for a frame whose rest was lost (ours)
inline constexpr Unit kRoute = 0x140;   ///< ID-FA; ID-FB is one more, and so on

constexpr Unit route_to(std::uint32_t port) noexcept { return static_cast<Unit>(kRoute + port); }
constexpr bool is_data(Unit unit) noexcept { return unit < kControl; }
constexpr bool is_route(Unit unit) noexcept { return unit >= kRoute; }
constexpr bool is_end(Unit unit) noexcept { return unit == kEnd || unit == kBadEnd; }

}  // namespace ulfm::fabric::xswitch
