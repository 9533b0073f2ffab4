#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "fabric/topology/topology.hpp"
#include "topology_nets.hpp"

using namespace ulfm;
using namespace ulfm::fabric;

namespace {

Result<Topology> read(const std::string& text) { return read_topology_text(text, "net.toml"); }

/// Reads a text that must be refused, at that line and column.
void refused(const std::string& text, const std::string& where, const std::string& says) {
  INFO(text);
  const auto t = read(text);
  REQUIRE_FALSE(t);
  CHECK_THAT(t.error().what, Catch::StartsWith("net.toml:" + where + ": ") && Catch::Contains(says));
}

const std::string kRing = R"(name = "ring of three"
switches = 3
links = ["s0.B - s1.A", "s1.B-s2.A",
         's2.B - s0.A']
nodes = ["s0.C", "s1.C", "s2.C"]
)";

}  // namespace

TEST_CASE("a topology file is read", "[topology]") {
  const auto t = read("\xEF\xBB\xBF# for the tests\n" + kRing + "processes_per_node = 2 # twins\n");
  REQUIRE(t);
  CHECK(t->name == "ring of three");
  CHECK(t->ports == 5);
  CHECK(t->switches == 3);
  CHECK(t->shape == Shape::other);
  CHECK(t->processes_per_node == 2);
  CHECK(t->end({1, 0}) == LinkEnd{LinkEnd::Kind::switch_port, 0, 1});
  CHECK(t->end({2, 1}) == LinkEnd{LinkEnd::Kind::switch_port, 0, 0});
  CHECK(t->end({0, 4}).kind == LinkEnd::Kind::nothing);
  CHECK(t->attachment == std::vector<SwitchPort>{{0, 2}, {1, 2}, {2, 2}});
  CHECK(node_of_process(*t, 5, 6) == 2);
}

TEST_CASE("switches have names where the file gives them", "[topology]") {
  const auto t = read(R"(
ports = 8
links = ["left.H - right_1.A"]
nodes = ["right_1.C", "left.B"]
placement = [1, 1, 0]
[[switch]]
name = "left"
  [[switch]]   # indented
name = "right_1"
)");
  REQUIRE(t);
  CHECK(t->name == "net.toml");
  CHECK(t->ports == 8);
  CHECK(t->end({0, 7}) == LinkEnd{LinkEnd::Kind::switch_port, 1, 0});
  CHECK(t->attachment[0] == SwitchPort{1, 2});
  CHECK(port_name(*t, {1, 0}) == "right_1.A");
  CHECK(t->placement == std::vector<std::uint32_t>{1, 1, 0});
}

TEST_CASE("routes of a file are taken, and the others computed", "[topology]") {
  const auto t = read(kRing + "routes = [\"n0 -> n2: B B C\"]\n");
  REQUIRE(t);
  const auto routes = compute_routes(*t).value();
  CHECK(routes.between(0, 2) == Route{1, 1, 2});
  CHECK(routes.between(2, 0) == Route{1, 2});
  CHECK(compute_routes_from(*t, 0)[2] == Route{1, 1, 2});
  CHECK(measure(*t).longest == 3);
  // A dead link sends everything round it.
  CHECK(compute_routes(*t, {{0, 1}}).value().between(0, 2) == Route{0, 2});
  CHECK(compute_routes_from(*t, 0, {{0, 1}})[2] == Route{0, 2});
  CHECK(compute_routes(*t, {{2, 2}}).value().between(0, 2).empty());
}

TEST_CASE("routes of a file that can deadlock are refused with the cycle", "[topology]") {
  refused(kRing + "routes = [\"n0 -> n2: B B C\", \"n1 -> n0: B B C\",\n  \"n2 -> n1: B B C\"]\n", "6:10",
          "can deadlock, each frame waiting for the next one's channel: s0.B -> s1.B -> s2.B -> s0.B; leave out");
  CHECK(read(kRing + "routes = [\"n0 -> n2: B B C\", \"n1 -> n0: B B C\"]\n"));
}

