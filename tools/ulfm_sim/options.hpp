// What ulfm_sim was asked to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sim {

constexpr int kUnsettled = 3;  ///< with --strict: a point did not settle

/// What makes one curve. An empty length is the model's usual one; an empty rate and cycles of 0 are those of Options.
struct Setting {
  std::string transport = "xswitch", topology = "mesh:4x4", pattern = "uniform", routing = "default", length,
              source = "bernoulli", model = "production", rate;
  std::uint64_t seed = 1, measure = 0, drain = 0;
  std::optional<std::uint64_t> warmup;
};

struct Options {
  std::string command;  ///< load, zero
  Setting setting;
  std::string rate = "0.05:0.5:0.05";
  std::vector<std::string> compare;  ///< "key=value key=value", a curve each
  std::vector<std::string> sweep;    ///< "key=value|value"
  std::uint64_t warmup = 10000, measure = 20000, drain = 60000;
  unsigned threads = 0;  ///< 0: as many as there are cores
  bool saturation = false, json = false, csv = false, timing = false, strict = false, quiet = false;
  bool verify = false;     ///< the reference model must give the same rows
  bool all_pairs = false;  ///< zero: leaves none out
  std::string svg, links;  ///< files to write
  double cycle_ns = 0;     ///< 0: the model's
};

/// Reads the command line. A number is an exit code: help was shown, or something was wrong and has been said.
std::optional<int> read_command_line(int argc, char** argv, Options& options);

}  // namespace sim
