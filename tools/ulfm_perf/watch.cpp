#include "watch.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <fmt/core.h>

#include "base/wait.hpp"

namespace perf {
namespace {

constexpr std::chrono::seconds kQuiet{10};           // where nobody watches a bar
constexpr std::chrono::milliseconds kFirstBar{700};  // short measurements show none
constexpr double kOtherLoad = 0.7;                   // processes that run besides, on average of the last minute
constexpr double kPreemptions = 20;                  // a second; a process that has its core is hardly ever interrupted

double load_average() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0;
}

long preemptions() {
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

std::string fixed(double value) { return fmt::format("{:.1f}", value); }

}  // namespace

Watch::Watch(const Options& options)
    : options_(options), terminal_(isatty(STDERR_FILENO) == 1), load_(load_average()), preempted_(preemptions()) {}

Watch::~Watch() {
  if (bar_) std::fputs("\r\033[K", stderr);
}

void Watch::progress(std::size_t done, std::size_t all, const std::string& next) {
  const auto now = Clock::now();
  if (terminal_) {
    if (now - began_ < kFirstBar) return;
    constexpr std::size_t kWidth = 30;
    const std::size_t full = all == 0 ? 0 : kWidth * done / all;
    std::fprintf(stderr, "\r[%s%s] %zu/%zu %s\033[K", std::string(full, '#').c_str(),
                 std::string(kWidth - full, '.').c_str(), done, all, next.c_str());
    std::fflush(stderr);
    bar_ = true;
  } else if (now - said_ >= kQuiet) {
    std::fprintf(stderr, "ulfm_perf: %s: %zu of %zu done after %.0f s, now %s\n", options_.test.c_str(), done, all,
                 std::chrono::duration<double>(now - began_).count(), next.c_str());
    said_ = now;
  }
}

std::vector<std::string> Watch::doubts() const {
  std::vector<std::string> all;
  const int cores = ulfm::usable_cores();
  if (cores < 2 || (options_.bind.size() == 2 && options_.bind[0] == options_.bind[1]))
    all.push_back("both sides share one core, and take turns on it");
  if (load_ > kOtherLoad)
    all.push_back(fmt::format("the load average was {} before this began: other programs run on these {} cores",
                              fixed(load_), cores));
  const double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
  const double rate = static_cast<double>(preemptions() - preempted_) / std::max(seconds, 0.1);
  if (rate > kPreemptions)
    all.push_back(fmt::format("the measuring process lost its core to others {} times a second", fixed(rate)));
  return all;
}

void print_doubts(const std::vector<std::string>& doubts) {
  for (const std::string& doubt : doubts)
    std::fprintf(stderr, "ulfm_perf: warning: %s; do not trust the figures\n", doubt.c_str());
}

}  // namespace perf
