// The table of waits: what is a deadlock and what is not; questions and answers on the shared page.
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "environment.hpp"
#include "job/stall.hpp"
#include "job/stall_board.hpp"

using namespace ulfm;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

StallWait wait_for(int rank, StallKind kind = StallKind::message) { return {kind, rank, 7, 0, 0, "MPI_COMM_WORLD"}; }

StallLine waits(int rank, std::initializer_list<StallWait> what, bool blocked = true) {
  StallLine line{rank, true, "runs", {}};
  line.state.pid = 1000 + rank;
  line.state.blocked = blocked ? 1 : 0;
  for (const StallWait& wait : what) line.state.waits[line.state.n++] = wait;
  return line;
}

bool says(const std::string& text, const char* what) { return text.find(what) != std::string::npos; }

}  // namespace

TEST_CASE("a cycle of waits is named as deadlock", "[stall]") {
  CHECK(says(stall_table({waits(0, {wait_for(1)}), waits(1, {wait_for(0)})}, kSecond),
             "deadlock: rank 0 waits for a message from rank 1, tag 7 in MPI_COMM_WORLD; rank 1 waits"));
  const std::string ring = stall_table({waits(0, {wait_for(1, StallKind::clear_to_send)}), waits(1, {wait_for(2)}),
                                        waits(2, {wait_for(0, StallKind::taken)}), waits(3, {wait_for(0)})},
                                       kSecond);
  CHECK(says(ring, "deadlock: rank 0 waits for rank 1 to receive"));
  CHECK(says(ring, "rank 2 waits for rank 0 to receive a synchronous send"));
  CHECK(says(stall_table({waits(0, {wait_for(-1, StallKind::any)}), waits(1, {wait_for(0)})}, kSecond),
             "deadlock: ranks 0, 1 wait"));
}

TEST_CASE("waits that somebody may end are no deadlock", "[stall]") {
  const StallLine computes{1, false, "runs", {}};
  CHECK_FALSE(says(stall_table({waits(0, {wait_for(1)}), computes}, kSecond), "deadlock"));
  CHECK(says(stall_table({waits(0, {wait_for(1)}), computes}, kSecond), "computes"));
  CHECK_FALSE(says(stall_table({waits(0, {wait_for(1)}), waits(1, {wait_for(0)}, false)}, kSecond), "deadlock"));
  CHECK_FALSE(says(stall_table({waits(0, {wait_for(1)}), {1, false, "is stopped", {}}}, kSecond), "deadlock"));
  // A third may end it, as far as can be told.
  const std::string third =
      stall_table({waits(0, {wait_for(1), wait_for(2)}), waits(1, {wait_for(0)}), {2, false, "runs", {}}}, kSecond);
  CHECK(says(third, "perhaps a deadlock"));
  CHECK(says(stall_table({waits(0, {wait_for(1)}), {1, false, "has ended", {}}}, kSecond), "ended: rank 1"));
}

TEST_CASE("a question is answered by all and printed once", "[stall]") {
  auto made = StallBoard::create(2);
  REQUIRE(made);
  test::Environment environment;
  environment.set("ULFM_STALL_BOARD", made->place());
  auto first = StallBoard::attach(0, 2), second = StallBoard::attach(1, 2);
  REQUIRE(first);
  REQUIRE(second);
  CHECK_FALSE(StallBoard::attach(2, 2));
  CHECK_FALSE(StallBoard::attach(0, 3));
  CHECK_FALSE(first->asked());
  first->ask(kSecond);
  CHECK(first->asked());
  CHECK(second->asked());
  StallState state = waits(0, {wait_for(1)}).state;
  state.pid = getpid();
  first->answer(state);
  CHECK_FALSE(first->asked());
  CHECK(first->table(kSecond).empty());  // the other one may still answer
  SECTION("all have answered") {
    second->answer(state);
    CHECK(says(second->table(kSecond), "waits"));
    CHECK(first->table(kSecond).empty());
    first->ask(kSecond + 1);  // at once again: nothing
    CHECK_FALSE(first->asked());
  }
  SECTION("one does not") {
    CHECK(says(first->table(3 * kSecond), "it makes no calls"));
    CHECK(first->table(3 * kSecond).empty());
  }
}

TEST_CASE("a wait reports itself after its time, and each time it has lasted twice as long", "[stall]") {
  using namespace std::chrono_literals;
  const StallWatch::Clock::time_point start{};
  StallWatch watch(10);
  CHECK_FALSE(watch.due(start, start + 9s));
  CHECK(watch.due(start, start + 10s));
  CHECK_FALSE(watch.due(start, start + 19s));
  CHECK(watch.due(start, start + 20s));
  CHECK_FALSE(watch.due(start, start + 39s));
  watch.reset();
  CHECK(watch.due(start, start + 11s));
  StallWatch never(0);
  CHECK_FALSE(never.due(start, start + 24h));
  CHECK(stall_time(12'345ms) == "12.3 s");
}

TEST_CASE("SIGUSR2 asks every wait for one report, unless the program handles it", "[stall]") {
  using namespace std::chrono_literals;
  const StallWatch::Clock::time_point start{};
  SECTION("nobody handles it") {
    StallWatch::begin();
    StallWatch::begin();
    StallWatch one(0), other(0);
    REQUIRE(raise(SIGUSR2) == 0);
    CHECK(one.due(start, start));
    CHECK_FALSE(one.due(start, start));
    CHECK(other.due(start, start));
    StallWatch later(0);
    CHECK_FALSE(later.due(start, start));
    signal(SIGUSR2, SIG_DFL);
  }
  SECTION("the program does") {
    signal(SIGUSR2, SIG_IGN);
    StallWatch::begin();
    CHECK(signal(SIGUSR2, SIG_DFL) == SIG_IGN);
  }
}

TEST_CASE("a rank takes part in the table of waits: it asks when a report is due, and answers", "[stall]") {
  auto made = StallBoard::create(1);
  REQUIRE(made);
  test::Environment environment;
  environment.set("ULFM_STALL_BOARD", made->place());
  auto board = StallBoard::attach(0, 1);
  REQUIRE(board);
  int answers = 0;
  const auto state = [&] {
    ++answers;
    StallState all = waits(0, {wait_for(-1, StallKind::any)}).state;
    all.pid = getpid();
    return all;
  };
  const StallWatch::Clock::time_point now{std::chrono::nanoseconds(kSecond)};
  take_part(*board, false, now, state);
  CHECK(answers == 0);
  take_part(*board, true, now, state);
  CHECK(answers == 1);
  CHECK_FALSE(board->asked());
  CHECK(board->table(kSecond).empty());  // printed already
}
