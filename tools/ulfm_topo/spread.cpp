// The layout of what has no regular shape: distances in the picture like distances in the network (stress
// majorization; Gansner, Koren and North, Graph drawing by stress majorization, 2004). The start is a circle,
// so that the same topology always has the same picture.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "layout.hpp"

namespace topo {
namespace {

using namespace ulfm::fabric;

constexpr double kRadius = 30;                        // of a switch
constexpr double kSwitchLink = 190, kNodeLink = 105;  // wished for, between centres
constexpr std::uint32_t kMany = 500;                  // switches and nodes; beyond, the circle must do

/// Switches first, nodes behind them.
class Spread {
 public:
  explicit Spread(const Topology& t) : t_(t), count_(t.switches + t.nodes()), at_(count_) {}

  std::vector<Point> points() {
    start();
    if (count_ > kMany || count_ < 2) return at_;
    measure();
    for (int round = 0; round < 300; ++round) improve();
    turn();
    return at_;
  }

 private:
  double wished(std::uint32_t a, std::uint32_t b) const { return wished_[std::size_t{a} * count_ + b]; }

  // Switches round a circle in the order of a depth-first walk, nodes outside of their switches.
  void start() {
    std::vector<std::uint32_t> order;
    std::vector<bool> seen(t_.switches, false);
    std::vector<std::uint32_t> stack{0};
    while (!stack.empty()) {
      const std::uint32_t s = stack.back();
      stack.pop_back();
      if (seen[s]) continue;
      seen[s] = true;
      order.push_back(s);
      for (std::uint32_t p = t_.ports; p-- > 0;) {
        const LinkEnd& end = t_.end({s, p});
        if (end.kind == LinkEnd::Kind::switch_port && !seen[end.index]) stack.push_back(end.index);
      }
    }
    const double radius = t_.switches == 1 ? 0 : std::max(120.0, t_.switches * 150 / (2 * std::numbers::pi));
    for (std::size_t i = 0; i < order.size(); ++i) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(order.size());
      at_[order[i]] = {radius * std::sin(angle), -radius * std::cos(angle)};
      place_nodes(order[i], angle);
    }
  }

  void place_nodes(std::uint32_t s, double angle) {
    std::vector<std::uint32_t> nodes;
    for (std::uint32_t p = 0; p < t_.ports; ++p)
      if (t_.end({s, p}).kind == LinkEnd::Kind::node) nodes.push_back(t_.end({s, p}).index);
    const double step =
        t_.switches == 1 ? 2 * std::numbers::pi / static_cast<double>(std::max<std::size_t>(nodes.size(), 1)) : 0.5;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const double middle = t_.switches == 1 ? 0 : static_cast<double>(nodes.size() - 1) / 2;
      const double to = angle + step * (static_cast<double>(i) - middle);
      at_[t_.switches + nodes[i]] = {at_[s].x + kNodeLink * std::sin(to), at_[s].y - kNodeLink * std::cos(to)};
    }
  }

  // Shortest ways between all, links to nodes being shorter; a search from each switch is enough.
  void measure() {
    wished_.assign(std::size_t{count_} * count_, 0);
    std::vector<std::vector<double>> links(t_.switches, std::vector<double>(t_.switches, -1));
    std::vector<std::uint32_t> queue;
    for (std::uint32_t from = 0; from < t_.switches; ++from) {
      links[from][from] = 0;
      queue.assign(1, from);
      for (std::size_t i = 0; i < queue.size(); ++i)
        for (std::uint32_t p = 0; p < t_.ports; ++p) {
          const LinkEnd& end = t_.end({queue[i], p});
          if (end.kind != LinkEnd::Kind::switch_port || links[from][end.index] >= 0) continue;
          links[from][end.index] = links[from][queue[i]] + 1;
          queue.push_back(end.index);
        }
    }
    const auto home = [&](std::uint32_t v) { return v < t_.switches ? v : t_.attachment[v - t_.switches].at; };
    for (std::uint32_t a = 0; a < count_; ++a)
      for (std::uint32_t b = 0; b < count_; ++b)
        wished_[std::size_t{a} * count_ + b] = a == b ? 0
                                                      : links[home(a)][home(b)] * kSwitchLink +
                                                            (a >= t_.switches ? kNodeLink : 0) +
                                                            (b >= t_.switches ? kNodeLink : 0);
  }

