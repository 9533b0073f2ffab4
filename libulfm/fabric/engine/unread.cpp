// What the dead leave unread: slots of living senders, which nobody would give back.
#include <algorithm>

#include "fabric/engine/engine.hpp"

namespace ulfm::fabric {
namespace {

// Of the processes that a slot is for.
template <typename Each>
void for_each_receiver(FabricArena& arena, std::uint32_t index, Each each) {
  Slot& slot = arena.slot(index);
  if (slot.receivers == 0) return each(std::uint32_t{read_once(slot.to)});
  for (const Receiver& one : arena.receivers(slot)) each(std::uint32_t{one.to});
}

}  // namespace

// The host is asked without the engine: others need it, and go on when this process dies or is stopped at that.
std::vector<FabricEngine::Dead> FabricEngine::find_dead_receivers() {
  std::vector<Dead> asked;
  const std::uint32_t count = arena_.sizes().slots;
  for (std::uint32_t s = self_ * count; s < (self_ + 1) * count; ++s) {
    if (arena_.slot(s).state.load(std::memory_order_acquire) != SlotState::used) continue;
    for_each_receiver(arena_, s, [&](std::uint32_t to) {
      if (to >= arena_.sizes().endpoints ||
          std::any_of(asked.begin(), asked.end(), [&](const Dead& one) { return one.endpoint == to; }))
        return;
      const std::uint64_t token = arena_.endpoint(to).token;
      asked.push_back({to, token, !is_alive(to)});
    });
  }
  std::erase_if(asked, [](const Dead& one) { return !one.is_dead; });
  return asked;
}

// The engine ends frames that are in the sending queue or on their way. Only its holder knows which these are.
void FabricEngine::reclaim() {
  const std::vector<Dead> found = find_dead_receivers();
  if (found.empty() || !acquire()) return;
  // The endpoint may be another process's by now.
  const auto is_dead = [&](std::uint32_t to) {
    return std::any_of(found.begin(), found.end(),
                       [&](const Dead& one) { return one.endpoint == to && arena_.endpoint(to).token == one.token; });
  };
  const std::uint32_t count = arena_.sizes().slots, taken = arena_.endpoint(self_).taken;
  for (std::uint32_t s = self_ * count; s < (self_ + 1) * count; ++s) {
    // The receiver was dead before the slot is seen in use: so it has not given it back, and never will. Nor has
    // another thread taken it since, which has_left() would tell.
    if (arena_.slot(s).state.load(std::memory_order_acquire) != SlotState::used ||
        arena_.slot_progress(s).pieces != 0 || !slots_.has_left(s, taken))
      continue;
    if (arena_.slot(s).receivers != 0) reclaim_share(s, is_dead);
    else reclaim_one(s, is_dead);
  }
  release();
}

template <typename IsDead>
void FabricEngine::reclaim_one(std::uint32_t index, const IsDead& is_dead) {
  const Destination to = destination_of(arena_.slot(index));
  if (!is_dead(to.endpoint)) return;
  if (clock_ != nullptr) {
    if (!clock_->has_event(index)) clock_->give_back_locked(index);
    return;
  }
  if ((has_pools() || has_back_pressure()) && read_out_by(to.endpoint, index, to.port))
    arena_.header().pending[to.endpoint / 64].fetch_or(std::uint64_t{1} << to.endpoint % 64, std::memory_order_seq_cst);
  give_back(index);
}

template <typename IsDead>
void FabricEngine::reclaim_share(std::uint32_t index, const IsDead& is_dead) {
  Slot& slot = arena_.slot(index);
  if (arena_.share(slot).entered == 0) return;
  for (Receiver& one : arena_.receivers(slot)) {
    if (one.state.load(std::memory_order_acquire) != ReceiverState::waits || !is_dead(one.to) ||
        !release_receiver(arena_.share(slot), one))
      continue;
    if (clock_ != nullptr) clock_->give_back_locked(index);
    else give_back(index);
    return;
  }
}

}  // namespace ulfm::fabric
