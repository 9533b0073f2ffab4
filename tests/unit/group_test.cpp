// Groups of ports: one message to several, over the library's public interfaces, and the multicasts below them.
#include <ulfm/ulfm.hpp>

#include <deque>

#include "environment.hpp"
#include "fabric/engine/host.hpp"
#include "pattern.hpp"
#include "property.hpp"
#include "proto/multicast.hpp"
#include "proto/stack.hpp"
#include "transport/emulated/transport.hpp"
#include "transport/registry.hpp"

using namespace ulfm;
using namespace std::chrono_literals;

namespace {

/// A port that sends and several that receive, in one process.
struct PortGroup {
  explicit PortGroup(int receivers = 3, test::Environment::Settings settings = {})
      : environment(settings), job(Job::alone().value()) {
    for (int i = 0; i < receivers; ++i) {
      const auto number = static_cast<std::uint16_t>(10 + i);
      ports.push_back(job.open_port({.number = number, .depth = 8}).value());
      addresses.push_back(job.address(0, number).value());
    }
  }
  test::Environment environment;
  Job job;
  Port from = job.open_port({.number = 2, .depth = 8}).value();
  std::vector<Port> ports;
  std::vector<Address> addresses;
};

void check_arrives(Port& port, std::uint32_t seed, std::size_t size) {
  auto in = port.wait(60s);
  REQUIRE(in);
  REQUIRE(in->bytes().size() == size);
  CHECK(test::matches(in->bytes(), seed));
}

}  // namespace

TEST_CASE("a message to a group arrives once at each member, whatever its size", "[group]") {
  PortGroup w;
  auto group = w.from.group(w.addresses).value();
  std::uint32_t seed = 0;
  for (const std::size_t size : {0, 1, 8, 48, 64, 65, 300, 2000, 5000, 32760, 32768, 40000, 100000, 1000000}) {
    INFO(size);
    REQUIRE(w.from.send(test::pattern_bytes(++seed, size), group, 60s));
    for (Port& port : w.ports) check_arrives(port, seed, size);
  }
  for (Port& port : w.ports) CHECK_FALSE(port.poll().value());
}

TEST_CASE("members hear groups and plain messages in the order they were sent", "[group]") {
  PortGroup w;
  auto all = w.from.group(w.addresses).value();
  auto two = w.from.group(std::span(w.addresses).first(2)).value();
  for (std::uint32_t i = 0; i < 300; ++i) {
    const std::size_t size = 10 + i * 37 % 3000;
    if (i % 3 == 0) REQUIRE(w.from.send(test::pattern_bytes(i, size), all, 60s));
    if (i % 3 == 1) REQUIRE(w.from.send(test::pattern_bytes(i, size), two, 60s));
    if (i % 3 == 2) REQUIRE(w.from.send(test::pattern_bytes(i, size), w.addresses[0], 60s));
    check_arrives(w.ports[0], i, size);
    if (i % 3 != 2) check_arrives(w.ports[1], i, size);
    if (i % 3 == 0) check_arrives(w.ports[2], i, size);
  }
}

TEST_CASE("on one host the members of a group read the same bytes", "[group]") {
  PortGroup w;
  auto group = w.from.group(w.addresses).value();
  REQUIRE(w.from.send(test::pattern_bytes(1, 4000), group, 60s));  // members map the pool when they look
  for (Port& port : w.ports) check_arrives(port, 1, 4000);
  for (std::uint32_t i = 2; i < 400; ++i) {  // more than there are buffers
    REQUIRE(w.from.send(test::pattern_bytes(i, 4000), group, 60s));
    for (Port& port : w.ports) check_arrives(port, i, 4000);
  }
  // Held at two of them: the third goes on, and nothing is written over.
  REQUIRE(w.from.send(test::pattern_bytes(1000, 4000), group, 60s));
  auto first = w.ports[0].wait(60s).value();
  auto second = w.ports[1].wait(60s).value();
  for (std::uint32_t i = 1001; i < 1007; ++i) REQUIRE(w.from.send(test::pattern_bytes(i, 4000), group, 60s));
  for (std::uint32_t i = 1000; i < 1007; ++i) check_arrives(w.ports[2], i, 4000);
  CHECK(test::matches(first.bytes(), 1000));
  CHECK(test::matches(second.bytes(), 1000));
}

