#include <bit>
#include <map>

#include "fabric/topology/topology.hpp"
#include "topology_nets.hpp"

using namespace ulfm;
using namespace ulfm::fabric;

namespace {

/// The shortest way that may not turn from down to up, for the given ranks: by trying out all of them.
std::uint32_t shortest_legal(const Topology& t, const std::vector<std::uint32_t>& rank, std::uint32_t from,
                             std::uint32_t to, const DeadPorts& dead) {
  std::vector<bool> seen(std::size_t{t.switches} * 2, false);
  std::deque<std::pair<std::uint32_t, std::uint32_t>> queue{{from * 2, 1}};
  seen[from * 2] = true;
  while (!queue.empty()) {
    const auto [state, length] = queue.front();
    queue.pop_front();
    const std::uint32_t s = state / 2;
    if (s == to) return length;
    for (std::uint32_t p = 0; p < t.ports; ++p) {
      const LinkEnd& end = t.end({s, p});
      if (end.kind != LinkEnd::Kind::switch_port || test::is_dead(t, dead, {s, p})) continue;
      const bool down = rank[end.index] > rank[s];
      if (!down && state % 2 == 1) continue;
      const std::uint32_t next = end.index * 2 + (down ? 1 : 0);
      if (seen[next]) continue;
      seen[next] = true;
      queue.push_back({next, length + 1});
    }
  }
  return 0;
}

/// Ranks as up*/down* has them: breadth first from the switch with the smallest sum of distances, part by
/// part.
std::vector<std::uint32_t> ranks_of(const Topology& t, const DeadPorts& dead) {
  std::vector<std::uint32_t> rank(t.switches, ~0u);
  std::uint32_t next = 0;
  for (std::uint32_t first = 0; first < t.switches; ++first) {
    if (rank[first] != ~0u) continue;
    const auto part = test::distances(t, first, dead);
    std::uint32_t root = first;
    std::uint64_t least = ~std::uint64_t{0};
    for (std::uint32_t s = 0; s < t.switches; ++s) {
      if (part[s] == ~0u) continue;
      std::uint64_t sum = 0;
      for (const std::uint32_t d : test::distances(t, s, dead)) sum += d == ~0u ? 0 : d;
      if (sum < least) root = s, least = sum;
    }
    std::deque<std::uint32_t> queue{root};
    rank[root] = next++;
    for (; !queue.empty(); queue.pop_front())
      for (std::uint32_t p = 0; p < t.ports; ++p) {
        const SwitchPort port{queue.front(), p};
        const LinkEnd& end = t.end(port);
        if (end.kind != LinkEnd::Kind::switch_port || test::is_dead(t, dead, port) || rank[end.index] != ~0u) continue;
        rank[end.index] = next++;
        queue.push_back(end.index);
      }
  }
  return rank;
}

/// Links on the shorter way round a ring of `size` that does not pass through switch `opened`: by walking.
std::uint32_t around(std::uint32_t from, std::uint32_t to, std::uint32_t size, std::uint32_t opened) {
  std::uint32_t shortest = from == to ? 0 : ~0u;
  for (const std::uint32_t step : {1u, size - 1}) {
    std::uint32_t at = from;
    for (std::uint32_t links = 1; links < size && from != to; ++links) {
      at = (at + step) % size;
      if (at == to) shortest = std::min(shortest, links);
      if (at == to || at == opened) break;
    }
  }
  return shortest;
}

/// A row opens at the column of its own number, a column at the row.
std::uint32_t torus_length(const Topology& t, std::uint32_t from, std::uint32_t to) {
  const std::uint32_t row = from / t.columns, column = to % t.columns;
  return around(from % t.columns, column, t.columns, row % t.columns) +
         around(row, to / t.columns, t.rows, column % t.rows) + 1;
}

bool cuts_links(const Topology& t, const DeadPorts& dead) {
  return std::any_of(dead.begin(), dead.end(),
                     [&](const SwitchPort& p) { return t.end(p).kind == LinkEnd::Kind::switch_port; });
}

void check_all(const Topology& t, const DeadPorts& dead) {
  const auto routes = compute_routes(t, dead);
  test::must(routes.has_value(), "routes are there");
  const bool whole = !cuts_links(t, dead);
  const auto rank = ranks_of(t, dead);
  for (std::uint32_t from = 0; from < t.nodes(); ++from) {
    const auto reach = test::distances(t, t.attachment[from].at, dead);
    for (std::uint32_t to = 0; to < t.nodes(); ++to) {
      const Route& way = routes->between(from, to);
      const std::uint32_t links = reach[t.attachment[to].at];
      const bool possible = from != to && links != ~0u && !test::is_dead(t, dead, t.attachment[from]) &&
                            !test::is_dead(t, dead, t.attachment[to]);
      test::must(way.empty() != possible, "a route is there where there is a way, and only there");
      if (!possible) continue;
      test::must(test::end_of(t, from, way, dead) == to, "a route leads where it should, over links that work");
      const std::uint32_t s = t.attachment[from].at, d = t.attachment[to].at;
      const std::uint32_t legal = whole && t.shape == Shape::mesh    ? links + 1
                                  : whole && t.shape == Shape::torus ? torus_length(t, s, d)
                                  : whole && t.shape == Shape::cube
                                      ? static_cast<std::uint32_t>(std::popcount(s ^ d)) + 1
                                      : shortest_legal(t, rank, s, d, dead);
      test::must(way.size() == legal, "a route is the shortest legal one");
    }
  }
  test::must(dependency_cycle(t, *routes).empty(), "no cycle of dependencies");
}

}  // namespace

