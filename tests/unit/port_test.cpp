// Ports of one process: lengths, order, the message cache, the original machine, and nobody waiting for ever.
#include <ulfm/ulfm.hpp>

#include <cstdlib>
#include <deque>
#include <thread>

#include "environment.hpp"
#include "fabric/engine/host.hpp"
#include "pattern.hpp"
#include "port/node.hpp"
#include "property.hpp"

using namespace ulfm;
using namespace std::chrono_literals;

namespace {

/// A node with ports, seen from inside.
struct Inside {
  explicit Inside(std::initializer_list<std::pair<const char*, const char*>> settings = {}) {
    for (const auto& [name, value] : settings) environment.set(name, value);
    auto created = Node::create(true);
    REQUIRE(created);
    node = std::move(*created);
  }
  PortCore& open(std::uint16_t number, std::uint32_t depth, std::uint32_t slot = 0) {
    auto port = node->open(number, slot, depth);
    REQUIRE(port);
    return **port;
  }
  PortAddress address(std::uint16_t port) { return {node->process_of_rank(0).value(), port}; }
  Errc send(PortCore& from, std::uint16_t to, std::uint32_t seed, std::size_t size) {
    auto buffer = from.compose(size);
    if (!buffer) return buffer.error().code;
    test::fill(*buffer, seed);
    REQUIRE(from.post(address(to)));
    return Errc::ok;
  }
  Arrival receive(PortCore& port) {
    PortCore* ports[] = {&port};
    Arrival arrival;
    const auto got = node->wait(ports, 60s, arrival);
    INFO((got ? std::string() : got.error().what));
    REQUIRE(got);
    return arrival;
  }

  test::Environment environment;
  std::unique_ptr<Node> node;
};

// As a firewall does that has forgotten it. Both ends are this process's.
int reset_connections() {
  int count = 0;
  sockaddr_in peer{};
  for (int fd = 3; fd < 300; ++fd) {
    socklen_t length = sizeof peer;
    const linger at_once{1, 0};
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) != 0 || peer.sin_family != AF_INET) continue;
    count += setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0 && shutdown(fd, SHUT_RDWR) == 0;
  }
  return count;
}

}  // namespace

TEST_CASE("a message of any length arrives", "[port]") {
  const std::uint32_t depth = GENERATE(1u, 2u, 3u, 64u);
  const std::uint32_t slot = GENERATE(64u, 2048u);
  Inside in;
  PortCore& a = in.open(0, depth, slot);
  PortCore& b = in.open(1, depth, slot);
  std::uint32_t seed = 0;
  for (const std::size_t size : {0ul, 1ul, 39ul, 40ul, 41ul, 47ul, 48ul, 49ul, 63ul, 64ul, 65ul, 2047ul, 2048ul, 2049ul,
                                 32768ul, 32769ul, 100000ul, 1ul << 20, (3ul << 20) + 17}) {
    INFO("depth " << depth << " slot " << slot << " size " << size);
    REQUIRE(in.send(a, 1, ++seed, size) == Errc::ok);
    const Arrival arrival = in.receive(b);
    REQUIRE(arrival.bytes.size() == size);
    REQUIRE(test::matches(arrival.bytes, seed));
    REQUIRE(b.release(arrival.handle));
  }
  CHECK(a.all_sent());
}

