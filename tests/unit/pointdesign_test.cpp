// The point design's formats, its decoders, its plans, and the examples of the thesis.
#include "fabric/pointdesign/model.hpp"
#include "fabric/topology/timeline.hpp"
#include "pointdesign_pair.hpp"

using namespace test;
using namespace test::pointdesign;

namespace {

const CardGeometry kDesign{2, 40, 8};
constexpr std::uint32_t card(std::uint32_t dd0, std::uint32_t dd1) { return dd0 * 40 + dd1; }

Parameters design(std::uint32_t copies = 4096) {
  Parameters p;
  p.frames = 64, p.copies = copies;
  return p;
}

Destination draw_destination(Draw& draw) {
  return {static_cast<std::uint8_t>(draw.below(40)), static_cast<std::uint8_t>(draw.below(40)),
          static_cast<std::uint8_t>(draw.below(8)), draw.one_in(2)};
}

}  // namespace

TEST_CASE("table 1: which cards each of the ten ports leads to", "[pointdesign]") {
  CHECK(kDesign.ports() == 10);
  CHECK(kDesign.queues() == 79);
  CHECK(kDesign.nodes() == 12800);
  for (std::uint32_t c = 0; c < 40; ++c) {
    CHECK(kDesign.port_of(0 * 40 + c) == c / 8);
    CHECK(kDesign.port_of(1 * 40 + c) == 5 + c / 8);
    // Dimension 0 leads to cards (0, c), dimension 1 to cards (c, 0): the thesis' own example has (0,1) on port 0.
    CHECK(kDesign.neighbour(card(0, 0), 0, c) == card(0, c));
    CHECK(kDesign.neighbour(card(0, 0), 1, c) == card(c, 0));
  }
  for (std::uint32_t a = 0; a < kDesign.cards; a += 37)
    for (std::uint32_t b = 0; b < kDesign.cards; ++b) REQUIRE(kDesign.hops(a, b) <= 2);
}

TEST_CASE("the multicast of the thesis: three cards in one message, a fourth by another port", "[pointdesign]") {
  const std::vector<std::uint32_t> to{card(0, 1) * 8, card(0, 2) * 8, card(0, 3) * 8, card(0, 25) * 8};
  const auto messages = plan(kDesign, 0, to);
  REQUIRE(messages.size() == 2);
  CHECK(messages[0].port == 0);
  CHECK(messages[0].reach == Reach::multicast_dd1);
  CHECK(messages[0].mask == 0b00001110);
  CHECK(messages[1].port == 3);
  CHECK(messages[1].reach == Reach::unicast);
  CHECK(messages[1].card == card(0, 25));
  const Cimf cimf = to_cimf(messages[0], kDesign, 0, false, 0);
  CHECK(cimf.dd1 == 0b000011);  // six of the mask's bits, and two
  CHECK(cimf.xdd == 0b10);
  CHECK(validate(cimf, 40, 2).has_value());
  const Dmf dmf = to_dmf(cimf, kDesign, 0, 0, 2);
  CHECK(dmf.dd0 == 0);
  CHECK(dmf.dd1 == 2);
}

TEST_CASE("a broadcast reaches 12,800 processors in two cycles on the lines", "[pointdesign]") {
  Machine machine(design());
  REQUIRE(machine.network.inject_broadcast(0, card(17, 23) * 8 + 3, 8));
  std::vector<Ending> endings(4);
  REQUIRE(machine.network.run(1 << 20, endings) == 1);
  CHECK(endings[0].delivered);
  CHECK(endings[0].cycle == 2);  // the first one begins when the command is there
  CHECK(machine.network.totals().messages == 1);
  CHECK(machine.network.totals().commands == 1);
  std::uint64_t delivered = 0;
  for (std::uint32_t c = 0; c < kDesign.cards; ++c) {
    CHECK(machine.network.card(c).arrived == 1);
    delivered += machine.network.card(c).delivered;
  }
  CHECK(delivered == 12799);
}

