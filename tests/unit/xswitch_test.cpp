// What the paper says of the X-Switch, one by one; each scenario runs on both models.
#include <set>

#include "arena_memory.hpp"
#include "fabric/xswitch/model.hpp"
#include "xswitch_pair.hpp"

using namespace test;
using namespace test::xswitch;

namespace {

/// One switch with a node on each port.
Topology full_switch(std::uint32_t ports) {
  Builder builder(ports, 1);
  for (std::uint32_t i = 0; i < ports; ++i) builder.node(0);
  return builder.shape();
}

/// Switches in a row, with a node at the first and one at the last.
Topology chain(std::uint32_t switches) {
  Builder builder(5, switches);
  for (std::uint32_t i = 1; i < switches; ++i) builder.link(i - 1, i);
  builder.node(0);
  builder.node(switches - 1);
  return builder.shape();
}

Route across(const Topology& shape) { return up_down_route(shape, 0, 1); }

bool is_command_or_idle(Unit unit) { return unit == kIdle || unit == kStop || unit == kGo; }

}  // namespace

TEST_CASE("an output machine has a Poll, a Tran and a Wait state for each input", "[xswitch]") {
  const std::uint32_t ports = GENERATE(5u, 8u);
  Pair pair(full_switch(ports), {.fifo_units = 11, .stop_at = 8, .go_at = 2});
  std::set<std::string> states;
  for (std::uint64_t turn = 0; turn < 60; ++turn) {
    for (std::uint32_t node = 0; node < ports; ++node) pair.inject(node, {0}, 20);
    const std::uint64_t stalls_at = pair.now() + 5 * turn;  // with another input served each time
    while (!pair.reference.empty()) {
      if (pair.now() == stalls_at) pair.stall(0, 40);
      pair.advance(1);
      states.insert(pair.reference.state({0, 0}));
    }
  }
  std::set<std::string> all;
  for (std::uint32_t i = 0; i < ports; ++i) {
    const char input = static_cast<char>('A' + i);
    all.insert({fmt::format("Poll{}", input), fmt::format("Tran{}2A", input), fmt::format("Wait{}2A", input)});
  }
  CHECK(all.size() == 3 * ports);
  CHECK(states == all);
}

TEST_CASE("in a Wait state only commands pass, and it lasts until ID-GO comes", "[xswitch]") {
  Pair pair(full_switch(5), {.fifo_units = 11, .stop_at = 8, .go_at = 2});
  pair.stall(3, 200);
  pair.inject(0, {3}, 100);
  pair.inject(3, {0}, 100);  // data the other way over the same link
  std::uint64_t waited = 0;
  for (; !pair.reference.empty(); pair.advance(1)) {
    if (pair.now() == 1 || pair.reference.state({0, 3}) != "WaitA2D") continue;
    ++waited;
    REQUIRE(is_command_or_idle(pair.reference.sent()[3]));
  }
  CHECK(waited > 150);
  CHECK(pair.network.counters({0, 3}).out.wait_cycles == waited);
  const SwitchPortCounters node = pair.network.node_counters(3);
  CHECK(node.out.stops == node.out.gos);
  CHECK(node.out.stops >= 1);
}

TEST_CASE("frames of three inputs leave a contended output in turn", "[xswitch]") {
  Pair pair(full_switch(5), {});
  std::vector<std::vector<FrameId>> sent(3);
  for (int i = 0; i < 15; ++i)
    for (std::uint32_t node = 0; node < 3; ++node) sent[node].push_back(pair.inject(node, {3}, 12));
  pair.drain();
  const auto& order = pair.endings();
  REQUIRE(order.size() == 45);
  // A0 B0 C0 A1 B1 C1 ..., beginning with the input whose turn it was when they came.
  const auto sender = [&](FrameId f) -> std::size_t {
    return static_cast<std::size_t>(
        std::find_if(sent.begin(), sent.end(),
                     [&](const auto& frames) { return std::count(frames.begin(), frames.end(), f) != 0; }) -
        sent.begin());
  };
  const std::size_t first = sender(order[0].frame);
  for (std::size_t i = 0; i < order.size(); ++i) {
    INFO("frame " << i << " to arrive");
    CHECK(order[i].frame == sent[(first + i) % 3][i / 3]);
  }
}

