// What the dead leave unread: slots of living senders, which nobody would give back.
#include <algorithm>

#include "fabric/engine/engine.hpp"

namespace ulfm::fabric {
namespace {

// Of the ports that a slot is for: endpoint, port, generation.
template <typename Each>
void for_each_receiver(FabricArena& arena, std::uint32_t index, Each each) {
  Slot& slot = arena.slot(index);
  if (slot.receivers == 0) return each(read_once(slot.to), read_once(slot.port), read_once(slot.port_generation));
  for (const Receiver& one : arena.receivers(slot)) each(one.to, one.port, one.port_generation);
}

}  // namespace

// Of a process that had the endpoint before the one that has it now.
bool FabricEngine::is_of_earlier(const Destination& to) const noexcept {
  if (to.endpoint >= arena_.sizes().endpoints) return false;
  const std::uint32_t first = arena_.endpoint(to.endpoint).first_generation.load(std::memory_order_acquire);
  return static_cast<std::int32_t>(to.generation - first) < 0;
}

// The host is asked without the engine: others need it, and go on when this process dies or is stopped at that.
std::vector<FabricEngine::Dead> FabricEngine::find_dead_receivers(bool& any_earlier) {
  std::vector<Dead> asked;
  const std::uint32_t count = arena_.sizes().slots;
  for (std::uint32_t s = self_ * count; s < (self_ + 1) * count; ++s) {
    if (arena_.slot(s).state.load(std::memory_order_acquire) != SlotState::used) continue;
    for_each_receiver(arena_, s, [&](std::uint32_t to, std::uint32_t port, std::uint32_t generation) {
      if (to >= arena_.sizes().endpoints) return;
      any_earlier = any_earlier || is_of_earlier({to, port, generation});
      if (std::any_of(asked.begin(), asked.end(), [&](const Dead& one) { return one.endpoint == to; })) return;
      const std::uint64_t token = arena_.endpoint(to).token;
      asked.push_back({to, token, !is_alive(to)});
    });
  }
  std::erase_if(asked, [](const Dead& one) { return !one.is_dead; });
  return asked;
}

// The engine ends frames that are in the sending queue or on their way. Only its holder knows which these are.
void FabricEngine::reclaim() {
  bool any_earlier = false;
  const std::vector<Dead> found = find_dead_receivers(any_earlier);
  if ((found.empty() && !any_earlier) || !acquire()) return;
  // The endpoint may be another process's by now.
  const auto is_dead = [&](const Destination& to) {
    return is_of_earlier(to) || std::any_of(found.begin(), found.end(), [&](const Dead& one) {
             return one.endpoint == to.endpoint && arena_.endpoint(to.endpoint).token == one.token;
           });
  };
  const std::uint32_t count = arena_.sizes().slots, taken = arena_.endpoint(self_).taken;
  for (std::uint32_t s = self_ * count; s < (self_ + 1) * count; ++s) {
    // The receiver was dead before the slot is seen in use: so it has not given it back, and never will. Nor has
    // another thread taken it since, which has_left() would tell.
    if (arena_.slot(s).state.load(std::memory_order_acquire) != SlotState::used ||
        arena_.slot_progress(s).pieces != 0 || !slots_.has_left(s, taken) ||
        (clock_ != nullptr && clock_->has_event(s)))
      continue;
    // Its ending has not been settled: whoever moves the network next does that.
    if (recovery_ != nullptr && recovery_->has_frame(s)) continue;
    // Its receiver may give the slot back, and another thread take it, until that receiver is seen dead.
    const auto is_lost = [&](const Destination& to) { return is_dead(to) && slots_.has_left(s, taken); };
    if (arena_.slot(s).receivers != 0) reclaim_share(s, is_lost);
    else reclaim_one(s, is_lost);
  }
  release();
}

template <typename IsLost>
void FabricEngine::reclaim_one(std::uint32_t index, const IsLost& is_lost) {
  const Destination to = destination_of(arena_.slot(index));
  if (!is_lost(to)) return;
  // The receiver may have given it back before it ended.
  if (arena_.slot(index).state.load(std::memory_order_acquire) != SlotState::used) return;
  // Whoever has the endpoint now has begun to count anew what is unread.
  std::uint16_t& in_pool = arena_.slot_progress(index).in_pool;
  if (has_back_pressure() && is_of_earlier(to)) in_pool = 0;
  if (clock_ != nullptr) return clock_->give_back_locked(index);
  if (in_pool != 0 && leaves_pool(to.endpoint, index, to.port))
    arena_.header().pending[to.endpoint / 64].fetch_or(std::uint64_t{1} << to.endpoint % 64, std::memory_order_seq_cst);
  give_back(index);
}

template <typename IsLost>
void FabricEngine::reclaim_share(std::uint32_t index, const IsLost& is_lost) {
  Slot& slot = arena_.slot(index);
  if (clock_ == nullptr && arena_.share(slot).entered == 0) return;
  for (Receiver& one : arena_.receivers(slot)) {
    if (!is_lost({one.to, one.port, one.port_generation}) ||
        one.state.load(std::memory_order_acquire) != ReceiverState::waits || !release_receiver(arena_.share(slot), one))
      continue;
    if (clock_ != nullptr) clock_->give_back_locked(index);
    else give_back(index);
    return;
  }
}

}  // namespace ulfm::fabric
