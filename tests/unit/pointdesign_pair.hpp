// Both models of a point design, side by side: what one does the other must do, cycle for cycle.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <vector>

#include "fabric/pointdesign/network.hpp"
#include "fabric/pointdesign/reference.hpp"
#include "model_pair.hpp"

namespace test::pointdesign {

using namespace ulfm::fabric;
using namespace ulfm::fabric::pointdesign;

/// A network alone.
class Machine {
 public:
  explicit Machine(const Parameters& p) : memory_(Network::bytes(p)), network(make(memory_, p)) {}

 private:
  static Network make(const ArenaMemory& memory, const Parameters& p) {
    Network::create(memory.get(), p);
    return Network::attach(memory.get(), memory.size()).value();
  }
  ArenaMemory memory_;

 public:
  Network network;
};

class Pair : public ModelPair<Pair> {
 public:
  explicit Pair(const Parameters& parameters)
      : ModelPair(Network::bytes(parameters), parameters.frames), p(parameters), g(p.geometry()), reference(p) {
    Network::create(memory(), p);
    attach(memory(), memory_bytes());
  }

  Network& network() { return *network_; }

  bool inject(std::uint32_t from, std::uint32_t to, std::uint32_t bytes) {
    last = next_frame();
    return took(network_->inject(last, from, to, bytes), reference.inject(last, from, to, bytes));
  }
  bool multicast(std::uint32_t from, const std::vector<std::uint32_t>& to, std::uint32_t bytes) {
    last = next_frame();
    return took(network_->inject_multicast(last, from, to, bytes), reference.inject_multicast(last, from, to, bytes));
  }
  bool broadcast(std::uint32_t from, std::uint32_t bytes) {
    last = next_frame();
    return took(network_->inject_broadcast(last, from, bytes), reference.inject_broadcast(last, from, bytes));
  }
  void set_line(std::uint32_t card, std::uint32_t direction, bool up) {
    network_->set_line(card, direction, up), reference.set_line(card, direction, up);
  }
  void set_card(std::uint32_t card, bool up) { network_->set_card(card, up), reference.set_card(card, up); }
  void set_processor(std::uint32_t node, bool up) {
    network_->set_processor(node, up), reference.set_processor(node, up);
  }

  const Parameters p;
  const CardGeometry g;
  FrameId last = 0;  ///< of the message that was sent last
  Reference reference;

 private:
  friend class ModelPair<Pair>;
  Network& net() { return *network_; }
  void attach(std::byte* memory, std::size_t bytes) {
    network_ = std::make_unique<Network>(Network::attach(memory, bytes).value());
  }
  void step_reference(std::uint64_t cycle) {
    while (reference.now() < cycle) reference.step();
  }
  void compare() {
    const std::string at = fmt::format(" in cycle {}", now());
    must(network_->totals() == reference.totals(), "the totals are others" + at);
    for (std::uint32_t c = 0; c < g.cards; ++c)
      must(network_->card(c) == reference.card(c), fmt::format("card {} counts otherwise", c) + at);
    for (std::uint32_t n = 0; n < g.nodes(); ++n)
      for (std::uint32_t port = 0; port < g.ports(); ++port)
        must(network_->port(n, port) == reference.port(n, port),
             fmt::format("port {} of node {} counts otherwise", port, n) + at);
    for (std::uint32_t l = 0; l < g.lines(); ++l) {
      must(network_->line(l) == reference.line(l), fmt::format("line {} counts otherwise", l) + at);
      for (std::uint32_t q = 0; q <= p.processors; ++q)
        must(network_->queue(l, q) == reference.queue(l, q),
             fmt::format("queue {} of line {} counts otherwise", q, l) + at);
    }
  }

  std::unique_ptr<Network> network_;
};

}  // namespace test::pointdesign
