// Memory in whole lines of the cache.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

#include "base/align.hpp"

namespace ulfm {

struct alignas(kLine) CacheLine {
  std::byte bytes[kLine];
};
using Lines = std::unique_ptr<CacheLine[]>;

/// At least so many bytes, which are not initialised. None when there is no memory.
inline Lines make_lines(std::size_t bytes) noexcept {
  return Lines(new (std::nothrow) CacheLine[up_to_line(bytes) / kLine]);
}
inline std::byte* bytes_of(const Lines& lines) noexcept { return lines ? lines[0].bytes : nullptr; }

}  // namespace ulfm
