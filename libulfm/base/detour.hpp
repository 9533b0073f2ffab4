// How a stream goes round its lane and comes back: the rules that keep its order. A frame that the receiver holds
// stops the lane; the sender then uses the open ring, announces its return there and marks it in the lane.
#pragma once

#include <sys/uio.h>
#include <atomic>
#include <cstdint>
#include <span>

#include "base/ring.hpp"

namespace ulfm {

/// The receiver's word that it has taken everything in the lane but holds a frame. Pairs with may_go_round().
inline void pin_lane(std::atomic<std::uint64_t>& pinned, const LaneConsumer& lane) noexcept {
  pinned.store(lane.pinned(), std::memory_order_release);
}

/// For a sender whose lane is full: the receiver has taken everything in it, so what goes by the open ring comes behind
/// that.
inline bool may_go_round(const std::atomic<std::uint64_t>& pinned, const LaneProducer& lane) noexcept {
  const auto taken = pinned.load(std::memory_order_acquire);
  return taken != 0 && taken == lane.position();
}

/// Back into the lane when it has room: announced by `announce` in the open ring, behind what went there, and marked in
/// the lane, where the receiver may look first. False: not yet.
template <typename Announce>
bool return_to_lane(LaneProducer& lane, std::uint32_t origin, Announce announce) {
  if (!lane.relieved() || !announce()) return false;
  Gather none;
  lane.push(kCellLane, origin, nullptr, 0, none, 0);  // relieved: there is room
  return true;
}

/// The receiver's side: whether the lane is to be read now.
class LaneTurns {
 public:
  bool is_read() const noexcept { return !away_ && !ahead_; }
  /// A frame of the sender came by the open ring: nothing more comes in the lane until it says so.
  void went_round() noexcept { away_ = true; }
  /// The mark in the lane: what is behind it was sent after what went by the open ring, and has to wait for that.
  void marked() noexcept {
    if (++marks_ > returns_) ahead_ = true;
  }
  /// The announcement in the open ring, behind everything that went there.
  void returned() noexcept {
    ++returns_;
    away_ = ahead_ = false;
  }

 private:
  bool away_ = false;                      // its sender uses the open ring for now
  bool ahead_ = false;                     // it has come back, but what it sent by the open ring is not taken yet
  std::uint32_t returns_ = 0, marks_ = 0;  // announced in the open ring; marked in the lane
};

}  // namespace ulfm
