// The shape of an emulated interconnect: switches, the links between their ports, and the nodes that hang on
// them.
//
// A topology is a value. Everything said about it (is it sound, what are the routes, what does it look like)
// is a pure function of it; models take it and never look at text. Any thread may call any of these
// functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace ulfm::fabric {

inline constexpr std::uint32_t kMaxSwitches = 4096;
inline constexpr std::uint32_t kXSwitchPorts = 5;    ///< Li, THNPC-II, section 2.1
inline constexpr std::uint32_t kThSwitchPorts = 8;   ///< Zhou et al. 1999, section 3
inline constexpr std::uint32_t kMostFilePorts = 26;  ///< of a switch of a file: named A to Z
inline constexpr std::uint32_t kMostLatency = 64;    ///< cycles of a link in a file
inline constexpr std::uint32_t kMostRate = 32;       ///< cycles of a unit on a link in a file
inline constexpr std::uint32_t kMaxBoards = 26;      ///< slots of a PC host, named A to Z

/// Processes that a node of a cube carries at most (Pierce, The NX/2 Operating System).
inline constexpr std::uint32_t kCubeProcesses = 20;
/// Channels of a Direct-Connect router that lead to other routers (Nugent 1988).
inline constexpr std::uint32_t kMaxDimensions = 7;

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

/// Output port at each switch on the way; the last one leads to the node. Empty: there is no way (or it is
/// the same node).
using Route = std::vector<std::uint8_t>;

/// A route that a file lays down.
struct FixedRoute {
  std::uint32_t from = 0, to = 0;  ///< nodes
  Route way;
};

/// Regular shapes, which have routes and pictures of their own.
enum class Shape : std::uint8_t {
  other,
  single,
  chain,
  tree,
  mesh,
  torus,
  cube,
  boards,
  hypercube,  ///< a generalized one
  grid,       ///< a mesh or torus of another number of dimensions than two
  hyperx,
  fat_tree,
  dragonfly
};

/// Ports of a switch in a mesh or torus.
enum GridPort : std::uint8_t { kNorth, kEast, kSouth, kWest, kGridNode };

struct Topology {
  std::string name;  ///< as given: "mesh:4x4"; a file's own name or its path
  std::uint32_t ports =
      kXSwitchPorts;  ///< per switch: 5 is an X-Switch, 8 a TH-Switch; those of generated shapes have up to 254, the
                      ///< host of boards kMaxBoards slots
  std::uint32_t switches = 0;
  std::vector<LinkEnd> ends;             ///< switches * ports, by switch and port
  std::vector<SwitchPort> attachment;    ///< by node: where it hangs
  std::uint32_t processes_per_node = 0;  ///< 0: as many as it takes, dealt out in blocks
  std::vector<std::uint32_t> placement;  ///< node of each process where the file says so; empty otherwise
  Shape shape = Shape::other;
  std::uint32_t rows = 0, columns = 0;  ///< of a mesh or torus: switch row * columns + column
  std::uint32_t dimension = 0;          ///< of a cube: port d leads to the switch whose number differs in bit d;
                                        ///< of a generalized hypercube: n
  std::uint32_t radix = 0,
                card_processors = 0;      ///< of a generalized hypercube: cards in a dimension, processors a card
  std::vector<std::uint32_t> sizes;       ///< of a grid or hyperX: by dimension
  bool closed = false;                    ///< of a grid: its rings are
  std::vector<std::uint32_t> levels;      ///< by switch, 0 is the top, where the shape says which way is up; or empty
  std::vector<std::string> switch_names;  ///< where the file gives them; empty: s0, s1, ...
  std::vector<FixedRoute> fixed;          ///< routes the file lays down; the others are computed
  /// Cycles of a unit's way over the link, by switch and port, where the file gives them; 0: it is the model's own.
  /// Both ends have the same. Empty: all are the model's own.
  std::vector<std::uint32_t> latency;
  /// Cycles for which a unit keeps the link busy, in the same way; 0: one, as everywhere else.
  std::vector<std::uint32_t> rate;

  std::uint32_t nodes() const noexcept { return static_cast<std::uint32_t>(attachment.size()); }
  const LinkEnd& end(SwitchPort p) const noexcept { return ends[std::size_t{p.at} * ports + p.port]; }
  /// Cycles for which a unit keeps the link at that port busy.
  std::uint32_t unit_cycles(SwitchPort p) const noexcept {
    const std::size_t at = std::size_t{p.at} * ports + p.port;
    return at < rate.size() && rate[at] != 0 ? rate[at] : 1;
  }
  /// Cycles from a unit's first moment on the link at that port to its last, of a model whose links have `own`.
  std::uint32_t link_cycles(SwitchPort p, std::uint32_t own) const noexcept {
    const std::size_t at = std::size_t{p.at} * ports + p.port;
    return (at < latency.size() && latency[at] != 0 ? latency[at] : own) + unit_cycles(p) - 1;
  }
  /// The most of all links.
  std::uint32_t most_unit_cycles() const noexcept;
  std::uint32_t most_link_cycles(std::uint32_t own) const noexcept;
  /// A file gives some links a latency or a rate of their own.
  bool has_own_links() const noexcept { return !latency.empty() || !rate.empty(); }
};

