// Memory in which the two directions of a connection write in turn: who may write where, and what happens without it.
#include <catch2/catch.hpp>

#include <sys/mman.h>

#include <deque>
#include <filesystem>
#include <random>
#include <set>
#include <thread>

#include "child.hpp"
#include "environment.hpp"
#include "pattern.hpp"
#include "refused_calls.hpp"
#include "skipped.hpp"
#include "transport/direct/direct.hpp"
#include "transport/direct/exchange.hpp"
#include "transport/direct/outlet.hpp"

using namespace ulfm;
using direct::Exchange;
using direct::ExchangeNotice;

namespace {

constexpr std::uint16_t kPorts[] = {5, 6};
constexpr std::size_t kLong = 20000, kShort = 300;

/// Two ports of this process that talk to each other.
struct Two {
  explicit Two(const char* slots = "8", std::initializer_list<std::pair<const char*, const char*>> more = {}) {
    test::Environment environment;
    Config config = Config::load().value();
    REQUIRE(config.set("LANE_AFTER", "0", Origin::command_line, "test"));
    REQUIRE(config.set("EXCHANGE", slots, Origin::command_line, "test"));
    for (const auto& [name, value] : more) REQUIRE(config.set(name, value, Origin::command_line, "test"));
    transport = direct_transport.make(config).value();
    for (int i : {0, 1}) {
      inlet[i] = transport->open(kPorts[i], {}).value();
      inlet[i]->use_counters(counters[i]);
    }
    for (int i : {0, 1}) connect(i);
  }
  void connect(int from) {
    outlet[from] = transport->connect(transport->card(), kPorts[1 - from], kPorts[from], {}, counters[from]).value();
  }
  bool push(int from, std::size_t size, std::uint32_t seed) {
    auto bytes = test::pattern_bytes(seed, size);
    const iovec piece{bytes.data(), size};
    Gather data(std::span(&piece, 1));
    const std::byte head[] = {static_cast<std::byte>(seed)};
    return outlet[from]->push(Kind::first, head, data, size);
  }
  bool next(int at, Frame& frame) {
    for (int look = 0; look < 100; ++look)
      if (inlet[at]->next(frame)) return true;
    return false;
  }
  /// What comes there next is that.
  void take(int at, std::size_t size, std::uint32_t seed) {
    Frame frame;
    REQUIRE(next(at, frame));
    CHECK(frame.length == size);
    CHECK(frame.header[0] == static_cast<std::byte>(seed));
    CHECK(test::matches({frame.data, frame.length}, seed));
    inlet[at]->release(frame);
  }
  void round_trip(std::size_t size, std::uint32_t seed) {
    for (int from : {0, 1}) {
      REQUIRE(push(from, size, seed + from));
      take(1 - from, size, seed + from);
    }
  }
  /// round_trip() for a forked child, whose assertions nobody hears.
  bool answers(std::size_t size, std::uint32_t seed) {
    for (int from : {0, 1}) {
      Frame frame;
      if (!push(from, size, seed) || !next(1 - from, frame) || frame.length != size ||
          !test::matches({frame.data, frame.length}, seed))
        return false;
      inlet[1 - from]->release(frame);
      if (inlet[1 - from]->next(frame)) return false;  // this look gives the room back
    }
    return true;
  }
  void find_nothing() {
    Frame frame;
    for (int at : {0, 1}) CHECK_FALSE(inlet[at]->next(frame));
  }
  std::uint64_t common() const { return counters[0].common_frames.get() + counters[1].common_frames.get(); }
  std::uint64_t exchanged() const { return counters[0].exchanged_frames.get() + counters[1].exchanged_frames.get(); }
  /// Until both have the memory.
  void converse() {
    for (std::uint32_t i = 0; i < 10; ++i) round_trip(kLong, i);
  }

  PortCounters counters[2];
  std::unique_ptr<Transport> transport;
  std::unique_ptr<Inlet> inlet[2];
  std::unique_ptr<Outlet> outlet[2];
};

auto descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

}  // namespace

