// What the routers of the Direct-Connect Module do, one thing at a time.
#include <numeric>
#include <set>

#include "dcm_pair.hpp"

using namespace test;
using namespace test::dcm;

namespace {

/// The production model with memory of its own.
struct Cube {
  explicit Cube(std::uint32_t dimension, const Parameters& parameters = {}, std::uint32_t frames = 64)
      : memory(Network::bytes(dimension, frames)),
        network(Network::create(memory.get(), dimension, parameters, frames).value()) {}
  /// Goes on until nothing moves; the endings in the order of cycles.
  std::vector<Ending> drain() {
    std::vector<Ending> all, some(64);
    while (!network.idle()) {
      const std::size_t n = network.run(100000, some);
      all.insert(all.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(n));
    }
    test::sort_endings(all);
    return all;
  }
  ArenaMemory memory;
  Network network;
};

/// Cycles from a message's injection into an idle cube to its end.
std::uint64_t cycles_of(std::uint32_t to, std::uint32_t bytes, const Parameters& parameters = {}) {
  Cube cube(7, parameters);
  const std::uint64_t start = cube.network.now();
  REQUIRE(cube.network.inject(0, 0, to, bytes));
  const auto endings = cube.drain();
  REQUIRE(endings.size() == 1);
  REQUIRE(endings[0].delivered);
  return endings[0].cycle - start + 1;
}

struct Channel {
  std::uint32_t router, way;
  friend auto operator<=>(const Channel&, const Channel&) = default;
};

/// The ways out that a message asks for, one after the other, by the rule that the routing elements follow.
std::vector<Channel> path_of(std::uint32_t from, std::uint32_t to, std::uint32_t routers) {
  std::vector<Channel> path;
  std::uint32_t router = from % routers, in = from < routers ? kNode : kGateway;
  const std::uint16_t probe = routing_probe(from, to, routers);
  for (;;) {
    const std::uint32_t way = requested(probe, in);
    path.push_back({router, way});
    if (way >= kGateway) return path;
    router ^= 1u << way;
    in = way;
  }
}

}  // namespace

TEST_CASE("words, status nibbles and probes have the formats of the paper", "[dcm]") {
  CHECK(data_format(0xabcd, false, true) == 0xabcd4);
  CHECK(data_format(0x0001, true, false) == 0x00018);
  CHECK_FALSE(is_status(data_format(0xffff, true, true) & 15));
  CHECK(eom_of(data_format(0, true, false) & 15));
  CHECK_FALSE(rdy_of(data_format(0xffff, true, false) & 15));
  CHECK(is_status(status_nibble(false)));
  CHECK(rdy_of(status_nibble(true)));
  CHECK(routing_probe(5, 7, 8) == 2);
  CHECK(routing_probe(5, 7, 8) >> 8 == 0);
  CHECK(routing_probe(0, 127, 128) == 127);
  CHECK(routing_probe(3, 128 + 3, 128) == 128);  // to the gateway of its own router
  CHECK(words_behind_probe(0) == 1);
  CHECK(words_behind_probe(1) == 3);
  CHECK(words_behind_probe(8) == 5);
}

TEST_CASE("the path of the paper's example goes by channels 0, 2 and 3", "[dcm]") {
  CHECK(path_of(0, 13, 16) == std::vector<Channel>{{0, 0}, {1, 2}, {5, 3}, {13, kNode}});
  CHECK(path_of(16, 13, 16) == std::vector<Channel>{{0, 0}, {1, 2}, {5, 3}, {13, kNode}});  // from the host
  CHECK(path_of(13, 16, 16) == std::vector<Channel>{{13, 0}, {12, 2}, {8, 3}, {0, kGateway}});
}

// Exhaustive: every pair of ends (nodes and gateways) of every cube of 0 to 7 dimensions.
TEST_CASE("no channel waits for itself round a circle, in any cube", "[dcm]") {
  for (std::uint32_t dimension = 0; dimension <= kMaxDimensions; ++dimension) {
    const std::uint32_t routers = 1u << dimension;
    std::set<std::pair<Channel, Channel>> depends;
    for (std::uint32_t from = 0; from < 2 * routers; ++from)
      for (std::uint32_t to = 0; to < 2 * routers; ++to) {
        if (from == to) continue;
        const auto path = path_of(from, to, routers);
        const Channel last = path.back();
        must(last == Channel{to % routers, to < routers ? kNode : kGateway}, "a path leads elsewhere");
        for (std::size_t i = 1; i < path.size(); ++i) depends.insert({path[i - 1], path[i]});
      }
    // Ways out in an order in which every dependency rises: the channels by dimension, then gateways and
    // sinks.
    for (const auto& [held, wanted] : depends) must(held.way < wanted.way, "a dependency does not rise");
    if (dimension >= 2) CHECK_FALSE(depends.empty());
  }
}

