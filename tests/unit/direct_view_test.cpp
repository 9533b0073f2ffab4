// A sender maps the beginning of a port, and the rest when it needs it: many senders, long rings, lanes.
#include <catch2/catch.hpp>

#include <set>

#include "environment.hpp"
#include "pattern.hpp"
#include "transport/direct/direct.hpp"

using namespace ulfm;

namespace {

constexpr std::uint16_t kPort = 9;
using Settings = std::initializer_list<std::pair<const char*, const char*>>;

struct Port {
  explicit Port(Settings settings) {
    test::Environment environment;
    Config config = Config::load().value();
    for (const auto& [name, value] : settings) REQUIRE(config.set(name, value, Origin::command_line, "test"));
    transport = direct_transport.make(config).value();
    inlet = transport->open(kPort, {}).value();
  }
  void add_sender() {
    const auto from = static_cast<std::uint16_t>(10 + outlets.size());
    outlets.push_back(transport->connect(transport->card(), kPort, from, {}, counters).value());
  }
  bool push(std::size_t sender, std::size_t size) {
    auto bytes = test::pattern_bytes(static_cast<std::uint32_t>(sender), size);
    const iovec piece{bytes.data(), size};
    Gather data(std::span(&piece, 1));
    return outlets[sender]->push(Kind::first, {}, data, size);
  }
  /// The next frame is that sender's, and whole.
  void take(std::size_t sender, std::size_t size) {
    Frame frame;
    for (int look = 0; look < 1000 && !inlet->next(frame); ++look) continue;
    REQUIRE(frame.length == size);
    CHECK(test::matches({frame.data, frame.length}, static_cast<std::uint32_t>(sender)));
    CHECK(inlet->origin(frame.origin).port == 10 + sender);
    origins.insert(frame.origin);
    inlet->release(frame);
  }

  PortCounters counters;
  std::unique_ptr<Transport> transport;
  std::unique_ptr<Inlet> inlet;
  std::vector<std::unique_ptr<Outlet>> outlets;
  std::set<std::uint32_t> origins;
};

}  // namespace

TEST_CASE("more senders than a sender's first view of a port has records for", "[direct]") {
  constexpr std::size_t senders = 300;
  Port port({{"LANES", "40"}, {"LANE_AFTER", "1"}, {"LANE_BYTES", "64K"}});
  for (std::size_t i = 0; i < senders; ++i) port.add_sender();
  for (const std::size_t size : {8, 40, 300, 1500})
    for (std::size_t i = 0; i < senders; ++i) {
      REQUIRE(port.push(i, size));
      port.take(i, size);
    }
  CHECK(port.origins.size() == senders);
  CHECK(port.counters.lanes_opened.get() == 40);
}

TEST_CASE("ports whose rings are shorter and longer than a sender's first view", "[direct]") {
  for (const Settings& settings :
       {Settings{{"SLOT", "384"}, {"DEPTH", "2"}, {"LANES", "0"}, {"PEERS", "2"}},
        Settings{{"SLOT", "64K"}, {"DEPTH", "64"}, {"LANES", "4096"}, {"LANE_BYTES", "256K"}}}) {
    Port port(settings);
    port.add_sender();
    port.add_sender();
    for (int round = 0; round < 200; ++round)
      for (std::size_t i = 0; i < 2; ++i) {
        const std::size_t size = 1 + static_cast<std::size_t>(round) % 300;
        REQUIRE(port.push(i, size));
        port.take(i, size);
      }
  }
}

TEST_CASE("a long stream in a lane that grows", "[direct]") {
  Port port({{"LANE_AFTER", "0"}});
  port.add_sender();
  for (int round = 0; round < 20; ++round) {
    std::size_t sent = 0;
    while (sent < 100 && port.push(0, 20000)) ++sent;
    CHECK(sent > 1);
    for (; sent > 0; --sent) port.take(0, 20000);
  }
}
