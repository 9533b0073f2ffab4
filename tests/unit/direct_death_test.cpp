// What becomes of a sender that is dropped while it writes, or that dies while others write.
#include <sys/mman.h>
#include <sys/resource.h>

#include <ulfm/ulfm.hpp>

#include "base/claim.hpp"
#include "child.hpp"
#include "environment.hpp"
#include "pattern.hpp"
#include "proto/framing.hpp"
#include "skipped.hpp"
#include "transport/direct/direct.hpp"
#include "transport/direct/inlet.hpp"
#include "transport/direct/outlet.hpp"

using namespace ulfm;
using direct::PortGeometry;
using namespace std::chrono_literals;

namespace {

constexpr std::uint16_t kPort = 7;

std::unique_ptr<Transport> direct_of_this_process() { return direct_transport.make(Config::load().value()).value(); }

struct Receiver {
  using Settings = std::initializer_list<std::pair<const char*, const char*>>;
  explicit Receiver(Settings settings = {}) {
    for (const auto& [name, value] : settings) environment.set(name, value);
    transport = direct_of_this_process();
    inlet = transport->open(kPort, {}).value();
  }
  /// The next frame, waited for as long as it takes.
  Frame next() {
    Frame frame;
    while (!inlet->next(frame)) inlet->find_dead();
    return frame;
  }
  test::Environment environment;
  std::unique_ptr<Transport> transport;
  std::unique_ptr<Inlet> inlet;
};

struct Sender {
  explicit Sender(const std::string& card)
      : transport(direct_of_this_process()), outlet(transport->connect(card, kPort, 3, {}, counters).value()) {}
  bool push(std::uint32_t seed, std::size_t size = 20, Kind kind = Kind::first) {
    const auto bytes = test::pattern_bytes(seed, size);
    const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
    Gather data(std::span(&piece, 1));
    return outlet->push(kind, {}, data, size);
  }
  PortCounters counters;
  std::unique_ptr<Transport> transport;
  std::unique_ptr<Outlet> outlet;
};

bool is(const Frame& frame, std::uint32_t seed) { return test::matches({frame.data, frame.length}, seed); }

}  // namespace

TEST_CASE("a sender that is dropped while it writes is told, and what it writes is nobody's", "[direct][process]") {
  const bool by_lane = GENERATE(false, true);
  Receiver receiver({{"ULFM_LANES", "1"}, {"ULFM_LANE_AFTER", by_lane ? "0" : "1000"}});
  const std::string card = receiver.transport->card();
  test::Child first([&](test::Pipe& parent) {
    Sender sender(card);
    sender.push(1);
    parent.receive();
    parent.send(sender.outlet->cut_off() && sender.outlet->port_closed() && !sender.outlet->peer_listening() ? "told"
                                                                                                             : "not");
    for (std::uint32_t i = 0; i < 3; ++i) sender.push(100 + i);  // as one does who has not looked yet
    parent.send("wrote");
    parent.receive();
  });
  const Frame frame = receiver.next();
  CHECK(is(frame, 1));
  const std::uint32_t origin = frame.origin;
  receiver.inlet->release(frame);
  receiver.inlet->drop_origin(origin);
  first.pipe().send("dropped");
  CHECK(first.pipe().receive() == "told");
  REQUIRE(first.pipe().receive() == "wrote");

  const auto send_one = [&](std::uint32_t seed) {
    test::Child other([&](test::Pipe& parent) {
      Sender sender(card);
      sender.push(seed);
      sender.outlet->bye();
      parent.send("sent");
      parent.receive();
    });
    REQUIRE(other.pipe().receive() == "sent");
    const Frame got = receiver.next();
    INFO("origin " << got.origin);
    CHECK(got.fresh);
    CHECK(is(got, seed));
    receiver.inlet->release(got);
    const Frame bye = receiver.next();
    CHECK(bye.kind == Kind::bye);
    receiver.inlet->release(bye);
    receiver.inlet->drop_origin(bye.origin);
    return got.origin;
  };
  CHECK(send_one(2) != origin);
  first.kill();
  receiver.inlet->find_dead();  // quarantine ends with the process
  CHECK(send_one(3) <= 1);
  CHECK(send_one(4) <= 1);
}

