// The measurements.
#pragma once

#include "pair.hpp"
#include "report.hpp"
#include "watch.hpp"

namespace perf {

/// Round trip of one cache line, halved. Run by both sides; side 0 gets the results.
ulfm::Result<Results> measure_floor(const Options& options);

/// latency, bandwidth or rate, as options.test says. Run by both sides.
ulfm::Result<Results> measure_ports(Side& side, const Options& options, Watch& watch);

/// The ways of a message through user level and kernel, one row for each size. Run by both sides.
ulfm::Result<Results> measure_paths(Side& side, const Options& options);

/// The parameters of LogGP: one row. Run by both sides; side 0 gets the results.
ulfm::Result<Results> measure_logp(Side& side, const Options& options);

/// The same for every transport there is, one row each; each has two processes of its own. Transports that cannot be
/// used here are named on standard error.
ulfm::Result<Results> measure_logp_of_all(const Options& options, Watch& watch);

/// One to many: a row for each size. Run by all ranks of a job; rank 0 gets the results.
ulfm::Result<Results> measure_multicast(const Options& options, Watch& watch);
/// Started alone: this program anew, as a job of options.receivers + 1 processes. Returns only when that fails.
ulfm::Error become_job(const Options& options, char** argv);

/// Sends and checks options.iterations random messages each way. Run by both sides.
ulfm::Result<Results> soak(Side& side, const Options& options);

/// How often the measurement calls Side::meet or the job's barrier: whoever only looks on has to do the same.
std::size_t barriers(const Options& options);

}  // namespace perf
