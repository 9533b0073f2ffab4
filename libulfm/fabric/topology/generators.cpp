#include "fabric/topology/generators.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "fabric/topology/shapes.hpp"

namespace ulfm::fabric {
namespace {

/// Product, or anything above `most` when it is more than that.
std::uint64_t product(std::span<const std::uint32_t> sizes, std::uint64_t most) {
  std::uint64_t all = 1;
  for (const std::uint32_t size : sizes) {
    all *= size;
    if (all > most) return most + 1;
  }
  return all;
}

std::string limit() { return fmt::format("at most {} switches", kMaxGenerated); }
std::string port_limit(std::uint64_t ports) {
  return fmt::format("its switches would need {} ports; a switch has at most {}", ports, kMaxGeneratedPorts);
}

Topology bare(std::string_view description, Shape shape, std::uint64_t ports, std::uint64_t switches) {
  return bare_topology(std::string(description), shape, std::max<std::uint32_t>(2, static_cast<std::uint32_t>(ports)),
                       static_cast<std::uint32_t>(switches));
}

std::uint32_t coordinate(const Topology& t, std::uint32_t at, std::size_t dimension) {
  for (std::size_t d = 0; d < dimension; ++d) at /= t.sizes[d];
  return at % t.sizes[dimension];
}

/// Links of a grid's way along one dimension, and their direction.
std::pair<std::uint32_t, bool> leg(const Topology& t, std::size_t d, std::uint32_t a, std::uint32_t b,
                                   std::uint32_t opened, bool even) {
  const std::uint32_t size = t.sizes[d];
  if (!t.closed || size < 3) return {a < b ? b - a : a - b, a < b};
  // Positions count from the switch where the ring is opened: between two others there is one way only.
  a = (a + size - opened) % size, b = (b + size - opened) % size;
  if (a != 0 && b != 0) return {a < b ? b - a : a - b, a < b};
  const std::uint32_t forward = (b + size - a) % size, backward = (size - forward) % size;
  if (forward == backward) return {forward, even};
  return {std::min(forward, backward), forward < backward};
}

/// Where the ring of dimension `d` through a switch is opened: elsewhere for each, for the load.
std::uint32_t opening(const Topology& t, std::uint32_t at, std::size_t d) {
  std::uint32_t sum = 0;
  for (std::size_t other = 0; other < t.sizes.size(); ++other)
    if (other != d) sum += coordinate(t, at, other);
  return sum % t.sizes[d];
}

/// Port of a hyperX switch that leads to coordinate `to` of dimension `d`.
std::uint32_t hyperx_port(const Topology& t, std::size_t d, std::uint32_t own, std::uint32_t to) {
  std::uint32_t port = to < own ? to : to - 1;
  for (std::size_t before = 0; before < d; ++before) port += t.sizes[before] - 1;
  return port;
}

}  // namespace

Result<Topology> make_grid(std::string_view description, std::span<const std::uint32_t> sizes, bool closed) {
  const std::uint64_t switches = product(sizes, kMaxGenerated), ports = 2 * sizes.size() + 1;
  if (std::count(sizes.begin(), sizes.end(), 0u) != 0 || switches > kMaxGenerated)
    return refuse_shape(description,
                        fmt::format("a mesh or torus of more than two dimensions has no size of 0 and {}", limit()));
  if (ports > kMaxGeneratedPorts) return refuse_shape(description, port_limit(ports));
  Topology t = bare(description, Shape::grid, ports, switches);
  t.sizes.assign(sizes.begin(), sizes.end());
  t.closed = closed;
  std::uint32_t weight = 1;
  for (std::uint32_t d = 0; d < sizes.size(); weight *= sizes[d++])
    for (std::uint32_t s = 0; s < t.switches; ++s) {
      const std::uint32_t x = s / weight % sizes[d];
      if (x + 1 < sizes[d]) join(t, {s, 2 * d}, {s + weight, 2 * d + 1});
      else if (closed && sizes[d] > 2) join(t, {s, 2 * d}, {s - x * weight, 2 * d + 1});
    }
  for (std::uint32_t s = 0; s < t.switches; ++s) attach_node(t, {s, static_cast<std::uint32_t>(2 * sizes.size())});
  return t;
}

Result<Topology> make_hyperx(std::string_view description, std::span<const std::uint32_t> sizes) {
  if (sizes.size() < 2)
    return refuse_shape(description, "needs its sizes and the nodes of a switch, as in hyperx:4x4x4");
  const auto dimensions = sizes.first(sizes.size() - 1);
  const std::uint64_t switches = product(dimensions, kMaxGenerated);
  if (std::count(sizes.begin(), sizes.end(), 0u) != 0 || switches > kMaxGenerated)
    return refuse_shape(description, fmt::format("a full mesh or hyperX has no size of 0 and {}", limit()));
  std::uint64_t ports = sizes.back();
  for (const std::uint32_t size : dimensions) ports += size - 1;
  if (ports > kMaxGeneratedPorts) return refuse_shape(description, port_limit(ports));
  Topology t = bare(description, Shape::hyperx, ports, switches);
  t.sizes.assign(dimensions.begin(), dimensions.end());
  t.levels.assign(t.switches, 0);
  std::uint32_t weight = 1;
  for (std::size_t d = 0; d < dimensions.size(); weight *= dimensions[d++])
    for (std::uint32_t s = 0; s < t.switches; ++s) {
      const std::uint32_t own = coordinate(t, s, d);
      for (std::uint32_t to = own + 1; to < dimensions[d]; ++to)
        join(t, {s, hyperx_port(t, d, own, to)}, {s + (to - own) * weight, hyperx_port(t, d, to, own)});
    }
  const auto first = static_cast<std::uint32_t>(ports - sizes.back());
  for (std::uint32_t s = 0; s < t.switches; ++s)
    for (std::uint32_t n = 0; n < sizes.back(); ++n) attach_node(t, {s, first + n});
  return t;
}

Result<Topology> make_fat_tree(std::string_view description, std::span<const std::uint32_t> sizes) {
  if (sizes.size() != 2)
    return refuse_shape(description, "needs the children of a switch and the levels, as in fattree:4x3 for 64 nodes");
  const std::uint32_t arity = sizes[0], levels = sizes[1];
  if (arity < 2 || arity > kMaxGeneratedPorts / 2)
    return refuse_shape(description,
                        fmt::format("a switch of a fat tree has 2 to {} children", kMaxGeneratedPorts / 2));
  if (levels < 1 || levels > 14)
    return refuse_shape(description, fmt::format("a fat tree has 1 to 14 levels and {}", limit()));
  const std::vector<std::uint32_t> digits(levels - 1, arity);
  const std::uint64_t width = product(digits, kMaxGenerated);
  if (width * levels > kMaxGenerated) return refuse_shape(description, fmt::format("a fat tree has {}", limit()));
  Topology t = bare(description, Shape::fat_tree, 2 * std::uint64_t{arity}, width * levels);
  // Of the digit in which the switches of a level differ from those below: the lowest one at the bottom, so that nodes
  // with numbers near each other have ways that turn round early.
  auto weight = static_cast<std::uint32_t>(width / arity);
  for (std::uint32_t level = 0; level < levels; ++level, weight /= arity)
    for (std::uint32_t w = 0; w < width; ++w) {
      const auto s = static_cast<std::uint32_t>(level * width + w);
      t.levels.push_back(level);
      if (level + 1 == levels) continue;
      const std::uint32_t own = w / weight % arity;
      for (std::uint32_t j = 0; j < arity; ++j)
        join(t, {s, j}, {static_cast<std::uint32_t>(s + width + j * weight - own * weight), arity + own});
    }
  for (std::uint32_t w = 0; w < width; ++w)
    for (std::uint32_t j = 0; j < arity; ++j) attach_node(t, {static_cast<std::uint32_t>((levels - 1) * width + w), j});
  return t;
}

Result<Topology> make_dragonfly(std::string_view description, std::span<const std::uint32_t> sizes) {
  if (sizes.size() != 3)
    return refuse_shape(description,
                        "needs nodes of a switch, switches of a group and links of a switch to other groups, as "
                        "in dragonfly:2x4x2 for 72 nodes");
  const std::uint32_t nodes = sizes[0], group = sizes[1], global = sizes[2];
  if (nodes < 1 || group < 1 || global < 1) return refuse_shape(description, "a dragonfly has no size of 0");
  const std::uint64_t ports = std::uint64_t{nodes} + group - 1 + global;
  if (ports > kMaxGeneratedPorts) return refuse_shape(description, port_limit(ports));
  const std::uint32_t links = group * global, groups = links + 1;
  if (std::uint64_t{groups} * group > kMaxGenerated)
    return refuse_shape(description, fmt::format("a dragonfly has {}", limit()));
  Topology t = bare(description, Shape::dragonfly, ports, std::uint64_t{groups} * group);
  const std::uint32_t first_global = nodes + group - 1;
  const auto local = [&](std::uint32_t own, std::uint32_t to) { return nodes + (to < own ? to : to - 1); };
  for (std::uint32_t g = 0; g < groups; ++g) {
    for (std::uint32_t a = 0; a < group; ++a)
      for (std::uint32_t b = a + 1; b < group; ++b) join(t, {g * group + a, local(a, b)}, {g * group + b, local(b, a)});
    for (std::uint32_t link = 0; link < links; ++link) {
      const std::uint32_t other = (g + link + 1) % groups, back = groups - 2 - link;
      if (g < other)
        join(t, {g * group + link / global, first_global + link % global},
             {other * group + back / global, first_global + back % global});
    }
  }
  for (std::uint32_t s = 0; s < t.switches; ++s)
    for (std::uint32_t n = 0; n < nodes; ++n) attach_node(t, {s, n});
  return t;
}

void dimension_way(const Topology& t, std::uint32_t from, std::uint32_t to, Route& out) {
  out.clear();
  std::uint32_t at = t.attachment[from].at;
  const std::uint32_t target = t.attachment[to].at;
  std::uint32_t weight = 1;
  for (std::size_t d = 0; d < t.sizes.size(); weight *= t.sizes[d++]) {
    const std::uint32_t a = at / weight % t.sizes[d], b = target / weight % t.sizes[d];
    if (a == b) continue;
    if (t.shape == Shape::hyperx) {
      out.push_back(static_cast<std::uint8_t>(hyperx_port(t, d, a, b)));
    } else {
      const auto [links, forward] = leg(t, d, a, b, opening(t, at, d), (from + to) % 2 == 0);
      out.insert(out.end(), links, static_cast<std::uint8_t>(2 * d + (forward ? 0 : 1)));
    }
    at = at - a * weight + b * weight;
  }
  out.push_back(static_cast<std::uint8_t>(t.attachment[to].port));
}

}  // namespace ulfm::fabric
