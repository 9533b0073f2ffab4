// The parameters of LogGP, as measured.
#pragma once

#include <vector>

#include "pair.hpp"

namespace perf {

/// Median and quartiles.
struct Spread {
  double median = 0, first = 0, third = 0;

  static Spread of(std::vector<double>& samples);
  Spread less(double amount) const { return {median - amount, first - amount, third - amount}; }
};

struct LogGP {
  Spread o_s_us, o_r_us, L_us, g_us, G_ns_per_byte;
  Spread half_rtt_us;
};

/// Run by both sides; side 0 gets the result.
ulfm::Result<LogGP> run_logp(Side& side, const Options& options);

}  // namespace perf