TEST_CASE("a member that does not read keeps no other from a message", "[group]") {
  PortGroup w;
  auto group = w.from.group(w.addresses).value();
  const std::size_t size = 6 << 20;  // more than a lane and a pool hold
  auto out = w.from.compose(size).value();
  test::fill(out.bytes(), 7);
  REQUIRE(w.from.post(std::move(out), group));
  // Ports of one process: who waits also sends. The first two get everything while the third has not looked.
  check_arrives(w.ports[0], 7, size);
  check_arrives(w.ports[1], 7, size);
  check_arrives(w.ports[2], 7, size);
}

TEST_CASE("a member that has closed its port is left out, and that is said once", "[group]") {
  PortGroup w;
  auto group = w.from.group(w.addresses).value();
  REQUIRE(w.ports[1].close());
  REQUIRE(w.from.send(test::pattern_bytes(1, 500), group, 60s));
  check_arrives(w.ports[0], 1, 500);
  check_arrives(w.ports[2], 1, 500);
  CHECK(w.from.wait(5s).error().code == Errc::peer_failed);
  REQUIRE(w.from.send(test::pattern_bytes(2, 500), group, 60s));
  check_arrives(w.ports[0], 2, 500);
  check_arrives(w.ports[2], 2, 500);
  CHECK(w.from.wait(1ms).error().code == Errc::timed_out);
}

TEST_CASE("groups that cannot be, and groups that are closed", "[group]") {
  PortGroup w;
  CHECK(w.from.group({}).error().code == Errc::invalid);
  const Address nowhere[] = {w.addresses[0], {w.addresses[0].process, 60, 0}};
  CHECK(w.from.group(nowhere).error().code == Errc::not_found);
  const Address nobody[] = {{77, 1, 0}};
  CHECK(w.from.group(nobody).error().code == Errc::invalid);

  const Address twice[] = {w.addresses[0], w.addresses[0]};
  auto doubled = w.from.group(twice).value();
  REQUIRE(w.from.send(test::pattern_bytes(1, 100), doubled, 60s));
  check_arrives(w.ports[0], 1, 100);
  CHECK_FALSE(w.ports[0].poll().value());

  auto other = w.ports[2].group(std::span(w.addresses).first(1)).value();
  auto out = w.from.compose(10).value();
  CHECK(w.from.post(std::move(out), other).error().code == Errc::invalid);

  ulfm_group handle = 0;
  REQUIRE(ulfm_group_open(w.from.handle(), w.addresses.data(), 2, &handle) == ULFM_OK);
  CHECK(ulfm_post_group(w.from.handle(), handle) == ULFM_OK);  // `out`, which was not posted
  CHECK(ulfm_post_group(w.from.handle(), handle) == ULFM_ERR_INVALID);
  CHECK(ulfm_group_close(w.from.handle(), handle) == ULFM_OK);
  CHECK(ulfm_group_close(w.from.handle(), handle) == ULFM_ERR_STALE);
  CHECK(ulfm_group_open(w.from.handle(), nullptr, 1, &handle) == ULFM_ERR_INVALID);
  CHECK(ulfm_group_open(w.from.handle(), w.addresses.data(), 0, &handle) == ULFM_ERR_INVALID);
}

// ---- multicasts of every stack --------------------------------------------------------------------------------------

namespace {

struct Case {
  const char* transport;
  const char* protocol;
  const char* faults;
};
constexpr Case kCases[] = {
    {"direct", "auto", ""},
    {"direct", "always", ""},
    {"direct", "auto", "drop=0.05,corrupt=0.02,duplicate=0.05,reorder=0.05,delay=0.02:300us,seed=3"},
    {"tcp", "auto", ""},
    {"ofi", "auto", ""},
    {"ofi", "always", ""},
    {"mux", "auto", ""},
};

/// A port that sends to three others of this process, over a stack or an emulated interconnect.
struct Ends {
  static constexpr std::uint16_t kFrom = 5;