// Exhaustive: in cubes of up to 4 dimensions every message between two nodes alone, compared with the
// reference, and every two messages at once that meet in some order; in cubes of up to 3 all 8! permutations
// at once.
TEST_CASE("every message and every two of them arrive in cubes of up to 4 dimensions", "[dcm]") {
  for (std::uint32_t dimension = 1; dimension <= 4; ++dimension) {
    const std::uint32_t nodes = 1u << dimension;
    Pair pair(dimension, {});
    Cube cube(dimension);
    for (std::uint32_t a = 0; a < nodes * nodes; ++a) {
      if (a / nodes == a % nodes) continue;
      pair.inject(a / nodes, a % nodes, 8, true);
      pair.drain();
      for (std::uint32_t b = 0; b < nodes * nodes; ++b) {
        if (b / nodes == b % nodes) continue;
        REQUIRE(cube.network.inject(0, a / nodes, a % nodes, 8));
        REQUIRE(cube.network.inject(1, b / nodes, b % nodes, 40));
        const auto endings = cube.drain();
        must(endings.size() == 2 && endings[0].delivered && endings[1].delivered, "a message does not arrive");
        must(cube.network.frames_inside() == 0, "a message is left");
      }
    }
    CHECK(pair.endings().size() == nodes * (nodes - 1));
    CHECK(cube.network.balance().holds());
  }
}

TEST_CASE("all permutations of up to 8 nodes arrive, sent at once", "[dcm]") {
  for (std::uint32_t dimension = 1; dimension <= 3; ++dimension) {
    const std::uint32_t nodes = 1u << dimension;
    Cube cube(dimension);
    std::vector<std::uint32_t> to(nodes);
    std::iota(to.begin(), to.end(), 0);
    do {
      std::size_t sent = 0;
      for (std::uint32_t n = 0; n < nodes; ++n) sent += cube.network.inject(n, n, to[n], 24) ? 1 : 0;
      must(cube.drain().size() == sent, "a message does not arrive");
    } while (std::next_permutation(to.begin(), to.end()));
  }
}

TEST_CASE("everybody sends to everybody at once in every cube", "[dcm]") {
  for (std::uint32_t dimension = 1; dimension <= kMaxDimensions; ++dimension) {
    const std::uint32_t nodes = 1u << dimension;
    Cube cube(dimension, {}, nodes * nodes);
    for (std::uint32_t a = 0; a < nodes * nodes; ++a) cube.network.inject(a, a / nodes, a % nodes, 8);
    CHECK(cube.drain().size() == std::size_t{nodes} * (nodes - 1));
    const WordBalance balance = cube.network.balance();
    CHECK(balance.holds());
    CHECK(balance.present == 0);
    CHECK(balance.left == std::uint64_t{nodes} * (nodes - 1) * (1 + words_behind_probe(8)));
  }
}

TEST_CASE("random traffic arrives in a cube of 128 nodes", "[dcm]") {
  property("traffic", [](Draw& draw) {
    Cube cube(7, {}, 512);
    FrameId frame = 0;
    while (draw.more() && frame < 512)
      frame += cube.network.inject(frame, draw.below(256), draw.below(256), draw.below(3000)) ? 1 : 0;
    must(cube.drain().size() == frame, "a message does not arrive");
    must(cube.network.balance().holds(), "words do not balance");
  });
}

// Load 3, looked at 14, grant, probe 5 from the next cycle on, hop 1, looked at 14, grant and RDY, hop 1;
// then words of 5 cycles, the last one the checksum, hop 1.
TEST_CASE("a message's time is what the manual says", "[dcm]") {
  const std::uint64_t one_hop = 3 + 14 + 5 + 1 + 14 + 1 + 2 * 5 + 1;
  CHECK(cycles_of(1, 0) == one_hop);
  const std::uint64_t hop = 3 + 1 + 14 + 1 + 1;  // short probe, hop, looked at, RDY back, data
  CHECK(cycles_of(31, 0) == one_hop + 4 * hop);
  CHECK(cycles_of(1, 4000) == one_hop + 2000 * 5);
  // 2.8 MB/s, and five hops nearly as fast as one.
  const std::uint32_t megabyte = 1 << 20;
  CHECK(2.7 < megabyte / (static_cast<double>(cycles_of(1, megabyte)) / kCyclesPerMicrosecond));
  CHECK(2.7 < megabyte / (static_cast<double>(cycles_of(31, megabyte)) / kCyclesPerMicrosecond));
}

TEST_CASE("a message's cost is in channels and not in bytes", "[dcm]") {
  const auto events = [](std::uint32_t bytes) {
    Cube cube(7);
    REQUIRE(cube.network.inject(0, 0, 127, bytes));
    cube.drain();
    return cube.network.events();
  };
  CHECK(events(1) == events(1 << 20));
  CHECK(events(1) < 50);
}

