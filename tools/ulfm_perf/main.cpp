// ulfm_perf: what raw ports cost, beside what the machine allows.

#include <cstdio>
#include <cstdlib>

#include "tests.hpp"

namespace {

int complain(const ulfm::Error& error) {
  std::fprintf(stderr, "ulfm_perf: %s\n", error.what.c_str());
  return 1;
}

int run_ports(const perf::Options& options) {
  auto side = perf::make_pair_of_processes(options);
  if (!side) return complain(side.error());
  if (side->spectator) {
    // A barrier of the job waits for all its ranks: one for each size, and the last.
    const std::size_t meetings = options.test == "soak" ? 1 : options.sizes().size();
    for (std::size_t i = 0; i <= meetings; ++i) side->meet();
    return 0;
  }
  auto results = options.test == "soak" ? perf::soak(*side, options) : perf::measure_ports(*side, options);
  if (!results) return complain(results.error());
  if (side->number == 0) perf::print(*results, options);
  side->port.reset();
  side->job.reset();
  return side->wait_for_child();
}

}  // namespace

int main(int argc, char** argv) {
  perf::Options options;
  if (const auto code = perf::read_command_line(argc, argv, options)) return *code;
  if (options.test != "floor") return run_ports(options);
  auto results = perf::measure_floor(options);
  if (!results) return complain(results.error());
  perf::print(*results, options);
  return 0;
}