TEST_CASE("a dropped sender that leaves makes room for the next", "[direct][process]") {
  Receiver receiver({{"ULFM_PEERS", "2"}, {"ULFM_LANE_AFTER", "0"}, {"ULFM_LANES", "1"}});
  const std::string card = receiver.transport->card();
  test::Child child([&](test::Pipe& parent) {
    for (std::uint32_t i = 0; i < 10; ++i) {
      {
        Sender sender(card);
        if (!sender.push(i)) _exit(3);
        parent.send(sender.counters.lanes_opened.get() == 1 ? "lane" : "open");
        parent.receive();
      }
      parent.send("left");
      parent.receive();
    }
  });
  for (std::uint32_t i = 0; i < 10; ++i) {
    REQUIRE(child.pipe().receive() == "lane");
    const Frame frame = receiver.next();
    CHECK(is(frame, i));
    receiver.inlet->release(frame);
    receiver.inlet->drop_origin(frame.origin);
    child.pipe().send("dropped");
    REQUIRE(child.pipe().receive() == "left");
    receiver.inlet->find_dead();
    child.pipe().send("go on");
  }
  CHECK(child.wait() == 0);
}

TEST_CASE("a pending claim hides nobody's last frames", "[direct][process]") {
  Receiver receiver;
  const std::string card = receiver.transport->card();
  test::Child slow([&](test::Pipe& parent) {
    Sender sender(card);
    const auto to = direct::decode(card).value();
    auto directory = Segment::attach(to.pid, to.fd);
    auto segment = Segment::attach(to.pid, directory->at<direct::Directory>(0)->entry[kPort].fd);
    const PortGeometry g = segment->at<direct::PortHeader>(0)->geometry;
    const OpenProducer ring(direct::open_memory(segment->base(), g, direct::Layout(g)));
    std::uint64_t position = 0;
    sender.push(1);
    if (!ring.claim(0, position)) _exit(3);  // preempted here
    parent.send("claimed");
    parent.receive();
    Gather none;
    ring.fill(position, Kind::first, 0, nullptr, 0, none, 0);
    parent.send("filled");
    parent.receive();
  });
  REQUIRE(slow.pipe().receive() == "claimed");
  test::Child finished([&](test::Pipe&) {
    Sender sender(card);
    sender.push(2);
    sender.push(3);
    _exit(0);
  });
  CHECK(finished.wait() == 0);
  const Frame frame = receiver.next();
  CHECK(is(frame, 1));
  receiver.inlet->release(frame);
  for (int i = 0; i < 20; ++i) CHECK(receiver.inlet->find_dead() == -1);  // what it sent lies behind the claim
  slow.pipe().send("go on");
  REQUIRE(slow.pipe().receive() == "filled");
  receiver.inlet->release(receiver.next());
  Frame last;
  for (const std::uint32_t seed : {2u, 3u}) {
    last = receiver.next();
    CHECK(is(last, seed));
    receiver.inlet->release(last);
  }
  std::int64_t dead = -1;
  for (int i = 0; i < 4 && dead < 0; ++i) dead = receiver.inlet->find_dead();
  CHECK(dead == last.origin);
}

TEST_CASE("a death is found while others send steadily", "[direct][process]") {
  Receiver receiver;
  const std::string card = receiver.transport->card();
  test::Child dead([&](test::Pipe& parent) {
    Sender sender(card);
    sender.push(1);
    parent.send("sent");
    parent.receive();
  });
  REQUIRE(dead.pipe().receive() == "sent");
  const Frame frame = receiver.next();
  const std::uint32_t origin = frame.origin;
  receiver.inlet->release(frame);
  dead.kill();
  Sender steady(card);
  steady.push(2);
  REQUIRE(receiver.inlet->has_frame());
  std::int64_t found = -1;
  for (int i = 0; i < 4 && found < 0; ++i) found = receiver.inlet->find_dead();
  CHECK(found == origin);
}

