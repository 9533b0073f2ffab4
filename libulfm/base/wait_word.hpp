// A word of memory that ends a sleep: what the contract of transports knows of doorbells.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>

namespace ulfm {

/// Longest sleep of a wait that something may end which wakes nobody.
inline constexpr std::chrono::microseconds kShortNap{500};

/// What a sleep waits for beside its own wake-up source. Whoever sleeps has announced it: the word is 1, and what ends
/// the sleep sets it to 0 and wakes those who sleep on it (futex). Lies in memory that both map; good as long as what
/// gave it out says.
struct WaitWord {
  std::atomic<std::uint32_t>* word = nullptr;  ///< none: nothing ends the sleep, and it has to be short
  bool fenced = false;                         ///< who sets it issues a fence, so it is not missed without membarrier

  explicit operator bool() const noexcept { return word != nullptr; }
  /// Sleeps on nothing else, as WakeSource::sleep does. There is one.
  bool sleep(std::chrono::nanoseconds limit) const noexcept;
  /// It has been set since.
  bool is_over() const noexcept { return word->load(std::memory_order_acquire) == 0; }
};

/// Whether something has come that ends a sleep.
using Look = std::function<bool()>;

/// Sleeps until one of at most 128 words is set, a signal, or `limit` has passed. True when one is, or `look` says that
/// something has come: a long sleep asks it, if there is one, once more behind a millisecond, for what no barrier
/// reached (decision 0074). Short naps where the kernel cannot sleep on several words.
bool sleep_on_any(std::span<const WaitWord> words, std::chrono::nanoseconds limit, const Look& look);

}  // namespace ulfm
