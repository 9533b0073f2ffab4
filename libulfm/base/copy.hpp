// Copies of a few bytes without a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ulfm {

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
  if (n > 2 * sizeof(Half)) std::memcpy(to, from, n);
  else if (n >= sizeof(Half)) ends(Half{});
  else if (n >= 8) ends(std::uint64_t{});
  else if (n >= 4) ends(std::uint32_t{});
  else if (n >= 2) ends(std::uint16_t{});
  else if (n == 1) *to = *from;
}

}  // namespace ulfm