TEST_CASE("a channel is granted to its requesters in turn", "[dcm]") {
  // Nodes 0, 1 and 3 send to node 2 and 6: all leave router 2 by channel 2.
  Cube cube(3, {}, 64);
  FrameId frame = 0;
  for (int i = 0; i < 8; ++i) {
    cube.network.inject(frame++, 0, 6, 400);  // by channel 1 to router 2
    cube.network.inject(frame++, 3, 6, 400);  // by channel 0
    cube.network.inject(frame++, 2, 6, 400);  // node 2's own
  }
  std::vector<std::uint32_t> order;
  for (const Ending& ending : cube.drain()) order.push_back(ending.frame % 3);
  REQUIRE(order.size() == 24);
  for (std::size_t i = 3; i < order.size(); ++i) CHECK(order[i] == order[i - 3]);
  CHECK(std::set<std::uint32_t>(order.begin(), order.begin() + 3).size() == 3);
  const CircuitCounters contended = cube.network.counters(2, 2);
  CHECK(contended.messages == 24);
  CHECK(contended.blocked > 10);
  CHECK(contended.probes == 8);
  CHECK(contended.short_probes == 16);
}

TEST_CASE("eight messages go through one router at the same time", "[dcm]") {
  // Router 0 of a cube of 7: a message comes in by each channel c for c + 1 (the last ones for node and
  // gateway), and the node and the host send.
  Cube cube(7);
  for (std::uint32_t c = 0; c + 1 < 7; ++c) REQUIRE(cube.network.inject(c, 1u << c, 2u << c, 4000));
  REQUIRE(cube.network.inject(6, 64, 0, 4000));
  REQUIRE(cube.network.inject(7, 0, 1, 4000));
  const auto endings = cube.drain();
  REQUIRE(endings.size() == 8);
  CHECK(endings.back().cycle < 2 * cycles_of(1, 4000));  // none waited for another one
  for (std::uint32_t way = 0; way < 7; ++way) CHECK(cube.network.counters(0, way).blocked == 0);
}

TEST_CASE("a destination that takes nothing stops its source and loses nothing", "[dcm]") {
  for (const std::uint32_t to : {1u, 15u}) {
    Pair pair(4, {});
    pair.stall(to, kNever);
    pair.inject(0, to, 4000, true);
    pair.advance(3000);
    const CircuitCounters sink = pair.network.counters(to, kNode), first = pair.network.counters(0, 0);
    CHECK(sink.throttles == 1);
    CHECK(first.throttles == 1);
    CHECK(sink.words >= Parameters{}.stop_at);
    CHECK(sink.words <= Parameters{}.fifo_words);  // what was in flight has found room
    CHECK(first.words + 1 == sink.words);          // and no bit stayed on a channel
    CHECK(first.held_cycles > 2900);
    pair.stall(to, 0);
    pair.drain();
    CHECK(pair.endings().size() == 1);
  }
}

TEST_CASE("channels are free as the tail passes, while the destination still takes", "[dcm]") {
  Pair pair(3, {});
  pair.stall(7, kNever);
  pair.inject(0, 7, 40, true);  // fits into the FIFO
  pair.advance(400);
  CHECK(pair.endings().empty());
  for (const auto& [router, way] : {std::pair{0u, 0u}, {1u, 1u}, {3u, 2u}}) {
    const std::uint64_t held = pair.network.counters(router, way).held_cycles;
    CHECK(held < 300);
  }
  pair.inject(0, 1, 0, true);  // the first of these channels again
  pair.advance(200);
  CHECK(pair.endings().size() == 1);
  CHECK(std::string(pair.reference.state(0, kNode)) == "Idle");
  pair.stall(7, 0);
  pair.drain();
  CHECK(pair.endings().size() == 2);
}

TEST_CASE("what is on a channel that dies is lost, and other ways do not change", "[dcm]") {
  Pair pair(3, {});
  pair.inject(0, 7, 4000, true);
  pair.inject(4, 5, 4000, true);
  pair.advance(300);
  pair.set_channel(3, 2, false);
  REQUIRE(pair.reference.endings().size() == 1);
  CHECK_FALSE(pair.endings()[0].delivered);
  CHECK(pair.endings()[0].node == 0);
  CHECK_FALSE(pair.network.reaches(0, 7));
  CHECK(pair.network.reaches(1, 5));
  CHECK(pair.network.reaches(7, 0));
  CHECK_FALSE(pair.network.reaches(6, 3));
  pair.inject(0, 7, 10, true);  // finds the channel down when its probe gets there
  pair.drain();
  CHECK(pair.endings().size() == 3);
  CHECK(pair.network.counters(3, 2).lost == 1);
  CHECK(pair.network.balance().lost > 0);
  pair.set_channel(7, 2, true);
  CHECK(pair.network.reaches(0, 7));
  pair.inject(0, 7, 10, true);
  pair.drain();
  CHECK(pair.endings().back().delivered);
}

