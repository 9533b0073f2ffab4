// A production model beside its reference, which goes on cycle by cycle: what one does the other must do. What the
// models have in common; each adds what can be done to it, and what else is compared.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "arena_memory.hpp"
#include "fabric/model.hpp"
#include "property.hpp"

namespace test {

/// By cycle, and frame by frame within one; those of one frame in the order in which they came.
inline void sort_endings(std::vector<ulfm::fabric::Ending>& endings) {
  using ulfm::fabric::Ending;
  std::stable_sort(endings.begin(), endings.end(), [](const Ending& a, const Ending& b) {
    return std::pair(a.cycle, a.frame) < std::pair(b.cycle, b.frame);
  });
}

/// `Self` has the member reference, and
///   net()                   the production model
///   step_reference(cycle)   the reference goes on to that cycle
///   compare()               counters and the like; both are at the same cycle
///   attach(memory, bytes)   net() is the one in that memory from now on
/// and, if the general ones do not fit,
///   on_ending(ending)       the network has handed it out
///   at_rest()               nothing moves in the reference
template <typename Self>
class ModelPair {
 public:
  using Ending = ulfm::fabric::Ending;
  using FrameId = ulfm::fabric::FrameId;

  bool has_frame() const { return !free_.empty(); }
  std::uint64_t now() const { return self().reference.now(); }
  const std::vector<Ending>& endings() const { return self().reference.endings(); }

  /// Both go on to that cycle and are compared. `budget` and `room` for endings of each call to run().
  void advance_to(std::uint64_t cycle, std::uint64_t budget = 1000, std::size_t room = 8) {
    while (self().net().now() < cycle) take_endings(budget, room, cycle);
    while (take_endings(budget, room, cycle) != 0) {
    }
    follow(cycle);
  }
  void advance(std::uint64_t cycles) { advance_to(now() + cycles); }

  /// The network goes on by itself for so many events, the reference follows.
  void run(std::uint64_t budget, std::size_t room = 64) {
    take_endings(budget, room);
    advance_to(self().net().now(), budget, room);
  }

  /// The network goes on by itself until nothing moves, the reference follows.
  void drain(std::uint64_t budget = 1000, std::size_t room = 8) {
    for (std::uint64_t events = 0; !self().net().idle(); events += budget) {
      take_endings(budget, room);
      must(events < 100'000'000, "the network does not come to rest");
    }
    follow(self().net().now());
    must(self().at_rest(), "the network is idle, and the reference is not");
  }

  /// The network goes on with a copy of its memory elsewhere.
  void move_elsewhere() {
    auto copy = std::make_unique<ArenaMemory>(memory_->size());
    std::memcpy(copy->get(), memory_->get(), memory_->size());
    std::memset(memory_->get(), 0xa5, memory_->size());
    self().attach(copy->get(), copy->size());
    memory_ = std::move(copy);
  }

 protected:
  void on_ending(const Ending&) {}
  bool at_rest() const { return self().reference.empty(); }

  ModelPair(std::size_t bytes, std::uint32_t frames) : memory_(std::make_unique<ArenaMemory>(bytes)) {
    for (FrameId frame = frames; frame-- > 0;) free_.push_back(frame);
  }
  std::byte* memory() const { return memory_->get(); }
  std::size_t memory_bytes() const { return memory_->size(); }
  /// The frame that is injected next, if both take it.
  FrameId next_frame() const { return free_.back(); }
  bool took(bool ours, bool theirs) {
    must(ours == theirs, "one takes a frame and the other does not");
    if (ours) free_.pop_back();
    return ours;
  }

 private:
  Self& self() { return static_cast<Self&>(*this); }
  const Self& self() const { return static_cast<const Self&>(*this); }

  std::size_t take_endings(std::uint64_t budget, std::size_t room, std::optional<std::uint64_t> until = {}) {
    std::vector<Ending> some(room);
    some.resize(until ? self().net().run(budget, some, *until) : self().net().run(budget, some));
    ended_.insert(ended_.end(), some.begin(), some.end());
    for (const Ending& ending : some) self().on_ending(ending);
    return some.size();
  }
  void follow(std::uint64_t cycle) {
    self().step_reference(cycle);
    must(self().net().now() == now(), fmt::format("it is cycle {} and not {}", self().net().now(), now()));
    self().compare();
    compare_endings();
  }
  static std::string text(const Ending& e) {
    return fmt::format("frame {} at {} in cycle {} ({})", e.frame, e.node, e.cycle, e.delivered ? "delivered" : "lost");
  }
  void compare_endings() {
    std::vector<Ending> theirs = endings(), ours = ended_;
    sort_endings(theirs);
    sort_endings(ours);
    for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i)
      must(ours[i] == theirs[i], "the end of " + text(ours[i]) + " and not of " + text(theirs[i]));
    must(theirs.size() == ours.size(),
         fmt::format("{} frames ended and not {} by cycle {}", ours.size(), theirs.size(), now()));
    for (; given_back_ < ended_.size(); ++given_back_) free_.push_back(ended_[given_back_].frame);
  }

  std::unique_ptr<ArenaMemory> memory_;
  std::vector<Ending> ended_;
  std::size_t given_back_ = 0;
  std::vector<FrameId> free_;
};

}  // namespace test
