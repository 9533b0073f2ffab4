// Both models of an X-Switch network, side by side: what one does the other must do, unit for unit and cycle
// for cycle.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "fabric/xswitch/network.hpp"
#include "fabric/xswitch/reference.hpp"
#include "model_pair.hpp"

namespace test::xswitch {

using namespace ulfm::fabric;
using namespace ulfm::fabric::xswitch;

/// A topology from a list of links; nodes are attached to the next free port of their switch.
class Builder {
 public:
  Builder(std::uint32_t ports, std::uint32_t switches) {
    shape_.name = "test";
    shape_.ports = ports;
    shape_.switches = switches;
    shape_.ends.resize(std::size_t{ports} * switches);
  }
  bool has_room(std::uint32_t at) const { return free_port(at) < shape_.ports; }
  void node(std::uint32_t at) {
    const SwitchPort here{at, free_port(at)};
    end(here) = {LinkEnd::Kind::node, shape_.nodes(), 0};
    shape_.attachment.push_back(here);
  }
  void link(std::uint32_t a, std::uint32_t b) {
    const SwitchPort at_a{a, free_port(a)};
    end(at_a) = {LinkEnd::Kind::switch_port, b, 0};
    const SwitchPort at_b{b, free_port(b)};
    end(at_b) = {LinkEnd::Kind::switch_port, a, at_a.port};
    end(at_a).port = at_b.port;
  }
  const Topology& shape() const { return shape_; }

 private:
  LinkEnd& end(SwitchPort p) { return shape_.ends[std::size_t{p.at} * shape_.ports + p.port]; }
  std::uint32_t free_port(std::uint32_t at) const {
    std::uint32_t port = 0;
    while (port < shape_.ports && shape_.end({at, port}).kind != LinkEnd::Kind::nothing) ++port;
    return port;
  }
  Topology shape_;
};

/// A shortest way that never goes up (to a switch with a lower number) after it went down: such ways cannot
/// deadlock. Empty when there is none. `pick` chooses among ways of the same length.
inline Route up_down_route(const Topology& shape, std::uint32_t from, std::uint32_t to, std::uint32_t pick = 0) {
  struct Way {
    std::uint32_t at;
    bool down;
    Route route;
  };
  std::vector<Way> ways{{shape.attachment[from].at, false, {}}};
  for (std::uint32_t hop = 0; hop <= shape.switches && !ways.empty(); ++hop) {
    std::vector<Way> next;
    std::vector<Route> found;
    for (const Way& way : ways)
      for (std::uint32_t port = 0; port < shape.ports; ++port) {
        const LinkEnd& end = shape.end({way.at, port});
        Route route = way.route;
        route.push_back(static_cast<std::uint8_t>(port));
        if (end.kind == LinkEnd::Kind::node && end.index == to) found.push_back(route);
        if (end.kind != LinkEnd::Kind::switch_port || (way.down && end.index < way.at)) continue;
        if (next.size() < 200) next.push_back({end.index, way.down || end.index > way.at, route});
      }
    if (!found.empty()) return found[pick % found.size()];
    ways = std::move(next);
  }
  return {};
}

/// Writes runs out, unit by unit.
class Expander : public Tracer {
 public:
  std::map<FrameId, std::vector<Unit>> frames;  ///< what each frame's sender sent
  std::vector<std::vector<Unit>> channels;      ///< by channel and cycle
  std::string wrong;

  void run(std::uint32_t channel, std::uint64_t cycle, std::uint32_t units, FrameId frame, std::uint32_t first,
           bool bad_end) override {
    const std::vector<Unit>& all = frames[frame];
    for (std::uint32_t i = 0; i < units; ++i) {
      const bool last = bad_end && i + 1 == units;
      if (!last && first + i >= all.size()) return complain(channel, cycle, "a unit behind the frame's end");
      put(channel, cycle + i, last ? kBadEnd : all[first + i]);
    }
  }
  void command(std::uint32_t channel, std::uint64_t cycle, Unit unit) override { put(channel, cycle, unit); }
  void begin_at(std::uint64_t cycle, std::size_t channel_count) {
    first_ = cycle;
    channels.assign(channel_count, {});
  }
  Unit at(std::size_t channel, std::uint64_t cycle) const {
    const auto& units = channels[channel];
    return cycle - first_ < units.size() ? units[cycle - first_] : kIdle;
  }

 private:
  void put(std::uint32_t channel, std::uint64_t cycle, Unit unit) {
    if (channel >= channels.size() || cycle < first_) return complain(channel, cycle, "out of place");
    auto& units = channels[channel];
    if (units.size() <= cycle - first_) units.resize(cycle - first_ + 1, kIdle);
    if (units[cycle - first_] != kIdle) complain(channel, cycle, "two units in one cycle");
    units[cycle - first_] = unit;
  }
  void complain(std::uint32_t channel, std::uint64_t cycle, const char* what) {
    if (wrong.empty()) wrong = fmt::format("channel {} cycle {}: {}", channel, cycle, what);
  }
  std::uint64_t first_ = 0;
};

class Pair : public ModelPair<Pair> {
 public:
  static constexpr std::uint32_t kFrames = 48;

