// Classes of sizes, powers of two, for what is learned about long transfers.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

namespace ulfm::netmod {

inline constexpr std::size_t kSizeClasses = 40;

/// The class of transfers of that many bytes, less than kSizeClasses; longer ones than 2^38 bytes share the last.
constexpr std::size_t size_class(std::size_t bytes) noexcept {
  return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(bytes)), kSizeClasses - 1);
}

}  // namespace ulfm::netmod