  explicit Ends(const Case& c) {
    test::Environment environment;
    Config config = Config::load().value();
    for (const auto& [row, value] :
         {std::pair{"TRANSPORT", c.transport}, {"PROTOCOL", c.protocol}, {"FAULT", c.faults}})
      REQUIRE(config.set(row, value, Origin::command_line, "test"));
    stack = make_stack(config, *select_transport(c.transport).value(), 0).value();
    open(*stack.transport, {stack.transport.get(), stack.transport.get(), stack.transport.get()});
  }
  explicit Ends(const std::string& faults)
      : host(fabric::FabricHost::create({"pointdesign", "gh:2x2x2", 4, faults}).value()) {
    for (std::uint32_t p = 0; p < 4; ++p)
      processes.push_back(
          emulated::on(fabric::FabricEngine::join_as(fabric::FabricArena::attach(host->arena().address()), p).value()));
    open(*processes[0], {processes[1].get(), processes[2].get(), processes[3].get()});
  }
  void open(Transport& sender, const std::vector<Transport*>& receivers) {
    from = sender.open(kFrom, {}).value();
    std::vector<Outlet*> all;
    for (std::uint16_t i = 0; i < 3; ++i) {
      const auto number = static_cast<std::uint16_t>(10 + i);
      to.push_back(receivers[i]->open(number, {}).value());
      outlets.push_back(sender.connect(receivers[i]->card(), number, kFrom, {}, counters).value());
      all.push_back(outlets.back().get());
    }
    group = std::make_unique<GroupSender>(all, sender.group(all));
  }
  /// Sends a message and takes it at each receiver, as programs do that do both in turns.
  void send_and_check(std::uint32_t seed, std::size_t size) {
    const auto bytes = test::pattern_bytes(seed, size);
    group->begin(bytes.data(), size);
    std::vector<std::vector<std::byte>> got(3, std::vector<std::byte>(size));
    std::vector<FrameReader> readers(3);
    std::uint32_t whole = 0;
    const auto until = std::chrono::steady_clock::now() + 30s;
    bool sent = false;
    while (!sent || whole != 3) {
      REQUIRE(std::chrono::steady_clock::now() < until);
      sent = sent || group->advance(counters);
      Frame frame;
      CHECK_FALSE(from->next(frame));
      for (std::uint32_t i = 0; i < 3; ++i) {
        if (!to[i]->next(frame)) continue;
        const auto step = readers[i].step(frame);
        REQUIRE(step != FrameReader::Step::broken);
        REQUIRE(readers[i].offset() + frame.length <= size);
        std::copy_n(frame.data, frame.length, got[i].begin() + static_cast<std::ptrdiff_t>(readers[i].offset()));
        if (step == FrameReader::Step::whole || step == FrameReader::Step::completes) ++whole;
        to[i]->release(frame);
      }
    }
    for (const auto& one : got) CHECK(test::matches(one, seed));
  }

  TransportStack stack;
  std::optional<fabric::FabricHost> host;
  std::vector<std::unique_ptr<Transport>> processes;
  PortCounters counters;
  std::unique_ptr<Inlet> from;
  std::vector<std::unique_ptr<Inlet>> to;
  std::vector<std::unique_ptr<Outlet>> outlets;
  std::unique_ptr<GroupSender> group;
};

}  // namespace

TEST_CASE("down a tree each member gets every message once and in order", "[group][tree]") {
  auto host = fabric::FabricHost::create({"xswitch", "single:4", 1}).value();  // which copies no messages
  PortGroup w(7, {{"ULFM_TRANSPORT", "xswitch"}, {"ULFM_FABRIC", encode(host.arena().address())}});
  auto tree = w.from.tree(w.addresses).value();
  for (std::uint32_t i = 0; i < 60; ++i) {
    const std::size_t size = i % 10 == 9 ? 70000 : i * 97 % 3000;  // of one frame, and of several
    REQUIRE(w.from.send(test::pattern_bytes(i, size), tree, 60s));
    std::vector<Port*> waiting;
    for (Port& port : w.ports) waiting.push_back(&port);
    while (!waiting.empty()) {
      auto in = Port::wait_any(waiting, 60s);
      REQUIRE(in);
      const Incoming& message = in->second;
      REQUIRE(message.bytes().size() == size);
      CHECK(test::matches(message.bytes(), i));
      CHECK(message.source().port == 2);  // the root's, whoever it came through
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(in->first));
    }
  }
}

