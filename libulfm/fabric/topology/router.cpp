#include "fabric/topology/router.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "fabric/topology/generators.hpp"

namespace ulfm::fabric {
namespace {

/// Breadth-first search over the links that work.
class Spread {
 public:
  Spread(const Topology& topology, const std::vector<bool>& dead)
      : topology_(topology), dead_(dead), level_(topology.switches), seen_(topology.switches, 0) {}

  /// Switches that can be reached, nearest first, those of equal distance by the ports that lead to them.
  const std::vector<std::uint32_t>& from(std::uint32_t root) {
    ++round_;
    reached_.assign(1, root);
    seen_[root] = round_, level_[root] = 0, sum_ = 0;
    for (std::size_t i = 0; i < reached_.size(); ++i) {
      const std::uint32_t s = reached_[i];
      sum_ += level_[s];
      for (std::uint32_t p = 0; p < topology_.ports; ++p) {
        const LinkEnd& end = topology_.end({s, p});
        if (end.kind != LinkEnd::Kind::switch_port || dead_[std::size_t{s} * topology_.ports + p]) continue;
        if (seen_[end.index] == round_) continue;
        seen_[end.index] = round_, level_[end.index] = level_[s] + 1;
        reached_.push_back(end.index);
      }
    }
    return reached_;
  }
  /// Links to all the switches that were reached.
  std::uint64_t sum() const { return sum_; }

 private:
  const Topology& topology_;
  const std::vector<bool>& dead_;
  std::vector<std::uint32_t> level_, seen_, reached_;
  std::uint32_t round_ = 0;
  std::uint64_t sum_ = 0;
};

}  // namespace

Router::Router(const Topology& topology, const DeadPorts& dead)
    : topology_(topology), dead_(std::size_t{topology.switches} * topology.ports, false) {
  mark_dead(dead);
  ordered_ = !detours_ && longest_ordered_way(topology) != 0;
  if (!ordered_ && topology.shape != Shape::hypercube) rank_switches();
}

void Router::mark_dead(const DeadPorts& dead) {
  for (const SwitchPort& p : dead) {
    if (p.at >= topology_.switches || p.port >= topology_.ports) continue;
    dead_[channel(p)] = true;
    const LinkEnd& end = topology_.end(p);
    if (end.kind != LinkEnd::Kind::switch_port) continue;
    dead_[channel({end.index, end.port})] = true;
    detours_ = true;
  }
}

void Router::rank_switches() {
  constexpr std::uint32_t kNone = ~std::uint32_t{0};
  if (!topology_.levels.empty() && !detours_) return rank_by_level();
  rank_.assign(topology_.switches, kNone);
  Spread spread(topology_, dead_);
  std::uint32_t next = 0;
  for (std::uint32_t first = 0; first < topology_.switches; ++first) {
    if (rank_[first] != kNone) continue;
    const std::vector<std::uint32_t> part = spread.from(first);
    std::uint32_t root = first;
    std::uint64_t nearest = spread.sum();
    for (const std::uint32_t s : part) {
      spread.from(s);
      if (spread.sum() < nearest || (spread.sum() == nearest && s < root)) root = s, nearest = spread.sum();
    }
    for (const std::uint32_t s : spread.from(root)) rank_[s] = next++;
  }
}

/// By level, and by number within a level: any order of the switches makes up*/down* safe from deadlocks.
void Router::rank_by_level() {
  std::vector<std::uint32_t> order(topology_.switches);
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return topology_.levels[a] < topology_.levels[b]; });
  rank_.resize(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) rank_[order[i]] = i;
}

void Router::start(std::uint32_t node) {
  node_ = node;
  if (ordered_) return;
  used_.assign(dead_.size(), 0);
  search(topology_.attachment[node].at);
}

void Router::search(std::uint32_t from) {
  if (from == searched_from_) return;
  searched_from_ = from;
  distance_.assign(std::size_t{topology_.switches} * 2, kFar);
  distance_[state(from, kRising)] = 0;
  queue_.assign(1, static_cast<std::uint32_t>(state(from, kRising)));
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    const std::uint32_t at = queue_[i] / 2;
    const bool may_rise = queue_[i] % 2 == kRising;
    for (std::uint32_t p = 0; p < topology_.ports; ++p) {
      if (!leads_on({at, p})) continue;
      const std::uint32_t to = topology_.end({at, p}).index;
      const bool up = rises(at, to);
      if (up && !may_rise) continue;
      const std::size_t next = state(to, up ? kRising : kFalling);
      if (distance_[next] != kFar) continue;
      distance_[next] = distance_[queue_[i]] + 1;
      queue_.push_back(static_cast<std::uint32_t>(next));
    }
  }
}

std::uint32_t Router::length(std::uint32_t to) const {
  if (to == node_ || !attached(node_) || !attached(to)) return 0;
  if (ordered_ && topology_.shape == Shape::cube) return static_cast<std::uint32_t>(std::popcount(dimensions(to))) + 1;
  if (ordered_ && topology_.shape == Shape::hypercube) return sections(to) + 1;
  if (ordered_ && !topology_.sizes.empty()) {
    Route way;
    dimension_way(topology_, node_, to, way);
    return static_cast<std::uint32_t>(way.size());
  }
  if (ordered_) return along_row(to).links + along_column(to).links + 1;
  const std::uint32_t target = topology_.attachment[to].at;
  const std::uint32_t links = std::min(distance_[state(target, kRising)], distance_[state(target, kFalling)]);
  return links == kFar ? 0 : links + 1;
}

