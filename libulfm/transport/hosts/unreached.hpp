// Who could not be reached a moment ago.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

#include "transport/contract.hpp"

namespace ulfm::hosts {

/// An attempt to connect with a host that is silent takes seconds, and one with a process that has ended some turns of
/// a wait. A message that is sent there makes several, one for each way to send it, and so does who answers what the
/// dead have asked: those behind the first fail with the same error, without a wait. So do those that follow when the
/// host of a connection that was up is given up. Any thread.
class Unreached {
 public:
  using Clock = std::chrono::steady_clock;

  /// The error of such an attempt that has ended within the last second.
  std::optional<Error> error(std::uint64_t process, std::uint16_t port, Clock::time_point now) {
    std::lock_guard lock(mutex_);
    std::erase_if(all_, [now](const One& one) { return now - one.ended >= kKept; });
    const auto is_it = [&](const One& one) {
      return one.process == process && (one.port == port || one.is_silent || one.why.code == Errc::peer_failed);
    };
    const auto found = std::find_if(all_.begin(), all_.end(), is_it);
    return found == all_.end() ? std::nullopt : std::optional(found->why);
  }

  /// An attempt that began at `begun` has failed. Without memory to note it, the next one takes its time again.
  void note(std::uint64_t process, std::uint16_t port, Clock::time_point begun, Clock::time_point now,
            const Error& why) noexcept try {
    if (now - begun < kLong && why.code != Errc::peer_failed) return;
    std::lock_guard lock(mutex_);
    all_.push_back({process, port, now, false, why});
  } catch (const std::bad_alloc&) {
  }

  /// The host of that process has been given up. It may live: that is another error than that of one that has ended.
  void note_silent(std::uint64_t process, Clock::time_point now, const Error& why) noexcept try {
    std::lock_guard lock(mutex_);
    all_.push_back({process, 0, now, true, {Errc::unavailable, why.what}});
  } catch (const std::bad_alloc&) {
  }

  /// It has been heard of.
  void forget(std::uint64_t process) noexcept {
    std::lock_guard lock(mutex_);
    std::erase_if(all_, [process](const One& one) { return one.process == process; });
  }

 private:
  static constexpr std::chrono::milliseconds kLong{100}, kKept{1000};
  struct One {
    std::uint64_t process;
    std::uint16_t port;
    Clock::time_point ended;
    bool is_silent;
    Error why;
  };
  std::mutex mutex_;
  std::vector<One> all_;
};

}  // namespace ulfm::hosts