  Pair(const Topology& shape, const Parameters& parameters)
      : ModelPair(Network::bytes(shape, parameters, kFrames), kFrames),
        network(Network::create(memory(), shape, parameters, kFrames).value()),
        reference(shape, parameters),
        shape_(shape),
        parameters_(parameters) {
    expander_.begin_at(1, channels());
    network.trace(&expander_);
  }

  std::size_t channels() const { return shape_.ends.size() + shape_.nodes(); }
  /// What a channel carried; cycle by cycle since the last check.
  const std::vector<std::vector<Unit>>& sent() const { return sent_; }

  FrameId inject(std::uint32_t node, const Route& route, std::uint32_t data_units) {
    const FrameId frame = next_frame();
    must(network.inject(frame, node, route, data_units), "a frame is refused");
    reference.inject(frame, node, route, data_units);
    took(true, true);
    expander_.frames[frame] = units_of(frame, route, data_units, parameters_.check_units);
    return frame;
  }
  void stall(std::uint32_t node, std::uint64_t cycles) {
    network.stall(node, cycles);
    reference.stall(node, cycles);
  }
  void set_link(SwitchPort at, bool up) {
    network.set_link(at, up);
    reference.set_link(at, up);
  }
  void set_switch(std::uint32_t at, bool alive) {
    network.set_switch(at, alive);
    reference.set_switch(at, alive);
  }

  Network network;
  Reference reference;

 private:
  friend class ModelPair<Pair>;
  Network& net() { return network; }
  void attach(std::byte* memory, std::size_t bytes) {
    network = Network::attach(memory, bytes).value();
    network.trace(&expander_);
  }
  void step_reference(std::uint64_t cycle) {
    sent_.clear();
    while (reference.now() < cycle) {
      reference.step();
      sent_.push_back(reference.sent());
    }
    must(!reference.overflowed(), "a FIFO overflowed");
  }
  std::string name(std::size_t channel) const {
    if (channel >= shape_.ends.size()) return fmt::format("node {}", channel - shape_.ends.size());
    return fmt::format("switch {} port {}", channel / shape_.ports, static_cast<char>('A' + channel % shape_.ports));
  }

  void compare() {
    network.settle();
    must(expander_.wrong.empty(), "the trace is wrong: " + expander_.wrong);
    const std::uint64_t first = reference.now() - sent_.size();
    for (std::size_t i = 0; i < sent_.size(); ++i)
      for (std::size_t channel = 0; channel < channels(); ++channel)
        must(expander_.at(channel, first + i) == sent_[i][channel],
             fmt::format("{} sends {:#x} in cycle {} and not {:#x}", name(channel), expander_.at(channel, first + i),
                         first + i, sent_[i][channel]));
    compare_counters();
    expander_.begin_at(reference.now(), channels());
  }
  void compare_counters() {
    for (std::uint32_t i = 0; i < shape_.ends.size(); ++i) {
      const SwitchPort at{i / shape_.ports, i % shape_.ports};
      same(name(i), network.counters(at), reference.counters(at));
    }
    for (std::uint32_t i = 0; i < shape_.nodes(); ++i)
      same(name(shape_.ends.size() + i), network.node_counters(i), reference.node_counters(i));
    const Balance ours = network.balance(), theirs = reference.balance();
    must(ours.holds(), fmt::format("units do not balance: {} + {} in, {} + {} + {} out, {} there", ours.entered,
                                   ours.inserted, ours.left, ours.stripped, ours.lost, ours.present));
    must(ours == theirs, "the totals differ");
  }
  static std::string text(const SwitchPortCounters& c) {
    return fmt::format("frames {} data {} routing {} stops {} gos {} wait {} lost {}/{} | arb {} bad {} lost {} occ {}",
                       c.out.frames, c.out.data_units, c.out.routing_units, c.out.stops, c.out.gos, c.out.wait_cycles,
                       c.out.lost_frames, c.out.lost_units, c.in.arbitration_cycles, c.in.bad_ends, c.in.lost_units,
                       fmt::join(c.in.occupancy, ","));
  }
  void same(const std::string& who, const SwitchPortCounters& ours, const SwitchPortCounters& theirs) const {
    must(ours == theirs,
         fmt::format("{} in cycle {} counts\n  {}\nand not\n  {}", who, reference.now(), text(ours), text(theirs)));
  }

  Topology shape_;
  Parameters parameters_;
  Expander expander_;
  std::vector<std::vector<Unit>> sent_;  // by cycle and channel
};

}  // namespace test::xswitch