TEST_CASE("errors of switches, links and nodes name line and column", "[topology]") {
  refused("", "1:1", "needs switches");
  refused("switches = 0\n", "1:12", "switches needs a whole number from 1 to 4096");
  refused("switches = \"4\"\n", "1:12", "switches needs a whole number");
  refused("switches = 4097\n", "1:12", "from 1 to 4096");
  refused("switches = 1\nports = 27\n", "2:9", "ports needs a whole number from 2 to 26; an X-Switch has 5");
  refused("switches = 1\nprots = 8\n", "2:1", "did you mean ports?");
  refused("switches = 1\nname = 5\n", "2:8", "name needs a string");
  refused("switches = 1\nname = \"\\u0007\"\n", "2:8", "can be printed");
  refused("switches = 1\n[[switch]]\nname = \"a\"\n", "1:12", "leave one of them out");
  refused("switch = 3\n", "1:10", "[[switch]]");
  refused("[[switch]]\n", "1:1", "needs name");
  refused("[[switch]]\nname = \"a b\"\n", "2:8", "letters, digits and underscores");
  refused("[[switch]]\nname = \"a\"\nlinks = []\n", "3:1", "above the first [[switch]]");
  refused("[[switch]]\nname = \"a\"\n[[switch]]\nname = \"a\"\n", "4:8", "\"a\" already, in line 2");
  refused("switches = 2\nlinks = \"s0.A - s1.A\"\n", "2:9", "needs an array of strings such as \"s0.B - s1.A\"");
  refused("switches = 2\nlinks = [\n  3]\n", "3:3", "needs strings");
  refused("switches = 2\nlinks = [\n  \"s0.A s1.A\"]\n", "3:3", "a dash between them");
  refused("switches = 2\nlinks = [\"s0.A - s2.A\"]\n", "2:10", "no switch is called s2; there are 2, s0 to s1");
  refused("switches = 2\nlinks = [\"s0.A - s1.F\"]\n", "2:10", "5 ports has A to E");
  refused("switches = 2\nlinks = [\"s0.A - s0.B\"]\n", "2:10", "leads back to the switch it comes from");
  refused("switches = 2\nlinks = [\"s0.A - s1.A\",\n\"s1.B - s0.A\"]\n", "3:1",
          "port s0.A is in use by line 2 already, and has one end; free at s0: B, C, D, E");
  refused("switches = 2\nports = 2\nlinks = [\"s0.A - s1.A\", \"s0.B - s1.B\"]\nnodes=[\"s1.A\"]\n", "4:8",
          "none of s1 is free");
  refused("switches = 2\nlinks = [\"s0.A - s1.A\"]\n", "1:1", "needs nodes");
  refused("switches = 2\nlinks = [\"s0.A - s1.A\"]\nnodes = []\n", "3:9", "needs nodes");
  refused("switches = 2\nlinks = [\"s0.A - s1.A\"]\nnodes = [\"s7.A\"]\n", "3:10", "no switch is called s7");
  refused("switches = 2\nlinks = [\"s0.A - s1.A\"]\nnodes = [\"s0.A\"]\n", "3:10", "in use by line 2");
  refused("switches = 3\nlinks = [\"s0.A - s1.A\"]\nnodes = [\"s0.B\"]\n", "2:9",
          "no way leads from switch s0 to s2; all switches must be one network: add a link (free at s2: A");
  refused("links = [\"lft.A - r.A\"]\nnodes = [\"left.B\"]\n[[switch]]\nname=\"left\"\n[[switch]]\nname=\"r\"\n",
          "1:10", "did you mean left?");
}

TEST_CASE("errors of processes and routes name line and column", "[topology]") {
  refused(kRing + "processes_per_node = 0\n", "6:22", "from 1 to 65536");
  refused(kRing + "processes_per_node = 2\nplacement = [0]\n", "7:13", "both placement and processes_per_node");
  refused(kRing + "placement = []\n", "6:13", "numbers from 0 to 2");
  refused(kRing + "placement = [0, 3]\n", "6:17", "numbers from 0 to 2");
  refused(kRing + "placement = [0, -1]\n", "6:17", "numbers from 0 to 2");
  refused(kRing + "placement = \"n0\"\n", "6:13", "such as [0, 0, 1]");
  refused(kRing + "routes = [\"n0 n1\"]\n", "6:11", "such as \"n0 -> n2: B C\"");
  refused(kRing + "routes = [\"n0 -> n3: B C\"]\n", "6:11", "\"n3\" is no node; there are n0 to n2");
  refused(kRing + "routes = [\"0 -> n1: B C\"]\n", "6:11", "\"0\" is no node");
  refused(kRing + "routes = [\"n1 -> n1: C\"]\n", "6:11", "two different nodes");
  refused(kRing + "routes = [\"n0 -> n1: B\"]\n", "6:11", "ends at switch s1; it needs to end at node n1");
  refused(kRing + "routes = [\"n0 -> n1: B B C\"]\n", "6:11", "ends at node n2; it needs to end at node n1");
  refused(kRing + "routes = [\"n0 -> n1: B C A\"]\n", "6:11", "goes on behind node n1");
  refused(kRing + "routes = [\"n0 -> n1: B E\"]\n", "6:11", "leaves by port s1.E, where nothing is");
  refused(kRing + "routes = [\"n0 -> n1: B F\"]\n", "6:11", "a port \"F\"");
  refused(kRing + "routes = [\"n0 -> n1: " + std::string(64, 'B') + "\"]\n", "6:11", "goes round in circles");
  refused(kRing + "routes = [\"n0 -> n1: B C\",\n\"n0 -> n1: B C\"]\n", "7:1", "line 6 has a route between");
}

