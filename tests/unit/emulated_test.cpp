// The transport over emulated interconnects and the engine behind it, with several of its processes in this one.
#include "transport/emulated/transport.hpp"

#include <unistd.h>

#include <deque>

#include "child.hpp"
#include "fabric/engine/host.hpp"
#include "pattern.hpp"
#include "property.hpp"
#include "transport/emulated/card.hpp"

using namespace ulfm;

namespace {

constexpr InletOptions kAny{};

struct Process {
  fabric::FabricEngine* engine;
  std::unique_ptr<Transport> transport;
  std::unique_ptr<Inlet> inlet;
  PortCounters counters;
};

struct Machine {
  explicit Machine(std::uint32_t processes, const std::string& transport = "xswitch",
                   const std::string& topology = "single:4", const std::string& faults = "")
      : host(std::move(fabric::FabricHost::create({transport, topology, processes, faults}).value())) {
    for (std::uint32_t p = 0; p < processes; ++p) {
      all.emplace_back();
      start(p);
    }
  }
  void start(std::uint32_t p) {
    auto engine = fabric::FabricEngine::join_as(fabric::FabricArena::attach(host.arena().address()), p);
    REQUIRE(engine);
    all[p].engine = engine->get();
    all[p].transport = emulated::on(std::move(*engine));
    all[p].inlet = std::move(all[p].transport->open(3, kAny).value());
  }
  std::unique_ptr<Outlet> connect(std::uint32_t from, std::uint32_t to, const std::string& hello = "") {
    auto outlet = all[from].transport->connect(
        all[to].transport->card(), 3, 3, std::as_bytes(std::span(hello.data(), hello.size())), all[from].counters);
    REQUIRE(outlet);
    return std::move(*outlet);
  }
  bool next(std::uint32_t p, Frame& frame) {
    for (int turn = 0; turn < 1000; ++turn)
      if (all[p].inlet->next(frame)) return true;
    return false;
  }
  std::uint32_t slots_in_use() {
    std::uint32_t used = 0;
    fabric::FabricArena& arena = all[0].engine->arena();
    for (std::uint32_t s = 0; s < arena.sizes().slots * static_cast<std::uint32_t>(all.size()); ++s)
      if (arena.slot(s).state.load() != fabric::SlotState::free) ++used;
    return used;
  }

  fabric::FabricHost host;
  std::deque<Process> all;
};

bool push(Outlet& outlet, std::uint32_t seed, std::size_t header, std::size_t length) {
  std::vector<std::byte> bytes(header + length);
  test::fill(bytes, seed);
  const iovec piece{bytes.data() + header, length};
  Gather data(std::span(&piece, 1));
  return outlet.push(Kind::first, std::span(bytes).first(header), data, length);
}

bool is_intact(const Frame& frame, std::uint32_t seed, std::size_t header, std::size_t length) {
  if (frame.header_length != header || frame.length != length) return false;
  for (std::size_t i = 0; i < header; ++i)
    if (frame.header[i] != test::pattern(seed, i)) return false;
  for (std::size_t i = 0; i < length; ++i)
    if (frame.data[i] != test::pattern(seed, header + i)) return false;
  return true;
}

/// Others come until one has got the place of a process that has died.
std::vector<std::unique_ptr<fabric::FabricEngine>> take_place(Machine& machine, std::uint32_t endpoint) {
  std::vector<std::unique_ptr<fabric::FabricEngine>> others;
  do {
    auto engine = fabric::FabricEngine::join_as(fabric::FabricArena::attach(machine.host.arena().address()), 1);
    REQUIRE(engine);
    others.push_back(std::move(*engine));
  } while (others.back()->self() != endpoint);
  return others;
}

}  // namespace

