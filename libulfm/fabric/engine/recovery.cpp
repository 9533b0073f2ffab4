// Going on where a process died that held the engine, with a model that can.
//
// The model puts back its own unfinished step. Beside it there are two things the engine does in several stores: it
// takes a slot from a sending queue, and it puts one into a box. Which one it is at stands in the arena (InHand), and
// both can be finished by somebody else. Where one store more would be needed to be exact, a slot of a lost frame may
// stay in use: better than one that is used twice.
#include <algorithm>

#include "fabric/engine/engine.hpp"

#include "job/liveness.hpp"

namespace ulfm::fabric {

void FabricEngine::note_taking(std::uint32_t endpoint, std::uint32_t slot) noexcept {
  InHand& in_hand = arena_.header().in_hand;
  in_hand.slot = slot;
  in_hand.endpoint = endpoint;
  in_hand.taken = arena_.endpoint(endpoint).taken;
  std::atomic_signal_fence(std::memory_order_seq_cst);  // complete before it counts
  in_hand.what.store(InHand::taking, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

void FabricEngine::note_delivering(std::uint32_t slot, std::uint32_t to, std::uint32_t port) noexcept {
  InHand& in_hand = arena_.header().in_hand;
  note_nothing();
  in_hand.slot = slot;
  in_hand.to = to;
  in_hand.port = port;
  in_hand.delivered = arena_.box(to, port).delivered;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  in_hand.what.store(InHand::delivering, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

void FabricEngine::note_nothing() noexcept {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  arena_.header().in_hand.what.store(InHand::nothing, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

/// A frame that goes in whole has ended. The model hands it out again until it is settled.
void FabricEngine::end_whole(const Ending& ending) noexcept {
  ArenaHeader& h = arena_.header();
  const std::uint32_t index = ending.frame;
  if (index >= arena_.sizes().all_slots()) return recovery_->settle(index);
  arena_.slot_progress(index).pieces = 0;
  const Slot& slot = arena_.slot(index);
  const Destination destination = destination_of(slot);
  if (ending.delivered && is_open(destination)) {
    put_into_box(index, destination.endpoint, destination.port);
    recovery_->settle(index);
    return note_nothing();
  }
  note_nothing();
  const std::uint32_t to = destination.endpoint, port = destination.port, bytes = slot.header + slot.length;
  (ending.delivered ? h.refused : h.lost).fetch_add(1, std::memory_order_relaxed);
  recovery_->settle(index);
  give_back(index);
  if (ending.delivered && pools_ != nullptr && to < arena_.sizes().endpoints && pools_->release(to, port, bytes))
    h.pending[to / 64].fetch_or(std::uint64_t{1} << to % 64, std::memory_order_seq_cst);
}

bool FabricEngine::read_out_by(std::uint32_t reader, std::uint32_t index, std::uint32_t port) noexcept {
  const Endpoint& from = arena_.endpoint(index / arena_.sizes().slots);
  if (from.node == arena_.endpoint(reader).node) return false;  // it has not come through the interconnect
  return leaves_pool(reader, index, port);
}

// Of what has come through the interconnect. True: who waits for room is to look again.
bool FabricEngine::leaves_pool(std::uint32_t reader, std::uint32_t index, std::uint32_t port) noexcept {
  const Slot& slot = arena_.slot(index);
  if (pools_ != nullptr) return pools_->release(reader, port, slot.header + slot.length);
  Unread& unread = arena_.endpoint(reader).unread;
  const std::uint64_t read = unread.read.fetch_add(bytes_of(index), std::memory_order_seq_cst) + bytes_of(index);
  if (unread.stalled.load(std::memory_order_seq_cst) == 0) return false;
  const std::uint64_t came = unread.came.load(std::memory_order_relaxed);
  return came - std::min(came, read) <= arena_.sizes().unread / 2;
}

// ---- after a death --------------------------------------------------------------------------------------------------

/// Somebody starts the engine process anew when it dies.
bool FabricEngine::is_kept() const {
  const ArenaHeader& h = arena_.header();
  return h.keeper_pid != 0 && h.broken.load(std::memory_order_relaxed) == 0 &&
         ulfm::is_alive(h.keeper_pid, h.keeper_started);
}

/// In place of a dead process that held the engine. False when the model cannot go on.
bool FabricEngine::take_over(std::uint32_t holder) {
  if (recovery_ == nullptr || process_) return false;
  // Pairs with nothing: the dead process never let go. All its stores were made before it was seen dead.
  if (!arena_.header().holder.compare_exchange_strong(holder, self_ + 1, std::memory_order_acq_rel)) return true;
  if (!recover()) return false;
  release();
  return true;
}

bool FabricEngine::resume() {
  ArenaHeader& h = arena_.header();
  h.engine_bell.cancel();
  // As in take_over(): what the dead process has stored is there.
  if (h.holder.load(std::memory_order_acquire) != self_ + 1) return true;  // it was not at work
  if (recovery_ == nullptr || !recover()) {
    h.broken.store(self_ + 1, std::memory_order_relaxed);
    return false;
  }
  release();
  return true;
}

bool FabricEngine::recover() noexcept {
  ArenaHeader& h = arena_.header();
  if (!recovery_->recover()) return false;
  const InHand& in_hand = h.in_hand;
  const std::uint32_t what = in_hand.what.load(std::memory_order_relaxed), index = in_hand.slot;
  if (what != InHand::nothing && index >= arena_.sizes().all_slots()) return false;
  if (what == InHand::taking) {
    if (in_hand.endpoint >= arena_.sizes().endpoints) return false;
    arena_.endpoint(in_hand.endpoint).taken = in_hand.taken + 1;
    if (index / arena_.sizes().slots == in_hand.endpoint && !recovery_->has_frame(index)) send(index);
  } else if (what == InHand::delivering) {
    const std::uint32_t to = in_hand.to, port = in_hand.port;
    if (to >= arena_.sizes().endpoints || port >= kPorts) return false;
    PortBox& box = arena_.box(to, port);
    if (box.delivered == in_hand.delivered) put_into_box(index, to, port);
    box.bell.ring();
    recovery_->settle(index);
  }
  note_nothing();
  // A process that had notified the dead one of work gets no answer, so all are checked.
  for (std::uint32_t e = 0; e < arena_.sizes().endpoints; ++e)
    h.pending[e / 64].fetch_or(std::uint64_t{1} << e % 64, std::memory_order_seq_cst);
  h.recoveries.fetch_add(1, std::memory_order_relaxed);
  return true;
}

}  // namespace ulfm::fabric
