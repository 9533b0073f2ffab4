// Grids of more dimensions, hyperX, fat trees and dragonflies: sizes, links, and routes that cannot deadlock.
#include <catch2/catch.hpp>

#include "fabric/topology/topology.hpp"

using namespace ulfm::fabric;

namespace {

/// The node at the end of a way; ~0 when it does not end at one.
std::uint32_t follow(const Topology& t, std::uint32_t from, const Route& way) {
  std::uint32_t at = t.attachment[from].at;
  for (std::size_t i = 0; i < way.size(); ++i) {
    const LinkEnd& end = t.end({at, way[i]});
    if (end.kind == LinkEnd::Kind::node) return i + 1 == way.size() ? end.index : ~0u;
    if (end.kind == LinkEnd::Kind::nothing) return ~0u;
    at = end.index;
  }
  return ~0u;
}

struct Shape5 {
  const char* form;
  std::uint32_t switches, nodes, ports, longest;  // switches on the longest way
};

}  // namespace

TEST_CASE("generated shapes have their sizes, and routes that arrive and cannot deadlock", "[topology]") {
  const Shape5 shapes[] = {
      {"mesh:3x4x5", 60, 60, 7, 10},  {"mesh:2x2x2x2x2", 32, 32, 11, 6}, {"torus:4x4x4", 64, 64, 7, 7},
      {"torus:5x3x2", 30, 30, 7, 0},  {"fullmesh:8x2", 8, 16, 9, 2},     {"fullmesh:1x4", 1, 4, 4, 1},
      {"hyperx:4x4x2", 16, 32, 8, 3}, {"hyperx:3x4x2x1", 24, 24, 7, 4},  {"fattree:2x3", 12, 8, 4, 5},
      {"fattree:4x3", 48, 64, 8, 5},  {"fattree:3x1", 1, 3, 6, 1},       {"dragonfly:2x4x2", 36, 72, 7, 0},
      {"dragonfly:1x2x1", 6, 6, 3, 0}};
  for (const Shape5& shape : shapes) {
    INFO(shape.form);
    const auto t = read_topology(shape.form).value();
    CHECK(t.switches == shape.switches);
    CHECK(t.nodes() == shape.nodes);
    CHECK(t.ports == shape.ports);
    for (std::uint32_t i = 0; i < t.ends.size(); ++i) {
      const LinkEnd& end = t.ends[i];
      if (end.kind == LinkEnd::Kind::switch_port)
        REQUIRE(t.end({end.index, end.port}) == LinkEnd{LinkEnd::Kind::switch_port, i / t.ports, i % t.ports});
      if (end.kind == LinkEnd::Kind::node) REQUIRE(t.attachment[end.index] == SwitchPort{i / t.ports, i % t.ports});
    }
    const auto routes = compute_routes(t).value();
    std::size_t longest = 0, wrong = 0;
    for (std::uint32_t a = 0; a < t.nodes(); ++a)
      for (std::uint32_t b = 0; b < t.nodes(); ++b) {
        if (a == b) continue;
        longest = std::max(longest, routes.between(a, b).size());
        wrong += follow(t, a, routes.between(a, b)) != b ? 1 : 0;
      }
    CHECK(wrong == 0);
    if (shape.longest != 0) CHECK(longest == shape.longest);
    if (longest_ordered_way(t) != 0) CHECK(longest <= longest_ordered_way(t));
    CHECK(cycle_text(t, dependency_cycle(t, routes)) == "");
  }
}

TEST_CASE("a fat tree's ways turn round at the lowest level that serves both nodes", "[topology]") {
  const auto t = read_topology("fattree:4x3").value();
  const auto routes = compute_routes(t).value();
  CHECK(routes.between(0, 3).size() == 1);
  CHECK(routes.between(0, 15).size() == 3);
  CHECK(routes.between(0, 63).size() == 5);
}

TEST_CASE("the generated shapes with a dead link have ways round it", "[topology]") {
  for (const char* form : {"torus:4x4x4", "hyperx:4x4x2", "fattree:4x3", "dragonfly:2x4x2"}) {
    INFO(form);
    const auto t = read_topology(form).value();
    std::uint32_t port = 0;
    while (t.end({0, port}).kind != LinkEnd::Kind::switch_port) ++port;
    const auto routes = compute_routes(t, {{0, port}}).value();
    CHECK(dependency_cycle(t, routes).empty());
    std::size_t missing = 0, through = 0;
    for (std::uint32_t a = 0; a < t.nodes(); ++a)
      for (std::uint32_t b = 0; b < t.nodes(); ++b) {
        if (a == b) continue;
        missing += follow(t, a, routes.between(a, b)) != b ? 1 : 0;
        std::uint32_t at = t.attachment[a].at;
        for (const std::uint8_t p : routes.between(a, b)) {
          through += at == 0 && p == port ? 1 : 0;
          at = t.end({at, p}).index;
        }
      }
    CHECK(missing == 0);
    CHECK(through == 0);
  }
}

TEST_CASE("shapes of thousands of nodes are made", "[topology]") {
  CHECK(read_topology("torus:24x24x22").value().nodes() == 12672);
  CHECK(read_topology("mesh:113x113").value().nodes() == 12769);
  CHECK(read_topology("fattree:11x4").value().nodes() == 14641);
  CHECK(read_topology("dragonfly:8x12x7").value().nodes() == 8160);
  CHECK(read_topology("dragonfly:8x16x8").value().nodes() == 16512);
  CHECK(read_topology("fullmesh:128x100").value().nodes() == 12800);
  CHECK(read_topology("hyperx:24x24x22").value().nodes() == 12672);
  CHECK(read_topology("fattree:24x3").value().nodes() == 13824);
  CHECK(read_topology("hyperx:8x8x8x5").value().nodes() == 2560);
}