TEST_CASE("frames of all lengths cross an emulated interconnect", "[emulated]") {
  Machine machine(2);
  auto outlet = machine.connect(0, 1, "who I am");
  std::uint32_t seed = 0;
  for (const std::size_t header : {0, 1, 8, 40, 255})
    for (const std::size_t length : {0, 1, 24, 32, 33, 64, 2047, 2048, 2049, 7900}) {
      INFO(header << " + " << length);
      REQUIRE(push(*outlet, ++seed, header, length));
      Frame frame;
      REQUIRE(machine.next(1, frame));
      CHECK(is_intact(frame, seed, header, length));
      CHECK(frame.fresh == (seed == 1));
      machine.all[1].inlet->release(frame);
    }
  const OriginInfo origin = machine.all[1].inlet->origin(0);
  CHECK(origin.card == machine.all[0].transport->card());
  CHECK(origin.port == 3);
  CHECK(origin.process == ProcessId{.number = getpid()});
  CHECK(std::string(reinterpret_cast<const char*>(origin.hello.data()), origin.hello.size()) == "who I am");
  CHECK(machine.slots_in_use() == 0);
}

TEST_CASE("a sender without slots is told so, and goes on when some come back", "[emulated]") {
  Machine machine(3);
  auto slow = machine.connect(0, 1);
  auto other = machine.connect(0, 2);
  std::uint32_t sent = 0;
  while (sent < 1000 && push(*slow, sent, 0, 100)) ++sent;
  REQUIRE(sent < 1000);
  CHECK(machine.all[0].counters.full.get() == 1);
  SECTION("another destination is not held up") { CHECK(push(*other, 1, 0, 100)); }
  SECTION("what was taken comes, in order") {
    Frame frame;
    for (std::uint32_t i = 0; i < sent; ++i) {
      REQUIRE(machine.next(1, frame));
      CHECK(is_intact(frame, i, 0, 100));
      machine.all[1].inlet->release(frame);
    }
    CHECK(push(*slow, 1, 0, 100));
  }
}

TEST_CASE("nothing is delivered to a port that is not open, nor to a later one of that number", "[emulated]") {
  Machine machine(2);
  auto outlet = machine.connect(0, 1);
  machine.all[1].inlet.reset();
  CHECK(outlet->port_closed());
  CHECK_FALSE(outlet->peer_listening());
  push(*outlet, 1, 0, 10);
  machine.all[0].engine->step();
  CHECK(machine.host.arena().header().refused.load() == 1);
  CHECK_FALSE(machine.all[0].transport->connect(machine.all[1].transport->card(), 3, 3, {}, machine.all[0].counters));
  machine.all[1].inlet = std::move(machine.all[1].transport->open(3, kAny).value());
  push(*outlet, 2, 0, 10);
  Frame frame;
  CHECK_FALSE(machine.next(1, frame));
  auto anew = machine.connect(0, 1);
  push(*anew, 3, 0, 10);
  REQUIRE(machine.next(1, frame));
  CHECK(is_intact(frame, 3, 0, 10));
  machine.all[1].inlet->release(frame);
  CHECK(machine.slots_in_use() == 0);
}

TEST_CASE("who has closed its port counts as listening until what it sent here has come", "[emulated]") {
  Machine machine(3, "dcm,pace=ipsc2", "cube:2");  // a frame takes 300 microseconds and more
  auto there = machine.connect(0, 1), elsewhere = machine.connect(2, 1);
  auto back = machine.connect(1, 0);
  REQUIRE(push(*back, 1, 0, 1000));
  machine.all[1].inlet.reset();
  CHECK(there->port_closed());
  CHECK(there->peer_listening());
  CHECK_FALSE(elsewhere->peer_listening());  // nothing is on its way to that process
  Frame frame;
  while (!machine.all[0].inlet->next(frame)) {
  }
  CHECK(is_intact(frame, 1, 0, 1000));
  CHECK_FALSE(there->peer_listening());
}

TEST_CASE("what lies in a box when its port closes goes back to its senders", "[emulated]") {
  Machine machine(2);
  auto outlet = machine.connect(0, 1);
  for (std::uint32_t i = 0; i < 10; ++i) push(*outlet, i, 0, 10);
  machine.all[0].engine->step();
  CHECK(machine.slots_in_use() == 10);
  machine.all[1].inlet.reset();
  CHECK(machine.slots_in_use() == 0);
}