TEST_CASE("inputs that always have frames get equal shares of an output", "[xswitch]") {
  const std::uint32_t ports = GENERATE(5u, 8u);
  const Topology shape = full_switch(ports);
  constexpr std::uint32_t kFrames = 4000;
  ArenaMemory memory(Network::bytes(shape, {}, kFrames));
  Network network = Network::create(memory.get(), shape, {}, kFrames).value();
  const std::uint32_t senders = ports - 1, to = ports - 1;
  const Route route{static_cast<std::uint8_t>(to)};
  for (FrameId f = 0; f < kFrames; ++f) REQUIRE(network.inject(f, f % senders, route, 30));
  std::vector<Ending> endings(kFrames / 2);
  REQUIRE(network.run(kNever, endings) == endings.size());
  std::vector<double> share(senders);
  for (const Ending& ending : endings) share[ending.frame % senders] += 1.0 / kFrames * 2 * senders;
  for (const double s : share) CHECK(s == Approx(1.0).margin(0.02));
}

TEST_CASE("with fixed arbitration the first input takes all of an output that it can fill", "[xswitch]") {
  const std::uint32_t ports = GENERATE(5u, 8u);
  const Topology shape = full_switch(ports);
  const Parameters fixed{.arbitration = Arbitration::fixed};
  constexpr std::uint32_t kFrames = 4000;
  ArenaMemory memory(Network::bytes(shape, fixed, kFrames));
  Network network = Network::create(memory.get(), shape, fixed, kFrames).value();
  const std::uint32_t senders = ports - 1, to = ports - 1;
  const Route route{static_cast<std::uint8_t>(to)};
  for (FrameId f = 0; f < kFrames; ++f) REQUIRE(network.inject(f, f % senders, route, 30));
  std::vector<Ending> endings(kFrames);
  REQUIRE(network.run(kNever, endings) == kFrames);
  // Which input an output that has served nobody polls when the first frames come depends on the cycle.
  const std::uint32_t each = kFrames / senders;
  std::uint32_t misplaced = 0;
  for (std::uint32_t i = 0; i < each; ++i) misplaced += endings[i].frame % senders != 0 ? 1 : 0;
  CHECK(misplaced <= 1);
  for (std::uint32_t i = each; i < 2 * each; ++i) misplaced += endings[i].frame % senders != 1 ? 1 : 0;
  CHECK(misplaced <= 3);
}

TEST_CASE("a frame's units leave a switch while others still arrive", "[xswitch]") {
  const std::uint32_t switches = GENERATE(1u, 2u, 5u), link_cycles = GENERATE(1u, 3u);
  const Topology shape = chain(switches);
  const auto last_arrives = [&](std::uint32_t data) {
    Pair pair(shape, {.link_cycles = link_cycles});
    pair.inject(0, across(shape), data);
    pair.drain();
    return pair.endings().at(0).cycle;
  };
  const std::uint64_t none = last_arrives(0), check_and_end = 5;
  CHECK(last_arrives(1000) == none + 1000);
  // On its way each switch costs the link, the poll that takes the head off, and up to 4 polls of other
  // inputs.
  const std::uint64_t fastest = 1 + link_cycles + switches * (link_cycles + 1) + check_and_end - 1;
  CHECK(none >= fastest);
  CHECK(none <= fastest + 4 * switches);
}

TEST_CASE("a head that comes in the cycle of its poll is through a switch in a cycle", "[xswitch]") {
  Builder builder(5, 1);
  builder.node(0);
  builder.node(0);
  Pair pair(builder.shape(), {});
  pair.advance(4);  // cycle 5 begins; the head arrives in cycle 6, in which every output polls A
  pair.inject(0, {1}, 0);
  std::vector<Unit> left;
  while (pair.now() < 14) {
    pair.advance(1);
    left.push_back(pair.reference.sent()[1]);
  }
  CHECK(left == std::vector<Unit>{kIdle, kIdle, left[2], left[3], left[4], left[5], kEnd, kIdle, kIdle});
  CHECK(std::all_of(left.begin() + 2, left.begin() + 6, is_data));  // the check
}

