// Curves: what the command line asks for, simulated.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "load.hpp"
#include "options.hpp"

namespace sim {

/// One curve, with all that it is made of. Not moved once made: the load points into it.
struct Curve {
  std::string label;  ///< what sets it apart from the others; empty when it is the only one
  Setting setting;
  Topology topology;
  std::unique_ptr<Subject> subject;
  std::unique_ptr<Routing> routing;
  Pattern pattern;
  Lengths lengths;
  Timing timing;
  Load load;
  double cycle_ns = 0;
  std::vector<double> rates;
  Bound bound;
  std::vector<Row> rows;
  double saturation = 0;  ///< highest rate that settled in a search; 0: not searched for
};

using Curves = std::vector<std::unique_ptr<Curve>>;

/// The curves that the options ask for, not simulated yet.
Result<Curves> make_curves(const Options& options);

/// As many as asked for, or as there are cores.
unsigned threads_of(const Options& options);

/// Calls `work` for 0 to `count` - 1, on that many threads.
void in_parallel(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work);

/// Simulates all points of all curves, and searches for saturation when asked to. `progress` hears of each point done,
/// from any thread.
Result<void> simulate(Curves& curves, const Options& options,
                      const std::function<void(std::size_t done, std::size_t of)>& progress);

}  // namespace sim