TEST_CASE("connections that nobody has met leave nothing behind", "[emulated]") {
  Machine machine(2);
  const std::uint32_t all = machine.host.arena().sizes().records;
  const auto sends = GENERATE(false, true);
  for (std::uint32_t i = 0; i < all + 10; ++i) {
    auto outlet =
        machine.all[0].transport->connect(machine.all[1].transport->card(), 3, 3, {}, machine.all[0].counters);
    REQUIRE(outlet);
    if (!sends) continue;
    // The first frame is unread when its port closes.
    REQUIRE(push(**outlet, i, 0, 10));
    machine.all[0].engine->step();
    machine.all[1].inlet.reset();
    machine.all[1].inlet = std::move(machine.all[1].transport->open(3, kAny).value());
  }
  CHECK(machine.host.arena().header().records_used.load() < 10);  // none was found only when there was no other
}

TEST_CASE("when all connections are in use, those go to others that nobody will meet or forget", "[emulated]") {
  Machine machine(2, "xswitch", "chain:2", "link 0-1 down at 0s");
  const auto start_far_away = [&] {
    machine.all[1].inlet.reset();
    machine.all[1].transport.reset();
    machine.host.arena().header().node_of[1] = machine.host.arena().sizes().nodes - 1;
    machine.start(1);
  };
  start_far_away();
  const std::uint32_t all = machine.host.arena().sizes().records;
  // Lost on the way: its receiver does not meet the connection, and its sender does not know.
  const auto connect_and_lose = [&] {
    auto outlet =
        machine.all[0].transport->connect(machine.all[1].transport->card(), 3, 3, {}, machine.all[0].counters);
    if (!outlet) return outlet.error().code;
    REQUIRE(push(**outlet, 1, 0, 10));
    machine.all[0].engine->step();
    return Errc::ok;
  };
  for (std::uint32_t i = 0; i < all; ++i) REQUIRE(connect_and_lose() == Errc::ok);
  CHECK(connect_and_lose() == Errc::full);
  CHECK(machine.all[0].engine->statistics().find("lost") != std::string::npos);
  SECTION("of a port that has closed") {
    machine.all[1].inlet.reset();
    machine.all[1].inlet = std::move(machine.all[1].transport->open(3, kAny).value());
  }
  SECTION("of a process that has ended") { start_far_away(); }
  for (std::uint32_t i = 0; i < all; ++i) REQUIRE(connect_and_lose() == Errc::ok);
  CHECK(connect_and_lose() == Errc::full);
}

TEST_CASE("the connections that a killed process had met go to others", "[emulated]") {
  Machine machine(2);
  const std::uint32_t all = machine.host.arena().sizes().records;
  test::Child child([&](test::Pipe& pipe) {
    machine.all.emplace_back();
    machine.start(2);
    pipe.send(machine.all[2].transport->card());
    Frame frame;
    for (std::uint32_t met = 0; met < all;) {
      if (!machine.all[2].inlet->next(frame)) continue;
      machine.all[2].inlet->release(frame);
      ++met;
    }
    pipe.send("all");
    pipe.receive();
  });
  const std::string card = child.pipe().receive();
  std::vector<std::unique_ptr<Outlet>> outlets;
  for (std::uint32_t i = 0; i < all; ++i) {
    auto outlet = machine.all[0].transport->connect(card, 3, 3, {}, machine.all[0].counters);
    REQUIRE(outlet);
    while (!push(**outlet, i, 0, 10)) machine.all[0].engine->step();
    machine.all[0].engine->step();
    outlets.push_back(std::move(*outlet));
  }
  REQUIRE(child.pipe().receive() == "all");
  const auto anew = [&] {
    return machine.all[0].transport->connect(machine.all[1].transport->card(), 3, 3, {}, machine.all[0].counters);
  };
  CHECK(anew().error().code == Errc::full);
  child.kill();
  CHECK(anew());
  // Its senders know that it has died, and do not take it for one that has closed its port.
  for (const auto& outlet : outlets) {
    CHECK_FALSE(outlet->peer_listening());
    CHECK_FALSE(outlet->port_closed());
  }
}