TEST_CASE("answers are written where the question was read", "[exchange]") {
  Two two;
  two.converse();
  for (const std::size_t size : {std::size_t{1}, std::size_t{48}, direct::kLeastExchanged - 1, direct::kLeastExchanged,
                                 std::size_t{4096}, std::size_t{4097}, std::size_t{32768}}) {
    CAPTURE(size);
    const std::uint64_t before = two.exchanged();
    for (std::uint32_t i = 0; i < 300; ++i) two.round_trip(size, i);
    CHECK(two.exchanged() - before == (size >= direct::kLeastExchanged ? 600 : 0));
  }
}

TEST_CASE("short frames in turn have a cell in common", "[exchange]") {
  Two two;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    two.round_trip(8, i);
    two.find_nothing();
  }
  const std::uint64_t before = two.common();
  CHECK(before != 0);
  CHECK(two.exchanged() == 0);
  for (const std::size_t size : {0u, 48u, 49u, 64u, 200u, 256u, 257u, 5000u}) {
    CAPTURE(size);
    for (std::uint32_t i = 0; i < 100; ++i) {
      two.round_trip(size, i);
      two.find_nothing();
    }
  }
  CHECK(two.common() - before == 2 * 2 * 8 * 100);  // each of the two sees both directions
}

TEST_CASE("a second connection ends the use of the common cell, and loses nothing", "[exchange]") {
  Two two;
  Frame frame;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    two.round_trip(8, i);
    two.find_nothing();
  }
  REQUIRE(two.common() != 0);
  REQUIRE(two.push(0, 8, 1));  // in the common cell
  auto first = std::move(two.outlet[0]);
  two.connect(0);
  REQUIRE(two.push(0, 8, 2));
  std::swap(first, two.outlet[0]);
  REQUIRE(two.push(0, 8, 3));
  std::multiset<std::byte> heads;
  for (int i = 0; i < 3; ++i) {
    REQUIRE(two.next(1, frame));
    heads.insert(frame.header[0]);
    two.inlet[1]->release(frame);
  }
  CHECK(heads == std::multiset{std::byte{1}, std::byte{2}, std::byte{3}});
  two.round_trip(8, 4);
  two.find_nothing();  // and count
  const std::uint64_t before = two.common();
  for (std::uint32_t i = 0; i < 300; ++i) {
    two.round_trip(8, i);
    two.find_nothing();
  }
  CHECK(two.common() == before);
}

TEST_CASE("without a conversation there is no such memory", "[exchange]") {
  SECTION("one way") {
    Two two;
    for (std::uint32_t i = 0; i < 500; ++i) {
      REQUIRE(two.push(0, kLong, i));
      two.take(1, kLong, i);
    }
    CHECK(two.exchanged() == 0);
  }
  SECTION("of short frames") {
    Two two;
    for (std::uint32_t i = 0; i < 500; ++i) two.round_trip(direct::kLeastExchanged - 1, i);
    two.round_trip(kLong, 1);
    CHECK(two.exchanged() == 0);
  }
  SECTION("when it is not wanted") {
    Two two("0");
    for (std::uint32_t i = 0; i < 500; ++i) two.round_trip(kLong, i);
    CHECK(two.exchanged() == 0);
  }
}

TEST_CASE("the memory keeps no descriptor", "[exchange]") {
  Two two;
  const auto before = descriptors();
  two.converse();
  CHECK(two.exchanged() != 0);
  CHECK(descriptors() == before);
}

TEST_CASE("without a free slot frames go by the lane, and in slots again later", "[exchange]") {
  const std::size_t size = GENERATE(kLong, kShort);
  Two two("1");
  two.converse();
  std::vector<Frame> held;
  const std::uint64_t before = two.exchanged();
  for (std::uint32_t i = 0; i < 40; ++i) {
    REQUIRE(two.push(0, size, i));
    REQUIRE(two.next(1, held.emplace_back()));
  }
  const std::uint64_t at_once = two.exchanged() - before;
  CHECK(at_once == (size == kLong ? 1 : direct::kShortSlots));
  for (std::uint32_t i = 0; i < 40; ++i) CHECK(test::matches({held[i].data, held[i].length}, i));
  for (const Frame& frame : held) two.inlet[1]->release(frame);
  for (std::uint32_t i = 0; i < 40; ++i) {
    REQUIRE(two.push(1, size, i));
    two.take(0, size, i);
  }
  CHECK(two.exchanged() - before == 2 * at_once);
}

