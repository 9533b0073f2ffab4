// Numbers of things in sentences.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/core.h>

namespace ulfm {

/// "1 frame", "2 frames", "0 frames"; `many` is for words that take no plain "s", such as "processes".
inline std::string counted(std::uint64_t number, std::string_view one, std::string_view many = {}) {
  if (number == 1) return fmt::format("1 {}", one);
  return many.empty() ? fmt::format("{} {}s", number, one) : fmt::format("{} {}", number, many);
}

}  // namespace ulfm
