// What ends a sleep when a frame has come: the contract of transports has one to each inlet.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/doorbell.hpp"

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
  /// The same, and room ends it too; short naps where the source cannot sleep on both.
  virtual bool sleep(std::chrono::nanoseconds limit, RoomBell& room) noexcept {
    (void)room;
    return sleep(std::min<std::chrono::nanoseconds>(limit, kShortNap));
  }
  /// The same, and a ring of `bell`, which the owner has armed too, ends it.
  virtual bool sleep(std::chrono::nanoseconds limit, Doorbell& bell) noexcept {
    (void)bell;
    return sleep(std::min<std::chrono::nanoseconds>(limit, kShortNap));
  }
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

/// A doorbell as a wake-up source.
class DoorbellSource final : public WakeSource {
 public:
  DoorbellSource() = default;
  explicit DoorbellSource(Doorbell& bell) noexcept : bell_(&bell) {}

  void arm() noexcept override { bell_->arm(); }
  void cancel() noexcept override { bell_->cancel(); }
  bool sleep(std::chrono::nanoseconds limit) noexcept override { return bell_->sleep(limit); }
  bool sleep(std::chrono::nanoseconds limit, RoomBell& room) noexcept override { return bell_->sleep(limit, room); }
  bool sleep(std::chrono::nanoseconds limit, Doorbell& bell) noexcept override { return bell_->sleep(limit, bell); }
  void expect_many_sleeps() noexcept override { bell_->expect_many_sleeps(); }
  void watch() noexcept override { bell_->watch(); }
  bool watch_sleep(std::chrono::nanoseconds limit) noexcept override { return bell_->watch_sleep(limit); }
  void end_watch() noexcept override { bell_->end_watch(); }
  void ring() noexcept override { bell_->ring(); }

 private:
  Doorbell* bell_ = nullptr;
};

}  // namespace ulfm
