// What the contract of transports promises, held against every transport and every stack of decorators: the same body
// for all. Another transport joins by a line in the list; models of interconnects join by themselves, and one from a
// shared object with them. The tests print which stack passed which of them:
//
//   build/release/tests/ulfm_unit_tests "[conformance]"
#define CATCH_CONFIG_EXTERNAL_INTERFACES  // for the table
#include "proto/stack.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <thread>

#include "environment.hpp"
#include "fabric/engine/host.hpp"
#include "pattern.hpp"
#include "property.hpp"
#include "transport/registry.hpp"
#include "transport/trace/trace.hpp"

using namespace ulfm;
using namespace std::chrono_literals;

namespace {

/// `name`: of the stack that the settings make.
struct Case {
  std::string transport, protocol, faults, name, control = "auto";
  bool trace = false;

  std::string label() const {
    std::string text = name.substr(name.rfind('/') + 1);
    if (control != "auto") text += "+control:" + control;
    if (trace) text += "+trace";
    return text;
  }
};

const char* const kFaults = "drop=0.05,corrupt=0.02,duplicate=0.05,reorder=0.05,delay=0.02:300us,seed=3";

const Case kCases[] = {
    {"direct", "auto", "", "direct"},
    {"direct", "auto", "", "direct", "tcp"},
    {"direct", "auto", "", "direct", "unix"},
    {"direct", "auto", "", "direct", "auto", true},
    {"direct", "always", "", "direct+protocol"},
    {"direct", "auto", kFaults, "direct+faults+protocol"},
    {"direct", "auto", kFaults, "direct+faults+protocol", "tcp", true},
    {"tcp", "auto", "", "tcp"},
    {"tcp", "always", "", "tcp+protocol"},
    {"tcp", "auto", "drop=0.01,duplicate=0.02,reorder=0.02,seed=3", "tcp+faults+protocol"},
    {"ofi", "auto", "", "ofi"},
    {"ofi", "auto", "", "ofi", "tcp", true},
    {"ofi", "always", "", "ofi+protocol"},
    {"ofi", "auto", "drop=0.01,duplicate=0.02,reorder=0.02,seed=3", "ofi+faults+protocol"},
    {"mux", "auto", "", "mux"},
    {"mux", "auto", "", "mux", "tcp", true},
    {"mux", "always", "", "mux+protocol"},
    {"mux", "auto", kFaults, "mux+faults+protocol"},
};

/// The list, and every model: alone, with the protocol and a trace, and with faults below the protocol.
std::vector<Case> all_cases() {
  std::vector<Case> all(std::begin(kCases), std::end(kCases));
  std::vector<std::string> models{ULFM_TEST_MODELS "/ulfm_example_bus.so"};
  for (const fabric::ModelKind* kind : fabric::kModels) models.emplace_back(kind->name);
  for (const std::string& model : models) {
    all.push_back({model, "auto", "", model});
    all.push_back({model, "always", "", model + "+protocol", "auto", true});
    all.push_back({model, "auto", "drop=0.05,duplicate=0.05,reorder=0.05,seed=3", model + "+faults+protocol"});
  }
  return all;
}

/// The stack that a test runs over now; "" outside of these tests.
std::string& stack_under_test() {
  static std::string label;
  return label;
}

/// Which stack passed which test. The run's last words, when there were such tests.
class ConformanceTable final : public Catch::TestEventListenerBase {
 public:
  using TestEventListenerBase::TestEventListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo& test) override {
    TestEventListenerBase::testCaseStarting(test);
    test_ = test.name;
    stack_under_test().clear();
  }
  // The outermost section of a test ends once for each stack.
  void sectionEnded(const Catch::SectionStats& section) override {
    TestEventListenerBase::sectionEnded(section);
    if (section.sectionInfo.name != test_ || stack_under_test().empty()) return;
    const auto column = std::find(tests_.begin(), tests_.end(), test_) - tests_.begin();
    if (column == static_cast<std::ptrdiff_t>(tests_.size())) tests_.push_back(test_);
    auto row = std::find_if(rows_.begin(), rows_.end(), [](const Row& r) { return r.stack == stack_under_test(); });
    if (row == rows_.end()) row = rows_.insert(rows_.end(), Row{stack_under_test(), {}});
    row->passed[static_cast<std::size_t>(column)] = section.assertions.allOk();
    stack_under_test().clear();
  }
  void testRunEnded(const Catch::TestRunStats& run) override {
    TestEventListenerBase::testRunEnded(run);
    if (rows_.empty()) return;
    std::puts("\nConformance, stack x test:");
    for (std::size_t i = 0; i < tests_.size(); ++i) std::printf("  %zu  %s\n", i + 1, tests_[i].c_str());
    std::printf("\n  %-36s", "stack");
    for (std::size_t i = 0; i < tests_.size(); ++i) std::printf(" %5zu", i + 1);
    for (const Row& row : rows_) {
      std::printf("\n  %-36s", row.stack.c_str());
      for (std::size_t i = 0; i < tests_.size(); ++i) {
        const auto found = row.passed.find(i);
        std::printf(" %5s", found == row.passed.end() ? "-" : found->second ? "ok" : "WRONG");
      }
    }
    std::puts("");
  }

