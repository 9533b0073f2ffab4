#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>

#include <fmt/core.h>
#include <ulfm/ulfm.h>
#include <nlohmann/json.hpp>

#include "watch.hpp"

namespace perf {
namespace {

bool is_count(const std::string& column) { return column == "size"; }

// ---- table ----------------------------------------------------------------------------------------------------------

std::string cell(const Column& column) {
  if (const auto* word = std::get_if<std::string>(&column.value)) return *word;
  const double value = std::get<double>(column.value);
  if (std::isnan(value)) return "-";
  if (is_count(column.name) || value >= 1e5) return fmt::format("{:.0f}", value);
  if (!column.quartiles) return fmt::format("{:.3f}", value);
  return fmt::format("{:.3f} ({:.3f}-{:.3f})", value, column.quartiles->first, column.quartiles->third);
}

// Columns are alike wide, except for those with quartiles, which are as wide as they must be.
int width(const Results& results, std::size_t i) {
  const bool wide = std::any_of(results.rows.front().columns.begin(), results.rows.front().columns.end(),
                                [](const Column& c) { return c.quartiles.has_value(); });
  std::size_t most = wide ? results.rows.front().columns[i].name.size() + 2 : 16;
  for (const Row& row : results.rows)
    if (wide) most = std::max(most, cell(row.columns[i]).size() + 2);
  return static_cast<int>(most);
}

void print_line(const Results& results, const char* begin, const Row& row, std::string (*show)(const Column&)) {
  std::printf("%s%-11s", begin, show(row.columns.front()).c_str());
  for (std::size_t i = 1; i < row.columns.size(); ++i)
    std::printf("%*s", width(results, i), show(row.columns[i]).c_str());
  std::printf("\n");
}

void print_table(const Results& results) {
  std::printf("# %s, ulfm_perf %s\n", results.title.c_str(), ulfm_version());
  if (results.rows.empty()) return;
  print_line(results, "# ", results.rows.front(), [](const Column& c) { return c.name; });
  for (const Row& row : results.rows) print_line(results, is_count(row.columns.front().name) ? "" : "  ", row, cell);
}

// ---- CSV ------------------------------------------------------------------------------------------------------------

std::string csv_number(double value, bool count = false) {
  return std::isnan(value) ? "" : count ? fmt::format("{:.0f}", value) : fmt::format("{:.6g}", value);
}

std::string csv_value(const Column& column) {
  if (const auto* word = std::get_if<std::string>(&column.value)) return *word;
  std::string all = csv_number(std::get<double>(column.value), is_count(column.name));
  if (const auto& q = column.quartiles) all += fmt::format(",{},{}", csv_number(q->first), csv_number(q->third));
  return all;
}

std::string csv_name(const Column& column) {
  return column.quartiles ? fmt::format("{},{}_q1,{}_q3", column.name, column.name, column.name) : column.name;
}

void print_csv_line(const Row& row, std::string (*show)(const Column&)) {
  std::string line;
  for (const Column& column : row.columns) line += (&column == row.columns.data() ? "" : ",") + show(column);
  std::printf("%s\n", line.c_str());
}

void print_csv(const Results& results) {
  if (results.rows.empty()) return;
  print_csv_line(results.rows.front(), csv_name);
  for (const Row& row : results.rows) print_csv_line(row, csv_value);
}

// ---- JSON -----------------------------------------------------------------------------------------------------------

nlohmann::ordered_json json_value(const Column& column) {
  if (const auto* word = std::get_if<std::string>(&column.value)) return *word;
  const double value = std::get<double>(column.value);
  if (std::isnan(value)) return nullptr;
  if (is_count(column.name)) return static_cast<std::uint64_t>(value);
  return value;
}

void print_json(const Results& results, const Options& options) {
  nlohmann::ordered_json out;
  out["test"] = options.test;
  out["version"] = ulfm_version();
  out["rows"] = nlohmann::ordered_json::array();
  for (const Row& row : results.rows) {
    nlohmann::ordered_json one;
    for (const Column& column : row.columns) {
      one[column.name] = json_value(column);
      if (column.quartiles)
        one[fmt::format("{}_quartiles", column.name)] = {column.quartiles->first, column.quartiles->third};
    }
    out["rows"].push_back(one);
  }
  if (!results.doubts.empty()) out["warnings"] = results.doubts;
  if (!results.left_out.empty()) out["left_out"] = results.left_out;
  if (options.test == "floor" && !results.rows.empty())
    out["one_way_us"] = json_value(results.rows.front().columns.front());
  std::cout << out.dump() << "\n";
}

}  // namespace

double percentile(std::vector<double>& samples, double p) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const double at = p / 100 * static_cast<double>(samples.size() - 1);
  return samples[static_cast<std::size_t>(std::lround(at))];
}

Column median_column(std::string name, std::vector<double>& samples) {
  return {std::move(name), percentile(samples, 50), Quartiles{percentile(samples, 25), percentile(samples, 75)}};
}

void print(const Results& results, const Options& options) {
  switch (options.format) {
    case Format::table: print_table(results); break;
    case Format::csv: print_csv(results); break;
    case Format::json: print_json(results, options); break;
  }
  std::fflush(stdout);
  print_doubts(results.doubts);
  if (!results.left_out.empty()) std::fprintf(stderr, "ulfm_perf: %s\n", results.left_out.c_str());
}

}  // namespace perf
