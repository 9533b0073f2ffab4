// The doorbell's sleeps. That a ring ends them, whenever it comes, is ulfm_stress's to show.
#include <chrono>
#include <functional>

#include <catch2/catch.hpp>

#include "base/doorbell.hpp"

using namespace ulfm;
using namespace std::chrono_literals;

TEST_CASE("a long sleep looks once, and ends when something has come, because no barrier reached the sender",
          "[doorbell]") {
  Doorbell bell;
  RoomBell room;
  const bool with_other = GENERATE(false, true), comes = GENERATE(false, true);
  bell.arm();
  const auto before = std::chrono::steady_clock::now();
  const auto limit = comes ? std::chrono::nanoseconds(1h) : 30ms;
  int looks = 0;
  CHECK(bell.sleep(limit, with_other ? room.arm() : WaitWord{}, [&] { return ++looks, comes; }) == comes);
  CHECK(looks == 1);
  CHECK_FALSE(bell.is_awaited());
  if (!comes) CHECK(std::chrono::steady_clock::now() - before >= limit);
}

TEST_CASE("where senders fence, and in a short sleep, nobody looks again", "[doorbell]") {
  Doorbell bell;
  const bool fenced = GENERATE(false, true);
  if (fenced) bell.expect_many_sleeps();
  int looks = 0;
  bell.arm();
  CHECK_FALSE(bell.sleep(fenced ? 10ms : 1ms, {}, [&looks] { return ++looks > 0; }));
  CHECK(looks == 0);
}

TEST_CASE("a ring before the sleep or during its second look ends it", "[doorbell]") {
  Doorbell bell;
  bell.arm();
  bell.ring();
  CHECK(bell.sleep(1h, {}, [] { return false; }));
  bell.arm();
  CHECK(bell.sleep(1h, {}, [&bell] { return bell.ring(), false; }));
}
