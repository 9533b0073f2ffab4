// ulfm_stat: counters of an emulated interconnect while programs run over it.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>

#include <fmt/core.h>
#include <ulfm/ulfm.h>
#include <CLI/CLI.hpp>

#include "../common/command_line.hpp"
#include "../common/output.hpp"
#include "../common/statistics.hpp"
#include "base/counted.hpp"
#include "base/standard_streams.hpp"
#include "fabric/engine/observer.hpp"
#include "reading.hpp"

namespace {

using ulfm::fabric::Observer;
using ulfm::fabric::RunningFabric;

struct Options {
  std::int32_t pid = 0;
  double interval = 0;
  std::uint32_t count = 0;
  bool list = false;
  bool lines = false;   ///< as ULFM_STATS=1 has them
  bool totals = false;  ///< beside rates
  std::string sort;
  std::uint32_t top = 0;
  tools::Form form = tools::Form::text;
};

int complain(const std::string& text) {
  std::fprintf(stderr, "ulfm_stat: %s\n", text.c_str());
  return 1;
}

std::string processes_of(const RunningFabric& fabric) {
  return ulfm::counted(fabric.processes, "process", "processes");
}

std::string listed(const std::vector<RunningFabric>& all) {
  std::string text;
  for (const RunningFabric& fabric : all)
    text += fmt::format("{}  {}, {}\n", fabric.pid, fabric.title, processes_of(fabric));
  return text;
}

std::optional<RunningFabric> choose(const std::vector<RunningFabric>& all, const Options& options) {
  if (options.pid == 0 && all.size() == 1) return all.front();
  for (const RunningFabric& fabric : all)
    if (fabric.pid == options.pid) return fabric;
  if (all.empty())
    complain(
        "no job of this user runs over an emulated interconnect; start one: ulfmrun --transport xswitch -n 4 PROGRAM");
  else if (options.pid == 0) complain(fmt::format("several jobs run; say which, by its number:\n{}", listed(all)));
  else complain(fmt::format("process {} holds no emulated interconnect; these do:\n{}", options.pid, listed(all)));
  return std::nullopt;
}

// Without the mark that a program's own output needs to be told from them.
void print_lines(const ulfm::fabric::FabricReading& read) {
  static const std::string mark = "ulfm: stats ";
  std::printf("time: %s\n", read.time.c_str());
  for (const auto& card : read.cards) std::puts(stat_tool::card_line(card).c_str());
  const std::string& statistics = read.text;
  for (std::size_t at = 0; at < statistics.size();) {
    const std::size_t end = statistics.find('\n', at);
    std::string line = statistics.substr(at, end - at);
    if (line.starts_with(mark)) line.erase(0, mark.size());
    std::puts(line.c_str());
    at = end == std::string::npos ? statistics.size() : end + 1;
  }
}

std::string fixed(double value) { return fmt::format("{:.3f}", value); }

void print_tables(std::vector<tools::Table> tables, const RunningFabric& fabric, double seconds, tools::Form form) {
  if (form == tools::Form::csv)
    for (tools::Table& table : tables) {
      table.columns.insert(table.columns.begin(), {"seconds", true});
      for (auto& row : table.rows) row.insert(row.begin(), fixed(seconds));
    }
  std::string text = tools::render(tables, form);
  if (form == tools::Form::json) {
    text.pop_back();
    std::printf("{\"interconnect\":\"%s\",\"pid\":%d,\"processes\":%u,\"seconds\":%s,\"tables\":", fabric.title.c_str(),
                fabric.pid, fabric.processes, fixed(seconds).c_str());
    text += "}\n";
  }
  if (form == tools::Form::text)
    std::printf("%s, process %d, %s; %s s of looking\n\n", fabric.title.c_str(), fabric.pid,
                processes_of(fabric).c_str(), fixed(seconds).c_str());
  std::fputs(text.c_str(), stdout);
}

stat_tool::Shape shape_of(const Options& options) {
  stat_tool::Shape shape;
  shape.rates = true;
  // A person sees what happens now, a program can choose.
  shape.totals = options.totals || options.form != tools::Form::text;
  shape.sort = options.sort;
  shape.top = options.top;
  return shape;
}

int watch(Observer& observer, const RunningFabric& fabric, const Options& options) {
  const std::uint32_t rounds = options.interval == 0 ? 1 : options.count;
  const stat_tool::Shape shape = shape_of(options);
  std::optional<stat_tool::Reading> first, before;
  for (std::uint32_t i = 0; rounds == 0 || i < rounds; ++i) {
    if (i > 0) {
      std::this_thread::sleep_for(std::chrono::duration<double>(options.interval));
      if (!observer.is_running()) return 0;
      if (options.form == tools::Form::text) std::puts("");
    }
    const auto read = observer.read();
    if (!read) return complain(read.error().what);
    stat_tool::Reading now = stat_tool::reading_of(*read);
    if (!first) first = now;
    if (options.lines) {
      std::printf("%s, process %d\n", fabric.title.c_str(), fabric.pid);
      print_lines(*read);
    } else {
      auto tables = stat_tool::tables_of(now, before ? &*before : nullptr, shape);
      // A column of rates is there from the second reading on.
      if (!options.sort.empty() && !stat_tool::has_column(tables, options.sort) && !options.sort.ends_with("/s"))
        return complain(fmt::format("--sort: no column is called \"{}\"; there is: {}", options.sort,
                                    stat_tool::column_names(tables))),
               2;
      print_tables(std::move(tables), fabric, std::chrono::duration<double>(now.at - first->at).count(), options.form);
    }
    if (tools::written("ulfm_stat", 0) != 0) return 1;
    before = std::move(now);
  }
  return 0;
}

/// CLI11 takes "nan" for a number within any range.
std::string interval_problem(const std::string& text) {
  return text.find_first_of("nN") == text.npos ? "" : "a number is needed";
}

}  // namespace

