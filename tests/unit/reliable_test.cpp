// The protocol in single steps, with a clock of the test's own.
#include "proto/reliable/reliable.hpp"

#include "base/crc32c.hpp"
#include "environment.hpp"
#include "fake_network.hpp"
#include "job/liveness.hpp"
#include "pattern.hpp"
#include "property.hpp"
#include "proto/stack.hpp"

using namespace ulfm;
using namespace ulfm::reliable;

namespace {

constexpr std::uint16_t kPort = 1;

ReliableSettings settings_for(test::FakeClock& clock) {
  ReliableSettings settings;
  settings.clock = &clock;
  settings.keepalive_every = 0ms;
  return settings;
}

/// Two processes, a sender and a receiver; time passes only when the test says so.
struct Pair {
  explicit Pair(const ReliableSettings& wanted = {}) {
    ReliableSettings settings = wanted;
    settings.clock = &clock;
    settings.keepalive_every = 0ms;
    for (int i = 0; i < 2; ++i) {
      transport[i] = std::make_unique<ReliableTransport>(std::make_unique<test::FakeTransport>(network, i), settings);
      inlet[i] = transport[i]->open(kPort, InletOptions{}).value();
    }
    outlet = transport[0]->connect("fake:1", kPort, kPort, {}, counters).value();
  }
  ~Pair() {
    network->cut = false;
    clock.set_step(1ms);
    outlet.reset();
  }
  bool send(std::uint32_t seed, std::size_t size = 40) {
    const auto bytes = test::pattern_bytes(seed, size);
    const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
    Gather data(std::span(&piece, 1));
    return outlet->push(Kind::first, std::as_bytes(std::span(&seed, 1)), data, size);
  }
  /// The number of the next frame at the receiver, which is released; -1 when there is none.
  std::int64_t receive() {
    Frame frame;
    if (!inlet[1]->next(frame)) return -1;
    if (frame.kind == Kind::bye) return release(frame, -2);
    std::uint32_t seed = 0;
    REQUIRE(frame.header_length == sizeof seed);
    std::memcpy(&seed, frame.header, sizeof seed);
    CHECK(test::matches({frame.data, frame.length}, seed));
    return release(frame, seed);
  }
  std::int64_t release(const Frame& frame, std::int64_t value) {
    inlet[1]->release(frame);
    return value;
  }
  void poll_sender() {
    Frame frame;
    CHECK_FALSE(inlet[0]->next(frame));
  }
  test::FakeInlet& wire(int side) { return *network->ports.at({"fake:" + std::to_string(side), kPort}); }
  const Counters& count(int side) const { return transport[side]->counters(); }

  test::FakeClock clock{0ns};
  std::shared_ptr<test::FakeNetwork> network = std::make_shared<test::FakeNetwork>();
  PortCounters counters;
  std::unique_ptr<ReliableTransport> transport[2];
  std::unique_ptr<Inlet> inlet[2];
  std::unique_ptr<Outlet> outlet;
};

}  // namespace

TEST_CASE("only what begins a message is charged for by a transport at a machine's pace", "[reliable]") {
  Pair pair;
  REQUIRE(pair.send(1));
  const auto bytes = test::pattern_bytes(2, 40);
  const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  Gather data(std::span(&piece, 1));
  REQUIRE(pair.outlet->push(Kind::more, {}, data, bytes.size()));
  REQUIRE(pair.wire(1).arrived.size() == 2);
  CHECK(pair.wire(1).arrived[0].kind == Kind::first);
  CHECK(pair.wire(1).arrived[1].kind == Kind::more);
  Frame frame;
  for (int i = 0; i < 2; ++i) {
    REQUIRE(pair.inlet[1]->next(frame));
    pair.inlet[1]->release(frame);
  }
  (void)pair.inlet[1]->next_deadline();  // acknowledges
  REQUIRE_FALSE(pair.wire(0).arrived.empty());
  CHECK(pair.wire(0).arrived[0].kind == Kind::more);
  pair.poll_sender();
}

