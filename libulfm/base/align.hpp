// Lines, pages and sizes rounded up, for what lies in memory that several processes map.
#pragma once

#include <cstddef>

namespace ulfm {

inline constexpr std::size_t kLine = 64;    ///< of the cache
inline constexpr std::size_t kPage = 4096;  ///< the least that memory comes in

/// The least multiple of `unit` that is not below `n`.
constexpr std::size_t up_to(std::size_t n, std::size_t unit) noexcept { return (n + unit - 1) / unit * unit; }
/// The same for whole lines of the cache.
constexpr std::size_t up_to_line(std::size_t n) noexcept { return up_to(n, kLine); }

}  // namespace ulfm
