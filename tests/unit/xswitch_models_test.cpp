// The production model against the reference, on random networks with random traffic and faults.
#include "xswitch_pair.hpp"

using namespace test;
using namespace test::xswitch;

namespace {

constexpr std::uint32_t kMostExtra = 5;  // cycles of a unit on a slow link, beyond the first

/// Some links have a number of cycles of their own, 1 to `most`.
void draw_cycles(Draw& draw, const Topology& shape, std::uint32_t most, std::vector<std::uint32_t>& cycles) {
  cycles.resize(shape.ends.size(), 0);
  for (std::uint32_t i = 0; i < shape.ends.size(); ++i) {
    const LinkEnd& other = shape.ends[i];
    if (other.kind == LinkEnd::Kind::nothing || !draw.one_in(2) || cycles[i] != 0) continue;
    cycles[i] = 1 + draw.below(most);
    if (other.kind == LinkEnd::Kind::switch_port) cycles[other.index * shape.ports + other.port] = cycles[i];
  }
}

/// Connected switches, some with more links than a tree has, and at least one node.
Topology draw_shape(Draw& draw) {
  const std::uint32_t ports = draw.one_in(3) ? 8 : 5, switches = 1 + draw.below(6);
  Builder builder(ports, switches);
  const std::uint32_t kind = draw.below(4);
  for (std::uint32_t at = 1; at < switches; ++at) {
    std::uint32_t to = kind == 0 ? at - 1 : kind == 1 ? 0 : draw.below(at);  // chain, star, any tree
    while (!builder.has_room(to)) ++to;
    builder.link(to, at);
  }
  if (kind == 3)
    for (std::uint32_t at = 0; at < switches; ++at) {
      const std::uint32_t to = draw.below(switches);
      if (to != at && builder.has_room(at) && builder.has_room(to)) builder.link(at, to);
    }
  for (std::uint32_t i = 0; i < 1 + switches + draw.below(5); ++i)
    for (std::uint32_t at = i % switches, turn = 0; turn < switches; ++turn, at = (at + 1) % switches)
      if (builder.has_room(at)) {
        builder.node(at);
        break;
      }
  Topology shape = builder.shape();
  if (draw.one_in(2)) draw_cycles(draw, shape, 4, shape.latency);
  return shape;
}

Parameters draw_parameters(Draw& draw) {
  Parameters p;
  p.link_cycles = 1 + draw.below(4);
  p.stop_at = 1 + draw.below(draw.one_in(2) ? 6 : 40);
  p.go_at = draw.below(p.stop_at);
  p.fifo_units = p.stop_at + headroom(4 + kMostExtra) + draw.below(8);
  p.check_units = draw.below(5);
  if (draw.one_in(3)) p.arbitration = Arbitration::fixed;
  return p;
}

std::uint32_t draw_size(Draw& draw, const Parameters& p) {
  switch (draw.below(4)) {
    case 0: return draw.below(4);
    case 1: return draw.below(3 * p.fifo_units);
    default: return draw.below(24);
  }
}

/// One random step. `faults`: links and switches may die and come back.
void act(Draw& draw, Pair& pair, const Topology& shape, const Parameters& parameters, bool faults) {
  switch (draw.below(faults ? 12 : 9)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4: {
      const std::uint32_t from = draw.below(shape.nodes()), to = draw.below(shape.nodes());
      const Route route = up_down_route(shape, from, to, draw.below(8));
      const std::uint32_t size = draw_size(draw, parameters);
      for (std::uint32_t n = 1 + draw.below(3); n != 0 && pair.has_frame() && !route.empty(); --n)
        pair.inject(from, route, size);
      break;
    }
    case 5:
    case 6:
      pair.advance_to(pair.now() + draw.below(draw.one_in(2) ? 4 : 120), 1 + draw.below(20), 1 + draw.below(3));
      break;
    case 7: pair.stall(draw.below(shape.nodes()), draw.below(200)); break;
    case 8:
      if (draw.one_in(2)) pair.move_elsewhere();
      else if (draw.one_in(2)) pair.drain(1 + draw.below(50), 1 + draw.below(3));
      break;
    case 9:
    case 10: {
      const SwitchPort at{draw.below(shape.switches), draw.below(shape.ports)};
      pair.set_link(at, draw.one_in(2));
      break;
    }
    default: pair.set_switch(draw.below(shape.switches), draw.one_in(2));
  }
}

void run_both(Draw& draw, bool faults) {
  Topology shape = draw_shape(draw);
  if (draw.one_in(2)) draw_cycles(draw, shape, 1 + kMostExtra, shape.rate);
  const Parameters parameters = draw_parameters(draw);
  must(check(parameters).has_value(), "the parameters are refused");
  Pair pair(shape, parameters);
  while (draw.more()) act(draw, pair, shape, parameters, faults);
  for (std::uint32_t at = 0; at < shape.switches; ++at) {
    pair.set_switch(at, true);
    for (std::uint32_t port = 0; port < shape.ports; ++port) pair.set_link({at, port}, true);
  }
  pair.drain();
  pair.advance(20);
  must(pair.network.frames_inside() == 0, "a frame is left inside");
}

}  // namespace

TEST_CASE("both models of X-Switches do the same in every cycle", "[xswitch]") {
  property("traffic and stalls", [](Draw& draw) { run_both(draw, false); });
}

TEST_CASE("both models of X-Switches do the same when links and switches die", "[xswitch]") {
  property("traffic, stalls and faults", [](Draw& draw) { run_both(draw, true); });
}

TEST_CASE("a frame that has the network to itself takes the short way, to the same effect", "[xswitch]") {
  property("one frame after the other", [](Draw& draw) {
    const Topology shape = draw_shape(draw);
    Parameters p;
    p.stop_at = shape.ports + draw.below(40);
    p.link_cycles = 1 + draw.below(4);
    p.fifo_units = std::max(7 * shape.ports, p.stop_at + headroom(4));
    p.go_at = draw.below(p.stop_at);
    p.check_units = draw.below(5);
    Pair pair(shape, p);
    while (draw.more()) {
      const std::uint32_t from = draw.below(shape.nodes()), to = draw.below(shape.nodes());
      const Route route = up_down_route(shape, from, to, draw.below(8));
      if (route.empty()) continue;
      pair.advance(draw.below(12));
      const std::uint64_t events = pair.network.events();
      pair.inject(from, route, draw_size(draw, p));
      pair.drain();
      must(pair.network.events() == events + route.size() + 1, "it went the long way");
    }
  });
}
