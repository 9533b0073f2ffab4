// What the dead leave unread: slots of living senders, which nobody would give back.
#include <bitset>

#include "fabric/engine/engine.hpp"

namespace ulfm::fabric {

/// Asks the host once for each process.
class FabricEngine::Living {
 public:
  explicit Living(const FabricEngine& engine) noexcept : engine_(engine) {}
  bool has(std::uint32_t endpoint) {
    if (endpoint >= kMaxEndpoints) return true;
    if (!asked_[endpoint]) alive_[endpoint] = engine_.is_alive(endpoint);
    asked_[endpoint] = true;
    return alive_[endpoint];
  }

 private:
  const FabricEngine& engine_;
  std::bitset<kMaxEndpoints> asked_, alive_;
};

// The engine ends frames that are in the sending queue or on their way. Only its holder knows which these are.
void FabricEngine::reclaim() {
  if (!acquire()) return;
  Living living(*this);
  const std::uint32_t count = arena_.sizes().slots;
  for (std::uint32_t s = self_ * count; s < (self_ + 1) * count; ++s) {
    const Slot& slot = arena_.slot(s);
    if (slot.state.load(std::memory_order_acquire) != SlotState::used || arena_.slot_progress(s).pieces != 0) continue;
    if (slot.receivers != 0) reclaim_share(s, living);
    else reclaim_one(s, living);
  }
  release();
}

// The receiver is dead first and the slot in use after that: so it has not given it back, and never will.
void FabricEngine::reclaim_one(std::uint32_t index, Living& living) {
  const Destination to = destination_of(arena_.slot(index));
  if (!slots_.has_left(index, arena_.endpoint(self_).taken) || living.has(to.endpoint) ||
      arena_.slot(index).state.load(std::memory_order_acquire) != SlotState::used)
    return;
  if (clock_ != nullptr) {
    if (!clock_->has_event(index)) clock_->give_back_locked(index);
    return;
  }
  if ((has_pools() || has_back_pressure()) && read_out_by(to.endpoint, index, to.port))
    arena_.header().pending[to.endpoint / 64].fetch_or(std::uint64_t{1} << to.endpoint % 64, std::memory_order_seq_cst);
  give_back(index);
}

void FabricEngine::reclaim_share(std::uint32_t index, Living& living) {
  Slot& slot = arena_.slot(index);
  if (arena_.share(slot).entered == 0) return;
  for (Receiver& one : arena_.receivers(slot)) {
    if (one.state.load(std::memory_order_acquire) != ReceiverState::waits || living.has(one.to) ||
        !release_receiver(arena_.share(slot), one))
      continue;
    if (clock_ != nullptr) clock_->give_back_locked(index);
    else give_back(index);
    return;
  }
}

}  // namespace ulfm::fabric
