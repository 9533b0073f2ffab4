#include "job/stall.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>

#include <fmt/core.h>

namespace ulfm {
namespace {

std::atomic<std::uint32_t> asked{0};  // times SIGUSR2 has come; read relaxed: it orders nothing

void on_signal(int) { asked.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

void StallWatch::begin() noexcept {
  struct sigaction before {};
  if (sigaction(SIGUSR2, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) return;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR2, &action, nullptr);
}

StallWatch::StallWatch(std::int64_t seconds) noexcept
    : first_(seconds), next_(seconds), asked_(asked.load(std::memory_order_relaxed)) {}

bool StallWatch::due(Clock::time_point since, Clock::time_point now) noexcept {
  if (const std::uint32_t times = asked.load(std::memory_order_relaxed); times != asked_) {
    asked_ = times;
    return true;
  }
  if (first_.count() == 0 || now - since < next_) return false;
  next_ *= 2;
  return true;
}

void StallWatch::reset() noexcept { next_ = first_; }

std::string stall_time(StallWatch::Clock::duration time) {
  return fmt::format("{:.1f} s", std::chrono::duration<double>(time).count());
}

void write_stall_report(const std::string& text) noexcept { (void)!write(STDERR_FILENO, text.data(), text.size()); }

}  // namespace ulfm
