#include "fabric/topology/shapes.hpp"

#include <array>
#include <charconv>

#include <fmt/core.h>

#include "base/config.hpp"
#include "fabric/topology/generators.hpp"

namespace ulfm::fabric {
namespace {

constexpr std::uint32_t kMaxProcessesPerBoard = 1024;

constexpr std::array<std::string_view, 15> kForms{"single:N",       "th8",         "chain:S",        "tree:D",
                                                  "mesh:RxC",       "torus:RxC",   "cube:N",         "boards:BxP",
                                                  "gh:NxKxP",       "mesh:XxYxZ",  "torus:XxYxZ",    "fullmesh:SxT",
                                                  "hyperx:S1xS2xT", "fattree:MxN", "dragonfly:PxAxH"};

/// "4x5" as {4, 5}; empty when it is no such text.
std::vector<std::uint32_t> sizes_of(std::string_view text) {
  std::vector<std::uint32_t> sizes;
  while (true) {
    std::uint32_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc{}) return {};
    sizes.push_back(size);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) return sizes;
    if (text.front() != 'x' && text.front() != 'X') return {};
    text.remove_prefix(1);
  }
}

Result<Topology> single(std::string_view description, std::uint32_t nodes) {
  if (nodes < 1 || nodes > kThSwitchPorts)
    return refuse_shape(description,
                        "one switch has 1 to 5 nodes as an X-Switch and up to 8 as a TH-Switch; for more nodes take "
                        "chain:S, tree:D or mesh:RxC");
  const std::uint32_t ports = nodes <= kXSwitchPorts ? kXSwitchPorts : kThSwitchPorts;
  Topology t = bare_topology(std::string(description), Shape::single, ports, 1);
  for (std::uint32_t p = 0; p < nodes; ++p) attach_node(t, {0, p});
  return t;
}

// A leads to the switch before, B to the one behind; every other port has a node.
Result<Topology> chain(std::string_view description, std::uint32_t switches) {
  if (switches < 1 || switches > kMaxSwitches) return refuse_shape(description, "a chain has 1 to 4096 switches");
  Topology t = bare_topology(std::string(description), Shape::chain, kXSwitchPorts, switches);
  for (std::uint32_t s = 0; s + 1 < switches; ++s) join(t, {s, 1}, {s + 1, 0});
  for (std::uint32_t s = 0; s < switches; ++s)
    for (std::uint32_t p = 0; p < t.ports; ++p)
      if (t.end({s, p}).kind == LinkEnd::Kind::nothing) attach_node(t, {s, p});
  return t;
}

// D levels of switches. The root has a child on each of its five ports, every other switch its parent on A
// and children on B to E; at the last level nodes stand where the children would.
Result<Topology> tree(std::string_view description, std::uint32_t levels) {
  if (levels < 1 || levels > 6)
    return refuse_shape(description, "a tree has 1 to 6 levels of switches (6 are 1706 switches)");
  std::uint32_t above = 0, width = 1;  // switches above the last level, and in it
  for (std::uint32_t level = 1; level < levels; ++level) above += width, width = width == 1 ? 5 : width * 4;
  Topology t = bare_topology(std::string(description), Shape::tree, kXSwitchPorts, above + width);
  std::uint32_t child = 1;
  for (std::uint32_t s = 0; s < t.switches; ++s)
    for (std::uint32_t p = s == 0 ? 0 : 1; p < t.ports; ++p) {
      if (s < above) join(t, {s, p}, {child++, 0});
      else attach_node(t, {s, p});
    }
  return t;
}

Result<Topology> grid(std::string_view description, Shape shape, const std::vector<std::uint32_t>& sizes) {
  const std::string kind = shape == Shape::mesh ? "mesh" : "torus";
  if (sizes.size() > 2) return make_grid(description, sizes, shape == Shape::torus);
  if (sizes.size() < 2) return refuse_shape(description, fmt::format("needs rows and columns, as in {}:4x4", kind));
  const std::uint32_t rows = sizes[0], columns = sizes[1];
  if (rows < 1 || columns < 1 || std::uint64_t{rows} * columns > kMaxGenerated)
    return refuse_shape(description, fmt::format("a {} has 1 to 16384 switches, rows times columns", kind));
  Topology t = bare_topology(std::string(description), shape, kXSwitchPorts, rows * columns);
  t.rows = rows, t.columns = columns;
  // A dimension of one switch is not closed: the link would lead back to the switch it comes from.
  const bool closed = shape == Shape::torus;
  for (std::uint32_t r = 0; r < rows; ++r)
    for (std::uint32_t c = 0; c < columns; ++c) {
      const std::uint32_t s = r * columns + c;
      if (c + 1 < columns || (closed && columns > 1)) join(t, {s, kEast}, {r * columns + (c + 1) % columns, kWest});
      if (r + 1 < rows || (closed && rows > 1)) join(t, {s, kSouth}, {(r + 1) % rows * columns + c, kNorth});
      attach_node(t, {s, kGridNode});
    }
  return t;
}

