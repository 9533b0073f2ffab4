// The measurements.
#pragma once

#include "pair.hpp"
#include "report.hpp"

namespace perf {

/// Round trip of one cache line, halved. Run by both sides; side 0 gets the results.
ulfm::Result<Results> measure_floor(const Options& options);

/// latency, bandwidth or rate, as options.test says. Run by both sides.
ulfm::Result<Results> measure_ports(Side& side, const Options& options);

/// Sends and checks options.iterations random messages each way. Run by both sides.
ulfm::Result<Results> soak(Side& side, const Options& options);

}  // namespace perf