TEST_CASE("a member of a tree that closes is left out, and those behind it are served", "[group][tree]") {
  auto host = fabric::FabricHost::create({"xswitch", "single:4", 1}).value();
  PortGroup w(6, {{"ULFM_TRANSPORT", "xswitch"}, {"ULFM_FABRIC", encode(host.arena().address())}});
  auto tree = w.from.tree(w.addresses).value();
  REQUIRE(w.from.send(test::pattern_bytes(1, 500), tree, 60s));
  for (std::size_t i = 0; i < 3; ++i) check_arrives(w.ports[i], 1, 500);
  for (std::size_t i = 3; i < 6; ++i) check_arrives(w.ports[i], 1, 500);
  REQUIRE(w.ports[0].close());
  REQUIRE(w.from.send(test::pattern_bytes(2, 500), tree, 60s));
  for (std::size_t i = 1; i < 6; ++i) check_arrives(w.ports[i], 2, 500);
  CHECK(w.from.wait(5s).error().code == Errc::peer_failed);
}

TEST_CASE("every stack brings a group's messages to each member, once and whole", "[group][stack]") {
  const Case& c = GENERATE(from_range(std::begin(kCases), std::end(kCases)));
  INFO(c.transport << " " << c.protocol << " " << c.faults);
  Ends ends(c);
  for (std::uint32_t i = 0; i < 200; ++i) ends.send_and_check(i, i % 20 == 19 ? 100000 : i * 97 % 5000);
  const bool shares = std::string(c.transport) != "ofi" && std::string(c.transport) != "tcp";
  CHECK(ends.group->has_multicast() == shares);
  CHECK((ends.counters.group_frames.get() > 100) == shares);
  CHECK(ends.counters.group_copies.get() <= 3 * ends.counters.group_frames.get());
}

TEST_CASE("pointdesign sends a group's frame once and copies it itself", "[group][pointdesign]") {
  Ends ends("");
  for (std::uint32_t i = 0; i < 200; ++i) ends.send_and_check(i, i % 20 == 19 ? 100000 : i * 97 % 5000);
  CHECK(ends.counters.group_singles.get() == 0);
  CHECK(ends.counters.group_copies.get() == 3 * ends.counters.group_frames.get());
  CHECK(ends.counters.open_frames.get() == ends.counters.group_frames.get());
  const std::string said = ends.processes[0]->shared_statistics();
  INFO(said);
  CHECK(said.find("messages entered " + std::to_string(ends.counters.group_frames.get())) != std::string::npos);
}

TEST_CASE("a slot comes back when the last receiver has released it, in any order", "[group][pointdesign]") {
  Ends ends("");
  const auto bytes = test::pattern_bytes(3, 200);
  std::vector<std::vector<Frame>> held(3);
  std::uint32_t sent = 0;
  for (int round = 0; round < 300; ++round) {
    ends.group->begin(bytes.data(), bytes.size());
    if (ends.group->advance(ends.counters)) ++sent;
    for (std::size_t i = 0; i < 3; ++i) {
      Frame frame;
      while (ends.to[i]->next(frame)) held[i].push_back(frame);
    }
    if (round % 40 < 30) continue;  // nobody releases: the sender finds no room
    for (std::size_t i = 0; i < 3; ++i) {
      for (const Frame& frame : held[(i + static_cast<std::size_t>(round)) % 3]) {
        CHECK(test::matches({frame.data, frame.length}, 3));
        ends.to[(i + static_cast<std::size_t>(round)) % 3]->release(frame);
      }
      held[(i + static_cast<std::size_t>(round)) % 3].clear();
    }
  }
  CHECK(sent > 100);
}