TEST_CASE("messages of random lengths arrive in order, held and released as drawn", "[port]") {
  test::property(
      "one sender, one receiver",
      [](test::Draw& draw) {
        Inside in({{"ULFM_LANE_AFTER", "3"}, {"ULFM_LANE_BYTES", "8K"}, {"ULFM_LANE_CELLS", "8"}});
        const std::uint32_t depth = 1 + draw.below(6);
        PortCore& a = in.open(0, 1 + draw.below(6));
        PortCore& b = in.open(1, depth, 64 + draw.below(1000));
        struct Sent {
          std::uint32_t seed;
          std::size_t size;
        };
        std::deque<Sent> sent;
        struct Held {
          Arrival arrival;
          Sent sent;
        };
        std::vector<Held> held;
        std::uint32_t seed = 0;
        const auto release = [&](std::size_t i) {
          test::must(test::matches(held[i].arrival.bytes, held[i].sent.seed), "a held message was overwritten");
          test::must(b.release(held[i].arrival.handle).has_value(), "release");
          held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
        };
        const auto poll = [&] {
          Arrival arrival;
          in.node->drive();
          if (!b.poll(arrival)) return false;
          test::must(held.size() < depth, "more messages held than there are buffers");
          test::must(!sent.empty(), "a message nobody sent");
          test::must(arrival.bytes.size() == sent.front().size && test::matches(arrival.bytes, sent.front().seed),
                     "a message came out wrong");
          held.push_back({arrival, sent.front()});
          sent.pop_front();
          return true;
        };
        while (draw.more()) {
          switch (draw.below(3)) {
            case 0: {
              const std::size_t size = draw.one_in(5) ? draw.below(50000) : draw.below(300);
              const Errc rc = in.send(a, 1, ++seed, size);
              test::must(rc == Errc::ok || rc == Errc::full, "send");
              if (rc == Errc::ok) sent.push_back({seed, size});
              break;
            }
            case 1: poll(); break;
            default:
              if (!held.empty()) release(draw.below(static_cast<std::uint32_t>(held.size())));
          }
        }
        while (!held.empty()) release(0);
        for (int idle = 0; !sent.empty(); ++idle) {
          test::must(idle < 1000000, "messages do not arrive");
          if (poll()) release(0);
        }
      },
      2);
}

TEST_CASE("what a sender puts into its lane after a detour does not overtake what took the detour", "[port]") {
  Inside in({{"ULFM_LANE_AFTER", "3"}, {"ULFM_LANE_BYTES", "8K"}, {"ULFM_LANE_CELLS", "8"}});
  PortCore& a = in.open(0, 1);
  PortCore& b = in.open(1, 3, 64);
  std::deque<std::size_t> sizes;
  const auto send = [&](std::size_t size) {
    REQUIRE(in.send(a, 1, static_cast<std::uint32_t>(size), size) == Errc::ok);
    sizes.push_back(size);
  };
  const auto poll = [&]() -> std::uint64_t {
    Arrival arrival;
    in.node->drive();
    if (!b.poll(arrival)) return 0;
    REQUIRE(arrival.bytes.size() == sizes.front());
    REQUIRE(test::matches(arrival.bytes, static_cast<std::uint32_t>(sizes.front())));
    sizes.pop_front();
    return arrival.handle;
  };
  send(641);
  send(1);
  const std::uint64_t first = poll(), nothing = poll(), held = poll();
  REQUIRE((first != 0 && nothing == 0 && held != 0));
  send(8241);  // fills the lane behind the message that is held
  CHECK(poll() == 0);
  CHECK(poll() == 0);
  send(2);  // by the open ring
  REQUIRE(b.release(held));
  send(3);  // by the lane again, before anybody has looked at the open ring
  REQUIRE(b.release(first));
  for (int turn = 0; !sizes.empty() && turn < 1000; ++turn)
    if (const std::uint64_t handle = poll(); handle != 0) REQUIRE(b.release(handle));
  CHECK(sizes.empty());
}

TEST_CASE("one buffer each way is the original machine", "[port]") {
  Inside in;
  PortCore& a = in.open(0, 1);
  PortCore& b = in.open(1, 1);
  REQUIRE(in.send(a, 1, 1, 100) == Errc::ok);
  CHECK(a.all_sent());  // it lies in the receive buffer: the send buffer's tag is clear again
  Arrival first;
  REQUIRE(b.poll(first));
  SECTION("a second message leaves the valid one alone") {
    REQUIRE(in.send(a, 1, 2, 100) == Errc::ok);
    Arrival second;
    in.node->drive();
    CHECK_FALSE(b.poll(second));
    CHECK(test::matches(first.bytes, 1));
    REQUIRE(b.release(first.handle));
    second = in.receive(b);
    CHECK(test::matches(second.bytes, 2));
  }
  SECTION("what arrives meanwhile goes to the message cache, so the sender can go on (paper 2.3)") {
    for (std::uint32_t i = 2; i < 5; ++i) {
      REQUIRE(in.send(a, 1, i, 100) == Errc::ok);
      in.node->drive();
      Arrival none;
      REQUIRE_FALSE(b.poll(none));
      in.node->drive();
      REQUIRE(a.all_sent());
    }
    CHECK(b.counters().cache_in.get() == 3);
    for (std::uint32_t i = 1; i < 5; ++i) {
      const Arrival arrival = i == 1 ? first : in.receive(b);
      CHECK(test::matches(arrival.bytes, i));
      REQUIRE(b.release(arrival.handle));
    }
    CHECK(b.counters().cache_hits.get() == 3);
  }
}