TEST_CASE("a header survives the wire, and no damaged one does", "[reliable]") {
  test::property("header", [](test::Draw& draw) {
    WireHeader h;
    h.payload = static_cast<Payload>(draw.below(4));
    h.has_ack = draw.one_in(2);
    h.part = draw.one_in(2);
    h.probe = draw.one_in(2);
    h.last = draw.one_in(2);
    h.header = static_cast<std::uint8_t>(draw.below(216));
    h.stream = draw.any();
    h.number = draw.any();
    if (h.part) h.offset = draw.any();
    if (h.has_ack) h.ack = {draw.any(), draw.any(), std::uint64_t{draw.any()} << 32 | draw.any(), 0};
    h.ack.credit = static_cast<std::uint16_t>(draw.any());
    h.ack.twice = h.has_ack && draw.one_in(2);
    const auto body = test::pattern_bytes(3, h.header + draw.below(300));
    std::vector<std::byte> header(h.size() + h.header);
    encode(h, crc32c(body.data(), body.size()), header.data());
    std::copy_n(body.begin(), h.header, header.begin() + static_cast<std::ptrdiff_t>(h.size()));
    std::vector<std::byte> data(body.begin() + h.header, body.end());
    Frame frame;
    frame.header = header.data();
    frame.header_length = static_cast<std::uint32_t>(header.size());
    frame.data = data.data();
    frame.length = static_cast<std::uint32_t>(data.size());
    WireHeader back;
    test::must(decode(frame, back), "a good frame");
    test::must(back.payload == h.payload && back.stream == h.stream && back.number == h.number && back.last == h.last &&
                   back.offset == h.offset && back.probe == h.probe && back.header == h.header &&
                   back.ack.stream == h.ack.stream && back.ack.next == h.ack.next && back.ack.held == h.ack.held &&
                   back.ack.credit == h.ack.credit && back.ack.twice == h.ack.twice,
               "what went in comes out");
    const std::size_t bit = draw.below(static_cast<std::uint32_t>((header.size() + data.size()) * 8));
    std::byte& hit = bit / 8 < header.size() ? header[bit / 8] : data[bit / 8 - header.size()];
    hit ^= static_cast<std::byte>(1u << bit % 8);
    test::must(!decode(frame, back), "a turned bit is seen");
    frame.header_length = draw.below(static_cast<std::uint32_t>(header.size()));
    test::must(!decode(frame, back), "a short header is seen");
  });
}

TEST_CASE("the time-out follows RFC 6298 within its bounds", "[reliable]") {
  ReliableSettings settings;
  RoundTrip trip(settings);
  CHECK(trip.timeout() == settings.first_timeout);
  trip.sample(10us);
  CHECK(trip.timeout() == settings.least_timeout);
  trip = RoundTrip(settings);
  trip.sample(8ms);
  CHECK(trip.smoothed() == 8ms);
  CHECK(trip.timeout() == 24ms);  // 8 + 4 * 4
  trip.sample(16ms);
  CHECK(trip.smoothed() == 9ms);
  CHECK(trip.timeout() == 29ms);  // variation (3 * 4 + 8) / 4 = 5
  CHECK(trip.timeout(1) == 58ms);
  CHECK(trip.timeout(20) == settings.most_timeout);
  trip.sample(10s);
  CHECK(trip.timeout() == settings.most_timeout);
}

TEST_CASE("a lengthened time-out stays until something is measured, or answers come at once", "[reliable]") {
  ReliableSettings settings;
  RoundTrip trip(settings);
  trip.answered_at_once();
  CHECK(trip.timeout() == settings.first_timeout);
  trip.too_short();
  CHECK(trip.timeout() == 6ms);
  trip.too_short();
  CHECK(trip.timeout() == 12ms);
  trip.answered_at_once();
  CHECK(trip.timeout() == settings.first_timeout);
  for (int i = 0; i < 20; ++i) trip.too_short();
  CHECK(trip.timeout() == settings.most_timeout);
  trip.sample(8ms);
  CHECK(trip.timeout() == 24ms);
  trip.sample(10s);
  trip.too_short();
  CHECK(trip.timeout() == settings.most_timeout);
  trip.answered_at_once();
  CHECK(trip.timeout() == settings.most_timeout);
}

TEST_CASE("who is answered late, as where many processes share a core, sends hardly anything again", "[reliable]") {
  const auto late = GENERATE(20ms, 150ms);
  Pair pair;
  std::uint64_t resent = 0;
  for (std::uint32_t message = 0; message < 60; ++message) {
    REQUIRE(pair.send(message));
    for (auto waited = 0ms; waited < late; waited += 1ms) {
      pair.poll_sender();
      pair.clock.advance(1ms);
    }
    CHECK(pair.receive() == message);
    CHECK(pair.receive() == -1);
    pair.clock.advance(100us);
    CHECK(pair.receive() == -1);  // answers
    pair.poll_sender();           // takes the acknowledgements
    if (message == 19) resent = pair.count(0).resent;
  }
  CHECK(resent >= 1);
  CHECK(pair.count(0).resent <= resent + 4);  // of 40: where answers vary little, the time-out comes near to them
  CHECK(pair.count(0).given_up == 0);
  CHECK(pair.count(0).resent == pair.count(1).duplicates);
}

