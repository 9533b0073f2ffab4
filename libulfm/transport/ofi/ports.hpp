// The range of TCP ports that ULFM_PORTS names.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"

namespace ulfm::ofi {

struct PortRange {
  std::uint16_t first = 0, last = 0;  ///< 0: the system chooses
};

/// "5000-5100", or nothing. Errc::invalid, with what is needed, for anything else.
Result<PortRange> parse_ports(const std::string& text);

}  // namespace ulfm::ofi
