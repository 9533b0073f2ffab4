#include <bit>
#include <set>

#include "fabric/topology/topology.hpp"
#include "topology_nets.hpp"

using namespace ulfm;
using namespace ulfm::fabric;

namespace {

/// Both ends of every link know each other, and every node hangs where it says.
void check_sound(const Topology& t) {
  REQUIRE(t.ends.size() == std::size_t{t.switches} * t.ports);
  std::uint32_t nodes = 0;
  for (std::uint32_t s = 0; s < t.switches; ++s)
    for (std::uint32_t p = 0; p < t.ports; ++p) {
      const LinkEnd& end = t.end({s, p});
      if (end.kind == LinkEnd::Kind::node) {
        ++nodes;
        test::must(end.index < t.nodes() && t.attachment[end.index] == SwitchPort{s, p}, "a node hangs elsewhere");
      } else if (end.kind == LinkEnd::Kind::switch_port) {
        test::must(end.index < t.switches && end.index != s && end.port < t.ports, "a link leads nowhere");
        test::must(t.end({end.index, end.port}) == LinkEnd{LinkEnd::Kind::switch_port, s, p}, "a link has one end");
      }
    }
  REQUIRE(nodes == t.nodes());
  const auto reach = test::distances(t, 0, {});
  REQUIRE(std::count(reach.begin(), reach.end(), ~0u) == 0);
}

struct Size {
  const char* form;
  std::uint32_t ports, switches, nodes, links, longest, bisection;
};

}  // namespace

TEST_CASE("short forms have the sizes their names say", "[topology]") {
  const Size sizes[] = {
      {"single:1", 5, 1, 1, 0, 0, 0},      {"single:5", 5, 1, 5, 0, 1, 0},      {"single:6", 8, 1, 6, 0, 1, 0},
      {"th8", 8, 1, 8, 0, 1, 0},           {"chain:1", 5, 1, 5, 0, 1, 0},       {"chain:2", 5, 2, 8, 1, 2, 1},
      {"chain:4", 5, 4, 14, 3, 4, 1},      {"chain:40", 5, 40, 122, 39, 40, 1}, {"tree:1", 5, 1, 5, 0, 1, 0},
      {"tree:2", 5, 6, 20, 5, 3, 2},       {"tree:3", 5, 26, 80, 25, 5, 0},     {"mesh:1x1", 5, 1, 1, 0, 0, 0},
      {"mesh:4x4", 5, 16, 16, 24, 7, 4},   {"mesh:3x5", 5, 15, 15, 22, 7, 4},   {"mesh:3x3", 5, 9, 9, 12, 5, 4},
      {"mesh:1x20", 5, 20, 20, 19, 20, 1}, {"torus:4x4", 5, 16, 16, 32, 5, 8},  {"torus:1x5", 5, 5, 5, 5, 4, 2},
      {"cube:0", 5, 1, 1, 0, 0, 0},        {"cube:1", 5, 2, 2, 1, 2, 1},        {"cube:3", 5, 8, 8, 12, 4, 4},
      {"cube:4", 5, 16, 16, 32, 5, 8},     {"cube:5", 8, 32, 32, 80, 6, 16},    {"cube:7", 8, 128, 128, 448, 8, 64},
      {"boards:16x4", 16, 1, 16, 0, 1, 0}, {"boards:1x2", 1, 1, 1, 0, 0, 0},    {"torus:2x2", 5, 4, 4, 8, 3, 4},
      {"torus:3x3", 5, 9, 9, 18, 3, 8},
  };
  for (const Size& size : sizes) {
    INFO(size.form);
    const auto t = read_topology(size.form);
    REQUIRE(t);
    check_sound(*t);
    CHECK(t->name == size.form);
    CHECK(t->ports == size.ports);
    CHECK(t->switches == size.switches);
    CHECK(t->nodes() == size.nodes);
    const Extent extent = measure(*t);
    CHECK(extent.links == size.links);
    CHECK(extent.longest == size.longest);
    CHECK(extent.bisection == size.bisection);
    CHECK(extent.cut_off == 0);
  }
}