  // Each moves to where the others, weighted by nearness, would have it.
  void improve() {
    for (std::uint32_t a = 0; a < count_; ++a) {
      double x = 0, y = 0, weights = 0;
      for (std::uint32_t b = 0; b < count_; ++b) {
        if (a == b) continue;
        const double dx = at_[a].x - at_[b].x, dy = at_[a].y - at_[b].y;
        const double apart = std::max(std::hypot(dx, dy), 1e-3), wish = wished(a, b), weight = 1 / (wish * wish);
        x += weight * (at_[b].x + wish * dx / apart);
        y += weight * (at_[b].y + wish * dy / apart);
        weights += weight;
      }
      at_[a] = {x / weights, y / weights};
    }
  }

  // The longest direction lies level.
  void turn() {
    double mx = 0, my = 0, xx = 0, yy = 0, xy = 0;
    for (const Point& p : at_) mx += p.x / count_, my += p.y / count_;
    for (const Point& p : at_)
      xx += (p.x - mx) * (p.x - mx), yy += (p.y - my) * (p.y - my), xy += (p.x - mx) * (p.y - my);
    if (std::hypot(xx - yy, 2 * xy) < 0.05 * (xx + yy)) return;  // as broad as long
    const double angle = -0.5 * std::atan2(2 * xy, xx - yy);
    for (Point& p : at_) {
      const double x = p.x - mx, y = p.y - my;
      p = {x * std::cos(angle) - y * std::sin(angle), x * std::sin(angle) + y * std::cos(angle)};
    }
  }

  const Topology& t_;
  const std::uint32_t count_;
  std::vector<Point> at_;
  std::vector<double> wished_;
};

double distance(Point a, Point b) { return std::hypot(a.x - b.x, a.y - b.y); }

/// From a point to a link between two others.
double distance_to_link(Point p, Point a, Point b) {
  const double length = std::max(distance(a, b), 1e-9);
  const double along =
      std::clamp(((p.x - a.x) * (b.x - a.x) + (p.y - a.y) * (b.y - a.y)) / (length * length), 0.0, 1.0);
  return distance(p, {a.x + along * (b.x - a.x), a.y + along * (b.y - a.y)});
}

template <typename Visit>
void for_links(const Topology& t, Visit visit) {
  for (std::uint32_t s = 0; s < t.switches; ++s)
    for (std::uint32_t p = 0; p < t.ports; ++p)
      if (const LinkEnd& end = t.end({s, p}); end.kind == LinkEnd::Kind::switch_port && s < end.index)
        visit(s, end.index);
}

/// Where nodes stand round their switches: on a place where they cover neither a switch, nor a link, nor another node,
/// and as near as such a place is.
class Neighbourhood {
 public:
  Neighbourhood(const Topology& t, const std::vector<Point>& switches) : t_(t), switches_(switches), nodes_(t.nodes()) {
    if (t.switches <= kMany) for_links(t, [&](std::uint32_t a, std::uint32_t b) { links_.push_back({a, b}); });
  }

  std::vector<Point> nodes() {
    for (std::uint32_t node = 0; node < t_.nodes(); ++node)
      nodes_[node] = t_.switches == 1 ? on_ring(node) : place(node);
    return nodes_;
  }

 private:
  static constexpr double kGap = 9;  // to everything else

  Point on_ring(std::uint32_t node) const {
    const double count = t_.nodes(), angle = 2 * std::numbers::pi * node / count;
    const double away = std::max(kRadius + 50, count * (kNodeWidth + kGap) / (2 * std::numbers::pi));
    return {switches_[0].x + away * std::sin(angle), switches_[0].y - away * std::cos(angle)};
  }

