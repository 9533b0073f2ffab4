// MPI's side of the library, by its table: waits, counted, and frames that are released in any order.
#include <catch2/catch.hpp>

#include <sys/resource.h>

#include <ulfm/netmod.h>

#include <chrono>
#include <cstring>
#include <string_view>
#include <vector>

#include "api/netmod/channel.hpp"
#include "base/wait.hpp"
#include "child.hpp"
#include "environment.hpp"
#include "one_core.hpp"

extern "C" const ulfm_nm_api* ulfm_nm_table(std::uint32_t abi);

namespace {

using namespace ulfm;

std::uint64_t yields() { return wait_counters().steps[static_cast<int>(Rung::yield)].load(); }
std::uint64_t sleeps() { return wait_counters().steps[static_cast<int>(Rung::park)].load(); }

/// How often the system has taken the core from this thread for another one.
long others_turns() {
  rusage usage{};
  REQUIRE(getrusage(RUSAGE_THREAD, &usage) == 0);
  return usage.ru_nivcsw;
}

/// Two processes of MPI, both this one, and a connection from the first to the second.
struct Pair {
  explicit Pair(const char* protocol = "auto") {
    environment.set("ULFM_PROTOCOL", protocol);
    // A ladder of 100 turns, and then it sleeps.
    environment.set("ULFM_SPIN", "100");
    environment.set("ULFM_PARK_AFTER", "0");
    REQUIRE(table->open("job", 0, 2, 2, &sender) == 0);
    REQUIRE(table->open("job", 1, 2, 2, &receiver) == 0);
    REQUIRE(table->connect(sender, table->card(receiver), "me", 2, &connection) == 0);
  }
  ~Pair() {
    (void)table->disconnect(sender, connection, 1);
    table->close(sender);
    table->close(receiver);
  }
  bool send(std::uint32_t number) {
    const iovec piece{&number, sizeof number};
    return table->begin(connection, "header", 6, &piece, 1) == sizeof number;
  }
  bool send() { return table->begin(connection, "header", 6, nullptr, 0) >= 0; }
  void fill() {
    while (send()) {
    }
  }
  void read_all() {
    // The frame that announces a lane is taken without being handed out, so one look in vain is not the end.
    ulfm_nm_frame frame;
    for (int in_vain = 0; in_vain < 3; ++in_vain)
      for (; table->next(receiver, &frame) == 1; in_vain = 0) table->release(receiver, &frame);
  }
  int idle(int turns) {
    int news = 0;
    for (int turn = 0; turn < turns; ++turn) news = table->idle(sender, ULFM_NM_IDLE_WAIT, 1);
    return news;
  }

  test::Environment environment;
  const ulfm_nm_api* table = ulfm_nm_table(ULFM_NM_ABI);
  ulfm_nm *sender = nullptr, *receiver = nullptr;
  ulfm_nm_vc* connection = nullptr;
};

}  // namespace

TEST_CASE("whoever only sends begins its waits anew when something went", "[netmod]") {
  Pair pair;
  pair.fill();
  std::uint64_t before = sleeps();
  pair.idle(150);
  REQUIRE(sleeps() > before);  // nobody reads: the end of the ladder
  for (int turn = 0; turn < 20; ++turn) {
    pair.read_all();
    REQUIRE(pair.send());
    pair.fill();
    before = sleeps();
    pair.idle(50);
    CHECK(sleeps() == before);
  }
}

TEST_CASE("room ends a turn of who waits for it", "[netmod]") {
  Pair pair;
  pair.fill();
  CHECK(pair.idle(1) == 0);
  pair.read_all();
  CHECK(pair.idle(1) == ULFM_NM_ARRIVED);
}