TEST_CASE("one message held for long does not stop the others", "[port]") {
  // At most `depth` may be held; one of them is well below that, whatever comes and goes meanwhile.
  const char* lanes = GENERATE("0", "64");
  const std::size_t size = GENERATE(20u, 1500u);
  INFO("lanes " << lanes << " size " << size);
  Inside in({{"ULFM_LANES", lanes}, {"ULFM_LANE_AFTER", "0"}});
  PortCore& a = in.open(0, 4);
  PortCore& b = in.open(1, 4);
  REQUIRE(in.send(a, 1, 0, size) == Errc::ok);
  const Arrival first = in.receive(b);
  for (std::uint32_t i = 1; i < 1000; ++i) {
    INFO("message " << i);
    REQUIRE(in.send(a, 1, i, size) == Errc::ok);
    Arrival arrival;
    bool came = false;
    for (int turn = 0; turn < 1000 && !came; ++turn) {
      in.node->drive();
      came = b.poll(arrival);
    }
    REQUIRE(came);
    REQUIRE(test::matches(arrival.bytes, i));
    REQUIRE(b.release(arrival.handle));
  }
  CHECK(test::matches(first.bytes, 0));
  CHECK(b.release(first.handle));
}

TEST_CASE("while every receive buffer is held, arrivals go to the message cache and come out in order", "[port]") {
  Inside in;
  PortCore& a = in.open(0, 64);
  PortCore& b = in.open(1, 4);
  std::uint32_t sent = 0, got = 0;
  for (; sent < 40; ++sent) {  // talk until there is a lane
    REQUIRE(in.send(a, 1, sent, 60) == Errc::ok);
    const Arrival arrival = in.receive(b);
    REQUIRE(test::matches(arrival.bytes, got++));
    REQUIRE(b.release(arrival.handle));
  }
  for (int i = 0; i < 4 + 30; ++i, ++sent) REQUIRE(in.send(a, 1, sent, i % 3 == 0 ? 5000 : 60) == Errc::ok);
  std::vector<Arrival> held;
  Arrival arrival;
  for (int i = 0; i < 4; ++i) held.push_back(in.receive(b));
  for (int i = 0; i < 100; ++i) {
    in.node->drive();
    CHECK_FALSE(b.poll(arrival));
  }
  CHECK(a.all_sent());
  CHECK(b.counters().cache_in.get() == 30);
  CHECK(b.counters().cache_bytes_peak.get() > 30 * 60);
  for (const Arrival& h : held) {
    CHECK(test::matches(h.bytes, got++));
    CHECK(b.release(h.handle));
  }
  for (int i = 0; i < 30; ++i) {
    arrival = in.receive(b);
    CHECK(test::matches(arrival.bytes, got++));
    CHECK(b.release(arrival.handle));
  }
  CHECK(b.counters().cache_hits.get() == 30);
  CHECK_FALSE(b.poll(arrival));
}

TEST_CASE("a full message cache stops the sender and loses nothing", "[port]") {
  Inside in({{"ULFM_CACHE", "4K"}, {"ULFM_FRAME", "1K"}, {"ULFM_LANE_CELLS", "8"}});
  PortCore& a = in.open(0, 64, 512);
  PortCore& b = in.open(1, 2, 512);
  std::deque<std::uint32_t> sent;
  std::uint32_t seed = 0;
  for (int i = 0; i < 200; ++i) {
    if (in.send(a, 1, ++seed, 400) == Errc::ok) sent.push_back(seed);
    in.node->drive();
    b.absorb();
  }
  CHECK(b.counters().cache_bytes_peak.get() <= 4096);
  CHECK_FALSE(a.all_sent());
  while (!sent.empty()) {
    const Arrival arrival = in.receive(b);
    REQUIRE(test::matches(arrival.bytes, sent.front()));
    sent.pop_front();
    REQUIRE(b.release(arrival.handle));
  }
  CHECK(a.all_sent());
}

