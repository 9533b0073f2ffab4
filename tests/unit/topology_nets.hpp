// Random networks and independent checks of routes, for the tests of topologies.
#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "fabric/topology/shapes.hpp"
#include "property.hpp"

namespace test {

using namespace ulfm::fabric;

inline bool is_dead(const Topology& t, const DeadPorts& dead, SwitchPort p) {
  const LinkEnd& end = t.end(p);
  return std::any_of(dead.begin(), dead.end(), [&](const SwitchPort& d) {
    return d == p || (end.kind == LinkEnd::Kind::switch_port && d == SwitchPort{end.index, end.port});
  });
}

/// A connected network: a random tree of switches, more links on top, nodes on some of what is left.
inline Topology random_net(Draw& draw) {
  const std::uint32_t ports = draw.one_in(3) ? kThSwitchPorts : kXSwitchPorts;
  Topology t = bare_topology("random", Shape::other, ports, 1 + draw.below(12));
  const auto free_port = [&](std::uint32_t s) -> std::optional<SwitchPort> {
    const std::uint32_t first = draw.below(ports);
    for (std::uint32_t i = 0; i < ports; ++i)
      if (t.end({s, (first + i) % ports}).kind == LinkEnd::Kind::nothing) return SwitchPort{s, (first + i) % ports};
    return std::nullopt;
  };
  for (std::uint32_t s = 1; s < t.switches; ++s) {
    // A tree of degree ports - 1 at most, so that a port is always free for the next switch.
    std::uint32_t parent = draw.below(s);
    auto port = free_port(parent);
    for (; !port; port = free_port(parent)) parent = (parent + 1) % s;
    join(t, *port, *free_port(s));
  }
  // Now, while there is a port for it: a network without nodes is none.
  attach_node(t, *free_port(t.switches - 1));
  for (std::uint32_t more = draw.below(2 * t.switches); more > 0; --more) {
    const std::uint32_t a = draw.below(t.switches), b = draw.below(t.switches);
    const auto from = free_port(a), to = free_port(b);
    if (a != b && from && to) join(t, *from, *to);
  }
  for (std::uint32_t i = 1 + draw.below(3 * t.switches); i > 0; --i)
    if (const auto port = free_port(draw.below(t.switches))) attach_node(t, *port);
  for (std::uint32_t s = 0; s < t.switches && t.nodes() < 2; ++s)
    if (const auto port = free_port(s)) attach_node(t, *port);
  return t;
}

inline Topology random_shape(Draw& draw) {
  const auto size = [&](std::uint32_t n) { return std::to_string(1 + draw.below(n)); };
  switch (draw.below(8)) {
    case 0: return make_shape("mesh:" + size(5) + "x" + size(5)).value();
    case 1: return make_shape("torus:" + size(5) + "x" + size(5)).value();
    case 2: return make_shape("chain:" + size(8)).value();
    case 3: return make_shape("tree:" + size(3)).value();
    case 4: return make_shape("single:" + size(8)).value();
    case 5: return make_shape("cube:" + size(5)).value();
    default: return random_net(draw);
  }
}

inline DeadPorts random_dead(const Topology& t, Draw& draw) {
  DeadPorts dead;
  for (std::uint32_t i = draw.below(6); i > 0; --i) dead.push_back({draw.below(t.switches), draw.below(t.ports)});
  return dead;
}

/// Where a route ends, walking from the switch of `from`; nullopt when it uses a port that is dead or leads
/// nowhere, or goes on behind a node.
inline std::optional<std::uint32_t> end_of(const Topology& t, std::uint32_t from, const Route& way,
                                           const DeadPorts& dead) {
  if (is_dead(t, dead, t.attachment[from])) return std::nullopt;
  LinkEnd now{LinkEnd::Kind::switch_port, t.attachment[from].at, 0};
  for (const std::uint8_t port : way) {
    if (now.kind != LinkEnd::Kind::switch_port || port >= t.ports) return std::nullopt;
    if (is_dead(t, dead, {now.index, port})) return std::nullopt;
    now = t.end({now.index, port});
  }
  if (now.kind != LinkEnd::Kind::node) return std::nullopt;
  return now.index;
}

/// Links from a switch to every other one over what works, by breadth-first search; ~0: cut off.
inline std::vector<std::uint32_t> distances(const Topology& t, std::uint32_t from, const DeadPorts& dead) {
  std::vector<std::uint32_t> distance(t.switches, ~0u);
  std::deque<std::uint32_t> queue{from};
  distance[from] = 0;
  while (!queue.empty()) {
    const std::uint32_t s = queue.front();
    queue.pop_front();
    for (std::uint32_t p = 0; p < t.ports; ++p) {
      const LinkEnd& end = t.end({s, p});
      if (end.kind != LinkEnd::Kind::switch_port || is_dead(t, dead, {s, p}) || distance[end.index] != ~0u) continue;
      distance[end.index] = distance[s] + 1;
      queue.push_back(end.index);
    }
  }
  return distance;
}

}  // namespace test