TEST_CASE("a sender that writes nonsense is cut off, others are not", "[emulated]") {
  Machine machine(3);
  auto bad = machine.connect(0, 2);
  auto good = machine.connect(1, 2);
  fabric::FabricEngine& engine = *machine.all[0].engine;
  push(*bad, 1, 0, 10);
  Frame frame;
  REQUIRE(machine.next(2, frame));
  machine.all[2].inlet->release(frame);
  const std::uint32_t origin = frame.origin;
  // What the process itself would do: the same slot again with an impossible length or kind.
  fabric::Slot& slot = engine.arena().slot(static_cast<std::uint32_t>(frame.position));
  SECTION("length, stopped by the card") {
    slot.length = 1u << 30;
    engine.submit(static_cast<std::uint32_t>(frame.position));
    CHECK_FALSE(machine.next(2, frame));
    CHECK(machine.host.arena().header().refused.load() == 1);
  }
  SECTION("kind, stopped by the receiver") {
    slot.kind = 77;
    engine.submit(static_cast<std::uint32_t>(frame.position));
    CHECK_FALSE(machine.next(2, frame));
    CHECK(machine.all[2].inlet->take_broken() == origin);
    CHECK(machine.all[2].inlet->take_broken() == -1);
  }
  SECTION("a slot of another process") {
    engine.submit(machine.all[1].engine->self() * engine.arena().sizes().slots);
    CHECK_FALSE(machine.next(2, frame));
  }
  push(*good, 2, 0, 10);
  REQUIRE(machine.next(2, frame));
  CHECK(is_intact(frame, 2, 0, 10));
}

TEST_CASE("endpoints are used again when their process has left", "[emulated]") {
  Machine machine(2);
  const std::uint32_t all = machine.host.arena().sizes().endpoints;
  for (std::uint32_t i = 0; i < all; ++i) {
    machine.all[1].inlet.reset();
    machine.all[1].transport.reset();
    machine.start(1);
    auto outlet = machine.connect(0, 1);
    REQUIRE(push(*outlet, i, 0, 50));
    Frame frame;
    REQUIRE(machine.next(1, frame));
    CHECK(is_intact(frame, i, 0, 50));
    machine.all[1].inlet->release(frame);
  }
}

TEST_CASE("a death is told also when the endpoint has gone to another process", "[emulated]") {
  Machine machine(2);
  const std::uint32_t all = machine.host.arena().sizes().endpoints;
  test::Child child([&](test::Pipe& pipe) {
    machine.all.emplace_back();
    machine.start(2);
    auto outlet = machine.connect(2, 0);
    pipe.send(push(*outlet, 5, 0, 50) ? std::to_string(machine.all[2].engine->self()) : "full");
    pipe.receive();
  });
  const auto endpoint = static_cast<std::uint32_t>(std::stoul(child.pipe().receive()));
  Frame frame;
  REQUIRE(machine.next(0, frame));
  CHECK(is_intact(frame, 5, 0, 50));
  const std::uint32_t origin = frame.origin;
  machine.all[0].inlet->release(frame);
  child.kill();
  const auto others = take_place(machine, endpoint);
  CHECK(others.size() == all - 2);
  std::int64_t dead = -1;
  for (int i = 0; i < 4 && dead < 0; ++i) dead = machine.all[0].inlet->find_dead();
  CHECK(dead == origin);
}

TEST_CASE("what a dead process has not read comes back when another one has its endpoint", "[emulated]") {
  const auto [transport, topology] =
      GENERATE(std::pair("xswitch", "single:4"), std::pair("dcm", "cube:2"), std::pair("pcie", "boards:4x1"));
  INFO(transport);
  Machine machine(4, transport, topology);
  test::Child child([&](test::Pipe& pipe) {
    machine.all.emplace_back();
    machine.start(4);
    pipe.send(std::to_string(machine.all[4].engine->self()));
    pipe.send(machine.all[4].transport->card());
    pipe.receive();
  });
  const auto endpoint = static_cast<std::uint32_t>(std::stoul(child.pipe().receive()));
  const std::string card = child.pipe().receive();
  Process& sender = machine.all[1];
  for (int half = 0; half < 2; ++half) {  // a connection gets half of the slots
    auto outlet = sender.transport->connect(card, 3, 3, {}, sender.counters);
    REQUIRE(outlet);
    while (push(**outlet, 1, 0, 50)) {
    }
  }
  auto living = machine.connect(1, 2);
  Frame frame;
  CHECK_FALSE(machine.next(1, frame));  // what was sent is in its box, or waits for room there
  CHECK_FALSE(push(*living, 2, 0, 50));
  child.kill();
  const auto others = take_place(machine, endpoint);
  CHECK_FALSE(push(*living, 2, 0, 50));
  bool sent = false;
  for (int look = 0; look < 1000 && machine.slots_in_use() > (sent ? 1 : 0); ++look) {
    sender.inlet->find_dead();
    CHECK_FALSE(machine.next(1, frame));
    sent = sent || push(*living, 2, 0, 50);
  }
  REQUIRE(sent);
  REQUIRE(machine.next(2, frame));
  CHECK(is_intact(frame, 2, 0, 50));
  machine.all[2].inlet->release(frame);
}

