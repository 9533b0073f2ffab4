// Back-pressure: a process that does not read fills the memory of its node's card, and then the node takes nothing out
// of the network any more: STOP on the links of X-Switches, RDY withheld on a cube.
//
// The node is held when more than ArenaSizes::unread bytes lie unread for one of its processes, and takes on when half
// of that has been read. A process that looks and finds nothing waits for something: it must not wait for ever because
// of what it leaves at another port, so as much again comes in with each such look. One that has died is held no more.
#include <algorithm>

#include "fabric/engine/engine.hpp"

namespace ulfm::fabric {

std::uint32_t FabricEngine::bytes_of(std::uint32_t index) noexcept {
  const Slot& slot = arena_.slot(index);
  return static_cast<std::uint32_t>(sizeof(Slot)) + slot.header + slot.length;
}

/// A frame has come for that process through the network. The holder of the engine calls this before the frame is in
/// its box.
void FabricEngine::came(std::uint32_t to, std::uint32_t bytes) noexcept {
  if (to >= arena_.sizes().endpoints) return;
  Unread& unread = arena_.endpoint(to).unread;
  const std::uint64_t came = unread.came.load(std::memory_order_relaxed) + bytes;
  unread.came.store(came, std::memory_order_relaxed);
  const auto is_too_much_beyond = [&](std::uint64_t read) {
    return came > std::max(unread.admitted, read) && came - read > arena_.sizes().unread;
  };
  if (!is_too_much_beyond(unread.seen_read)) return;
  const auto is_full = [&] {
    unread.seen_read = unread.read.load(std::memory_order_seq_cst);
    return is_too_much_beyond(unread.seen_read);
  };
  if (unread.stalled.load(std::memory_order_relaxed) != 0 || !is_full()) return;
  unread.stalled.store(1, std::memory_order_seq_cst);
  if (!is_full()) return unread.stalled.store(0, std::memory_order_relaxed);
  arena_.header().stalls.fetch_add(1, std::memory_order_relaxed);
  back_pressure_->stall(arena_.endpoint(to).node);
  if (clock_ != nullptr) return;
  // It may sleep for something at another port, and then has to look: see admit_more().
  for (std::uint32_t port = 0; port < kPorts; ++port)
    if (arena_.endpoint(to).generation[port].load(std::memory_order_acquire) % 2 == 1) arena_.box(to, port).bell.ring();
}

/// Decides whether the node accepts more. The holder of the engine calls this.
void FabricEngine::settle_stall(std::uint32_t endpoint) noexcept {
  Unread& unread = arena_.endpoint(endpoint).unread;
  if (unread.stalled.load(std::memory_order_relaxed) == 0) return;
  const std::uint32_t asks = unread.asks.exchange(Unread::nothing, std::memory_order_seq_cst);
  const std::uint64_t came = unread.came.load(std::memory_order_relaxed);
  if (asks == Unread::all) unread.admitted = ~std::uint64_t{0};
  else if (asks == Unread::more) unread.admitted = came + arena_.sizes().unread;
  else if (came - std::min(came, unread.read.load(std::memory_order_seq_cst)) > arena_.sizes().unread / 2) return;
  unread.stalled.store(0, std::memory_order_seq_cst);
  const std::uint32_t node = arena_.endpoint(endpoint).node;
  const std::uint32_t used = arena_.header().endpoints_used.load(std::memory_order_acquire);
  for (std::uint32_t e = 0; e < std::min(used, arena_.sizes().endpoints); ++e)
    if (arena_.endpoint(e).node == node && arena_.endpoint(e).unread.stalled.load(std::memory_order_relaxed) != 0)
      return;
  back_pressure_->resume(node);
}

void FabricEngine::admit_more() noexcept {
  if (clock_ != nullptr) return clock_->admit_more();
  arena_.endpoint(self_).unread.asks.store(Unread::more, std::memory_order_seq_cst);
  notify();
}

void FabricEngine::admit_timed(std::uint32_t endpoint, Unread::Asks asks) noexcept {
  arena_.endpoint(endpoint).unread.asks.store(asks, std::memory_order_relaxed);
  settle_stall(endpoint);
}

void FabricEngine::read_timed(std::uint32_t slot, std::uint32_t to) noexcept {
  if (to >= arena_.sizes().endpoints) return;
  arena_.endpoint(to).unread.read.fetch_add(bytes_of(slot), std::memory_order_seq_cst);
  settle_stall(to);
}

/// Nobody will read what is there for a process that has died. Costs system calls.
void FabricEngine::admit_for_the_dead() noexcept {
  ArenaHeader& h = arena_.header();
  bool found = false;
  const std::uint32_t used = std::min(h.endpoints_used.load(std::memory_order_acquire), arena_.sizes().endpoints);
  for (std::uint32_t e = 0; e < used; ++e) {
    Unread& unread = arena_.endpoint(e).unread;
    if (unread.stalled.load(std::memory_order_relaxed) == 0 || e == self_ || runs(e)) continue;
    unread.asks.store(Unread::all, std::memory_order_seq_cst);
    h.pending[e / 64].fetch_or(std::uint64_t{1} << e % 64, std::memory_order_seq_cst);
    found = true;
  }
  if (found && self_ != kEngineProcess) notify();
}

}  // namespace ulfm::fabric
