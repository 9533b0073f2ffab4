// Claiming one of many numbered places in shared memory: those that were given back first, then one never used before.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/error.hpp"

namespace ulfm {

/// How many places have ever been used, and about how many of these were given back. `used` only says how far to look:
/// a place's own state publishes what is in it, so nothing relies on the order of `used`.
struct ClaimCounts {
  std::atomic<std::uint32_t>& used;
  std::atomic<std::uint32_t>& freed;
};

/// Where all have been used and none is known to be free: places whose claimer died are in no count.
template <typename Take>
std::int64_t take_any(std::uint32_t limit, Take take) {
  for (std::uint32_t i = 0; i < limit; ++i)
    if (take(i)) return i;
  return -1;
}

/// A place below `limit`, or -1 when all are taken. `take(i)` tries to get place i by a compare-and-swap on the place
/// itself, which is what decides; `commit(i)` gives a place its memory, if it has none yet. Whoever gives a place back
/// makes it free and then adds one to `freed` with release order; this pairs with the load here, so that a reader that
/// sees the count finds the place free. Any thread of any process.
template <typename Take, typename Commit>
Result<std::int64_t> claim_place(ClaimCounts counts, std::uint32_t limit, Take take, Commit commit) {
  for (;;) {
    const std::uint32_t used = std::min(counts.used.load(std::memory_order_acquire), limit);
    if (counts.freed.load(std::memory_order_acquire) != 0)
      for (std::uint32_t i = 0; i < used; ++i)
        if (take(i)) {
          counts.freed.fetch_sub(1, std::memory_order_relaxed);
          return i;
        }
    std::uint32_t i = used;
    do {
      if (i >= limit) return take_any(limit, take);
      // Before it counts: a place that counts has its memory. Several may commit the same one.
      if (Result<void> ok = commit(i); !ok) return fail(ok.error());
    } while (!counts.used.compare_exchange_weak(i, i + 1, std::memory_order_acq_rel));
    if (take(i)) return i;
    // Someone scanning for freed places was quicker.
  }
}

}  // namespace ulfm
