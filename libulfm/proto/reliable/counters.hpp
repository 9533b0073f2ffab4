// What the protocol counts, over all ports of a process.
#pragma once

#include <atomic>
#include <cstdint>

namespace ulfm::reliable {

/// Any thread; only shown, so any order will do.
struct Counters {
  std::atomic<std::uint64_t> sent{0};        ///< frames from above, each once
  std::atomic<std::uint64_t> delivered{0};   ///< frames handed up, pieces of one counted each
  std::atomic<std::uint64_t> resent{0};      ///< frames sent again
  std::atomic<std::uint64_t> acks{0};        ///< acknowledgements that went on their own
  std::atomic<std::uint64_t> duplicates{0};  ///< arrived again and dropped
  std::atomic<std::uint64_t> corrupted{0};   ///< arrived damaged and dropped
  std::atomic<std::uint64_t> kept{0};        ///< arrived ahead of their turn and kept
  std::atomic<std::uint64_t> given_up{0};    ///< connections whose other side stopped answering
};

inline void count(std::atomic<std::uint64_t>& counter, std::uint64_t n = 1) noexcept {
  counter.fetch_add(n, std::memory_order_relaxed);
}

}  // namespace ulfm::reliable