TEST_CASE("long data are fetched once for each card", "[pointdesign]") {
  Machine machine(design());
  std::vector<std::uint32_t> to;
  for (std::uint32_t q = 0; q < 8; ++q) to.push_back(card(5, 6) * 8 + q);
  REQUIRE(machine.network.inject_multicast(0, 0, to, 800));
  std::vector<Ending> endings(4);
  REQUIRE(machine.network.run(1 << 20, endings) == 1);
  CHECK(machine.network.card(card(5, 6)).fetches == 1);
  CHECK(machine.network.card(card(5, 6)).fetched_bytes == 800);
  CHECK(machine.network.card(card(5, 6)).delivered == 8);
  CHECK(endings[0].cycle == 2 + 100);  // two lines, and a word in each cycle
}

TEST_CASE("wormhole passes a card before the message is there as a whole", "[pointdesign]") {
  for (const bool worm : {false, true}) {
    Parameters p = design();
    p.flits = 8, p.switching = worm ? Switching::wormhole : Switching::store;
    Machine machine(p);
    REQUIRE(machine.network.inject(0, 0, card(5, 6) * 8, 8));
    std::vector<Ending> endings(4);
    REQUIRE(machine.network.run(1 << 20, endings) == 1);
    CHECK(endings[0].cycle == (worm ? 9 : 16));
  }
}

TEST_CASE("messages keep away from a dead line and use it again when it is back", "[pointdesign]") {
  Machine machine(design());
  Network& network = machine.network;
  const std::uint32_t direction = 6, line = kDesign.line_from(0, direction);  // from (0,0) to (0,6)
  std::vector<Ending> endings(4);
  network.set_line(0, direction, false);
  REQUIRE(network.inject(0, 0, card(0, 6) * 8, 8));
  REQUIRE(network.run(1 << 20, endings) == 1);
  CHECK(endings[0].delivered);
  CHECK(network.line(line).messages == 0);
  network.set_line(0, direction, true);
  REQUIRE(network.inject(0, 0, card(0, 6) * 8, 8));
  REQUIRE(network.run(1 << 20, endings) == 1);
  CHECK(network.line(line).messages == 1);
  for (std::uint32_t d = 0; d < kDesign.directions(); ++d) network.set_line(0, d, false);
  CHECK_FALSE(network.reaches(0, card(0, 6) * 8));
  CHECK(network.reaches(0, 1));  // on the same card
}

TEST_CASE("bits of the three formats are where the thesis has them", "[pointdesign]") {
  Cimf c;
  c.bc = 63;
  CHECK(encode(c).header == std::uint64_t{63} << 58);
  c = {}, c.unused = 31;
  CHECK(encode(c).header == std::uint64_t{31} << 53);
  c = {}, c.who.c = true;
  CHECK(encode(c).header == std::uint64_t{1} << 52);
  c = {}, c.dma = true;
  CHECK(encode(c).header == std::uint64_t{1} << 51);
  c = {}, c.who.cdp = Processors::all;
  CHECK(encode(c).header == std::uint64_t{3} << 49);
  c = {}, c.dd0 = 39, c.dd1 = 38, c.who.dp = 5;
  CHECK(encode(c).header == (std::uint64_t{39} << 43 | std::uint64_t{38} << 37 | std::uint64_t{5} << 34));
  c = {}, c.xdd = 2, c.cdd = Reach::multicast_dd0, c.ma = 1, c.data = 9;
  CHECK(encode(c) == Wire{std::uint64_t{2} << 32 | std::uint64_t{1} << 30 | 1, 9});
  Dmf d;
  d.sd0 = 1, d.sd1 = 2, d.sp = 3, d.dd0 = 4, d.dd1 = 5, d.who = {6, true, Processors::long_code}, d.dma = true;
  CHECK(encode(d).header ==
        (std::uint64_t{1} << 58 | std::uint64_t{2} << 52 | std::uint64_t{3} << 49 | std::uint64_t{4} << 43 |
         std::uint64_t{5} << 37 | std::uint64_t{6} << 34 | std::uint64_t{3} << 32 | std::uint64_t{2} << 30));
  Pctf p;
  p.to = {Destination{1, 2, 3, true}, Destination{4, 5, 6, false}};
  p.smma = 7, p.dma = false, p.more = true;
  CHECK(encode(p).header ==
        (std::uint64_t{1} << 58 | std::uint64_t{2} << 52 | std::uint64_t{3} << 49 | std::uint64_t{4} << 43 |
         std::uint64_t{5} << 37 | std::uint64_t{6} << 34 | std::uint64_t{7} << 4 | 8 | 1));
}