TEST_CASE("a process that was away takes its own absence for no round trip", "[reliable]") {
  Pair pair;
  for (std::uint32_t message = 0; message < 20; ++message) {
    REQUIRE(pair.send(message));
    pair.poll_sender();  // from here on it counts as sent
    CHECK(pair.receive() == message);
    CHECK(pair.receive() == -1);  // sees that it has to answer
    pair.clock.advance(100us);
    CHECK(pair.receive() == -1);  // and does
    pair.clock.advance(500ms);    // the sender is away, and the answer lies there
    pair.poll_sender();
  }
  CHECK(pair.count(0).resent == 0);
  REQUIRE(pair.send(20));
  pair.wire(1).arrived.clear();
  pair.poll_sender();
  pair.clock.advance(3ms);
  pair.poll_sender();
  CHECK(pair.count(0).resent == 1);
}

TEST_CASE("frames in order are the transport's own bytes", "[reliable]") {
  Pair pair;
  REQUIRE(pair.send(1, 500));
  const auto* there = pair.wire(1).arrived.front().data.data();
  Frame frame;
  REQUIRE(pair.inlet[1]->next(frame));
  CHECK(frame.data == there);
  pair.inlet[1]->release(frame);
  CHECK(pair.wire(1).held() == 0);
}

TEST_CASE("a lost frame is sent again after the time-out, and not before", "[reliable]") {
  Pair pair;
  REQUIRE(pair.send(1));
  pair.wire(1).arrived.clear();
  pair.poll_sender();  // from here on it counts as sent
  pair.clock.advance(2999us);
  pair.poll_sender();
  CHECK(pair.receive() == -1);
  CHECK(pair.inlet[0]->next_deadline() == 1us);
  pair.clock.advance(1us);
  pair.poll_sender();
  CHECK(pair.count(0).resent == 1);
  CHECK(pair.receive() == 1);
  CHECK(pair.receive() == -1);
}

TEST_CASE("three later frames show a loss without any time-out", "[reliable]") {
  Pair pair;
  for (std::uint32_t i = 0; i < 5; ++i) REQUIRE(pair.send(i));
  pair.wire(1).arrived.erase(pair.wire(1).arrived.begin() + 1);
  CHECK(pair.receive() == 0);
  CHECK(pair.receive() == -1);
  CHECK(pair.count(1).kept == 3);
  pair.poll_sender();
  CHECK(pair.count(0).resent == 1);
  for (std::uint32_t i = 1; i < 5; ++i) CHECK(pair.receive() == i);
  CHECK(pair.count(1).duplicates == 0);
}

TEST_CASE("a lost acknowledgement costs a retransmission that nobody sees", "[reliable]") {
  Pair pair;
  REQUIRE(pair.send(1));
  CHECK(pair.receive() == 1);
  pair.wire(0).arrived.clear();
  pair.poll_sender();
  pair.clock.advance(3ms);
  pair.poll_sender();
  CHECK(pair.receive() == -1);
  CHECK(pair.count(1).duplicates == 1);
  pair.poll_sender();
  pair.clock.advance(1s);
  pair.poll_sender();
  CHECK(pair.count(0).resent == 1);
}

