// What ulfm_perf was asked to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace perf {

enum class Format { table, csv, json };

struct Options {
  std::string test;  ///< floor, latency, bandwidth, rate, logp, paths, multicast, soak
  std::size_t from = 1, to = 1 << 20;
  std::size_t iterations = 0;  ///< 0: by size
  std::size_t warmup = 0;
  double limit = 20;        ///< seconds for a test whose iterations were not given
  std::uint64_t seed = 1;   ///< soak: which random messages
  std::size_t window = 64;  ///< bandwidth, rate: messages on their way
  int receivers = 7;        ///< multicast, started alone
  std::size_t depth = 0;    ///< buffers of the port; 0: the setting
  Format format = Format::table;
  std::string transport;          ///< "": the setting
  bool transport_chosen = false;  ///< there, or in the settings
  std::string topology;           ///< of an emulated interconnect
  std::vector<int> nodes;         ///< of the two sides on it; empty: as the topology says
  std::vector<int> bind;          ///< cores of the two sides; empty: chosen by hwloc
  bool bound = true;

  /// Sizes to measure: powers of two from `from` to `to`, and the two themselves.
  std::vector<std::size_t> sizes() const;
  /// Iterations for a size, fewer for large ones unless the number was given.
  std::size_t iterations_for(std::size_t size) const;
};

/// Reads the command line. A number is an exit code: help was shown, or something was wrong and has been said.
std::optional<int> read_command_line(int argc, char** argv, Options& options);

}  // namespace perf