TEST_CASE("what TOML has and topologies have not is refused before it is parsed", "[topology]") {
  refused("switches = 1\n[\n", "2:1", "only table of a topology is [[switch]]");
  refused("\xEF\xBB\xBF[\n", "1:1", "only table of a topology is [[switch]]");
  refused("switches = 1\n \t[table]\n", "2:3", "only table of a topology is [[switch]]");
  refused("[[ switch ]]\n", "1:1", "only table of a topology is [[switch]]");
  refused("\xC2\xA0[\n", "1:1", "plain ASCII");
  refused("a = {b = 1}\n", "1:5", "tables in braces");
  refused("switches = 1979-05-27 1\n", "1:16", "needs a string in quotes, a whole number, or an array");
  refused("switches = 07:32\n", "1:14", "needs a string in quotes, a whole number");
  refused("switches = inf\n", "1:12", "needs a string in quotes, a whole number");
  refused("switches = 1 = 2\n", "1:14", "needs a string in quotes, a whole number");
  refused("switches = 1, 2\n", "1:13", "needs a string in quotes, a whole number");
  refused("switches : 1\n", "1:10", "needs key = value, found :");
  refused("switches [1]\n", "1:10", "only table of a topology");
  refused("a.b = 1\n", "1:2", "a dot outside of quotes");
  refused("nodes = [[\"s0.A\"]]\n", "1:10", "an array inside an array");
  refused("nodes = [\n[[switch]]\n", "2:1", "an array that was not closed");
  refused("name = \"\"\"x\"\"\"\n", "1:8", "on one line");
  refused("name = '''x'''\n", "1:8", "on one line");
  refused("name = \"x\n", "1:8", "not closed on its line");
  refused("name = \"x\\", "1:8", "not closed on its line");
  refused("name = 'x\\' 'y\n", "1:13", "not closed on its line");
  refused("hosts = --'y'\n", "1:11", "in front of a quote");
  refused("name = 'x''y'\n", "1:11", "in front of a quote");
  refused("hosts = -['y']\n", "1:10", "in front of an array");
  refused("switches = 1\nswitches = 2\n", "2:12", "cannot redefine");
  refused("switches = \n", "1:12", "expected value");
  CHECK(read("name = \"a\\\\\" # \"[{.\nswitches=1\nnodes=['s0.A']\n"));
}

TEST_CASE("a file is found by its path, and one that is not there is an error", "[topology]") {
  char path[] = "/tmp/ulfm_topology_XXXXXX.toml";
  const int fd = mkstemps(path, 5);
  REQUIRE(fd >= 0);
  std::ofstream(path) << "switches = 1\nnodes = [\"s0.A\"]\n";
  const auto t = read_topology(path);
  std::ofstream(path, std::ios::app) << "nodse = 1\n";
  const auto wrong = read_topology(path);
  std::ofstream(path) << std::string((4 << 20) + 1, '\n');
  const auto large = read_topology(path);
  close(fd);
  unlink(path);
  REQUIRE(t);
  CHECK(t->name == path);
  REQUIRE_FALSE(wrong);
  CHECK_THAT(wrong.error().what, Catch::StartsWith(std::string(path) + ":3:1: "));
  REQUIRE_FALSE(large);
  CHECK(large.error().code == Errc::too_large);
  CHECK_THAT(read_topology("nothing.toml").error().what, Catch::Contains("nothing.toml: cannot be opened"));
  CHECK(read_topology("./nothing").error().code == Errc::not_found);
  CHECK(read_topology("/").error().code == Errc::not_found);
}
