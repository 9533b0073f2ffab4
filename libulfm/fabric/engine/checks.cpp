// The check units of a frame: an X-Switch's frame has some behind its data, which the card that sends it computes and
// the one that gets it verifies (Li, section 3.3). The bytes that travel here are in memory, where nothing changes
// them, so cards do that only for connections that expect noise: those of a job with a fault plan that
// corrupts.
//
// They are the first bytes of the CRC-32C of header and data; what is beyond four of them is filling.
#include "base/crc32c.hpp"
#include "fabric/engine/engine.hpp"

namespace ulfm::fabric {

std::uint32_t FabricEngine::check_of(Slot& slot, std::size_t bytes) const noexcept {
  const std::uint32_t units = model_->check_units();
  const std::uint32_t all = crc32c(bytes <= kSlotInline ? slot.bytes : arena_.body(slot), bytes);
  return units >= sizeof all ? all : all & ((1u << 8 * units) - 1);
}

void FabricEngine::seal(std::uint32_t index) noexcept {
  Slot& slot = arena_.slot(index);
  slot.check = check_of(slot, std::size_t{slot.header} + slot.length);
  slot.goes_on |= kHasCheck;
}

/// The whole frame has come.
bool FabricEngine::is_intact(std::uint32_t index) noexcept {
  Slot& slot = arena_.slot(index);
  if ((slot.goes_on & kHasCheck) == 0 || slot.receivers != 0) [[likely]]
    return true;
  const std::size_t bytes = std::size_t{read_once(slot.header)} + read_once(slot.length);
  if (bytes <= arena_.sizes().slot_bytes && read_once(slot.check) == check_of(slot, bytes)) return true;
  arena_.header().damaged.fetch_add(1, std::memory_order_relaxed);
  return false;
}

}  // namespace ulfm::fabric