/// "s3", or the name the file gives the switch.
std::string switch_name(const Topology& topology, std::uint32_t at);
/// "s3.B"; "c0_1.b3" in a generalized hypercube, the way along its second section to coordinate 3; "c0_1.p3" is
/// where processor 3 hangs.
std::string port_name(const Topology& topology, SwitchPort port);
/// The port that a text such as "s3.B" names. Errc::not_found says what there is instead.
Result<SwitchPort> find_port(const Topology& topology, std::string_view text);
/// 'A' for port 0. Only for ports below 26: port_label() in ports.hpp has a name for every one.
constexpr char port_letter(std::uint32_t port) noexcept { return static_cast<char>('A' + port); }

/// Node of process `process` of `processes`: the file's placement, or processes_per_node to a node, or else, and on
/// boards, blocks that differ by one process at most, the larger ones first. Processes for which check_processes()
/// has no room begin again at the front. The topology must have a node.
std::uint32_t node_of_process(const Topology& topology, std::uint32_t process, std::uint32_t processes) noexcept;

/// Errc::invalid when the topology's placement or its processes_per_node has no room for that many processes, or a
/// cube more than kCubeProcesses to a node. Boards take any number: P of boards:BxP is what they were built for, and
/// processes beyond it share their processors.
Result<void> check_processes(const Topology& topology, std::uint32_t processes);

/// Links that are down, named by either end.
using DeadPorts = std::vector<SwitchPort>;

/// Most switches on a way of a shape whose ways follow from the numbers of its nodes, without a search: a mesh, torus,
/// cube, grid or hyperX. 0: the topology is no such shape.
std::uint32_t longest_ordered_way(const Topology& topology) noexcept;

/// All routes: by source node * nodes + destination node.
struct Routes {
  std::uint32_t nodes = 0;
  std::vector<Route> way;
  const Route& between(std::uint32_t from, std::uint32_t to) const noexcept {
    return way[std::size_t{from} * nodes + to];
  }
};

/// Routes that cannot deadlock: dimension order in a mesh, torus or cube, up*/down* elsewhere and wherever a link
/// between switches is dead; the file's own routes where none is. The shortest way these rules allow; of
/// several, a node's routes take turns. Nodes without a way get empty routes, which is only possible with
/// dead ports. Errc::invalid, with the cycle shown, when asked for routes that can deadlock; Errc::too_large
/// when all of them together would take more than a gigabyte: see compute_routes_from().
Result<Routes> compute_routes(const Topology& topology, const DeadPorts& dead = {});

/// The routes of one node, by destination: the same as compute_routes() has, at a small part of the cost. It
/// does not look for deadlocks of the file's routes; read_topology() did.
std::vector<Route> compute_routes_from(const Topology& topology, std::uint32_t node, const DeadPorts& dead = {});

/// A cycle of channel dependencies that these routes have, as output ports in order, the first one after the
/// last; empty when there is none. Routes without such a cycle cannot deadlock (Dally and Seitz,
/// Deadlock-free message routing in multiprocessor interconnection networks, 1987).
std::vector<SwitchPort> dependency_cycle(const Topology& topology, const Routes& routes);

/// "s0.B -> s1.A -> s0.B".
std::string cycle_text(const Topology& topology, std::span<const SwitchPort> cycle);

/// Numbers that describe a topology with its routes.
struct Extent {
  std::uint32_t links = 0;      ///< between switches
  std::uint32_t longest = 0;    ///< most switches on a route between two nodes (the diameter)
  double average = 0;           ///< switches on a route, over all pairs of different nodes that have one
  std::uint64_t cut_off = 0;    ///< ordered pairs of nodes without a route
  std::uint32_t bisection = 0;  ///< fewest links between two halves, the nodes divided as evenly as whole switches
                                ///< allow; 0: one switch, or too many in an irregular shape to find out
};
Extent measure(const Topology& topology, const DeadPorts& dead = {});

/// All that read_topology() takes, for people: "single:N, th8, ..., or the path of a TOML file (...)".
std::string shape_forms();

/// "single:5", "chain:4", "tree:3", "mesh:4x4", "torus:4x4", "cube:3", "th8", "boards:8x16", "gh:2x4x8", "mesh:4x4x4",
/// "torus:4x4x4", "fullmesh:8x2", "hyperx:4x4x2", "fattree:4x3", "dragonfly:2x4x2", or the path of a TOML file (it has
/// a '/' or ends in ".toml"); see ulfm-topology(5). Errors of a file name line and column.
Result<Topology> read_topology(std::string_view description);

/// The topology that the text of such a file describes; `path` is for messages.
Result<Topology> read_topology_text(std::string_view text, const std::string& path);

}  // namespace ulfm::fabric