int main(int argc, char** argv) {
  ulfm::reserve_standard_streams();
  CLI::App app{"Shows the counters of an emulated interconnect while programs run over it", "ulfm_stat"};
  Options options;
  app.set_version_flag("--version", fmt::format("ulfm_stat {}", ulfm_version()));
  app.add_option("PID", options.pid, "the job, by the process that ulfmrun has become; not needed when only one runs");
  app.add_flag("-l,--list", options.list, "the jobs that can be looked at");
  auto* interval =
      app.add_option("-i,--interval", options.interval, "seconds between two readings; once when not given")
          ->check(CLI::Range(0.01, 86400.0))
          ->check(CLI::Validator(interval_problem, ""));
  app.add_option("-c,--count", options.count, "readings; until the job ends when not given")
      ->needs(interval)
      ->check(CLI::Range(1u, ~0u));
  app.add_option("-s,--sort", options.sort, "rows by this column, largest first, such as \"busy %\"");
  app.add_option("-t,--top", options.top, "so many rows of each table")->check(CLI::Range(1u, ~0u));
  app.add_flag("--totals", options.totals, "with -i: totals since the job began beside what came in a second");
  bool json = false, csv = false;
  auto* json_flag = app.add_flag("--json", json, "a JSON object for each reading");
  auto* csv_flag = app.add_flag("--csv", csv, "comma-separated values")->excludes(json_flag);
  app.add_flag("--lines", options.lines, "the lines of ULFM_STATS=1 as they are")
      ->excludes(json_flag)
      ->excludes(csv_flag);
  app.footer(
      "Examples: ulfm_stat\n"
      "          ulfm_stat -i 1 --sort 'busy %' --top 5\n"
      "Exit code: 1 when there is no job to look at, 2 for a wrong command line.\n"
      "Manual: ulfm_stat(1).");
  if (const auto code = tools::parse(app, argc, argv)) return *code;
  options.form = json ? tools::Form::json : csv ? tools::Form::csv : tools::Form::text;
  const auto all = ulfm::fabric::running_fabrics();
  if (options.list) return tools::print("ulfm_stat", listed(all));
  const auto fabric = choose(all, options);
  if (!fabric) return 1;
  auto observer = Observer::open(*fabric);
  if (!observer) return complain(observer.error().what);
  return watch(*observer, *fabric, options);
}