TEST_CASE("frames of any sizes, held and released in any order, come as they were sent", "[exchange]") {
  const auto slots = GENERATE("1", "3", "32");
  std::mt19937 random(7);
  Two two(slots);
  std::deque<std::pair<std::size_t, std::uint32_t>> sent[2];
  std::vector<std::pair<Frame, std::uint32_t>> held[2];
  std::uint32_t seed = 0;
  for (int step = 0; step < 20000; ++step) {
    const int at = static_cast<int>(random() % 2);
    if (const std::uint32_t what = random() % 4; what == 0) {
      const std::size_t size = random() % 8 == 0 ? random() % 32769 : random() % 4200;
      if (sent[at].size() < 40 && two.push(at, std::min(size, two.outlet[at]->max_frame(1)), ++seed))
        sent[at].emplace_back(size, seed);
    } else if (what == 1 && !sent[1 - at].empty()) {
      Frame frame;
      REQUIRE(two.next(at, frame));
      const auto expected = sent[1 - at].front();
      sent[1 - at].pop_front();
      REQUIRE(frame.header[0] == static_cast<std::byte>(expected.second));
      if (frame.shared_room) {
        REQUIRE(test::matches({frame.data, frame.length}, expected.second));
        two.inlet[at]->release(frame);
      } else {
        held[at].emplace_back(frame, expected.second);
      }
    } else if (what > 1 && !held[at].empty()) {
      const std::size_t which = random() % held[at].size();
      const auto [frame, of] = held[at][which];
      REQUIRE(test::matches({frame.data, frame.length}, of));
      two.inlet[at]->release(frame);
      held[at].erase(held[at].begin() + static_cast<std::ptrdiff_t>(which));
    }
  }
  CHECK(two.exchanged() > 100);
}

TEST_CASE("a second connection ends the use of the memory, and loses nothing", "[exchange]") {
  Two two;
  two.converse();
  REQUIRE(two.push(0, kLong, 1));
  REQUIRE(two.push(1, kLong, 2));
  SECTION("beside the first one") {
    auto other = two.transport->connect(two.transport->card(), kPorts[1], kPorts[0], {}, two.counters[0]).value();
    std::swap(other, two.outlet[0]);
    const std::uint64_t before = two.counters[0].exchanged_frames.get();
    for (std::uint32_t i = 0; i < 20; ++i) REQUIRE(two.push(0, kShort, i));
    std::swap(other, two.outlet[0]);
    for (std::uint32_t i = 20; i < 40; ++i) REQUIRE(two.push(0, kShort, i));
    CHECK(two.counters[0].exchanged_frames.get() == before);
    std::uint32_t next[] = {0, 20};
    bool is_first = true;
    Frame frame;
    for (int all = 0; all < 41; ++all) {
      REQUIRE(two.next(1, frame));
      if (frame.length == kLong) {
        CHECK(test::matches({frame.data, frame.length}, 1));
        CHECK(std::exchange(is_first, false));
      } else {
        std::uint32_t& of = next[static_cast<std::uint32_t>(frame.header[0]) >= 20 ? 1 : 0];
        CHECK(test::matches({frame.data, frame.length}, of++));
      }
      two.inlet[1]->release(frame);
    }
    two.take(0, kLong, 2);
  }
  SECTION("after it") {
    REQUIRE(two.outlet[0]->bye());
    two.connect(0);
    two.take(1, kLong, 1);
    two.take(0, kLong, 2);
    Frame frame;
    REQUIRE(two.next(1, frame));
    CHECK(frame.kind == Kind::bye);
    const std::uint32_t gone = frame.origin;
    two.inlet[1]->release(frame);
    two.inlet[1]->drop_origin(gone);
    const std::uint64_t before = two.exchanged();
    for (std::uint32_t i = 0; i < 50; ++i) two.round_trip(kLong, i);
    CHECK(two.exchanged() == before);
  }
}

