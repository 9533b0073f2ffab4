// Both models of a cube of Direct-Connect routers, side by side: what one does the other must do, cycle for
// cycle.
#pragma once

#include <fmt/format.h>

#include "fabric/dcm/network.hpp"
#include "fabric/dcm/reference.hpp"
#include "model_pair.hpp"

namespace test::dcm {

using namespace ulfm::fabric;
using namespace ulfm::fabric::dcm;

class Pair : public ModelPair<Pair> {
 public:
  static constexpr std::uint32_t kFrames = 64;

  Pair(std::uint32_t dimension, const Parameters& parameters)
      : ModelPair(Network::bytes(dimension, kFrames), kFrames),
        network(Network::create(memory(), dimension, parameters, kFrames).value()),
        reference(dimension, parameters),
        dimension_(dimension) {}

  std::uint32_t routers() const { return 1u << dimension_; }

  void inject(std::uint32_t from, std::uint32_t to, std::uint32_t bytes, bool begins) {
    const FrameId frame = next_frame();
    took(network.inject(frame, from, to, bytes, begins), reference.inject(frame, from, to, bytes, begins));
  }
  void stall(std::uint32_t end, std::uint64_t cycles) {
    network.stall(end, cycles);
    reference.stall(end, cycles);
  }
  void set_channel(std::uint32_t router, std::uint32_t way, bool up) {
    network.set_channel(router, way, up);
    reference.set_channel(router, way, up);
  }
  void set_router(std::uint32_t router, bool alive) {
    network.set_router(router, alive);
    reference.set_router(router, alive);
  }

  Network network;
  Reference reference;

 private:
  friend class ModelPair<Pair>;
  Network& net() { return network; }
  void attach(std::byte* memory, std::size_t bytes) { network = Network::attach(memory, bytes).value(); }
  void step_reference(std::uint64_t cycle) {
    must(!network.damaged(), "the network finds its memory damaged");
    while (reference.now() < cycle) reference.step();
    must(reference.wrong().empty(), reference.wrong());
  }
  void compare() {
    for (std::uint32_t r = 0; r < routers(); ++r)
      for (std::uint32_t way = 0; way < kWays; ++way) {
        const CircuitCounters ours = network.counters(r, way), theirs = reference.counters(r, way);
        must(ours == theirs, fmt::format("router {} way {} in cycle {} counts\n  {}\nand not\n  {}", r, way,
                                         reference.now(), text(ours), text(theirs)));
      }
    const WordBalance ours = network.balance(), theirs = reference.balance();
    const auto sum = [](const WordBalance& b) {
      return fmt::format("{} in, {} + {} + {} out, {} there", b.entered, b.left, b.stripped, b.lost, b.present);
    };
    must(ours.holds(), "words do not balance: " + sum(ours));
    must(theirs.holds(), "words of the reference do not balance: " + sum(theirs));
    must(ours == theirs,
         fmt::format("in cycle {} the totals are {} and not {}", reference.now(), sum(ours), sum(theirs)));
  }
  static std::string text(const CircuitCounters& c) {
    return fmt::format("messages {} held {} blocked {}/{} probes {} short {} words {} throttles {} lost {}", c.messages,
                       c.held_cycles, c.blocked, c.blocked_cycles, c.probes, c.short_probes, c.words, c.throttles,
                       c.lost);
  }

  std::uint32_t dimension_;
};

}  // namespace test::dcm