  Point place(std::uint32_t node) const {
    constexpr int kDirections = 48;
    const Point at = switches_[t_.attachment[node].at];
    Point best = at;
    double least = 1e300;
    for (double away = kRadius + 42; away < kRadius + 400; away += 24) {
      for (int i = 0; i < kDirections; ++i) {
        const double angle = 2 * std::numbers::pi * (i + 0.5) / kDirections - std::numbers::pi / 2;
        const Point p{at.x + away * std::cos(angle), at.y + away * std::sin(angle)};
        const double cost = covered(p, node) * 1e6 + crowding(p) + away;
        if (cost < least) least = cost, best = p;
      }
      if (least < 1e6) break;
    }
    return best;
  }

  /// How many things its label, or its own link, would lie on.
  double covered(Point p, std::uint32_t node) const {
    const double half = std::hypot(kNodeWidth, kNodeHeight) / 2;
    const std::uint32_t home = t_.attachment[node].at;
    int count = 0;
    for (std::uint32_t s = 0; s < t_.switches; ++s) {
      count += distance(p, switches_[s]) < kRadius + kPortRadius + half;
      count += s != home && distance_to_link(switches_[s], p, switches_[home]) < kRadius + kGap;
    }
    for (std::uint32_t other = 0; other < node; ++other) {
      count +=
          std::abs(p.x - nodes_[other].x) < kNodeWidth + kGap && std::abs(p.y - nodes_[other].y) < kNodeHeight + kGap;
      count += distance_to_link(nodes_[other], p, switches_[home]) < half + kGap / 2;
      count += distance_to_link(p, nodes_[other], switches_[t_.attachment[other].at]) < half + kGap / 2;
    }
    for (const auto& [a, b] : links_) count += distance_to_link(p, switches_[a], switches_[b]) < half + kGap / 2;
    return count;
  }

  /// Small: only to choose among free places, the one that is far from links.
  double crowding(Point p) const {
    double sum = 0;
    for (const auto& [a, b] : links_) sum += 200 / std::max(distance_to_link(p, switches_[a], switches_[b]), 1.0);
    for (const Point& s : switches_) sum += 400 / std::max(distance(p, s), 1.0);
    return sum;
  }

  const Topology& t_;
  const std::vector<Point>& switches_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> links_;
  std::vector<Point> nodes_;
};

/// Ports look towards what they are linked to, as far as they have room beside each other; free ones fill the
/// gaps.
class Rim {
 public:
  Rim(const Topology& t, Layout& l, std::uint32_t s) : t_(t), l_(l), s_(s) {}

  void place() {
    for (std::uint32_t p = 0; p < t_.ports; ++p)
      if (t_.end({s_, p}).kind != LinkEnd::Kind::nothing) used_.push_back({direction(p), order(p), p});
    std::sort(used_.begin(), used_.end(),
              [](const Seat& a, const Seat& b) { return std::pair(a.angle, a.order) < std::pair(b.angle, b.order); });
    make_room();
    for (std::uint32_t p = 0; p < t_.ports; ++p)
      if (t_.end({s_, p}).kind == LinkEnd::Kind::nothing) used_.push_back({widest_gap(), 0, p});
    for (const Seat& seat : used_)
      l_.ports[std::size_t{s_} * t_.ports + seat.port] = {l_.switches[s_].x + kRadius * std::cos(seat.angle),
                                                          l_.switches[s_].y + kRadius * std::sin(seat.angle)};
  }

 private:
  struct Seat {
    double angle;
    double order;
    std::uint32_t port;
  };

  double direction(std::uint32_t p) const {
    const LinkEnd& end = t_.end({s_, p});
    const Point& to = end.kind == LinkEnd::Kind::node ? l_.nodes[end.index] : l_.switches[end.index];
    // Links side by side must sort alike at both ends, whatever the last bit of the angle says.
    return std::round(1e6 * std::atan2(to.y - l_.switches[s_].y, to.x - l_.switches[s_].x)) / 1e6;
  }

