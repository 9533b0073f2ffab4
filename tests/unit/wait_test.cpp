// The ladder of a wait: what each turn does, and that yields to somebody who computes are not repeated.
#include <catch2/catch.hpp>

#include <sched.h>

#include <chrono>

#include "base/wait.hpp"
#include "child.hpp"

namespace {

using namespace ulfm;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::uint64_t yields() { return wait_counters().steps[static_cast<int>(Rung::yield)].load(); }

// This process on one core for as long as it lives; the core.
class OneCore {
 public:
  OneCore() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &before_)) {
        CPU_SET(core, &one);
        break;
      }
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OneCore() { sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_;
};

// Yields until one takes so long; false when none does within the limit.
bool meet_a_long_yield(const WaitPolicy& policy, std::chrono::microseconds length) {
  const auto until = Clock::now() + 20s;
  while (Clock::now() < until) {
    Waiter waiter(policy);
    bool parks = false;
    while (!parks) {
      const std::uint64_t before = yields();
      const auto start = Clock::now();
      parks = waiter.step();
      if (yields() != before && Clock::now() - start > length) return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("a wait spins, pauses, yields, and then says that it is time to sleep", "[wait]") {
  WaitPolicy policy;
  policy.spins = 3;
  policy.pauses = 4;
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

TEST_CASE("after a yield that somebody computed through, waits sleep instead of yielding", "[wait]") {
  OneCore here;
  test::Child busy([](test::Pipe&) {
    for (;;) cpu_pause();
  });
  WaitPolicy policy;
  policy.spins = 2;
  policy.pauses = 0;
  policy.yield_for = 10s;
  if (!meet_a_long_yield(policy, 3ms)) {
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
