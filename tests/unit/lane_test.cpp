#include "base/ring.hpp"

#include "ring_model.hpp"

using namespace ulfm;
using test::LaneFixture;

TEST_CASE("a lane carries small frames in the cell and large ones in the byte ring", "[lane]") {
  LaneFixture lane(8, 4096);
  const auto [header, length] = GENERATE(table<std::size_t, std::size_t>({{0, 0},
                                                                          {0, 1},
                                                                          {0, 48},
                                                                          {0, 49},
                                                                          {48, 0},
                                                                          {48, 1},
                                                                          {8, 40},
                                                                          {8, 41},
                                                                          {49, 0},
                                                                          {49, 1},
                                                                          {255, 0},
                                                                          {255, 1000},
                                                                          {40, 1024}}));
  REQUIRE(lane.push(header, length, 77));
  CHECK(lane.consumer.ready());
  Frame frame;
  REQUIRE(lane.consumer.next(frame) == Peek::frame);
  CHECK(frame.kind == Kind::first);
  CHECK(test::intact(frame, header, length, 77));
  CHECK(lane.consumer.next(frame) == Peek::nothing);
}

TEST_CASE("a lane without free cells or bytes takes nothing", "[lane]") {
  LaneFixture lane(8, 4096);
  SECTION("cells") {
    for (std::uint32_t i = 0; i < 8; ++i) CHECK(lane.push(0, 10, i));
    CHECK_FALSE(lane.push(0, 10, 8));
  }
  SECTION("bytes") {
    for (std::uint32_t i = 0; i < 4; ++i) CHECK(lane.push(0, 1024, i));
    CHECK_FALSE(lane.push(0, 64, 4));
    CHECK(lane.push(0, 48, 5));  // needs no bytes
  }
  std::vector<Frame> frames;
  for (Frame f; lane.consumer.next(f) == Peek::frame;) frames.push_back(f);
  for (const Frame& f : frames) lane.consumer.release(f);
  lane.consumer.publish();
  CHECK(lane.producer.relieved());
  CHECK(lane.push(0, 1024, 9));
}

TEST_CASE("room comes back only when the oldest frame is released", "[lane]") {
  LaneFixture lane(8, 4096);
  for (std::uint32_t i = 0; i < 8; ++i) REQUIRE(lane.push(0, 100, i));
  std::vector<Frame> frames(8);
  for (Frame& f : frames) REQUIRE(lane.consumer.next(f) == Peek::frame);
  for (std::size_t i = 7; i > 0; --i) lane.consumer.release(frames[i]);
  lane.consumer.publish();
  CHECK_FALSE(lane.push(0, 1, 8));
  CHECK(test::intact(frames[0], 0, 100, 0));
  lane.consumer.release(frames[0]);
  lane.consumer.publish();
  for (std::uint32_t i = 0; i < 8; ++i) CHECK(lane.push(0, 1, i));
}

TEST_CASE("a lane behaves as a bounded queue", "[lane]") {
  const auto length = [](test::Draw& draw, std::size_t) -> std::size_t {
    return draw.one_in(2) ? draw.below(49) : draw.below(1400);
  };
  for (const bool in_order : {true, false})
    test::property(in_order ? "released in order" : "released in any order", [&](test::Draw& draw) {
      LaneFixture lane(8u << draw.below(3), 4096);
      test::run_against_model(lane, draw, length, in_order);
    });
}

TEST_CASE("laps of a lane wrap around", "[lane]") {
  LaneFixture lane(8, 4096);
  const std::uint32_t frames = 8 * 0x10000 + 100;  // more than all laps there are
  for (std::uint32_t i = 0; i < frames; ++i) {
    Frame frame;
    if (!lane.push(0, i % 64, i) || lane.consumer.next(frame) != Peek::frame || frame.origin != i ||
        frame.length != i % 64)
      FAIL("frame " << i);
    lane.consumer.release(frame);
  }
}