TEST_CASE("an acknowledgement waits for a frame that takes it along", "[reliable]") {
  Pair pair;
  auto back = pair.transport[1]->connect("fake:0", kPort, kPort, {}, pair.counters).value();
  REQUIRE(pair.send(0));
  CHECK(pair.receive() == 0);  // the first answer comes at once: the sender knows nothing of its credit yet
  pair.poll_sender();
  const std::uint64_t alone = pair.count(1).acks;
  for (std::uint32_t i = 1; i < 10; ++i) {
    REQUIRE(pair.send(i));
    CHECK(pair.receive() == i);
    Gather none;
    REQUIRE(back->push(Kind::first, {}, none, 0));
    Frame frame;
    REQUIRE(pair.inlet[0]->next(frame));
    pair.inlet[0]->release(frame);
  }
  CHECK(pair.count(1).acks == alone);
  CHECK(pair.inlet[0]->next_deadline() == kForever);  // all of them acknowledged
  SECTION("and goes alone after 50 us") {
    const std::uint64_t before = pair.count(1).acks;
    REQUIRE(pair.send(10));
    CHECK(pair.receive() == 10);
    CHECK(pair.receive() == -1);
    pair.clock.advance(49us);
    CHECK(pair.receive() == -1);
    CHECK(pair.count(1).acks == before);
    pair.clock.advance(1us);
    CHECK(pair.receive() == -1);
    CHECK(pair.count(1).acks == before + 1);
  }
  SECTION("or before a sleep") {
    const std::uint64_t before = pair.count(1).acks;
    REQUIRE(pair.send(10));
    CHECK(pair.receive() == 10);
    (void)pair.inlet[1]->next_deadline();
    CHECK(pair.count(1).acks == before + 1);
  }
  back.reset();
}

TEST_CASE("a receiver that does not read is not overrun, and goes on when it does", "[reliable]") {
  Pair pair;
  std::uint32_t sent = 0;
  // Somebody looks after its port, but nobody takes anything.
  for (int turns = 0; turns < 1000; ++turns) {
    while (pair.send(sent)) ++sent;
    (void)pair.inlet[1]->next_deadline();
    pair.clock.advance(1ms);
    pair.poll_sender();
  }
  CHECK(sent <= 8 + kMostWindow);
  std::uint32_t got = 0;
  for (; got < 500; ++got) {
    while (sent < 500 && pair.send(sent)) ++sent;
    std::int64_t number = -1;
    for (int turns = 0; turns < 1000 && number < 0; ++turns) {
      pair.clock.advance(1ms);
      pair.poll_sender();
      while (sent < 500 && pair.send(sent)) ++sent;
      number = pair.receive();
    }
    REQUIRE(number == got);
  }
}

void cut_after_one_frame(Pair& pair) {
  REQUIRE(pair.send(0));
  CHECK(pair.receive() == 0);
  pair.poll_sender();
  pair.network->cut = true;
}

// Time until the peer of a cut connection is given up, when the port is polled as its deadlines say.
std::chrono::nanoseconds time_to_give_up(Pair& pair, std::chrono::nanoseconds most, Error& error) {
  std::chrono::nanoseconds waited{0};
  while (!pair.inlet[0]->take_given_up(error)) {
    REQUIRE(waited < most);
    pair.poll_sender();
    const auto sleep = std::min<std::chrono::nanoseconds>(pair.inlet[0]->next_deadline(), 100ms);
    pair.clock.advance(sleep);
    waited += sleep;
  }
  return waited;
}

TEST_CASE("a peer that stops answering is an error with its name, and never a wait for ever", "[reliable]") {
  ReliableSettings settings;
  settings.give_up = 500ms;
  Pair pair(settings);
  cut_after_one_frame(pair);
  REQUIRE(pair.send(1, 100));
  REQUIRE(pair.send(2, 200));
  Error error;
  const auto waited = time_to_give_up(pair, 700ms, error);
  INFO(error.what);
  CHECK(waited >= 500ms);
  CHECK(error.code == Errc::peer_failed);
  CHECK(error.what.find("process 4711, port 1") != std::string::npos);
  CHECK(error.what.find("2 frames with 300 bytes") != std::string::npos);
  CHECK(error.what.find("ULFM_GIVE_UP") != std::string::npos);
  CHECK_FALSE(pair.outlet->peer_listening());
  CHECK_FALSE(pair.send(3));
  CHECK_FALSE(pair.inlet[0]->take_given_up(error));
  CHECK(pair.outlet->bye());
}

TEST_CASE("a sender that could not be reached for a while is answered later", "[reliable]") {
  Pair pair;
  pair.network->failing_connects = 3;
  REQUIRE(pair.send(1));
  CHECK(pair.receive() == 1);
  pair.clock.set_step(20us);
  for (int turn = 0; turn < 1000 && pair.network->failing_connects != 0; ++turn) CHECK(pair.receive() == -1);
  for (int turn = 0; turn < 20; ++turn) CHECK(pair.receive() == -1);
  CHECK(pair.network->failing_connects == 0);
  CHECK(pair.count(1).acks != 0);
  pair.poll_sender();
  pair.clock.advance(1s);
  pair.poll_sender();
  CHECK(pair.count(0).resent == 0);
}

