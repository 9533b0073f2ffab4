// Descriptors that peers may ask for by number, over the control channel.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "job/control/control.hpp"

namespace ulfm::direct {

/// Any thread.
class PassedDescriptors {
 public:
  explicit PassedDescriptors(std::uint32_t first) : next_(first) {}
  /// From now on peers can ask for a duplicate of `fd`, by the number that this returns.
  std::uint32_t add(int fd) {
    std::lock_guard lock(mutex_);
    fds_[next_] = fd;
    return next_++;
  }
  /// Nobody duplicates it any more when this returns, so it can be closed.
  void remove(std::uint32_t what) noexcept {
    std::lock_guard lock(mutex_);
    fds_.erase(what);
  }
  /// Empty when there is no such number.
  control::Fd duplicate(std::uint32_t what);

 private:
  std::mutex mutex_;
  std::map<std::uint32_t, int> fds_;
  std::uint32_t next_;
};

}  // namespace ulfm::direct
