// Which message a receive or a probe takes (Pierce, The NX/2 Operating System, section 4).
#pragma once

#include <cstdint>

namespace nx2 {

inline constexpr std::int32_t kAny = -1;
inline constexpr std::int32_t kLastUserType = 999'999'999;
inline constexpr std::int32_t kFirstForceType = 0x40000000;
inline constexpr std::int32_t kLastForceType = 1'999'999'999;
inline constexpr std::int32_t kFirstSystemType = 2'000'000'000;  ///< messages of the global operations

/// A type that a program may send. Those between the two ranges and above them were the system's.
constexpr bool is_user_type(std::int32_t type) noexcept {
  return (type >= 0 && type <= kLastUserType) || (type >= kFirstForceType && type <= kLastForceType);
}

/// typesel 0 or more selects that type; -1 every type; any other negative one is a mask: bits 0 to 29 select
/// the types 0 to 29, bit 30 the type 30 and those above it (the paper: "types in the range 0-30"; programs
/// use larger ones).
constexpr bool selects_type(std::int32_t typesel, std::int32_t type) noexcept {
  if (typesel >= 0) return typesel == type;
  if (type >= kFirstSystemType) return false;
  if (typesel == kAny) return true;
  if (type > kLastUserType) return false;
  const int bit = type < 30 ? static_cast<int>(type) : 30;
  return (static_cast<std::uint32_t>(typesel) >> bit & 1) != 0;
}

struct Selector {
  std::int32_t typesel = kAny;
  std::int32_t node = kAny;
  std::int32_t ptype = kAny;

  constexpr bool selects(std::int32_t type, std::int32_t from, std::int32_t from_ptype) const noexcept {
    return selects_type(typesel, type) && (node == kAny || node == from) && (ptype == kAny || ptype == from_ptype);
  }
};

}  // namespace nx2
