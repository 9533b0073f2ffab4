// Frames for several ports: one slot, which goes into the box of each of them and comes back when all have read it.
#include <algorithm>

#include "fabric/engine/engine.hpp"

namespace ulfm::fabric {

std::uint32_t FabricEngine::node_of(const Receiver& receiver) const noexcept {
  return receiver.to < arena_.sizes().endpoints ? arena_.endpoint(receiver.to).node : ~0u;
}

std::vector<std::uint32_t> FabricEngine::nodes_of(std::uint32_t index) {
  const std::uint32_t here = arena_.endpoint(index / arena_.sizes().slots).node;
  std::vector<std::uint32_t> nodes;
  for (const Receiver& one : arena_.receivers(arena_.slot(index)))
    if (const std::uint32_t node = node_of(one); node != here && node < arena_.sizes().nodes) nodes.push_back(node);
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

// False when the network has no room now.
bool FabricEngine::send_to_many(std::uint32_t index) noexcept {
  Slot& slot = arena_.slot(index);
  const std::uint32_t here = arena_.endpoint(index / arena_.sizes().slots).node;
  if (arena_.receivers(slot).empty()) {
    arena_.header().refused.fetch_add(1, std::memory_order_relaxed);
    return give_back(index), true;
  }
  const std::vector<std::uint32_t> nodes = nodes_of(index);
  SlotProgress& progress = arena_.slot_progress(index);
  const bool idle = model_->idle();
  const std::uint32_t frame = index * arena_.sizes().pieces();
  const bool can = multicast_ != nullptr;
  const bool lost =
      !nodes.empty() && !(can && multicast_->inject_multicast(frame, here, nodes, slot.header + slot.length));
  if (lost && can && !idle) return false;
  progress = {static_cast<std::uint16_t>(lost ? 0 : nodes.size()), 0, kMany, 0, 0, 0};
  arena_.share(slot).entered = 1;
  const auto is_nowhere = [&](const Receiver& one) {
    const std::uint32_t node = node_of(one);
    return node >= arena_.sizes().nodes || (lost && node != here);
  };
  finish_for(index, false, is_nowhere);
  finish_for(index, true, [&](const Receiver& one) { return node_of(one) == here; });
  return true;
}

void FabricEngine::end_of_many(std::uint32_t index, const Ending& ending) noexcept {
  --arena_.slot_progress(index).pieces;
  finish_for(index, ending.delivered, [&](const Receiver& one) { return node_of(one) == ending.node; });
}

void FabricEngine::lose_for(std::uint32_t index, std::uint32_t node) noexcept {
  finish_for(index, false, [&](const Receiver& one) { return node_of(one) == node; });
}

// Ends the frame for some of its receivers: puts it into their boxes, after the card's own checks. When the last
// receiver has it, the slot may belong to its sender again, so the list of receivers is copied first.
template <typename Which>
void FabricEngine::finish_for(std::uint32_t index, bool delivered, Which which) noexcept {
  ArenaHeader& h = arena_.header();
  Slot& slot = arena_.slot(index);
  const std::span<Receiver> all = arena_.receivers(slot);
  std::vector<std::size_t> meant;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (which(all[i]) && all[i].state.load(std::memory_order_relaxed) == ReceiverState::waits) meant.push_back(i);
  for (const std::size_t i : meant) {
    const Destination to{all[i].to, all[i].port, all[i].port_generation};
    if (delivered && is_open(to)) {
      put_into_box(index, to.endpoint, to.port);
      continue;
    }
    (delivered ? h.refused : h.lost).fetch_add(1, std::memory_order_relaxed);
    if (!release_receiver(arena_.share(slot), all[i])) continue;
    if (clock_ != nullptr) clock_->give_back_locked(index);
    else give_back(index);
  }
}

void FabricEngine::finish_many_timed(std::uint32_t index, std::vector<std::uint32_t>& arrived) noexcept {
  for (const Receiver& one : arena_.receivers(arena_.slot(index)))
    if (one.state.load(std::memory_order_relaxed) == ReceiverState::waits) arrived.push_back(one.to);
  finish_for(index, true, [](const Receiver&) { return true; });
}

}  // namespace ulfm::fabric