TEST_CASE("routes lead where they should, are the shortest legal ones, and cannot deadlock", "[topology]") {
  test::property("whole networks", [](test::Draw& draw) { check_all(test::random_shape(draw), {}); });
}

TEST_CASE("the same holds around dead links", "[topology]") {
  test::property("networks with dead ports", [](test::Draw& draw) {
    const Topology t = test::random_shape(draw);
    check_all(t, test::random_dead(t, draw));
  });
}

TEST_CASE("routes of one node are those of all nodes", "[topology]") {
  test::property("from one node", [](test::Draw& draw) {
    const Topology t = test::random_shape(draw);
    const DeadPorts dead = test::random_dead(t, draw);
    const auto routes = compute_routes(t, dead);
    const std::uint32_t from = draw.below(t.nodes());
    const auto row = compute_routes_from(t, from, dead);
    for (std::uint32_t to = 0; to < t.nodes(); ++to)
      test::must(row[to] == routes->between(from, to), "node " + std::to_string(from));
  });
}

TEST_CASE("the measure of a topology is that of its routes", "[topology]") {
  test::property("lengths", [](test::Draw& draw) {
    const Topology t = test::random_shape(draw);
    const DeadPorts dead = test::random_dead(t, draw);
    const auto routes = compute_routes(t, dead);
    const Extent extent = measure(t, dead);
    std::uint64_t sum = 0, empty = 0;
    std::size_t longest = 0;
    for (const Route& way : routes->way)
      sum += way.size(), empty += way.empty(), longest = std::max(longest, way.size());
    test::must(extent.longest == longest, "longest");
    test::must(extent.cut_off == empty - t.nodes(), "pairs that are cut off");
    const std::uint64_t pairs = routes->way.size() - empty;
    test::must(pairs == 0 || std::abs(extent.average * static_cast<double>(pairs) - static_cast<double>(sum)) < 1e-6,
               "average");
  });
}

TEST_CASE("a mesh is crossed along the row first", "[topology]") {
  const auto t = read_topology("mesh:4x4").value();
  const auto routes = compute_routes(t).value();
  CHECK(routes.between(0, 15) == Route{kEast, kEast, kEast, kSouth, kSouth, kSouth, kGridNode});
  CHECK(routes.between(13, 2) == Route{kEast, kNorth, kNorth, kNorth, kGridNode});
  CHECK(routes.between(7, 4) == Route{kWest, kWest, kWest, kGridNode});
  CHECK(routes.between(3, 3).empty());
}

TEST_CASE("a dead node of a mesh leaves the other routes alone", "[topology]") {
  const auto t = read_topology("mesh:3x3").value();
  const auto whole = compute_routes(t).value();
  const auto cut = compute_routes(t, {{4, kGridNode}}).value();
  for (std::uint32_t from = 0; from < 9; ++from)
    for (std::uint32_t to = 0; to < 9; ++to) {
      if (from == 4 || to == 4) CHECK(cut.between(from, to).empty());
      else CHECK(cut.between(from, to) == whole.between(from, to));
    }
}

TEST_CASE("a broken chain has no way across", "[topology]") {
  const auto t = read_topology("chain:4").value();
  const auto routes = compute_routes(t, {{2, 0}}).value();
  for (std::uint32_t from = 0; from < t.nodes(); ++from)
    for (std::uint32_t to = 0; to < t.nodes(); ++to) {
      const bool across = (t.attachment[from].at < 2) != (t.attachment[to].at < 2);
      CHECK(routes.between(from, to).empty() == (across || from == to));
    }
}

TEST_CASE("dependencies of minimal routes round a ring are a cycle, and it is shown", "[topology]") {
  const auto ring = read_topology("torus:1x4").value();
  auto routes = compute_routes(ring).value();
  REQUIRE(dependency_cycle(ring, routes).empty());
  // Everybody two to the east: each frame holds the channel the one behind it waits for.
  for (std::uint32_t n = 0; n < 4; ++n) routes.way[n * 4 + (n + 2) % 4] = {kEast, kEast, kGridNode};
  const auto cycle = dependency_cycle(ring, routes);
  REQUIRE(cycle.size() == 4);
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    CHECK(cycle[i].port == kEast);
    CHECK(cycle[(i + 1) % 4].at == (cycle[i].at + 1) % 4);
  }
  CHECK(cycle_text(ring, cycle) == "s0.B -> s1.B -> s2.B -> s3.B -> s0.B");
  routes.way[0 * 4 + 2] = {kWest, kWest, kGridNode};
  CHECK(dependency_cycle(ring, routes).empty());
}