TEST_CASE("ports of short forms are where the manual says", "[topology]") {
  const auto mesh = read_topology("mesh:3x4").value();
  CHECK(mesh.end({5, kNorth}) == LinkEnd{LinkEnd::Kind::switch_port, 1, kSouth});
  CHECK(mesh.end({5, kEast}) == LinkEnd{LinkEnd::Kind::switch_port, 6, kWest});
  CHECK(mesh.end({5, kGridNode}) == LinkEnd{LinkEnd::Kind::node, 5, 0});
  CHECK(mesh.end({0, kNorth}).kind == LinkEnd::Kind::nothing);
  const auto torus = read_topology("torus:3x4").value();
  CHECK(torus.end({0, kNorth}) == LinkEnd{LinkEnd::Kind::switch_port, 8, kSouth});
  CHECK(torus.end({0, kWest}) == LinkEnd{LinkEnd::Kind::switch_port, 3, kEast});
  const auto chain = read_topology("chain:3").value();
  CHECK(chain.end({1, 0}) == LinkEnd{LinkEnd::Kind::switch_port, 0, 1});
  CHECK(chain.end({1, 1}) == LinkEnd{LinkEnd::Kind::switch_port, 2, 0});
  CHECK(chain.end({0, 0}).kind == LinkEnd::Kind::node);
  CHECK(chain.end({2, 1}).kind == LinkEnd::Kind::node);
  const auto cube = read_topology("cube:3").value();
  CHECK(cube.end({5, 0}) == LinkEnd{LinkEnd::Kind::switch_port, 4, 0});
  CHECK(cube.end({5, 1}) == LinkEnd{LinkEnd::Kind::switch_port, 7, 1});
  CHECK(cube.end({5, 2}) == LinkEnd{LinkEnd::Kind::switch_port, 1, 2});
  CHECK(cube.end({5, 3}) == LinkEnd{LinkEnd::Kind::node, 5, 0});
  const auto tree = read_topology("tree:3").value();
  for (std::uint32_t p = 0; p < 5; ++p) CHECK(tree.end({0, p}) == LinkEnd{LinkEnd::Kind::switch_port, 1 + p, 0});
  CHECK(tree.end({1, 1}) == LinkEnd{LinkEnd::Kind::switch_port, 6, 0});
  CHECK(tree.attachment[0] == SwitchPort{6, 1});
  CHECK(tree.attachment[79] == SwitchPort{25, 4});
}

TEST_CASE("the largest short forms are sound", "[topology]") {
  for (const char* form : {"mesh:64x64", "torus:1x4096", "tree:6", "chain:4096", "cube:7"}) {
    INFO(form);
    check_sound(read_topology(form).value());
  }
}

TEST_CASE("what is no short form is refused with the way out", "[topology]") {
  const std::pair<const char*, const char*> wrong[] = {
      {"", "There is: single:N"},
      {"mash:4x4", "did you mean mesh?"},
      {"cuba:3", "did you mean cube?"},
      {"cube", "needs one size, as in cube:4"},
      {"cube:8", "0 to 7 dimensions"},
      {"th9", "did you mean th8?"},
      {"th8:1", "There is"},
      {"single", "needs one size, as in single:4"},
      {"single:", "needs one size"},
      {"single:0", "1 to 5 nodes as an X-Switch and up to 8"},
      {"single:9", "for more nodes take chain:S"},
      {"single:2x2", "needs one size"},
      {"chain:-1", "needs one size"},
      {"chain:4097", "1 to 4096"},
      {"chain:99999999999", "needs one size"},
      {"tree:0", "1 to 6 levels"},
      {"tree:7", "1 to 6 levels"},
      {"mesh:4", "needs rows and columns, as in mesh:4x4"},
      {"mesh:4x", "needs rows and columns"},
      {"mesh:4y4", "needs rows and columns"},
      {"mesh:0x4", "1 to 16384"},
      {"mesh:129x128", "1 to 16384"},
      {"mesh:65536x65536", "1 to 16384"},
      {"mesh:26x26x26", "at most 16384 switches"},
      {"torus:4x0x4", "no size of 0"},
      {"hyperx:100x100x100", "298 ports"},
      {"fullmesh:8", "the nodes of a switch"},
      {"fullmesh:200x100", "299 ports"},
      {"hyperx:4x0x2", "no size of 0"},
      {"fattree:128x2", "2 to 127 children"},
      {"fattree:4", "as in fattree:4x3"},
      {"fattree:13x5", "at most 16384 switches"},
      {"dragonfly:2x4", "as in dragonfly:2x4x2"},
      {"dragonfly:200x50x10", "259 ports"},
  };
  for (const auto& [form, says] : wrong) {
    INFO(form);
    const auto t = read_topology(form);
    REQUIRE_FALSE(t);
    CHECK(t.error().code == Errc::invalid);
    CHECK_THAT(t.error().what, Catch::Contains(says) && Catch::Contains("topology \"" + std::string(form) + "\""));
  }
}