TEST_CASE("frames outlive the connections by which they came", "[exchange]") {
  Two two;
  two.converse();
  REQUIRE(two.push(0, kLong, 3));
  REQUIRE(two.outlet[0]->bye());
  two.outlet[0].reset();
  two.outlet[1].reset();
  Frame frame, end;
  REQUIRE(two.next(1, frame));
  REQUIRE(two.next(1, end));
  two.inlet[1]->release(end);
  two.inlet[1]->drop_origin(frame.origin);
  two.inlet[0].reset();
  CHECK(test::matches({frame.data, frame.length}, 3));
  two.inlet[1]->release(frame);
}

TEST_CASE("a port that was opened anew begins anew", "[exchange]") {
  Two two;
  two.converse();
  for (int i : {0, 1}) two.outlet[i].reset();
  for (int i : {0, 1}) two.inlet[i].reset();
  for (int i : {0, 1}) two.inlet[i] = two.transport->open(kPorts[i], {}).value();
  for (int i : {0, 1}) two.connect(i);
  const std::uint64_t before = two.exchanged();
  two.converse();
  CHECK(two.exchanged() > before);
}

// ThreadSanitizer knows nothing of two addresses of one memory: what orders a write here and the read of the answer
// goes through cells that sender and receiver have at different ones. It gets the lanes alone.
#ifdef __SANITIZE_THREAD__
constexpr bool kOwnAddresses = true;
#else
constexpr bool kOwnAddresses = false;
#endif

TEST_CASE("both directions at once, by threads of their own", "[exchange]") {
  constexpr std::uint32_t frames = 3000;
  Two two(kOwnAddresses ? "0" : "2");
  two.converse();
  const std::uint64_t before = two.exchanged();
  std::atomic<std::uint32_t> wrong{0};
  std::vector<std::thread> threads;
  const auto size_of = [](std::uint32_t i) { return i % 7 == 0 ? 9000 + i : 200 + i % 900; };
  for (int side : {0, 1}) {
    threads.emplace_back([&, side] {
      for (std::uint32_t i = 0; i < frames; ++i)
        while (!two.push(side, std::min<std::size_t>(size_of(i), two.outlet[side]->max_frame(1)), i))
          std::this_thread::yield();
    });
    threads.emplace_back([&, side] {
      Frame frame;
      for (std::uint32_t i = 0; i < frames; ++i) {
        while (!two.inlet[side]->next(frame)) std::this_thread::yield();
        if (!test::matches({frame.data, frame.length}, i)) ++wrong;
        two.inlet[side]->release(frame);
      }
    });
  }
  for (std::thread& one : threads) one.join();
  CHECK(wrong == 0);
  CHECK((kOwnAddresses || two.exchanged() > before));
}

// ---- what the other process may say -------------------------------------------------------------------------------

namespace {

/// The two ends of one exchange, with nothing between them.
struct Ends {
  explicit Ends(std::uint32_t slots = 2) : maker(true, slots, passed), other(false, slots, passed) {
    card.pid = getpid();
  }
  ExchangeNotice announce() {
    ExchangeNotice notice{};
    for (int i = 0; i < 10; ++i) {
      maker.heard();
      if (maker.wants_notice(notice, true)) break;
    }
    REQUIRE(notice.token != 0);
    maker.announced();
    return notice;
  }
  bool opens() {
    ExchangeNotice none;
    CHECK_FALSE(maker.wants_notice(none, true));  // looks at the answer
    return maker.take(kLong) >= 0;
  }
  direct::PassedDescriptors passed{100};
  Exchange maker, other;
  direct::DirectCard card;
  direct::Opener opener;
};

}  // namespace

