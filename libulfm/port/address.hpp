#pragma once

#include <cstdint>

namespace ulfm {

/// Where a port is: a process known to this node (its index there) and a port number.
struct PortAddress {
  std::uint32_t process = 0;
  std::uint16_t port = 0;
  std::uint64_t key() const noexcept { return std::uint64_t{process} << 16 | port; }
};

}  // namespace ulfm
