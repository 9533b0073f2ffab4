#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>

#include <nlohmann/json.hpp>
#include <ulfm/ulfm.h>

namespace perf {
namespace {

bool is_count(const std::string& column) { return column == "size"; }

void print_table(const Results& results) {
  std::printf("# %s, ulfm_perf %s\n", results.title.c_str(), ulfm_version());
  if (results.rows.empty()) return;
  std::printf("#");
  bool first = true;
  for (const auto& [name, value] : results.rows.front().columns) {
    std::printf(first ? " %-11s" : "%16s", name.c_str());
    first = false;
  }
  std::printf("\n");
  for (const Row& row : results.rows) {
    first = true;
    for (const auto& [name, value] : row.columns) {
      if (is_count(name)) std::printf("%-13.0f", value);
      else std::printf(first ? "  %-11.3f" : value >= 1e5 ? "%16.0f" : "%16.3f", value);
      first = false;
    }
    std::printf("\n");
  }
}

void print_csv(const Results& results) {
  if (results.rows.empty()) return;
  std::string line;
  for (const auto& [name, value] : results.rows.front().columns) line += (line.empty() ? "" : ",") + name;
  std::printf("%s\n", line.c_str());
  for (const Row& row : results.rows) {
    for (std::size_t i = 0; i < row.columns.size(); ++i)
      std::printf(is_count(row.columns[i].first) ? "%s%.0f" : "%s%.6g", i == 0 ? "" : ",", row.columns[i].second);
    std::printf("\n");
  }
}

void print_json(const Results& results, const Options& options) {
  nlohmann::ordered_json out;
  out["test"] = options.test;
  out["version"] = ulfm_version();
  out["rows"] = nlohmann::ordered_json::array();
  for (const Row& row : results.rows) {
    nlohmann::ordered_json one;
    for (const auto& [name, value] : row.columns) {
      if (is_count(name)) one[name] = static_cast<std::uint64_t>(value);
      else one[name] = value;
    }
    out["rows"].push_back(one);
  }
  if (options.test == "floor" && !results.rows.empty()) out["one_way_us"] = results.rows.front().columns.front().second;
  std::cout << out.dump() << "\n";
}

}  // namespace

double percentile(std::vector<double>& samples, double p) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const double at = p / 100 * static_cast<double>(samples.size() - 1);
  return samples[static_cast<std::size_t>(std::lround(at))];
}

void print(const Results& results, const Options& options) {
  switch (options.format) {
    case Format::table: print_table(results); break;
    case Format::csv: print_csv(results); break;
    case Format::json: print_json(results, options); break;
  }
  std::fflush(stdout);
}

}  // namespace perf
