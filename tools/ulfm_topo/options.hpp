// What ulfm_topo was asked to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace topo {

struct Options {
  std::string command;                    ///< show, routes, dot, svg, png, pdf
  std::string output;                     ///< file; empty: standard output
  std::string topology;                   ///< as read_topology() takes it
  std::optional<std::uint32_t> from, to;  ///< routes: two nodes, or all
  std::uint32_t processes = 0;            ///< 0: as many as the topology suggests
  std::vector<std::string> dead;          ///< ports
  bool json = false;
};

/// Reads the command line. A number is an exit code: help was shown, or something was wrong and has been
/// said.
std::optional<int> read_command_line(int argc, char** argv, Options& options);

}  // namespace topo