 private:
  struct Row {
    std::string stack;
    std::map<std::size_t, bool> passed;  // by test
  };
  std::string test_;
  std::vector<std::string> tests_;
  std::vector<Row> rows_;
};
CATCH_REGISTER_LISTENER(ConformanceTable)

Config config_for(const Case& c) {
  test::Environment environment;
  Config config = Config::load().value();
  for (const auto& [row, value] : {std::pair<const char*, std::string>{"TRANSPORT", c.transport},
                                   {"PROTOCOL", c.protocol},
                                   {"FAULT", c.faults},
                                   {"CONTROL", c.control}})
    REQUIRE(config.set(row, value, Origin::command_line, "test"));
  return config;
}

constexpr std::uint16_t kHere = 5, kThere = 6;

/// Two ports: of this process, or, on an emulated interconnect, of two on different nodes, so that frames take its
/// links.
struct Ends {
  explicit Ends(const Case& c, InletOptions options = {}) {
    const Config config = config_for(c);
    if (const fabric::ModelKind* kind = fabric::model_of_transport(c.transport); kind != nullptr) set_up(*kind, c);
    stack_under_test() = c.label();
    stack = make(config, c, 0);
    transport = far = stack.transport.get();
    if (host) {
      REQUIRE(setenv("ULFM_FABRIC_RANK", "1", 1) == 0);
      far_stack = make(config, c, 1);
      far = far_stack.transport.get();
    }
    here = transport->open(kHere, options).value();
    there = far->open(kThere, options).value();
  }
  ~Ends() {
    if (!host) return;
    unsetenv("ULFM_FABRIC_RANK");
    unsetenv("ULFM_FABRIC");
  }
  // A trace is around everything, as make_stack has it; without a file, for that is the process's.
  static TransportStack make(const Config& config, const Case& c, int rank) {
    const TransportDescriptor& descriptor = *select_transport(c.transport).value();
    TransportStack made = make_stack(config, descriptor, rank).value();
    if (c.trace) made.transport = std::make_unique<TraceTransport>(std::move(made.transport), descriptor.name);
    return made;
  }
  void set_up(const fabric::ModelKind& kind, const Case& c) {
    host.emplace(std::move(fabric::FabricHost::create({c.transport, kind.default_topology, 2}).value()));
    REQUIRE(host->publish());
    REQUIRE(setenv("ULFM_FABRIC_RANK", "0", 1) == 0);
  }
  std::unique_ptr<Outlet> connect(std::string_view hello = "") {
    return transport->connect(far->card(), kThere, kHere, std::as_bytes(std::span(hello)), counters).value();
  }
  bool push(Outlet& outlet, std::uint32_t seed, std::size_t size, Kind kind = Kind::first) {
    const auto bytes = test::pattern_bytes(seed, size);
    const iovec piece{const_cast<std::byte*>(bytes.data()), size};
    Gather data(std::span(&piece, 1));
    return outlet.push(kind, std::as_bytes(std::span(&seed, 1)), data, size);
  }
  /// The next frame of port `there`, waited for as a program does, which tries again to send what found no
  /// room.
  template <typename Send>
  bool await(Frame& frame, Send send_more) {
    const auto until = std::chrono::steady_clock::now() + 20s;
    Frame other;
    while (!there->next(frame)) {
      if (here->next(other)) FAIL("a frame came to the port that only sends");
      if (std::chrono::steady_clock::now() > until) return false;
      send_more();
    }
    return true;
  }
  bool await(Frame& frame) {
    return await(frame, [] {});
  }
  template <typename Send>
  std::uint32_t await_number(Send send_more) {
    Frame frame;
    REQUIRE(await(frame, send_more));
    std::uint32_t seed = 0;
    std::memcpy(&seed, frame.header, sizeof seed);
    CHECK(test::matches({frame.data, frame.length}, seed));
    there->release(frame);
    return seed;
  }
  std::uint32_t await_number() {
    return await_number([] {});
  }
  /// A connection on which a frame has come.
  std::unique_ptr<Outlet> connect_and_send() {
    auto outlet = connect();
    REQUIRE(push(*outlet, 1, 10));
    CHECK(await_number() == 1);
    return outlet;
  }

