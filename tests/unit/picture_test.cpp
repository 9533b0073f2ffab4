// Pictures of topologies: nothing lies on anything else.
#include <catch2/catch.hpp>

#include <cmath>
#include <string>

#include "../../tools/ulfm_topo/layout.hpp"
#include "../../tools/ulfm_topo/print.hpp"
#include "fabric/topology/topology.hpp"

namespace {

using topo::Layout;
using topo::Point;
using ulfm::fabric::LinkEnd;

// The middle of a link is sampled: it must not lie in a label.
bool in_label(Point p, Point node) {
  return std::abs(p.x - node.x) < topo::kNodeWidth / 2 && std::abs(p.y - node.y) < topo::kNodeHeight / 2;
}

void check_picture(const std::string& name) {
  INFO(name);
  const auto t = ulfm::fabric::read_topology(name);
  REQUIRE(t);
  const Layout l = topo::lay_out(*t);
  for (std::size_t a = 0; a < l.switches.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      CHECK(std::hypot(l.switches[a].x - l.switches[b].x, l.switches[a].y - l.switches[b].y) > l.switch_width + 16);
  for (std::uint32_t s = 0; s < t->switches; ++s)
    for (std::uint32_t p = 0; p < t->ports; ++p) {
      const LinkEnd& end = t->end({s, p});
      if (end.kind != LinkEnd::Kind::switch_port) continue;
      const Point from = l.ports[std::size_t{s} * t->ports + p],
                  to = l.ports[std::size_t{end.index} * t->ports + end.port];
      for (int i = 0; i <= 100; ++i) {
        const Point at{from.x + (to.x - from.x) * i / 100, from.y + (to.y - from.y) * i / 100};
        for (std::size_t n = 0; n < l.nodes.size(); ++n) CHECK_FALSE(in_label(at, l.nodes[n]));
      }
    }
  for (std::size_t a = 0; a < l.nodes.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      CHECK_FALSE((std::abs(l.nodes[a].x - l.nodes[b].x) < topo::kNodeWidth &&
                   std::abs(l.nodes[a].y - l.nodes[b].y) < topo::kNodeHeight));
}

}  // namespace

TEST_CASE("in a picture labels cover no links and switches do not touch", "[topology][picture]") {
  for (const char* name : {"cube:1", "cube:2", "cube:3", "cube:4", "cube:5", "single:5", "th8"}) check_picture(name);
  for (const char* file : {"petersen", "ring", "th_pair", "triangle"})
    check_picture(std::string(ULFM_TOPOLOGIES "/") + file + ".toml");
}

TEST_CASE("a hypercube is drawn with parallel links in each dimension", "[topology][picture]") {
  const auto t = ulfm::fabric::read_topology("cube:4");
  REQUIRE(t);
  const Layout l = topo::lay_out(*t);
  for (std::uint32_t d = 0; d < 4; ++d) {
    const Point way{l.switches[1u << d].x - l.switches[0].x, l.switches[1u << d].y - l.switches[0].y};
    for (std::uint32_t s = 0; s < 16; ++s)
      if ((s >> d & 1) == 0) {
        CHECK(l.switches[s | 1u << d].x - l.switches[s].x == Approx(way.x));
        CHECK(l.switches[s | 1u << d].y - l.switches[s].y == Approx(way.y));
      }
  }
}
