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
class Order {
 public:
  static std::size_t bytes(std::uint32_t nodes, std::uint32_t frames) {
    return sizeof(Kept) + nodes * sizeof(Sender) + frames * sizeof(Flight);
  }
  Order(std::byte* memory, std::uint32_t nodes, std::uint32_t frames)
      : memory_(memory), nodes_(nodes), frames_(frames) {}

  /// The frame is on its way.
  void add(FrameId frame, std::uint32_t from, std::uint32_t to) const {
    Sender& sender = of(from);
    flight(frame) = {0, to + 1, from, 0, {}};
    if (sender.first == 0) sender.first = frame + 1;
    else flight(sender.last - 1).next = frame + 1;
    sender.last = frame + 1;
  }

  /// It has ended, which lets it and what it kept back be told.
  void ended(const Ending& ending) const {
    if (ending.frame >= frames_) return;
    Flight& mine = flight(ending.frame);
    mine.ending = ending, mine.done = 1;
    Sender& sender = of(mine.from);
    std::uint32_t before = 0, steps = 0;
    for (std::uint32_t i = sender.first; i != 0 && steps++ <= frames_;) {
      Flight& one = flight(i - 1);
      const std::uint32_t next = one.next;
      if (one.to == mine.to && one.done == 0) return;
      if (one.to != mine.to) {
        before = i, i = next;
        continue;
      }
      (before == 0 ? sender.first : flight(before - 1).next) = next;
      if (sender.last == i) sender.last = before;
      one.ending.cycle = std::max(one.ending.cycle, ending.cycle);  // so long it was kept back
      tell(i);
      i = next;
    }
  }

  bool empty() const { return kept().first == 0; }
  /// Takes what can be told.
  std::size_t take(std::span<Ending> endings) const {
    std::size_t count = 0;
    for (Kept& k = kept(); count < endings.size() && k.first != 0; ++count) {
      const Flight& one = flight(k.first - 1);
      endings[count] = one.ending;
      k.first = one.next;
    }
    return count;
  }

 private:
  // Numbers of frames are one more than the frame; 0 is none.
  struct Kept {
    std::uint32_t first, last;
  };
  struct Sender {
    std::uint32_t first, last;
  };
  struct Flight {
    std::uint32_t next, to, from, done;
    Ending ending;
  };

  void tell(std::uint32_t i) const {
    flight(i - 1).next = 0;
    Kept& k = kept();
    if (k.first == 0) k.first = i;
    else flight(k.last - 1).next = i;
    k.last = i;
  }
  Kept& kept() const { return *reinterpret_cast<Kept*>(memory_); }
  Sender& of(std::uint32_t node) const {
    return reinterpret_cast<Sender*>(memory_ + sizeof(Kept))[node < nodes_ ? node : 0];
  }
  Flight& flight(std::uint32_t frame) const {
    return reinterpret_cast<Flight*>(memory_ + sizeof(Kept) + nodes_ * sizeof(Sender))[frame < frames_ ? frame : 0];
  }

  std::byte* memory_;
  std::uint32_t nodes_, frames_;
};

}  // namespace ulfm::fabric::pointdesign
