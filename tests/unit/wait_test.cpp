// The ladder of a wait: what each turn does, and that yields to somebody who computes are not repeated.
#include <catch2/catch.hpp>

#include <chrono>

#include "base/shared_core.hpp"
#include "base/wait.hpp"
#include "child.hpp"
#include "one_core.hpp"

namespace {

using namespace ulfm;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::uint64_t yields() { return wait_counters().steps[static_cast<int>(Rung::yield)].load(); }

// Waits until waits no longer yield; false when that does not come about within the limit.
bool stops_yielding(const WaitPolicy& policy) {
  for (const auto until = Clock::now() + 20s; Clock::now() < until;) {
    Waiter waiter(policy);
    while (!waiter.step())
      if (Clock::now() > until) return false;
    if (waiter.turns() == policy.spins + 1) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a wait spins, pauses, yields, and then says that it is time to sleep", "[wait]") {
  WaitPolicy policy;
  policy.spins = 3;
  policy.pauses = 4;
  policy.pause_for = 1h;
  policy.yield_for = 0ns;
  Waiter waiter(policy);
  const std::uint64_t before = yields();
  for (std::uint32_t turn = 1; turn <= policy.spins + policy.pauses; ++turn) {
    REQUIRE_FALSE(waiter.step());
    REQUIRE(waiter.turns() == turn);
  }
  CHECK(waiter.step());
  CHECK(yields() == before);
  waiter.reset();
  CHECK(waiter.turns() == 0);
  CHECK_FALSE(waiter.step());
}

TEST_CASE("a wait behind others that were in vain sleeps after its spins, until something comes", "[wait]") {
  WaitPolicy policy;
  policy.spins = 3;
  policy.pause_for = 1ms;
  policy.yield_for = 1ms;
  const auto turns_to_sleep = [](Waiter& waiter) {
    while (!waiter.step()) continue;
    return waiter.turns();
  };
  Waiter late(policy, 2ms);
  CHECK(turns_to_sleep(late) == policy.spins + 1);
  late.reset();
  CHECK(turns_to_sleep(late) > policy.spins + 1);
  Waiter early(policy, 1999us);
  CHECK(turns_to_sleep(early) > policy.spins + 1);
}

TEST_CASE("where yields go to somebody who computes, waits sleep instead, and try again later", "[wait]") {
  test::OneCore here;
  WaitPolicy policy;
  policy.spins = 2;
  policy.pauses = 0;
  policy.yield_for = 10s;
  {
    test::Child busy([](test::Pipe&) {
      for (;;) cpu_pause();
    });
    if (!stops_yielding(policy)) {
      WARN("this system gives whoever yields the core back at once");
      return;
    }
    const std::uint64_t before = yields();
    Waiter waiter(policy);
    CHECK_FALSE(waiter.step());
    CHECK_FALSE(waiter.step());
    CHECK(waiter.step());
    CHECK(yields() == before);
  }
  const auto yields_again = [&] {
    Waiter waiter(policy);
    for (std::uint32_t turn = 0; turn <= policy.spins; ++turn)
      if (waiter.step()) return false;
    return true;
  };
  const auto until = Clock::now() + 20s;
  while (!yields_again() && Clock::now() < until) sched_yield();
  CHECK(yields_again());
}

TEST_CASE("a process that lost its core sleeps instead of yields for a while", "[wait]") {
  WaitPolicy policy;
  policy.spins = 2;
  policy.pauses = 0;
  policy.yield_for = 10s;
  note_lost_core(Clock::now());
  CHECK(core_is_lost(Clock::now()));
  const std::uint64_t before = yields();
  Waiter waiter(policy);
  for (std::uint32_t turn = 0; turn < policy.spins; ++turn) CHECK_FALSE(waiter.step());
  CHECK(waiter.step());
  CHECK(yields() == before);
  note_lost_core(Clock::now() - 1s);
  CHECK_FALSE(core_is_lost(Clock::now()));
}

TEST_CASE("some short switches soon after each other mean that the core is shared, for some time", "[wait]") {
  SharedCore core;
  Clock::time_point now{1h};
  const auto yield = [&](Clock::duration taken) { core.note(SharedCore::like_switch(taken) ? 1 : 0, now += taken); };
  for (int i = 0; i < 5; ++i) yield(20us);
  CHECK_FALSE(core.found());
  SECTION("yields in vain between them say nothing") {
    for (int i = 0; i < 100; ++i) yield(500ns);
    yield(20us);
    CHECK(core.found());
    for (int i = 0; i < 100; ++i) yield(500ns);
    CHECK(core.found());
    for (int i = 0; i < 10'000; ++i) yield(500ns);
    CHECK_FALSE(core.found());
  }
  SECTION("far from each other they are others' short turns") {
    for (int i = 0; i < 100; ++i) {
      now += 5ms;
      yield(20us);
      CHECK_FALSE(core.found());
    }
  }
  SECTION("those to a process that computes are not of this kind") {
    for (int i = 0; i < 100; ++i) {
      yield(3ms);
      CHECK_FALSE(core.found());
    }
  }
  SECTION("interrupts make some yields long, which does not keep up what was true once") {
    for (int i = 0; i < 100; ++i) yield(20us);
    CHECK(core.found());
    for (int i = 0; i < 50; ++i) {
      for (int j = 0; j < 1000; ++j) yield(600ns);
      yield(20us);
    }
    CHECK_FALSE(core.found());
  }
  SECTION("after any number of them it is known as long as after a few") {
    for (int i = 0; i < 1000; ++i) yield(20us);
    CHECK(core.found());
    now += 10ms;
    yield(500ns);
    CHECK_FALSE(core.found());
  }
}