TEST_CASE("the endpoint of one who died while it moved the network is not used again", "[emulated]") {
  Machine machine(2);
  const std::uint32_t all = machine.host.arena().sizes().endpoints;
  test::Child child([&](test::Pipe& pipe) {
    machine.all.emplace_back();
    machine.start(2);
    machine.host.arena().header().holder.store(machine.all[2].engine->self() + 1);
    pipe.send(std::to_string(machine.all[2].engine->self()));
    pipe.receive();
  });
  const auto endpoint = static_cast<std::uint32_t>(std::stoul(child.pipe().receive()));
  child.kill();
  std::vector<std::unique_ptr<fabric::FabricEngine>> others;
  for (std::uint32_t i = 0; i < all; ++i) {
    auto engine = fabric::FabricEngine::join_as(fabric::FabricArena::attach(machine.host.arena().address()), 1);
    if (!engine) break;
    CHECK((*engine)->self() != endpoint);
    others.push_back(std::move(*engine));
  }
  CHECK(others.size() == all - 3);
  CHECK_FALSE(machine.all[0].inlet->why_broken().empty());
  machine.host.arena().header().holder.store(0);
}

TEST_CASE("a sender whose connection is dropped is told", "[emulated]") {
  Machine machine(2);
  auto outlet = machine.connect(0, 1);
  REQUIRE(push(*outlet, 1, 0, 50));
  Frame frame;
  REQUIRE(machine.next(1, frame));
  machine.all[1].inlet->release(frame);
  CHECK_FALSE(outlet->cut_off());
  machine.all[1].inlet->drop_origin(frame.origin);
  CHECK(outlet->cut_off());
  CHECK(outlet->port_closed());
  auto again = machine.connect(0, 1);
  REQUIRE(push(*outlet, 2, 0, 50));  // nobody's
  REQUIRE(push(*again, 3, 0, 50));
  REQUIRE(machine.next(1, frame));
  CHECK(frame.fresh);
  CHECK(is_intact(frame, 3, 0, 50));
  machine.all[1].inlet->release(frame);
}

TEST_CASE("the cards that processes have shown are found by job and rank", "[emulated]") {
  Machine m(3);
  const Transport& any = *m.all[0].transport;
  CHECK(any.card_of("kvs_1", 2).empty());
  for (std::uint32_t p = 0; p < 3; ++p)
    m.all[p].transport->introduce("kvs_1", 2 - p, m.all[p].transport->card() + "+key");
  for (std::uint32_t p = 0; p < 3; ++p) CHECK(any.card_of("kvs_1", 2 - p) == m.all[p].transport->card() + "+key");
  CHECK(any.card_of("kvs_1", 3).empty());
  CHECK(any.card_of("kvs_2", 2).empty());
  // Who has left is looked for in vain, and who comes in its place is somebody else.
  m.all[1].inlet.reset();
  m.all[1].transport.reset();
  CHECK(any.card_of("kvs_1", 1).empty());
  m.start(1);
  CHECK(any.card_of("kvs_1", 1).empty());
  m.all[1].transport->introduce("kvs_2", 2, std::string(fabric::kCardBytes, 'x'));  // has no room
  CHECK(any.card_of("kvs_2", 2).empty());
}

TEST_CASE("a process that dies while it moves the network is found out", "[emulated]") {
  Machine machine(2);
  test::Child child([&](test::Pipe& pipe) {
    auto engine = fabric::FabricEngine::join_as(fabric::FabricArena::attach(machine.host.arena().address()), 1);
    engine.value()->arena().header().holder.store(engine.value()->self() + 1);
    pipe.send("has it");
    pipe.receive();
  });
  REQUIRE(child.pipe().receive() == "has it");
  CHECK(machine.all[0].inlet->why_broken().empty());
  const std::string pid = std::to_string(child.pid());
  child.kill();
  const std::string why = machine.all[0].inlet->why_broken();
  CHECK(why.find("process " + pid + " died") != std::string::npos);
  machine.host.arena().header().holder.store(0);
}

