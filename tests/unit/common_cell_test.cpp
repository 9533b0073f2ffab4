// Two lanes whose frames lie in one cell by turns.
#include "base/common_cell.hpp"

#include <array>
#include <deque>

#include "property.hpp"
#include "rings.hpp"

using namespace ulfm;
using test::must;

namespace {

constexpr std::uint32_t kOrigins[] = {7, 9};

/// Two processes, each with the sending half of one lane and the receiving half of the other.
struct Conversation {
  explicit Conversation(std::uint32_t cells = 8, std::uint32_t bytes = 4096)
      : memory(test::line_bytes(kLine + kBeside)), lanes{{cells, bytes}, {cells, bytes}} {
    for (int i : {0, 1}) {
      lanes[i].producer.use_common(commons[i]);
      lanes[1 - i].consumer.use_common(commons[i], kOrigins[1 - i]);
    }
  }
  void open() {
    for (CommonCell& one : commons) one.open(cell());
  }
  Cell* cell() const { return reinterpret_cast<Cell*>(memory.get()); }

  bool push(int from, std::size_t header, std::size_t length, std::uint32_t seed, Kind kind = Kind::first) {
    const auto head = test::pattern_bytes(seed + 1, header);
    auto body = test::pattern_bytes(seed, length);
    const iovec piece{body.data(), body.size()};
    Gather data(std::span(&piece, 1));
    LaneProducer& producer = lanes[from].producer;
    return (seed % 2 == 0 && producer.push_small(kind, kOrigins[from], head.data(), header, data, length)) ||
           producer.push(kind, kOrigins[from], head.data(), header, data, length);
  }
  Peek next(int from, Frame& frame) { return lanes[from].consumer.next(frame); }
  /// The next frame of that process is that one.
  Frame take(int from, std::size_t header, std::size_t length, std::uint32_t seed) {
    Frame frame;
    must(lanes[from].consumer.ready(), "a frame is not seen");
    must(next(from, frame) == Peek::frame, "a frame is missing");
    must(intact(frame, from, header, length, seed), "a frame came out wrong");
    return frame;
  }
  static bool intact(const Frame& frame, int from, std::size_t header, std::size_t length, std::uint32_t seed) {
    return frame.header_length == header && frame.length == length && frame.origin == kOrigins[from] &&
           test::matches({frame.header, header}, seed + 1) && test::matches({frame.data, length}, seed);
  }
  void say(int from, std::size_t length, std::uint32_t seed, std::size_t header = 0) {
    must(push(from, header, length, seed), "no room");
    lanes[from].consumer.release(take(from, header, length, seed));
    lanes[from].consumer.publish();
  }

  test::LineBytes memory;
  CommonCell commons[2]{CommonCell(true), CommonCell(false)};
  test::LaneFixture lanes[2];
};

bool lies_in(const Frame& frame, const Cell* cell) { return frame.header == cell->bytes; }

}  // namespace

TEST_CASE("an answer lies in the cell of the question", "[common]") {
  Conversation two;
  two.open();
  const std::size_t length = GENERATE(0u, 1u, 32u, 33u, 64u, 128u, kBeside, kBeside + 1, 1000u);
  for (std::uint32_t i = 0; i < 100; ++i) {
    two.say(0, length, 2 * i, 16);
    CHECK(two.commons[0].turns() == 2 * i + 1);
    two.say(1, length, 2 * i + 1, 16);
    CHECK(two.commons[1].turns() == 2 * i + 2);
  }
}

TEST_CASE("who has written into the common cell goes on in the ring", "[common]") {
  Conversation two;
  two.open();
  for (std::uint32_t i = 0; i < 8; ++i) REQUIRE(two.push(0, 0, 10, i));
  CHECK(two.commons[0].turns() == 1);
  CHECK_FALSE(two.push(0, 0, 10, 8));
  for (std::uint32_t i = 0; i < 8; ++i) two.lanes[0].consumer.release(two.take(0, 0, 10, i));
}

TEST_CASE("marks and goodbyes lie in the ring", "[common]") {
  Conversation two;
  two.open();
  for (const Kind kind : {Kind::bye, kCellLane, kCellPool, kCellExchange}) REQUIRE(two.push(0, 0, 4, 3, kind));
  CHECK(two.commons[0].turns() == 0);
}

TEST_CASE("frames keep their order when the common cell comes into use", "[common]") {
  Conversation two;
  REQUIRE(two.push(0, 0, 10, 0));
  two.open();
  REQUIRE(two.push(0, 0, 10, 1));  // in the common cell, while the ring has an earlier one
  REQUIRE(two.push(0, 0, 10, 2));
  for (std::uint32_t i = 0; i < 3; ++i) two.lanes[0].consumer.release(two.take(0, 0, 10, i));
  Frame none;
  CHECK(two.next(0, none) == Peek::nothing);
}

