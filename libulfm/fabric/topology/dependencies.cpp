// Channel dependencies: which channel a frame that holds another one can be waiting for.
#include <algorithm>

#include <fmt/core.h>

#include "fabric/topology/topology.hpp"

namespace ulfm::fabric {
namespace {

/// A channel is an output port that leads to a switch. The channels it depends on leave from that switch: one
/// bit for each of its ports.
class Dependencies {
 public:
  explicit Dependencies(const Topology& topology)
      : topology_(topology), next_(std::size_t{topology.switches} * topology.ports, 0) {}

  void add(std::uint32_t node, const Route& way) {
    std::uint32_t at = topology_.attachment[node].at;
    std::size_t before = kNone;
    for (const std::uint8_t port : way) {
      if (port >= topology_.ports) return;
      const LinkEnd& end = topology_.end({at, port});
      if (end.kind != LinkEnd::Kind::switch_port) return;
      if (before != kNone) next_[before] |= 1u << port;
      before = std::size_t{at} * topology_.ports + port;
      at = end.index;
    }
  }

  std::vector<SwitchPort> cycle() const {
    std::vector<std::uint8_t> state(next_.size(), kNew);
    for (std::size_t first = 0; first < next_.size(); ++first) {
      if (state[first] != kNew || next_[first] == 0) continue;
      if (auto found = search(first, state); !found.empty()) return found;
    }
    return {};
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  enum : std::uint8_t { kNew, kOpen, kDone };

  // Depth first. A channel met again while it is open closes a cycle.
  std::vector<SwitchPort> search(std::size_t first, std::vector<std::uint8_t>& state) const {
    struct Visit {
      std::size_t channel;
      std::uint32_t left;  // dependencies to look at
    };
    std::vector<Visit> path{{first, next_[first]}};
    state[first] = kOpen;
    while (!path.empty()) {
      if (path.back().left == 0) {
        state[path.back().channel] = kDone;
        path.pop_back();
        continue;
      }
      const auto port = static_cast<std::uint32_t>(__builtin_ctz(path.back().left));
      path.back().left &= path.back().left - 1;
      const std::size_t next = std::size_t{topology_.ends[path.back().channel].index} * topology_.ports + port;
      if (state[next] == kNew) {
        state[next] = kOpen;
        path.push_back({next, next_[next]});
      } else if (state[next] == kOpen) {
        const auto from = std::find_if(path.begin(), path.end(), [&](const Visit& v) { return v.channel == next; });
        std::vector<SwitchPort> cycle;
        for (auto v = from; v != path.end(); ++v)
          cycle.push_back({static_cast<std::uint32_t>(v->channel / topology_.ports),
                           static_cast<std::uint32_t>(v->channel % topology_.ports)});
        return cycle;
      }
    }
    return {};
  }

  const Topology& topology_;
  std::vector<std::uint32_t> next_;  // by channel
};

}  // namespace

std::vector<SwitchPort> dependency_cycle(const Topology& topology, const Routes& routes) {
  Dependencies dependencies(topology);
  for (std::uint32_t from = 0; from < routes.nodes; ++from)
    for (std::uint32_t to = 0; to < routes.nodes; ++to) dependencies.add(from, routes.between(from, to));
  return dependencies.cycle();
}

std::string cycle_text(const Topology& topology, std::span<const SwitchPort> cycle) {
  constexpr std::size_t kShown = 16;
  std::string text;
  for (std::size_t i = 0; i < cycle.size() && i < kShown; ++i)
    text += fmt::format("{} -> ", port_name(topology, cycle[i]));
  if (cycle.size() > kShown) text += fmt::format("({} more) -> ", cycle.size() - kShown);
  return cycle.empty() ? text : text + port_name(topology, cycle.front());
}

}  // namespace ulfm::fabric