TEST_CASE("addresses of emulated interconnects from outside are checked", "[emulated]") {
  const emulated::EmulatedCard card{1, 2, 3};
  CHECK(emulated::decode(emulated::encode(card)).value().endpoint == 2);
  for (const char* text : {"", "fabric:", "direct:00", "fabric:00000000000000010000000000000003.2x"})
    CHECK_FALSE(emulated::decode(text));
  for (const char* text : {"", "1", "1.2", "0.2.0000000000000001", "-1.2.0000000000000001", "1.2.00000000000000011"})
    CHECK_FALSE(fabric::decode_arena_address(text));
  Machine machine(2), elsewhere(2);
  CHECK_FALSE(machine.all[0].transport->connect(elsewhere.all[1].transport->card(), 3, 3, {}, machine.all[0].counters));
}

TEST_CASE("frames go round a link that is down, and are lost where there is no way", "[emulated]") {
  Frame frame;
  SECTION("another way") {
    Machine machine(4, "xswitch", "mesh:2x2", "link 0-1 down at 0s");
    auto outlet = machine.connect(0, 1);
    REQUIRE(push(*outlet, 1, 0, 100));
    REQUIRE(machine.next(1, frame));
    CHECK(is_intact(frame, 1, 0, 100));
    CHECK(machine.all[0].engine->statistics().find("port s2.") != std::string::npos);
  }
  SECTION("no way") {
    Machine machine(2, "xswitch", "chain:2", "link 0-1 down at 0s");
    machine.host.arena().header().node_of[1] = machine.host.arena().sizes().nodes - 1;
    machine.all[1].inlet.reset();
    machine.all[1].transport.reset();
    machine.start(1);
    auto outlet = machine.connect(0, 1);
    REQUIRE(push(*outlet, 1, 0, 100));
    CHECK_FALSE(machine.next(1, frame));
    CHECK(machine.host.arena().header().lost.load() == 1);
    CHECK(machine.slots_in_use() == 0);
  }
}

TEST_CASE("options and shapes that make no sense are refused with a sentence", "[emulated]") {
  const auto why = [](const std::string& transport, const std::string& topology, std::uint32_t processes) {
    auto host = fabric::FabricHost::create({transport, topology, processes});
    REQUIRE_FALSE(host);
    return host.error().what;
  };
  CHECK(why("xswitch,frame=1", "th8", 2).find("frame=1") != std::string::npos);
  CHECK(why("xswitch,frme=64", "th8", 2).find("frame=64..") != std::string::npos);
  CHECK(why("xswitch,frame=64,frame=64", "th8", 2).find("twice") != std::string::npos);
  CHECK(why("dcm", "mesh:2x2", 2).find("cube:0 to cube:7") != std::string::npos);
  CHECK(why("dcm,pace=slow", "cube:2", 2).find("pace=ipsc2") != std::string::npos);
  CHECK(why("dcm,fifo=16", "cube:2", 2).find("dcm") != std::string::npos);
  CHECK(why("dcm", "cube:0", 21).find("at most 20") != std::string::npos);
  CHECK(why("xswitch", "cube", 2).find("cube") != std::string::npos);
  CHECK(why("xswitch", "th8", 5000).find("5000") != std::string::npos);
}