TEST_CASE("ports are found by name", "[topology]") {
  const auto t = read_topology("mesh:4x4").value();
  for (std::uint32_t s = 0; s < t.switches; ++s)
    for (std::uint32_t p = 0; p < t.ports; ++p) CHECK(find_port(t, port_name(t, {s, p})) == SwitchPort{s, p});
  for (const char* wrong : {"", ".", "s0", "s0.", ".A", "s0.a", "s0.F", "s16.A", "s00.A", "s01.A", "t0.A", "s.A",
                            "s0 .A", "s-1.A", "s99999999999.A", "s0.AB"}) {
    INFO(wrong);
    CHECK_FALSE(find_port(t, wrong));
  }
  const auto wide = read_topology("fullmesh:128x100").value();
  CHECK(port_name(wide, {3, 25}) == "s3.Z");
  CHECK(port_name(wide, {3, 26}) == "s3.AA");
  for (std::uint32_t p = 0; p < wide.ports; ++p) CHECK(find_port(wide, port_name(wide, {3, p})) == SwitchPort{3, p});
  CHECK_THAT(find_port(wide, "s3.ZZ").error().what, Catch::Contains("227 ports has A to HS"));
  CHECK_FALSE(find_port(wide, "s3.A1"));
  CHECK_THAT(find_port(t, "s16.A").error().what, Catch::Contains("there are 16, s0 to s15"));
  CHECK_THAT(find_port(t, "s0.F").error().what, Catch::Contains("5 ports has A to E"));
}

TEST_CASE("processes are dealt out in blocks that differ by one at most", "[topology]") {
  test::property("blocks", [](test::Draw& draw) {
    const auto t = test::random_shape(draw);
    const std::uint32_t processes = 1 + draw.below(500);
    std::vector<std::uint32_t> on(t.nodes(), 0);
    std::uint32_t last = 0;
    for (std::uint32_t p = 0; p < processes; ++p) {
      const std::uint32_t node = node_of_process(t, p, processes);
      test::must(node < t.nodes(), "a node that is there");
      test::must(node >= last, "blocks follow each other");
      last = node;
      ++on[node];
    }
    const auto [least, most] = std::minmax_element(on.begin(), on.end());
    test::must(*most - *least <= 1, "as even as possible");
    test::must(std::is_sorted(on.rbegin(), on.rend()), "the larger ones first");
    const bool room = t.shape != Shape::cube || processes <= kCubeProcesses * t.nodes();
    test::must(check_processes(t, processes).has_value() == room, "room, or too many for a cube");
  });
}

TEST_CASE("a number of processes to a node, or a placement, is kept to", "[topology]") {
  auto t = read_topology("chain:2").value();
  t.processes_per_node = 3;
  CHECK(node_of_process(t, 0, 24) == 0);
  CHECK(node_of_process(t, 2, 24) == 0);
  CHECK(node_of_process(t, 3, 24) == 1);
  CHECK(node_of_process(t, 23, 24) == 7);
  CHECK(node_of_process(t, 24, 25) == 0);
  CHECK(check_processes(t, 24));
  CHECK_THAT(check_processes(t, 25).error().what, Catch::Contains("room for 24"));
  t.processes_per_node = 0;
  t.placement = {7, 0, 7};
  CHECK(node_of_process(t, 0, 3) == 7);
  CHECK(node_of_process(t, 1, 3) == 0);
  CHECK(node_of_process(t, 3, 4) == 7);
  CHECK(check_processes(t, 3));
  CHECK_THAT(check_processes(t, 4).error().what, Catch::Contains("placement has 3"));
  t.placement.clear();
  CHECK(node_of_process(t, 0xffffffff, 0xffffffff) == 0);  // nothing that is asked leads outside
  CHECK(node_of_process(t, 5, 0) < t.nodes());
}

TEST_CASE("a job that is smaller than its cube is on a sub-cube and its routes stay there", "[topology]") {
  const auto t = read_topology("cube:5").value();
  const auto routes = compute_routes(t).value();
  for (std::uint32_t processes = 1; processes <= 32; ++processes) {
    const std::uint32_t used = std::bit_ceil(processes);
    for (std::uint32_t p = 0; p < processes; ++p) {
      CHECK(node_of_process(t, p, processes) == p);
      for (std::uint32_t q = 0; q < processes; ++q) {
        std::uint32_t at = p;
        for (const std::uint8_t port : routes.between(p, q)) {
          test::must(at < used, "a route leaves the sub-cube");
          at = t.end({at, port}).index;
        }
      }
    }
  }
  CHECK(check_processes(t, 32 * kCubeProcesses));
  CHECK_THAT(check_processes(t, 32 * kCubeProcesses + 1).error().what, Catch::Contains("at most 20"));
}

TEST_CASE("boards take any number of processes, in even blocks", "[topology]") {
  const auto t = read_topology("boards:8x16");
  REQUIRE(t);
  CHECK(switch_name(*t, 0) == "host");
  for (const std::uint32_t processes : {8u, 64u, 128u}) {
    REQUIRE(check_processes(*t, processes));
    for (std::uint32_t p = 0; p < processes; ++p) CHECK(node_of_process(*t, p, processes) == p / (processes / 8));
  }
  CHECK(check_processes(*t, 1000));
  CHECK(node_of_process(*t, 8, 9) == 7);
  for (const char* wrong : {"boards:8", "boards:0x2", "boards:27x1", "boards:2x2x2", "boards:2x0"})
    CHECK_FALSE(read_topology(wrong));
}
