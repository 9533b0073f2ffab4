// What lies between two calls of a program: its computing, measured or as it was asked for.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <set>

#include <fmt/core.h>

#include "base/last_words.hpp"
#include "fabric/engine/clock.hpp"

namespace ulfm::fabric {
namespace {

using File = std::unique_ptr<FILE, int (*)(FILE*)>;

std::uint64_t processor_time() noexcept {
  timespec now{};
  syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);  // the C library's may be ours, and tell virtual time
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

// What one measurement costs itself, nanoseconds: the least of some.
std::uint64_t cost_of_measuring() noexcept {
  static const std::uint64_t cost = [] {
    std::uint64_t least = ~std::uint64_t{0};
    for (int i = 0; i < 32; ++i) {
      const std::uint64_t before = processor_time();
      least = std::min(least, processor_time() - before);
    }
    return least;
  }();
  return cost;
}

// Of each thread that makes calls: calls within calls, and its processor time in nanoseconds when its program went on.
thread_local int t_depth = 0;
thread_local std::uint64_t t_left_at = 0;
thread_local bool t_calls = false;  // it has made one

std::string name_of_file(const char* stem, std::uint32_t rank) { return fmt::format("{}.{}", stem, rank); }

// What end_gaps() has written: picoseconds, a number on each line. Any other file would be taken for one without gaps.
Result<std::vector<std::uint64_t>> read_gaps(const std::string& name) {
  std::vector<std::uint64_t> gaps;
  const File file(std::fopen(name.c_str(), "r"), std::fclose);
  char line[32];
  while (file && std::fgets(line, sizeof line, file.get()) != nullptr) {
    std::uint64_t gap = 0;
    const auto [end, error] = std::from_chars(line, line + std::strlen(line), gap);
    if (error != std::errc{} || *end != '\n')
      return fail(
          Errc::invalid,
          fmt::format(
              "{} is no recording: line {} is not a number of picoseconds; --time virtual,record=FILE writes one", name,
              gaps.size() + 1));
    gaps.push_back(gap);
  }
  if (!file || std::ferror(file.get()) != 0)
    return fail(Errc::system, fmt::format("{} cannot be read: {}", name, std::strerror(errno)));
  return gaps;
}

}  // namespace

void VirtualClock::begin_gaps() {
  const TimeSettings& settings = time_.settings;
  if (settings.compute == ComputeTime::measured) {
    (void)cost_of_measuring();
    t_left_at = processor_time();
  }
  if (settings.compute != ComputeTime::recorded) return;
  auto gaps = read_gaps(name_of_file(settings.recorded, self_));
  if (!gaps) {
    say_before_the_end(fmt::format("--time compute=recorded: {}", gaps.error().what));
    std::_Exit(1);
  }
  gaps_ = std::move(*gaps);
}

void VirtualClock::end_gaps() noexcept {
  if (time_.settings.compute == ComputeTime::recorded) mine().gaps_left = gaps_.size() - next_gap_;
  if (time_.settings.record[0] == 0) return;
  const std::string name = name_of_file(time_.settings.record, self_);
  const File file(std::fopen(name.c_str(), "w"), std::fclose);
  for (const std::uint64_t gap : gaps_)
    if (file) std::fprintf(file.get(), "%llu\n", static_cast<unsigned long long>(gap));
  if (!file || std::fflush(file.get()) != 0)
    std::fprintf(stderr, "ulfm: --time record: %s cannot be written: %s\n", name.c_str(), std::strerror(errno));
}

void VirtualClock::spend_gap() noexcept {
  const TimeSettings& settings = time_.settings;
  std::uint64_t gap = 0;  // picoseconds
  switch (settings.compute) {
    case ComputeTime::none: return;
    case ComputeTime::fixed: gap = settings.fixed; break;
    case ComputeTime::recorded: {
      std::lock_guard lock(gaps_lock_);
      if (next_gap_ < gaps_.size()) gap = gaps_[next_gap_++];
      else ++mine().gaps_missed;
      break;
    }
    case ComputeTime::measured: {
      const std::uint64_t used = processor_time() - t_left_at;
      const std::uint64_t own = used - std::min(used, cost_of_measuring());
      const double scaled = static_cast<double>(own) * static_cast<double>(settings.factor) * 1e-3;
      gap = scaled < static_cast<double>(kNoMoment) ? static_cast<std::uint64_t>(scaled) : kNoMoment;
    }
  }
  if (settings.record[0] != 0) {
    std::lock_guard lock(gaps_lock_);
    gaps_.push_back(gap);
  }
  spend(gap, Spent::computing);
}

void VirtualClock::enter(const char* call) noexcept {
  t_calls = true;
  if (t_depth++ != 0) return;
  std::snprintf(mine().call, sizeof ProcessClock::call, "%s", call);
  spend_gap();
}

void VirtualClock::leave() noexcept {
  if (t_depth != 0 && --t_depth != 0) return;  // 0: the call in which the clock was made
  if (time_.settings.compute == ComputeTime::measured) t_left_at = processor_time();
}

bool VirtualClock::outside() const noexcept { return t_calls && t_depth == 0; }

// ---- what --time says -----------------------------------------------------------------------------------------------

namespace {

bool take_number(std::string_view text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value >= 0 && value <= 1e12;
}

// Absolute: ranks may run in another directory.
Result<void> take_file(std::string_view given, char (&to)[256]) {
  const std::string text = given.empty() ? "" : std::filesystem::absolute(given).lexically_normal().string();
  if (text.empty() || text.size() >= sizeof to)
    return fail(Errc::invalid, fmt::format("a file's name of 1 to 255 characters is needed; found \"{}\"", text));
  text.copy(to, text.size());
  to[text.size()] = 0;
  return {};
}

Result<void> take_compute(std::string_view text, TimeSettings& settings) {
  const std::string_view word = text.substr(0, text.find(':'));
  const std::string_view rest = text.substr(std::min(text.size(), word.size() + 1));
  double number = 0;
  if (text == "none") settings.compute = ComputeTime::none;
  else if (text == "measured") settings.compute = ComputeTime::measured;
  else if (word == "fixed" && take_number(rest, number)) {
    settings.compute = ComputeTime::fixed;
    settings.fixed = static_cast<std::uint64_t>(number * 1000);
  } else if (word == "recorded") {
    settings.compute = ComputeTime::recorded;
    return take_file(rest, settings.recorded);
  } else {
    return fail(Errc::invalid,
                fmt::format("compute is measured, none, fixed:NANOSECONDS or recorded:FILE; found \"{}\"", text));
  }
  return {};
}

}  // namespace

std::string progress_thread_trouble() {
  for (const char* name : {"MPIR_CVAR_ASYNC_PROGRESS", "MPICH_ASYNC_PROGRESS"}) {
    const char* value = std::getenv(name);
    if (value != nullptr &&
        std::string_view("1 yes Yes YES true True TRUE on On ON").find(value) != std::string::npos && *value != 0)
      return fmt::format(
          "{}={}: threads that make progress by themselves work by the host's time; leave it out with --time virtual",
          name, value);
  }
  return {};
}

namespace {

// What would have no effect is refused.
Result<void> check_together(const TimeSettings& settings, bool has_factor) {
  if (has_factor && settings.compute != ComputeTime::measured)
    return fail(Errc::invalid, "cpu= scales computing that is measured; leave it out with another compute=");
  if (settings.record[0] == 0 || settings.compute == ComputeTime::measured || settings.compute == ComputeTime::fixed)
    return {};
  return fail(Errc::invalid,
              settings.compute == ComputeTime::none
                  ? "record= writes what a run computes; with compute=none that is nothing"
                  : "record= writes what a run computes; with compute=recorded that is in a file already");
}

}  // namespace

Result<TimeSettings> parse_time(std::string_view text) {
  TimeSettings settings;
  std::set<std::string_view> given;
  const std::string_view kind = text.substr(0, text.find(','));
  if (kind != "virtual") return fail(Errc::invalid, fmt::format("there is \"virtual\" time; found \"{}\"", kind));
  settings.on = 1;
  for (text.remove_prefix(kind.size()); !text.empty();) {
    text.remove_prefix(1);
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(word.size());
    const std::string_view name = word.substr(0, word.find('='));
    const std::string_view value = word.substr(std::min(word.size(), name.size() + 1));
    double factor = 0;
    Result<void> ok{};
    if (name == "compute") ok = take_compute(value, settings);
    else if (name == "record") ok = take_file(value, settings.record);
    else if (name == "cpu" && take_number(value, factor) && factor >= 1e-6)
      settings.factor = static_cast<std::uint64_t>(factor * 1e6);
    else
      ok = fail(Errc::invalid,
                fmt::format(
                    "there are compute=measured|none|fixed:NS|recorded:FILE, cpu=FACTOR and record=FILE; found \"{}\"",
                    word));
    if (ok && !given.insert(name).second) ok = fail(Errc::invalid, fmt::format("{} is given twice", name));
    if (ok && text.empty()) ok = check_together(settings, given.contains("cpu"));
    if (!ok) return fail(ok.error());
  }
  return settings;
}

}  // namespace ulfm::fabric
