// Copies of a few bytes without a call, and of many without a trap that some processors have for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/align.hpp"

namespace ulfm {

/// `to` begins up to 15 bytes behind `from` in its page, though it may be another page. A processor that compares only
/// these 12 bits takes each load of its string instruction (rep movs) for one that waits for the store before it: AMD's
/// Zen 4 then copies 3.5 GB/s instead of 57. memcpy uses that instruction from some 2 KB on, and so does the kernel.
constexpr bool is_close_behind(std::uintptr_t to, std::uintptr_t from) noexcept {
  const std::uintptr_t behind = (to - from) % kPage;
  return behind > 0 && behind < 16;
}

/// From so many bytes on memcpy may use the string instruction.
inline constexpr std::size_t kStringCopy = 2048;

/// memcpy by moves of 16 bytes.
void copy_by_moves(std::byte* to, const std::byte* from, std::size_t n) noexcept;

/// memcpy of any length.
inline void copy_block(void* to, const void* from, std::size_t n) noexcept {
  if (n < kStringCopy || !is_close_behind(reinterpret_cast<std::uintptr_t>(to), reinterpret_cast<std::uintptr_t>(from)))
    std::memcpy(to, from, n);
  else copy_by_moves(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), n);
}

/// memcpy for lengths that mostly fit a cell: up to 32 bytes are two overlapping moves each, longer ones a call.
[[gnu::always_inline]] inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t n) noexcept {
  const auto ends = [&]<typename Piece>(Piece first) {
    Piece last;
    std::memcpy(&first, from, sizeof first);
    std::memcpy(&last, from + n - sizeof last, sizeof last);
    std::memcpy(to, &first, sizeof first);
    std::memcpy(to + n - sizeof last, &last, sizeof last);
  };
  struct Half {
    std::uint64_t a, b;
  };
  if (n > 2 * sizeof(Half)) copy_block(to, from, n);
  else if (n >= sizeof(Half)) ends(Half{});
  else if (n >= 8) ends(std::uint64_t{});
  else if (n >= 4) ends(std::uint32_t{});
  else if (n >= 2) ends(std::uint16_t{});
  else if (n == 1) *to = *from;
}

}  // namespace ulfm
