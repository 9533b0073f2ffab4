// What the holder of the engine does: it takes frames from the sending queues into the model, and puts those that have
// arrived into the boxes of ports.
#include <array>
#include <bit>

#include "fabric/engine/engine.hpp"

namespace ulfm::fabric {
namespace {

constexpr std::uint64_t kBudget = 4096;  // events between two looks at the sending queues
constexpr int kRounds = 256;             // of these before one process has done enough for the others

}  // namespace

// True when nothing is left to do.
bool FabricEngine::work() noexcept {
  ArenaHeader& h = arena_.header();
  if (pace_ != nullptr || model_->due() != kNothingDue) catch_up();
  for (int round = 0; round < kRounds; ++round) {
    take_sending_queues();
    const std::size_t ended = model_->run(kBudget, endings_);
    for (std::size_t i = 0; i < ended; ++i) end(endings_[i]);
    if (ended == 0 && model_->idle() && !any_pending()) {
      if (pace_ != nullptr) note_due();
      if (h.moving.load(std::memory_order_relaxed) != 0) h.moving.store(0, std::memory_order_relaxed);
      return true;
    }
  }
  h.moving.store(1, std::memory_order_release);  // pairs with has_work()
  return false;
}

void FabricEngine::take_sending_queues() noexcept {
  ArenaHeader& h = arena_.header();
  const std::uint32_t words = (arena_.sizes().endpoints + 63) / 64;
  for (std::uint32_t w = 0; w < words; ++w) {
    if (h.pending[w].load(std::memory_order_relaxed) == 0) continue;  // a bit missed here any_pending() sees
    std::uint64_t bits = h.pending[w].exchange(0, std::memory_order_seq_cst);
    for (; bits != 0; bits &= bits - 1) {
      const std::uint32_t endpoint = w * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
      if (endpoint >= arena_.sizes().endpoints) continue;
      if (pools_ != nullptr) pools_->woken(endpoint);
      if (has_back_pressure()) settle_stall(endpoint);
      take_sending_queue(endpoint);
    }
  }
}

void FabricEngine::take_sending_queue(std::uint32_t i) noexcept {
  Endpoint& endpoint = arena_.endpoint(i);
  const std::uint32_t count = arena_.sizes().slots;
  const auto* queue = arena_.sending_queue(i);
  for (;;) {
    const std::uint32_t entry =
        queue[endpoint.taken & (count - 1)].load(std::memory_order_acquire);  // pairs with submit
    const std::uint32_t slot = entry & kSlotMask;
    if (entry != queue_entry(endpoint.taken, count, slot)) return;
    if (recovery_ != nullptr) note_taking(i, slot);
    ++endpoint.taken;
    // A process can send its own slots only.
    if (slot / count == i && !send(slot)) {
      --endpoint.taken;
      arena_.header().pending[i / 64].fetch_or(std::uint64_t{1} << i % 64, std::memory_order_seq_cst);
      return;
    }
    if (recovery_ != nullptr) note_nothing();
  }
}

// From the sending queue into the network: the card divides what is longer than a frame. False when it has to wait.
bool FabricEngine::send(std::uint32_t index) noexcept {
  const ArenaSizes& sizes = arena_.sizes();
  Slot& slot = arena_.slot(index);
  if (slot.receivers != 0) return send_to_many(index);
  const Destination destination = destination_of(slot);
  const std::uint32_t to = destination.endpoint;
  const std::size_t bytes = std::size_t{read_once(slot.header)} + read_once(slot.length);
  if (to >= sizes.endpoints || destination.port >= kPorts || bytes > sizes.slot_bytes) {
    arena_.header().refused.fetch_add(1, std::memory_order_relaxed);
    return give_back(index), true;
  }
  const std::uint32_t here = arena_.endpoint(index / sizes.slots).node, there = arena_.endpoint(to).node;
  SlotProgress& progress = arena_.slot_progress(index);
  progress.in_pool = here != there && (has_pools() || has_back_pressure()) ? 1 : 0;
  // The card of a node gives its own processes what is theirs.
  if (here == there) return finish(index, is_intact(index)), true;
  if (!model_->reaches(here, there)) return finish(index, false), true;
  progress.lost = 0;
  progress.pieces = static_cast<std::uint16_t>(bytes == 0 ? 1 : (bytes + sizes.frame_bytes - 1) / sizes.frame_bytes);
  progress.to = static_cast<std::uint16_t>(to);
  if (pace_ != nullptr) {
    count_coming(to, 1);
    catch_up();  // it begins now, and not when the model was last looked at
  }
  Parties parties{index / sizes.slots, to, destination.port, (slot.goes_on & kGoesOn) != 0};
  auto left = static_cast<std::uint32_t>(bytes);
  for (std::uint32_t piece = 0; piece < progress.pieces; ++piece) {
    const std::uint32_t length = std::min(left, sizes.frame_bytes);
    if (!model_->inject_between(parties, index * sizes.pieces() + piece, here, there, length))
      end({index * sizes.pieces() + piece, here});
    parties.goes_on = true;
    left -= length;
  }
  if (pace_ != nullptr) announce(destination);
  return true;
}

void FabricEngine::end(const Ending& ending) noexcept {
  if (recovery_ != nullptr) return end_whole(ending);
  const std::uint32_t index = ending.frame / arena_.sizes().pieces();
  if (index >= arena_.sizes().all_slots()) return;
  SlotProgress& progress = arena_.slot_progress(index);
  if (progress.to == kMany) return end_of_many(index, ending);
  if (!ending.delivered) ++progress.lost;
  if (--progress.pieces != 0) return;
  if (pace_ != nullptr) count_coming(progress.to, -1);
  const bool whole = progress.lost == 0 && is_intact(index);
  if (has_back_pressure() && whole && is_open(destination_of(arena_.slot(index)))) came(progress.to, bytes_of(index));
  finish(index, whole);
}

// A whole frame of the transport is there, or will never be: into its port's box, after the card's own checks.
void FabricEngine::finish(std::uint32_t index, bool delivered) noexcept {
  ArenaHeader& h = arena_.header();
  const Destination to = destination_of(arena_.slot(index));
  if (!delivered || !is_open(to)) {
    (delivered ? h.refused : h.lost).fetch_add(1, std::memory_order_relaxed);
    if (recovery_ != nullptr) note_nothing();
    return give_back(index);
  }
  put_into_box(index, to.endpoint, to.port);
}

bool FabricEngine::finish_timed(std::uint32_t index, bool delivered) noexcept {
  ArenaHeader& h = arena_.header();
  const Destination to = destination_of(arena_.slot(index));
  delivered = delivered && is_intact(index);
  if (!delivered || !is_open(to))
    return (delivered ? h.refused : h.lost).fetch_add(1, std::memory_order_relaxed), false;
  put_into_box(index, to.endpoint, to.port);
  return true;
}

FabricEngine::Destination FabricEngine::destination_of(const Slot& slot) noexcept {
  return {read_once(slot.to), read_once(slot.port), read_once(slot.port_generation)};
}

bool FabricEngine::is_open(const Destination& to) const noexcept {
  return to.endpoint < arena_.sizes().endpoints && to.port < kPorts && to.generation % 2 == 1 &&
         arena_.endpoint(to.endpoint).generation[to.port].load(std::memory_order_acquire) == to.generation;
}

void FabricEngine::put_into_box(std::uint32_t index, std::uint32_t to, std::uint32_t port) noexcept {
  PortBox& box = arena_.box(to, port);
  const std::uint32_t count = arena_.sizes().box_entries;
  if (recovery_ != nullptr) note_delivering(index, to, port);
  box.entries[box.delivered & (count - 1)].store(queue_entry(box.delivered, count, index),
                                                 std::memory_order_release);  // pairs with the port's inlet
  ++box.delivered;
  box.bell.ring();
}

void FabricEngine::give_back(std::uint32_t slot) noexcept {
  arena_.slot(slot).state.store(SlotState::free, std::memory_order_release);  // pairs with the sender's search
}

bool FabricEngine::has_on_the_way(std::uint32_t from) {
  if (!acquire()) return false;
  const std::uint32_t count = arena_.sizes().slots;
  const Endpoint& endpoint = arena_.endpoint(from);
  const std::uint32_t entry =
      arena_.sending_queue(from)[endpoint.taken & (count - 1)].load(std::memory_order_acquire);  // pairs with submit
  // In virtual time what is still in its queue lies in our future: what was sent by now has been taken.
  bool found = clock_ == nullptr && entry == queue_entry(endpoint.taken, count, entry & kSlotMask);
  // Its process may have ended before it said so. For our own look, in release().
  if (found) arena_.header().pending[from / 64].fetch_or(std::uint64_t{1} << from % 64, std::memory_order_seq_cst);
  for (std::uint32_t s = from * count; !found && s < (from + 1) * count; ++s)
    found = arena_.slot_progress(s).pieces != 0 &&
            (arena_.slot_progress(s).to == self_ || arena_.slot_progress(s).to == kMany);
  release();
  return found;
}

}  // namespace ulfm::fabric
