// Frames of one processor for another, in the order in which they were sent.
//
// Messages of the point design overtake: a short one arrives while the data of the one before it are fetched, and one
// that went round a dead line or was turned away is late. A transport's frames must not (transport/contract.hpp). Ours:
// a card gives a processor the messages of one sender in their order, and keeps what came too early.
#pragma once

#include <algorithm>
#include <cstddef>

#include "fabric/model.hpp"
#include "fabric/pointdesign/geometry.hpp"

namespace ulfm::fabric::pointdesign {

/// Over zeroed memory. Any process may have written anything into it: every index is checked.
///
/// A *flight* is a frame on its way to one processor: of a unicast the one with the frame's own number, of a frame for
/// several one from a pool for each receiver.
class Order {
 public:
  static std::size_t bytes(std::uint32_t nodes, std::uint32_t frames, std::uint32_t pool) {
    return sizeof(Lists) + nodes * sizeof(Sender) + (frames + pool) * sizeof(Flight);
  }
  Order(std::byte* memory, std::uint32_t nodes, std::uint32_t frames, std::uint32_t pool)
      : memory_(memory), nodes_(nodes), frames_(frames), pool_(pool) {}

  /// The frame is on its way.
  void add(FrameId frame, std::uint32_t from, std::uint32_t to) const { append(frame + 1, frame, from, to, kOne); }

  /// It is on its way to several. False, with nothing taken, when there are too many on their way.
  bool add_many(FrameId frame, std::uint32_t from, std::span<const std::uint32_t> to) const {
    Lists& l = lists();
    if (frame >= frames_ || to.size() > pool_ - l.in_pool) return false;
    flight(frame) = {0, 0, from, frame, kMany, 0, {}};
    for (const std::uint32_t node : to) append(take_from_pool(), frame, from, node, kPooled);
    return true;
  }

  /// The network has not taken it after all. It is the sender's last.
  void undo_many(FrameId frame) const {
    Sender& sender = of(flight(frame).from);
    std::uint32_t before = 0, steps = 0;
    for (std::uint32_t i = sender.first; i != 0 && steps++ <= all();) {
      const std::uint32_t next = flight(i - 1).next;
      if (flight(i - 1).frame == frame) unlink(sender, before, i), give_to_pool(i);
      else before = i;
      i = next;
    }
  }

  /// It has ended, which lets it and what it kept back be told. A frame for several ends for each receiver, and then,
  /// with its sender as the node, for those that it has not ended for: they do not get it.
  void ended(const Ending& ending) const {
    if (ending.frame >= frames_) return;
    const Flight& whole = flight(ending.frame);
    if (whole.kind != kMany) return settle(ending.frame + 1, ending);
    if (ending.node != whole.from) {
      if (const std::uint32_t i = find(ending, ending.node); i != 0) settle(i, ending);
      return;
    }
    for (std::uint32_t i = find(ending, kNone); i != 0; i = find(ending, kNone))
      settle(i, {ending.frame, flight(i - 1).to - 1, ending.cycle, false});
  }

  /// It does not get to that receiver.
  void lost(FrameId frame, std::uint32_t node, std::uint64_t cycle) const { ended({frame, node, cycle, false}); }

  bool empty() const { return lists().first == 0; }
  /// Takes what can be reported.
  std::size_t take(std::span<Ending> endings) const {
    std::size_t count = 0;
    for (Lists& l = lists(); count < endings.size() && l.first != 0; ++count) {
      const std::uint32_t i = l.first;
      endings[count] = flight(i - 1).ending;
      l.first = flight(i - 1).next;
      if (flight(i - 1).kind == kPooled) give_to_pool(i);
    }
    return count;
  }

 private:
  // Numbers of flights are one more than their place; 0 is none.
  enum Kind : std::uint32_t { kOne, kMany, kPooled };
  /// Flights, which have words of 64 bits, follow it.
  struct alignas(std::uint64_t) Lists {
    std::uint32_t first, last;    ///< to be reported
    std::uint32_t free, in_pool;  ///< of the pool: given back; in use
    std::uint32_t used;           ///< of the pool, ever
  };
  struct Sender {
    std::uint32_t first, last;
  };
  struct Flight {
    std::uint32_t next, to, from, frame, kind, done;
    Ending ending;
  };

  std::uint32_t all() const { return frames_ + pool_; }
  void append(std::uint32_t i, FrameId frame, std::uint32_t from, std::uint32_t to, Kind kind) const {
    Sender& sender = of(from);
    flight(i - 1) = {0, to + 1, from, frame, kind, 0, {}};
    if (sender.first == 0) sender.first = i;
    else flight(sender.last - 1).next = i;
    sender.last = i;
  }
  void unlink(Sender& sender, std::uint32_t before, std::uint32_t i) const {
    (before == 0 ? sender.first : flight(before - 1).next) = flight(i - 1).next;
    if (sender.last == i) sender.last = before;
  }
  /// The flight of a frame for several to that processor, or, with kNone, the first that has not ended.
  std::uint32_t find(const Ending& ending, std::uint32_t node) const {
    std::uint32_t steps = 0;
    for (std::uint32_t i = of(flight(ending.frame).from).first; i != 0 && steps++ <= all(); i = flight(i - 1).next) {
      const Flight& one = flight(i - 1);
      if (one.frame == ending.frame && one.done == 0 && (node == kNone || one.to == node + 1)) return i;
    }
    return 0;
  }
  void settle(std::uint32_t ended, const Ending& ending) const {
    Flight& mine = flight(ended - 1);
    mine.ending = ending, mine.done = 1;
    const std::uint32_t to = mine.to;
    Sender& sender = of(mine.from);
    std::uint32_t before = 0, steps = 0;
    for (std::uint32_t i = sender.first; i != 0 && steps++ <= all();) {
      Flight& one = flight(i - 1);
      const std::uint32_t next = one.next;
      if (one.to == to && one.done == 0) return;
      if (one.to != to) {
        before = i, i = next;
        continue;
      }
      unlink(sender, before, i);
      one.ending.cycle = std::max(one.ending.cycle, ending.cycle);  // so long it was kept back
      hand_over(i);
      i = next;
    }
  }
  void hand_over(std::uint32_t i) const {
    flight(i - 1).next = 0;
    Lists& l = lists();
    if (l.first == 0) l.first = i;
    else flight(l.last - 1).next = i;
    l.last = i;
  }
  std::uint32_t take_from_pool() const {
    Lists& l = lists();
    ++l.in_pool;
    if (l.free == 0) return frames_ + ++l.used;
    const std::uint32_t i = l.free;
    l.free = flight(i - 1).next;
    return i;
  }
  void give_to_pool(std::uint32_t i) const {
    Lists& l = lists();
    --l.in_pool;
    flight(i - 1).next = l.free;
    l.free = i;
  }

  Lists& lists() const { return *reinterpret_cast<Lists*>(memory_); }
  Sender& of(std::uint32_t node) const {
    return reinterpret_cast<Sender*>(memory_ + sizeof(Lists))[node < nodes_ ? node : 0];
  }
  Flight& flight(std::uint32_t place) const {
    return reinterpret_cast<Flight*>(memory_ + sizeof(Lists) + nodes_ * sizeof(Sender))[place < all() ? place : 0];
  }

  std::byte* memory_;
  std::uint32_t nodes_, frames_, pool_;
};

}  // namespace ulfm::fabric::pointdesign