TEST_CASE("all senders of nonsense are told about", "[direct][process]") {
  Receiver receiver;
  Sender one(receiver.transport->card()), other(receiver.transport->card());
  one.push(1, 20, kCellLane);  // names no lane
  other.push(2, 20, kCellLane);
  Frame frame;
  CHECK_FALSE(receiver.inlet->next(frame));
  const std::int64_t a = receiver.inlet->take_broken(), b = receiver.inlet->take_broken();
  CHECK(a >= 0);
  CHECK(b >= 0);
  CHECK(a != b);
  CHECK(receiver.inlet->take_broken() == -1);
}

TEST_CASE("a process that ends behind its claim of a lane leaves the lane to others", "[direct][process]") {
  Receiver receiver({{"ULFM_LANE_AFTER", "0"}, {"ULFM_LANES", "1"}});
  const std::string card = receiver.transport->card();
  test::Child child([&](test::Pipe& parent) {
    const auto to = direct::decode(card).value();
    auto directory = Segment::attach(to.pid, to.fd);
    auto segment = Segment::attach(to.pid, directory->at<direct::Directory>(0)->entry[kPort].fd);
    auto* header = segment->at<direct::PortHeader>(0);
    const PortGeometry g = header->geometry;
    const direct::Layout at(g);
    auto mine = direct_of_this_process();
    PortCounters counters;
    auto outlet = mine->connect(card, kPort, 3, {}, counters).value();
    // Origin 0 claims its lane and does not get to its announcement.
    (void)claim_place(
        {header->lanes_used, header->lanes_freed}, g.lanes,
        [&](std::uint32_t i) {
          direct::lane_control(segment->base(), at, i).owner = 1;
          return true;
        },
        [](std::uint32_t) { return Result<void>{}; });
    Gather none;
    if (!OpenProducer(direct::open_memory(segment->base(), g, at)).push(Kind::first, 0, nullptr, 0, none, 0)) _exit(3);
    parent.send("claimed");
    parent.receive();
  });
  REQUIRE(child.pipe().receive() == "claimed");
  const Frame frame = receiver.next();
  receiver.inlet->release(frame);
  child.kill();
  std::int64_t dead = -1;
  while (dead < 0) dead = receiver.inlet->find_dead();
  receiver.inlet->drop_origin(static_cast<std::uint32_t>(dead));
  Sender next(card);
  CHECK(next.push(1));
  CHECK(next.counters.lanes_opened.get() == 1);
}

TEST_CASE("a record whose claimer died before it was ready goes to the next", "[direct][process]") {
  Receiver receiver({{"ULFM_PEERS", "2"}});
  const std::string card = receiver.transport->card();
  for (int i = 0; i < 2; ++i) {
    test::Child child([&](test::Pipe&) {
      const auto to = direct::decode(card).value();
      auto directory = Segment::attach(to.pid, to.fd);
      auto segment = Segment::attach(to.pid, directory->at<direct::Directory>(0)->entry[kPort].fd);
      auto* header = segment->at<direct::PortHeader>(0);
      const direct::Layout at(header->geometry);
      (void)claim_place(
          {header->peers_used, header->peers_freed}, 2,
          [&](std::uint32_t n) {
            direct::peer_record(segment->base(), at, n).state = direct::peer_word(direct::PeerState::claimed, getpid());
            return true;
          },
          [](std::uint32_t) { return Result<void>{}; });
      _exit(0);
    });
    CHECK(child.wait() == 0);
  }
  PortCounters counters;
  auto mine = direct_of_this_process();
  CHECK(mine->connect(card, kPort, 3, {}, counters));
}

TEST_CASE("a place whose memory cannot be had is not counted", "[direct]") {
  std::atomic<std::uint32_t> used{0}, freed{0};
  bool memory = false, taken[2] = {};
  const auto claim = [&] {
    return claim_place(
        {used, freed}, 2, [&](std::uint32_t i) { return !std::exchange(taken[i], true); },
        [&](std::uint32_t) -> Result<void> {
          if (memory) return {};
          return fail(Errc::no_memory, "none");
        });
  };
  CHECK_FALSE(claim());
  CHECK(used == 0);
  memory = true;
  CHECK(claim().value() == 0);
  CHECK(claim().value() == 1);
  CHECK(claim().value() == -1);
  taken[1] = false;  // given back by one who died before it counted that
  CHECK(claim().value() == 1);
}