TEST_CASE("formats come back from their bits, and any bits come back from their fields", "[pointdesign]") {
  property("round trips", [](Draw& draw) {
    const Wire wire{std::uint64_t{draw.any()} << 32 | draw.any(), std::uint64_t{draw.any()} << 32 | draw.any()};
    must(encode(decode_pctf(wire)) == wire, "PCTF");
    must(encode(decode_pctf_destinations(wire)) == wire, "PCTF destinations");
    must(encode(decode_cimf(wire)) == wire, "CIMF");
    must(encode(decode_dmf(wire)) == wire, "DMF");
    // Whatever the bits are, validation ends; what it accepts names queues that exist.
    const Cimf cimf = decode_cimf(wire);
    if (!validate(cimf, 40, 2)) return;
    for (std::uint32_t port = 0; port < 10; ++port)
      must(Reference::decode(cimf, kDesign, port, 3) == pass_to(queues_of(cimf, kDesign, port, 3)), "decoders differ");
  });
}

TEST_CASE("a coprocessor reads the destinations that its processor wrote", "[pointdesign]") {
  property("commands", [](Draw& draw) {
    std::vector<Destination> to(1 + draw.below(30));
    for (Destination& d : to) d = draw_destination(draw);
    const auto wires = command(to, 5, 6, false);
    must(wires.size() == (to.size() <= 2 ? 1 : 2 + (to.size() - 2 + 5) / 6), "a command has another length");
    must(read_command(wires, 40, 2).value() == to, "other destinations are read");
    must(destinations_in_memory(to).size() == to.size() + 1, "the list in memory has another length");
    must(command(to, 5, 6, true).size() == 1, "with DMA a command is one message");
  });
}

TEST_CASE("what makes no sense is refused with the name of its field", "[pointdesign]") {
  const auto says = [](const auto& result, const std::string& field) {
    return !result.has_value() && result.error().what.find(": " + field + " is ") != std::string::npos;
  };
  Cimf c;
  c.dd0 = 40;
  CHECK(says(validate(c, 40, 2), "DD0"));
  c = {}, c.dd1 = 40;
  CHECK(says(validate(c, 40, 2), "DD1"));
  c = {}, c.unused = 1;
  CHECK(says(validate(c, 40, 2), "U"));
  c = {}, c.bc = 63;
  CHECK(says(validate(c, 40, 2), "BC"));
  c = {}, c.cdd = Reach::broadcast;
  CHECK(says(validate(c, 40, 2), "BC"));
  c = {}, c.cdd = Reach::multicast_dd1;
  CHECK(says(validate(c, 40, 2), "XDD"));
  c = {}, c.xdd = 1;
  CHECK(says(validate(c, 40, 2), "XDD"));
  c = {}, c.who.c = true;
  CHECK(says(validate(c, 40, 2), "C"));
  Dmf d;
  d.sd0 = 41;
  CHECK(says(validate(d, 40, 2), "SD0"));
  Pctf p;
  CHECK(says(validate(p, 40, 2), "Dest0.DD0"));
  p.to[0] = {0, 0, 0, false}, p.to[1] = {50, 0, 0, false};
  CHECK(says(validate(p, 40, 2), "Dest1.DD0"));
  p.to[1] = {}, p.more = true;
  CHECK(says(validate(p, 40, 2), "MD"));
  PctfDestinations more;
  CHECK(says(validate(more, 40, 2), "ND"));
  more.count = 3, more.to[1] = {1, 1, 1, false};
  CHECK(says(validate(more, 40, 2), "Dest1.DD0"));
  CHECK_FALSE(read_command(std::vector<Wire>{}, 40, 2).has_value());
}

