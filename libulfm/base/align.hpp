// Sizes rounded up, for what lies in memory that several processes map.
#pragma once

#include <cstddef>

namespace ulfm {

/// The least multiple of `unit` that is not below `n`.
constexpr std::size_t up_to(std::size_t n, std::size_t unit) noexcept { return (n + unit - 1) / unit * unit; }
/// The same for a line of the cache.
constexpr std::size_t up_to_line(std::size_t n) noexcept { return up_to(n, 64); }

}  // namespace ulfm
