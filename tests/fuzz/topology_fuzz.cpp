// Topologies: the text of a file, and short forms. The first byte says which.
#include "fabric/topology/generators.hpp"
#include "fabric/topology/topology.hpp"
#include "fuzz.hpp"

using namespace ulfm;
using namespace ulfm::fabric;

std::vector<std::string> fuzz_seeds() {
  const std::string ring =
      "0name = \"ring\"\nswitches = 3\nlinks = [\"s0.B - s1.A\", \"s1.B - s2.A\",\n  's2.B - s0.A']\n"
      "nodes = [\"s0.C\", \"s1.C\", \"s2.C\"]\n";
  return {ring + "processes_per_node = 2\n",
          ring + "placement = [0, 0, 1, 2]\nroutes = [\"n0 -> n2: B B C\", \"n1 -> n0: B B C\"]\n",
          ring + "routes = [\"n0 -> n2: B B C\", \"n1 -> n0: B B C\", \"n2 -> n1: B B C\"]\n",
          "0ports = 8\nlinks = [\"left.H - right.A\"] # comment\nnodes = [\"left.A\", \"right.B\"]\n"
          "[[switch]]\nname = \"left\"\n[[switch]]\nname = \"right\"\n",
          "0switches = 4096\nnodes = [\"s0.A\"]\n",
          // What makes the TOML parser stop the program when it gets to see it.
          "0[\n", "0a = 1979-05-27 0\n", "0a = 07:\n", "0[[\n]", "0\xEF\xBB\xBF[\n", "0\xC2\xA0[ \n", "0a = [\n[\n",
          "0a = \"\"\"\n[\n\"\"\"\n", "0{a = {b.c = 1}}\n", "0a." + std::string(2000, '.') + "a = 1\n",
          "0\"\\u0000\\uFFFF\" = 1_0\r\n'x' = 0x1f\n", "0x = 1979-05-27\ny = -nan\n", "1mesh:4x4", "1torus:3x5",
          "1tree:3", "1chain:7", "1single:8", "1cube:0", "1cube:4", "1cube:8", "1th8", "1mesh:64x64x64",
          "1chain:4294967297", "1fattree:18x1", "1hyperx:4x4x2", "1dragonfly:2x4x2"};
}

namespace {

void check_sound(const Topology& t, std::uint32_t most_ports) {
  must(t.switches >= 1 && t.switches <= kMaxSwitches && t.ports <= most_ports, "sizes are in their limits");
  must(t.ends.size() == std::size_t{t.switches} * t.ports && t.nodes() >= 1, "ports and nodes are there");
  for (std::uint32_t s = 0; s < t.switches; ++s)
    for (std::uint32_t p = 0; p < t.ports; ++p) {
      const LinkEnd& end = t.end({s, p});
      if (end.kind == LinkEnd::Kind::node)
        must(end.index < t.nodes() && t.attachment[end.index] == SwitchPort{s, p}, "a node hangs where it says");
      if (end.kind == LinkEnd::Kind::switch_port)
        must(end.index < t.switches && end.port < t.ports &&
                 t.end({end.index, end.port}) == LinkEnd{LinkEnd::Kind::switch_port, s, p},
             "both ends of a link know each other");
      must(find_port(t, port_name(t, {s, p})) == SwitchPort{s, p}, "a port is found by its name");
    }
  for (std::uint32_t process = 0; process < 100; ++process)
    must(node_of_process(t, process, 100) < t.nodes(), "a process has a node");
}

void check_routes(const Topology& t) {
  const auto routes = compute_routes(t);
  must(routes.has_value(), "routes of a small network that was accepted");
  must(dependency_cycle(t, *routes).empty(), "no cycle of dependencies");
  for (std::uint32_t from = 0; from < t.nodes(); ++from)
    for (std::uint32_t to = 0; to < t.nodes(); ++to)
      must(routes->between(from, to).empty() == (from == to), "everybody reaches everybody");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  FuzzInput input(bytes, size);
  const bool file = input.take<char>() % 2 == 0;
  const std::string text(input.rest());
  // A short form with a slash would be somebody's file.
  if (!file && (text.find('/') != std::string::npos || text.ends_with(".toml"))) return 0;
  const auto t = file ? read_topology_text(text, "fuzz.toml") : read_topology(text);
  if (!t) {
    must(!t.error().what.empty(), "an error has a text");
    must(!file || t.error().what.rfind("fuzz.toml:", 0) == 0, "and a place");
    return 0;
  }
  if (t->switches > 64 || t->nodes() > 256) return 0;  // their ways take seconds
  check_sound(*t, file ? kMostFilePorts : kMaxGeneratedPorts);
  check_routes(*t);
  return 0;
}