TEST_CASE("two ports that send everything first both arrive", "[port]") {
  const std::uint32_t depth = GENERATE(1u, 8u);
  test::Environment environment;
  const auto side = [&](Job& job, Port& port, Address to, bool& good) {
    (void)job;
    constexpr std::uint32_t kMessages = 60;
    constexpr std::size_t kSize = 300000;
    good = true;
    for (std::uint32_t i = 0; i < kMessages; ++i) good = good && port.send(test::pattern_bytes(i, kSize), to, 120s);
    good = good && port.flush(120s);
    for (std::uint32_t i = 0; i < kMessages && good; ++i) {
      auto in = port.wait(120s);
      good = in && in->bytes().size() == kSize && test::matches(in->bytes(), i);
    }
  };
  Job one = Job::alone().value(), two = Job::alone().value();
  Port a = one.open_port({.number = 1, .depth = depth}).value(),
       b = two.open_port({.number = 2, .depth = depth}).value();
  bool good_a = false, good_b = false;
  std::thread other([&] { side(two, b, two.address_of_card(one.card(), 1).value(), good_b); });
  side(one, a, one.address_of_card(two.card(), 2).value(), good_a);
  other.join();
  CHECK(good_a);
  CHECK(good_b);
}

TEST_CASE("a port sends to itself", "[port]") {
  Inside in;
  PortCore& a = in.open(5, 4);
  for (std::uint32_t i = 0; i < 100; ++i) {
    REQUIRE(in.send(a, 5, i, i * 1000) == Errc::ok);
    const Arrival arrival = in.receive(a);
    REQUIRE(test::matches(arrival.bytes, i));
    REQUIRE(arrival.source.port == 5);
    REQUIRE(a.release(arrival.handle));
  }
}

TEST_CASE("many senders, one receiver: each one's order is kept", "[port]") {
  Inside in({{"ULFM_LANES", "3"}, {"ULFM_DEPTH", "16"}});
  PortCore& to = in.open(0, 16);
  constexpr std::uint16_t kSenders = 12;
  std::array<std::uint32_t, kSenders> sent{}, got{};
  std::vector<PortCore*> from;
  for (std::uint16_t i = 0; i < kSenders; ++i) from.push_back(&in.open(static_cast<std::uint16_t>(i + 1), 4));
  std::uint32_t total = 0;
  for (int round = 0; round < 4000 || total != 0; ++round) {
    const std::size_t who = static_cast<std::size_t>(round) * 7 % kSenders;
    if (round < 4000 &&
        in.send(*from[who], 0, static_cast<std::uint32_t>(who * 10000 + sent[who]), round % 90) == Errc::ok) {
      ++sent[who];
      ++total;
    }
    in.node->drive();
    Arrival arrival;
    if (to.poll(arrival)) {
      const std::size_t source = arrival.source.port - 1u;
      REQUIRE(test::matches(arrival.bytes, static_cast<std::uint32_t>(source * 10000 + got[source])));
      ++got[source];
      --total;
      REQUIRE(to.release(arrival.handle));
    }
    REQUIRE(round < 10000000);
  }
  CHECK(sent == got);
}

TEST_CASE("a held message stays as it is when its sender closes", "[port]") {
  Inside in({{"ULFM_LANE_AFTER", "1"}});
  PortCore& to = in.open(0, 8);
  in.open(1, 8);
  for (std::uint32_t i = 0; i < 6; ++i) REQUIRE(in.send(*in.node->port(1), 0, i, i % 2 == 0 ? 30 : 1500) == Errc::ok);
  std::vector<Arrival> held;
  for (int i = 0; i < 6; ++i) held.push_back(in.receive(to));
  REQUIRE(in.node->close(1));
  Arrival arrival;
  CHECK_FALSE(to.poll(arrival));  // takes the goodbye
  for (std::uint32_t i = 0; i < 6; ++i) {
    INFO("message " << i);
    CHECK(test::matches(held[i].bytes, i));
    CHECK(to.release(held[i].handle));
  }
  // The room it had is used again, from a clean beginning.
  PortCore& again = in.open(1, 8);
  for (std::uint32_t i = 0; i < 600; ++i) {
    REQUIRE(in.send(again, 0, i, 700) == Errc::ok);
    arrival = in.receive(to);
    REQUIRE(test::matches(arrival.bytes, i));
    REQUIRE(to.release(arrival.handle));
  }
}

