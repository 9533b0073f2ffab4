#include <algorithm>
#include <bit>

#include "fabric/topology/router.hpp"

namespace ulfm::fabric {
namespace {

std::uint32_t count_links(const Topology& topology) {
  const auto ends = std::count_if(topology.ends.begin(), topology.ends.end(),
                                  [](const LinkEnd& e) { return e.kind == LinkEnd::Kind::switch_port; });
  return static_cast<std::uint32_t>(ends / 2);
}

/// Halves of a grid of more than one switch: straight across the longer side where that divides it evenly,
/// otherwise with a step in the line. A torus is cut in two places.
std::uint32_t grid_bisection(const Topology& topology) {
  const std::uint32_t length = std::max(topology.rows, topology.columns);
  const std::uint32_t width = std::min(topology.rows, topology.columns);
  const std::uint32_t across = width + (length % 2 != 0 && width > 1 ? 1 : 0);
  return topology.shape == Shape::torus ? 2 * across : across;
}

/// Tries all ways of dividing the switches.
std::uint32_t smallest_cut(const Topology& topology) {
  const std::uint32_t switches = topology.switches;
  std::vector<std::uint32_t> weight(switches, 0);
  for (const SwitchPort& p : topology.attachment) ++weight[p.at];
  std::uint32_t least = ~std::uint32_t{0}, uneven = ~std::uint32_t{0};
  for (std::uint32_t half = 1; half < 1u << (switches - 1); ++half) {  // the last switch is in the other half
    std::uint32_t here = 0;
    for (std::uint32_t rest = half; rest != 0; rest &= rest - 1) here += weight[std::countr_zero(rest)];
    const std::uint32_t there = topology.nodes() - here;
    const std::uint32_t difference = here < there ? there - here : here - there;
    if (difference > uneven) continue;
    std::uint32_t cut = 0;
    for (std::uint32_t s = 0; s < switches; ++s)
      for (std::uint32_t p = 0; p < topology.ports && (half >> s & 1); ++p)
        cut += topology.end({s, p}).kind == LinkEnd::Kind::switch_port && !(half >> topology.end({s, p}).index & 1);
    if (difference < uneven || cut < least) least = cut;
    uneven = difference;
  }
  return least;
}

std::uint32_t bisection(const Topology& topology) {
  constexpr std::uint32_t kFew = 12;  // switches: 2048 divisions
  if (topology.switches == 1) return 0;
  if (topology.switches <= kFew) return smallest_cut(topology);
  if (topology.shape == Shape::chain) return 1;
  if (topology.shape == Shape::cube) return topology.switches / 2;
  // Half of the cards of each row against the other half.
  if (topology.shape == Shape::hypercube && topology.radix % 2 == 0)
    return topology.switches / topology.radix * (topology.radix / 2) * (topology.radix / 2);
  if (topology.shape == Shape::mesh || topology.shape == Shape::torus) return grid_bisection(topology);
  return 0;
}

}  // namespace

Extent measure(const Topology& topology, const DeadPorts& dead) {
  Extent extent;
  extent.links = count_links(topology);
  extent.bisection = bisection(topology);
  Router router(topology, dead);
  const std::uint32_t nodes = topology.nodes();
  std::vector<std::uint32_t> length(nodes);
  std::uint64_t sum = 0, pairs = 0;
  for (std::uint32_t from = 0; from < nodes; ++from) {
    router.start(from);
    for (std::uint32_t to = 0; to < nodes; ++to) length[to] = router.length(to);
    if (!router.detours())
      for (const FixedRoute& one : topology.fixed)
        if (one.from == from && length[one.to] != 0) length[one.to] = static_cast<std::uint32_t>(one.way.size());
    for (std::uint32_t to = 0; to < nodes; ++to) {
      if (to == from) continue;
      if (length[to] == 0) ++extent.cut_off;
      else sum += length[to], ++pairs, extent.longest = std::max(extent.longest, length[to]);
    }
  }
  extent.average = pairs == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(pairs);
  return extent;
}

}  // namespace ulfm::fabric
