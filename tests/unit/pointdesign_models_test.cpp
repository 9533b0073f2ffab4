// The production model of a point design against the reference: random machines, traffic, settings and faults.
#include "pointdesign_pair.hpp"

using namespace test;
using namespace test::pointdesign;

namespace {

Parameters draw_parameters(Draw& draw) {
  Parameters p;
  p.dimensions = 1 + draw.below(3);
  p.radix = p.dimensions == 1 ? 2 + draw.below(18) : 2 + draw.below(p.dimensions == 2 ? 4 : 2);
  p.processors = 1 + draw.below(4);
  p.frames = 48;
  p.copies = 48 + draw.below(400);
  p.switching = draw.one_in(2) ? Switching::store : Switching::wormhole;
  p.policy = static_cast<Policy>(draw.below(4));
  p.flits = 1 + draw.below(draw.one_in(2) ? 2 : kMostFlits);
  p.buffer = draw.below(3);
  p.timeout = 1 + draw.below(draw.one_in(2) ? 8 : 100);
  if (draw.one_in(3)) p.queues = 1 + draw.below(p.dimensions * p.radix), p.speed = draw.below(3);
  p.dma = 1 + draw.below(4);
  return p;
}

std::vector<std::uint32_t> draw_set(Draw& draw, const CardGeometry& g) {
  std::vector<std::uint32_t> to;
  const std::uint32_t chance = 1 + draw.below(4);
  for (std::uint32_t node = 0; node < g.nodes(); ++node)
    if (draw.one_in(chance)) to.push_back(node);
  return to;
}

void send_something(Draw& draw, Pair& pair) {
  const std::uint32_t from = draw.below(pair.g.nodes()), bytes = draw.one_in(2) ? draw.below(9) : draw.below(300);
  for (std::uint32_t n = 1 + draw.below(3); n != 0 && pair.has_frame(); --n) switch (draw.below(6)) {
      case 0: pair.broadcast(from, bytes); break;
      case 1: pair.multicast(from, draw_set(draw, pair.g), bytes); break;
      default: pair.inject(from, draw.below(pair.g.nodes()), bytes);
    }
}

/// One random step. `faults`: lines, cards and processors may die and come back.
void act(Draw& draw, Pair& pair, bool faults) {
  switch (draw.below(faults ? 12 : 8)) {
    case 6:
      pair.advance_to(pair.now() + draw.below(draw.one_in(2) ? 4 : 60), 1 + draw.below(30), 1 + draw.below(3));
      break;
    case 7:
      if (draw.one_in(4)) pair.move_elsewhere();
      pair.advance(1);
      break;
    case 8:
    case 9: pair.set_line(draw.below(pair.g.cards), draw.below(pair.g.directions()), draw.one_in(2)); break;
    case 10: pair.set_card(draw.below(pair.g.cards), !draw.one_in(4)); break;
    case 11: pair.set_processor(draw.below(pair.g.nodes()), draw.one_in(2)); break;
    default: send_something(draw, pair);
  }
}

void run_both(Draw& draw, bool faults) {
  const Parameters p = draw_parameters(draw);
  must(check(p).has_value(), "the parameters are refused");
  Pair pair(p);
  while (draw.more()) act(draw, pair, faults);
  pair.drain();
  pair.advance(20);
  must(pair.network().inside() == 0, "a message is left inside");
  for (std::uint32_t line = 0; line < pair.g.lines(); ++line)
    for (std::uint32_t q = 0; q <= p.processors; ++q) must(pair.network().queued(line, q) == 0, "a copy is left");
}

}  // namespace

TEST_CASE("both models of a point design do the same in every cycle", "[pointdesign]") {
  property("traffic", [](Draw& draw) { run_both(draw, false); });
}

TEST_CASE("both models of a point design do the same when lines, cards and processors die", "[pointdesign]") {
  property("traffic and faults", [](Draw& draw) { run_both(draw, true); });
}

TEST_CASE("without faults a message reaches whom it is for, once each, and nobody else", "[pointdesign]") {
  property("multicasts", [](Draw& draw) {
    const Parameters p = draw_parameters(draw);
    Pair pair(p);
    const std::uint32_t from = draw.below(pair.g.nodes());
    auto to = draw_set(draw, pair.g);
    if (!pair.multicast(from, to, draw.below(40))) return;
    pair.drain();
    std::map<std::uint32_t, int> wanted;
    for (const std::uint32_t node : to)
      if (node != from) wanted[node] = 1;
    must(pair.reference.received().at(pair.last) == wanted, "others have it, or some have it twice");
  });
}

TEST_CASE("no message waits for ever under any policy, however much traffic passes it", "[pointdesign]") {
  property(
      "starvation",
      [](Draw& draw) {
        Parameters p = draw_parameters(draw);
        p.dimensions = 2, p.radix = 2 + draw.below(2), p.frames = p.copies = 100, p.queues = 0, p.timeout = 5;
        Machine machine(p);
        Network& network = machine.network;
        const std::uint32_t nodes = network.geometry().nodes(), from = draw.below(nodes);
        const std::uint32_t to = (from + 1 + draw.below(nodes - 1)) % nodes;
        std::vector<FrameId> free;
        for (FrameId f = 1; f < p.frames; ++f) free.push_back(f);
        // Everybody sends to the same processor all the time; one message has to get there.
        std::uint32_t next = 0;
        const auto flood = [&] {
          for (; !free.empty(); ++next)
            if (next % nodes != from && next % nodes != to && network.inject(free.back(), next % nodes, to, 0))
              free.pop_back();
            else if (nodes <= 2) return;
        };
        flood();
        must(network.inject(0, from, to, 0), "the message is not taken");
        // Whatever is on its way may go first, over two lines and as many turns away as there can be.
        const std::uint64_t limit = 100 * std::uint64_t{p.flits} * (2 + kMostRefusals);
        bool arrived = false;
        std::vector<Ending> some(16);
        while (!arrived && network.now() < limit) {
          flood();
          const std::size_t n = network.run(1, some, network.now() + 1);
          for (std::size_t i = 0; i < n; ++i)
            if (some[i].frame == 0) arrived = true;
            else free.push_back(some[i].frame);
        }
        must(arrived, fmt::format("a message has not arrived after {} cycles", limit));
      },
      1);
}
