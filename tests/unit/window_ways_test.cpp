#include "api/netmod/window_ways.hpp"

#include <catch2/catch.hpp>

using std::chrono::nanoseconds;
using ulfm::netmod::WindowWays;

namespace {

/// An origin whose reading and whose copies by the kernel take so long.
struct Origin {
  nanoseconds reading, copy;
  WindowWays ways{};
  int went[2] = {0, 0};
  int readings = 0;

  void transfer(std::size_t bytes, int times) {
    for (int i = 0; i < times; ++i) {
      if (ways.wants_reading(bytes)) {
        ways.reading_took(bytes, reading);
        ++readings;
      }
      const WindowWays::Way way = ways.next(bytes);
      ++went[way];
      if (way == WindowWays::kernel) ways.copy_took(bytes, copy);
    }
  }
};

constexpr std::size_t kSize = 64 * 1024;

}  // namespace

TEST_CASE("one-sided transfers go the faster way", "[window_ways]") {
  Origin slow_kernel{nanoseconds(2000), nanoseconds(8000)};
  slow_kernel.transfer(kSize, 40000);
  CHECK(slow_kernel.went[WindowWays::kernel] >= WindowWays::kCopies);
  CHECK(slow_kernel.went[WindowWays::kernel] < 200);

  Origin fast_kernel{nanoseconds(4000), nanoseconds(3000)};
  fast_kernel.transfer(kSize, 40000);
  CHECK(fast_kernel.went[WindowWays::messages] == 0);
  CHECK(fast_kernel.readings < 20);
}

TEST_CASE("a message's trip counts for a short transfer", "[window_ways]") {
  Origin origin{nanoseconds(400), nanoseconds(2600)};
  origin.transfer(8192, 1000);
  CHECK(origin.went[WindowWays::messages] == 0);  // 3000 ns
  origin.copy = nanoseconds(3400);
  origin.transfer(16384, 1000);
  CHECK(origin.went[WindowWays::messages] > 900);
}

TEST_CASE("which way is faster can change, for each size", "[window_ways]") {
  Origin origin{nanoseconds(2000), nanoseconds(8000)};
  origin.transfer(kSize, 1000);
  const int before = origin.went[WindowWays::messages];
  CHECK(before > 900);
  origin.copy = nanoseconds(1000);
  origin.transfer(kSize, 3000);
  const int after = origin.went[WindowWays::messages];
  CHECK(after - before < 2 * 1024 + 1);  // until the next series
  origin.transfer(kSize, 5000);
  CHECK(origin.went[WindowWays::messages] == after);
  origin.copy = nanoseconds(100000);
  origin.transfer(4 * kSize, WindowWays::kCopies + WindowWays::kFirstRest);  // has not learned from the other size
  CHECK(origin.went[WindowWays::messages] == after + WindowWays::kFirstRest);
}

TEST_CASE("copies that no series asked for, and one that could not be made, change nothing", "[window_ways]") {
  WindowWays ways;
  ways.copy_took(kSize, nanoseconds(1));
  REQUIRE(ways.wants_reading(kSize));
  ways.reading_took(kSize, nanoseconds(2000));
  for (int i = 0; i < 100; ++i) CHECK(ways.next(kSize) == WindowWays::kernel);  // none was made: nothing is known
  for (int i = 0; i < WindowWays::kCopies; ++i) ways.copy_took(kSize, nanoseconds(9000));
  CHECK(ways.next(kSize) == WindowWays::messages);
}
