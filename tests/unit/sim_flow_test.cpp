// The simulator's form of X-Switches beside the reference model: every frame ends in the same cycle, every channel has
// carried the same.
#include <catch2/catch.hpp>

#include <algorithm>

#include "fabric/xswitch/reference.hpp"
#include "routing.hpp"
#include "xswitch_flow.hpp"

using namespace sim;
using ulfm::fabric::xswitch::Arbitration;
using ulfm::fabric::xswitch::Parameters;
using ulfm::fabric::xswitch::Reference;

namespace {

struct Message {
  std::uint64_t cycle;
  std::uint32_t from, to, units;
  Route way;
};

/// So many messages of 1 to `units` units between any nodes, at `rate` messages a node and cycle.
std::vector<Message> traffic(const Topology& t, std::uint32_t count, std::uint32_t units, double rate,
                             std::uint64_t seed) {
  const auto routing = make_routing("default", t).value();
  Random random(seed, 7);
  std::vector<Message> all;
  std::uint64_t cycle = 1;
  for (std::uint32_t i = 0; i < count; ++i) {
    cycle += random.geometric(std::min(0.999, rate * t.nodes())) - 1;
    const std::uint32_t from = random.below(t.nodes()), to = (from + 1 + random.below(t.nodes() - 1)) % t.nodes();
    all.push_back({cycle, from, to, 1 + random.below(units), {}});
    routing->way(from, to, random, all.back().way);
  }
  return all;
}

/// What every channel of the reference model has carried.
std::vector<std::uint64_t> carried(const Reference& model, const Topology& t) {
  std::vector<std::uint64_t> units;
  const auto add = [&](const auto& c) { units.push_back(c.out.data_units + c.out.routing_units + c.out.frames); };
  for (std::uint32_t s = 0; s < t.switches; ++s)
    for (std::uint32_t p = 0; p < t.ports; ++p) add(model.counters({s, p}));
  for (std::uint32_t n = 0; n < t.nodes(); ++n) add(model.node_counters(n));
  return units;
}

/// The first difference between both models, looked at every few cycles; empty: there is none.
std::string difference(const Topology& t, const Parameters& p, const std::vector<Message>& messages) {
  const auto flow = make_flow(t, p, static_cast<std::uint32_t>(messages.size()));
  Reference reference(t, p);
  std::vector<Ending> endings;
  std::size_t next = 0;
  constexpr std::uint64_t kPatience = 1u << 22;
  for (std::uint64_t cycle = 1; endings.size() < messages.size() && cycle < kPatience; ++cycle) {
    const std::string when = " in cycle " + std::to_string(cycle);
    for (; next < messages.size() && messages[next].cycle == cycle; ++next) {
      const Message& m = messages[next];
      const auto frame = static_cast<FrameId>(next);
      flow->run(cycle, endings);
      reference.inject(frame, m.from, m.way, m.units);
      if (!flow->inject(frame, m.from, m.to, m.units, m.way)) return "a message is refused" + when;
    }
    reference.step();
    if (cycle % 17 != 0 && next != messages.size()) continue;
    flow->run(cycle + 1, endings);
    if (flow->inside() != next - endings.size()) return "messages are missing" + when;
    if (const std::string text = flow->imbalance(); !text.empty()) return text + when;
    const auto busy = flow->busy(), right = carried(reference, t);
    const auto [one, other] = std::mismatch(busy.begin(), busy.end(), right.begin());
    if (one != busy.end())
      return "channel " + std::to_string(one - busy.begin()) + " carried " + std::to_string(*one) + " and not " +
             std::to_string(*other) + when;
    std::vector<Ending> same = reference.endings();
    if (endings.size() != same.size()) return "another number of frames ended" + when;
    if (next != messages.size()) continue;
    const auto earlier = [](const Ending& a, const Ending& b) { return a.frame < b.frame; };
    std::sort(endings.begin(), endings.end(), earlier);
    std::sort(same.begin(), same.end(), earlier);
    if (endings != same) return "a frame ended at another time" + when;
  }
  return reference.overflowed() ? "a FIFO overflowed" : endings.size() < messages.size() ? "some never ended" : "";
}

}  // namespace

TEST_CASE("frames as flows end when the reference model says", "[sim]") {
  struct Case {
    const char* topology;
    Parameters parameters;
    std::uint32_t count, units;
    double rate;
  };
  const Case all[] = {{"mesh:4x4", {}, 600, 16, 0.02},
                      {"mesh:3x3", {}, 600, 40, 0.05},
                      {"mesh:3x3", {12, 5, 2, 1, 4}, 600, 12, 0.05},
                      {"torus:3x3", {6, 3, 2, 1, 4}, 600, 30, 0.01},
                      {"mesh:2x3", {4, 1, 0, 1, 0}, 600, 9, 0.03},
                      {"mesh:3x3", {16, 8, 7, 2, 0}, 600, 9, 0.05},
                      {"torus:4x4", {40, 20, 3, 9, 4}, 400, 60, 0.01},
                      {"mesh:3x2", {200, 100, 10, 40, 4}, 600, 8, 0.1},
                      {"mesh:3x2", {500, 300, 299, 64, 1}, 400, 3, 0.3},
                      {"mesh:3x2", {100, 30, 10, 33, 4}, 100, 300, 0.002},
                      {"single:5", {7, 4, 0, 1, 0}, 600, 3, 0.1},
                      {"mesh:3x3", {12, 5, 2, 1, 4, Arbitration::fixed}, 600, 12, 0.05},
                      {"single:5", {64, 48, 16, 1, 4, Arbitration::fixed}, 600, 16, 0.05},
                      {"tree:2", {}, 150, 500, 0.001},
                      {"hyperx:3x3x2", {}, 600, 16, 0.04},
                      {"fullmesh:70x2", {}, 300, 16, 0.01},
                      {"dragonfly:2x3x1", {20, 12, 3, 2, 2}, 600, 16, 0.04}};
  for (const Case& c : all)
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      INFO(c.topology << ", " << c.units << " units at " << c.rate << ", FIFOs of " << c.parameters.fifo_units
                      << ", links of " << c.parameters.link_cycles << " cycles, seed " << seed);
      const Topology t = ulfm::fabric::read_topology(c.topology).value();
      CHECK(difference(t, c.parameters, traffic(t, c.count, c.units, c.rate, seed)) == "");
    }
}
