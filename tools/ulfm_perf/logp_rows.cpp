// LogGP as rows of a table: of one transport, or of every transport by pairs of processes of their own, because a
// process's transport is chosen once.

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <fmt/core.h>

#include "fabric/engine/host.hpp"
#include "logp.hpp"
#include "tests.hpp"
#include "transport/registry.hpp"

namespace perf {
namespace {

Results rows_of(std::size_t size) {
  return {fmt::format("LogGP parameters for messages of {} bytes, us; G in ns a byte", size), {}, {}};
}

Column column(const char* name, const Spread& spread) {
  return {name, spread.median, Quartiles{spread.first, spread.third}};
}

Row row_of(const std::string& transport, std::size_t size, const LogGP& p) {
  return {{{"transport", transport},
           {"size", static_cast<double>(size)},
           column("o_s_us", p.o_s_us),
           column("o_r_us", p.o_r_us),
           column("L_us", p.L_us),
           column("g_us", p.g_us),
           column("G_ns_per_byte", p.G_ns_per_byte),
           column("half_rtt_us", p.half_rtt_us)}};
}

/// In the child: measures over that transport with a peer of its own and writes what came out. The exit code.
int measure_into(int fd, const char* transport, const Options& options) {
  setenv("ULFM_TRANSPORT", transport, 1);
  auto side = make_pair_of_processes(options);
  auto result = side ? run_logp(*side, options) : ulfm::Result<LogGP>(tl::unexpected(side.error()));
  if (!result) {
    std::fprintf(stderr, "ulfm_perf: %s: %s\n", transport, result.error().what.c_str());
    return 1;
  }
  if (side->number == 0 && write(fd, &*result, sizeof *result) != static_cast<ssize_t>(sizeof *result)) return 1;
  return side->leave();
}

ulfm::Result<LogGP> measure_in_child(const char* transport, const Options& options) {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return ulfm::fail_errno("pipe2");
  const pid_t child = fork();
  if (child < 0) return ulfm::fail_errno("fork");
  if (child == 0) std::exit(measure_into(ends[1], transport, options));
  close(ends[1]);
  LogGP result;
  const bool whole = read(ends[0], &result, sizeof result) == static_cast<ssize_t>(sizeof result);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!whole || status != 0)
    return ulfm::fail(ulfm::Errc::peer_failed, fmt::format("logp of transport {} did not come to its end", transport));
  return result;
}

/// Why it cannot be measured here; "" when it can. An emulated interconnect is set up by this program.
std::string why_not(const ulfm::TransportDescriptor& transport) {
  return ulfm::fabric::model_of_transport(transport.name) != nullptr ? "" : transport.unavailable();
}

}  // namespace

ulfm::Result<Results> measure_logp(Side& side, const Options& options) {
  auto parameters = run_logp(side, options);
  if (!parameters) return tl::unexpected(parameters.error());
  Results results = rows_of(options.from);
  results.rows.push_back(row_of(side.job->transport(), options.from, *parameters));
  return results;
}

ulfm::Result<Results> measure_logp_of_all(const Options& options, Watch& watch) {
  Results results = rows_of(options.from);
  std::size_t done = 0;
  for (const ulfm::TransportDescriptor* transport : ulfm::transports()) {
    watch.progress(done++, ulfm::transports().size(), transport->name);
    if (const std::string why = why_not(*transport); !why.empty()) {
      std::fprintf(stderr, "ulfm_perf: transport %s is left out: %s\n", transport->name, why.c_str());
      continue;
    }
    auto parameters = measure_in_child(transport->name, options);
    if (!parameters) return tl::unexpected(parameters.error());
    results.rows.push_back(row_of(transport->name, options.from, *parameters));
  }
  return results;
}

}  // namespace perf
