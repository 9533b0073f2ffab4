#include <algorithm>

#include <fmt/core.h>

#include "fabric/topology/router.hpp"

namespace ulfm::fabric {
namespace {

constexpr std::size_t kMaxRouteBytes = std::size_t{1} << 30;

/// Memory of a route: the vector, and what it has on the heap.
std::size_t bytes_of(const Route& way) {
  return sizeof(Route) + (way.empty() ? 0 : std::max<std::size_t>(32, way.size() + 16));
}

tl::unexpected<Error> too_large(const Topology& topology) {
  return fail(Errc::too_large, fmt::format("topology {}: the routes between all of its {} nodes need more than 1 GiB; "
                                           "take a smaller one, or the routes of one node",
                                           topology.name, topology.nodes()));
}

void put_fixed(const Topology& topology, const Router& router, Routes& routes) {
  if (router.detours()) return;
  for (const FixedRoute& one : topology.fixed) {
    Route& way = routes.way[std::size_t{one.from} * routes.nodes + one.to];
    if (!way.empty()) way = one.way;
  }
}

}  // namespace

std::uint32_t longest_ordered_way(const Topology& t) noexcept {
  std::uint32_t links = 0;
  switch (t.shape) {
    case Shape::mesh: return t.rows + t.columns - 1;
    case Shape::torus: return t.rows + t.columns - 1;  // a ring is passed on the side where it is not opened
    case Shape::cube: return t.dimension + 1;
    case Shape::hypercube: return t.dimension + 1;
    case Shape::grid:
      for (const std::uint32_t size : t.sizes) links += size - 1;
      return links + 1;
    case Shape::hyperx: return static_cast<std::uint32_t>(t.sizes.size()) + 1;
    default: return 0;
  }
}

Result<Routes> compute_routes(const Topology& topology, const DeadPorts& dead) {
  Routes routes;
  routes.nodes = topology.nodes();
  const std::size_t pairs = std::size_t{routes.nodes} * routes.nodes;
  if (pairs * sizeof(Route) > kMaxRouteBytes) return too_large(topology);
  routes.way.resize(pairs);
  Router router(topology, dead);
  Route scratch;
  std::size_t bytes = 0;
  for (std::uint32_t from = 0; from < routes.nodes; ++from) {
    router.start(from);
    for (std::uint32_t to = 0; to < routes.nodes; ++to) {
      router.way(to, scratch);
      routes.way[std::size_t{from} * routes.nodes + to] = scratch;
      bytes += bytes_of(scratch);
    }
    if (bytes > kMaxRouteBytes) return too_large(topology);
  }
  if (topology.fixed.empty() || router.detours()) return routes;  // what is computed has no cycles
  put_fixed(topology, router, routes);
  const auto cycle = dependency_cycle(topology, routes);
  if (cycle.empty()) return routes;
  return fail(Errc::invalid, fmt::format("topology {}: its routes can deadlock, each frame waiting for the next one's "
                                         "channel: {}; leave out one of the routes that turn there, and it is computed",
                                         topology.name, cycle_text(topology, cycle)));
}

std::vector<Route> compute_routes_from(const Topology& topology, std::uint32_t node, const DeadPorts& dead) {
  std::vector<Route> ways(topology.nodes());
  Router router(topology, dead);
  router.start(node);
  for (std::uint32_t to = 0; to < topology.nodes(); ++to) router.way(to, ways[to]);
  if (router.detours()) return ways;
  for (const FixedRoute& one : topology.fixed)
    if (one.from == node && !ways[one.to].empty()) ways[one.to] = one.way;
  return ways;
}

}  // namespace ulfm::fabric