TEST_CASE("a slot is good for one frame of the process that owns it", "[exchange]") {
  Ends ends;
  ends.other.adopt(ends.announce(), ends.opener, ends.card);
  ExchangeNotice none;
  CHECK_FALSE(ends.maker.wants_notice(none, true));
  CHECK(ends.other.take(kLong) == -1);
  const std::int32_t slot = ends.maker.take(kLong);
  REQUIRE(slot == 0);
  test::fill({ends.maker.slot(0), kLong}, 5);
  const std::byte* data = ends.other.locate(0, kLong);
  REQUIRE(data != nullptr);
  CHECK(test::matches({data, kLong}, 5));
  CHECK(ends.other.take(kLong) == -1);  // it is read first
  CHECK(ends.other.release(data));
  CHECK(ends.other.locate(0, kLong) == nullptr);  // its own now
  CHECK(ends.other.take(kLong) == 0);
  CHECK_FALSE(ends.other.release(data - 1));
  CHECK_FALSE(ends.other.release(nullptr));
  for (const std::uint32_t nowhere : {2u, 63u, 64u + 2 * direct::kShortSlots, 1u << 30, 0x7fffffffu})
    CHECK(ends.other.locate(nowhere, 1) == nullptr);
  CHECK(ends.other.locate(1, direct::kLongSlot + 1) == nullptr);
  CHECK(ends.other.locate(64, direct::kShortSlot + 1) == nullptr);
  CHECK(ends.other.locate(1, direct::kLongSlot) != nullptr);
  CHECK(ends.other.locate(64, direct::kShortSlot) != nullptr);
}

TEST_CASE("memory that cannot be opened, or is none, is not used", "[exchange]") {
  Ends ends;
  ExchangeNotice notice = ends.announce();
  SECTION("another file") { notice.fd = 0; }
  SECTION("no descriptor") { notice.fd = 1 << 20; }
  SECTION("other memory") { notice.token ^= 1; }
  SECTION("a process that has gone") { ends.card.pid = 0x7ffffff0; }
  SECTION("too many slots") {
    auto segment = Segment::attach(getpid(), notice.fd).value();
    segment.at<direct::ExchangeHeader>(0)->slots = GENERATE(0u, 3u, 33u, 1u << 31);
  }
  ends.other.adopt(notice, ends.opener, ends.card);
  CHECK_FALSE(ends.opens());
  CHECK(ends.other.take(kLong) == -1);
  CHECK(ends.other.locate(0, 1) == nullptr);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need memory and mappings themselves
// What a machine refuses that has run out: before there is such memory, or when it is there and its slots want pages.
TEST_CASE("a machine without descriptors or memory has frames by the lanes", "[exchange]") {
  struct Refused {
    const char* what;
    long call;
    int error;
    long third = -1;
  };
  const auto refused =
      GENERATE(Refused{"a memory file", SYS_memfd_create, EMFILE}, Refused{"its size", SYS_ftruncate, ENOMEM},
               Refused{"pages", SYS_fallocate, ENOSPC}, Refused{"a mapping", SYS_mmap, ENOMEM},
               Refused{"pages of a mapping", SYS_madvise, ENOMEM, MADV_POPULATE_WRITE});
  const bool late = GENERATE(false, true);
  CAPTURE(refused.what, late);
  test::Child child([&](test::Pipe& parent) {
    Two two;
    two.round_trip(kShort, 1);  // each has a lane
    if (late) two.converse();
    const std::uint64_t before = two.exchanged();
    if (!test::refuse_call(refused.call, refused.error, refused.third)) return parent.send("not here");
    for (std::uint32_t i = 0; i < 200; ++i)
      if (!two.answers(i % 2 == 0 ? kLong : kShort, i)) return parent.send("frames are lost or wrong");
    parent.send(two.exchanged() == before ? "by the lanes" : "by the slots");
  });
  const std::string said = child.pipe().receive();
  if (test::skipped_without(said != "not here", "a kernel that lets a process refuse calls to itself")) return;
  CHECK(said == (late ? "by the slots" : "by the lanes"));
  CHECK(child.wait() == 0);
}
#endif

TEST_CASE("who has two connections refuses the memory", "[exchange]") {
  Ends ends;
  CHECK(ends.other.add_origin());
  CHECK_FALSE(ends.other.add_origin());
  ends.other.adopt(ends.announce(), ends.opener, ends.card);
  CHECK_FALSE(ends.opens());
}
