// Results, and how they are printed.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "options.hpp"

namespace perf {

/// A column that a row has nothing for: "-" in a table, empty in CSV, null in JSON.
inline constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

struct Quartiles {
  double first = 0, third = 0;
};

/// One value with its name. Quartiles stand behind a median in parentheses, in CSV as NAME_q1 and NAME_q3, in JSON as
/// NAME_quartiles.
struct Column {
  std::string name;
  std::variant<double, std::string> value;
  std::optional<Quartiles> quartiles = {};
};

/// A line of results: named columns in order. A whole number is kept as one.
struct Row {
  std::vector<Column> columns;
};

struct Results {
  std::string title;
  std::vector<Row> rows;
  std::vector<std::string> doubts;  ///< why the figures cannot be trusted; none when they can
  std::string left_out = {};        ///< what there was no time for; "" when there was for all
};

/// Prints: a two-column table in the manner of the OSU benchmarks (with percentiles behind), CSV or JSON.
void print(const Results& results, const Options& options);

/// The p-th percentile (0..100) of the samples; they are sorted here.
double percentile(std::vector<double>& samples, double p);

/// Median and quartiles of the samples; they are sorted here.
Column median_column(std::string name, std::vector<double>& samples);

}  // namespace perf