  std::optional<fabric::FabricHost> host;  // before the stacks: it holds the interconnect
  TransportStack stack, far_stack;
  Transport *transport = nullptr, *far = nullptr;
  PortCounters counters;
  std::unique_ptr<Inlet> here, there;
};

}  // namespace

TEST_CASE("a stack is what settings ask for", "[stack]") {
  for (const Case& c : kCases) {
    const TransportStack stack = make_stack(config_for(c), *select_transport(c.transport).value(), 0).value();
    CHECK(stack.name == c.name);
    CHECK(stack.reliable);
    CHECK(stack.ordered);
    CHECK(stack.transport->counts().empty() == (stack.name == "direct"));
    CHECK(stack_statistics_text("rank 0", *stack.transport).empty() == (stack.name == "direct"));
  }
}

TEST_CASE("a stack that cannot be is refused in words", "[stack]") {
  const auto* direct = select_transport("direct").value();
  const auto refused = [&](const char* faults) {
    const auto stack = make_stack(config_for({"direct", "auto", faults, ""}), *direct, 0);
    REQUIRE_FALSE(stack);
    CHECK(stack.error().code == Errc::invalid);
    return stack.error().what;
  };
  CHECK(refused("drop=x").find("ULFM_FAULT: faults \"drop=x\": column 6") != std::string::npos);
  CHECK(refused("link 1-2 down at 1s").find("transport direct has no links") != std::string::npos);
}

TEST_CASE("every frame arrives once, in order, intact, whatever its size", "[stack][conformance]") {
  const Case c = GENERATE(from_range(all_cases()));
  INFO(c.label());
  Ends ends(c);
  auto outlet = ends.connect();
  constexpr std::uint32_t kFrames = 3000;
  std::uint32_t sent = 0;
  const auto send_some = [&] {
    while (sent < kFrames) {
      const std::size_t size = std::min<std::size_t>(sent * 2654435761u % 40000, outlet->max_frame(4));
      if (!ends.push(*outlet, sent, size)) return;
      ++sent;
    }
  };
  for (std::uint32_t i = 0; i < kFrames; ++i) {
    send_some();
    REQUIRE(ends.await_number(send_some) == i);
  }
  Frame frame;
  CHECK_FALSE(ends.there->next(frame));
}

TEST_CASE("headers of any length, with and without data", "[stack][conformance]") {
  const Case c = GENERATE(from_range(all_cases()));
  INFO(c.label());
  InletOptions smallest;
  smallest.slot = 1;
  Ends ends(c, smallest);
  auto outlet = ends.connect();
  for (std::uint32_t i = 0; i < 1024; ++i) {
    const std::size_t header = i % 256, size = i < 512 ? 0 : kLeastFrame;
    REQUIRE((size == 0 || outlet->max_frame(header) >= kLeastFrame));
    const auto bytes = test::pattern_bytes(i, header + size);
    const iovec piece{const_cast<std::byte*>(bytes.data()) + header, size};
    Gather data(std::span(&piece, 1));
    const Kind kind = i % 3 == 0 ? Kind::more : Kind::first;
    REQUIRE(outlet->push(kind, std::span(bytes.data(), header), data, size));
    Frame frame;
    REQUIRE(ends.await(frame));
    CHECK(frame.kind == kind);
    REQUIRE(frame.header_length == header);
    REQUIRE(frame.length == size);
    CHECK(std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header), frame.header));
    CHECK(std::equal(bytes.begin() + static_cast<std::ptrdiff_t>(header), bytes.end(), frame.data));
    ends.there->release(frame);
  }
}

