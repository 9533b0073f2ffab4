// The wake-up source of transports through memory.
#pragma once

#include <chrono>

#include "base/doorbell.hpp"
#include "base/wait_word.hpp"
#include "base/wake_source.hpp"

namespace ulfm {

/// A doorbell as a wake-up source.
class DoorbellSource final : public WakeSource {
 public:
  DoorbellSource() = default;
  explicit DoorbellSource(Doorbell& bell) noexcept : bell_(&bell) {}

  void arm() noexcept override { bell_->arm(); }
  void cancel() noexcept override { bell_->cancel(); }
  bool sleep(std::chrono::nanoseconds limit) noexcept override { return bell_->sleep(limit); }
  bool sleep(std::chrono::nanoseconds limit, WaitWord other, const Look& look) override {
    return bell_->sleep(limit, other, look);
  }
  WaitWord await() noexcept override { return bell_->word(); }
  void expect_many_sleeps() noexcept override { bell_->expect_many_sleeps(); }
  void watch() noexcept override { bell_->watch(); }
  bool watch_sleep(std::chrono::nanoseconds limit) noexcept override { return bell_->watch_sleep(limit); }
  void end_watch() noexcept override { bell_->end_watch(); }
  void ring() noexcept override { bell_->ring(); }

 private:
  Doorbell* bell_ = nullptr;
};

}  // namespace ulfm