void Router::way(std::uint32_t to, Route& out) {
  if (ordered_ && !topology_.sizes.empty()) {
    out.clear();
    if (to != node_ && attached(node_) && attached(to)) dimension_way(topology_, node_, to, out);
    return;
  }
  out.assign(length(to), 0);
  if (out.empty()) return;
  out.back() = static_cast<std::uint8_t>(topology_.attachment[to].port);
  if (ordered_) in_dimension_order(to, out);
  else back_from(to, out);
}

// Positions on a ring are counted from the switch where it is opened: between two others there is one way
// only.
Router::Leg Router::leg(std::uint32_t from, std::uint32_t to, std::uint32_t size, std::uint32_t ring, bool even) const {
  if (topology_.shape == Shape::mesh) return from < to ? Leg{to - from, true} : Leg{from - to, false};
  const std::uint32_t opened = ring % size;
  const std::uint32_t a = (from + size - opened) % size, b = (to + size - opened) % size;
  if (a != 0 && b != 0) return a < b ? Leg{b - a, true} : Leg{a - b, false};
  const std::uint32_t forward = (b + size - a) % size, backward = (size - forward) % size;
  if (forward == backward) return {forward, even};
  return forward < backward ? Leg{forward, true} : Leg{backward, false};
}

Router::Leg Router::along_row(std::uint32_t to) const {
  const std::uint32_t columns = topology_.columns, from = topology_.attachment[node_].at;
  return leg(from % columns, topology_.attachment[to].at % columns, columns, from / columns, (node_ + to) % 2 == 0);
}

Router::Leg Router::along_column(std::uint32_t to) const {
  const std::uint32_t columns = topology_.columns, target = topology_.attachment[to].at;
  return leg(topology_.attachment[node_].at / columns, target / columns, topology_.rows, target % columns,
             (node_ + to) % 2 == 0);
}

/// Dimensions in which the switches of a cube's two nodes differ, a bit each.
std::uint32_t Router::dimensions(std::uint32_t to) const {
  return topology_.attachment[node_].at ^ topology_.attachment[to].at;
}

/// Sections in which the cards of a generalized hypercube's two nodes differ.
std::uint32_t Router::sections(std::uint32_t to) const {
  std::uint32_t a = topology_.attachment[node_].at, b = topology_.attachment[to].at, count = 0;
  for (; a != b; a /= topology_.radix, b /= topology_.radix) count += a % topology_.radix != b % topology_.radix;
  return count;
}

void Router::in_dimension_order(std::uint32_t to, Route& out) const {
  if (topology_.shape == Shape::cube) {
    auto next = out.begin();
    for (std::uint32_t left = dimensions(to); left != 0; left &= left - 1)
      *next++ = static_cast<std::uint8_t>(std::countr_zero(left));
    return;
  }
  if (topology_.shape == Shape::hypercube) {
    auto next = out.begin();
    const std::uint32_t from = topology_.attachment[node_].at, end = topology_.attachment[to].at;
    for (std::uint32_t s = 0, weight = 1; s < topology_.dimension; ++s, weight *= topology_.radix)
      if (const std::uint32_t j = end / weight % topology_.radix; j != from / weight % topology_.radix)
        *next++ = static_cast<std::uint8_t>(s * topology_.radix + j);
    return;
  }
  const Leg row = along_row(to), column = along_column(to);
  const auto turn = out.begin() + row.links;
  std::fill(out.begin(), turn, row.forward ? kEast : kWest);
  std::fill(turn, turn + column.links, column.forward ? kSouth : kNorth);
}

// From the destination back to the source: every state before the present one that is one link nearer to the
// source lies on a shortest way. The channel that fewest ways of this source have taken so far wins; among
// equals the first one, counted from another place for each source and switch.
void Router::back_from(std::uint32_t to, Route& out) {
  struct Step {
    SwitchPort channel;
    Phase phase;
  };
  std::vector<Step> steps(2 * std::size_t{topology_.ports});
  std::uint32_t at = topology_.attachment[to].at;
  bool any_phase = true;  // the end may be reached in either
  Phase phase = kRising;
  for (std::size_t left = out.size() - 1; left > 0; --left) {
    std::size_t count = 0;
    for (std::uint32_t p = 0; p < topology_.ports; ++p) {
      if (!leads_on({at, p})) continue;
      const LinkEnd& before = topology_.end({at, p});
      const bool up = rises(before.index, at);
      if (!any_phase && up != (phase == kRising)) continue;
      for (const Phase earlier : {kRising, kFalling}) {
        if (up && earlier == kFalling) continue;
        if (distance_[state(before.index, earlier)] == left - 1)
          steps[count++] = {{before.index, before.port}, earlier};
      }
    }
    const std::size_t first = (node_ + at) % count;
    std::size_t best = first;
    for (std::size_t i = 1; i < count; ++i) {
      const std::size_t other = (first + i) % count;
      if (used_[channel(steps[other].channel)] < used_[channel(steps[best].channel)]) best = other;
    }
    ++used_[channel(steps[best].channel)];
    out[left - 1] = static_cast<std::uint8_t>(steps[best].channel.port);
    at = steps[best].channel.at, phase = steps[best].phase, any_phase = false;
  }
}

}  // namespace ulfm::fabric
