#include "collect.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/core.h>

#include "../common/statistics.hpp"
#include "failure.hpp"
#include "hosts.hpp"

namespace ulfmrun {
namespace {

constexpr std::uint32_t kSpawned = 64;  // places for processes that those of the job start

void finish(std::FILE* out, const std::string& option, const std::string& file) {
  const bool bad = std::ferror(out) != 0;
  if (std::fclose(out) != 0 || bad) fail(kInstallation, fmt::format("{} {}: {}", option, file, std::strerror(errno)));
}

}  // namespace

std::optional<Collector> Collector::for_job(const CommandLine& line, const ulfm::Config& settings) {
  std::string trace = settings.text("TRACE"), counters = settings.text("STATS_FILE");
  if ((trace.empty() && counters.empty()) || !only_this_host(line)) return std::nullopt;
  auto record = ulfm::record::JobRecord::create(static_cast<std::uint32_t>(line.processes + line.cube) + kSpawned,
                                                !trace.empty());
  if (!record) fail(kInstallation, record.error().what);
  return Collector(std::move(*record), std::move(trace), std::move(counters));
}

void Collector::write() const {
  if (!trace_.empty()) write_trace(record_, trace_);
  if (!counters_.empty()) write_counters(record_, counters_);
}

// In a folder where others may write, such as /tmp, neither their links nor their files are written to.
std::FILE* make_result_file(const std::string& option, const std::string& file) {
  const auto make = [&] { return open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600); };
  int fd = make();
  struct stat old {};
  if (fd < 0 && errno == EEXIST) {
    const bool ours = lstat(file.c_str(), &old) == 0 && S_ISREG(old.st_mode) && old.st_uid == geteuid();
    if (!ours) fail(kInstallation, fmt::format("{} {}: it is there already and no file of yours", option, file));
    if (unlink(file.c_str()) == 0) fd = make();
  }
  std::FILE* out = fd < 0 ? nullptr : fdopen(fd, "w");
  if (out == nullptr) fail(kInstallation, fmt::format("{} {}: {}", option, file, std::strerror(errno)));
  return out;
}

void write_counters(const ulfm::record::JobRecord& record, const std::string& file) {
  std::vector<tools::CounterLine> lines;
  for (std::uint32_t i = 0; i < record.places(); ++i) {
    const ulfm::record::Place* place = record.place(i);
    if (place == nullptr) continue;
    const std::size_t size =
        std::min<std::size_t>(place->text.load(std::memory_order_acquire), ulfm::record::kMostText);
    const auto of_place = tools::read_counters({place->counters.data(), size});
    lines.insert(lines.end(), of_place.begin(), of_place.end());
  }
  std::vector<tools::Table> tables = tools::tables_of(lines);
  tools::add_totals(tables);
  const tools::Form form = file.ends_with(".json")  ? tools::Form::json
                           : file.ends_with(".csv") ? tools::Form::csv
                                                    : tools::Form::text;
  std::FILE* out = make_result_file("--stats-file", file);
  std::fputs(tools::render(tables, form).c_str(), out);
  finish(out, "--stats-file", file);
}

}  // namespace ulfmrun
