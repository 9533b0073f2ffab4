#include "fabric/pcie/arena.hpp"

namespace ulfm::fabric::pcie {

bool BoardArena::roll_back() const noexcept {
  Journal& j = journal();
  const std::uint32_t count = j.count.load(std::memory_order_relaxed);
  if (count > Journal::kLines) return false;
  for (std::uint32_t i = count; i-- != 0;) {  // the oldest of a line last
    const std::size_t offset = std::size_t{j.where[i]} * kLine;
    if (offset < at_clock_ || offset + kLine > bytes_) return false;
    std::memcpy(memory_ + offset, j.before[i], kLine);
  }
  commit();
  return true;
}

}  // namespace ulfm::fabric::pcie
