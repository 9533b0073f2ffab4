// Both models of a point design, side by side: what one does the other must do, cycle for cycle.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "arena_memory.hpp"
#include "fabric/pointdesign/network.hpp"
#include "fabric/pointdesign/reference.hpp"
#include "property.hpp"

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

class Pair {
 public:
  explicit Pair(const Parameters& parameters)
      : p(parameters), g(p.geometry()), memory_(std::make_unique<ArenaMemory>(Network::bytes(p))), reference(p) {
    Network::create(memory_->get(), p);
    network_ = std::make_unique<Network>(Network::attach(memory_->get(), memory_->size()).value());
    for (FrameId f = p.frames; f-- > 0;) free_.push_back(f);
  }

  Network& network() { return *network_; }
  bool has_frame() const { return !free_.empty(); }
  std::uint64_t now() const { return reference.now(); }

  bool inject(std::uint32_t from, std::uint32_t to, std::uint32_t bytes) {
    const FrameId frame = free_.back();
    return took(network_->inject(frame, from, to, bytes), reference.inject(frame, from, to, bytes));
  }
  bool multicast(std::uint32_t from, const std::vector<std::uint32_t>& to, std::uint32_t bytes) {
    const FrameId frame = free_.back();
    return took(network_->inject_multicast(frame, from, to, bytes), reference.inject_multicast(frame, from, to, bytes));
  }
  bool broadcast(std::uint32_t from, std::uint32_t bytes) {
    const FrameId frame = free_.back();
    return took(network_->inject_broadcast(frame, from, bytes), reference.inject_broadcast(frame, from, bytes));
  }
  void set_line(std::uint32_t card, std::uint32_t direction, bool up) {
    network_->set_line(card, direction, up), reference.set_line(card, direction, up);
  }
  void set_card(std::uint32_t card, bool up) { network_->set_card(card, up), reference.set_card(card, up); }
  void set_processor(std::uint32_t node, bool up) {
    network_->set_processor(node, up), reference.set_processor(node, up);
  }

  /// Both go on to that cycle and are compared.
  void advance_to(std::uint64_t cycle, std::uint64_t budget = 1000, std::size_t room = 8) {
    while (network_->now() < cycle) take_endings(budget, room, cycle);
    while (take_endings(budget, room, cycle) != 0) {
    }
    step_reference(cycle);
  }
  void advance(std::uint64_t cycles) { advance_to(now() + cycles); }
  /// The network goes on by itself until nothing moves, the reference follows.
  void drain(std::uint64_t budget = 1000, std::size_t room = 8) {
    while (!network_->idle()) {
      take_endings(budget, room, kNever);
      must(network_->now() < now() + 100000, "the network does not come to rest");
    }
    step_reference(network_->now());
    must(reference.empty(), "the network is idle with messages inside");
  }
  /// The network goes on with a copy of its memory elsewhere.
  void move_elsewhere() {
    auto copy = std::make_unique<ArenaMemory>(memory_->size());
    std::memcpy(copy->get(), memory_->get(), memory_->size());
    std::memset(memory_->get(), 0xa5, memory_->size());
    network_ = std::make_unique<Network>(Network::attach(copy->get(), copy->size()).value());
    memory_ = std::move(copy);
  }

  const Parameters p;
  const Geometry g;
  FrameId last = 0;  ///< of the message that was sent last

 private:
  std::unique_ptr<ArenaMemory> memory_;
  std::unique_ptr<Network> network_;
  std::vector<Ending> ended_;
  std::size_t given_back_ = 0;
  std::vector<FrameId> free_;

 public:
  Reference reference;

 private:
  bool took(bool ours, bool theirs) {
    must(ours == theirs, "one takes a message and the other does not");
    last = free_.back();
    if (ours) free_.pop_back();
    return ours;
  }
  std::size_t take_endings(std::uint64_t budget, std::size_t room, std::uint64_t until) {
    std::vector<Ending> some(room);
    const std::size_t n = network_->run(budget, some, until);
    ended_.insert(ended_.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(n));
    return n;
  }
  void step_reference(std::uint64_t cycle) {
    while (reference.now() < cycle) reference.step();
    must(network_->now() == reference.now(), fmt::format("it is cycle {} and not {}", network_->now(), now()));
    compare_counters();
    compare_endings();
  }
  static void sort(std::vector<Ending>& endings) {
    std::stable_sort(endings.begin(), endings.end(), [](const Ending& a, const Ending& b) {
      return std::pair(a.cycle, a.frame) < std::pair(b.cycle, b.frame);
    });
  }
  void compare_endings() {
    std::vector<Ending> theirs = reference.endings(), ours = ended_;
    sort(ours), sort(theirs);
    for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i)
      must(ours[i] == theirs[i],
           fmt::format("frame {} ended at {} in cycle {} ({}), and not frame {} at {} in cycle {} ({})", ours[i].frame,
                       ours[i].node, ours[i].cycle, ours[i].delivered, theirs[i].frame, theirs[i].node, theirs[i].cycle,
                       theirs[i].delivered));
    must(theirs.size() == ours.size(), fmt::format("{} frames ended and not {}", ours.size(), theirs.size()));
    for (; given_back_ < ended_.size(); ++given_back_) free_.push_back(ended_[given_back_].frame);
  }
  void compare_counters() {
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
};

}  // namespace test::pointdesign
