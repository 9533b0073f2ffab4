// ulfm_perf: what raw ports cost, beside what the machine allows.

#include <cstdio>
#include <cstdlib>

#include "../common/output.hpp"
#include "base/standard_streams.hpp"
#include "tests.hpp"

namespace {

int complain(const ulfm::Error& error) {
  std::fprintf(stderr, "ulfm_perf: %s\n", error.what.c_str());
  return 1;
}

int report(ulfm::Result<perf::Results> results, const perf::Options& options, const perf::Watch& watch) {
  if (!results) return complain(results.error());
  if (options.test != "soak") results->doubts = watch.doubts();
  perf::print(*results, options);
  return tools::written("ulfm_perf", 0);
}

ulfm::Result<perf::Results> measure(perf::Side& side, const perf::Options& options, perf::Watch& watch) {
  if (options.test == "soak") return perf::soak(side, options);
  if (options.test == "paths") return perf::measure_paths(side, options);
  if (options.test == "logp") return perf::measure_logp(side, options);
  return perf::measure_ports(side, options, watch);
}

int run_ports(const perf::Options& options, perf::Watch& watch) {
  auto side = perf::make_pair_of_processes(options);
  if (!side) return complain(side.error());
  if (side->spectator) {
    // A barrier of the job waits for all its ranks.
    for (std::size_t i = perf::barriers(options); i != 0; --i) side->barrier();
    return 0;
  }
  auto results = measure(*side, options, watch);
  if (!results) {
    const int code = complain(results.error());
    // The launcher ends a job whose process leaves like that; the other ranks would wait at the next barrier for ever.
    if (!perf::is_alone()) std::_Exit(code);
    return code;
  }
  const int code = side->number == 0 ? report(std::move(results), options, watch) : 0;
  const int left = side->leave();
  return left != 0 ? left : code;
}

// All ranks of a job take part.
int run_multicast(const perf::Options& options, perf::Watch& watch, char** argv) {
  if (perf::is_alone()) return complain(perf::become_job(options, argv));
  auto results = perf::measure_multicast(options, watch);
  if (!results) std::_Exit(complain(results.error()));  // the launcher ends the others, who would wait
  return results->rows.empty() ? 0 : report(std::move(results), options, watch);
}

}  // namespace

std::size_t perf::barriers(const Options& options) {
  if (options.test == "soak" || options.test == "paths" || options.test == "logp") return 2;
  return options.sizes().size() + 1;
}

int main(int argc, char** argv) {
  ulfm::reserve_standard_streams();
  perf::Options options;
  if (const auto code = perf::read_command_line(argc, argv, options)) return *code;
  perf::Watch watch(options);
  if (options.test == "floor") return report(perf::measure_floor(options), options, watch);
  if (options.test == "logp" && perf::is_alone() && !options.transport_chosen)
    return report(perf::measure_logp_of_all(options, watch), options, watch);
  if (options.test == "multicast") return run_multicast(options, watch, argv);
  return run_ports(options, watch);
}