TEST_CASE("STOP and GO lose nothing, whatever the receiver does", "[xswitch]") {
  const std::uint32_t link_cycles = GENERATE(1u, 2u, 4u);
  Parameters p{.fifo_units = 20 + headroom(link_cycles), .stop_at = 20, .go_at = 5, .link_cycles = link_cycles};
  const Topology shape = chain(3);
  Pair pair(shape, p);
  for (int i = 0; i < 6; ++i) pair.inject(0, across(shape), 150);
  for (int i = 0; i < 12; ++i) {
    pair.stall(1, 90);
    pair.advance(140);
  }
  pair.drain();
  CHECK(pair.endings().size() == 6);
  for (const Ending& ending : pair.endings()) CHECK(ending.delivered);
  const SwitchPortCounters receiver = pair.network.node_counters(1), sender = pair.network.node_counters(0);
  CHECK(receiver.out.stops > 3);
  CHECK(receiver.out.stops == receiver.out.gos);
  CHECK(sender.out.wait_cycles > 100);  // it goes all the way back
  CHECK(receiver.in.occupancy[kBuckets - 1] > 0);
  CHECK(pair.network.balance().lost == 0);
}

TEST_CASE("ID-STOP is sent in the cycle after the threshold, in front of data", "[xswitch]") {
  Pair pair(full_switch(5), {.fifo_units = 11, .stop_at = 8, .go_at = 2});
  pair.stall(1, 1000);
  pair.inject(1, {2}, 300);  // data leave node 1 all the time
  pair.inject(0, {1}, 60);
  std::uint64_t taken = 0;
  for (; taken == 0 && pair.now() < 100; pair.advance(1))
    if (pair.now() > 1 && pair.reference.sent()[5 + 1] == kStop) taken = pair.now() - 1;
  REQUIRE(taken != 0);
  // By then 8 units were in the FIFO at the end of the cycle before: those that port B sent until two cycles
  // before.
  const SwitchPortCounters out = pair.network.counters({0, 1});
  CHECK(out.out.data_units + out.out.frames <= 8 + 2 * 1 + 1);
  CHECK(pair.network.node_counters(1).out.stops == 1);
}

TEST_CASE("the cost of a large frame is in events and not in units", "[xswitch]") {
  const Topology shape = chain(5);
  const bool by_itself = GENERATE(true, false);
  ArenaMemory memory(Network::bytes(shape, {}, 4));
  Network network = Network::create(memory.get(), shape, {}, 4).value();
  REQUIRE(network.inject(0, 0, across(shape), 1 << 20));
  std::vector<Ending> endings(2);
  // With an end to the run the frame takes the ordinary way.
  REQUIRE(network.run(1000, endings, by_itself ? kNever : kNever - 1) == 1);
  CHECK(endings[0].delivered);
  CHECK(endings[0].cycle > (1 << 20));
  CHECK(network.events() <= 30);
  CHECK(network.node_counters(0).out.data_units == (1 << 20) + 4);
}

TEST_CASE("a frame cut by a dead link ends once, and the link works when it is back", "[xswitch]") {
  const Topology shape = chain(3);
  Pair pair(shape, {});
  const FrameId cut = pair.inject(0, across(shape), 500);
  pair.advance(100);
  pair.set_link({1, 0}, false);  // between the first and the second switch
  pair.advance(50);
  const FrameId dropped = pair.inject(0, across(shape), 10);
  pair.drain();
  REQUIRE(pair.endings().size() == 2);
  CHECK(pair.endings()[0].frame == cut);
  CHECK(pair.endings()[1].frame == dropped);
  for (const Ending& ending : pair.endings()) {
    CHECK_FALSE(ending.delivered);
    CHECK(ending.node == 0);
  }
  CHECK(pair.network.counters({1, 0}).in.bad_ends == 1);
  pair.set_link({1, 0}, true);
  pair.inject(0, across(shape), 500);
  pair.inject(1, up_down_route(shape, 1, 0), 500);
  pair.drain();
  REQUIRE(pair.endings().size() == 4);
  CHECK(pair.endings()[2].delivered);
  CHECK(pair.endings()[3].delivered);
}

