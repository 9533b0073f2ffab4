// TCP between hosts: one connection for both directions, long messages in their place, ends of every kind, nonsense.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "child.hpp"
#include "environment.hpp"
#include "failing_memory.hpp"
#include "pattern.hpp"
#include "proto/framing.hpp"
#include "transport/hosts/card.hpp"
#include "transport/hosts/greeting.hpp"
#include "transport/registry.hpp"
#include "transport/tcp/link.hpp"
#include "transport/tcp/tcp.hpp"
#include "transport/tcp/tuning.hpp"

using namespace ulfm;
using namespace std::chrono_literals;

namespace {

std::unique_ptr<Transport> make(std::initializer_list<std::pair<const char*, const char*>> rows = {}) {
  return select_transport("tcp").value()->make(test::config_with(rows)).value();
}

std::uint64_t count(const Transport& transport, std::string_view name) {
  for (const NamedCount& one : transport.counts())
    if (name == one.name) return one.value;
  return 0;
}

bool eventually(const auto& what) {
  for (const auto until = std::chrono::steady_clock::now() + 20s; std::chrono::steady_clock::now() < until;) {
    if (what()) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

bool push(Outlet& outlet, Kind kind, std::span<const std::byte> header, std::span<const std::byte> bytes) {
  const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  Gather data(std::span(&piece, 1));
  return outlet.push(kind, header, data, bytes.size());
}

/// Two processes, each with port 1, and what goes wrong in the first look.
struct Pair {
  std::unique_ptr<Transport> a = make(), b = make();
  PortCounters counters;
  std::unique_ptr<Inlet> at_a = a->open(1, {}).value(), at_b = b->open(1, {}).value();

  std::unique_ptr<Outlet> to_b() { return a->connect(b->card(), 1, 1, {}, counters).value(); }
  std::unique_ptr<Outlet> to_a() { return b->connect(a->card(), 1, 1, {}, counters).value(); }
  static Frame await(Inlet& inlet) {
    Frame frame;
    REQUIRE(eventually([&] { return inlet.next(frame); }));
    return frame;
  }
};

const std::byte kHead[] = {std::byte{1}, std::byte{2}, std::byte{3}};

}  // namespace

TEST_CASE("tcp: both directions of two ports share a connection", "[tcp]") {
  Pair pair;
  const auto there = pair.to_b();
  const auto back = pair.to_a();
  CHECK(count(*pair.a, "connections made") == 1);
  CHECK(count(*pair.b, "connections made") == 0);
  for (int i = 0; i < 100; ++i) {
    REQUIRE(push(*there, Kind::first, kHead, {}));
    pair.at_b->release(Pair::await(*pair.at_b));
    REQUIRE(push(*back, Kind::first, kHead, {}));
    pair.at_a->release(Pair::await(*pair.at_a));
  }
}

TEST_CASE("tcp: two that connect to each other at once end up with one connection", "[tcp]") {
  for (int round = 0; round < 30; ++round) {
    Pair pair;
    std::unique_ptr<Outlet> there, back;
    std::thread other([&] { back = pair.to_a(); });
    there = pair.to_b();
    other.join();
    REQUIRE(there);
    REQUIRE(back);
    REQUIRE(push(*there, Kind::first, kHead, {}));
    REQUIRE(push(*back, Kind::first, kHead, {}));
    const Frame at_b = Pair::await(*pair.at_b), at_a = Pair::await(*pair.at_a);
    CHECK(at_b.header_length == sizeof kHead);
    CHECK(at_a.header_length == sizeof kHead);
    CHECK(count(*pair.a, "accepted") + count(*pair.b, "accepted") <= 2);
  }
}

TEST_CASE("tcp: a carrier's frames come whole, and its own port wakes who waits at another", "[tcp]") {
  constexpr std::size_t kFrame = 100'000;
  const auto a = make_carrier(test::config_with({}), kFrame).value(),
             b = make_carrier(test::config_with({}), kFrame).value();
  PortCounters counters;
  const auto own = b->open(kPortsPerProcess, {}).value(), other = b->open(1, {}).value();
  CHECK_FALSE(make()->open(kPortsPerProcess, {}));
  const auto out = a->connect(b->card(), kPortsPerProcess, kNoPort, {}, counters).value();
  REQUIRE(out->max_frame(sizeof kHead) >= kFrame);
  const auto sent = test::pattern_bytes(3, kFrame);
  for (int round = 0; round < 20; ++round) {
    REQUIRE(eventually([&] { return push(*out, Kind::first, kHead, sent); }));
    REQUIRE(other->wake_source().sleep(20s));
    const Frame frame = Pair::await(*own);
    CHECK(frame.header_length == sizeof kHead);
    REQUIRE(frame.length == kFrame);
    CHECK(std::memcmp(frame.data, sent.data(), kFrame) == 0);
    CHECK(frame.data == frame.header + frame.header_length);  // a proxy reads them as one
    own->release(frame);
  }
}

TEST_CASE("tcp: what a watcher takes in ends the owner's sleep", "[tcp]") {
  Pair pair;
  const auto there = pair.to_b();
  WakeSource& source = pair.at_b->wake_source();
  for (int round = 0; round < 20; ++round) {
    source.arm();
    REQUIRE_FALSE(pair.at_b->has_frame());
    source.watch();
    REQUIRE(push(*there, Kind::first, kHead, {}));
    REQUIRE(source.watch_sleep(20s));
    source.end_watch();
    REQUIRE(source.sleep(20s));
    source.cancel();
    pair.at_b->release(Pair::await(*pair.at_b));
  }
}

TEST_CASE("who watches a port whose owner only takes is rung each time, and not for what was taken", "[tcp][ofi]") {
  const std::string name = GENERATE("tcp", "ofi");
  const auto a = select_transport(name).value()->make(test::config_with({})).value();
  const auto b = select_transport(name).value()->make(test::config_with({})).value();
  PortCounters counters;
  const auto at_b = b->open(1, {}).value();
  const auto there = a->connect(b->card(), 1, kNoPort, {}, counters).value();
  WakeSource& source = at_b->wake_source();
  for (int round = 0; round < 50; ++round) {
    source.watch();
    REQUIRE(push(*there, Kind::first, kHead, {}));
    REQUIRE(source.watch_sleep(20s));
    at_b->release(Pair::await(*at_b));
    source.end_watch();
    // Nothing is left that would end the next sleep on its descriptor at once: behind the connection's own events.
    CHECK_FALSE(at_b->has_frame());
    pollfd set{source.descriptor(), POLLIN, 0};
    if (round == 0) source.cancel();
    else CHECK(poll(&set, 1, 0) == 0);
  }
}

TEST_CASE("tcp: a direction that is over leaves the other one alone", "[tcp]") {
  Pair pair;
  auto there = pair.to_b();
  const auto back = pair.to_a();
  REQUIRE(push(*there, Kind::first, kHead, {}));
  pair.at_b->release(Pair::await(*pair.at_b));
  REQUIRE(there->bye());
  there.reset();
  const Frame bye = Pair::await(*pair.at_b);
  CHECK(bye.kind == Kind::bye);
  pair.at_b->release(bye);
  pair.at_b->drop_origin(bye.origin);
  for (int i = 0; i < 10; ++i) {
    REQUIRE(push(*back, Kind::first, kHead, {}));
    pair.at_a->release(Pair::await(*pair.at_a));
  }
  // And a new one is made where the old one was.
  there = pair.to_b();
  REQUIRE(push(*there, Kind::first, kHead, {}));
  CHECK(Pair::await(*pair.at_b).fresh);
}

TEST_CASE("tcp: a port that is closed is known to its sender, whose own port goes on", "[tcp]") {
  Pair pair;
  const auto there = pair.to_b();
  auto back = pair.to_a();
  REQUIRE(push(*back, Kind::first, kHead, {}));
  pair.at_a->release(Pair::await(*pair.at_a));
  pair.at_b.reset();
  CHECK(eventually([&] { return !there->peer_listening(); }));
  CHECK(there->port_closed());
  CHECK_FALSE(push(*there, Kind::first, kHead, {}));
  REQUIRE(push(*back, Kind::first, kHead, {}));
  pair.at_a->release(Pair::await(*pair.at_a));
  const auto closed = pair.a->connect(pair.b->card(), 1, 1, {}, pair.counters);
  REQUIRE_FALSE(closed);
  CHECK(closed.error().code == Errc::not_found);
  pair.b.reset();  // with its outlet still there
  back.reset();
}

TEST_CASE("tcp: what was sent arrives although its sender has ended", "[tcp]") {
  auto a = make(), b = make();
  PortCounters counters;
  const auto inlet = b->open(1, {}).value();
  const auto bytes = test::pattern_bytes(5, 100000);
  {
    auto outlet = a->connect(b->card(), 1, kNoPort, {}, counters).value();
    std::size_t sent = 0;
    // As much as there is room for, and the process ends with the last frame half gone.
    while (sent < 1000 && push(*outlet, Kind::first, kHead, bytes)) ++sent;
    REQUIRE(sent > 0);
    std::size_t got = 0, frames = 0;
    std::thread reading([&] {
      Frame frame;
      (void)eventually([&] {
        while (inlet->next(frame)) {
          frames += frame.kind == Kind::first ? 1 : 0;
          got += frame.length;
          inlet->release(frame);
        }
        return got == sent * bytes.size();
      });
    });
    outlet.reset();
    a.reset();
    reading.join();
    CHECK(frames == sent);
    CHECK(got == sent * bytes.size());
  }
  CHECK(eventually([&] { return inlet->find_dead() >= 0; }));
}

TEST_CASE("tcp: what was sent arrives although its port is closed and its peer sends on", "[tcp]") {
  Pair pair;
  auto there = pair.to_b();
  const auto back = pair.to_a();
  const auto bytes = test::pattern_bytes(7, 10000);
  std::size_t sent = 0;
  while (sent < 10000 && push(*there, Kind::first, kHead, bytes)) ++sent;
  REQUIRE(sent > 10);
  REQUIRE(push(*back, Kind::first, kHead, {}));
  there.reset();
  pair.at_a.reset();
  std::size_t got = 0, frames = 0;
  CHECK(eventually([&] {
    Frame frame;
    (void)push(*back, Kind::first, kHead, {});
    if (!pair.at_b->next(frame)) return false;
    frames += frame.kind == Kind::first ? 1 : 0;
    got += frame.length;
    pair.at_b->release(frame);
    return got == sent * bytes.size();
  }));
  CHECK(frames == sent);
  CHECK(eventually([&] { return pair.at_b->find_dead() >= 0; }));
}

TEST_CASE("tcp: both sides end their connections at once, again and again", "[tcp]") {
  Pair pair;
  std::atomic<bool> is_over{false};
  const auto take_all = [](Inlet& inlet) {
    Frame frame;
    while (inlet.next(frame)) inlet.release(frame);
  };
  std::thread other([&] {
    while (!is_over) {
      const auto back = pair.b->connect(pair.a->card(), 1, 1, {}, pair.counters);
      if (back) (void)push(**back, Kind::first, kHead, {});
      take_all(*pair.at_b);
    }
  });
  for (int round = 0; round < 200; ++round) {
    const auto there = pair.a->connect(pair.b->card(), 1, 1, {}, pair.counters);
    if (there) (void)push(**there, Kind::first, kHead, {});
    take_all(*pair.at_a);
    for (std::int64_t dead; (dead = pair.at_a->find_dead()) >= 0;)
      pair.at_a->drop_origin(static_cast<std::uint32_t>(dead));
  }
  is_over = true;
  other.join();
  CHECK(count(*pair.b, "connections made") + count(*pair.b, "accepted") > 100);
}

TEST_CASE("tcp: a process that reads nothing for long is not given up", "[tcp]") {
  auto a = make({{"GIVE_UP", "1s"}}), b = make({{"GIVE_UP", "1s"}});
  PortCounters counters;
  const auto inlet = b->open(1, {}).value();
  const auto outlet = a->connect(b->card(), 1, kNoPort, {}, counters).value();
  const auto bytes = test::pattern_bytes(6, 100000);
  while (push(*outlet, Kind::first, kHead, bytes)) {
  }
  const auto until = std::chrono::steady_clock::now() + 5s;
  while (std::chrono::steady_clock::now() < until) {
    REQUIRE(outlet->peer_listening());
    std::this_thread::sleep_for(10ms);
  }
  Frame frame;
  CHECK(inlet->next(frame));
}

namespace {

/// Where the message of each sender goes.
struct Places final : PlaceFinder {
  std::vector<std::byte> bytes;
  std::size_t at = 0;
  std::span<std::byte> place_for(std::uint32_t) override { return std::span(bytes).subspan(at); }
};

}  // namespace

TEST_CASE("tcp: messages of any length come whole, in their place where it is known", "[tcp]") {
  Pair pair;
  const bool knows = GENERATE(false, true);
  Places places;
  if (knows) pair.at_b->use_places(places);
  const auto outlet = pair.to_b();
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    const std::size_t size = round < 20 ? std::size_t{1} << round : random() % (1 << 21);
    const auto bytes = test::pattern_bytes(static_cast<std::uint32_t>(round), size);
    places.bytes.assign(size, std::byte{0});
    places.at = 0;
    bool has_left = false;
    std::thread sending([&] {
      FrameSender sender(bytes.data(), bytes.size());
      has_left = eventually([&] { return sender.advance(*outlet); });
    });
    FrameReader reader;
    for (bool over = false; !over;) {
      const Frame frame = Pair::await(*pair.at_b);
      const auto step = reader.step(frame);
      REQUIRE(step != FrameReader::Step::broken);
      REQUIRE(reader.total() == size);
      std::byte* const to = places.bytes.data() + reader.offset();
      if (frame.data != to) std::copy_n(frame.data, frame.length, to);
      places.at = reader.offset() + frame.length;
      over = step == FrameReader::Step::whole || step == FrameReader::Step::completes;
      pair.at_b->release(frame);
    }
    sending.join();
    REQUIRE(has_left);
    REQUIRE(places.bytes == bytes);
  }
  CHECK((count(*pair.b, "bytes in place") != 0) == knows);
}

TEST_CASE("tcp: short frames that follow each other leave together, and soon although nobody looks", "[tcp]") {
  Pair pair;
  const auto outlet = pair.to_b();
  const auto bytes = test::pattern_bytes(2, 40);
  int sent = 0;
  // A sender that loses its core between two frames gathers nothing.
  REQUIRE(eventually([&] {
    for (int i = 0; i < 100 && push(*outlet, Kind::first, kHead, bytes); ++i) ++sent;
    return count(*pair.a, "frames gathered") != 0;
  }));
  for (; sent != 0; --sent) pair.at_b->release(Pair::await(*pair.at_b));
  Frame frame;
  CHECK_FALSE(pair.at_b->next(frame));
}

TEST_CASE("tcp: frames that follow when the memory for them is full wait for each other, too", "[tcp]") {
  Pair pair;
  const auto outlet = pair.to_b();
  const auto bytes = test::pattern_bytes(2, 16000);
  constexpr int kBurst = 30, kAlone = 4;  // 30 need more than twice the memory
  std::atomic<bool> is_over{false};
  std::thread reading([&] {
    Frame frame;
    while (!is_over) {
      if (pair.at_b->next(frame)) pair.at_b->release(frame);
      else std::this_thread::yield();
    }
  });
  // A sender that loses its core between two frames, or finds no room, gathers fewer.
  const bool are_gathered = eventually([&] {
    Frame frame;
    (void)pair.at_a->next(frame);
    const std::uint64_t before = count(*pair.a, "frames gathered");
    for (int i = 0; i < kBurst; ++i)
      if (!push(*outlet, Kind::first, kHead, bytes)) return false;
    return count(*pair.a, "frames gathered") == before + kBurst - kAlone;
  });
  is_over = true;
  reading.join();
  CHECK(are_gathered);
}

TEST_CASE("tcp: frames that wait for each other arrive although their sender ends", "[tcp]") {
  const auto bytes = test::pattern_bytes(2, 40);
  const bool closes_port_first = GENERATE(true, false);
  auto b = make();
  PortCounters counters;
  const auto inlet = b->open(1, {}).value();
  REQUIRE(eventually([&] {
    auto a = make();
    auto own = a->open(1, {}).value();
    auto outlet = a->connect(b->card(), 1, 1, {}, counters).value();
    int sent = 0;
    while (sent < 20 && push(*outlet, Kind::first, kHead, bytes)) ++sent;
    if (closes_port_first) own.reset();
    outlet.reset();
    own.reset();
    const bool has_gathered = count(*a, "frames gathered") != 0;
    a.reset();
    for (; sent != 0; --sent) inlet->release(Pair::await(*inlet));
    return has_gathered;
  }));
}

TEST_CASE("tcp: a sender that looks at its port after each frame gathers none", "[tcp]") {
  Pair pair;
  const auto outlet = pair.to_b();
  Frame frame;
  for (int i = 0; i < 1000; ++i) {
    REQUIRE(eventually([&] { return push(*outlet, Kind::first, kHead, {}); }));
    CHECK_FALSE(pair.at_a->next(frame));
  }
  CHECK(count(*pair.a, "frames gathered") == 0);
}

TEST_CASE("tcp: frames of all lengths keep their order, with those that wait for more and without room", "[tcp]") {
  Pair pair;
  const auto outlet = pair.to_b();
  std::mt19937 random(11);
  struct Sent {
    std::uint32_t seed;
    std::size_t length;
  };
  std::deque<Sent> on_the_way;
  std::uint32_t made = 0;
  const auto receive = [&] {
    Frame frame;
    if (!pair.at_b->next(frame)) return false;
    REQUIRE_FALSE(on_the_way.empty());
    const auto [seed, length] = on_the_way.front();
    const auto wanted = test::pattern_bytes(seed, length);
    std::vector<std::byte> got(frame.data, frame.data + frame.length);
    pair.at_b->release(frame);
    while (got.size() < length) {  // the rest of a long one
      const Frame more = Pair::await(*pair.at_b);
      REQUIRE(more.kind == Kind::more);
      got.insert(got.end(), more.data, more.data + more.length);
      pair.at_b->release(more);
    }
    on_the_way.pop_front();
    REQUIRE(got == wanted);
    return true;
  };
  for (int round = 0; round < 300; ++round) {
    const std::size_t most = std::size_t{1} << (random() % 18);
    const std::uint32_t burst = random() % 80;
    for (std::uint32_t i = 0; i < burst; ++i) {
      const std::size_t length = std::min(random() % (most + 1), outlet->max_begin(sizeof kHead));
      if (!push(*outlet, Kind::first, kHead, test::pattern_bytes(made, length))) break;
      on_the_way.push_back({made++, length});
    }
    for (std::uint32_t i = random() % 100; i != 0; --i) (void)receive();
  }
  REQUIRE(eventually([&] {
    while (receive()) {
    }
    return on_the_way.empty();
  }));
}

TEST_CASE("tcp: behind a frame nothing is looked for where all that had come was taken", "[tcp]") {
  Pair pair;
  const auto outlet = pair.to_b();
  REQUIRE(push(*outlet, Kind::first, kHead, {}));
  pair.at_b->release(Pair::await(*pair.at_b));
  Frame frame;
  for (int i = 0; i < 100; ++i) {
    REQUIRE_FALSE(pair.at_b->next(frame));  // the last look found nothing
    REQUIRE(push(*outlet, Kind::first, kHead, {}));
    CHECK_FALSE(pair.at_b->next_at_hand(frame));
    pair.at_b->release(Pair::await(*pair.at_b));
  }
}

namespace {

/// A TCP connection within this host.
struct Connected {
  control::Fd listener, one, other;
  Connected() {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof where;
    auto* address = reinterpret_cast<sockaddr*>(&where);
    listener = control::Fd(socket(AF_INET, SOCK_STREAM, 0));
    one = control::Fd(socket(AF_INET, SOCK_STREAM, 0));
    REQUIRE(bind(listener.get(), address, length) == 0);
    REQUIRE(listen(listener.get(), 1) == 0);
    REQUIRE(getsockname(listener.get(), address, &length) == 0);
    REQUIRE(connect(one.get(), address, length) == 0);
    other = control::Fd(accept(listener.get(), nullptr, nullptr));
    REQUIRE(other);
  }
};

std::string congestion_control(int socket) {
  char name[16] = {};
  socklen_t length = sizeof name - 1;
  REQUIRE(getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name, &length) == 0);
  return name;
}

}  // namespace

