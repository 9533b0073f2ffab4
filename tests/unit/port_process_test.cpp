// Ports of several processes: exchange by card, and what happens when one of them is killed.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ulfm/ulfm.hpp>

#include <cerrno>

#include "base/wait.hpp"
#include "child.hpp"
#include "environment.hpp"
#include "fabric/engine/host.hpp"
#include "job/liveness.hpp"
#include "pattern.hpp"
#include "port/node.hpp"
#include "property.hpp"
#include "transport/direct/outlet.hpp"

using namespace ulfm;
using namespace std::chrono_literals;

namespace {

constexpr std::uint16_t kPort = 7;

/// In the child: a job with a port, and the address of the parent's port.
struct Guest {
  explicit Guest(const std::string& card, std::uint32_t depth = 8)
      : place(setenv("ULFM_FABRIC_RANK", "1", 1)),
        job(Job::alone().value()),
        port(job.open_port({.number = kPort, .depth = depth}).value()),
        parent(job.address_of_card(card, kPort).value()) {}
  int place;  ///< on an interconnect
  Job job;
  Port port;
  Address parent;
};

struct Host {
  explicit Host(std::uint32_t depth = 8, test::Environment::Settings settings = {})
      : environment(settings),
        job(Job::alone().value()),
        port(job.open_port({.number = kPort, .depth = depth}).value()) {}
  Address guest(test::Child& child) { return job.address_of_card(child.pipe().receive(), kPort).value(); }
  test::Environment environment;
  Job job;
  Port port;
};

/// A process with a port that says its card and reads nothing, until it is told to end.
test::Child silent_guest(const std::string& card) {
  return test::Child([card](test::Pipe& parent) {
    Guest guest(card);
    parent.send(guest.job.card());
    parent.receive();
  });
}

/// An interconnect of two nodes for the test that asks.
std::string fabric_address() {
  static std::optional<fabric::FabricHost> host;
  host.emplace(fabric::FabricHost::create({"xswitch", "single:2", 1}).value());
  return encode(host->arena().address());
}

std::uint64_t parks() { return wait_counters().steps[static_cast<std::size_t>(Rung::park)].load(); }

bool can_sleep_on_several() {
#ifdef SYS_futex_waitv
  return syscall(SYS_futex_waitv, nullptr, 0, 0, nullptr, 0) < 0 && errno != ENOSYS && errno != EPERM;
#else
  return false;
#endif
}

bool says(const Error& error, const std::string& part) { return error.what.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("messages between processes, any length, both ways", "[process]") {
  const std::uint32_t depth = GENERATE(1u, 16u);
  Host host(depth);
  const std::string card = host.job.card();
  test::Child child([&](test::Pipe&) {
    Guest guest(card, depth);
    // Sends back what it gets, until it gets nothing.
    if (!guest.port.send({}, guest.parent, 60s)) _exit(3);
    for (;;) {
      auto in = guest.port.wait(60s);
      if (!in) _exit(4);
      if (in->bytes().empty()) break;
      const std::vector<std::byte> copy(in->bytes().begin(), in->bytes().end());
      if (!guest.port.send(copy, in->source(), 60s)) _exit(5);
    }
    if (!guest.port.flush(60s)) _exit(6);
  });
  auto hello = host.port.wait(60s);
  REQUIRE(hello);
  const Address to = hello->source();
  { auto done = std::move(*hello); }
  std::uint32_t seed = 0;
  for (std::size_t size = 1; size < 5'000'000; size = size * 2 + size % 3) {
    INFO("size " << size);
    REQUIRE(host.port.send(test::pattern_bytes(++seed, size), to, 60s));
    auto in = host.port.wait(60s);
    REQUIRE(in);
    REQUIRE(in->bytes().size() == size);
    REQUIRE(test::matches(in->bytes(), seed));
  }
  REQUIRE(host.port.send({}, to, 60s));
  REQUIRE(host.port.flush(60s));
  CHECK(child.wait() == 0);
}

TEST_CASE("two processes that send everything first both arrive", "[process]") {
  const std::uint32_t depth = GENERATE(1u, 8u);
  constexpr std::uint32_t kMessages = 100;
  constexpr std::size_t kSize = 200'000;
  const auto exchange = [](Port& port, Address to) {
    for (std::uint32_t i = 0; i < kMessages; ++i)
      if (!port.send(test::pattern_bytes(i, kSize), to, 120s)) return 3;
    if (!port.flush(120s)) return 4;
    for (std::uint32_t i = 0; i < kMessages; ++i) {
      auto in = port.wait(120s);
      if (!in) return 5;
      if (in->bytes().size() != kSize || !test::matches(in->bytes(), i)) return 6;
    }
    return 0;
  };
  Host host(depth);
  const std::string card = host.job.card();
  test::Child child([&](test::Pipe& parent) {
    Guest guest(card, depth);
    parent.send(guest.job.card());
    const int rc = exchange(guest.port, guest.parent);
    parent.receive();
    if (rc != 0) _exit(rc);
  });
  CHECK(exchange(host.port, host.guest(child)) == 0);
  child.pipe().send("done");
  CHECK(child.wait() == 0);
}

TEST_CASE("a peer that is killed ends the wait with its name", "[process]") {
  Host host;
  const std::string card = host.job.card();
  const bool lane = GENERATE(false, true);
  test::Child child([&](test::Pipe& parent) {
    Guest guest(card);
    for (int i = 0; i < (lane ? 50 : 1); ++i)
      if (!guest.port.send(test::pattern_bytes(1, 10), guest.parent, 60s)) _exit(3);
    parent.receive();
  });
  for (int i = 0; i < (lane ? 50 : 1); ++i) REQUIRE(host.port.wait(60s));
  child.kill();
  const auto waited = host.port.wait(60s);
  REQUIRE_FALSE(waited);
  INFO(waited.error().what);
  CHECK(waited.error().code == Errc::peer_failed);
  CHECK(says(waited.error(), "process " + std::to_string(child.pid())));
  CHECK(says(waited.error(), "died"));
  // Once for each process: the port works on.
  CHECK(host.port.wait(50ms).error().code == Errc::timed_out);
}

TEST_CASE("waits that are too short to sleep tell of a killed peer, too", "[process]") {
  Host host;
  const std::string card = host.job.card();
  test::Child child([&](test::Pipe& parent) {
    Guest guest(card);
    if (!guest.port.send(test::pattern_bytes(1, 10), guest.parent, 60s)) _exit(3);
    parent.receive();
  });
  REQUIRE(host.port.wait(60s));
  child.kill();
  Error error;
  const auto limit = GENERATE(0us, 100us);
  for (const auto until = std::chrono::steady_clock::now() + 60s; std::chrono::steady_clock::now() < until;) {
    error = host.port.wait(limit).error();
    if (error.code != Errc::timed_out) break;
  }
  INFO(error.what);
  CHECK(error.code == Errc::peer_failed);
}

TEST_CASE("a wait tells once of a receiver that was killed and has never sent", "[process]") {
  const std::string transport = GENERATE("direct", "tcp", "xswitch"), protocol = GENERATE("auto", "always");
  Host host(8, {{"ULFM_TRANSPORT", transport}, {"ULFM_PROTOCOL", protocol}, {"ULFM_FABRIC", fabric_address()}});
  test::Child child = silent_guest(host.job.card());
  const Address to = host.guest(child);
  REQUIRE(host.port.send(test::pattern_bytes(1, 10), to, 60s));
  CHECK(host.port.wait(50ms).error().code == Errc::timed_out);  // it lives, and does not read
  child.kill();
  const auto waited = host.port.wait(60s);
  REQUIRE_FALSE(waited);
  INFO(waited.error().what);
  CHECK(waited.error().code == Errc::peer_failed);
  CHECK(says(waited.error(), "process " + std::to_string(child.pid()) + ", port 7, died"));
  CHECK(host.port.wait(50ms).error().code == Errc::timed_out);
  CHECK(host.port.send(test::pattern_bytes(2, 10), to, 60s).error().code == Errc::peer_failed);
}

TEST_CASE("who only sends is told of a receiver that was killed", "[process]") {
  const std::string transport = GENERATE("direct", "tcp", "xswitch");
  Host host(8, {{"ULFM_TRANSPORT", transport}, {"ULFM_FABRIC", fabric_address()}});
  const std::string card = host.job.card();
  test::Child child([&](test::Pipe& parent) {
    Guest guest(card);
    parent.send(guest.job.card());
    for (int i = 0; i < 100; ++i)
      if (!guest.port.wait(60s)) _exit(3);
    parent.send("read");
    parent.receive();
  });
  const Address to = host.guest(child);
  for (std::uint32_t i = 0; i < 100; ++i) REQUIRE(host.port.send(test::pattern_bytes(i, 100), to, 60s));
  REQUIRE(host.port.flush(60s));
  REQUIRE(child.pipe().receive() == "read");
  child.kill();
  Error error;
  for (const auto until = std::chrono::steady_clock::now() + 60s;
       error.code == Errc::ok && std::chrono::steady_clock::now() < until;) {
    auto sent = host.port.send(test::pattern_bytes(1, 100), to, 60s);
    if (sent) sent = host.port.flush(60s);
    if (!sent) error = sent.error();
  }
  INFO(transport << ": " << error.what);
  CHECK(error.code == Errc::peer_failed);
  CHECK(says(error, "process " + std::to_string(child.pid())));
}

TEST_CASE("a receiver that closes its port and ends is no failure", "[process]") {
  Host host(8, {{"ULFM_TRANSPORT", GENERATE("direct", "tcp", "xswitch")}, {"ULFM_FABRIC", fabric_address()}});
  const std::string card = host.job.card();
  test::Child child([&](test::Pipe& parent) {
    Guest guest(card);
    parent.send(guest.job.card());
    if (!guest.port.wait(60s)) _exit(3);
    parent.receive();
  });
  const Address to = host.guest(child);
  for (std::uint32_t i = 0; i < 4; ++i) REQUIRE(host.port.send(test::pattern_bytes(i, 100), to, 60s));
  REQUIRE(host.port.flush(60s));  // it reads one of them
  child.pipe().send("close");
  CHECK(child.wait() == 0);
  CHECK(host.port.wait(300ms).error().code == Errc::timed_out);
}

TEST_CASE("a wait on several ports sleeps until one of them has something", "[process]") {
  Host host(8, {{"ULFM_TRANSPORT", GENERATE("direct", "tcp", "xswitch")}, {"ULFM_FABRIC", fabric_address()}});
  std::vector<Port> ports;
  for (std::uint16_t number = 0; number < 5; ++number) ports.push_back(host.job.open_port({.number = number}).value());
  std::vector<Port*> all;
  for (Port& port : ports) all.push_back(&port);
  const std::string card = host.job.card();
  test::Child child([&](test::Pipe& parent) {
    Guest guest(card);
    for (std::uint16_t number = 0; number < 5; ++number) {
      parent.receive();
      const Address to = guest.job.address_of_card(card, number).value();
      if (!guest.port.send({}, to, 60s) || !guest.port.flush(60s)) _exit(3);
    }
    parent.receive();
  });
  const std::uint64_t before = parks();
  CHECK(Port::wait_any(all, 1s).error().code == Errc::timed_out);
  CHECK(parks() > before);
  if (can_sleep_on_several()) CHECK(parks() < before + 100);  // by naps of a millisecond, many hundreds
  for (std::size_t i = 0; i < ports.size(); ++i) {
    child.pipe().send("next");
    auto came = Port::wait_any(all, 60s);
    REQUIRE(came);
    CHECK(came->first == i);
  }
  child.pipe().send("done");
  CHECK(child.wait() == 0);
}

TEST_CASE("what a killed peer sent before arrives", "[process]") {
  Host host(64);
  const std::string card = host.job.card();
  test::Child child([&](test::Pipe& parent) {
    Guest guest(card, 64);
    for (std::uint32_t i = 0; i < 50; ++i)
      if (!guest.port.send(test::pattern_bytes(i, 500), guest.parent, 60s)) _exit(3);
    if (!guest.port.flush(60s)) _exit(4);
    parent.send("sent");
    parent.receive();
  });
  // The receiver makes no progress before the sender is dead, so all of it must fit.
  std::vector<Incoming> held;
  REQUIRE(child.pipe().receive() == "sent");
  child.kill();
  for (std::uint32_t i = 0; i < 50; ++i) {
    auto in = host.port.wait(60s);
    REQUIRE(in);
    CHECK(test::matches(in->bytes(), i));
    held.push_back(std::move(*in));
  }
  CHECK(host.port.wait(60s).error().code == Errc::peer_failed);
  for (std::uint32_t i = 0; i < 50; ++i) {
    INFO("message " << i << " held over its sender's death");
    CHECK(test::matches(held[i].bytes(), i));
  }
}

TEST_CASE("a peer killed in the middle of a message takes only that message with it", "[process]") {
  Host host(4);
  const std::string card = host.job.card();
  test::Child child([&](test::Pipe& parent) {
    Guest guest(card, 4);
    if (!guest.port.send(test::pattern_bytes(1, 100), guest.parent, 60s)) _exit(3);
    // Far more than there is room for: some of it goes, the rest waits.
    if (!guest.port.send(test::pattern_bytes(2, 50'000'000), guest.parent, 60s)) _exit(4);
    parent.send("posted");
    parent.receive();
  });
  REQUIRE(child.pipe().receive() == "posted");
  auto in = host.port.wait(60s);
  REQUIRE(in);
  CHECK(test::matches(in->bytes(), 1));
  child.kill();
  const auto waited = host.port.wait(60s);
  REQUIRE_FALSE(waited);
  CHECK(waited.error().code == Errc::peer_failed);
}

TEST_CASE("a destination that is killed is an error in words, at once or at the next post", "[process]") {
  Host host(2);
  test::Child child = silent_guest(host.job.card());
  const Address to = host.guest(child);
  REQUIRE(host.port.send(test::pattern_bytes(1, 10), to, 60s));
  REQUIRE(host.port.send(test::pattern_bytes(2, 10'000'000), to, 60s));  // stays half sent
  child.kill();
  const auto flushed = host.port.flush(60s);
  REQUIRE_FALSE(flushed);
  INFO(flushed.error().what);
  CHECK(flushed.error().code == Errc::peer_failed);
  CHECK(says(flushed.error(), std::to_string(child.pid())));
  // Nothing sent to it afterwards may look as if it had gone.
  Error error;
  for (int i = 0; i < 3 && error.code == Errc::ok; ++i) {
    auto sent = host.port.send(test::pattern_bytes(3, 10), to, 60s);
    if (sent) sent = host.port.flush(60s);
    if (!sent) error = sent.error();
  }
  CHECK(error.code != Errc::ok);
}

TEST_CASE("a process that has gone cannot be connected to", "[process]") {
  Host host;
  std::string card;
  {
    test::Child child([&](test::Pipe& parent) {
      Job job = Job::alone().value();
      parent.send(job.card());
    });
    card = child.pipe().receive();
    CHECK(child.wait() == 0);
  }
  const auto sent = host.port.send({}, host.job.address_of_card(card, kPort).value(), 60s);
  REQUIRE_FALSE(sent);
  CHECK(sent.error().code == Errc::peer_failed);
}

TEST_CASE("a sender killed between claim and publication is skipped", "[process]") {
  test::Environment environment;
  auto node = Node::create(true).value();
  PortCore* port = node->open(kPort, 0, 4).value();
  const std::string card = node->card();
  test::Child child([&](test::Pipe& parent) {
    // What a sender does, up to the point where it dies.
    const auto to = direct::decode(card).value();
    auto mine = Node::create(true).value();
    const auto from = direct::decode(mine->card()).value();
    PortCounters counters;
    auto outlet = direct::DirectOutlet::connect(to, kPort, from, 3, {}, counters);
    if (!outlet) _exit(3);
    auto directory = Segment::attach(to.pid, to.fd);
    if (!directory) _exit(4);
    auto segment = Segment::attach(to.pid, directory->at<direct::Directory>(0)->entry[kPort].fd);
    if (!segment) _exit(5);
    const direct::PortGeometry g = segment->at<direct::PortHeader>(0)->geometry;
    std::uint64_t position = 0;
    // The first to connect to that port: its origin is 0.
    if (!OpenProducer(direct::open_memory(segment->base(), g, direct::Layout(g))).claim(0, position)) _exit(6);
    parent.send("claimed");
    parent.receive();
  });
  REQUIRE(child.pipe().receive() == "claimed");
  PortCore* other = node->open(8, 0, 4).value();
  const PortAddress to{node->process_of_rank(0).value(), kPort};
  for (std::uint32_t i = 0; i < 2; ++i) {
    test::fill(other->compose(100).value(), i);
    REQUIRE(other->post(to));
  }
  PortCore* ports[] = {port};
  Arrival arrival;
  // As long as the claimer lives, what is behind its claim waits.
  CHECK(node->wait(ports, 50ms, arrival).error().code == Errc::timed_out);
  child.kill();
  for (std::uint32_t i = 0; i < 2; ++i) {
    const auto got = node->wait(ports, 60s, arrival);
    INFO((got ? std::string() : got.error().what));
    REQUIRE(got);
    CHECK(test::matches(arrival.bytes, i));
    CHECK(port->release(arrival.handle));
  }
  for (std::uint32_t i = 0; i < 20; ++i) {  // and the ring goes round
    test::fill(other->compose(100).value(), i);
    REQUIRE(other->post(to));
    REQUIRE(node->wait(ports, 60s, arrival));
    CHECK(test::matches(arrival.bytes, i));
    CHECK(port->release(arrival.handle));
  }
}

TEST_CASE("a sender that writes nonsense is cut off, others go on", "[process]") {
  Host host;
  const std::string card = host.job.card();
  test::Child child([&](test::Pipe& parent) {
    const auto to = direct::decode(card).value();
    auto mine = Node::create(true).value();
    PortCounters counters;
    auto outlet = direct::DirectOutlet::connect(to, kPort, direct::decode(mine->card()).value(), 3, {}, counters);
    if (!outlet) _exit(3);
    Gather none;
    (*outlet)->push(Kind::more, std::span(reinterpret_cast<const std::byte*>("x"), 1), none, 0);
    parent.send("wrote");
    parent.receive();
  });
  REQUIRE(child.pipe().receive() == "wrote");
  const auto waited = host.port.wait(60s);
  REQUIRE_FALSE(waited);
  INFO(waited.error().what);
  CHECK(says(waited.error(), std::to_string(child.pid())));
  REQUIRE(host.port.send(test::pattern_bytes(1, 10), host.job.address(0, kPort).value(), 60s));
  auto in = host.port.wait(60s);
  REQUIRE(in);
  CHECK(test::matches(in->bytes(), 1));
}

TEST_CASE("a child that ends in good order leaves nothing to report", "[process]") {
  Host host;
  const std::string card = host.job.card();
  for (std::uint32_t i = 0; i < 5; ++i) {
    test::Child child([&](test::Pipe&) {
      Guest guest(card);
      if (!guest.port.send(test::pattern_bytes(i, 100), guest.parent, 60s)) _exit(3);
    });
    auto in = host.port.wait(60s);
    REQUIRE(in);
    CHECK(test::matches(in->bytes(), i));
    CHECK(child.wait() == 0);
  }
  CHECK(host.port.wait(50ms).error().code == Errc::timed_out);
}

TEST_CASE("a sender without address space for the lanes goes by the open ring", "[process]") {
  Host host;
  const std::string card = host.job.card();
  test::Child child([&](test::Pipe&) {
    Guest guest(card);
    std::FILE* f = std::fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    if (f == nullptr || std::fscanf(f, "%lu", &pages) != 1) _exit(3);
    std::fclose(f);
    const rlimit limit{pages * 4096 + (64u << 20), RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &limit);
    for (std::uint32_t i = 0; i < 1000; ++i)
      if (!guest.port.send(test::pattern_bytes(i, 100 + i % 5000), guest.parent, 60s)) _exit(4);
    if (!guest.port.flush(60s)) _exit(5);
  });
  for (std::uint32_t i = 0; i < 1000; ++i) {
    auto in = host.port.wait(60s);
    REQUIRE(in);
    REQUIRE(in->bytes().size() == 100 + i % 5000);
    REQUIRE(test::matches(in->bytes(), i));
  }
  CHECK(child.wait() == 0);
}