TEST_CASE("a command that a dying link takes back holds nothing up", "[xswitch]") {
  for (std::uint64_t cycle = 2; cycle < 40; ++cycle) {
    Pair pair(full_switch(5), {.fifo_units = 11, .stop_at = 8, .go_at = 2});
    pair.stall(1, 1000);
    pair.inject(0, {1}, 60);
    pair.advance_to(cycle);  // in one of these cycles node 1 is about to send ID-STOP
    pair.set_link({0, 1}, false);
    pair.inject(1, {2}, 20);
    pair.advance(3);
    pair.set_link({0, 1}, true);
    pair.stall(1, 0);
    const FrameId after = pair.inject(1, {2}, 20);
    pair.drain();
    INFO("cut before cycle " << cycle);
    CHECK(pair.endings().size() == 3);
    for (const Ending& ending : pair.endings()) CHECK((ending.delivered || ending.frame != after));
  }
}

TEST_CASE("what is in a switch that dies is lost, and it starts anew", "[xswitch]") {
  const Topology shape = chain(3);
  Pair pair(shape, {});
  for (int i = 0; i < 4; ++i) pair.inject(i % 2, up_down_route(shape, i % 2, 1 - i % 2), 80);
  pair.stall(1, 60);
  pair.advance(70);
  pair.set_switch(1, false);
  pair.drain();
  REQUIRE(pair.endings().size() == 4);
  for (const Ending& ending : pair.endings()) CHECK_FALSE(ending.delivered);
  pair.set_switch(1, true);
  pair.inject(0, across(shape), 80);
  pair.drain();
  CHECK(pair.endings().back().delivered);
}

TEST_CASE("parameters under which a FIFO could overflow are refused", "[xswitch]") {
  CHECK(check({}).has_value());
  CHECK(check({.fifo_units = 11, .stop_at = 8, .go_at = 7}).has_value());
  const auto refused = [](const Parameters& p) {
    const auto result = check(p);
    return result ? std::string() : result.error().what;
  };
  CHECK_THAT(refused({.fifo_units = 10, .stop_at = 8, .go_at = 2}), Catch::Contains("can overflow"));
  CHECK_THAT(refused({.fifo_units = 64, .stop_at = 48, .link_cycles = 8}), Catch::Contains("needs 65"));
  CHECK_THAT(refused({.stop_at = 16, .go_at = 16}), Catch::Contains("lower go or raise stop"));
  CHECK_THAT(refused({.link_cycles = 0}), Catch::Contains("1 to 64 cycles"));
  CHECK_THAT(refused({.check_units = 65}), Catch::Contains("at most 64 check units"));
  CHECK_THAT(refused({.fifo_units = 1 << 20}), Catch::Contains("at most 16384"));
  ArenaMemory memory(4096);
  CHECK_FALSE(Network::create(memory.get(), chain(1), {.fifo_units = 1}, 1).has_value());
}

TEST_CASE("frames that cannot be are refused, with nothing taken", "[xswitch]") {
  const Topology shape = chain(2);
  ArenaMemory memory(Network::bytes(shape, {}, 2));
  Network network = Network::create(memory.get(), shape, {}, 2).value();
  const Route good = across(shape);
  CHECK_FALSE(network.inject(2, 0, good, 1));                   // no such name
  CHECK_FALSE(network.inject(0, 2, good, 1));                   // no such node
  CHECK_FALSE(network.inject(0, 0, good, kMostDataUnits + 1));  // too long
  CHECK_FALSE(network.inject(0, 0, Route{}, 1));                // no way
  CHECK_FALSE(network.inject(0, 0, Route{good[0]}, 1));         // ends at a switch
  CHECK_FALSE(network.inject(0, 0, Route{4}, 1));               // ends at nothing
  CHECK_FALSE(network.inject(0, 0, Route{9}, 1));               // no such port
  CHECK_FALSE(network.inject(0, 0, Route{good[0], good[1], 0}, 1));
  CHECK(network.idle());
  CHECK(network.inject(0, 0, good, 1));
  CHECK_FALSE(network.inject(0, 0, good, 1));  // in use
  std::vector<Ending> endings(1);
  CHECK(network.run(100, endings) == 1);
  CHECK(network.inject(0, 0, good, 1));
}