TEST_CASE("origins: who it is, fresh once, hello, goodbye, and the index again", "[stack][conformance]") {
  const Case c = GENERATE(from_range(all_cases()));
  INFO(c.label());
  Ends ends(c);
  for (int round = 0; round < 20; ++round) {
    const std::string hello = "hello " + std::string(static_cast<std::size_t>(round * 7), 'x');
    auto outlet = ends.connect(hello);
    for (std::uint32_t i = 0; i < 30; ++i) {
      INFO("connection " << round << ", frame " << i);
      bool sent = ends.push(*outlet, i, 10);  // a grant of room may have been lost
      Frame frame;
      REQUIRE(ends.await(frame, [&] { sent = sent || ends.push(*outlet, i, 10); }));
      CHECK(frame.fresh == (i == 0));
      const OriginInfo info = ends.there->origin(frame.origin);
      CHECK(info.card == control::identity_of(ends.transport->card()));
      CHECK(info.port == kHere);
      CHECK(info.process == ProcessId{.number = getpid()});
      CHECK(std::string(reinterpret_cast<const char*>(info.hello.data()), info.hello.size()) == hello);
      ends.there->release(frame);
    }
    CHECK(outlet->peer_listening());
    CHECK_FALSE(outlet->port_closed());
    bool said = outlet->bye();
    Frame frame;
    REQUIRE(ends.await(frame, [&] { said = said || outlet->bye(); }));
    outlet.reset();
    CHECK(frame.kind == Kind::bye);
    ends.there->release(frame);
    ends.there->drop_origin(frame.origin);
    CHECK(ends.there->origin(frame.origin).process == ProcessId{});
  }
}

TEST_CASE("several connections to a port are several origins, each in order", "[stack][conformance]") {
  const Case c = GENERATE(from_range(all_cases()));
  INFO(c.label());
  Ends ends(c);
  constexpr std::size_t kOutlets = 12;
  std::vector<std::unique_ptr<Outlet>> outlets;
  for (std::size_t i = 0; i < kOutlets; ++i) outlets.push_back(ends.connect());
  std::vector<std::uint32_t> sent(kOutlets, 0);
  std::map<std::uint32_t, std::uint32_t> got;
  for (int round = 0; round < 100; ++round) {
    for (std::size_t i = 0; i < kOutlets; ++i)
      while (!ends.push(*outlets[i], sent[i]++, 100)) {
        --sent[i];
        Frame frame;
        REQUIRE(ends.await(frame));
        std::uint32_t seed = 0;
        std::memcpy(&seed, frame.header, sizeof seed);
        REQUIRE(seed == got[frame.origin]++);
        ends.there->release(frame);
      }
  }
  Frame frame;
  for (std::size_t all = kOutlets * 100; all != 0;) {
    all = kOutlets * 100;
    for (const auto& [origin, n] : got) all -= n;
    if (all == 0) break;
    REQUIRE(ends.await(frame));
    std::uint32_t seed = 0;
    std::memcpy(&seed, frame.header, sizeof seed);
    REQUIRE(seed == got[frame.origin]++);
    ends.there->release(frame);
  }
  CHECK(got.size() == kOutlets);
}

// As waits between two yields do: they take a frame only after a look that has found one.
TEST_CASE("a wait that only looks finds a frame of every connection", "[stack][conformance]") {
  const Case c = GENERATE(from_range(all_cases()));
  INFO(c.label());
  Ends ends(c);
  constexpr std::uint32_t kOutlets = 5, kRounds = 20;
  std::vector<std::unique_ptr<Outlet>> outlets;
  for (std::uint32_t i = 0; i < kOutlets; ++i) outlets.push_back(ends.connect());
  for (std::uint32_t sent = 0; sent < kOutlets * kRounds; ++sent) {
    const auto until = std::chrono::steady_clock::now() + 20s;
    Frame frame, other;
    bool is_sent = false;
    do {
      REQUIRE(std::chrono::steady_clock::now() < until);
      is_sent = is_sent || ends.push(*outlets[sent % kOutlets], sent, 100);
      if (ends.here->next(other)) FAIL("a frame came to the port that only sends");
    } while (!ends.there->look() || !ends.there->next(frame));
    std::uint32_t seed = 0;
    std::memcpy(&seed, frame.header, sizeof seed);
    CHECK(seed == sent);
    ends.there->release(frame);
  }
}