TEST_CASE("random traffic between all pairs arrives once, in order, intact", "[emulated]") {
  test::property(
      "all pairs",
      [](test::Draw& draw) {
        const std::uint32_t processes = 2 + draw.below(5);
        const bool cube = draw.one_in(3), small = draw.one_in(2);
        Machine machine(processes, std::string(cube ? "dcm" : "xswitch") + (small ? ",frame=64" : ""),
                        cube             ? "cube:2"
                        : draw.one_in(2) ? "single:3"
                                         : "chain:3");
        struct Pair {
          std::unique_ptr<Outlet> outlet;
          std::deque<std::pair<std::uint32_t, std::size_t>> expected;
        };
        std::vector<Pair> pairs(processes * processes);
        std::vector<std::vector<std::uint32_t>> from(processes);  // by receiver and origin: the sender
        std::uint32_t seed = 0;
        const auto receive = [&](std::uint32_t to) {
          Frame frame;
          // Another process may be the poller: it takes some looks to take over from it.
          if (!machine.next(to, frame)) return false;
          if (frame.fresh) {
            from[to].resize(std::max<std::size_t>(from[to].size(), frame.origin + 1));
            const OriginInfo info = machine.all[to].inlet->origin(frame.origin);
            for (std::uint32_t p = 0; p < processes; ++p)
              if (machine.all[p].transport->card() == info.card) from[to][frame.origin] = p;
          }
          Pair& pair = pairs[from[to][frame.origin] * processes + to];
          test::must(!pair.expected.empty(), "a frame that nobody sent");
          const auto [s, length] = pair.expected.front();
          pair.expected.pop_front();
          test::must(is_intact(frame, s, 5, length), "a frame is not the next one of its sender");
          machine.all[to].inlet->release(frame);
          return true;
        };
        while (draw.more()) {
          const std::uint32_t a = draw.below(processes), b = draw.below(processes);
          if (draw.one_in(3)) {
            receive(b);
            continue;
          }
          Pair& pair = pairs[a * processes + b];
          if (!pair.outlet) pair.outlet = machine.connect(a, b);
          const std::size_t length = draw.below(draw.one_in(4) ? 900 : 60);
          if (push(*pair.outlet, ++seed, 5, length)) pair.expected.emplace_back(seed, length);
        }
        for (std::uint32_t to = 0; to < processes; ++to)
          while (receive(to)) {
          }
        for (const Pair& pair : pairs) test::must(pair.expected.empty(), "a frame was lost");
        test::must(machine.slots_in_use() == 0, "a slot did not come back");
      },
      3);
}

TEST_CASE("frames arrive over Direct-Connect routers, and their faults are lost", "[emulated]") {
  Frame frame;
  SECTION("frames in pieces") {
    Machine machine(4, "dcm,frame=64", "cube:2");
    for (std::uint32_t to = 1; to < 4; ++to) {
      auto outlet = machine.connect(0, to);
      for (const std::size_t length : {0u, 40u, 900u}) {
        REQUIRE(push(*outlet, to, 5, length));
        REQUIRE(machine.next(to, frame));
        CHECK(is_intact(frame, to, 5, length));
        machine.all[to].inlet->release(frame);
      }
    }
    CHECK(machine.slots_in_use() == 0);
    CHECK(machine.all[0].engine->statistics().find("dcm router 3 sink: messages") != std::string::npos);
  }
  SECTION("no way, and the way back") {
    Machine machine(4, "dcm", "cube:2", "link 0-1 down at 0s");
    auto outlet = machine.connect(0, 3), back = machine.connect(3, 0);
    REQUIRE(push(*outlet, 1, 0, 100));
    CHECK_FALSE(machine.next(3, frame));
    CHECK(machine.host.arena().header().lost.load() == 1);
    REQUIRE(push(*back, 1, 0, 100));
    CHECK(machine.next(0, frame));
  }
  SECTION("a node that is dead") {
    Machine machine(4, "dcm", "cube:2", "node 3 dead at 0s");
    auto outlet = machine.connect(0, 3);
    REQUIRE(push(*outlet, 1, 0, 100));
    CHECK_FALSE(machine.next(3, frame));
    CHECK(machine.slots_in_use() == 0);
  }
}

