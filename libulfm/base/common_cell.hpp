// One cell in which the two directions of a connection write by turns, beside the two rings of its lanes.
//
// Who answers a short message finds the line of the question in its own cache, with the right to write it, and the
// other one polls the line that it has written itself. A ring's next cell is a line that the other core has polled: to
// write it takes one more journey (decision 0048).
//
// The cell stands for the next position of the lane of whoever writes it, so frames keep the order of that lane. Its
// word has the number of the turn in place of a lap, and its origin the lower half of the position.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "base/cell.hpp"

namespace ulfm {

/// Data behind a frame's header that does not fit the cell lie in the lines behind it, when they are that short.
inline constexpr std::size_t kBeside = 4 * kLine;
inline std::byte* beside(Cell* cell) noexcept { return reinterpret_cast<std::byte*>(cell + 1); }
inline const std::byte* beside(const Cell* cell) noexcept { return reinterpret_cast<const std::byte*>(cell + 1); }

/// What one of the two processes knows of the cell. Whose turn it is is in no shared memory but in the number of the
/// last turn, which each process counts for itself.
///
/// Threads: the producer of one lane and the consumer of the other, at once. Only the one whose turn it is writes.
class CommonCell {
 public:
  /// `begins`: this process writes the first turn.
  explicit CommonCell(bool begins) noexcept : own_parity_(begins ? 1 : 0) {}

  /// From now on. The cell's word is 0, or what the other process has written since it knew of the cell.
  void open(Cell* cell) noexcept {
    readable_.store(cell, std::memory_order_release);  // pairs with to_write(), arrived(): the memory is there
    writable_.store(cell, std::memory_order_release);
  }
  /// Nothing is written any more; what has been written can be read.
  void end() noexcept { writable_.store(nullptr, std::memory_order_relaxed); }
  /// Frames of both directions that have lain there, as far as this process knows. Any thread.
  std::uint32_t turns() const noexcept { return turn_.load(std::memory_order_relaxed); }

  // ---- the producer's ----
  /// The cell, when a frame may be written there now; nullptr otherwise.
  Cell* to_write() const noexcept {
    Cell* const cell = writable_.load(std::memory_order_acquire);
    if (cell == nullptr) return nullptr;
    return is_own(next_turn(std::memory_order_acquire)) ? cell : nullptr;  // pairs with taken(): it has been read
  }
  /// The cell is filled but for its word, which has to be stored after this with the turn that is returned. In this
  /// order a consumer that goes to sleep knows that the answer may lie here.
  std::uint16_t begin_turn() noexcept {
    const std::uint32_t turn = next_turn(std::memory_order_relaxed);
    turn_.store(turn, std::memory_order_relaxed);
    return static_cast<std::uint16_t>(turn);
  }

  // ---- the consumer's ----
  /// The cell, when the other process has filled it for that position; `word` gets its word.
  const Cell* arrived(std::uint64_t position, std::uint64_t& word) const noexcept {
    const Cell* const cell = readable_.load(std::memory_order_acquire);
    if (cell == nullptr) return nullptr;
    const std::uint32_t turn = next_turn(std::memory_order_relaxed);
    if (is_own(turn)) return nullptr;
    word = cell->word.load(std::memory_order_acquire);  // pairs with LaneProducer's publish()
    const bool has_turn = static_cast<std::uint16_t>(word) == static_cast<std::uint16_t>(turn);
    // The lines beside the cell come together with it then, if there are as many as the last time. More of them come in
    // time without this, and the other process would have to take each one back.
    if (!has_turn) prefetch_body(beside(cell), fetched_);
    return has_turn && cell->origin == static_cast<std::uint32_t>(position) ? cell : nullptr;
  }
  /// What arrived has so many bytes beside the cell.
  void expect(std::size_t length) noexcept { fetched_ = length <= kMostFetched ? length : 0; }
  /// These are the bytes of the cell itself.
  bool holds(const std::byte* bytes) const noexcept {
    const Cell* const cell = readable_.load(std::memory_order_relaxed);
    return cell != nullptr && bytes == cell->bytes;
  }
  /// What arrived has been read: this process may write there.
  void taken() noexcept {
    turn_.store(next_turn(std::memory_order_relaxed), std::memory_order_release);  // pairs with to_write()
  }

 private:
  std::uint32_t next_turn(std::memory_order order) const noexcept { return turn_.load(order) + 1; }
  bool is_own(std::uint32_t turn) const noexcept { return (turn & 1) == own_parity_; }

  static constexpr std::size_t kMostFetched = 2 * kLine;

  const std::uint32_t own_parity_;
  std::atomic<Cell*> readable_{nullptr}, writable_{nullptr};
  std::atomic<std::uint32_t> turn_{0};  // the last one
  std::size_t fetched_ = 0;             // bytes beside the cell, with each look
};

}  // namespace ulfm