TEST_CASE("topologies and memory that do not fit are refused", "[xswitch]") {
  Topology crooked = chain(2);
  crooked.attachment[1].port = 3;
  ArenaMemory memory(Network::bytes(crooked, {}, 2));
  CHECK_THAT(Network::create(memory.get(), crooked, {}, 2).error().what, Catch::Contains("different partners"));
  CHECK_FALSE(Network::attach(memory.get(), memory.size()).has_value());  // nothing there
  CHECK_FALSE(Network::attach(memory.get(), 8).has_value());
  REQUIRE(Network::create(memory.get(), chain(2), {}, 2).has_value());
  CHECK(Network::attach(memory.get(), memory.size()).has_value());
  CHECK_THAT(Network::attach(memory.get(), 4096).error().what, Catch::Contains("4096 are mapped"));
}

TEST_CASE("a network whose memory others write into stays within it", "[xswitch]") {
  property("bytes anywhere", [](Draw& draw) {
    const Topology shape = chain(3);
    const Parameters p{.fifo_units = 11, .stop_at = 8, .go_at = 2};
    ArenaMemory memory(Network::bytes(shape, p, 8));
    Network network = Network::create(memory.get(), shape, p, 8).value();
    std::byte* const bytes = memory.get();
    while (draw.more()) {
      for (std::uint32_t n = draw.below(12); n != 0; --n) {
        const std::uint32_t at = draw.any();
        const std::uint64_t value = draw.one_in(2) ? draw.below(4) : std::uint64_t{draw.any()} << draw.below(40);
        const std::size_t place = at % (memory.size() - 8) / 4 * 4;
        std::memcpy(bytes + place, &value, draw.one_in(2) ? 8 : 1);
      }
      const std::uint32_t node = draw.below(2);
      network.inject(draw.below(8), node, up_down_route(shape, node, 1 - node), draw.below(100));
      if (draw.one_in(4)) network.set_link({draw.below(3), draw.below(5)}, draw.one_in(2));
      if (draw.one_in(8)) network.set_switch(draw.below(3), draw.one_in(2));
      std::vector<Ending> endings(4);
      const std::size_t n = network.run(200, endings, draw.one_in(2) ? network.now() + draw.below(100) : kNever);
      for (std::size_t i = 0; i < n; ++i) must(endings[i].frame < 8 && endings[i].node < 2, "an ending of nowhere");
      network.counters({draw.below(3), draw.below(5)});
      network.balance();
    }
  });
}

TEST_CASE("processes attach to a network of switches with many ports", "[xswitch]") {
  using ulfm::fabric::xswitch::model_kind;
  for (const char* form : {"mesh:2x2", "fullmesh:8x2", "fullmesh:14x13"}) {
    INFO(form);
    const auto topology = ulfm::fabric::read_topology(form).value();
    const auto plan = model_kind.plan({topology, "", 4, {}, topology.nodes(), 0});
    REQUIRE(plan);
    const ArenaMemory memory(plan->bytes);
    REQUIRE(plan->create(memory.get()));
    const auto model = model_kind.attach(memory.get(), plan->bytes);
    REQUIRE(model);
    REQUIRE((*model)->inject(0, 0, topology.nodes() - 1, 100));
    ulfm::fabric::Ending ending;
    CHECK((*model)->run(1000, {&ending, 1}) == 1);
    CHECK(ending.node == topology.nodes() - 1);
    CHECK(ending.delivered);
  }
}
