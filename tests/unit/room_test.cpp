// Who finds no room is told of it when it comes: at a look, and in a sleep.
#include <catch2/catch.hpp>

#include <atomic>
#include <thread>

#include "base/wait_word.hpp"
#include "environment.hpp"
#include "pattern.hpp"
#include "transport/direct/direct.hpp"

using namespace ulfm;
using namespace std::chrono_literals;

namespace {

constexpr std::uint16_t kHere = 5, kThere = 6;

/// Two ports of this process, and a connection from one to the other.
struct Ends {
  explicit Ends(std::uint32_t lanes, const char* lane_after = "1", bool shares_core = false) {
    test::Environment environment;
    Config config = Config::load().value();
    REQUIRE(config.set("LANES", std::to_string(lanes), Origin::command_line, "test"));
    if (lane_after != nullptr) REQUIRE(config.set("LANE_AFTER", lane_after, Origin::command_line, "test"));
    transport = direct_transport.make(config).value();
    here = transport->open(kHere, {}).value();
    InletOptions options;
    options.shares_core = shares_core;
    there = transport->open(kThere, options).value();
    outlet = transport->connect(transport->card(), kThere, kHere, {}, counters).value();
  }
  bool push(std::size_t size) {
    auto bytes = test::pattern_bytes(1, size);
    const iovec piece{bytes.data(), size};
    Gather data(std::span(&piece, 1));
    return outlet->push(Kind::first, {}, data, size);
  }
  /// Sends until there is no room; how many were sent.
  int fill(std::size_t size) {
    int count = 0;
    Frame frame;
    while (push(size)) {
      // The receiver learns of the lane by a frame of the open ring, which it must take for that.
      if (++count == 1 && there->next(frame)) there->release(frame);
    }
    return count;
  }
  /// Takes all that is there.
  int drain() {
    int count = 0;
    Frame frame;
    // The frame that announces a lane is taken without being handed out.
    while (there->has_frame())
      if (there->next(frame)) {
        there->release(frame);
        ++count;
      }
    return count;
  }

  PortCounters counters;
  std::unique_ptr<Transport> transport;
  std::unique_ptr<Inlet> here, there;
  std::unique_ptr<Outlet> outlet;
};

}  // namespace

TEST_CASE("room that has come is seen at a look", "[room]") {
  const auto [lanes, size] = GENERATE(table<std::uint32_t, std::size_t>({{0, 16}, {4, 16}, {4, 30000}}));
  CAPTURE(lanes, size);
  Ends ends(lanes);
  const std::size_t bytes = std::min(size, ends.outlet->max_frame(0));
  REQUIRE(ends.fill(bytes) > 1);
  CHECK_FALSE(ends.outlet->has_room());
  CHECK_FALSE(ends.push(bytes));
  REQUIRE(ends.drain() > 1);
  CHECK(ends.outlet->has_room());
  CHECK(ends.push(bytes));
}

TEST_CASE("who sleeps for room is woken by it", "[room]") {
  const std::uint32_t lanes = GENERATE(0u, 4u);
  CAPTURE(lanes);
  Ends ends(lanes);
  for (int turn = 0; turn < 10; ++turn) {
    ends.fill(16);
    const WaitWord room = ends.outlet->await_room();
    REQUIRE(room);
    room.word->store(0);
    std::atomic<bool> awake{false};
    std::thread sender([&] {
      // As a wait does. A sleep that is cut short by the limits of the system is followed by another.
      while (!ends.outlet->has_room()) {
        ends.here->wake_source().arm();
        const WaitWord awaited = ends.outlet->await_room();
        if (ends.outlet->has_room()) break;
        (void)ends.here->wake_source().sleep(600s, awaited, {});
      }
      ends.here->wake_source().cancel();
      awake = true;
    });
    while (room.is_over()) std::this_thread::yield();
    const int taken = ends.drain();
    sender.join();  // hangs, and ctest's limit ends it, when nobody rings
    CHECK(taken > 0);
    CHECK(awake);
  }
}

TEST_CASE("the doorbell still wakes who sleeps for room", "[room]") {
  Ends ends(4);
  ends.fill(16);
  std::atomic<bool> rung{false};
  std::thread sender([&] {
    while (!rung) {
      ends.here->wake_source().arm();
      if (ends.here->wake_source().sleep(600s, ends.outlet->await_room(), {})) rung = true;
    }
  });
  while (!rung) {
    ends.here->wake_source().ring();
    std::this_thread::yield();
  }
  sender.join();
  CHECK(rung);
  CHECK_FALSE(ends.outlet->has_room());
}

TEST_CASE("a receiver that shares its core gets a lane from a sender that found no room", "[direct][room]") {
  Ends ends(4, nullptr, true);
  const auto lanes = [&] { return ends.counters.lanes_opened.get(); };
  for (int i = 0; i < 100; ++i) {
    REQUIRE(ends.push(64));
    REQUIRE(ends.drain() == 1);
  }
  CHECK(lanes() == 0);
  int times_full = 0;
  for (; lanes() == 0 && times_full < 100; ++times_full) {
    while (ends.push(64)) {
    }
    CHECK(lanes() == 0);  // while the ring is full a lane could not be announced
    CHECK(ends.drain() == 32);
    REQUIRE(ends.push(64));
  }
  CHECK(times_full == 32);
  CHECK(lanes() == 1);
  CHECK(ends.drain() == 1);
}

TEST_CASE("the setting for lanes counts where a core is shared too", "[direct][room]") {
  Ends ends(4, "3", true);
  for (int i = 0; i < 4; ++i) {
    CHECK(ends.counters.lanes_opened.get() == 0);
    REQUIRE(ends.push(64));
    REQUIRE(ends.drain() == 1);
  }
  CHECK(ends.counters.lanes_opened.get() == 1);
}