TEST_CASE("a node, a gateway or a router that dies takes its messages along", "[dcm]") {
  Pair pair(2, {});
  pair.set_channel(1, kNode, false);
  CHECK_FALSE(pair.network.reaches(1, 0));
  CHECK_FALSE(pair.network.reaches(0, 1));
  CHECK(pair.network.reaches(0, 3));  // its router works
  CHECK(pair.network.reaches(0, 4 + 1));
  pair.set_router(1, false);
  CHECK_FALSE(pair.network.reaches(0, 3));
  CHECK(pair.network.reaches(3, 0));  // channel 0 first: by router 2
  pair.set_router(1, true);
  CHECK_FALSE(pair.network.reaches(0, 1));
  pair.set_channel(1, kNode, true);
  CHECK(pair.network.reaches(0, 1));
  CHECK_FALSE(pair.network.inject(Pair::kFrames, 0, 1, 0));
  CHECK_FALSE(pair.network.inject(0, 1, 1, 0));
  CHECK_FALSE(pair.network.inject(0, 0, 8, 0));
}

TEST_CASE("a frame that goes on with a message is spared the software", "[dcm]") {
  Parameters p;
  p.send_cycles = 1000, p.receive_cycles = 500;
  CHECK(cycles_of(1, 0, p) == cycles_of(1, 0) + 1500);
  Cube cube(1, p);
  REQUIRE(cube.network.inject(0, 0, 1, 0));
  REQUIRE(cube.network.inject(1, 0, 1, 0, false));
  const auto endings = cube.drain();
  CHECK(endings[1].cycle - endings[0].cycle < 100);
}

TEST_CASE("parameters that cannot work are refused", "[dcm]") {
  const auto why = [](Parameters p) { return check(p).error().what; };
  CHECK(check(Parameters{}).has_value());
  CHECK_THAT(why({.fifo_words = 32 + headroom(1) - 1}), Catch::Contains("can overflow"));
  CHECK_THAT(why({.stop_at = 19, .go_at = 16}), Catch::Contains("go=16"));
  CHECK_THAT(why({.hop_cycles = 5}), Catch::Contains("1 to 4"));
  CHECK_THAT(why({.dma_cycles = 6}), Catch::Contains("keep up"));
  CHECK_THAT(why({.fifo_words = 5000}), Catch::Contains("4096"));
  CHECK_THAT(why({.route_cycles = 1u << 30}), Catch::Contains("no step"));
  ArenaMemory memory(Network::bytes(2, 2));
  CHECK_FALSE(Network::attach(memory.get(), memory.size()).has_value());  // nothing there
  CHECK_FALSE(Network::attach(memory.get(), 8).has_value());
  REQUIRE(Network::create(memory.get(), 2, {}, 2).has_value());
  CHECK(Network::attach(memory.get(), memory.size()).has_value());
  CHECK_THAT(Network::attach(memory.get(), 1024).error().what, Catch::Contains("1024 are mapped"));
  CHECK_FALSE(Network::create(memory.get(), 8, {}, 2).has_value());
}

TEST_CASE("a network of routers whose memory others write into stays within it", "[dcm]") {
  property("bytes anywhere", [](Draw& draw) {
    Cube cube(2, {}, 8);
    auto* bytes = reinterpret_cast<unsigned char*>(cube.memory.get());
    while (draw.more()) {
      for (std::uint32_t n = draw.below(12); n != 0; --n) {
        const std::uint32_t at = draw.any();
        const std::uint64_t value = draw.one_in(2) ? draw.below(4) : std::uint64_t{draw.any()} << draw.below(40);
        std::memcpy(bytes + at % (cube.memory.size() - 8) / 4 * 4, &value, draw.one_in(2) ? 8 : 1);
      }
      cube.network.inject(draw.below(8), draw.below(8), draw.below(8), draw.below(100));
      if (draw.one_in(4)) cube.network.set_channel(draw.below(4), draw.below(kWays), draw.one_in(2));
      if (draw.one_in(8)) cube.network.set_router(draw.below(4), draw.one_in(2));
      if (draw.one_in(4)) cube.network.stall(draw.below(8), draw.below(100));
      std::vector<Ending> endings(4);
      const std::size_t n =
          cube.network.run(200, endings, draw.one_in(2) ? cube.network.now() + draw.below(100) : kNever);
      for (std::size_t i = 0; i < n; ++i) must(endings[i].frame < 8 && endings[i].node < 8, "an ending of nowhere");
      cube.network.counters(draw.below(4), draw.below(kWays));
      cube.network.balance();
    }
  });
}
