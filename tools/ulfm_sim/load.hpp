// One point of a load-latency curve.
#pragma once

#include <string>
#include <vector>

#include "network.hpp"
#include "routing.hpp"
#include "traffic.hpp"

namespace sim {

/// What stays the same along a curve. Everything it points at outlives it.
struct Load {
  const Topology* topology = nullptr;
  const Subject* subject = nullptr;
  const Routing* routing = nullptr;
  const Pattern* pattern = nullptr;
  const Lengths* lengths = nullptr;
  const Timing* timing = nullptr;
  std::uint64_t warmup = 10000, measure = 20000, drain = 60000;  ///< cycles
  std::uint64_t seed = 1;
  ModelForm form = ModelForm::production;
};

/// Latencies in cycles, from the one in which a message is made to that in which its last unit is taken, both counted.
struct Latency {
  double mean = 0, half_width = 0;  ///< of the 95 % confidence interval
  double p50 = 0, p99 = 0, max = 0;
};

struct Row {
  double offered = 0;   ///< units a node and cycle, as asked
  double made = 0;      ///< as the sources made them in the window
  double accepted = 0;  ///< delivered in the window
  Latency latency;      ///< with the wait at the source
  double network = 0;   ///< mean from the first unit's leaving the node; 0: the model does not say
  double hops = 0;      ///< mean switches on the ways of measured messages
  bool settled = false;
  std::string why;             ///< it did not settle
  std::uint64_t messages = 0;  ///< measured
  std::uint64_t cycles = 0;    ///< simulated, in all
  std::uint64_t unit_hops = 0;
  double inside = 0;        ///< messages in the system, mean of samples in the window (L)
  double little = 0;        ///< messages delivered a cycle times their mean time (lambda W)
  double seconds = 0;       ///< of a processor
  std::vector<double> use;  ///< of each channel in the window, 0 to 1; empty: not asked for
};

/// Simulates one rate, in units a node and cycle. An error means that the model's books do not balance, that it refused
/// a message, or that a sum over messages disagrees with the model's count: then nothing can be said.
Result<Row> run_point(const Load& load, double rate, bool with_use = false);

/// In which figure two rows differ, with both values; empty: in none. The time that they took does not count.
std::string difference(const Row& a, const Row& b);

/// Most units a node and cycle for which no channel, in the mean, is asked for more than it can carry, with these
/// routes; and how many messages cross the busiest channel for each one that a node sends. Rates above it cannot
/// settle.
/// `rate` 0: there are too many pairs of nodes to find out, or the model does not say which channels it uses.
struct Bound {
  double rate = 0, channel_load = 0;
};
Bound bound_of(const Load& load);

}  // namespace sim
