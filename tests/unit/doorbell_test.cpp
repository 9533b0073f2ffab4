// The doorbell's sleeps. That a ring ends them, whenever it comes, is ulfm_stress's to show.
#include <chrono>
#include <functional>

#include <catch2/catch.hpp>

#include "base/doorbell.hpp"

using namespace ulfm;
using namespace std::chrono_literals;

TEST_CASE("what comes without a ring, because no barrier reached the sender, ends a long sleep", "[doorbell]") {
  Doorbell bell;
  RoomBell room;
  const bool with_other = GENERATE(false, true);
  int looks = 0;
  bell.arm();
  const WaitWord other = with_other ? room.arm() : WaitWord{};
  CHECK(bell.sleep(1h, other, [&looks] { return ++looks > 0; }));
  CHECK(looks == 1);
  CHECK_FALSE(bell.is_awaited());
}

TEST_CASE("a long sleep that nothing ends lasts to its limit, and looks once", "[doorbell]") {
  Doorbell bell;
  RoomBell room;
  const bool with_other = GENERATE(false, true);
  int looks = 0;
  bell.arm();
  const WaitWord other = with_other ? room.arm() : WaitWord{};
  const auto before = std::chrono::steady_clock::now();
  CHECK_FALSE(bell.sleep(30ms, other, [&looks] { return ++looks > 1; }));
  CHECK(std::chrono::steady_clock::now() - before >= 30ms);
  CHECK(looks == 1);
  CHECK_FALSE(bell.is_awaited());
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