// Port d is the channel of dimension d, the node is behind them.
Result<Topology> cube(std::string_view description, std::uint32_t dimension) {
  if (dimension > kMaxDimensions) return refuse_shape(description, "a cube has 0 to 7 dimensions, as in cube:3");
  const std::uint32_t ports = dimension + 1 <= kXSwitchPorts ? kXSwitchPorts : kThSwitchPorts;
  Topology t = bare_topology(std::string(description), Shape::cube, ports, 1u << dimension);
  t.dimension = dimension;
  for (std::uint32_t s = 0; s < t.switches; ++s) {
    for (std::uint32_t d = 0; d < dimension; ++d)
      if ((s >> d & 1) == 0) join(t, {s, d}, {s | 1u << d, d});
    attach_node(t, {s, dimension});
  }
  return t;
}

// A PC whose slots hold a board each; the host is in the place of a switch. P is the processes a board was built for.
Result<Topology> boards(std::string_view description, const std::vector<std::uint32_t>& sizes) {
  if (sizes.size() != 2) return refuse_shape(description, "needs boards and processes a board, as in boards:8x16");
  if (sizes[0] < 1 || sizes[0] > kMaxBoards || sizes[1] < 1 || sizes[1] > kMaxProcessesPerBoard)
    return refuse_shape(description, fmt::format("a host has 1 to {} boards, with 1 to {} processes each", kMaxBoards,
                                                 kMaxProcessesPerBoard));
  Topology t = bare_topology(std::string(description), Shape::boards, sizes[0], 1);
  t.processes_per_node = sizes[1];
  t.switch_names = {"host"};
  for (std::uint32_t b = 0; b < sizes[0]; ++b) attach_node(t, {0, b});
  return t;
}

using Generator = Result<Topology> (*)(std::string_view, std::span<const std::uint32_t>);

/// What makes a larger shape; nullptr: the form is none.
Generator generator(std::string_view form) {
  if (form == "fullmesh" || form == "hyperx") return make_hyperx;
  if (form == "fattree") return make_fat_tree;
  return form == "dragonfly" ? make_dragonfly : nullptr;
}

tl::unexpected<Error> refuse_form(std::string_view description, std::string_view form) {
  std::vector<std::string> names;
  names.reserve(kForms.size());
  for (const std::string_view known : kForms) names.emplace_back(known.substr(0, known.find(':')));
  const std::string near = form.empty() ? "" : nearest(form, names);
  return refuse_shape(description,
                      fmt::format("no shape has that name{} There is: {}",
                                  near.empty() ? "." : fmt::format("; did you mean {}?", near), shape_forms()));
}

}  // namespace

std::string shape_forms() {
  std::string text;
  for (const std::string_view form : kForms) text += fmt::format("{}, ", form);
  return fmt::format("{}or the path of a TOML file (with a '/' or ending in .toml)", text);
}

tl::unexpected<Error> refuse_shape(std::string_view description, const std::string& why) {
  return fail(Errc::invalid, fmt::format("topology \"{}\": {}", description.substr(0, 80), why));
}

Topology bare_topology(std::string name, Shape shape, std::uint32_t ports, std::uint32_t switches) {
  Topology t;
  t.name = std::move(name);
  t.shape = shape;
  t.ports = ports;
  t.switches = switches;
  t.ends.resize(std::size_t{switches} * ports);
  return t;
}

void join(Topology& t, SwitchPort a, SwitchPort b) {
  t.ends[std::size_t{a.at} * t.ports + a.port] = {LinkEnd::Kind::switch_port, b.at, b.port};
  t.ends[std::size_t{b.at} * t.ports + b.port] = {LinkEnd::Kind::switch_port, a.at, a.port};
}

void attach_node(Topology& t, SwitchPort at) {
  t.ends[std::size_t{at.at} * t.ports + at.port] = {LinkEnd::Kind::node, t.nodes(), 0};
  t.attachment.push_back(at);
}

Result<Topology> make_shape(std::string_view description) {
  if (description == "th8") {
    Topology t = bare_topology("th8", Shape::single, kThSwitchPorts, 1);
    for (std::uint32_t p = 0; p < t.ports; ++p) attach_node(t, {0, p});
    return t;
  }
  const std::size_t colon = description.find(':');
  const std::string_view form = description.substr(0, colon);
  if (auto make = generator(form); make != nullptr)
    return make(description, sizes_of(colon == std::string_view::npos ? "" : description.substr(colon + 1)));
  const bool plain = form == "single" || form == "chain" || form == "tree" || form == "cube";
  if (!plain && form != "mesh" && form != "torus" && form != "boards" && form != "gh")
    return refuse_form(description, form);
  const auto sizes = sizes_of(colon == std::string_view::npos ? "" : description.substr(colon + 1));
  if (form == "boards") return boards(description, sizes);
  if (form == "gh") return make_hypercube(description, sizes);
  if (sizes.empty() || (plain && sizes.size() > 1))
    return refuse_shape(description, plain ? fmt::format("needs one size, as in {}:4", form)
                                           : fmt::format("needs rows and columns, as in {}:4x4", form));
  if (form == "single") return single(description, sizes[0]);
  if (form == "chain") return chain(description, sizes[0]);
  if (form == "tree") return tree(description, sizes[0]);
  if (form == "cube") return cube(description, sizes[0]);
  return grid(description, form == "mesh" ? Shape::mesh : Shape::torus, sizes);
}

}  // namespace ulfm::fabric
