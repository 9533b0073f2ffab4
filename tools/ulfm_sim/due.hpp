// When the next message of each node is due.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace sim {

/// A calendar of nodes. One further off than its slots is looked at again when the last of them comes.
class DueNodes {
 public:
  explicit DueNodes(std::uint32_t nodes) : at_(nodes, 0), next_(nodes, kNone) { first_.fill(kNone); }

  /// The node, which is not in the calendar, is due in `cycle`, which has not been taken.
  void put(std::uint32_t node, std::uint64_t cycle) {
    at_[node] = cycle;
    const auto slot = static_cast<std::uint32_t>(std::min(cycle, now_ + kSlots - 1) % kSlots);
    next_[node] = first_[slot];
    first_[slot] = node;
    words_[slot / 64] |= std::uint64_t{1} << slot % 64;
    summary_ |= std::uint64_t{1} << slot / 64;
  }

  /// A cycle before which no node is due; ~0: none is at all.
  std::uint64_t next() const {
    if (summary_ == 0) return ~std::uint64_t{0};
    const auto now = static_cast<std::uint32_t>(now_ % kSlots);
    const std::uint64_t here = words_[now / 64] >> now % 64;
    if (here != 0) return now_ + static_cast<std::uint32_t>(std::countr_zero(here));
    // The words behind this one, and at last this one again with what lies before.
    const std::uint64_t behind = std::rotr(summary_, static_cast<int>(now / 64 + 1) % 64);
    const std::uint32_t word = (now / 64 + 1 + static_cast<std::uint32_t>(std::countr_zero(behind))) % 64;
    const std::uint32_t slot = word * 64 + static_cast<std::uint32_t>(std::countr_zero(words_[word]));
    return now_ + (slot + kSlots - now) % kSlots;
  }

  /// Hands out the nodes that are due in `cycle`, which is next(), and goes on behind it.
  template <typename Visit>
  void take(std::uint64_t cycle, Visit visit) {
    const auto slot = static_cast<std::uint32_t>(cycle % kSlots);
    std::uint32_t node = first_[slot];
    first_[slot] = kNone;
    if ((words_[slot / 64] &= ~(std::uint64_t{1} << slot % 64)) == 0) summary_ &= ~(std::uint64_t{1} << slot / 64);
    now_ = cycle + 1;
    while (node != kNone) {
      const std::uint32_t behind = next_[node];
      if (at_[node] == cycle) visit(node);
      else put(node, at_[node]);
      node = behind;
    }
  }

 private:
  static constexpr std::uint32_t kSlots = 4096, kNone = ~std::uint32_t{0};
  std::uint64_t now_ = 1, summary_ = 0;
  std::array<std::uint64_t, kSlots / 64> words_{};
  std::array<std::uint32_t, kSlots> first_;
  std::vector<std::uint64_t> at_;
  std::vector<std::uint32_t> next_;
};

}  // namespace sim
