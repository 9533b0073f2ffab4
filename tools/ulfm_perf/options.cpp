#include "options.hpp"

#include "../common/command_line.hpp"
#include "base/config.hpp"
#include "fabric/engine/host.hpp"

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include <fmt/core.h>
#include <ulfm/ulfm.h>
#include <CLI/CLI.hpp>

namespace perf {
namespace {

constexpr std::size_t kLargestOfPaths = 16 << 10;

// "8", "4K", "1M"; throws what CLI11 turns into a message.
std::size_t read_size(const std::string& text) {
  char* end = nullptr;
  const unsigned long long n = std::strtoull(text.c_str(), &end, 10);
  const std::string unit = end;
  if (end == text.c_str() || text[0] == '-' || unit.size() > 1)
    throw CLI::ValidationError("--size", fmt::format("\"{}\" is no size; needs for example 8, 4K or 1M", text));
  if (unit.empty()) return n;
  switch (unit[0]) {
    case 'k':
    case 'K': return n << 10;
    case 'm':
    case 'M': return n << 20;
    case 'g':
    case 'G': return n << 30;
    default: throw CLI::ValidationError("--size", fmt::format("\"{}\": unknown unit; K, M and G are known", text));
  }
}

void read_range(const std::string& text, Options& options) {
  const std::size_t colon = text.find(':');
  options.from = read_size(text.substr(0, colon));
  options.to = colon == std::string::npos ? options.from : read_size(text.substr(colon + 1));
  if (options.from > options.to)
    throw CLI::ValidationError("--size", fmt::format("\"{}\": the first size is larger than the second", text));
}

void check_sizes(const Options& options) {
  if (options.test == "logp" && options.from != options.to)
    throw CLI::ValidationError("--size", "logp measures small messages of one size");
  if (options.test == "paths" && (options.from == 0 || options.to > kLargestOfPaths))
    throw CLI::ValidationError("--size", "paths measures messages of 1 byte to 16K, which come in one frame");
}

// "0,3": one for each side.
std::vector<int> read_two(const std::string& text, const char* option, const std::string& what) {
  int a = 0, b = 0, used = 0;
  if (std::sscanf(text.c_str(), "%d,%d%n", &a, &b, &used) != 2 || static_cast<std::size_t>(used) != text.size() ||
      a < 0 || b < 0)
    throw CLI::ValidationError(option, fmt::format("\"{}\": needs two {}", text, what));
  return {a, b};
}

void read_cores(const std::string& text, Options& options) {
  if (text == "none") options.bound = false;
  else options.bind = read_two(text, "--bind", "cores such as 0,1, or none");
}

// What the command line has as text, until all of it is known.
struct Words {
  std::string size, bind, nodes;
  bool csv = false, json = false;
};

void declare_tests(CLI::App& app) {
  app.require_subcommand(1);
  app.fallthrough();
  app.add_subcommand("floor", "round trip of one cache line between two cores: what no message can beat");
  app.add_subcommand("latency", "one way, half of a ping-pong");
  app.add_subcommand("bandwidth", "one direction, a window of messages on their way");
  app.add_subcommand("rate", "messages per second, one direction");
  app.add_subcommand("logp", "o_s, o_r, L, g and G of each transport, or of the one that is chosen");
  app.add_subcommand("paths", "the paper's ways of a message: user/user, user/kernel and kernel/kernel");
  app.add_subcommand("multicast", "one to many, until all have it: by a group, by as many unicasts and by a tree");
  app.add_subcommand("soak",
                     "random messages both ways, every byte checked; --iterations messages each way, of --size a:b");
}

void declare_options(CLI::App& app, Options& options, Words& words) {
  app.add_option("--size", words.size, "bytes, one size or a range a:b of powers of two; K, M, G");
  app.add_option("--iterations", options.iterations, "per size; fewer for large sizes when not given");
  app.add_option("--warmup", options.warmup, "iterations before measuring; a tenth when not given");
  app.add_option(
         "--limit", options.limit,
         "seconds that latency, bandwidth, rate and multicast may take together, when --iterations is not given; 20")
      ->check(CLI::Range(0.1, 86400.0));
  app.add_option("--seed", options.seed, "which random messages (soak)");
  app.add_option("--window", options.window, "messages on their way (bandwidth, rate)")->check(CLI::Range(1, 65536));
  app.add_option("--receivers", options.receivers, "of multicast, when it is started alone; 7")
      ->check(CLI::Range(2, 1000));
  app.add_option("--depth", options.depth, "buffers of the port each way; 1 is the original machine")
      ->check(CLI::Range(0, 65536));
  app.add_option("--bind", words.bind, "cores of the two sides, such as 0,1; none leaves them free");
  app.add_option("--transport", options.transport, "transport to measure");
  app.add_option("--topology", options.topology, "shape of an emulated interconnect, as for ulfmrun");
  app.add_option("--nodes", words.nodes, "nodes of the two sides on it, such as 0,3");
  auto* csv_flag = app.add_flag("--csv", words.csv, "comma-separated values");
  app.add_flag("--json", words.json, "one JSON object")->excludes(csv_flag);
}

// Throws what CLI11 turns into a message.
void read_words(const Words& words, Options& options) {
  if (options.test == "rate" || options.test == "logp") options.from = options.to = 8;
  if (options.test == "soak") options.from = 0, options.to = 2048;
  if (options.test == "paths") options.from = 16, options.to = 2048;
  if (options.test == "multicast") options.from = 16, options.to = 64 << 10;
  if (!words.size.empty()) read_range(words.size, options);
  check_sizes(options);
  if (!words.bind.empty()) read_cores(words.bind, options);
  if (!words.nodes.empty()) options.nodes = read_two(words.nodes, "--nodes", "nodes such as 0,3");
  options.format = words.json ? Format::json : words.csv ? Format::csv : Format::table;
}

// The complaint about --topology or --nodes without a network that has them; empty when there is none.
std::string misplaced(const Options& options, const Words& words, const std::string& transport) {
  if (options.topology.empty() && words.nodes.empty()) return {};
  if (ulfm::fabric::model_of_transport(transport) != nullptr) return {};
  return fmt::format("{} goes with an emulated interconnect, and {}; add --transport xswitch, for example",
                     words.nodes.empty() ? "--topology" : "--nodes",
                     transport.empty() ? "none is chosen" : fmt::format("\"{}\" is none", transport));
}

}  // namespace

std::vector<std::size_t> Options::sizes() const {
  std::vector<std::size_t> all;
  if (from == 0) all.push_back(0);
  for (std::size_t s = 1; s != 0 && s <= to; s <<= 1)
    if (s >= from) all.push_back(s);
  for (const std::size_t end : {from, to})
    if (std::find(all.begin(), all.end(), end) == all.end()) all.push_back(end);
  std::sort(all.begin(), all.end());
  return all;
}

std::size_t Options::iterations_for(std::size_t size) const {
  if (iterations != 0) return iterations;
  const std::size_t by_bytes = (std::size_t{1} << 31) / std::max<std::size_t>(size, 1);
  return std::clamp<std::size_t>(by_bytes, 20, test == "latency" ? 50000 : 20000);
}

std::optional<int> read_command_line(int argc, char** argv, Options& options) {
  CLI::App app{
      "Measures raw ULFM ports between two processes: alone (it forks its peer) or as the first two ranks of a job; "
      "multicast between all ranks of a job",
      "ulfm_perf"};
  app.set_version_flag("--version", fmt::format("ulfm_perf {}", ulfm_version()));
  Words words;
  declare_tests(app);
  declare_options(app, options, words);
  app.footer(
      "Examples: ulfm_perf latency\n"
      "          ulfm_perf latency --transport xswitch --topology mesh:4x4 --nodes 0,15\n"
      "          ulfm_perf multicast --transport pointdesign --topology gh:2x2x2 --receivers 7\n"
      "Exit code: 1 when a measurement failed, 2 for a wrong command line.\n"
      "Manual: ulfm_perf(1).");
  if (const auto code = tools::parse(app, argc, argv)) return code;
  options.test = app.get_subcommands().front()->get_name();
  try {
    read_words(words, options);
  } catch (const CLI::ParseError& e) {
    return tools::complain(app, e.what());
  }
  const auto settings = ulfm::Config::load();
  if (!settings) return tools::complain(app, settings.error().what);
  const bool is_set = settings->origin("TRANSPORT") != ulfm::Origin::default_value;
  const std::string transport = !options.transport.empty() ? options.transport
                                : is_set                   ? settings->text("TRANSPORT")
                                                           : "";
  if (const std::string fault = misplaced(options, words, transport); !fault.empty())
    return tools::complain(app, fault);
  options.transport_chosen = !transport.empty();
  if (!options.transport.empty()) setenv("ULFM_TRANSPORT", options.transport.c_str(), 1);
  if (!options.topology.empty()) setenv("ULFM_TOPOLOGY", options.topology.c_str(), 1);
  // The paper's messages lie in the memory of their port.
  if (options.test == "paths" && settings->origin("EXCHANGE") == ulfm::Origin::default_value)
    setenv("ULFM_EXCHANGE", "0", 1);
  return std::nullopt;
}

}  // namespace perf