TEST_CASE("messages held over their sender's end do not disturb the next sender", "[port]") {
  Inside in({{"ULFM_LANE_AFTER", "1"}});
  PortCore& to = in.open(0, 8);
  in.open(1, 8);
  for (std::uint32_t i = 0; i < 4; ++i) REQUIRE(in.send(*in.node->port(1), 0, i, 700) == Errc::ok);
  std::vector<Arrival> held;
  for (int i = 0; i < 4; ++i) held.push_back(in.receive(to));
  REQUIRE(in.node->close(1));
  Arrival arrival;
  CHECK_FALSE(to.poll(arrival));
  PortCore& again = in.open(1, 8);
  for (std::uint32_t i = 0; i < 3; ++i) REQUIRE(in.send(again, 0, 100 + i, 700) == Errc::ok);
  for (std::uint32_t i = 0; i < 3; ++i) {
    arrival = in.receive(to);
    CHECK(test::matches(arrival.bytes, 100 + i));
    CHECK(to.release(arrival.handle));
  }
  for (const Arrival& h : held) CHECK(to.release(h.handle));
  for (std::uint32_t i = 0; i < 2000; ++i) {
    REQUIRE(in.send(again, 0, i, 700) == Errc::ok);
    arrival = in.receive(to);
    REQUIRE(test::matches(arrival.bytes, i));
    REQUIRE(to.release(arrival.handle));
  }
}

TEST_CASE("a cached message keeps its source when the sender has gone and another came", "[port]") {
  Inside in({{"ULFM_LANE_AFTER", "0"}});
  PortCore& to = in.open(0, 1, 256);
  in.open(1, 8);
  REQUIRE(in.send(*in.node->port(1), 0, 1, 20) == Errc::ok);
  to.absorb();
  REQUIRE(in.node->close(1));
  to.absorb();  // its goodbye
  PortCore& second = in.open(2, 8);
  REQUIRE(in.send(second, 0, 2, 20) == Errc::ok);
  to.absorb();
  Arrival arrival = in.receive(to);
  CHECK(test::matches(arrival.bytes, 1));
  CHECK(arrival.source.port == 1);
  CHECK(to.release(arrival.handle));
  arrival = in.receive(to);
  CHECK(test::matches(arrival.bytes, 2));
  CHECK(arrival.source.port == 2);
  CHECK(to.release(arrival.handle));
}

TEST_CASE("a destination that closed is an error for what could not be delivered, and for what follows", "[port]") {
  Inside in;
  PortCore& from = in.open(0, 4, 64);
  in.open(1, 1, 64);
  REQUIRE(in.send(from, 1, 1, 5000) == Errc::ok);  // more than its slot: stays half sent
  REQUIRE_FALSE(from.all_sent());
  REQUIRE(in.node->close(1));
  const auto flushed = in.node->flush(from, 60s);
  REQUIRE_FALSE(flushed);
  CHECK(flushed.error().code != Errc::timed_out);
  INFO(flushed.error().what);
  CHECK(from.all_sent());
  // Nothing may be taken for sent any more.
  REQUIRE(from.compose(10));
  const auto posted = from.post(in.address(1));
  REQUIRE_FALSE(posted);
  CHECK_FALSE(posted.error().what.empty());
  // When the port is open again it can be reached again.
  PortCore& again = in.open(1, 1, 64);
  REQUIRE(from.discard());
  REQUIRE(in.send(from, 1, 3, 10) == Errc::ok);
  const Arrival arrival = in.receive(again);
  CHECK(test::matches(arrival.bytes, 3));
}

