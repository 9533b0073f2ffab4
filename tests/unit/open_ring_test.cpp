#include "base/ring.hpp"

#include "ring_model.hpp"

using namespace ulfm;
using test::OpenFixture;

TEST_CASE("an open ring carries small frames in the cell and others in the slot", "[open_ring]") {
  OpenFixture ring(4, 1024);
  const auto [header, length] = GENERATE(table<std::size_t, std::size_t>({{0, 0},
                                                                          {0, 48},
                                                                          {0, 49},
                                                                          {0, 960},
                                                                          {48, 0},
                                                                          {48, 1},
                                                                          {48, 960},
                                                                          {8, 41},
                                                                          {49, 0},
                                                                          {49, 904},
                                                                          {255, 0},
                                                                          {255, 704}}));
  REQUIRE(ring.push(header, length, 5));
  CHECK(ring.consumer.ready());
  Frame frame;
  REQUIRE(ring.consumer.next(frame) == Peek::frame);
  CHECK(test::intact(frame, header, length, 5));
  CHECK(ring.consumer.next(frame) == Peek::nothing);
}

TEST_CASE("room() is what a slot really has, for every header the contract allows", "[open_ring]") {
  const std::uint32_t stride = GENERATE(128u, 192u, 384u, 2048u);
  OpenFixture ring(2, stride);
  for (std::size_t header = 0; header <= 255; ++header) {
    if (body_bytes(header, 0) > stride - sizeof(Cell)) continue;
    INFO("stride " << stride << " header " << header);
    const std::size_t room = ring.memory.room(header);
    REQUIRE(room < stride);
    REQUIRE(ring.push(header, room, 3));
    Frame frame;
    REQUIRE(ring.consumer.next(frame) == Peek::frame);
    REQUIRE(test::intact(frame, header, room, 3));
    ring.consumer.release(frame);
  }
}

TEST_CASE("a full open ring takes nothing; a released slot is free whatever the order", "[open_ring]") {
  OpenFixture ring(4, 256);
  for (std::uint32_t i = 0; i < 4; ++i) CHECK(ring.push(0, 100, i));
  CHECK_FALSE(ring.push(0, 1, 4));
  std::vector<Frame> frames(4);
  for (Frame& f : frames) REQUIRE(ring.consumer.next(f) == Peek::frame);
  ring.consumer.release(frames[2]);
  CHECK_FALSE(ring.push(0, 1, 5));  // slot 0 comes next
  CHECK(test::intact(frames[0], 0, 100, 0));
  ring.consumer.release(frames[0]);
  CHECK(ring.push(0, 1, 5));
  CHECK_FALSE(ring.push(0, 1, 6));
}

TEST_CASE("an open ring of one slot is the original machine", "[open_ring]") {
  OpenFixture ring(1, 256);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    REQUIRE(ring.push(0, i % 192, i));
    REQUIRE_FALSE(ring.push(0, 1, i));
    Frame frame;
    REQUIRE(ring.consumer.next(frame) == Peek::frame);
    REQUIRE(ring.consumer.next(frame) == Peek::nothing);
    REQUIRE_FALSE(ring.push(0, 1, i));
    ring.consumer.release(frame);
  }
}

TEST_CASE("an open ring behaves as a bounded queue", "[open_ring]") {
  for (const bool in_order : {true, false})
    test::property(in_order ? "released in order" : "released in any order", [&](test::Draw& draw) {
      const std::uint32_t stride = 384 + 64 * draw.below(20);
      OpenFixture ring(1u << draw.below(5), stride);
      const auto length = [&](test::Draw& d, std::size_t header) -> std::size_t {
        return d.below(static_cast<std::uint32_t>(ring.memory.room(header)) + 1);
      };
      test::run_against_model(ring, draw, length, in_order);
    });
}

TEST_CASE("laps of an open ring wrap around", "[open_ring]") {
  OpenFixture ring(2, 128);
  const std::uint32_t frames = 2 * 0x10000 + 100;
  for (std::uint32_t i = 0; i < frames; ++i) {
    Frame frame;
    if (!ring.push(0, i % 64, i) || ring.consumer.next(frame) != Peek::frame || frame.origin != i) FAIL("frame " << i);
    ring.consumer.release(frame);
  }
}

