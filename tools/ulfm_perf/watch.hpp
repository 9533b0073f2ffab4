// What a long measurement says meanwhile, and whether its figures can be trusted. All on standard error.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "options.hpp"

namespace perf {

/// One to a measurement, in the process that reports.
class Watch {
 public:
  explicit Watch(const Options& options);
  ~Watch();

  /// `done` of `all` parts are through; `next` is what comes now, such as "64 bytes". A bar on a terminal; elsewhere a
  /// line every ten seconds.
  void progress(std::size_t done, std::size_t all, const std::string& next);
  /// Sentences about why the figures cannot be trusted, for all that ran since the beginning; none when they can.
  std::vector<std::string> doubts() const;

 private:
  using Clock = std::chrono::steady_clock;
  const Options& options_;
  const bool terminal_;
  const double load_;  // before this began
  const long preempted_;
  const Clock::time_point began_ = Clock::now();
  Clock::time_point said_ = began_;
  bool bar_ = false;
};

/// Prints the doubts.
void print_doubts(const std::vector<std::string>& doubts);

}  // namespace perf
