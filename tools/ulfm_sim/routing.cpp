#include "routing.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "fabric/models.hpp"
#include "fabric/shared/object.hpp"
#include "fabric/topology/router.hpp"

namespace sim {
namespace {

using ulfm::fabric::Router;
using ulfm::fabric::Routes;

/// For networks that have no ways.
class NoRouting final : public Routing {
 public:
  std::unique_ptr<Routing> clone() const override { return std::make_unique<NoRouting>(); }
  void way(std::uint32_t, std::uint32_t, Random&, Route& out) override { out.clear(); }
  std::uint32_t longest() const override { return 1; }
  bool is_fixed() const override { return true; }
};

/// The topology's own routes, all in one table.
class RouteTable final : public Routing {
 public:
  explicit RouteTable(std::shared_ptr<const Routes> routes) : routes_(std::move(routes)) {
    for (const Route& way : routes_->way) longest_ = std::max(longest_, static_cast<std::uint32_t>(way.size()));
  }
  std::unique_ptr<Routing> clone() const override { return std::make_unique<RouteTable>(*this); }
  void way(std::uint32_t from, std::uint32_t to, Random&, Route& out) override {
    const Route& way = routes_->between(from, to);
    out.assign(way.begin(), way.end());
  }
  std::uint32_t longest() const override { return longest_; }
  bool is_fixed() const override { return true; }

 private:
  std::shared_ptr<const Routes> routes_;
  std::uint32_t longest_ = 0;
};

/// Shapes whose ways follow from the numbers of the nodes.
class Ordered final : public Routing {
 public:
  Ordered(const Topology& t, std::uint32_t longest) : router_(t, {}), longest_(longest) {}
  std::unique_ptr<Routing> clone() const override { return std::make_unique<Ordered>(*this); }
  void way(std::uint32_t from, std::uint32_t to, Random&, Route& out) override {
    router_.start(from);
    router_.way(to, out);
  }
  std::uint32_t longest() const override { return longest_; }
  bool is_fixed() const override { return true; }

 private:
  Router router_;
  std::uint32_t longest_;
};

/// How far it is to each switch, in links, from each switch and phase of a way that goes up and then only down.
class Distances {
 public:
  static constexpr std::uint16_t kFar = 0xffff;
  enum Phase : std::uint32_t { kRising, kFalling };

  explicit Distances(const Topology& t) : t_(t), states_(std::size_t{t.switches} * 2) {
    Topology plain = t;  // ranks for shapes that have ways of their own, too
    plain.shape = Shape::other;
    plain.fixed.clear();
    rank_ = Router(plain, {}).ranks();
    to_.assign(states_ * t.switches, kFar);
    for (std::uint32_t s = 0; s < t.switches; ++s) search(s);
  }
  static std::size_t bytes(const Topology& t) { return std::size_t{t.switches} * t.switches * 4; }

  bool up(std::uint32_t from, std::uint32_t to) const { return rank_[to] < rank_[from]; }
  std::uint16_t between(std::uint32_t from, Phase phase, std::uint32_t to) const {
    return to_[to * states_ + from * 2 + phase];
  }
  std::uint32_t longest() const { return longest_; }

 private:
  // Backwards from the destination, which may be reached in either phase.
  void search(std::uint32_t to) {
    std::uint16_t* const row = &to_[to * states_];
    row[to * 2 + kRising] = row[to * 2 + kFalling] = 0;
    queue_ = {to * 2 + kRising, to * 2 + kFalling};
    for (std::size_t i = 0; i < queue_.size(); ++i) {
      const std::uint32_t at = queue_[i] / 2, phase = queue_[i] % 2;
      for (std::uint32_t p = 0; p < t_.ports; ++p) {
        const LinkEnd& end = t_.end({at, p});
        if (end.kind != LinkEnd::Kind::switch_port) continue;
        const bool rises = up(end.index, at);
        if (rises != (phase == kRising)) continue;  // a link up is taken rising, a link down leaves falling
        for (const std::uint32_t before : {kRising, kFalling}) {
          if (rises && before == kFalling) continue;
          std::uint16_t& distance = row[end.index * 2 + before];
          if (distance != kFar) continue;
          distance = static_cast<std::uint16_t>(row[queue_[i]] + 1);
          queue_.push_back(end.index * 2 + before);
          if (before == kRising) longest_ = std::max<std::uint32_t>(longest_, distance);
        }
      }
    }
  }

