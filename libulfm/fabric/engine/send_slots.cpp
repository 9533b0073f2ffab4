#include "fabric/engine/send_slots.hpp"

#include <mutex>
#include <utility>

namespace ulfm::fabric {
namespace {
constexpr std::uint32_t kNobody = 0xffffffff;
}  // namespace

void SendSlots::begin(std::uint32_t endpoint) {
  self_ = endpoint;
  sent_ = arena_.endpoint(endpoint).taken;
  owners_.assign(arena_.sizes().slots, kNobody);
  queued_at_.assign(arena_.sizes().slots, -1);
}

std::uint32_t SendSlots::add_sender() {
  std::lock_guard lock(lock_);
  for (std::uint32_t i = 0; i < on_their_way_.size(); ++i)
    if (on_their_way_[i] == kNobody) return on_their_way_[i] = 0, i;
  on_their_way_.push_back(0);
  return static_cast<std::uint32_t>(on_their_way_.size() - 1);
}

void SendSlots::remove_sender(std::uint32_t sender) {
  std::lock_guard lock(lock_);
  for (std::uint32_t& owner : owners_)
    if (owner == sender) owner = kNobody;  // still on its way, and nobody's any more
  on_their_way_[sender] = kNobody;
}

// The index list: slots come back in about the order in which they left, so the search goes round.
std::int64_t SendSlots::take(std::uint32_t sender) {
  std::lock_guard lock(lock_);
  const std::uint32_t count = arena_.sizes().slots;
  const std::uint32_t looks = on_their_way_[sender] >= count / 2 ? 2 * count : count;
  for (std::uint32_t i = 0; i < looks; ++i) {
    next_ = next_ + 1 < count ? next_ + 1 : 0;
    std::uint32_t& owner = owners_[next_];
    Slot& slot = arena_.slot(self_ * count + next_);
    if (slot.state.load(std::memory_order_acquire) != SlotState::free) continue;  // pairs with whoever released it
    if (owner != kNobody) --on_their_way_[owner];
    owner = kNobody;
    if (on_their_way_[sender] >= count / 2) continue;
    owner = sender;
    ++on_their_way_[sender];
    queued_at_[next_] = -1;
    slot.state.store(SlotState::used, std::memory_order_relaxed);
    return self_ * count + next_;
  }
  full_ = true;
  return -1;
}

void SendSlots::queue(std::uint32_t slot) {
  std::lock_guard lock(lock_);
  const std::uint32_t count = arena_.sizes().slots;
  arena_.sending_queue(self_)[sent_ & (count - 1)].store(queue_entry(sent_, count, slot),
                                                         std::memory_order_release);  // pairs with take_sending_queue
  queued_at_[slot % count] = sent_;
  ++sent_;
}

bool SendSlots::were_full() {
  std::lock_guard lock(lock_);
  return std::exchange(full_, false);
}

bool SendSlots::has_left(std::uint32_t slot, std::uint32_t taken) {
  std::lock_guard lock(lock_);
  const std::int64_t at = queued_at_[slot % arena_.sizes().slots];
  return at >= 0 && static_cast<std::int32_t>(taken - static_cast<std::uint32_t>(at)) > 0;
}

}  // namespace ulfm::fabric