TEST_CASE("every set of processors is made up of the fewest codes", "[pointdesign]") {
  CHECK(processors_of({3, false, Processors::code}, 8) == 0b00010111);  // powers of two: 0, 1, 2, 4
  CHECK(processors_of({6, false, Processors::code}, 8) == 0b00110011);
  for (std::uint32_t set = 1; set < 256; ++set) {
    const std::array<std::uint32_t, 1> sets{set};
    const auto codes = fewest_codes(sets, 8);
    std::uint32_t made = 0;
    for (const Processors& one : codes) {
      REQUIRE((made & processors_of(one, 8)) == 0);
      made |= processors_of(one, 8);
    }
    REQUIRE(made == set);
    // By trying: one fewer cannot do it.
    Processors ignored;
    if (codes.size() == 2) REQUIRE_FALSE(write_processors(set, 8, ignored));
    if (codes.size() == 3)
      for (std::uint32_t part = (set - 1) & set; part != 0; part = (part - 1) & set)
        REQUIRE_FALSE((write_processors(part, 8, ignored) && write_processors(set & ~part, 8, ignored)));
  }
}

TEST_CASE("a point design's numbers have bounds", "[pointdesign]") {
  Parameters p = design();
  CHECK(check(p).has_value());
  p.radix = 1;
  CHECK_FALSE(check(p).has_value());
  p = design(), p.dimensions = 8;
  CHECK_FALSE(check(p).has_value());
  p = design(), p.processors = 9;
  CHECK_FALSE(check(p).has_value());
  p = design(), p.flits = 17;
  CHECK_FALSE(check(p).has_value());
  p = design(), p.queues = 81;
  CHECK_FALSE(check(p).has_value());
}

TEST_CASE("memory that holds no point design is refused", "[pointdesign]") {
  ArenaMemory memory(4096);
  CHECK_FALSE(Network::attach(memory.get(), memory.size()).has_value());
  CHECK_FALSE(Network::attach(memory.get(), 8).has_value());
}

TEST_CASE("frames of one sender end in the order in which they were sent, though messages overtake", "[pointdesign]") {
  property("order", [](Draw& draw) {
    const Topology topology = read_topology("gh:2x3x2").value();
    const ModelPlan plan{topology, draw.one_in(2) ? "switching=wormhole,buffer=0,flits=4" : "", 48, {}, 18};
    const PlannedModel planned = model_kind.plan(plan).value();
    ArenaMemory memory(planned.bytes);
    must(planned.create(memory.get()).has_value(), "the model is not made");
    auto model = model_kind.attach(memory.get(), memory.size()).value();
    std::vector<std::pair<std::uint32_t, std::uint32_t>> way(48);
    std::vector<std::uint32_t> number(48);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> sent, got;
    std::vector<FrameId> free;
    for (FrameId f = 48; f-- > 0;) free.push_back(f);
    const auto collect = [&](std::uint64_t budget, std::size_t room) {
      std::vector<Ending> endings(room);
      const std::size_t n = model->run(budget, endings);
      for (std::size_t i = 0; i < n; ++i) {
        const FrameId f = endings[i].frame;
        must(number[f] == got[way[f]]++, "a frame ends before one that was sent earlier");
        free.push_back(f);
      }
    };
    while (draw.more()) {
      const std::uint32_t from = draw.below(3), to = 3 + draw.below(15);
      if (!free.empty() && model->inject(free.back(), from, to, draw.one_in(2) ? 4 : 400)) {
        way[free.back()] = {from, to};
        number[free.back()] = sent[{from, to}]++;
        free.pop_back();
      }
      if (draw.one_in(3)) collect(1 + draw.below(20), 1 + draw.below(4));
    }
    while (!model->idle()) collect(100, 3);
    must(sent == got, "a frame has not ended");
    must(free.size() == 48, "a frame is not free");
  });
}