  const Topology& t_;
  std::size_t states_;
  std::vector<std::uint32_t> rank_, queue_;
  std::vector<std::uint16_t> to_;
  std::uint32_t longest_ = 0;
};

/// Ways that up*/down* allows, found link by link.
class UpDown final : public Routing {
 public:
  /// `extra`: links more than the shortest way has, at most. `fixed`: a pair of nodes has one way.
  UpDown(const Topology& t, std::shared_ptr<const Distances> distances, std::uint32_t extra, bool fixed)
      : t_(t), distances_(std::move(distances)), extra_(extra), fixed_(fixed) {}
  std::unique_ptr<Routing> clone() const override { return std::make_unique<UpDown>(*this); }

  void way(std::uint32_t from, std::uint32_t to, Random& random, Route& out) override {
    Random own(from, to);
    Random& choose = fixed_ ? own : random;
    out.clear();
    std::uint32_t at = t_.attachment[from].at;
    const std::uint32_t target = t_.attachment[to].at;
    auto phase = Distances::kRising;
    std::uint32_t left = distances_->between(at, phase, target) + extra_;
    while (at != target || (left != 0 && extra_ != 0)) {
      const auto [port, next] = step(at, phase, target, left, choose);
      if (port == kStop) break;
      out.push_back(static_cast<std::uint8_t>(port));
      at = t_.end({at, port}).index;
      phase = next;
      --left;
    }
    out.push_back(static_cast<std::uint8_t>(t_.attachment[to].port));
  }
  std::uint32_t longest() const override { return distances_->longest() + extra_ + 1; }
  bool is_fixed() const override { return fixed_; }

 private:
  static constexpr std::uint32_t kStop = ~std::uint32_t{0};

  /// One of the links from which the target is near enough; to stay is one more choice where it is reached.
  std::pair<std::uint32_t, Distances::Phase> step(std::uint32_t at, Distances::Phase phase, std::uint32_t target,
                                                  std::uint32_t left, Random& random) const {
    std::pair<std::uint32_t, Distances::Phase> choices[256];
    std::uint32_t count = 0;
    if (at == target) choices[count++] = {kStop, phase};
    for (std::uint32_t p = 0; p < t_.ports && left != 0; ++p) {
      const LinkEnd& end = t_.end({at, p});
      if (end.kind != LinkEnd::Kind::switch_port) continue;
      const bool rises = distances_->up(at, end.index);
      if (rises && phase == Distances::kFalling) continue;
      const auto next = rises ? Distances::kRising : Distances::kFalling;
      if (distances_->between(end.index, next, target) > left - 1) continue;
      choices[count++] = {p, next};
    }
    return choices[count < 2 ? 0 : random.below(count)];
  }

