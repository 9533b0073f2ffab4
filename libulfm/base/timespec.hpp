// Times as system calls take them.
#pragma once

#include <chrono>
#include <ctime>

namespace ulfm {

/// `time` is not negative.
constexpr timespec timespec_of(std::chrono::nanoseconds time) noexcept {
  return {static_cast<time_t>(time.count() / 1'000'000'000), static_cast<long>(time.count() % 1'000'000'000)};
}

}  // namespace ulfm
