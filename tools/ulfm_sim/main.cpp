// ulfm_sim: interconnects under synthetic load, without a program around them.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>

#include <fmt/core.h>

#include "../common/command_line.hpp"
#include "../common/output.hpp"
#include "base/counted.hpp"
#include "base/standard_streams.hpp"
#include "options.hpp"
#include "report.hpp"

namespace {

int complain(int code, const std::string& text) {
  std::fprintf(stderr, "ulfm_sim: %s\n", text.c_str());
  return code;
}

int exit_code(const ulfm::Error& error) { return error.code == ulfm::Errc::protocol ? 1 : tools::kUsage; }

bool write_file(const std::string& path, const std::string& text) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  bool good = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr) good = std::fclose(file) == 0 && good;
  if (!good) complain(1, fmt::format("{}: cannot be written: {}", path, std::strerror(errno)));
  return good;
}

/// A line that is written over, on a terminal only.
class Progress {
 public:
  explicit Progress(bool quiet) : shown_(!quiet && isatty(2) != 0) {}
  void operator()(std::size_t done, std::size_t of) {
    if (!shown_ || of < 2) return;
    const std::lock_guard lock(mutex_);
    constexpr std::size_t kWidth = 40;
    const std::size_t full = done * kWidth / of;
    std::fprintf(stderr, "\r[%s%s] %zu of %zu points", std::string(full, '#').c_str(),
                 std::string(kWidth - full, ' ').c_str(), done, of);
    if (done == of) std::fprintf(stderr, "\r%*s\r", static_cast<int>(kWidth) + 40, "");
  }

 private:
  bool shown_;
  std::mutex mutex_;
};

int warn_of_unsettled(const sim::Curves& curves, const sim::Options& options) {
  std::size_t points = 0;
  std::string first;
  for (const auto& curve : curves)
    for (const sim::Row& row : curve->rows) {
      if (row.settled) continue;
      ++points;
      if (first.empty()) first = fmt::format("{} at a rate of {}: {}", curve->label, row.offered, row.why);
    }
  if (points == 0) return 0;
  if (!options.quiet)
    complain(0, fmt::format("{} did not settle; the first{}{}. Their latency depends on --measure.",
                            ulfm::counted(points, "point"), first[0] == ' ' ? "" : " is ", first));
  return options.strict ? sim::kUnsettled : 0;
}

int run_load(const sim::Options& options) {
  auto curves = sim::make_curves(options);
  if (!curves) return complain(exit_code(curves.error()), curves.error().what);
  Progress progress(options.quiet);
  const auto report = [&](std::size_t done, std::size_t of) { progress(done, of); };
  if (auto ok = sim::simulate(*curves, options, report); !ok) return complain(exit_code(ok.error()), ok.error().what);
  const std::string text = options.json  ? sim::json_of(*curves, options)
                           : options.csv ? sim::csv_of(*curves)
                                         : sim::table_of(*curves, options);
  if (!options.svg.empty() && !write_file(options.svg, sim::svg_of(*curves))) return 1;
  if (!options.links.empty()) {
    const auto picture = sim::links_of(*curves->back());
    if (!picture) return complain(exit_code(picture.error()), picture.error().what);
    if (!write_file(options.links, *picture)) return 1;
  }
  if (tools::print("ulfm_sim", text) != 0) return 1;
  return warn_of_unsettled(*curves, options);
}

}  // namespace

int main(int argc, char** argv) {
  ulfm::reserve_standard_streams();
  sim::Options options;
  if (const auto code = sim::read_command_line(argc, argv, options)) return *code;
  if (options.command == "load") return run_load(options);
  const auto zero = sim::run_zero(options);
  if (!zero) return complain(exit_code(zero.error()), zero.error().what);
  if (tools::print("ulfm_sim", zero->text) != 0) return 1;
  return zero->differ == 0 ? 0 : complain(1, "the model and its closed form differ");
}
