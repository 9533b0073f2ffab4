// What ends a sleep when a frame has come: the contract of transports has one to each inlet.
#pragma once

#include <algorithm>
#include <chrono>
#include <span>

#include "base/wait_word.hpp"

namespace ulfm {

/// Two may sleep on it: the owner of the inlet, in a wait, and a watcher, another thread of its process that only wants
/// to know of arrivals. A sleep goes: arm(), one more look at every source, then sleep() or cancel().
class WakeSource {
 public:
  virtual ~WakeSource() = default;

  /// Owner: announces the sleep. What comes after this ends sleep().
  virtual void arm() noexcept = 0;
  /// Owner: stays awake after all.
  virtual void cancel() noexcept = 0;
  /// Owner: sleeps until something came, a signal, or `limit` has passed. True when something came.
  virtual bool sleep(std::chrono::nanoseconds limit) noexcept = 0;
  /// The same, and `other`, if any, ends it too: true also then. Short naps where the source cannot sleep on both.
  /// `look`, if any, says whether something has come; a source that may miss an arrival asks it once more.
  virtual bool sleep(std::chrono::nanoseconds limit, WaitWord other, [[maybe_unused]] const Look& look) {
    return sleep(other ? std::min<std::chrono::nanoseconds>(limit, kShortNap) : limit) || (other && other.is_over());
  }
  /// Owner: what ends a sleep on this and other sources at once, behind arm() and the look. None: descriptor() does.
  virtual WaitWord await() noexcept { return {}; }
  /// Owner: sleeps will be many, because processes share cores. Before the first sleep.
  virtual void expect_many_sleeps() noexcept {}

  /// Watcher: what comes after this ends watch_sleep().
  virtual void watch() noexcept = 0;
  virtual bool watch_sleep(std::chrono::nanoseconds limit) noexcept = 0;
  /// Any thread: ends watch_sleep().
  virtual void end_watch() noexcept = 0;

  /// Any thread of this process: ends both sleeps.
  virtual void ring() noexcept = 0;

  /// A descriptor that is readable when something came while the source was armed; -1 when there is none, which is so
  /// for what sleeps on a futex. For epoll; the source keeps it.
  virtual int descriptor() const noexcept { return -1; }
};

/// Sleeps as WakeSource::sleep does, on all of them: `sources` are of ports of one process, and armed. Short naps
/// where some have words and some descriptors, or `other` is to end a sleep on descriptors.
bool sleep_on_any(std::span<WakeSource* const> sources, std::chrono::nanoseconds limit, WaitWord other,
                  const Look& look);

}  // namespace ulfm
