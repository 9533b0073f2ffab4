#include "api/netmod/two_ways.hpp"

#include <catch2/catch.hpp>
#include <deque>

using std::chrono::nanoseconds;
using ulfm::netmod::TwoWays;

namespace {

/// A receiver whose messages take so long for a byte, one after the other.
struct Receiver {
  double cost[2];
  TwoWays ways{};
  TwoWays::Time now{};
  int came[2] = {0, 0};

  void spend(TwoWays::Way way, std::size_t bytes) {
    now += nanoseconds(static_cast<std::int64_t>(cost[way] * static_cast<double>(bytes)));
  }
  /// Windows of messages that are let in together.
  void receive(int windows, int window, std::size_t bytes) {
    for (int i = 0; i < windows; ++i) {
      std::deque<TwoWays::Way> on_their_way;
      for (int w = 0; w < window; ++w) on_their_way.push_back(ways.begins(bytes, now));
      for (const TwoWays::Way way : on_their_way) {
        spend(way, bytes);
        ++came[way];
        ways.ends(bytes, now);
      }
      now += nanoseconds(1000000);  // with nothing on its way: nobody's time
    }
  }
};

constexpr std::size_t kSize = 256 * 1024;

}  // namespace

TEST_CASE("long messages come by the faster way, one after the other and in windows", "[two_ways]") {
  for (const int window : {1, 3, 64})
    for (const TwoWays::Way faster : {TwoWays::frames, TwoWays::kernel}) {
      CAPTURE(window, static_cast<int>(faster));
      Receiver r{{faster == TwoWays::frames ? 1.0 : 2.0, faster == TwoWays::kernel ? 1.0 : 2.0}};
      r.receive(40000 / window, window, kSize);
      const int slow = r.came[1 - faster];
      CHECK(slow >= 2 * TwoWays::kBlock);  // it was tried
      CHECK(slow < 40000 / 20);
    }
}

TEST_CASE("what is faster can change", "[two_ways]") {
  Receiver r{{1.0, 2.0}};
  r.receive(200, 1, kSize);
  r.cost[TwoWays::frames] = 4.0;
  r.came[0] = r.came[1] = 0;
  r.receive(2000, 1, kSize);
  CHECK(r.came[TwoWays::kernel] > 1600);
}

TEST_CASE("each size learns for itself, and begins as its smaller neighbour goes", "[two_ways]") {
  Receiver r{{1.0, 2.0}};
  r.receive(100, 1, kSize);
  r.cost[TwoWays::kernel] = 0.5;
  r.came[0] = r.came[1] = 0;
  r.receive(TwoWays::kFirstRest, 1, 8 * kSize);
  CHECK(r.came[TwoWays::frames] == 2 * TwoWays::kBlock);
  CHECK(r.came[TwoWays::kernel] == TwoWays::kFirstRest - 2 * TwoWays::kBlock);
}

TEST_CASE("messages without a gap between them change their way too", "[two_ways]") {
  Receiver r{{2.0, 1.0}};
  std::deque<TwoWays::Way> on_their_way;
  for (int i = 0; i < 4; ++i) on_their_way.push_back(r.ways.begins(kSize, r.now));
  for (int i = 0; i < 8000; ++i) {
    r.spend(on_their_way.front(), kSize);
    ++r.came[on_their_way.front()];
    on_their_way.pop_front();
    on_their_way.push_back(r.ways.begins(kSize, r.now));
    r.ways.ends(kSize, r.now);
  }
  CHECK(r.came[TwoWays::kernel] > 5000);
}