TEST_CASE("a frame whose data lie elsewhere has its place among the others", "[lane]") {
  LaneFixture lane(8, 4096);
  const auto head = test::pattern_bytes(3, 16);
  Frame frame;
  for (std::uint32_t i = 0; i < 100; ++i) {
    REQUIRE(lane.push(8, 300, i));
    REQUIRE(lane.producer.has_cell());
    lane.producer.push_elsewhere(Kind::more, 7, head.data(), head.size(), i, 20000 + i);
    REQUIRE(lane.consumer.next(frame) == Peek::frame);
    lane.consumer.release(frame);
    REQUIRE(lane.consumer.next(frame) == Peek::elsewhere);
    CHECK(lane.consumer.place() == i);
    CHECK(frame.data == nullptr);
    CHECK((frame.kind == Kind::more && frame.origin == 7 && frame.length == 20000 + i));
    CHECK(test::matches({frame.header, frame.header_length}, 3));
    lane.consumer.release(frame);
  }
  lane.consumer.publish();
  for (int i = 0; i < 8; ++i) {
    CHECK(lane.producer.has_cell());
    lane.producer.push_elsewhere(Kind::first, 7, head.data(), head.size(), 0, 300);
  }
  CHECK_FALSE(lane.producer.has_cell());
}

TEST_CASE("a frame that leads outside the lane is broken", "[lane]") {
  LaneFixture lane(8, 4096);
  Cell& cell = lane.memory.cells[0];
  const auto write = [&](Kind kind, std::uint8_t header, std::uint32_t length, std::uint32_t offset) {
    cell.offset = offset;
    cell.word = Word{1, kind, header, length}.pack();
  };
  Frame frame;
  SECTION("kinds that no sender writes into a lane") {
    const int kind = GENERATE(0, 1, 6, 10, 200, 255);
    write(static_cast<Kind>(kind), 0, 8, 0);
    CHECK(lane.consumer.next(frame) == Peek::broken);
  }
  SECTION("lengths and offsets") {
    const auto [header, length, offset] =
        GENERATE(table<int, std::uint32_t, std::uint32_t>({{0, 4097, 0},
                                                           {0, 0xffffffff, 0},
                                                           {0, 100, 4000},
                                                           {0, 49, 4096},
                                                           {0, 49, 0x7fffffff},
                                                           {255, 0, 4000},
                                                           {255, 4000, 0},
                                                           {255, 0xffffff00, 0},
                                                           {255, 0xffffffff, 0xffffffc0}}));
    write(Kind::first, static_cast<std::uint8_t>(header), length, offset);
    CHECK(lane.consumer.next(frame) == Peek::broken);
    CHECK(lane.consumer.next(frame) == Peek::broken);  // it stays so
  }
  SECTION("elsewhere lies only what begins or continues a message, with its header in the cell") {
    const auto [kind, header] = GENERATE(table<Kind, int>(
        {{Kind::bye, 8}, {kCellShared, 8}, {kCellLane, 0}, {kCellExchange, 0}, {Kind::first, 49}, {Kind::more, 255}}));
    write(kind, static_cast<std::uint8_t>(header), 1000, kElsewhere | 1);
    CHECK(lane.consumer.next(frame) == Peek::broken);
  }
  SECTION("the last byte may be used") {
    write(Kind::more, 0, 96, 4000);
    REQUIRE(lane.consumer.next(frame) == Peek::frame);
    CHECK(frame.data + frame.length == lane.memory.bytes + 4096);
  }
  SECTION("a lap that is not due is no frame") {
    cell.word = Word{2, Kind::first, 0, 8}.pack();
    CHECK(lane.consumer.next(frame) == Peek::nothing);
    CHECK_FALSE(lane.consumer.ready());
  }
}

