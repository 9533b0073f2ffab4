// Rings when a descriptor becomes readable: for a process that sleeps on a doorbell and waits for descriptors too.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "base/error.hpp"
#include "base/wake_source.hpp"
#include "job/control/socket.hpp"

namespace ulfm {

/// One thread for all descriptors of a process. A descriptor is looked at only once it is armed, and once: while nobody
/// sleeps, arrivals cost nothing here.
class Ringer {
 public:
  static Result<std::shared_ptr<Ringer>> create();
  ~Ringer();

  /// From now on arm(the number returned) has `source` rung when `descriptor` is readable. 0: there is no descriptor
  /// left.
  std::uint64_t add(int descriptor, WakeSource& source);
  /// After this the source is not touched any more.
  void remove(std::uint64_t number);
  void arm(std::uint64_t number) noexcept;

 private:
  struct Entry {
    control::Fd descriptor;  // a duplicate: several may wait on one
    WakeSource* source;
  };
  Ringer() = default;
  void serve();

  control::Fd set_, stop_;
  std::mutex lock_;
  std::map<std::uint64_t, Entry> entries_;
  std::uint64_t next_ = 1;
  std::thread thread_;
};

}  // namespace ulfm
