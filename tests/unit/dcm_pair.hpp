// Both models of a cube of Direct-Connect routers, side by side: what one does the other must do, cycle for
// cycle.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "arena_memory.hpp"
#include "fabric/dcm/network.hpp"
#include "fabric/dcm/reference.hpp"
#include "property.hpp"

namespace test::dcm {

using namespace ulfm::fabric;
using namespace ulfm::fabric::dcm;

/// By cycle, and frame by frame within one.
inline void sort_endings(std::vector<Ending>& endings) {
  std::sort(endings.begin(), endings.end(),
            [](const Ending& a, const Ending& b) { return std::pair(a.cycle, a.frame) < std::pair(b.cycle, b.frame); });
}

class Pair {
 public:
  static constexpr std::uint32_t kFrames = 64;

  Pair(std::uint32_t dimension, const Parameters& parameters)
      : dimension_(dimension),
        memory_(std::make_unique<ArenaMemory>(Network::bytes(dimension, kFrames))),
        network(Network::create(memory_->get(), dimension, parameters, kFrames).value()),
        reference(dimension, parameters) {
    for (FrameId f = kFrames; f-- > 0;) free_.push_back(f);
  }

  std::uint32_t routers() const { return 1u << dimension_; }
  bool has_frame() const { return !free_.empty(); }
  std::uint64_t now() const { return reference.now(); }
  const std::vector<Ending>& endings() const { return reference.endings(); }

  void inject(std::uint32_t from, std::uint32_t to, std::uint32_t bytes, bool begins) {
    const FrameId frame = free_.back();
    const bool taken = network.inject(frame, from, to, bytes, begins);
    must(taken == reference.inject(frame, from, to, bytes, begins), "one takes a message and the other does not");
    if (taken) free_.pop_back();
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

  /// Both go on to that cycle and are compared.
  void advance_to(std::uint64_t cycle, std::uint64_t budget = 1000, std::size_t room = 8) {
    while (network.now() < cycle) take_endings(budget, room, cycle);
    while (take_endings(budget, room, cycle) != 0) {
    }
    step_reference(cycle);
  }
  void advance(std::uint64_t cycles) { advance_to(now() + cycles); }

  /// The network goes on by itself until nothing moves, the reference follows.
  void drain(std::uint64_t budget = 1000, std::size_t room = 8) {
    while (!network.idle()) take_endings(budget, room, kNever);
    step_reference(network.now());
    must(reference.empty(), "the network is idle with messages inside");
  }

  /// The network goes on with a copy of its memory elsewhere.
  void move_elsewhere() {
    auto copy = std::make_unique<ArenaMemory>(memory_->size());
    std::memcpy(copy->get(), memory_->get(), memory_->size());
    std::memset(memory_->get(), 0xa5, memory_->size());
    memory_ = std::move(copy);
    network = Network::attach(memory_->get(), memory_->size()).value();
  }

 private:
  std::uint32_t dimension_;
  std::unique_ptr<ArenaMemory> memory_;
  std::vector<Ending> ended_;
  std::size_t given_back_ = 0;
  std::vector<FrameId> free_;

 public:
  Network network;
  Reference reference;

 private:
  std::size_t take_endings(std::uint64_t budget, std::size_t room, std::uint64_t until) {
    std::vector<Ending> some(room);
    const std::size_t n = network.run(budget, some, until);
    must(!network.damaged(), "the network finds its memory damaged");
    ended_.insert(ended_.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(n));
    return n;
  }
  void step_reference(std::uint64_t cycle) {
    while (reference.now() < cycle) reference.step();
    must(reference.wrong().empty(), reference.wrong());
    must(network.now() == reference.now(), fmt::format("it is cycle {} and not {}", network.now(), reference.now()));
    compare_endings();
    compare_counters();
  }
  void compare_endings() {
    std::vector<Ending> theirs = reference.endings(), ours = ended_;
    sort_endings(ours);
    sort_endings(theirs);
    for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i)
      must(ours[i] == theirs[i],
           fmt::format("frame {} ended at {} in cycle {} ({}), and not frame {} at {} in cycle {} ({})", ours[i].frame,
                       ours[i].node, ours[i].cycle, ours[i].delivered, theirs[i].frame, theirs[i].node, theirs[i].cycle,
                       theirs[i].delivered));
    must(theirs.size() == ours.size(),
         fmt::format("{} frames ended and not {} by cycle {}", ours.size(), theirs.size(), reference.now()));
    for (; given_back_ < ended_.size(); ++given_back_) free_.push_back(ended_[given_back_].frame);
  }
  void compare_counters() {
    for (std::uint32_t r = 0; r < routers(); ++r)
      for (std::uint32_t way = 0; way < kWays; ++way) {
        const ChannelCounters ours = network.counters(r, way), theirs = reference.counters(r, way);
        must(ours == theirs, fmt::format("router {} way {} in cycle {} counts\n  {}\nand not\n  {}", r, way,
                                         reference.now(), text(ours), text(theirs)));
      }
    const Balance ours = network.balance(), theirs = reference.balance();
    const auto sum = [](const Balance& b) {
      return fmt::format("{} in, {} + {} + {} out, {} there", b.entered, b.left, b.stripped, b.lost, b.present);
    };
    must(ours.holds(), "words do not balance: " + sum(ours));
    must(theirs.holds(), "words of the reference do not balance: " + sum(theirs));
    must(ours == theirs,
         fmt::format("in cycle {} the totals are {} and not {}", reference.now(), sum(ours), sum(theirs)));
  }
  static std::string text(const ChannelCounters& c) {
    return fmt::format("messages {} held {} blocked {}/{} probes {} short {} words {} throttles {} lost {}", c.messages,
                       c.held_cycles, c.blocked, c.blocked_cycles, c.probes, c.short_probes, c.words, c.throttles,
                       c.lost);
  }
};

}  // namespace test::dcm
