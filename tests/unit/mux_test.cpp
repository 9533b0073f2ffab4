// One transport over three: each process is reached by the first part that reaches it, origins have numbers of their
// own, and a sleep ends for a frame of any part.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <set>
#include <thread>

#include "environment.hpp"
#include "transport/decorator.hpp"
#include "transport/mux/mux.hpp"
#include "transport/registry.hpp"

using namespace ulfm;
using namespace std::chrono_literals;

namespace {

constexpr std::uint16_t kHere = 3, kThere = 4;
constexpr std::size_t kParts = 3;

/// Reaches nobody while it is shut.
class Gate final : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;
  bool reachable(std::string_view card) const override { return open_ && ForwardingTransport::reachable(card); }
  void set_open(bool open) { open_ = open; }

 private:
  bool open_ = true;
};

/// direct, tcp and ofi, in one process that sends to itself.
struct Three {
  test::Environment environment;
  std::vector<Gate*> gates;
  std::unique_ptr<Transport> mux;
  PortCounters counters;
  std::unique_ptr<Inlet> here, there;

  Three() {
    const Config config = Config::load().value();
    std::vector<std::unique_ptr<Transport>> parts;
    for (const char* name : {"direct", "tcp", "ofi"}) {
      auto gate = std::make_unique<Gate>(select_transport(name).value()->make(config).value());
      gates.push_back(gate.get());
      parts.push_back(std::move(gate));
    }
    mux = make_mux(std::move(parts)).value();
    here = mux->open(kHere, {}).value();
    there = mux->open(kThere, {}).value();
  }
  void open_only(std::size_t part) {
    for (std::size_t i = 0; i < kParts; ++i) gates[i]->set_open(i == part);
  }
  std::unique_ptr<Outlet> connect(std::size_t part, std::string_view card, std::uint16_t to, std::uint16_t from) {
    open_only(part);
    return mux->connect(card, to, from, {}, counters).value();
  }
};

void push(Outlet& outlet, std::uint32_t number) {
  const iovec piece{&number, sizeof number};
  for (;;) {
    Gather data(std::span(&piece, 1));
    if (outlet.push(Kind::first, {}, data, sizeof number)) return;
    std::this_thread::yield();
  }
}

/// The next frame, slept for; false when a sleep of 20 seconds ended without one.
bool sleep_for_frame(Inlet& inlet, Frame& frame) {
  WakeSource& source = inlet.wake_source();
  while (!inlet.next(frame)) {
    source.arm();
    if (inlet.has_frame()) source.cancel();
    else if (!source.sleep(20s) && !inlet.has_frame()) return false;
  }
  return true;
}

std::uint32_t number_in(const Frame& frame) {
  std::uint32_t number = 0;
  REQUIRE(frame.length == sizeof number);
  std::memcpy(&number, frame.data, sizeof number);
  return number;
}

}  // namespace

TEST_CASE("mux: three parts carry to one port, each with origins of its own", "[mux]") {
  if (!select_transport("ofi").value()->unavailable().empty()) return;
  Three three;
  std::vector<std::unique_ptr<Outlet>> outlets;
  for (std::size_t part = 0; part < kParts; ++part)
    outlets.push_back(three.connect(part, three.mux->card(), kThere, kHere));
  std::set<std::uint32_t> origins;
  for (std::uint32_t part = 0; part < kParts; ++part) {
    for (std::uint32_t i = 0; i < 100; ++i) {
      push(*outlets[part], 1000 * part + i);
      Frame frame;
      REQUIRE(sleep_for_frame(*three.there, frame));
      CHECK(number_in(frame) == 1000 * part + i);
      if (i == 0) CHECK(origins.insert(frame.origin).second);
      CHECK(origins.contains(frame.origin));
      three.there->release(frame);
    }
  }
  // The card of each origin leads back, by the same part.
  std::uint32_t part = 0;
  std::vector<std::uint32_t> by_part(origins.begin(), origins.end());
  std::sort(by_part.begin(), by_part.end(), [](auto a, auto b) { return a % 4 < b % 4; });
  for (const std::uint32_t origin : by_part) {
    const OriginInfo info = three.there->origin(origin);
    CHECK(info.port == kHere);
    auto back = three.connect(part++, info.card, kHere, kThere);
    push(*back, origin);
    Frame frame;
    REQUIRE(sleep_for_frame(*three.here, frame));
    CHECK(number_in(frame) == origin);
    three.here->release(frame);
  }
}

TEST_CASE("mux: a sleep ends for a frame of any part", "[mux]") {
  if (!select_transport("ofi").value()->unavailable().empty()) return;
  Three three;
  for (std::size_t part = 0; part < kParts; ++part) {
    auto outlet = three.connect(part, three.mux->card(), kThere, kHere);
    for (std::uint32_t i = 0; i < 20; ++i) {
      std::thread sender([&] { push(*outlet, i); });
      Frame frame;
      const bool came = sleep_for_frame(*three.there, frame);
      sender.join();
      REQUIRE(came);
      CHECK(number_in(frame) == i);
      three.there->release(frame);
    }
  }
}

// Each end of a watch rings.
TEST_CASE("mux: a ring ends one sleep, and not the ones behind it", "[mux]") {
  if (!select_transport("ofi").value()->unavailable().empty()) return;
  Three three;
  WakeSource& source = three.there->wake_source();
  source.watch();
  source.end_watch();
  int short_ones = 0;
  for (; short_ones < 10; ++short_ones) {
    source.arm();
    REQUIRE_FALSE(three.there->has_frame());
    const bool was_rung = source.sleep(200ms);
    source.cancel();
    if (!was_rung) break;
  }
  CHECK(short_ones < 10);
}

TEST_CASE("mux: who looks once at a time sees the first part beside others that are asked too", "[mux]") {
  if (!select_transport("ofi").value()->unavailable().empty()) return;
  Three three;
  const auto outlet = three.connect(0, three.mux->card(), kThere, kHere);
  for (std::uint32_t number = 0; number < 3; ++number) {  // the others have given nothing few times only
    push(*outlet, number);
    CHECK((number == 0 || three.there->spin(1)));  // from the second on its lane is known
    Frame frame;
    REQUIRE(sleep_for_frame(*three.there, frame));
    CHECK(number_in(frame) == number);
    three.there->release(frame);
  }
}

TEST_CASE("mux: a process that no part reaches is refused, and so is a card of something else", "[mux]") {
  if (!select_transport("ofi").value()->unavailable().empty()) return;
  Three three;
  three.open_only(kParts);
  CHECK_FALSE(three.mux->reachable(three.mux->card()));
  three.open_only(2);
  CHECK(three.mux->reachable(three.mux->card()));
  CHECK_FALSE(three.mux->reachable("direct:1"));
  CHECK_FALSE(three.mux->connect("direct:1", kThere, kHere, {}, three.counters));
}
