// The shape of an emulated interconnect: switches, the links between their ports, and the nodes that hang on them.
//
// A topology is a value. Everything said about it (is it sound, what are the routes, what does it look like) is a pure
// function of it; models take it and never look at text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace ulfm::fabric {

/// A port of a switch.
struct SwitchPort {
  std::uint32_t at = 0;    ///< switch
  std::uint32_t port = 0;  ///< 0 = A, 1 = B, ...
  friend bool operator==(const SwitchPort&, const SwitchPort&) = default;
};

/// What is at the other end of a switch's port.
struct LinkEnd {
  enum class Kind : std::uint8_t { nothing, switch_port, node };
  Kind kind = Kind::nothing;
  std::uint32_t index = 0;  ///< switch or node
  std::uint32_t port = 0;   ///< port of that switch
  friend bool operator==(const LinkEnd&, const LinkEnd&) = default;
};

struct Topology {
  std::string name;                    ///< as given: "mesh:4x4", a file's name
  std::uint32_t ports = 5;             ///< per switch: 5 (X-Switch) or 8 (TH-Switch)
  std::uint32_t switches = 0;
  std::vector<LinkEnd> ends;           ///< switches * ports, by switch and port
  std::vector<SwitchPort> attachment;  ///< by node: where it hangs
  std::uint32_t processes_per_node = 0;  ///< 0: as many as it takes, dealt out in blocks
  std::vector<std::uint32_t> placement;  ///< node of each process where the file says so; empty otherwise

  std::uint32_t nodes() const noexcept { return static_cast<std::uint32_t>(attachment.size()); }
  const LinkEnd& end(SwitchPort p) const noexcept { return ends[std::size_t{p.at} * ports + p.port]; }
};

/// Node of process `process` of `processes`.
std::uint32_t node_of_process(const Topology& topology, std::uint32_t process, std::uint32_t processes) noexcept;

/// Output port at each switch on the way; the last one leads to the node. Empty: there is no way (or it is the same
/// node).
using Route = std::vector<std::uint8_t>;

/// Links that are down, named by either end.
using DeadPorts = std::vector<SwitchPort>;

/// All routes: by source node * nodes + destination node.
struct Routes {
  std::uint32_t nodes = 0;
  std::vector<Route> way;
  const Route& between(std::uint32_t from, std::uint32_t to) const noexcept {
    return way[std::size_t{from} * nodes + to];
  }
};

/// Routes that cannot deadlock: dimension order in a mesh, up*/down* elsewhere. Nodes without a way get empty routes,
/// which is only possible with dead ports. Errc::invalid, with the cycle shown, when asked for routes that can.
Result<Routes> compute_routes(const Topology& topology, const DeadPorts& dead = {});

/// A cycle of channel dependencies that these routes have, as ports in order; empty when there is none.
std::vector<SwitchPort> dependency_cycle(const Topology& topology, const Routes& routes);

/// "single:5", "chain:4", "tree:3", "mesh:4x4", "torus:4x4", "th8", or the path of a TOML file. Errors name the line.
Result<Topology> read_topology(std::string_view description);

}  // namespace ulfm::fabric