TEST_CASE("a paced network delivers nothing before its time, and says when to look again", "[emulated]") {
  using namespace std::chrono;
  for (const std::size_t length : {0u, 4000u}) {
    Machine machine(2, "dcm,pace=ipsc2", "cube:1");
    auto outlet = machine.connect(0, 1);
    CHECK(machine.all[1].inlet->next_deadline() == kForever);
    const auto start = steady_clock::now();
    REQUIRE(push(*outlet, 1, 0, length));
    const auto quiet = machine.all[1].inlet->next_deadline();
    CHECK(quiet < 166us);  // the software of the sender, then the probe
    Frame frame;
    // Looks as one that sleeps does: when it was told to.
    Inlet& inlet = *machine.all[1].inlet;
    while (!inlet.has_frame()) {
      inlet.wake_source().arm();
      if (!inlet.has_frame()) inlet.wake_source().sleep(std::min<nanoseconds>(inlet.next_deadline(), 1s));
      inlet.wake_source().cancel();
    }
    const auto took = steady_clock::now() - start;
    CHECK(took >= 337us + nanoseconds(length * 1'000'000 / 2800 / 1000 * 1000));
    REQUIRE(machine.next(1, frame));
    CHECK(is_intact(frame, 1, 0, length));
    machine.all[1].inlet->release(frame);
    CHECK(machine.all[1].inlet->next_deadline() == kForever);
  }
}

TEST_CASE("a network without a pace never asks to be looked at", "[emulated]") {
  for (const auto& [transport, topology] : {std::pair{"xswitch", "single:4"}, {"dcm", "cube:2"}}) {
    Machine machine(2, transport, topology);
    auto outlet = machine.connect(0, 1);
    REQUIRE(push(*outlet, 1, 0, 100));
    CHECK(machine.all[1].inlet->next_deadline() == kForever);
    CHECK(machine.host.arena().header().due.load() == 0);
  }
}

TEST_CASE("cards check the frames of noisy connections, and what the noise turned is not delivered", "[emulated]") {
  const auto units = GENERATE(1, 2, 4);
  Machine machine(2, fmt::format("xswitch,check={}", units));
  auto outlet = machine.connect(0, 1);
  REQUIRE(outlet->expect_noise());
  Frame frame;
  std::uint32_t damaged = 0;
  for (std::uint32_t i = 0; i < 40; ++i) {
    const std::size_t length = i % 2 == 0 ? 20 : 3000;  // in the slot's line, and in its body
    const std::uint64_t bits[] = {i * 3};
    if (i % 4 < 2) outlet->turn_bits(bits), ++damaged;
    REQUIRE(push(*outlet, i, 5, length));
    if (i % 4 < 2) {
      CHECK_FALSE(machine.all[1].inlet->next(frame));
    } else {
      REQUIRE(machine.next(1, frame));
      CHECK(is_intact(frame, i, 5, length));
      machine.all[1].inlet->release(frame);
    }
    CHECK(machine.host.arena().header().damaged.load() == damaged);
  }
  CHECK(machine.slots_in_use() == 0);
}

TEST_CASE("networks whose cards check nothing leave noise to what sends the frames", "[emulated]") {
  for (const auto& [transport, topology] : {std::pair{"xswitch,check=0", "single:4"}, {"dcm", "cube:2"}}) {
    Machine machine(2, transport, topology);
    CHECK_FALSE(machine.connect(0, 1)->expect_noise());
  }
}

TEST_CASE("every model counts what went through it, and the counts balance", "[emulated]") {
  const auto& [transport, topology] = GENERATE(table<std::string, std::string>({{"ideal", "single:4"},
                                                                                {"xswitch", "single:4"},
                                                                                {"dcm", "cube:2"},
                                                                                {"pcie", "boards:4x1"},
                                                                                {"pointdesign", ""}}));
  INFO(transport);
  Machine machine(4, transport, topology);
  Frame frame;
  for (std::uint32_t from = 0; from < 4; ++from)
    for (std::uint32_t to = 0; to < 4; ++to) {
      if (from == to) continue;
      auto outlet = machine.connect(from, to);
      REQUIRE(push(*outlet, from, 10, 100 * to));
      REQUIRE(machine.next(to, frame));
      machine.all[to].inlet->release(frame);
    }
  const std::string text = machine.all[2].transport->shared_statistics();
  INFO(text);
  CHECK(text.find("ulfm: stats") == 0);
  CHECK(text.find("do not balance") == std::string::npos);
  CHECK(text.back() == '\n');
  fabric::ModelCycles* const cycles = machine.all[0].engine->model().cycles();
  if (cycles == nullptr) return;
  for (const fabric::LinkUse& link : cycles->links(1000)) {
    CHECK(link.bytes > 0);
    CHECK(link.busy > 0);
    CHECK(link.from != link.to);
  }
}
