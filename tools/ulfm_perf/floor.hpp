// The cache line that two processes hand to and fro.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "look.hpp"

namespace perf {

struct alignas(64) Line {
  std::atomic<std::uint64_t> turn{0};
};

/// Hands the line over `times` times and gets it back; run by both sides. `turn` counts along, from 0 on both.
template <typename Patient>
void hand_over(Line& line, int side, std::uint64_t& turn, std::size_t times, Patient&& patient) {
  const auto is = [&line](std::uint64_t value) {  // pairs with the stores below; the number is all they bring
    return [&line, value] { return line.turn.load(std::memory_order_acquire) == value; };
  };
  for (std::size_t i = 0; i < times; ++i, turn += 2) {
    if (side == 0) {
      line.turn.store(turn + 1, std::memory_order_release);  // pairs with the other side's is()
      look_until(is(turn + 2), patient);
    } else {
      look_until(is(turn + 1), patient);
      line.turn.store(turn + 2, std::memory_order_release);  // pairs with the other side's is()
    }
  }
}

}  // namespace perf