TEST_CASE("a generalized hypercube is a topology", "[pointdesign]") {
  const Topology t = read_topology("gh:2x4x8").value();
  CHECK(t.switches == 16);
  CHECK(t.nodes() == 128);
  CHECK(port_name(t, {5, 4 + 3}) == "c1_1.b3");
  CHECK(find_port(t, "c1_1.b3").value() == SwitchPort{5, 7});
  CHECK(find_port(t, "c1_1.p7").value() == SwitchPort{5, 15});
  CHECK_FALSE(find_port(t, "c1_1.a1").has_value());  // its own place
  CHECK_FALSE(find_port(t, "c9_1.a0").has_value());
  CHECK(t.end({0, 1}) == LinkEnd{LinkEnd::Kind::switch_port, 1, 0});
  CHECK(t.end({0, 4 + 1}) == LinkEnd{LinkEnd::Kind::switch_port, 4, 4});
  const Extent extent = measure(t);
  CHECK(extent.links == 16 * 6 / 2);
  CHECK(extent.longest == 3);  // cards
  CHECK(extent.bisection == 16);
  CHECK(measure(t, {{0, 1}}).cut_off == 0);
  CHECK(measure(t, {{0, 1}}).longest == 3);
  CHECK(dependency_cycle(t, compute_routes(t).value()).empty());
  // One to a card, as long as there are cards; the cards in order when there is one for each processor.
  CHECK(node_of_process(t, 3, 8) == 3 * 8);
  CHECK(node_of_process(t, 3, 20) == 8 + 1);
  CHECK(node_of_process(t, 77, 128) == 77);
  CHECK_FALSE(read_topology("gh:2x4").has_value());
  CHECK_FALSE(read_topology("gh:2x4x9").has_value());
  CHECK_FALSE(read_topology("gh:2x65x1").has_value());
  CHECK_FALSE(read_topology("gh:0x4x1").has_value());
}

TEST_CASE("faults of a point design are lines, cards and processors", "[pointdesign]") {
  const Topology topology = read_topology("gh:1x3x2").value();
  const auto plan =
      ulfm::parse_fault_plan("link 0-1 down at 1s for 1s; node 4 dead at 3s; switch 1 dead at 4s").value();
  const ModelPlan asked{topology, "", 8, plan.events, 6};
  const PlannedModel planned = model_kind.plan(asked).value();
  ArenaMemory memory(planned.bytes);
  REQUIRE(planned.create(memory.get()).has_value());
  auto model = model_kind.attach(memory.get(), memory.size()).value();
  CHECK(model->due() == 1'000'000'000);
  model->advance(1'000'000'000);
  CHECK(model->reaches(0, 2));  // by way of the third card
  REQUIRE(model->inject(0, 0, 2, 100));
  std::vector<Ending> endings(2);
  REQUIRE(model->run(1000, endings) == 1);
  CHECK(endings[0].delivered);
  CHECK(model->statistics().find("card c2: arrived 0 delivered 0 through 1") != std::string::npos);
  model->advance(3'000'000'000);
  CHECK_FALSE(model->reaches(0, 4));
  CHECK(model->reaches(0, 5));
  model->advance(4'000'000'000);
  CHECK_FALSE(model->reaches(0, 2));
  CHECK(model->due() == kNothingDue);
}