  // Links between the same two switches: clockwise at one end is anticlockwise at the other.
  double order(std::uint32_t p) const {
    const LinkEnd& end = t_.end({s_, p});
    return end.kind == LinkEnd::Kind::switch_port && end.index < s_ ? -double(end.port) : double(p);
  }

  void make_room() {
    const double least =
        std::min(0.62, 2 * std::numbers::pi / static_cast<double>(std::max<std::size_t>(used_.size(), 1)) - 0.01);
    for (int round = 0; round < 60 && used_.size() > 1; ++round)
      for (std::size_t i = 0; i < used_.size(); ++i) {
        Seat& a = used_[i];
        Seat& b = used_[(i + 1) % used_.size()];
        const double gap = b.angle - a.angle + (i + 1 == used_.size() ? 2 * std::numbers::pi : 0);
        if (gap < least) a.angle -= (least - gap) / 2, b.angle += (least - gap) / 2;
      }
  }

  double widest_gap() const {
    std::vector<double> angles;
    for (const Seat& seat : used_) angles.push_back(seat.angle);
    if (angles.empty()) return 0;
    std::sort(angles.begin(), angles.end());
    double best = angles.back(), width = angles.front() + 2 * std::numbers::pi - angles.back();
    for (std::size_t i = 0; i + 1 < angles.size(); ++i)
      if (angles[i + 1] - angles[i] > width) best = angles[i], width = angles[i + 1] - angles[i];
    return best + width / 2;
  }

  const Topology& t_;
  Layout& l_;
  const std::uint32_t s_;
  std::vector<Seat> used_;
};

}  // namespace

void keep_apart(const Topology& t, std::vector<Point>& switches) {
  if (t.switches > kMany || t.switches < 2) return;
  double nearest = 1e300, grazed = 1e300;
  for (std::uint32_t a = 0; a < t.switches; ++a)
    for (std::uint32_t b = 0; b < a; ++b) nearest = std::min(nearest, distance(switches[a], switches[b]));
  for_links(t, [&](std::uint32_t a, std::uint32_t b) {
    for (std::uint32_t s = 0; s < t.switches; ++s)
      if (const double d = distance_to_link(switches[s], switches[a], switches[b]); s != a && s != b && d > 4)
        grazed = std::min(grazed, d);
  });
  // A link that goes right through a switch still would, however large the picture.
  const double wanted =
      std::max(4 * kRadius / std::max(nearest, 1.0), std::min((kRadius + 2 * kPortRadius + 12) / grazed, 2.5));
  if (wanted <= 1) return;
  for (Point& p : switches) p = {p.x * wanted, p.y * wanted};
}

Layout place_round(const Topology& t, std::vector<Point> switches) {
  constexpr double kMargin = 60;
  Layout l;
  l.round = true;
  l.switch_width = l.switch_height = 2 * kRadius;
  l.switches = std::move(switches);
  l.nodes = Neighbourhood(t, l.switches).nodes();
  Point least = l.switches[0], most = l.switches[0];
  for (const auto* points : {&l.switches, &l.nodes})
    for (const Point& p : *points) {
      least = {std::min(least.x, p.x), std::min(least.y, p.y)};
      most = {std::max(most.x, p.x), std::max(most.y, p.y)};
    }
  for (auto* points : {&l.switches, &l.nodes})
    for (Point& p : *points) p = {p.x - least.x + kMargin, p.y - least.y + kMargin};
  l.width = most.x - least.x + 2 * kMargin, l.height = most.y - least.y + 2 * kMargin;
  l.ports.resize(t.ends.size());
  l.bends.resize(t.ends.size(), Bend::none);
  for (std::uint32_t s = 0; s < t.switches; ++s) Rim(t, l, s).place();
  choose_bends(t, l, Bend::straight, Bend::straight);
  return l;
}

Layout spread_out(const Topology& t) {
  std::vector<Point> points = Spread(t).points();
  points.resize(t.switches);
  keep_apart(t, points);
  return place_round(t, std::move(points));
}

}  // namespace topo
