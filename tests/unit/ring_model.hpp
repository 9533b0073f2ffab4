// Random push, next and release against a queue of what must come out. Works for both rings.
#pragma once

#include <deque>

#include "property.hpp"
#include "rings.hpp"

namespace test {

struct Expected {
  std::size_t header, length;
  std::uint32_t seed;
  Frame frame;
};

/// `draw_length(draw, header)` gives data lengths the ring must be able to carry when it is empty. In order,
/// releases happen oldest first; otherwise in any order.
template <typename Ring, typename DrawLength>
void run_against_model(Ring& ring, Draw& draw, DrawLength draw_length, bool in_order) {
  std::deque<Expected> sent, held;
  std::uint32_t seed = 1;
  const auto take = [&] {
    Frame frame;
    const Peek peek = ring.consumer.next(frame);
    must(peek != Peek::broken, "an honest frame is called broken");
    must((peek == Peek::frame) == !sent.empty(), "a frame is missing, or one too many");
    if (peek != Peek::frame) return;
    Expected e = sent.front();
    sent.pop_front();
    must(intact(frame, e.header, e.length, e.seed), "a frame came out wrong");
    e.frame = frame;
    held.push_back(e);
  };
  const auto release = [&](std::size_t i) {
    const Expected e = held[i];
    must(intact(e.frame, e.header, e.length, e.seed), "a held frame was overwritten");
    ring.consumer.release(e.frame);
    held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
  };
  while (draw.more()) {
    switch (draw.below(4)) {
      case 0:
      case 1: {
        const std::size_t header = draw.one_in(3) ? draw.below(256) : draw.below(49);
        const std::size_t length = draw_length(draw, header);
        const bool pushed = ring.push(header, length, seed);
        if (pushed) sent.push_back({header, length, seed, {}});
        ++seed;
        must(sent.size() + held.size() <= ring.memory.count, "more frames than cells");
        break;
      }
      case 2: take(); break;
      default:
        if (!held.empty()) release(in_order ? 0 : draw.below(static_cast<std::uint32_t>(held.size())));
    }
  }
  while (!sent.empty()) take();
  while (!held.empty()) release(held.size() / 2);
  take();  // looks, finds nothing
  if constexpr (requires { ring.consumer.publish(); }) ring.consumer.publish();
  const std::size_t length = draw_length(draw, 8);
  must(ring.push(8, length, seed), "an empty ring is full");
  sent.push_back({8, length, seed, {}});
  take();
}

}  // namespace test