TEST_CASE("a claim that is not published holds the ring up until it is skipped", "[open_ring]") {
  OpenFixture ring(4, 256);
  std::uint64_t position = 0;
  REQUIRE(ring.producer.claim(17, position));
  REQUIRE(ring.push(0, 10, 1));
  Frame frame;
  CHECK(ring.consumer.next(frame) == Peek::nothing);
  CHECK_FALSE(ring.consumer.ready());
  std::uint32_t who = 0;
  REQUIRE(ring.consumer.stuck_on(who));
  CHECK(who == 17);
  ring.consumer.skip_claim(16);  // not that one
  CHECK(ring.consumer.next(frame) == Peek::nothing);
  ring.consumer.skip_claim(17);
  REQUIRE(ring.consumer.next(frame) == Peek::frame);
  CHECK(frame.kind == kCellSkip);
  ring.consumer.release(frame);
  CHECK_FALSE(ring.consumer.stuck_on(who));
  REQUIRE(ring.consumer.next(frame) == Peek::frame);
  CHECK(test::intact(frame, 0, 10, 1));
  ring.consumer.release(frame);
  for (std::uint32_t i = 0; i < 4; ++i) CHECK(ring.push(0, 10, i));
}

TEST_CASE("a claimer that dies before it moves the tail does not close the ring", "[open_ring]") {
  OpenFixture ring(4, 256);
  // The first half of a claim: the cell is taken, the tail is not moved.
  ring.memory.cell(0).word = Word{1, kCellClaimed, 0, 17}.pack();
  Frame frame;
  SECTION("another sender comes before the claim is skipped") {
    REQUIRE(ring.push(0, 10, 1));
    ring.consumer.skip_claim(17);
    REQUIRE(ring.consumer.next(frame) == Peek::frame);
    ring.consumer.release(frame);
    REQUIRE(ring.consumer.next(frame) == Peek::frame);
    CHECK(test::intact(frame, 0, 10, 1));
  }
  SECTION("the claim is skipped and its slot released before anyone else comes") {
    ring.consumer.skip_claim(17);
    REQUIRE(ring.consumer.next(frame) == Peek::frame);
    CHECK(frame.kind == kCellSkip);
    ring.consumer.release(frame);
    REQUIRE(ring.push(0, 10, 1));
    REQUIRE(ring.consumer.next(frame) == Peek::frame);
    CHECK(test::intact(frame, 0, 10, 1));
  }
}

TEST_CASE("a frame that leads outside its slot is broken and passed by", "[open_ring]") {
  OpenFixture ring(2, 256);
  const auto [kind, header, length] = GENERATE(table<int, int, std::uint32_t>({{7, 0, 8},
                                                                               {255, 0, 8},
                                                                               {2, 0, 193},
                                                                               {2, 0, 0xffffffff},
                                                                               {3, 8, 193},
                                                                               {2, 255, 0},
                                                                               {2, 200, 0},
                                                                               {2, 200, 100},
                                                                               {2, 192, 1},
                                                                               {5, 100, 0xffffff00}}));
  ring.memory.cell(0).word = Word{1, static_cast<Kind>(kind), static_cast<std::uint8_t>(header), length}.pack();
  ring.memory.cell(0).origin = 9;
  ring.tail = 1;
  Frame frame;
  REQUIRE(ring.consumer.next(frame) == Peek::broken);
  CHECK(frame.origin == 9);
  ring.consumer.release(frame);
  REQUIRE(ring.push(0, 100, 1));
  REQUIRE(ring.consumer.next(frame) == Peek::frame);
  CHECK(test::intact(frame, 0, 100, 1));
}

TEST_CASE("whatever an open ring's memory holds, frames lie inside their slots", "[open_ring]") {
  test::property("cells of random words", [](test::Draw& draw) {
    const std::uint32_t stride = 128 + 64 * draw.below(8);
    OpenFixture ring(8, stride);
    for (std::uint32_t i = 0; i < 8; ++i)
      ring.memory.cell(i).word = std::uint64_t{draw.one_in(2) ? draw.any() : draw.below(1024)} << 32 |
                                 draw.below(256) << 24 | draw.below(8) << 16 | 1;
    Frame frame;
    for (Peek peek = ring.consumer.next(frame); peek != Peek::nothing; peek = ring.consumer.next(frame)) {
      if (peek == Peek::frame) {
        const std::byte* slot = ring.memory.slots + frame.position % 8 * stride;
        test::must(frame.header >= slot && frame.header + frame.header_length <= slot + stride, "header outside");
        test::must(frame.data >= slot && frame.data + frame.length <= slot + stride, "data outside");
      }
      ring.consumer.release(frame);
    }
  });
}
