// The send queue: port numbers, pushed by applications, taken by the interface (paper 2.1, 2.6).
//
// The one critical resource that the ports of a process share. Any thread pushes with one atomic operation for its
// place; one thread at a time takes. Bounded: there are never more numbers in it than send buffers.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <vector>

namespace ulfm {

class SendQueue {
 public:
  explicit SendQueue(std::uint32_t capacity)
      : cells_(std::bit_ceil(capacity)), mask_(static_cast<std::uint32_t>(cells_.size()) - 1) {
    for (std::uint32_t i = 0; i <= mask_; ++i) cells_[i].turn.store(i, std::memory_order_relaxed);
  }

  /// False when it is full.
  bool push(std::uint16_t port) noexcept {
    std::uint64_t at = tail_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[at & mask_];
      const auto ahead = static_cast<std::int64_t>(cell.turn.load(std::memory_order_acquire) - at);
      if (ahead == 0) {
        if (!tail_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) continue;
        cell.port = port;
        cell.turn.store(at + 1, std::memory_order_release);  // pairs with pop()
        return true;
      }
      if (ahead < 0) return false;
      at = tail_.load(std::memory_order_relaxed);
    }
  }

  /// One thread at a time. False when it is empty.
  bool pop(std::uint16_t& port) noexcept {
    const std::uint64_t at = head_.load(std::memory_order_relaxed);
    Cell& cell = cells_[at & mask_];
    if (cell.turn.load(std::memory_order_acquire) != at + 1) return false;
    port = cell.port;
    cell.turn.store(at + mask_ + 1, std::memory_order_release);  // pairs with push()
    head_.store(at + 1, std::memory_order_release);
    return true;
  }

  /// Any thread: nothing is in it.
  bool empty() const noexcept { return head_.load(std::memory_order_seq_cst) == tail_.load(std::memory_order_seq_cst); }

 private:
  struct Cell {
    std::atomic<std::uint64_t> turn{0};  // push() to pop(): the port is there; pop() to push(): it has been taken
    std::uint16_t port = 0;
  };

  std::vector<Cell> cells_;
  std::uint32_t mask_;
  // Places given out, and emptied: the cell's turn publishes what is in it. empty() is seq_cst because Node::drive
  // looks there after it has let go of the interface, and must see what others pushed before they failed to get it: the
  // other half is SoloMutex::unlock.
  alignas(64) std::atomic<std::uint64_t> tail_{0};
  alignas(64) std::atomic<std::uint64_t> head_{0};
};

}  // namespace ulfm