TEST_CASE("tests of a program yield more often where its core turns out to be shared", "[netmod]") {
  Pair pair;
  if (!pair.sender->own_core) {
    WARN("this machine has no core for each of two processes");
    return;
  }
  constexpr int kWhereShared = 16, kAlone = 1024;
  int tests = 0, while_shared = 0, while_alone = 0, wrong = 0;
  const auto test = [&] {
    const bool shared = core_is_shared();
    const std::uint64_t before = yields();
    pair.table->idle(pair.sender, ULFM_NM_IDLE_TEST, 0);
    const bool expected = ++tests % (shared ? kWhereShared : kAlone) == 0;
    if ((yields() != before) != expected) ++wrong;
    ++(shared ? while_shared : while_alone);
  };
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto goes_on = [until] { return std::chrono::steady_clock::now() < until; };
  {
    test::OneCore here;
    test::Child other([](test::Pipe&) {
      for (;;) sched_yield();
    });
    while (while_shared < 20 * kWhereShared && goes_on()) test();
    if (while_shared == 0) WARN("a yield to another process that yields cannot be told from one in vain here");
  }
  while ((core_is_shared() || while_alone < 2 * kAlone) && goes_on()) test();
  CHECK(wrong == 0);
  // Where it is still shared, others still run here, and the system counts it.
  const long before = others_turns();
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  while (std::chrono::steady_clock::now() < end) test();
  CHECK((!core_is_shared() || others_turns() - before >= 6));
}

TEST_CASE("a frame is valid until it is released, in whatever order", "[netmod]") {
  // Without the protocol, first by the open ring and then by a lane; and with it.
  const char* const protocol = GENERATE("auto", "always");
  CAPTURE(protocol);
  Pair pair(protocol);
  constexpr std::uint32_t kHeld = 4;
  const auto number_in = [](const ulfm_nm_frame& frame) {
    std::uint32_t number = 0;
    REQUIRE(frame.length == sizeof number);
    std::memcpy(&number, frame.data, sizeof number);
    return number;
  };
  const auto read = [&](ulfm_nm_frame& frame) {
    for (int looks = 0; looks < 100000; ++looks)
      if (pair.table->next(pair.receiver, &frame) == 1) return true;
    return false;
  };
  std::uint32_t sent = 0;
  for (int round = 0; round < 3000; ++round) {
    ulfm_nm_frame held[kHeld];
    const std::uint32_t first = sent;
    while (sent < first + kHeld) REQUIRE(pair.send(sent++));
    for (ulfm_nm_frame& frame : held) REQUIRE(read(frame));
    // The last one first, then others; each of the rest still has its bytes.
    for (const std::uint32_t turn : {3u, 0u, 2u, 1u}) {
      CHECK(number_in(held[turn]) == first + turn);
      pair.table->release(pair.receiver, &held[turn]);
    }
  }
  CHECK(sent == 3000 * kHeld);
}

TEST_CASE("a message in one piece goes as one frame or not at all", "[netmod]") {
  const char* const protocol = GENERATE("auto", "always");
  CAPTURE(protocol);
  Pair pair(protocol);
  CHECK(pair.table->shares_memory(pair.connection) == (std::string_view(protocol) == "auto" ? 1 : 0));
  const std::vector<char> bytes(std::size_t{1} << 20, 'x');
  const auto send = [&](std::size_t length) {
    return pair.table->send_whole(pair.connection, "header", 6, bytes.data(), length);
  };
  CHECK(send(bytes.size()) == 0);  // no frame is that long
  for (const std::size_t length : {std::size_t{0}, std::size_t{32}, std::size_t{64}, std::size_t{1000}}) {
    REQUIRE(send(length) == 1);
    ulfm_nm_frame frame;
    int looks = 0;
    while (pair.table->next(pair.receiver, &frame) == 0 && looks < 100000) ++looks;
    REQUIRE(looks < 100000);
    CHECK(frame.kind == ULFM_NM_FIRST);
    CHECK(frame.header_length == 6);
    CHECK(frame.length == length);
    CHECK(std::memcmp(frame.data, bytes.data(), length) == 0);
    pair.table->release(pair.receiver, &frame);
  }
}

TEST_CASE("a message that found no room begins when there is some", "[netmod]") {
  Pair pair;
  const char bytes[64] = {};
  while (pair.table->send_whole(pair.connection, "header", 6, bytes, sizeof bytes) == 1) {
  }
  CHECK(pair.idle(1) == 0);
  pair.read_all();
  CHECK(pair.idle(1) == ULFM_NM_ARRIVED);
  CHECK(pair.table->send_whole(pair.connection, "header", 6, bytes, sizeof bytes) == 1);
}
