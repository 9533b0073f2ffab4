#include "fabric/topology/topology.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>

#include <fmt/core.h>

#include "base/config.hpp"
#include "base/counted.hpp"
#include "fabric/topology/ports.hpp"
#include "fabric/topology/shapes.hpp"

namespace ulfm::fabric {
namespace {

// Bytes; 4096 switches with long names and every port in use take one mebibyte.
constexpr std::size_t kMaxFile = 4 << 20;

/// The switch with that name; `topology.switches` when there is none.
std::uint32_t switch_of(const Topology& topology, std::string_view name) {
  if (!topology.switch_names.empty()) {
    const auto found = std::find(topology.switch_names.begin(), topology.switch_names.end(), name);
    return static_cast<std::uint32_t>(found - topology.switch_names.begin());
  }
  std::uint32_t number = 0;
  if (name.size() < 2 || name[0] != 's' || (name[1] == '0' && name.size() > 2)) return topology.switches;
  const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
  return error == std::errc{} && end == name.data() + name.size() ? std::min(number, topology.switches)
                                                                  : topology.switches;
}

std::string which_switches(const Topology& topology, std::string_view wrong) {
  const std::string near = nearest(wrong, topology.switch_names);
  if (!near.empty()) return fmt::format("did you mean {}?", near);
  if (topology.switches == 1) return fmt::format("there is one, {}", switch_name(topology, 0));
  return fmt::format("there are {}, {} to {}", topology.switches, switch_name(topology, 0),
                     switch_name(topology, topology.switches - 1));
}

/// A port of a card in a generalized hypercube: "c0_1.b3".
Result<SwitchPort> find_card_port(const Topology& topology, std::string_view text) {
  const std::string_view name = text.substr(0, text.rfind('.'));
  const std::uint32_t at = switch_of(topology, name);
  for (std::uint32_t p = 0; at < topology.switches && p < topology.ports; ++p)
    if (port_name(topology, {at, p}) == text && topology.end({at, p}).kind != LinkEnd::Kind::nothing)
      return SwitchPort{at, p};
  return fail(
      Errc::not_found,
      fmt::format(
          "\"{}\" is no port; a port is a card, a section and a coordinate, such as {}, or a processor, such as {}",
          text.substr(0, 80), port_name(topology, {0, 1}),
          port_name(topology, {0, topology.dimension * topology.radix})));
}

bool is_path(std::string_view description) {
  return description.find('/') != std::string_view::npos || description.ends_with(".toml");
}

Result<std::string> read_whole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    return fail(Errc::not_found, fmt::format("topology file {}: cannot be opened: {}", path, std::strerror(errno)));
  std::string text(kMaxFile + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) return fail(Errc::not_found, fmt::format("topology file {}: cannot be read", path));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kMaxFile) return fail(Errc::too_large, fmt::format("topology file {}: has more than 4 MiB", path));
  return text;
}

}  // namespace

std::uint32_t Topology::most_unit_cycles() const noexcept {
  return rate.empty() ? 1 : std::max(1u, *std::max_element(rate.begin(), rate.end()));
}

std::uint32_t Topology::most_link_cycles(std::uint32_t own) const noexcept {
  if (!has_own_links()) return own;
  std::uint32_t most = own;
  for (std::uint32_t i = 0; i < ends.size(); ++i)
    if (ends[i].kind != LinkEnd::Kind::nothing) most = std::max(most, link_cycles({i / ports, i % ports}, own));
  return most;
}

std::string switch_name(const Topology& topology, std::uint32_t at) {
  return topology.switch_names.empty() ? fmt::format("s{}", at) : topology.switch_names[at];
}

std::string port_name(const Topology& topology, SwitchPort port) {
  if (topology.shape == Shape::hypercube) {
    const std::uint32_t section = port.port / topology.radix,
                        processor = port.port - topology.dimension * topology.radix;
    return fmt::format("{}.{}", switch_name(topology, port.at),
                       section < topology.dimension
                           ? fmt::format("{}{}", static_cast<char>('a' + section), port.port % topology.radix)
                           : fmt::format("p{}", processor));
  }
  return fmt::format("{}.{}", switch_name(topology, port.at), port_label(port.port));
}

Result<SwitchPort> find_port(const Topology& topology, std::string_view text) {
  if (topology.shape == Shape::hypercube) return find_card_port(topology, text);
  const std::string quoted = fmt::format("\"{}\"", text.substr(0, 80));
  const std::size_t dot = text.rfind('.');
  if (dot == std::string_view::npos || dot + 1 == text.size() || dot + 3 < text.size() || dot == 0 || dot > 78)
    return fail(Errc::invalid, fmt::format("{} is no port; a port is a switch and a letter, such as s0.B", quoted));
  const std::uint32_t at = switch_of(topology, text.substr(0, dot));
  if (at >= topology.switches)
    return fail(Errc::not_found, fmt::format("{}: no switch is called {}; {}", quoted, text.substr(0, dot),
                                             which_switches(topology, text.substr(0, dot))));
  const auto port = port_of_label(text.substr(dot + 1));
  if (!port || *port >= topology.ports)
    return fail(Errc::not_found, fmt::format("{}: a switch of {} ports has A to {}", quoted, topology.ports,
                                             port_label(topology.ports - 1)));
  return SwitchPort{at, *port};
}

std::uint32_t node_of_process(const Topology& topology, std::uint32_t process, std::uint32_t processes) noexcept {
  const std::uint32_t nodes = topology.nodes();
  if (!topology.placement.empty()) return topology.placement[process % topology.placement.size()];
  if (topology.processes_per_node != 0 && topology.shape != Shape::boards)
    return process / topology.processes_per_node % nodes;
  // As few to a card as there is room for: they meet over the network.
  if (topology.shape == Shape::hypercube && processes <= nodes) {
    const std::uint32_t each = (processes + topology.switches - 1) / topology.switches;
    return process / each * topology.card_processors + process % each;
  }
  const std::uint32_t each = processes / nodes, larger = processes % nodes;
  const std::uint64_t in_larger = std::uint64_t{larger} * (each + 1);
  if (process < in_larger) return process / (each + 1);
  if (each == 0) return process % nodes;
  return static_cast<std::uint32_t>(larger + (process - in_larger) / each) % nodes;
}

Result<void> check_processes(const Topology& topology, std::uint32_t processes) {
  const std::uint64_t room = !topology.placement.empty()
                                 ? topology.placement.size()
                                 : std::uint64_t{topology.processes_per_node} * topology.nodes();
  if (topology.shape == Shape::cube && processes > std::uint64_t{kCubeProcesses} * topology.nodes())
    return fail(
        Errc::invalid,
        fmt::format(
            "topology {}: {} processes, but a node of a cube carries at most {}: take a larger cube, or start fewer",
            topology.name, processes, kCubeProcesses));
  if (room == 0 || processes <= room || topology.shape == Shape::boards) return {};
  const std::string needed = fmt::format("topology {}: {} processes, but ", topology.name, processes);
  if (!topology.placement.empty())
    return fail(Errc::invalid,
                fmt::format("{}its placement has {}; give each process a node, or start fewer", needed, room));
  return fail(Errc::invalid,
              fmt::format("{}with processes_per_node = {} there is room for {} on {}; raise it, or start fewer", needed,
                          topology.processes_per_node, room, counted(topology.nodes(), "node")));
}

Result<Topology> read_topology(std::string_view description) {
  if (!is_path(description)) return make_shape(description);
  const std::string path(description);
  auto text = read_whole(path);
  if (!text) return fail(std::move(text.error()));
  return read_topology_text(*text, path);
}

}  // namespace ulfm::fabric