TEST_CASE("a consumer count that cannot be is no room", "[lane]") {
  LaneFixture lane(8, 4096);
  for (std::uint32_t i = 0; i < 8; ++i) REQUIRE(lane.push(0, 100, i));
  lane.consumed = 9;  // more than was ever sent
  CHECK_FALSE(lane.push(0, 1, 9));
  lane.consumed = ~std::uint64_t{0};
  CHECK_FALSE(lane.push(0, 1, 9));
  lane.consumed = 8;
  CHECK(lane.push(0, 1, 9));
  lane.consumed = 2;  // back in time
  for (std::uint32_t i = 1; i < 8; ++i) CHECK(lane.push(0, 1, i));
  CHECK_FALSE(lane.push(0, 1, 9));
}

TEST_CASE("whatever a lane's memory holds, frames lie inside it", "[lane]") {
  test::property("cells of random words", [](test::Draw& draw) {
    LaneFixture lane(8, 4096);
    for (std::uint32_t i = 0; i < 8; ++i) {
      const std::uint64_t word = std::uint64_t{draw.one_in(2) ? draw.any() : draw.below(8192)} << 32 |
                                 draw.below(256) << 24 | draw.below(8) << 16 | 1;
      lane.memory.cells[i].word = word;
      lane.memory.cells[i].offset = draw.one_in(2) ? draw.any() : draw.below(5000);
    }
    Frame frame;
    while (lane.consumer.next(frame) == Peek::frame) {
      // The address sanitizer watches these reads.
      unsigned sum = 0;
      for (std::uint32_t i = 0; i < frame.header_length; ++i) sum += std::to_integer<unsigned>(frame.header[i]);
      for (std::uint32_t i = 0; i < frame.length; ++i) sum += std::to_integer<unsigned>(frame.data[i]);
      test::must(sum < 0xffffffff, "");
      const bool in_bytes = frame.length == 0 ||
                            (frame.data >= lane.memory.bytes && frame.data + frame.length <= lane.memory.bytes + 4096);
      const auto* cells = reinterpret_cast<const std::byte*>(lane.memory.cells);
      test::must(in_bytes || (frame.data >= cells && frame.data + frame.length <= cells + 8 * sizeof(Cell)),
                 "data outside");
    }
  });
}

TEST_CASE("a lane that grows carries what did not fit its first window", "[lane]") {
  LaneFixture lane(16, 65536);
  lane.producer = LaneProducer(lane.memory, 4096);
  const auto take = [&] {
    Frame frame;
    REQUIRE(lane.consumer.next(frame) == Peek::frame);
    lane.consumer.release(frame);
    lane.consumer.publish();
  };
  REQUIRE(lane.push(0, 64, 1));
  take();
  REQUIRE(lane.push(0, 8, 2));  // needs no bytes and is not read yet
  REQUIRE_FALSE(lane.push(0, 8000, 3));
  REQUIRE(lane.producer.wanted() >= 8000);
  lane.producer.grant(lane.producer.wanted());
  const bool read_first = GENERATE(false, true);
  if (read_first) take();
  CHECK(lane.push(0, 8000, 3));
}

TEST_CASE("a lane that grows behaves as a bounded queue", "[lane]") {
  test::property("the byte ring grows when it is asked to", [](test::Draw& draw) {
    LaneFixture lane(8u << draw.below(3), 16384);
    lane.producer = LaneProducer(lane.memory, 4096);
    // As an outlet does: a push that failed for want of memory is tried again with more.
    struct Growing {
      LaneFixture& lane;
      LaneMemory& memory = lane.memory;
      LaneConsumer& consumer = lane.consumer;
      bool push(std::size_t header, std::size_t length, std::uint32_t seed) {
        if (lane.push(header, length, seed)) return true;
        if (lane.producer.wanted() == 0) return false;
        lane.producer.grant(lane.producer.wanted());
        return lane.push(header, length, seed);
      }
    } growing{lane};
    const auto length = [](test::Draw& d, std::size_t) -> std::size_t {
      return d.one_in(2) ? d.below(49) : d.below(d.one_in(2) ? 1400 : 4000);
    };
    test::run_against_model(growing, draw, length, draw.one_in(2));
  });
}