  const Topology& t_;
  std::shared_ptr<const Distances> distances_;
  std::uint32_t extra_;
  bool fixed_;
};

Result<std::unique_ptr<Routing>> up_down(const Topology& t, std::uint32_t extra, bool fixed) {
  constexpr std::size_t kMost = std::size_t{1} << 30;
  if (Distances::bytes(t) > kMost)
    return fail(Errc::too_large,
                fmt::format("topology {}: up*/down* over {} switches needs {} MiB for distances; take a "
                            "mesh, torus, cube or hyperx with --routing default, or a smaller topology",
                            t.name, t.switches, Distances::bytes(t) >> 20));
  return std::make_unique<UpDown>(t, std::make_shared<Distances>(t), extra, fixed);
}

constexpr std::uint32_t kMostNodes = 1024;  // whose routes fit into a table

/// The node at which a way ends; nodes() when it ends nowhere, or goes on behind a node.
std::uint32_t end_of(const Topology& t, std::uint32_t from, const Route& way) {
  std::uint32_t at = t.attachment[from].at;
  for (std::size_t hop = 0; hop < way.size(); ++hop) {
    if (way[hop] >= t.ports) break;
    const LinkEnd& end = t.end({at, way[hop]});
    if (end.kind == LinkEnd::Kind::node) return hop + 1 == way.size() ? end.index : t.nodes();
    if (end.kind != LinkEnd::Kind::switch_port) break;
    at = end.index;
  }
  return t.nodes();
}

/// The ways of a function in a shared object, all walked and found free of deadlocks.
Result<std::unique_ptr<Routing>> from_shared_object(std::string_view path, const Topology& t) {
  constexpr std::uint32_t kLongest = 255;
  auto routing = ulfm::fabric::shared::find_routing(path);
  if (!routing) return fail(std::move(routing.error()));
  const std::string name = fmt::format("routing \"{}\"", (*routing)->name);
  if (t.nodes() > kMostNodes)
    return fail(Errc::too_large, fmt::format("{}: topology {} has {} nodes; all ways are walked before the simulation "
                                             "begins, which is done for at most {}",
                                             name, t.name, t.nodes(), kMostNodes));
  const ulfm::fabric::shared::NetTables tables(t);
  Routes routes{t.nodes(), {}};
  routes.way.resize(std::size_t{t.nodes()} * t.nodes());
  for (std::uint32_t from = 0; from < t.nodes(); ++from)
    for (std::uint32_t to = 0; to < t.nodes(); ++to) {
      if (from == to) continue;
      Route& way = routes.way[std::size_t{from} * t.nodes() + to];
      way.resize(kLongest);
      way.resize(std::min((*routing)->way(tables.net(), from, to, way.data(), kLongest), kLongest));
      if (way.empty() || end_of(t, from, way) != to)
        return fail(Errc::invalid,
                    fmt::format("{}: its way from node {} to node {} of {} has {} ports and does not end "
                                "there",
                                name, from, to, t.name, way.size()));
    }
  if (const auto cycle = ulfm::fabric::dependency_cycle(t, routes); !cycle.empty())
    return fail(Errc::invalid,
                fmt::format("{} can deadlock: each of these channels waits for the next, and the last for "
                            "the first: {}",
                            name, ulfm::fabric::cycle_text(t, cycle)));
  return std::make_unique<RouteTable>(std::make_shared<const Routes>(std::move(routes)));
}

Result<std::unique_ptr<Routing>> usual(const Topology& t) {
  if (const std::uint32_t longest = ulfm::fabric::longest_ordered_way(t); longest != 0)
    return std::make_unique<Ordered>(t, longest);
  if (t.nodes() > kMostNodes && t.fixed.empty()) return up_down(t, 0, true);
  auto routes = ulfm::fabric::compute_routes(t);
  if (!routes) return fail(std::move(routes.error()));
  return std::make_unique<RouteTable>(std::make_shared<const Routes>(std::move(*routes)));
}

}  // namespace

Result<std::unique_ptr<Routing>> make_routing(std::string_view text, const Topology& topology) {
  if (text == "none") return std::make_unique<NoRouting>();
  if (text == "default") return usual(topology);
  if (text == "updown") return up_down(topology, 0, false);
  if (ulfm::fabric::is_shared_object(text)) return from_shared_object(text, topology);
  std::uint32_t extra = 0;
  constexpr std::string_view kNonminimal = "nonminimal:";
  const std::string_view number = text.substr(std::min(text.size(), kNonminimal.size()));
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), extra);
  const bool good = text.starts_with(kNonminimal) && error == std::errc{} && end == number.data() + number.size();
  if (good && extra >= 1 && extra <= 64) return up_down(topology, extra, false);
  return fail(Errc::invalid,
              fmt::format("routing \"{}\": take default, updown, nonminimal:N with 1 to 64 links more than the "
                          "shortest way, or a shared object such as ./mine.so",
                          text.substr(0, 80)));
}

}  // namespace sim
