// The memory of this process's port as the kernel sees it: a memory file, from which a system call can copy.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.hpp"

namespace perf {

class PortMemory {
 public:
  /// Finds the memory file of port `number` of this process on `direct`, as the kernel names it in /proc/self.
  static ulfm::Result<PortMemory> find(int number);

  /// Has the kernel copy a message that lies in the port's memory to `to`. Errc::invalid when it does not lie there,
  /// which is so when it came in several frames or through the open ring.
  ulfm::Result<void> copy(const std::byte* message, std::size_t size, std::byte* to) const;

 private:
  std::uintptr_t begin_ = 0, end_ = 0;
  int fd_ = -1;  // the port's own
};

}  // namespace perf
