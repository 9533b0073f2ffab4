#include "view.hpp"

#include <algorithm>

#include <fmt/core.h>

namespace topo {

bool View::is_dead(SwitchPort p) const {
  const LinkEnd& end = topology.end(p);
  return std::any_of(dead.begin(), dead.end(), [&](const SwitchPort& d) {
    return d == p || (end.kind == LinkEnd::Kind::switch_port && d == SwitchPort{end.index, end.port});
  });
}

std::string View::ranks_on(std::uint32_t node) const {
  std::string text;
  const auto& all = ranks[node];
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t first = i;
    while (i + 1 < all.size() && all[i + 1] == all[i] + 1) ++i;
    text += fmt::format("{}{}", text.empty() ? "" : ",", all[first]);
    if (i > first) text += fmt::format("{}{}", i == first + 1 ? "," : "-", all[i]);
  }
  return text;
}

bool View::rank_is_node() const {
  for (std::uint32_t node = 0; node < topology.nodes(); ++node)
    if (ranks[node].size() != 1 || ranks[node][0] != node) return false;
  return true;
}

ulfm::Result<View> make_view(const Options& options) {
  auto topology = ulfm::fabric::read_topology(options.topology);
  if (!topology) return ulfm::fail(std::move(topology.error()));
  View view;
  view.topology = std::move(*topology);
  const Topology& t = view.topology;
  for (const std::string& text : options.dead) {
    const auto port = ulfm::fabric::find_port(t, text);
    if (!port) return ulfm::fail(port.error().code, fmt::format("--dead {}", port.error().what));
    if (t.end(*port).kind == LinkEnd::Kind::nothing)
      return ulfm::fail(
          ulfm::Errc::invalid,
          fmt::format("--dead \"{}\": nothing is linked to that port; `ulfm_topo show` lists links", text));
    view.dead.push_back(*port);
  }
  const auto suggested = !t.placement.empty() ? static_cast<std::uint32_t>(t.placement.size())
                                              : t.nodes() * std::max(1u, t.processes_per_node);
  view.processes = options.processes != 0 ? options.processes : suggested;
  if (auto room = ulfm::fabric::check_processes(t, view.processes); !room) return ulfm::fail(std::move(room.error()));
  view.ranks.resize(t.nodes());
  for (std::uint32_t p = 0; p < view.processes; ++p)
    view.ranks[ulfm::fabric::node_of_process(t, p, view.processes)].push_back(p);
  view.extent = ulfm::fabric::measure(t, view.dead);
  return view;
}

const char* name(Shape shape) {
  switch (shape) {
    case Shape::other: return "other";
    case Shape::single: return "single";
    case Shape::chain: return "chain";
    case Shape::tree: return "tree";
    case Shape::mesh: return "mesh";
    case Shape::torus: return "torus";
    case Shape::cube: return "cube";
    case Shape::boards: return "boards";
    case Shape::hypercube: return "generalized hypercube";
    case Shape::grid: return "grid";
    case Shape::hyperx: return "hyperx";
    case Shape::fat_tree: return "fattree";
    case Shape::dragonfly: return "dragonfly";
  }
  return "";
}

const char* routing(const View& view) {
  const Topology& t = view.topology;
  const bool detours = std::any_of(view.dead.begin(), view.dead.end(),
                                   [&](const SwitchPort& p) { return t.end(p).kind == LinkEnd::Kind::switch_port; });
  if (detours && t.shape == Shape::hypercube) return "shortest ways round the dead lines";
  if (detours) return "up*/down*, round the dead links";
  if (t.shape == Shape::mesh || t.shape == Shape::torus) return "dimension order, along the row first";
  if (t.shape == Shape::cube) return "e-cube, dimensions in rising order";
  if (t.shape == Shape::hypercube) return "sections in rising order";
  if (t.shape == Shape::grid || t.shape == Shape::hyperx) return "dimension order, the first dimension first";
  if (t.shape == Shape::fat_tree) return "up*/down*, by levels";
  if (t.shape == Shape::boards) return "by way of the host";
  return t.fixed.empty() ? "up*/down*" : "the file's, and up*/down* for the others";
}

std::vector<SwitchPort> own_links(const Topology& topology) {
  std::vector<SwitchPort> all;
  for (std::uint32_t i = 0; i < topology.ends.size() && topology.has_own_links(); ++i) {
    const SwitchPort port{i / topology.ports, i % topology.ports};
    const LinkEnd& other = topology.end(port);
    if (other.kind == LinkEnd::Kind::switch_port && other.index * topology.ports + other.port < i) continue;
    if (own_latency(topology, port) != 0 || own_rate(topology, port) != 0) all.push_back(port);
  }
  return all;
}

std::uint32_t own_latency(const Topology& topology, SwitchPort port) {
  const std::size_t at = std::size_t{port.at} * topology.ports + port.port;
  return at < topology.latency.size() ? topology.latency[at] : 0;
}

std::uint32_t own_rate(const Topology& topology, SwitchPort port) {
  const std::size_t at = std::size_t{port.at} * topology.ports + port.port;
  return at < topology.rate.size() ? topology.rate[at] : 0;
}

std::string end_name(const Topology& topology, SwitchPort port) {
  const LinkEnd& end = topology.end(port);
  if (end.kind == LinkEnd::Kind::node) return fmt::format("n{}", end.index);
  if (end.kind == LinkEnd::Kind::switch_port) return ulfm::fabric::port_name(topology, {end.index, end.port});
  return "-";
}

}  // namespace topo