TEST_CASE("random routes have the cycle that is shown, or none", "[topology]") {
  test::property("against a search of all pairs of channels", [](test::Draw& draw) {
    const Topology t = test::random_net(draw);
    Routes routes{t.nodes(), std::vector<Route>(std::size_t{t.nodes()} * t.nodes())};
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<SwitchPort>> next;
    for (std::uint32_t from = 0; from < t.nodes(); ++from) {
      SwitchPort before{~0u, 0};
      std::uint32_t at = t.attachment[from].at;
      Route& way = routes.way[std::size_t{from} * t.nodes()];
      for (std::uint32_t hops = draw.below(8); hops > 0; --hops) {
        const SwitchPort out{at, draw.below(t.ports)};
        if (t.end(out).kind != LinkEnd::Kind::switch_port) continue;
        way.push_back(static_cast<std::uint8_t>(out.port));
        if (before.at != ~0u) next[{before.at, before.port}].push_back(out);
        before = out, at = t.end(out).index;
      }
    }
    const auto cycle = dependency_cycle(t, routes);
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const auto& after = next[{cycle[i].at, cycle[i].port}];
      test::must(std::find(after.begin(), after.end(), cycle[(i + 1) % cycle.size()]) != after.end(),
                 "every step of the cycle is a dependency");
    }
    // Channels without dependencies are taken away until none is left, which ends early where there is a
    // cycle.
    for (bool changed = true; changed;) {
      changed = false;
      for (auto one = next.begin(); one != next.end();) {
        std::erase_if(one->second, [&](const SwitchPort& p) { return !next.count({p.at, p.port}); });
        if (one->second.empty()) one = next.erase(one), changed = true;
        else ++one;
      }
    }
    test::must(next.empty() == cycle.empty(), "a cycle is found where there is one");
  });
}

TEST_CASE("equally short ways take turns", "[topology]") {
  // Two switches, four links, and sixteen pairs of nodes each way.
  Topology t = bare_topology("parallel", Shape::other, 8, 2);
  for (std::uint32_t p = 0; p < 4; ++p) join(t, {0, p}, {1, p});
  for (std::uint32_t s = 0; s < 2; ++s)
    for (std::uint32_t p = 4; p < 8; ++p) attach_node(t, {s, p});
  const auto routes = compute_routes(t).value();
  for (std::uint32_t from = 0; from < 4; ++from) {
    std::vector<int> used(4, 0);
    for (std::uint32_t to = 4; to < 8; ++to) ++used[routes.between(from, to)[0]];
    CHECK(used == std::vector<int>{1, 1, 1, 1});
  }
  // And different nodes begin with different links.
  for (std::uint32_t to = 4; to < 8; ++to) {
    std::vector<int> used(4, 0);
    for (std::uint32_t from = 0; from < 4; ++from) ++used[routes.between(from, to)[0]];
    CHECK(used == std::vector<int>{1, 1, 1, 1});
  }
}

TEST_CASE("the load of a torus is what the manual says, and no channel idles", "[topology]") {
  const auto t = read_topology("torus:8x8").value();
  const auto routes = compute_routes(t).value();
  std::vector<std::uint32_t> used(t.ends.size(), 0);
  for (std::uint32_t from = 0; from < t.nodes(); ++from)
    for (std::uint32_t to = 0; to < t.nodes(); ++to) {
      std::uint32_t at = t.attachment[from].at;
      for (const std::uint8_t port : routes.between(from, to)) {
        ++used[at * t.ports + port];
        at = t.end({at, port}).index;
      }
    }
  std::uint32_t least = ~0u, most = 0, sum = 0;
  for (std::uint32_t s = 0; s < t.switches; ++s)
    for (std::uint32_t p = 0; p < kGridNode; ++p) {
      const std::uint32_t u = used[s * t.ports + p];
      least = std::min(least, u), most = std::max(most, u), sum += u;
    }
  CHECK(least == 24);
  CHECK(sum == 256 * 72);
  CHECK(most == 104);
  CHECK(measure(t).average == Approx(5.571).epsilon(1e-3));
}

TEST_CASE("routes of all nodes have a limit, those of one node have not", "[topology]") {
  const auto t = read_topology("chain:4096").value();
  const auto all = compute_routes(t);
  REQUIRE_FALSE(all);
  CHECK(all.error().code == Errc::too_large);
  CHECK_THAT(all.error().what, Catch::Contains("1 GiB"));
  const auto row = compute_routes_from(t, 0);
  CHECK(row.back().size() == 4096);
}