TEST_CASE("held frames stay as they are and hold up nobody", "[stack][conformance]") {
  const Case c = GENERATE(from_range(all_cases()));
  INFO(c.label());
  Ends ends(c);
  auto outlet = ends.connect();
  std::vector<Frame> held;
  std::uint32_t sent = 0, shared = 0;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    Frame frame;
    REQUIRE(ends.await(frame, [&] {
      while (sent < 1000 && ends.push(*outlet, sent, 200)) ++sent;
    }));
    std::uint32_t seed = 0;
    std::memcpy(&seed, frame.header, sizeof seed);
    REQUIRE(seed == i);
    shared += frame.shared_room ? 1 : 0;
    if (i % 10 == 5 && !frame.shared_room) held.push_back(frame);
    else ends.there->release(frame);
  }
  CHECK((held.size() > 10 || shared == 1000));
  for (const Frame& frame : held) {
    std::uint32_t seed = 0;
    std::memcpy(&seed, frame.header, sizeof seed);
    CHECK(test::matches({frame.data, frame.length}, seed));
    ends.there->release(frame);
  }
}

TEST_CASE("what was sent last arrives although the sender closes at once", "[stack][conformance]") {
  const Case c = GENERATE(from_range(all_cases()));
  INFO(c.label());
  for (int round = 0; round < 5; ++round) {
    Ends ends(c);
    auto outlet = ends.connect();
    for (std::uint32_t i = 0; i < 7; ++i) REQUIRE(ends.push(*outlet, i, 50));
    REQUIRE(outlet->bye());
    outlet.reset();
    // The port that sent is closed while the other one reads.
    std::atomic<bool> closed = false;
    std::thread closing([&] {
      ends.here.reset();
      closed = true;
    });
    Frame frame;
    for (std::uint32_t i = 0; i < 8;) {
      if (!ends.there->next(frame)) continue;
      CHECK(frame.kind == (i < 7 ? Kind::first : Kind::bye));
      ends.there->release(frame);
      ++i;
    }
    ends.there->drop_origin(frame.origin);
    while (!closed) (void)ends.there->next(frame);
    closing.join();
  }
}

TEST_CASE("the other end's close is seen by who sends", "[stack][conformance]") {
  const Case c = GENERATE(from_range(all_cases()));
  INFO(c.label());
  Ends ends(c);
  const auto outlet = ends.connect_and_send();
  ends.there.reset();
  // A network tells it when it has told everything else.
  for (const auto until = std::chrono::steady_clock::now() + 20s;
       !outlet->port_closed() && std::chrono::steady_clock::now() < until;) {
    Frame frame;
    CHECK_FALSE(ends.here->next(frame));
  }
  CHECK(outlet->port_closed());
  CHECK_FALSE(outlet->peer_listening());
  CHECK_FALSE(ends.transport->connect(ends.far->card(), kThere, kHere, {}, ends.counters).has_value());
}

TEST_CASE("a port to which somebody sends on and on is closed all the same", "[stack][conformance]") {
  const Case c = GENERATE(from_range(all_cases()));
  INFO(c.label());
  Ends ends(c);
  const auto outlet = ends.connect_and_send();
  std::atomic<bool> closing{false};
  std::uint32_t seed = 1;
  std::jthread sender([&](const std::stop_token& token) {
    Frame frame;
    for (; !token.stop_requested() && !outlet->port_closed(); (void)ends.here->next(frame)) {
      if (ends.push(*outlet, seed + 1, 10)) ++seed;
      if (seed == 100) closing = true;
    }
  });
  Frame frame;
  while (!closing)
    if (ends.there->next(frame)) ends.there->release(frame);
  ends.there.reset();
}

TEST_CASE("ports that have sent each other more than they read are closed at once", "[stack][conformance]") {
  const Case c = GENERATE(from_range(all_cases()));
  INFO(c.label());
  if (c.protocol == "auto" && c.faults.empty()) return;  // a network waits a while for who does not read
  Ends ends(c);
  const auto outlet = ends.connect_and_send();
  auto back = ends.far->connect(ends.transport->card(), kHere, kThere, {}, ends.counters);
  REQUIRE(back);
  for (int turn = 0; turn < 5000; ++turn) {  // a network's own memory may hold more than that
    (void)ends.push(**back, 2, 10);
    (void)ends.push(*outlet, 2, 10);
  }
  (void)(*back)->bye();
  back->reset();
  std::atomic<bool> closed{false};
  std::jthread closing([&] {
    ends.there.reset();
    closed = true;
  });
  while (!closed) (void)ends.push(*outlet, 3, 10);  // the other end goes on, and reads nothing
}