TEST_CASE("tcp: within a network Reno from the beginning, or what the user asks for", "[tcp]") {
  const control::Fd fresh(socket(AF_INET, SOCK_STREAM, 0));
  const std::string of_system = congestion_control(fresh.get());
  const auto unasked = tcp::CongestionControl::create("").value();
  unasked.begin(fresh.get());
  CHECK(congestion_control(fresh.get()) == "reno");
  const Connected pair;
  unasked.begin(pair.one.get());
  unasked.settle(pair.one.get());
  CHECK(congestion_control(pair.one.get()) == "reno");
  const auto asked = tcp::CongestionControl::create(of_system).value();
  asked.begin(pair.one.get());
  asked.settle(pair.one.get());
  CHECK(congestion_control(pair.one.get()) == of_system);
  const auto wrong = tcp::CongestionControl::create("pigeon");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().what.find("ULFM_CONGESTION=\"pigeon\"") != std::string::npos);
  CHECK(wrong.error().what.find("reno") != std::string::npos);
}

namespace {

int option(int socket, int level, int name) {
  int value = -1;
  socklen_t length = sizeof value;
  return getsockopt(socket, level, name, &value, &length) == 0 ? value : -1;
}

/// How wide the window of each connection of this process may be, in order.
std::vector<int> windows() {
  std::vector<int> found;
  sockaddr_in peer{};
  for (int fd = 3; fd < 200; ++fd)
    if (socklen_t length = sizeof peer; getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0)
      if (const int window = option(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP); window >= 0) found.push_back(window);
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

TEST_CASE("tcp: somebody may listen at a port that the system has given a connection", "[tcp]") {
  Pair pair;
  const auto there = pair.to_b();
  REQUIRE(push(*there, Kind::first, kHead, {}));
  pair.at_b->release(Pair::await(*pair.at_b));
  int connections = 0, may = 0;
  sockaddr_in own{}, peer{};
  for (int fd = 3; fd < 200; ++fd) {
    socklen_t of_peer = sizeof peer, of_own = sizeof own;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &of_peer) != 0 || peer.sin_family != AF_INET ||
        getsockname(fd, reinterpret_cast<sockaddr*>(&own), &of_own) != 0)
      continue;
    ++connections;
    const int on = 1;
    const control::Fd listener(socket(AF_INET, SOCK_STREAM, 0));
    REQUIRE(setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    own.sin_addr.s_addr = htonl(INADDR_ANY);
    may += bind(listener.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0 &&
           listen(listener.get(), 1) == 0;
  }
  // At the port of the end that was accepted the network listens already.
  CHECK(connections >= 1);
  CHECK(may == 1);
}

TEST_CASE("tcp: messages that are answered have a steady window, others all the room", "[tcp]") {
  Pair pair;
  const auto there = pair.to_b();
  const auto back = pair.to_a();
  constexpr int kSteady = tcp::ReceiveWindow::kSteady;
  const auto pass = [&](Outlet& out, Inlet& in, std::size_t size) {
    const std::vector<std::byte> message(size);
    REQUIRE(eventually([&] { return push(out, Kind::first, kHead, message); }));
    in.release(Pair::await(in));
  };
  // A round trip of more than a millisecond on a busy machine delays what is wanted.
  const auto sooner_or_later = [&](const std::vector<int>& wanted, const auto& exchange) {
    return eventually([&] {
      for (std::uint32_t i = 0; i < tcp::ReceiveWindow::kReadsPerLook; ++i) exchange();
      return windows() == wanted;
    });
  };
  const auto ping_pong = [&] { pass(*there, *pair.at_b, 8000), pass(*back, *pair.at_a, 8000); };
  CHECK(std::ranges::count(windows(), kSteady) == 0);
  CHECK(sooner_or_later({kSteady, kSteady}, ping_pong));
  // Other lengths of segments make the kernel forget it.
  for (std::size_t size = 600; size < 8000; size *= 2)
    CHECK(sooner_or_later({kSteady, kSteady}, [&] { pass(*there, *pair.at_b, size), pass(*back, *pair.at_a, size); }));
  REQUIRE(eventually([&] {
    for (int i = 0; i < 100; ++i) pass(*there, *pair.at_b, 8000);
    return windows().back() > kSteady;
  }));
  CHECK(windows().front() == kSteady);
  CHECK(sooner_or_later({kSteady, kSteady}, ping_pong));
}

TEST_CASE("tcp: a window is made steady without losing a wake-up or narrowing the room", "[tcp]") {
  const Connected pair;
  const int fd = pair.one.get();
  const int before = option(fd, SOL_SOCKET, SO_RCVBUF);
  REQUIRE(::send(pair.other.get(), "x", 1, 0) == 1);
  tcp::ReceiveWindow window;
  const auto exchange = [&](std::size_t bytes, bool took_all) {
    for (std::uint32_t i = 0; i < tcp::ReceiveWindow::kReadsPerLook; ++i) {
      window.note_read(fd, bytes, took_all);
      window.note_message();
    }
    return option(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP) == tcp::ReceiveWindow::kSteady;
  };
  CHECK_FALSE(exchange(100, true));
  CHECK_FALSE(exchange(1 << 20, true));
  CHECK_FALSE(exchange(8000, false));  // the window may be 0
  REQUIRE(eventually([&] { return exchange(8000, true); }));
  CHECK(option(fd, SOL_SOCKET, SO_RCVBUF) >= before);
  CHECK(option(fd, SOL_SOCKET, SO_RCVLOWAT) == 1);
  pollfd one{fd, POLLIN, 0};
  CHECK(poll(&one, 1, 20'000) == 1);
}

TEST_CASE("tcp: who sends all that the receiver has room for before it looks gets the rest there later", "[tcp]") {
  Pair pair;
  const auto there = pair.to_b();
  const auto back = pair.to_a();
  const std::vector<std::byte> message(8000);
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 100; ++i) {
      REQUIRE(push(*there, Kind::first, kHead, message));
      pair.at_b->release(Pair::await(*pair.at_b));
      REQUIRE(push(*back, Kind::first, kHead, message));
      pair.at_a->release(Pair::await(*pair.at_a));
    }
    int sent = 0, got = 0;
    for (int refused = 0; refused < 1000; ++refused)
      while (push(*there, Kind::first, kHead, message)) ++sent, refused = 0;
    CHECK(sent > 10);
    for (const int all = sent + 500; got < all; ++got) {
      if (sent < all && push(*there, Kind::first, kHead, message)) ++sent;
      pair.at_b->release(Pair::await(*pair.at_b));
    }
  }
}

TEST_CASE("tcp: frames that are kept stay as they are, however much comes behind them", "[tcp]") {
  Pair pair;
  const auto outlet = pair.to_b();
  std::map<std::uint32_t, Frame> kept;
  std::mt19937 random(11);
  std::uint32_t sent = 0, got = 0;
  while (got < 3000) {
    const auto bytes = test::pattern_bytes(sent, sent * 37 % 16000);
    if (sent < got + 50 && push(*outlet, Kind::first, kHead, bytes)) ++sent;
    Frame frame;
    if (pair.at_b->next(frame)) kept.emplace(got++, frame);
    if (kept.size() < 40 && got < 3000) continue;
    auto one = kept.begin();
    std::advance(one, static_cast<long>(random() % kept.size()));
    const auto wanted = test::pattern_bytes(one->first, one->first * 37 % 16000);
    REQUIRE(one->second.length == wanted.size());
    REQUIRE(std::equal(wanted.begin(), wanted.end(), one->second.data));
    pair.at_b->release(one->second);
    kept.erase(one);
  }
  for (const auto& [number, frame] : kept) pair.at_b->release(frame);
}

namespace {

/// A process that has the key and says what it likes.
class Liar {
 public:
  Liar(const Transport& to, std::uint16_t port) : Liar(to, port, kNoPort, 4711, 0) {}
  Liar(const Transport& to, std::uint16_t port, std::uint16_t from, std::uint64_t token, std::uint16_t flags) {
    const auto card = hosts::decode("tcp", to.card()).value();
    socket_ = connected_to(card);
    hosts::Greeting about{};
    about.to = port;
    about.from = from;
    about.flags = flags;
    about.pid = getpid();
    about.token = token;
    about.most = 4096;
    about.nonce = hosts::random_nonce();
    greeting_ = hosts::greeting(hosts::key_for("", card.token), about);
    say(&greeting_, sizeof greeting_);
    hosts::Welcome answer{};
    REQUIRE(::recv(socket_.get(), &answer, sizeof answer, MSG_WAITALL) == sizeof answer);
    hosts::ProcessCard own = card;
    own.token = token;
    card_ = hosts::encode("tcp", own);
    introduction_ = hosts::introduction(card_, {});
  }
  void say(const void* bytes, std::size_t size) { (void)!::send(socket_.get(), bytes, size, MSG_NOSIGNAL); }
  void say(std::uint8_t kind, std::uint32_t length, std::uint8_t header, std::span<const std::byte> bytes) {
    const tcp::TcpFrameHead head{length, kind, header, 0, 0};
    std::vector<std::byte> frame(std::max(std::min<std::size_t>(tcp::size_of(head), 4096), sizeof head + bytes.size()));
    std::memcpy(frame.data(), &head, sizeof head);
    std::copy(bytes.begin(), bytes.end(), frame.begin() + sizeof head);
    say(frame.data(), frame.size());
  }
  void introduce() { say(8, static_cast<std::uint32_t>(introduction_.size()), 0, introduction_); }
  bool is_cut_off() const {
    char byte = 0;
    const ssize_t n = ::recv(socket_.get(), &byte, 1, MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno == ECONNRESET);
  }
  /// Something has come, which is left where it is.
  bool hears() const {
    char byte = 0;
    return ::recv(socket_.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 1;
  }
  const std::string& card() const { return card_; }
  /// What somebody else can say who has overheard it.
  const hosts::Greeting& greeting() const { return greeting_; }
  static control::Fd connected_to(const hosts::ProcessCard& card) {
    hosts::SocketAddress where(Ip::v4(INADDR_LOOPBACK), card.port);
    control::Fd made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(made.get(), where.get(), static_cast<socklen_t>(where.size())) == 0);
    return made;
  }

 private:
  control::Fd socket_;
  hosts::Greeting greeting_{};
  std::string card_;
  std::vector<std::byte> introduction_;
};

}  // namespace

TEST_CASE("tcp: who writes nonsense is cut off, and nobody else", "[tcp]") {
  Pair pair;
  const auto outlet = pair.to_b();
  const std::vector<std::byte> junk(300, std::byte{0xee});
  const auto ends_badly = [&](const auto& lie, bool known) {
    Liar liar(*pair.b, 1);
    lie(liar);
    Frame frame;
    std::int64_t broken = -1;
    REQUIRE(eventually([&] {
      if (pair.at_b->next(frame)) FAIL("a frame came");
      broken = std::max(broken, pair.at_b->take_broken());
      return liar.is_cut_off();
    }));
    CHECK((broken >= 0) == known);
    if (broken >= 0) pair.at_b->drop_origin(static_cast<std::uint32_t>(broken));
    REQUIRE(push(*outlet, Kind::first, kHead, {}));
    pair.at_b->release(Pair::await(*pair.at_b));
  };
  SECTION("a frame before its introduction") {
    ends_badly([&](Liar& l) { l.say(2, 3, 8, junk); }, false);
  }
  SECTION("a kind that is none") {
    ends_badly([&](Liar& l) { l.introduce(), l.say(77, 3, 0, junk); }, true);
  }
  SECTION("a frame longer than was agreed") {
    ends_badly([&](Liar& l) { l.introduce(), l.say(2, 0x7fffffff, 8, junk); }, true);
  }
  SECTION("an introduction of somebody else") {
    ends_badly([&](Liar& l) { l.say(8, 40, 0, junk); }, false);
  }
  SECTION("two introductions") {
    ends_badly([&](Liar& l) { l.introduce(), l.introduce(); }, true);
  }
}

TEST_CASE("tcp: all who write nonsense are told of", "[tcp]") {
  Pair pair;
  std::deque<Liar> liars;
  const std::vector<std::byte> junk(300, std::byte{0xee});
  for (int i = 0; i < 3; ++i) {
    liars.emplace_back(*pair.b, 1).introduce();
    liars.back().say(static_cast<std::uint8_t>(Kind::first), 0, 3, kHead);
    pair.at_b->release(Pair::await(*pair.at_b));
  }
  for (Liar& liar : liars) liar.say(77, 3, 0, junk);
  Frame frame;
  CHECK(eventually([&] {
    (void)pair.at_b->next(frame);
    return std::all_of(liars.begin(), liars.end(), [](const Liar& one) { return one.is_cut_off(); });
  }));
  std::set<std::int64_t> told;
  for (std::size_t i = 0; i < liars.size(); ++i) told.insert(pair.at_b->take_broken());
  CHECK(told == std::set<std::int64_t>{0, 1, 2});
  CHECK(pair.at_b->take_broken() == -1);
}

TEST_CASE("tcp: a greeting that somebody has overheard lets nobody in", "[tcp]") {
  Pair pair;
  Liar known(*pair.b, 1);
  const control::Fd other = Liar::connected_to(hosts::decode("tcp", pair.b->card()).value());
  REQUIRE(::send(other.get(), &known.greeting(), sizeof known.greeting(), MSG_NOSIGNAL) == sizeof known.greeting());
  char byte = 0;
  CHECK(::recv(other.get(), &byte, 1, 0) == 0);  // closed without a word
  CHECK(count(*pair.b, "refused") == 1);
  CHECK(count(*pair.b, "accepted") == 1);
  CHECK_FALSE(known.is_cut_off());
}

// A connector that tries several addresses says hello on the one that it uses. That it has closed the others may be
// lost.
TEST_CASE("tcp: of several connections of a peer only the one that it uses carries answers", "[tcp]") {
  Pair pair;
  Liar unused(*pair.b, 1, 1, 4711, hosts::kBothWays);
  Liar used(*pair.b, 1, 1, 4711, hosts::kBothWays);
  Liar late(*pair.b, 1, 1, 4711, hosts::kBothWays);
  used.introduce();
  used.say(static_cast<std::uint8_t>(Kind::first), 0, 3, kHead);
  pair.at_b->release(Pair::await(*pair.at_b));
  const auto back = pair.b->connect(used.card(), 1, 1, {}, pair.counters).value();
  REQUIRE(push(*back, Kind::first, kHead, {}));
  CHECK(eventually([&] { return used.hears(); }));
  CHECK_FALSE(unused.hears());
  CHECK_FALSE(late.hears());
  CHECK(count(*pair.b, "connections made") == 0);
}

TEST_CASE("tcp: a connection on which its peer says nothing carries no answers", "[tcp]") {
  Pair pair;
  Liar unused(*pair.b, 1, 1, hosts::decode("tcp", pair.a->card()).value().token, hosts::kBothWays);
  const auto back = pair.to_a();
  CHECK(count(*pair.b, "connections made") == 1);
  REQUIRE(push(*back, Kind::first, kHead, {}));
  CHECK(Pair::await(*pair.at_a).header_length == sizeof kHead);
  CHECK_FALSE(unused.hears());
}

TEST_CASE("tcp: many who come and say nothing, or nonsense, keep nobody out", "[tcp]") {
  Pair pair;
  const auto card = hosts::decode("tcp", pair.b->card()).value();
  std::vector<control::Fd> peers;
  for (int i = 0; i < 400; ++i) {
    hosts::SocketAddress where(Ip::v4(INADDR_LOOPBACK), card.port);
    peers.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(peers.back().get(), where.get(), static_cast<socklen_t>(where.size())) == 0);
    if (i % 3 == 0) (void)!::send(peers.back().get(), "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL);
    if (i % 3 == 1) (void)!::send(peers.back().get(), std::string(500, 'x').data(), 500, MSG_NOSIGNAL);
  }
  const auto outlet = pair.to_b();
  REQUIRE(push(*outlet, Kind::first, kHead, {}));
  pair.at_b->release(Pair::await(*pair.at_b));
  CHECK(eventually([&] { return count(*pair.b, "refused") == 400; }));
  CHECK(count(*pair.b, "accepted") == 1);
}

TEST_CASE("tcp: without a descriptor the listener pauses, and lets in who waits when there is one", "[tcp]") {
  auto here = make();
  PortCounters counters;
  test::Child child([&](test::Pipe& parent) {
    // Made here, with its thread. Says what went wrong, or nothing.
    auto there = make();
    const auto inlet = there->open(1, {}).value();
    parent.send(there->card());
    // Frames until one says `last`; how many there were.
    const auto take = [&](std::byte last) {
      int taken = 0;
      for (bool over = false; !over && eventually([&] {
             Frame frame;
             if (!inlet->next(frame)) return false;
             over = frame.header[0] == last;
             inlet->release(frame);
             return true;
           });)
        ++taken;
      return taken;
    };
    (void)parent.receive();  // the first link is up
    rlimit limit{};
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    const rlim_t all = limit.rlim_cur;
    std::vector<control::Fd> used;
    limit.rlim_cur = 64;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    for (;;) {
      control::Fd one(dup(STDIN_FILENO));
      if (!one) break;
      used.push_back(std::move(one));
    }
    parent.send(std::to_string(errno == EMFILE));
    parent.send(std::to_string(take(std::byte{2})));
    // A listener that is asked again and again would take all of a core.
    rusage before{}, after{};
    (void)getrusage(RUSAGE_SELF, &before);
    std::this_thread::sleep_for(1s);
    (void)getrusage(RUSAGE_SELF, &after);
    const auto ms = [](const rusage& r) {
      return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000 + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1000;
    };
    parent.send(std::to_string(ms(after) - ms(before)));
    parent.send(std::to_string(count(*there, "accepted")));
    limit.rlim_cur = all;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    used.clear();
    parent.send(std::to_string(take(std::byte{3})));
    (void)parent.receive();
  });
  const std::string card = child.pipe().receive();
  const std::byte more{1}, last{2}, later{3};
  const auto first = here->connect(card, 1, kNoPort, {}, counters).value();
  REQUIRE(push(*first, Kind::first, std::span(&more, 1), {}));
  child.pipe().send("up");
  REQUIRE(child.pipe().receive() == "1");
  // The kernel lets it in; its process cannot yet.
  std::unique_ptr<Outlet> second;
  std::thread connecting([&] {
    auto made = here->connect(card, 1, kNoPort, {}, counters);
    if (made) second = std::move(*made);
  });
  for (int i = 0; i < 100; ++i) REQUIRE(eventually([&] { return push(*first, Kind::first, std::span(&more, 1), {}); }));
  REQUIRE(eventually([&] { return push(*first, Kind::first, std::span(&last, 1), {}); }));
  CHECK(child.pipe().receive() == "102");  // what is up goes on
  CHECK(std::stoi(child.pipe().receive()) < 500);
  CHECK(child.pipe().receive() == "1");
  connecting.join();
  REQUIRE(second);
  REQUIRE(eventually([&] { return push(*second, Kind::first, std::span(&later, 1), {}); }));
  CHECK(child.pipe().receive() == "1");
  child.pipe().send("over");
  CHECK(child.wait() == 0);
}

namespace {

using Bytes = std::span<const std::byte>;

/// Messages from one process to another, sent and taken in turns. Allocates nothing itself.
class Conversation {
 public:
  Conversation(Pair& pair, Bytes pattern, std::span<std::byte> place) : pair_(pair), pattern_(pattern), place_(place) {}

  /// False when it takes too long, or something else comes than was sent.
  bool run() {
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (taken_ < kMessages || !has_answer_) {
      if (std::chrono::steady_clock::now() > until) return false;
      connect(there_, *pair_.a, *pair_.b, pair_.counters);
      connect(back_, *pair_.b, *pair_.a, pair_.counters);
      if (back_ && !has_answered_) has_answered_ = push(*back_, Kind::first, kHead, {});
      // Ten at a time, so that short ones wait for each other.
      for (int i = 0; there_ && i < 10 && sent_ < kMessages && send(); ++i) continue;
      Frame frame;
      while (pair_.at_b->next(frame))
        if (!take(frame)) return false;
      if (pair_.at_a->next(frame)) {
        has_answer_ = true;
        pair_.at_a->release(frame);
      }
    }
    return true;
  }
  int failed_connects() const { return failed_connects_; }
  /// Of the receiver.
  PlaceFinder& places() { return places_; }

 private:
  static constexpr int kMessages = 60;
  static std::size_t length_of(int number) { return number % 20 == 19 ? 300'000 : number % 20 == 18 ? 12'000 : 40; }

  void connect(std::unique_ptr<Outlet>& outlet, Transport& from, const Transport& to, PortCounters& counters) {
    if (outlet) return;
    auto made = from.connect(to.card(), 1, 1, {}, counters);
    if (made) outlet = std::move(*made);
    else ++failed_connects_;
  }
  bool send() {
    const Bytes data = pattern_.subspan(static_cast<std::size_t>(sent_), length_of(sent_));
    const std::size_t most = gone_ == 0 ? there_->max_begin(sizeof kHead) : there_->max_frame(0);
    const Bytes part = data.subspan(gone_, std::min(most, data.size() - gone_));
    if (!push(*there_, gone_ == 0 ? Kind::first : Kind::more, gone_ == 0 ? Bytes(kHead) : Bytes(), part)) return false;
    gone_ += part.size();
    if (gone_ == data.size()) ++sent_, gone_ = 0;
    return true;
  }
  bool take(const Frame& frame) {
    const Bytes data = pattern_.subspan(static_cast<std::size_t>(taken_), length_of(taken_));
    const bool is_right = (frame.header_length != 0) == (came_ == 0) && came_ + frame.length <= data.size() &&
                          std::memcmp(frame.data, data.data() + came_, frame.length) == 0;
    came_ += frame.length;
    pair_.at_b->release(frame);
    if (came_ == data.size()) ++taken_, came_ = 0;
    places_.wanted = came_ == 0 ? std::span<std::byte>() : place_.first(data.size() - came_);
    return is_right;
  }

  struct Places final : PlaceFinder {
    std::span<std::byte> wanted;
    std::span<std::byte> place_for(std::uint32_t) override { return wanted; }
  };

  Pair& pair_;
  const Bytes pattern_;
  const std::span<std::byte> place_;
  std::unique_ptr<Outlet> there_, back_;
  int sent_ = 0, taken_ = 0, failed_connects_ = 0;
  std::size_t gone_ = 0, came_ = 0;
  bool has_answered_ = false, has_answer_ = false;
  Places places_;
};

}  // namespace

TEST_CASE("tcp: whatever allocation fails, all messages arrive", "[tcp]") {
  const auto pattern = test::pattern_bytes(5, 301'000);
  std::vector<std::byte> place(300'000);
  bool has_failed = true;
  int told = 0;
  for (std::int64_t before = 0; has_failed; ++before) {
    Pair pair;
    Conversation conversation(pair, pattern, place);
    pair.at_b->use_places(conversation.places());
    bool is_right = false;
    {
      const test::FailingAllocation failing(before);
      is_right = conversation.run();
      has_failed = failing.is_over();
    }
    INFO("after " << before << " allocations");
    REQUIRE(is_right);
    told += conversation.failed_connects();
  }
  CHECK(told > 0);
}

TEST_CASE("tcp: a port that there was no memory to open can be opened later", "[tcp]") {
  auto a = make(), b = make();
  PortCounters counters;
  bool has_failed = true;
  for (std::int64_t before = 0; has_failed; ++before) {
    std::unique_ptr<Inlet> inlet;
    {
      const test::FailingAllocation failing(before);
      auto opened = b->open(1, {});
      if (opened) inlet = std::move(*opened);
      has_failed = failing.is_over();
    }
    if (!inlet) inlet = b->open(1, {}).value();
    const auto outlet = a->connect(b->card(), 1, kNoPort, {}, counters).value();
    REQUIRE(push(*outlet, Kind::first, kHead, {}));
    inlet->release(Pair::await(*inlet));
  }
}

// Its inlet goes before there is memory for what has come.
TEST_CASE("tcp: a port that is closed without memory takes in what its peers say later", "[tcp]") {
  bool has_failed = true;
  for (std::int64_t before = 0; has_failed; ++before) {
    Pair pair;
    auto there = pair.to_b();
    const auto back = pair.to_a();
    REQUIRE(push(*there, Kind::first, kHead, {}));
    {
      Frame frame;
      const test::FailingAllocation failing(before);
      for (int i = 0; i < 100 && !failing.is_over(); ++i)
        if (pair.at_b->next(frame)) pair.at_b->release(frame);
      has_failed = failing.is_over();
      pair.at_b.reset();
    }
    there.reset();
    pair.at_a.reset();
    CHECK(eventually([&] { return !back->peer_listening(); }));
  }
}

TEST_CASE("the end of a process is seen while a child that it has forked lives", "[tcp][ofi]") {
  const std::string name = GENERATE("tcp", "ofi");
  const auto transport = [&] { return select_transport(name).value()->make(test::config_with({})).value(); };
  test::Child parent([&](test::Pipe& pipe) {
    const auto own = transport();
    const auto inlet = own->open(1, {}).value();
    pipe.send(own->card());
    Frame frame;
    while (!inlet->next(frame)) std::this_thread::yield();
    // The grandchild holds the pipe, too, and ends with the test.
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, 0);
      alarm(300);
      (void)pipe.receive();
      _exit(0);
    }
    pipe.send(std::to_string(child));
    _exit(0);
  });
  PortCounters counters;
  const auto here = transport();
  const auto outlet = here->connect(parent.pipe().receive(), 1, kNoPort, {}, counters).value();
  REQUIRE(push(*outlet, Kind::first, kHead, {}));
  const pid_t grandchild = std::stoi(parent.pipe().receive());
  (void)parent.wait();
  CHECK(eventually([&] { return !outlet->peer_listening(); }));
  CHECK(::kill(grandchild, 0) == 0);
  ::kill(grandchild, SIGKILL);
}
