// ulfm_stat: counters of an emulated interconnect while programs run over it.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>

#include <ulfm/ulfm.h>
#include <CLI/CLI.hpp>

#include "../common/command_line.hpp"
#include "fabric/engine/observer.hpp"

namespace {

using ulfm::fabric::Observer;
using ulfm::fabric::RunningFabric;

struct Options {
  std::int32_t pid = 0;
  double interval = 0;
  std::uint32_t count = 0;
  bool list = false;
};

int complain(const std::string& text) {
  std::fprintf(stderr, "ulfm_stat: %s\n", text.c_str());
  return 1;
}

std::string listed(const std::vector<RunningFabric>& all) {
  std::string text;
  for (const RunningFabric& fabric : all)
    text += std::to_string(fabric.pid) + "  " + fabric.title + ", " + std::to_string(fabric.processes) + " processes\n";
  return text;
}

std::optional<RunningFabric> choose(const std::vector<RunningFabric>& all, const Options& options) {
  if (options.pid == 0 && all.size() == 1) return all.front();
  for (const RunningFabric& fabric : all)
    if (fabric.pid == options.pid) return fabric;
  if (all.empty())
    complain(
        "no job of this user runs over an emulated interconnect; start one: ulfmrun --transport xswitch -n 4 PROGRAM");
  else if (options.pid == 0) complain("several jobs run; say which, by its number:\n" + listed(all));
  else
    complain("process " + std::to_string(options.pid) + " holds no emulated interconnect; these do:\n" + listed(all));
  return std::nullopt;
}

// Without the mark that a program's own output needs to be told from them.
void print(const std::string& statistics) {
  static const std::string mark = "ulfm: stats ";
  for (std::size_t at = 0; at < statistics.size();) {
    const std::size_t end = statistics.find('\n', at);
    std::string line = statistics.substr(at, end - at);
    if (line.starts_with(mark)) line.erase(0, mark.size());
    std::puts(line.c_str());
    at = end == std::string::npos ? statistics.size() : end + 1;
  }
  std::fflush(stdout);
}

int watch(Observer& observer, const RunningFabric& fabric, const Options& options) {
  const std::uint32_t rounds = options.interval == 0 ? 1 : options.count;
  for (std::uint32_t i = 0; rounds == 0 || i < rounds; ++i) {
    if (i > 0) {
      std::this_thread::sleep_for(std::chrono::duration<double>(options.interval));
      if (!observer.is_running()) return 0;
      std::puts("");
    }
    auto statistics = observer.statistics();
    if (!statistics) return complain(statistics.error().what);
    std::printf("%s, process %d\n", fabric.title.c_str(), fabric.pid);
    print(*statistics);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Shows the counters of an emulated interconnect while programs run over it", "ulfm_stat"};
  Options options;
  app.set_version_flag("--version", std::string("ulfm_stat ") + ulfm_version());
  app.add_option("PID", options.pid, "the job, by the process that ulfmrun has become; not needed when only one runs");
  app.add_flag("-l,--list", options.list, "the jobs that can be looked at");
  auto* interval =
      app.add_option("-i,--interval", options.interval, "seconds between two readings; once when not given")
          ->check(CLI::Range(0.01, 86400.0));
  app.add_option("-c,--count", options.count, "readings; until the job ends when not given")
      ->needs(interval)
      ->check(CLI::PositiveNumber);
  app.footer(
      "Example: ulfm_stat -i 1 -c 10\n"
      "Exit code: 1 when there is no job to look at, 2 for a wrong command line.\n"
      "Manual: ulfm_stat(1).");
  if (const auto code = tools::parse(app, argc, argv)) return *code;
  const auto all = ulfm::fabric::running_fabrics();
  if (options.list) {
    std::fputs(listed(all).c_str(), stdout);
    return 0;
  }
  const auto fabric = choose(all, options);
  if (!fabric) return 1;
  auto observer = Observer::open(*fabric);
  if (!observer) return complain(observer.error().what);
  return watch(*observer, *fabric, options);
}
