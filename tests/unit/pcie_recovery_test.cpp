// Somebody goes on where a process died that held the engine: each frame arrives once, wherever it was.
#include <sys/wait.h>
#include <unistd.h>

#include <deque>

#include "fabric/engine/host.hpp"
#include "pattern.hpp"
#include "property.hpp"
#include "transport/emulated/transport.hpp"

using namespace ulfm;
using namespace ulfm::fabric;

namespace {

struct RelayProcess {
  FabricEngine* engine = nullptr;
  std::unique_ptr<Transport> transport;
  std::unique_ptr<Inlet> inlet;
  PortCounters counters;
};

/// Two processes on two boards. The engine is `held` by a process that is none, so that nothing moves.
struct Machine {
  Machine() : host(std::move(FabricHost::create({"pcie", "boards:2x1", 2}).value())) {
    for (std::uint32_t p = 0; p < 2; ++p) {
      RelayProcess& process = all.emplace_back();
      auto engine = FabricEngine::join_as(FabricArena::attach(host.arena().address()), p);
      REQUIRE(engine);
      process.engine = engine->get();
      process.transport = emulated::on(std::move(*engine));
      process.inlet = std::move(process.transport->open(3, {}).value());
    }
    outlet = std::move(all[0].transport->connect(all[1].transport->card(), 3, 3, {}, all[0].counters).value());
  }
  ArenaHeader& header() { return host.arena().header(); }
  void hold() { header().holder.store(kEngineProcess + 1); }
  bool resume() { return FabricEngine::over(FabricArena::attach(host.arena().address())).value()->resume(); }
  void push(std::uint32_t seed) {
    std::byte bytes[40];
    test::fill(bytes, seed);
    const iovec piece{bytes, sizeof bytes};
    Gather data(std::span(&piece, 1));
    REQUIRE(outlet->push(Kind::first, {}, data, sizeof bytes));
  }
  /// The frames that come, which must be `first` and those behind it.
  std::uint32_t arrivals(std::uint32_t first) {
    std::uint32_t count = 0;
    Frame frame;
    for (int turn = 0; turn < 1000; ++turn)
      if (all[1].inlet->next(frame)) {
        CHECK(frame.data[0] == test::pattern(first + count, 0));
        CHECK(frame.data[39] == test::pattern(first + count, 39));
        all[1].inlet->release(frame);
        ++count;
      }
    return count;
  }
  Endpoint& sender() { return host.arena().endpoint(all[0].engine->self()); }
  std::uint32_t slot_of(std::uint32_t position) {
    return host.arena().sending_queue(all[0].engine->self())[position & (host.arena().sizes().slots - 1)] & kSlotMask;
  }

  FabricHost host;
  std::deque<RelayProcess> all;
  std::unique_ptr<Outlet> outlet;
};

}  // namespace

TEST_CASE("who dies between two stores of the engine loses and doubles nothing", "[pcie][recovery]") {
  Machine m;
  m.push(0);
  REQUIRE(m.arrivals(0) == 1);
  const std::uint32_t taken = m.sender().taken;
  InHand& in_hand = m.header().in_hand;
  SECTION("with nothing in hand") {
    m.hold();
    m.push(1);
  }
  SECTION("before it has counted a slot as taken") {
    m.hold();
    m.push(1);
    in_hand.slot = m.slot_of(taken), in_hand.endpoint = m.all[0].engine->self(), in_hand.taken = taken;
    in_hand.what = InHand::taking;
  }
  SECTION("after it has counted a slot as taken, and before it is in the model") {
    m.hold();
    m.push(1);
    in_hand.slot = m.slot_of(taken), in_hand.endpoint = m.all[0].engine->self(), in_hand.taken = taken;
    in_hand.what = InHand::taking;
    m.sender().taken = taken + 1;
  }
  SECTION("when the model has it, and nothing is counted") {
    m.hold();
    m.push(1);
    const std::uint32_t slot = m.slot_of(taken);
    in_hand.slot = slot, in_hand.endpoint = m.all[0].engine->self(), in_hand.taken = taken;
    in_hand.what = InHand::taking;
    REQUIRE(m.all[0].engine->model().inject_between({0, 1, 3}, slot, 0, 1, 40));
  }
  SECTION("with an entry in the box that is not counted") {
    m.push(1);  // it is in the box now
    PortBox& box = m.host.arena().box(m.all[1].engine->self(), 3);
    m.hold();
    in_hand.slot = m.slot_of(taken), in_hand.to = m.all[1].engine->self(), in_hand.port = 3;
    in_hand.delivered = --box.delivered;
    in_hand.what = InHand::delivering;
  }
  SECTION("with an entry in the box that is counted") {
    m.push(1);
    const PortBox& box = m.host.arena().box(m.all[1].engine->self(), 3);
    m.hold();
    in_hand.slot = m.slot_of(taken), in_hand.to = m.all[1].engine->self(), in_hand.port = 3;
    in_hand.delivered = box.delivered - 1;
    in_hand.what = InHand::delivering;
  }
  REQUIRE(m.resume());
  CHECK(m.header().recoveries == 1);
  CHECK(m.arrivals(1) == 1);
  for (std::uint32_t i = 2; i < 200; ++i) {  // more than there are slots
    m.push(i);
    REQUIRE(m.arrivals(i) == 1);
  }
}

TEST_CASE("a rank that dies with the engine is followed by whoever waits", "[pcie][recovery]") {
  Machine m;
  const pid_t child = fork();
  if (child == 0) {
    auto engine = FabricEngine::join_as(FabricArena::attach(m.host.arena().address()), 0);
    if (engine) m.header().holder.store((*engine)->self() + 1);
    _exit(engine ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  m.push(0);
  CHECK(m.arrivals(0) == 0);
  CHECK(m.all[1].engine->why_broken() == "");
  CHECK(m.arrivals(0) == 1);
  CHECK(m.header().recoveries == 1);
}

TEST_CASE("an arena whose journal makes no sense is not gone on with", "[pcie][recovery]") {
  Machine m;
  m.hold();
  const std::uint32_t nonsense = 0xffffffff;
  std::memcpy(m.host.arena().model() + 128, &nonsense, sizeof nonsense);  // it begins in the model's third line
  CHECK_FALSE(m.resume());
  CHECK(m.header().broken == kEngineProcess + 1);
}
