#include "fabric/topology/timeline.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/core.h>

namespace ulfm::fabric {
namespace {

using Kind = FaultEvent::Kind;

std::string numbers(std::uint32_t count, const std::string& what) {
  if (count == 1)
    return fmt::format("there is only {} 0", what == "nodes" ? std::string("node") : std::string("switch"));
  return fmt::format("there are {} 0 to {}", what, count - 1);
}

// Ends, at switch `from`, of its links with switch `to`.
std::vector<SwitchPort> links_between(const Topology& topology, std::uint32_t from, std::uint32_t to) {
  std::vector<SwitchPort> found;
  for (std::uint32_t p = 0; p < topology.ports; ++p) {
    const LinkEnd& end = topology.end({from, p});
    if (end.kind == LinkEnd::Kind::switch_port && end.index == to) found.push_back({from, p});
  }
  return found;
}

std::string neighbours(const Topology& topology, std::uint32_t at) {
  std::set<std::uint32_t> all;
  for (std::uint32_t p = 0; p < topology.ports; ++p)
    if (const LinkEnd& end = topology.end({at, p}); end.kind == LinkEnd::Kind::switch_port) all.insert(end.index);
  std::string text;
  for (const std::uint32_t other : all) text += fmt::format("{}{}", text.empty() ? "" : ", ", other);
  return text.empty() ? "no other switch" : fmt::format("switch {}", text);
}

Result<TopologyChange> begin_of(const Topology& topology, const FaultEvent& event) {
  TopologyChange change;
  change.at = static_cast<std::uint64_t>(event.at.count());
  if (event.kind == Kind::node_dead) {
    if (event.from >= topology.nodes())
      return fail(Errc::invalid, fmt::format("node {} dead: {}", event.from, numbers(topology.nodes(), "nodes")));
    change.links = {topology.attachment[event.from]};
    return change;
  }
  const std::uint32_t highest = event.kind == Kind::link_down ? std::max(event.from, event.to) : event.from;
  if (highest >= topology.switches)
    return fail(Errc::invalid, fmt::format("switch {}: {}", highest, numbers(topology.switches, "switches")));
  if (event.kind == Kind::switch_dead) {
    change.dead_switch = event.from;
    return change;
  }
  change.links = links_between(topology, event.from, event.to);
  if (change.links.empty())
    return fail(Errc::invalid, fmt::format("link {}-{} down: there is no such link; switch {} is linked with {}",
                                           event.from, event.to, event.from, neighbours(topology, event.from)));
  return change;
}

// Everything a change takes away, as ends of links.
std::vector<SwitchPort> ports_of(const Topology& topology, const TopologyChange& change) {
  if (change.dead_switch < 0) return change.links;
  std::vector<SwitchPort> all;
  for (std::uint32_t p = 0; p < topology.ports; ++p) all.push_back({static_cast<std::uint32_t>(change.dead_switch), p});
  return all;
}

// One end of a link stands for it, whichever was named.
SwitchPort canonical(const Topology& topology, SwitchPort port) {
  const LinkEnd& other = topology.end(port);
  if (other.kind != LinkEnd::Kind::switch_port || other.index > port.at) return port;
  if (other.index == port.at && other.port > port.port) return port;
  return {other.index, other.port};
}

}  // namespace

Result<std::vector<TopologyChange>> timeline(const Topology& topology, std::span<const FaultEvent> events) {
  std::vector<TopologyChange> changes;
  for (const FaultEvent& event : events) {
    auto begin = begin_of(topology, event);
    if (!begin) return fail(std::move(begin.error()).within(fmt::format("topology {}", topology.name)));
    changes.push_back(*begin);
    if (event.lasts.count() == 0) continue;
    TopologyChange end = *begin;
    end.at += static_cast<std::uint64_t>(event.lasts.count());
    end.up = true;
    changes.push_back(std::move(end));
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const TopologyChange& a, const TopologyChange& b) { return a.at < b.at; });
  // What two events have taken away is back when both are over.
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> down;
  for (TopologyChange& change : changes) {
    for (const SwitchPort& port : ports_of(topology, change)) {
      const SwitchPort end = canonical(topology, port);
      down[{end.at, end.port}] += change.up ? -1 : 1;
    }
    for (const auto& [port, times] : down)
      if (times > 0) change.dead.push_back({port.first, port.second});
    if (change.up)
      std::erase_if(change.links, [&](const SwitchPort& port) {
        const SwitchPort end = canonical(topology, port);
        return down[{end.at, end.port}] > 0;
      });
  }
  return changes;
}

}  // namespace ulfm::fabric
