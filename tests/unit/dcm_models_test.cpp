// The production model of Direct-Connect routers against the reference: random cubes, traffic, stalls and
// faults.
#include "dcm_pair.hpp"

using namespace test;
using namespace test::dcm;

namespace {

Parameters draw_parameters(Draw& draw) {
  Parameters p;
  p.hop_cycles = 1 + draw.below(kMostHopCycles);
  p.route_cycles = draw.below(20);
  p.dma_cycles = 1 + draw.below(5);
  p.go_at = 1 + draw.below(draw.one_in(2) ? 4 : 30);
  p.stop_at = p.go_at + 4 + draw.below(30);
  p.fifo_words = p.stop_at + headroom(p.hop_cycles) + draw.below(4);
  if (draw.one_in(3)) p.send_cycles = draw.below(100), p.receive_cycles = draw.below(100);
  return p;
}

std::uint32_t draw_size(Draw& draw) {
  switch (draw.below(4)) {
    case 0: return draw.below(5);
    case 1: return draw.below(600);
    default: return draw.below(100);
  }
}

/// A node, or now and then a device at a gateway.
std::uint32_t draw_end(Draw& draw, std::uint32_t routers) {
  const std::uint32_t end = draw.below(routers);
  return draw.one_in(6) ? routers + end : end;
}

/// One random step. `faults`: channels, nodes and routers may die and come back.
void act(Draw& draw, Pair& pair, bool faults) {
  const std::uint32_t routers = pair.routers();
  switch (draw.below(faults ? 11 : 9)) {
    case 0:
    case 1:
    case 2:
    case 3: {
      const std::uint32_t from = draw_end(draw, routers), to = draw_end(draw, routers), size = draw_size(draw);
      for (std::uint32_t n = 1 + draw.below(3); n != 0 && pair.has_frame(); --n)
        pair.inject(from, to, size, draw.one_in(2));
      break;
    }
    case 4:
    case 5:
      pair.advance_to(pair.now() + draw.below(draw.one_in(2) ? 12 : 400), 1 + draw.below(30), 1 + draw.below(3));
      break;
    case 6: pair.stall(draw_end(draw, routers), draw.below(draw.one_in(2) ? 30 : 800)); break;
    case 7:
      if (draw.one_in(3)) {
        pair.stall(draw_end(draw, routers), kNever);
      } else {
        for (std::uint32_t end = 0; end < 2 * routers; ++end) pair.stall(end, 0);
      }
      break;
    case 8:
      if (draw.one_in(2)) pair.move_elsewhere();
      break;
    case 9: pair.set_channel(draw.below(routers), draw.below(kWays), draw.one_in(2)); break;
    default: pair.set_router(draw.below(routers), draw.one_in(2));
  }
}

void run_both(Draw& draw, bool faults) {
  const std::uint32_t dimension = draw.below(5);
  const Parameters parameters = draw_parameters(draw);
  must(check(parameters).has_value(), "the parameters are refused");
  Pair pair(dimension, parameters);
  while (draw.more()) act(draw, pair, faults);
  for (std::uint32_t end = 0; end < 2 * pair.routers(); ++end) pair.stall(end, 0);
  pair.drain();
  pair.advance(20);
  must(pair.network.frames_inside() == 0, "a message is left inside");
}

}  // namespace

TEST_CASE("both models of Direct-Connect routers do the same in every cycle", "[dcm]") {
  property("traffic and stalls", [](Draw& draw) { run_both(draw, false); });
}

TEST_CASE("both models of Direct-Connect routers do the same when channels and routers die", "[dcm]") {
  property("traffic, stalls and faults", [](Draw& draw) { run_both(draw, true); });
}