TEST_CASE("messages that are held when their port closes give their room back", "[port]") {
  const std::string transport = GENERATE("direct", "xswitch");  // which tell at once that a port is closed
  const std::string protocol = GENERATE("auto", "always");
  INFO(transport << " " << protocol);
  auto host = fabric::FabricHost::create({"xswitch", "single:2", 1});
  REQUIRE(host);
  const std::string fabric = encode(host->arena().address());
  Inside in(
      {{"ULFM_TRANSPORT", transport.c_str()}, {"ULFM_PROTOCOL", protocol.c_str()}, {"ULFM_FABRIC", fabric.c_str()}});
  constexpr std::uint32_t kHeld = 16;
  PortCore& from = in.open(0, kHeld);
  for (std::uint32_t round = 0; round < 20; ++round) {
    PortCore& to = in.open(1, kHeld);
    for (std::uint32_t i = 0; i < kHeld; ++i) {
      REQUIRE(in.send(from, 1, i, 100) == Errc::ok);
      REQUIRE(test::matches(in.receive(to).bytes, i));
    }
    REQUIRE(in.node->close(1));
  }
  CHECK(in.node->flush(from, 60s));
}

TEST_CASE("a port that was closed and opened again gets the messages of an old correspondent", "[port]") {
  Inside in;
  PortCore& from = in.open(0, 4);
  PortCore& old = in.open(1, 4);
  REQUIRE(in.send(from, 1, 1, 10) == Errc::ok);
  REQUIRE(old.release(in.receive(old).handle));
  REQUIRE(in.node->close(1));
  PortCore& again = in.open(1, 4);
  // Either the sender is told, or the message arrives; it is not lost in silence.
  const auto buffer = from.compose(10);
  REQUIRE(buffer);
  test::fill(*buffer, 2);
  const auto posted = from.post(in.address(1));
  if (!posted) {
    CHECK_FALSE(posted.error().what.empty());
    return;
  }
  PortCore* ports[] = {&again};
  Arrival arrival;
  const auto got = in.node->wait(ports, 60s, arrival);
  REQUIRE(got);
  CHECK(test::matches(arrival.bytes, 2));
}

TEST_CASE("threads with a port each use one job at once", "[port]") {
  test::Environment environment;
  Job job = Job::alone().value();
  constexpr std::uint32_t kThreads = 4, kMessages = 300;
  std::vector<Port> ports;
  for (std::uint32_t i = 0; i < kThreads; ++i)
    ports.push_back(job.open_port({.number = static_cast<std::uint16_t>(i), .depth = 4}).value());
  std::vector<std::thread> threads;
  std::array<bool, kThreads> good{};
  for (std::uint32_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      const Address next = job.address(0, static_cast<std::uint16_t>((i + 1) % kThreads)).value();
      bool fine = true;
      for (std::uint32_t n = 0; n < kMessages && fine; ++n) {
        fine = ports[i].send(test::pattern_bytes(n, n * 17 % 5000), next, 120s).has_value();
        auto in = ports[i].wait(120s);
        fine = fine && in && test::matches(in->bytes(), n);
      }
      good[i] = fine;
    });
  for (std::thread& t : threads) t.join();
  for (const bool fine : good) CHECK(fine);
}

TEST_CASE("who sends over a connection that was reset is told that messages may be lost, and the next ones arrive",
          "[port]") {
  Inside in({{"ULFM_TRANSPORT", "tcp"}});
  PortCore &from = in.open(0, 8), &to = in.open(1, 8);
  REQUIRE(in.send(from, 1, 1, 10) == Errc::ok);
  REQUIRE(test::matches(in.receive(to).bytes, 1));
  REQUIRE(reset_connections() > 0);
  // A look at the sender's port would find the death of a receiver by itself.
  PortCore* receiver[] = {&to};
  Errc told = Errc::ok;
  for (std::uint32_t i = 0; told == Errc::ok && i < 300; ++i) {
    REQUIRE(from.compose(10));
    if (const auto posted = from.post(in.address(1)); !posted) told = posted.error().code;
    Arrival some;
    (void)in.node->wait(receiver, 1ms, some);
    if (Error error; from.take_failure(error)) told = error.code;
  }
  CHECK(told == Errc::peer_failed);
  REQUIRE(in.send(from, 1, 7, 1000) == Errc::ok);
  for (Arrival arrival; arrival.bytes.size() != 1000;) arrival = in.receive(to);
}