TEST_CASE("a time to give up that somebody has set is not made longer by a crowd", "[reliable]") {
  const auto asks_for_the_crowd = [](const Config& config) {
    const auto settings = protocol_settings(config);
    const auto* asked = settings.crowding.target<double (*)() noexcept>();
    return asked != nullptr && *asked == &crowding;
  };
  CHECK(asks_for_the_crowd(test::config_with({})));
  CHECK_FALSE(asks_for_the_crowd(test::config_with({{"GIVE_UP", "10s"}})));
}

TEST_CASE("a peer on a crowded host has more time to answer", "[reliable]") {
  double crowding = 1;
  ReliableSettings settings;
  settings.give_up = 500ms;
  settings.crowding = [&crowding] { return crowding; };
  Pair pair(settings);
  cut_after_one_frame(pair);
  crowding = 6;
  REQUIRE(pair.send(1));
  Error error;

  SECTION("in proportion to the crowd") {
    const auto waited = time_to_give_up(pair, 4000ms, error);
    CHECK(waited >= 3000ms);
    CHECK(waited < 3300ms);
  }
  SECTION("until the crowd has gone") {
    for (int i = 0; i < 10; ++i) {
      pair.clock.advance(100ms);
      pair.poll_sender();
    }
    crowding = 1;
    time_to_give_up(pair, 2200ms, error);
  }
  SECTION("and is not given up when it answers late") {
    for (int i = 0; i < 20; ++i) {
      pair.clock.advance(100ms);
      pair.poll_sender();
    }
    pair.network->cut = false;
    pair.clock.advance(200ms);
    pair.poll_sender();
    CHECK(pair.receive() == 1);
    CHECK_FALSE(pair.inlet[0]->take_given_up(error));
  }
}

TEST_CASE("the time in which nobody asked the peer is no silence of the peer", "[reliable]") {
  ReliableSettings settings;
  settings.give_up = 5s;
  Pair pair(settings);
  cut_after_one_frame(pair);
  REQUIRE(pair.send(1));
  pair.poll_sender();
  pair.clock.advance(30s);  // stopped, say
  pair.poll_sender();
  Error error;
  CHECK_FALSE(pair.inlet[0]->take_given_up(error));
  const auto waited = time_to_give_up(pair, 6s, error);
  CHECK(waited >= 3900ms);
}

TEST_CASE("a sender that always looks late gives a silent peer up all the same", "[reliable]") {
  ReliableSettings settings;
  settings.give_up = 5s;
  Pair pair(settings);
  cut_after_one_frame(pair);
  REQUIRE(pair.send(1));
  Error error;
  int looks = 0;
  for (; !pair.inlet[0]->take_given_up(error); ++looks) {
    REQUIRE(looks < 10);
    pair.poll_sender();
    pair.clock.advance(2s);
  }
  CHECK(looks >= 5);
}

TEST_CASE("a port that was closed after it had read everything is no failure", "[reliable]") {
  Pair pair;
  REQUIRE(pair.send(1));
  CHECK(pair.receive() == 1);
  pair.wire(0).arrived.clear();  // the last answer is lost
  pair.clock.set_step(1ms);
  pair.inlet[1].reset();
  pair.clock.set_step(0ns);
  pair.wire(0).arrived.clear();
  pair.poll_sender();
  pair.clock.advance(100ms);
  pair.poll_sender();
  Error error;
  CHECK_FALSE(pair.inlet[0]->take_given_up(error));
  CHECK(pair.outlet->port_closed());
  CHECK(pair.inlet[0]->next_deadline() == kForever);
}

TEST_CASE("a goodbye is acknowledged like any frame, and answered when its answer was lost", "[reliable]") {
  Pair pair;
  REQUIRE(pair.send(1));
  REQUIRE(pair.outlet->bye());
  pair.outlet.reset();  // what it sent stays the port's business
  CHECK(pair.receive() == 1);
  Frame frame;
  REQUIRE(pair.inlet[1]->next(frame));
  CHECK(frame.kind == Kind::bye);
  pair.inlet[1]->release(frame);
  pair.inlet[1]->drop_origin(frame.origin);
  CHECK(pair.inlet[1]->origin(frame.origin).process == ProcessId{});
  CHECK_FALSE(pair.wire(1).origins[frame.origin].forgotten);
  pair.wire(0).arrived.clear();
  pair.poll_sender();
  pair.clock.advance(3ms);
  pair.poll_sender();  // the goodbye again
  CHECK_FALSE(pair.inlet[1]->next(frame));
  CHECK(pair.count(1).duplicates != 0);
  pair.poll_sender();  // acknowledged: now the transport's own goodbye
  pair.poll_sender();
  CHECK_FALSE(pair.inlet[1]->next(frame));
  CHECK(pair.wire(1).origins[frame.origin].forgotten);
  pair.outlet = pair.transport[0]->connect("fake:1", kPort, kPort, {}, pair.counters).value();
}

