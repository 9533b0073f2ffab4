#include "layout.hpp"

#include <algorithm>

namespace topo {
namespace {

using namespace ulfm::fabric;

std::size_t channel(const Topology& t, SwitchPort p) { return std::size_t{p.at} * t.ports + p.port; }

Layout prepared(const Topology& t, double switch_width, double switch_height) {
  Layout l;
  l.switch_width = switch_width, l.switch_height = switch_height;
  l.switches.resize(t.switches);
  l.nodes.resize(t.nodes());
  l.ports.resize(t.ends.size());
  l.bends.resize(t.ends.size(), Bend::none);
  return l;
}

// ---- mesh and torus
// ------------------------------------------------------------------------------------------------

Layout grid(const Topology& t) {
  constexpr double kCell = 160, kHalf = 27;
  Layout l = prepared(t, 2 * kHalf, 2 * kHalf);
  const double margin = t.shape == Shape::torus ? 110 : 60;
  for (std::uint32_t s = 0; s < t.switches; ++s) {
    const std::uint32_t column = s % t.columns, row = s / t.columns;
    const Point at{margin + column * kCell, margin + row * kCell};
    l.switches[s] = at;
    l.nodes[s] = {at.x + 64, at.y + 60};
    const Point ports[] = {{at.x, at.y - kHalf},
                           {at.x + kHalf, at.y},
                           {at.x, at.y + kHalf},
                           {at.x - kHalf, at.y},
                           {at.x + kHalf - 4, at.y + kHalf - 4}};
    for (std::uint32_t p = 0; p < t.ports; ++p) l.ports[channel(t, {s, p})] = ports[p];
  }
  choose_bends(t, l, Bend::straight, Bend::straight);
  if (t.shape == Shape::torus)
    for (std::uint32_t s = 0; s < t.switches; ++s) {
      // The links that close a ring are drawn from its last switch, whose other end has drawn nothing then.
      const bool last_column = s % t.columns == t.columns - 1 && t.columns > 1,
                 last_row = s / t.columns == t.rows - 1 && t.rows > 1;
      if (last_column) {
        l.bends[channel(t, {s, kEast})] = Bend::over_row;
        l.bends[channel(t, {s - s % t.columns, kWest})] = Bend::none;
      }
      if (last_row) {
        l.bends[channel(t, {s, kSouth})] = Bend::beside_column;
        l.bends[channel(t, {s % t.columns, kNorth})] = Bend::none;
      }
    }
  l.width = 2 * margin + (t.columns - 1) * kCell + 40;
  l.height = 2 * margin + (t.rows - 1) * kCell + 30;
  return l;
}

// ---- tree and chain
// ------------------------------------------------------------------------------------------------

constexpr double kSlot = 27;  // of a node under its switch; nodes stand in two rows, so that each is wider than that

/// Ports along the lower edge, from left to right.
void put_below(const Topology& t, Layout& l, std::uint32_t s, const std::vector<std::uint32_t>& ports) {
  const double step = l.switch_width / static_cast<double>(ports.size() + 1);
  for (std::size_t i = 0; i < ports.size(); ++i)
    l.ports[channel(t, {s, ports[i]})] = {l.switches[s].x - l.switch_width / 2 + step * static_cast<double>(i + 1),
                                          l.switches[s].y + l.switch_height / 2};
}

void hang_nodes(const Topology& t, Layout& l, std::uint32_t s, const std::vector<std::uint32_t>& ports) {
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const double place = static_cast<double>(i) - static_cast<double>(ports.size() - 1) / 2;
    l.nodes[t.end({s, ports[i]}).index] = {l.switches[s].x + kSlot * place, l.switches[s].y + (i % 2 == 0 ? 80 : 124)};
  }
}

std::vector<std::uint32_t> ports_with(const Topology& t, std::uint32_t s, LinkEnd::Kind kind) {
  std::vector<std::uint32_t> ports;
  for (std::uint32_t p = 0; p < t.ports; ++p)
    if (t.end({s, p}).kind == kind) ports.push_back(p);
  return ports;
}

/// Leaves side by side, every other switch over the middle of its children. Numbers rise level by level, so
/// that children come after their parents.
Layout tree(const Topology& t) {
  constexpr double kLeaf = 4 * kSlot + 30, kLevel = 150, kMargin = 40;
  Layout l = prepared(t, 96, 46);
  std::uint32_t leaves = 0, levels = 1;
  for (std::uint32_t s = t.switches - 1; s != 0; s = t.end({s, 0}).index) ++levels;
  std::vector<double> level(t.switches, 0);
  for (std::uint32_t s = 1; s < t.switches; ++s) level[s] = level[t.end({s, 0}).index] + 1;
  for (std::uint32_t s = 0; s < t.switches; ++s)
    if (!ports_with(t, s, LinkEnd::Kind::node).empty()) l.switches[s].x = kMargin + kLeaf * (leaves++ + 0.5);
  for (std::uint32_t s = t.switches; s-- > 0;) {
    l.switches[s].y = kMargin + 23 + kLevel * level[s];
    std::vector<std::uint32_t> below = ports_with(t, s, LinkEnd::Kind::node);
    if (below.empty()) {
      below = ports_with(t, s, LinkEnd::Kind::switch_port);
      if (s != 0) below.erase(below.begin());
      l.switches[s].x =
          (l.switches[t.end({s, below.front()}).index].x + l.switches[t.end({s, below.back()}).index].x) / 2;
    } else {
      hang_nodes(t, l, s, below);
    }
    put_below(t, l, s, below);
    if (s != 0) l.ports[channel(t, {s, 0})] = {l.switches[s].x, l.switches[s].y - l.switch_height / 2};
  }
  choose_bends(t, l, Bend::falling, Bend::hanging);
  l.width = 2 * kMargin + kLeaf * leaves;
  l.height = 2 * kMargin + kLevel * (levels - 1) + 170;
  return l;
}

Layout chain(const Topology& t) {
  constexpr double kStep = 180, kMargin = 100;
  Layout l = prepared(t, 96, 46);
  for (std::uint32_t s = 0; s < t.switches; ++s) {
    l.switches[s] = {kMargin + kStep * s, 70};
    const auto nodes = ports_with(t, s, LinkEnd::Kind::node);
    put_below(t, l, s, nodes);
    hang_nodes(t, l, s, nodes);
    const double half = l.switch_width / 2;
    if (s != 0) l.ports[channel(t, {s, 0})] = {l.switches[s].x - half, 70};
    if (s + 1 != t.switches) l.ports[channel(t, {s, 1})] = {l.switches[s].x + half, 70};
  }
  choose_bends(t, l, Bend::straight, Bend::hanging);
  l.width = 2 * kMargin + kStep * (t.switches - 1);
  l.height = 230;
  return l;
}

// ---- cube
// ------------------------------------------------------------------------------------------------

/// Each dimension goes its own way, the same everywhere, so that all links of a dimension are parallel: a square, a
/// cube seen from above, two cubes side by side, two pairs of them one above the other ...
Layout cube(const Topology& t) {
  constexpr double kUnit = 200;
  constexpr Point kWays[] = {{1, 0}, {0, -1}, {0.47, -0.43}, {2.35, 0.29}, {0.31, 2.29}, {5.1, 0.75}, {0.83, 5.2}};
  if (t.dimension > std::size(kWays)) return spread_out(t);
  std::vector<Point> points(t.switches);
  for (std::uint32_t s = 0; s < t.switches; ++s)
    for (std::uint32_t d = 0; d < t.dimension; ++d)
      if ((s >> d & 1) != 0) points[s] = {points[s].x + kUnit * kWays[d].x, points[s].y + kUnit * kWays[d].y};
  keep_apart(t, points);
  return place_round(t, std::move(points));
}

}  // namespace

void choose_bends(const Topology& t, Layout& l, Bend between_switches, Bend to_nodes) {
  for (std::uint32_t s = 0; s < t.switches; ++s)
    for (std::uint32_t p = 0; p < t.ports; ++p) {
      const LinkEnd& end = t.end({s, p});
      if (end.kind == LinkEnd::Kind::node) l.bends[channel(t, {s, p})] = to_nodes;
      if (end.kind == LinkEnd::Kind::switch_port && s < end.index) l.bends[channel(t, {s, p})] = between_switches;
    }
}

Layout lay_out(const Topology& t) {
  if (t.shape == Shape::mesh || t.shape == Shape::torus) return grid(t);
  if (t.shape == Shape::tree && t.switches > 1) return tree(t);
  if (t.shape == Shape::chain && t.switches > 1) return chain(t);
  if (t.shape == Shape::cube && t.switches > 1) return cube(t);
  return spread_out(t);
}

}  // namespace topo