TEST_CASE("a held frame is not overwritten by the answer", "[common]") {
  Conversation two;
  two.open();
  const std::size_t length = GENERATE(20u, 200u);
  std::vector<Frame> held;
  std::uint32_t in_place = 0;
  for (std::uint32_t i = 0; i < 8; ++i) {
    REQUIRE(two.push(0, 8, length, i));
    held.push_back(two.take(0, 8, length, i));
    in_place += lies_in(held.back(), two.cell()) ? 1 : 0;
    CHECK(held.back().shared_room == lies_in(held.back(), two.cell()));
    REQUIRE(two.push(1, 8, length, 100 + i));
    two.lanes[1].consumer.release(two.take(1, 8, length, 100 + i));
    two.lanes[1].consumer.publish();
  }
  CHECK(in_place == 1);
  for (std::uint32_t i = 0; i < 8; ++i) CHECK(Conversation::intact(held[i], 0, 8, length, i));
  for (const Frame& frame : held) two.lanes[0].consumer.release(frame);
  two.lanes[0].consumer.publish();
  const std::uint32_t turns = two.commons[0].turns();
  two.say(1, length, 50);
  two.say(0, length, 51);
  CHECK(two.commons[0].turns() > turns);
}

TEST_CASE("when the common cell's use has ended, what lies there is read", "[common]") {
  Conversation two;
  two.open();
  REQUIRE(two.push(0, 0, 10, 0));
  for (CommonCell& one : two.commons) one.end();
  REQUIRE(two.push(0, 0, 10, 1));
  for (std::uint32_t i = 0; i < 2; ++i) two.lanes[0].consumer.release(two.take(0, 0, 10, i));
  two.say(1, 10, 2);
  CHECK(two.commons[1].turns() == 1);
}

TEST_CASE("a ring that the common cell stands in for has no frames of an earlier count of laps", "[common]") {
  Conversation two;
  for (std::uint32_t i = 0; i < 32; ++i) two.say(static_cast<int>(i % 2), 4, i);  // words of the first laps
  two.open();
  for (std::uint32_t i = 0; i < 66000 * 8; ++i)
    for (int from : {0, 1}) {
      two.say(from, 4, i);
      if (two.lanes[from].consumer.ready()) FAIL("a frame that nobody sent, after " << i);
    }
  CHECK(two.commons[0].turns() == 2 * 66000 * 8);
}

TEST_CASE("nonsense in the common cell is broken, or no frame", "[common]") {
  Conversation two;
  two.open();
  Frame frame;
  REQUIRE(two.push(0, 0, 10, 0));
  Cell& cell = *two.cell();
  const Word honest = Word::unpack(cell.word.load());
  Word word = honest;
  Peek expected = Peek::broken;
  SECTION("a kind that does not lie there") { word.kind = GENERATE(Kind::bye, kCellLane, kCellShared, Kind{200}); }
  SECTION("a header that does not fit") { word.header = 49; }
  SECTION("data outside of the ring") {
    word.length = 100;
    cell.offset = 4096 - 64;
  }
  SECTION("more than lies beside it") {
    word.length = kBeside + 1;
    cell.offset = kBesideCell;
    expected = Peek::elsewhere;  // at a place that does not exist
  }
  SECTION("another position") {
    cell.origin = 1;
    expected = Peek::nothing;
  }
  SECTION("another turn") {
    word.lap = 3;
    expected = Peek::nothing;
  }
  cell.word.store(word.pack());
  CHECK(two.next(0, frame) == expected);
  if (expected == Peek::elsewhere) CHECK(two.lanes[0].consumer.place() >= 0x4000'0000);
}

TEST_CASE("two lanes with a common cell behave as bounded queues", "[common]") {
  struct Sent {
    std::size_t header, length;
    std::uint32_t seed;
    Frame frame;
  };
  test::property("both at once", [](test::Draw& draw) {
    Conversation two;
    std::array<std::deque<Sent>, 2> sent, held;
    std::uint32_t seed = 1;
    bool is_open = false, has_ended = false;
    const auto take = [&](int from) {
      Frame frame;
      const Peek peek = two.next(from, frame);
      must((peek == Peek::frame) == !sent[from].empty(), "a frame is missing, or one too many");
      if (peek != Peek::frame) return;
      Sent one = sent[from].front();
      sent[from].pop_front();
      one.frame = frame;
      must(Conversation::intact(frame, from, one.header, one.length, one.seed), "a frame came out wrong");
      held[from].push_back(one);
    };
    const auto release = [&](int from, std::size_t i) {
      const Sent one = held[from][i];
      must(Conversation::intact(one.frame, from, one.header, one.length, one.seed), "a held frame was overwritten");
      two.lanes[from].consumer.release(one.frame);
      held[from].erase(held[from].begin() + static_cast<std::ptrdiff_t>(i));
      if (draw.one_in(2)) two.lanes[from].consumer.publish();
    };
    while (draw.more()) {
      const int from = static_cast<int>(draw.below(2));
      if (!is_open && draw.one_in(8)) is_open = true, two.open();
      if (is_open && !has_ended && draw.one_in(200)) has_ended = true, two.commons[draw.below(2)].end();
      switch (draw.below(4)) {
        case 0: {
          const std::size_t header = draw.below(49), length = draw.below(draw.one_in(3) ? 600 : 60);
          if (two.push(from, header, length, ++seed)) sent[from].push_back({header, length, seed, {}});
          break;
        }
        case 1: take(from); break;
        default:
          if (!held[from].empty())
            release(from, draw.below(static_cast<std::uint32_t>(draw.one_in(3) ? held[from].size() : 1)));
      }
    }
    for (int from : {0, 1}) {
      while (!sent[from].empty()) take(from);
      while (!held[from].empty()) release(from, held[from].size() / 2);
      take(from);
    }
  });
}