TEST_CASE("a port can talk to itself", "[reliable]") {
  Pair pair;
  auto self = pair.transport[1]->connect("fake:1", kPort, kPort, {}, pair.counters).value();
  std::swap(pair.outlet, self);
  for (std::uint32_t i = 0; i < 300; ++i) {
    REQUIRE(pair.send(i));
    REQUIRE(pair.receive() == i);
  }
  self.reset();
}

TEST_CASE("who has no port cannot send: there is no way back", "[reliable]") {
  Pair pair;
  const auto outlet = pair.transport[0]->connect("fake:1", kPort, 9, {}, pair.counters);
  REQUIRE_FALSE(outlet);
  CHECK(outlet.error().code == Errc::invalid);
  CHECK(outlet.error().what.find("port 9 is not open") != std::string::npos);
  CHECK_FALSE(pair.transport[0]->connect("fake:1", kPort, kNoPort, {}, pair.counters));
}

TEST_CASE("memory of unacknowledged frames goes round and grows only when it is empty", "[reliable]") {
  test::property(
      "byte ring",
      [](test::Draw& draw) {
        constexpr std::size_t kLimit = 40000;
        ByteRing ring(kLimit);
        std::deque<std::pair<std::byte*, std::size_t>> pieces;
        std::uint32_t first = 0, last = 0;
        while (draw.more()) {
          if (draw.one_in(2)) {
            const std::size_t size = 1 + draw.below(20000);
            std::byte* piece = ring.take(size);
            test::must(piece != nullptr || !pieces.empty(), "an empty ring has room for anything");
            if (piece == nullptr) continue;
            test::fill({piece, size}, last++);
            pieces.emplace_back(piece, size);
            if (draw.one_in(5)) {
              ring.undo(piece);
              pieces.pop_back();
              --last;
            }
          } else if (!pieces.empty()) {
            const auto [piece, size] = pieces.front();
            test::must(test::matches({piece, size}, first++), "a piece was overwritten");
            ring.give_back(piece, size);
            pieces.pop_front();
          }
          test::must(ring.capacity() <= kLimit, "the limit");
        }
      },
      10);
}

TEST_CASE("several threads use a port's inlet and outlets at once", "[reliable]") {
  // The transport of this test is not for threads, so the protocol's lock is what makes it work.
  test::FakeClock clock;
  auto network = std::make_shared<test::FakeNetwork>();
  ReliableTransport transport(std::make_unique<test::FakeTransport>(network, 1), settings_for(clock));
  auto inlet = transport.open(kPort, InletOptions{}).value();
  PortCounters counters;
  constexpr std::uint32_t kFrames = 3000;
  constexpr int kSenders = 3;
  std::vector<std::unique_ptr<Outlet>> outlets;
  for (int i = 0; i < kSenders; ++i) outlets.push_back(transport.connect("fake:1", kPort, kPort, {}, counters).value());
  std::vector<std::thread> threads;
  for (auto& outlet : outlets)
    threads.emplace_back([&outlet] {
      for (std::uint32_t n = 0; n < kFrames;) {
        Gather none;
        if (outlet->push(Kind::first, std::as_bytes(std::span(&n, 1)), none, 0)) ++n;
        else std::this_thread::yield();
      }
    });
  std::vector<std::uint32_t> next(kSenders, 0);
  for (std::uint32_t got = 0; got < kSenders * kFrames;) {
    Frame frame;
    if (!inlet->next(frame)) continue;
    std::uint32_t number = 0;
    std::memcpy(&number, frame.header, sizeof number);
    REQUIRE(frame.origin < next.size());
    REQUIRE(number == next[frame.origin]++);
    inlet->release(frame);
    ++got;
  }
  for (std::thread& thread : threads) thread.join();
  outlets.clear();
}
