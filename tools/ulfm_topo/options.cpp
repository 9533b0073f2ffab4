#include "options.hpp"

#include "../common/command_line.hpp"

#include <charconv>

#include <fmt/core.h>
#include <ulfm/ulfm.h>
#include <CLI/CLI.hpp>

#include "fabric/topology/topology.hpp"

namespace topo {
namespace {

// "3" or "n3"; throws what CLI11 turns into a message.
std::uint32_t read_node(const std::string& text) {
  const char* digits = text.c_str() + (text[0] == 'n' ? 1 : 0);
  const char* end = text.c_str() + text.size();
  std::uint32_t node = 0;
  const auto [stop, error] = std::from_chars(digits, end, node);
  if (error != std::errc{} || stop != end)
    throw CLI::ValidationError("routes", fmt::format("\"{}\" is no node; needs its number, such as 3 or n3", text));
  return node;
}

void declare(CLI::App& app, Options& options, std::vector<std::string>& ends) {
  app.set_version_flag("--version", fmt::format("ulfm_topo {}", ulfm_version()));
  app.require_subcommand(1);
  app.fallthrough();
  auto* show = app.add_subcommand("show", "sizes, ways, a picture in text, and which ranks are on which node");
  auto* routes = app.add_subcommand("routes", "output ports from node to node: all, or between two nodes");
  auto* dot = app.add_subcommand("dot", "a graph for Graphviz, on standard output");
  auto* svg = app.add_subcommand("svg", "a picture for browsers, on standard output");
  auto* png = app.add_subcommand("png", "the same as PNG, on standard output or with -o; needs rsvg-convert");
  auto* pdf = app.add_subcommand("pdf", "the same as PDF");
  for (auto* command : {show, routes, dot, svg, png, pdf})
    command->add_option("TOPOLOGY", options.topology, ulfm::fabric::shape_forms())->required();
  routes->add_option("NODES", ends, "from and to")->expected(2);
  app.add_option("-n,--processes", options.processes, "processes to place; one to a node when not given")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("-o,--output", options.output, "file to write; standard output when not given");
  app.add_option("--dead", options.dead, "links that are down, by a port at either end: s0.B,s3.C")->delimiter(',');
  for (auto* command : {show, routes}) command->add_flag("--json", options.json, "one JSON object");
  app.footer(
      "Examples: ulfm_topo show mesh:4x4 -n 16\n"
      "          ulfm_topo png cube:4 -o cube.png\n"
      "Exit code: 1 when there is no way between the two nodes, 2 for a wrong command line or topology.\n"
      "Manual: ulfm_topo(1), ulfm-topology(5).");
}

}  // namespace

std::optional<int> read_command_line(int argc, char** argv, Options& options) {
  CLI::App app{"Shows topologies of emulated switch networks", "ulfm_topo"};
  std::vector<std::string> ends;
  declare(app, options, ends);
  if (const auto code = tools::parse(app, argc, argv)) return code;
  options.command = app.get_subcommands().front()->get_name();
  try {
    if (!ends.empty()) options.from = read_node(ends[0]), options.to = read_node(ends[1]);
  } catch (const CLI::ParseError& e) {
    return tools::complain(app, e.what());
  }
  return std::nullopt;
}

}  // namespace topo
