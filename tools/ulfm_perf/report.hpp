// Results, and how they are printed.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "options.hpp"

namespace perf {

/// A line of results: named columns in order. A whole number is kept as one.
struct Row {
  std::vector<std::pair<std::string, double>> columns;
};

struct Results {
  std::string title;
  std::vector<Row> rows;
};

/// Prints: a two-column table in the manner of the OSU benchmarks (with percentiles behind), CSV or JSON.
void print(const Results& results, const Options& options);

/// The p-th percentile (0..100) of the samples; they are sorted here.
double percentile(std::vector<double>& samples, double p);

}  // namespace perf
