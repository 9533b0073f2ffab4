#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace ulfm::emulated {

/// Identity of a process on an emulated interconnect.
struct EmulatedCard {
  std::uint64_t arena = 0;  ///< token of the interconnect
  std::uint32_t endpoint = 0;
  std::uint64_t token = 0;  ///< of the process: endpoints are used again
};
std::string encode(const EmulatedCard& card);
Result<EmulatedCard> decode(std::string_view text);

}  // namespace ulfm::emulated
