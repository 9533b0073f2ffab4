// What a transport, a model or a wake-up source need not write: the defaults of the contract, with the least that one
// has to write.
#include "transport/contract.hpp"

#include <ulfm/model.hpp>

#include <catch2/catch.hpp>

#include "base/doorbell.hpp"
#include "fabric/abilities.hpp"

using namespace ulfm;
using namespace std::chrono_literals;

namespace {

class LeastSource final : public WakeSource {
 public:
  void arm() noexcept override {}
  void cancel() noexcept override {}
  using WakeSource::sleep;
  bool sleep(std::chrono::nanoseconds limit) noexcept override { return longest = limit, false; }
  void watch() noexcept override {}
  bool watch_sleep(std::chrono::nanoseconds) noexcept override { return false; }
  void end_watch() noexcept override {}
  void ring() noexcept override {}
  std::chrono::nanoseconds longest{};
};

class LeastInlet final : public Inlet {
 public:
  bool next(Frame& frame) override { return frame.origin = 3, true; }
  bool spin(std::uint32_t) override { return false; }
  bool look() override { return false; }
  void release(const Frame&) override {}
  OriginInfo origin(std::uint32_t) const override { return {}; }
  void drop_origin(std::uint32_t) override {}
  bool has_frame() override { return false; }
  WakeSource& wake_source() override { return source_; }
  std::int64_t find_dead() override { return -1; }
  std::int64_t take_broken() override { return -1; }
  std::size_t max_frame() const override { return kLeastFrame; }

 private:
  LeastSource source_;
};

class LeastOutlet final : public Outlet {
 public:
  bool push(Kind, std::span<const std::byte>, Gather&, std::size_t) override { return false; }
  std::size_t max_frame(std::size_t) const override { return kLeastFrame; }
  bool peer_listening() const override { return true; }
  bool port_closed() const override { return false; }
  ProcessId peer() const override { return {}; }
  bool bye() override { return true; }
};

class LeastTransport final : public Transport {
 public:
  const std::string& card() const override { return card_; }
  Result<std::unique_ptr<Inlet>> open(std::uint16_t, const InletOptions&) override {
    return std::make_unique<LeastInlet>();
  }
  Result<std::unique_ptr<Outlet>> connect(std::string_view, std::uint16_t, std::uint16_t, std::span<const std::byte>,
                                          PortCounters&) override {
    return std::make_unique<LeastOutlet>();
  }

 private:
  std::string card_ = "least:1";
};

class LeastMulticast final : public Multicast {
 public:
  bool push(Kind, const Headers&, Gather&, std::size_t, std::vector<std::uint32_t>&) override { return false; }
  std::size_t max_frame(std::size_t) const override { return kLeastFrame; }
};

class LeastModel final : public model::Interconnect {
 public:
  std::uint64_t now() const override { return 1; }
  bool send(const model::Message&) override { return false; }
  bool run(std::uint64_t, model::Arrival&) override { return false; }
};

class LeastCycles final : public fabric::ModelCycles {
 public:
  bool run_until(std::uint64_t, std::uint64_t, fabric::Ending&) override { return false; }
};

}  // namespace

TEST_CASE("a wake-up source that sleeps on nothing else takes short naps beside another bell", "[contract]") {
  LeastSource source;
  RoomBell room;
  Doorbell bell;
  CHECK_FALSE(source.sleep(1h, room.arm(), {}));
  CHECK(source.longest == kShortNap);
  CHECK_FALSE(source.sleep(1ns, room.arm(), {}));
  CHECK(source.longest == 1ns);
  bell.arm();
  CHECK_FALSE(source.sleep(1h, bell.word(), {}));
  CHECK(source.longest == kShortNap);
  bell.ring();
  CHECK(source.sleep(1h, bell.word(), {}));
  CHECK_FALSE(source.sleep(1h, WaitWord{}, {}));
  CHECK(source.longest == 1h);
  source.expect_many_sleeps();
  CHECK(source.descriptor() == -1);
}

TEST_CASE("an inlet without deadlines, virtual time or a protocol writes nothing about them", "[contract]") {
  LeastInlet inlet;
  Frame frame{};
  CHECK(inlet.next_awaited(frame));
  CHECK(inlet.next_at_hand(frame));
  CHECK(frame.origin == 3);
  CHECK(inlet.why_broken().empty());
  CHECK(inlet.next_deadline() == kForever);
  Error error;
  CHECK_FALSE(inlet.take_given_up(error));
  PortCounters counters;
  inlet.use_counters(counters);
}

TEST_CASE("an outlet promises by itself neither room, nor shared memory, nor checks", "[contract]") {
  LeastOutlet outlet;
  CHECK_FALSE(outlet.has_room());
  CHECK(!outlet.await_room());
  CHECK_FALSE(outlet.cut_off());
  CHECK_FALSE(outlet.shares_memory());
  CHECK_FALSE(outlet.expect_noise());
  outlet.turn_bits({});
}

TEST_CASE("a transport without multicast, a control channel or cards of others still is one", "[contract]") {
  LeastTransport transport;
  PortCounters counters;
  auto outlet = transport.connect("least:2", 1, 1, {}, counters).value();
  Outlet* const one[] = {outlet.get()};
  CHECK(transport.group(one) == nullptr);
  CHECK(transport.multicast_frame(3, 8) == 0);
  CHECK(transport.multicast_cost().places == 0);
  CHECK(transport.reachable("least:2"));
  transport.use_card("least:1;other:2");
  transport.introduce("job", 0, "least:1");
  CHECK(transport.card_of("job", 0).empty());
  CHECK(transport.control() == nullptr);
  CHECK_FALSE(transport.descriptor(1));
  CHECK(transport.counts().empty());
  CHECK(transport.shared_statistics().empty());
  LeastMulticast().look_for_dead();
}

TEST_CASE("a model need not count, and need have no closed form", "[contract]") {
  const LeastModel model;
  CHECK(model.counters().empty());
  CHECK(model.alone(0, 1, 8) == 0);
  LeastCycles cycles;
  CHECK(cycles.links(1000).empty());
  CHECK(cycles.alone(0, 1, 8) == 0);
}