TEST_CASE("memory given back reads as zero, also when it is locked", "[segment][process]") {
  test::Child child([](test::Pipe& parent) {
    auto segment = Segment::create("ulfm-test", 16 * 4096);
    if (!segment || !segment->commit(0, segment->size())) _exit(3);
    if (mlock(segment->base(), segment->size()) != 0) return parent.send("may not");
    std::memset(segment->base(), 1, segment->size());
    const bool given = segment->decommit(4096, 8 * 4096);
    parent.send(given && *segment->at<char>(4096) == 0 && *segment->at<char>(0) == 1 ? "zero" : "as it was");
  });
  const std::string said = child.pipe().receive();
  CHECK((said == "zero" || said == "may not"));
}

TEST_CASE("without memory for one message the others still arrive", "[process]") {
  test::Environment environment;
  test::Child child([](test::Pipe& parent) {
    Job job = Job::alone().value();
    Port port = job.open_port({.number = kPort}).value();
    parent.send(job.card());
    parent.receive();
    std::FILE* f = std::fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    if (f == nullptr || std::fscanf(f, "%lu", &pages) != 1) _exit(3);
    std::fclose(f);
    const rlimit limit{pages * 4096 + (32u << 20), RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &limit);
    // 200 MB more than it may have.
    parent.send(mmap(nullptr, 200u << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? "limited"
                                                                                                       : "");
    std::uint32_t got = 0, refused = 0;
    while (got < 200) {
      auto in = port.wait(60s);
      if (in && test::matches(in->bytes(), got)) ++got;
      else if (!in && in.error().code == Errc::no_memory) ++refused;
      else break;
    }
    parent.send(std::to_string(got) + " " + std::to_string(refused));
  });
  Job job = Job::alone().value();
  Port port = job.open_port({.number = kPort}).value();
  const Address to = job.address_of_card(child.pipe().receive(), kPort).value();
  REQUIRE(port.send(test::pattern_bytes(0, 100), to, 60s));
  child.pipe().send("connected");
  if (const std::string limited = child.pipe().receive();
      test::skipped_without(limited == "limited", "this emulator ignores limits of the address space (RLIMIT_AS)"))
    return;
  for (std::uint32_t i = 1; i < 200; ++i) {
    if (i == 100) REQUIRE(port.send(std::vector<std::byte>(100u << 20), to, 120s));
    REQUIRE(port.send(test::pattern_bytes(i, 100), to, 60s));
  }
  REQUIRE(port.flush(120s));
  CHECK(child.pipe().receive() == "200 1");
}

TEST_CASE("outlets to ports that have been closed go", "[process]") {
  const auto mapped = [] {
    std::size_t n = 0;
    char line[4096];
    std::FILE* f = std::fopen("/proc/self/maps", "r");
    while (f != nullptr && std::fgets(line, sizeof line, f) != nullptr) n += std::strstr(line, "ulfm-port") != nullptr;
    if (f != nullptr) std::fclose(f);
    return n;
  };
  test::Environment environment;
  Job job = Job::alone().value();
  Port port = job.open_port({.number = kPort}).value();
  const std::string card = job.card();
  std::size_t most = 0;
  for (std::uint32_t i = 0; i < 80; ++i) {
    test::Child client([&](test::Pipe&) {
      Job mine = Job::alone().value();
      Port own = mine.open_port({.number = 8}).value();
      if (!own.send(test::pattern_bytes(i, 10), mine.address_of_card(card, kPort).value(), 60s)) _exit(3);
      if (!own.wait(60s)) _exit(4);
    });
    Address back;
    {
      auto in = port.wait(60s);
      REQUIRE(in);
      back = in->source();
    }
    REQUIRE(port.send(test::pattern_bytes(i, 10), back, 60s));
    REQUIRE(port.flush(60s));
    CHECK(client.wait() == 0);
    most = std::max(most, mapped());
  }
  CHECK(most <= 40);
}
