// What decorators do not change gets through them: every call of the contract, those with a default in it too.
#include "transport/decorator.hpp"

#include <catch2/catch.hpp>

#include "base/doorbell_source.hpp"
#include "proto/reliable/reliable.hpp"
#include "transport/control/control.hpp"
#include "transport/fault/fault.hpp"
#include "transport/trace/trace.hpp"

using namespace ulfm;
using namespace std::chrono_literals;

namespace {

/// What was called below a decorator.
using Calls = std::vector<std::string>;

class SpyInlet final : public Inlet {
 public:
  explicit SpyInlet(Calls& calls) : calls_(calls) {}
  ~SpyInlet() override { calls_.push_back("~"); }

  bool next(Frame& frame) override { return frame.origin = 7, note("next"); }
  bool spin(std::uint32_t turns) override { return note("spin " + std::to_string(turns)); }
  bool look() override { return note("look"); }
  void release(const Frame& frame) override { note("release " + std::to_string(frame.origin)); }
  OriginInfo origin(std::uint32_t index) const override {
    note("origin");
    return {"card", 3, {.number = static_cast<std::int32_t>(index)}, {}};
  }
  void drop_origin(std::uint32_t index) override { note("drop_origin " + std::to_string(index)); }
  bool has_frame() override { return note("has_frame"); }
  WakeSource& wake_source() override { return source_; }
  std::int64_t find_dead() override { return note("dead") + 10; }
  std::int64_t take_broken() override { return note("broken") + 20; }
  std::string why_broken() override { return "sentence"; }
  std::chrono::nanoseconds next_deadline() override { return 30ns; }
  bool take_given_up(Error& error) override { return error.what = "gone", note("given up"); }
  std::size_t max_frame() const override { return 4096; }
  void use_counters(PortCounters& counters) override { counters.lanes_granted.add(40); }

 private:
  bool note(std::string call) const { return calls_.push_back(std::move(call)), true; }
  Calls& calls_;
  Doorbell doorbell_;
  DoorbellSource source_{doorbell_};
};

class SpyOutlet final : public Outlet {
 public:
  explicit SpyOutlet(Calls& calls) : calls_(calls) {}
  ~SpyOutlet() override { calls_.push_back("~"); }

  bool push(Kind, std::span<const std::byte> header, Gather&, std::size_t length) override {
    return note("push " + std::to_string(header.size()) + " " + std::to_string(length));
  }
  bool has_room() const override { return note("room"); }
  WaitWord await_room() override { return room_.arm(); }
  std::size_t max_frame(std::size_t header) const override { return 1000 - header; }
  std::size_t eager_limit() const override { return 5000; }
  bool peer_listening() const override { return note("listening"); }
  bool port_closed() const override { return note("closed"); }
  bool cut_off() const override { return note("cut off"); }
  ProcessId peer() const override { return {.number = 4711}; }
  bool bye() override { return note("bye"); }
  bool expect_noise() override { return note("noise"); }
  void turn_bits(std::span<const std::uint64_t> bits) override { note("turn " + std::to_string(bits.size())); }

 private:
  bool note(std::string call) const { return calls_.push_back(std::move(call)), true; }
  Calls& calls_;
  RoomBell room_;
};

/// Sends to the first member at once, and leaves the others to their own outlets.
class SpyMulticast final : public Multicast {
 public:
  SpyMulticast(Calls& calls, std::size_t members) : calls_(calls), members_(members) {}

  bool push(Kind, const Headers& headers, Gather&, std::size_t length, std::vector<std::uint32_t>& who) override {
    calls_.push_back("multicast " + std::to_string(headers.length) + " " + std::to_string(length) + " of " +
                     std::to_string(members_));
    if (who.empty()) return false;
    who.erase(who.begin());
    return true;
  }
  std::size_t max_frame(std::size_t header) const override { return 500 - header; }
  void look_for_dead() override { calls_.push_back("look_for_dead"); }

 private:
  Calls& calls_;
  std::size_t members_;
};

class SpyTransport final : public Transport {
 public:
  explicit SpyTransport(Calls& calls) : calls_(calls) {}
  /// A transport that uses its channel to the last.
  ~SpyTransport() override {
    const char* call = "~";
    if (used_ != nullptr) {
      const auto ok = used_->set_up("card:other", 1, 1);
      call = !ok && ok.error().code == Errc::closed ? "~ channel closed" : "~ channel open";
    }
    calls_.push_back(call);
  }

  const std::string& card() const override { return card_; }
  Result<std::unique_ptr<Inlet>> open(std::uint16_t number, const InletOptions&) override {
    calls_.push_back("open " + std::to_string(number));
    return std::make_unique<SpyInlet>(calls_);
  }
  Result<std::unique_ptr<Outlet>> connect(std::string_view card, std::uint16_t to, std::uint16_t from,
                                          std::span<const std::byte>, PortCounters&) override {
    calls_.push_back("connect " + std::string(card) + " " + std::to_string(to) + " " + std::to_string(from));
    return std::make_unique<SpyOutlet>(calls_);
  }
  void introduce(std::string_view job_id, std::uint32_t rank, std::string_view card) override {
    calls_.push_back("introduce " + std::string(job_id) + " " + std::to_string(rank) + " " + std::string(card));
  }
  std::string card_of(std::string_view job_id, std::uint32_t rank) const override {
    return std::string(job_id) + std::to_string(rank);
  }
  std::unique_ptr<Multicast> group(std::span<Outlet* const> outlets) override {
    for (Outlet* outlet : outlets) calls_.push_back(dynamic_cast<SpyOutlet*>(outlet) != nullptr ? "own" : "foreign");
    return std::make_unique<SpyMulticast>(calls_, outlets.size());
  }
  control::Control* control() override { return used_; }
  void use_control(control::Control& control) override { used_ = &control; }
  control::Fd descriptor(std::uint32_t what) override {
    calls_.push_back("descriptor " + std::to_string(what));
    return {};
  }
  std::vector<NamedCount> counts() const override { return {{"spied", 1}}; }
  std::string shared_statistics() override { return "ulfm: stats of all"; }

 private:
  Calls& calls_;
  std::string card_ = "card:spy";
  control::Control* used_ = nullptr;
};

std::unique_ptr<control::Control> start_control() {
  return control::Control::start(control::ControlSettings{}, "card:spy").value();
}

/// The calls that no decorator changes.
void check_unchanged(Transport& decorator, Calls& calls) {
  CHECK(control::identity_of(decorator.card()) == "card:spy");
  decorator.introduce("job", 2, "card:spy");
  CHECK(calls == Calls{"introduce job 2 card:spy"});
  CHECK(decorator.card_of("job", 5) == "job5");
  CHECK(decorator.shared_statistics() == "ulfm: stats of all");
  REQUIRE_FALSE(decorator.counts().empty());
  CHECK(decorator.counts().front().name == std::string("spied"));
  calls.clear();
  CHECK_FALSE(decorator.descriptor(9));
  CHECK(calls == Calls{"descriptor 9"});
  calls.clear();
}

}  // namespace

TEST_CASE("an inlet's calls go on to the one below", "[decorator]") {
  Calls calls;
  {
    auto spy = std::make_unique<SpyInlet>(calls);
    const SpyInlet& below = *spy;
    ForwardingInlet inlet(std::move(spy));
    Frame frame;
    CHECK(inlet.next(frame));
    CHECK(inlet.spin(5));
    CHECK(inlet.look());
    inlet.release(frame);
    CHECK(inlet.origin(9).process.number == 9);
    inlet.drop_origin(4);
    CHECK(inlet.has_frame());
    CHECK(inlet.find_dead() == 11);
    CHECK(inlet.take_broken() == 21);
    Error error{};
    CHECK(inlet.take_given_up(error));
    CHECK(error.what == "gone");
    CHECK(inlet.why_broken() == "sentence");
    CHECK(inlet.next_deadline() == 30ns);
    CHECK(inlet.max_frame() == below.max_frame());
    CHECK(&inlet.wake_source() == &const_cast<SpyInlet&>(below).wake_source());
    PortCounters counters;
    inlet.use_counters(counters);
    CHECK(counters.lanes_granted.get() == 40);
  }
  CHECK(calls == Calls{"next", "spin 5", "look", "release 7", "origin", "drop_origin 4", "has_frame", "dead", "broken",
                       "given up", "~"});
}

TEST_CASE("an outlet's calls go on to the one below", "[decorator]") {
  Calls calls;
  {
    ForwardingOutlet outlet(std::make_unique<SpyOutlet>(calls));
    Gather none;
    const std::byte header[3] = {};
    CHECK(outlet.push(Kind::first, header, none, 8));
    CHECK(outlet.has_room());
    CHECK(outlet.await_room());
    CHECK(outlet.max_frame(100) == 900);
    CHECK(outlet.eager_limit() == 5000);
    CHECK(outlet.peer_listening());
    CHECK(outlet.port_closed());
    CHECK(outlet.cut_off());
    CHECK(outlet.peer() == ProcessId{.number = 4711});
    CHECK(outlet.bye());
    CHECK(outlet.expect_noise());
    const std::uint64_t bits[2] = {};
    outlet.turn_bits(bits);
  }
  CHECK(calls == Calls{"push 3 8", "room", "listening", "closed", "cut off", "bye", "noise", "turn 2", "~"});
}

TEST_CASE("a transport's calls go on to the one below", "[decorator]") {
  Calls calls;
  const auto channel = start_control();
  {
    ForwardingTransport transport(std::make_unique<SpyTransport>(calls));
    check_unchanged(transport, calls);
    PortCounters counters;
    CHECK(transport.open(3, InletOptions{}).has_value());
    CHECK(transport.connect("card:x", 1, 2, {}, counters).has_value());
    CHECK(transport.control() == nullptr);
    transport.use_control(*channel);
    CHECK(transport.control() == channel.get());
    CHECK(calls == Calls{"open 3", "~", "connect card:x 1 2", "~"});
    calls.clear();
  }
  CHECK(calls == Calls{"~ channel open"});
}

TEST_CASE("every decorator hands on what it does not change", "[decorator]") {
  Calls calls;
  const auto spy = [&] { return std::make_unique<SpyTransport>(calls); };
  {
    FaultTransport faults(spy(), FaultPlan{}, 0);
    check_unchanged(faults, calls);
  }
  CHECK(calls == Calls{"~"});
  calls.clear();
  {
    TraceTransport traced(spy(), "spy");
    check_unchanged(traced, calls);
  }
  CHECK(calls == Calls{"~"});
  calls.clear();
  {
    reliable::ReliableTransport protocol(spy(), reliable::ReliableSettings{});
    check_unchanged(protocol, calls);
  }
  CHECK(calls == Calls{"~"});
}

TEST_CASE("a traced group sends as the one below does, over the outlets below", "[decorator]") {
  Calls calls;
  TraceTransport traced(std::make_unique<SpyTransport>(calls), "spy");
  PortCounters counters;
  auto first = traced.connect("card:x", 1, 2, {}, counters).value();
  auto second = traced.connect("card:y", 1, 2, {}, counters).value();
  Outlet* const outlets[] = {first.get(), second.get()};
  calls.clear();
  const auto group = traced.group(outlets);
  REQUIRE(group);
  CHECK(calls == Calls{"own", "own"});
  calls.clear();
  CHECK(group->max_frame(20) == 480);
  group->look_for_dead();
  std::vector<std::uint32_t> who{0, 1};
  const std::byte header[4]{};
  Gather nothing{std::span<const iovec>()};
  CHECK(group->push(Kind::first, {header, 4, 0}, nothing, 0, who));
  CHECK(who == std::vector<std::uint32_t>{1});
  who.clear();
  CHECK_FALSE(group->push(Kind::first, {header, 4, 0}, nothing, 0, who));
  CHECK(calls == Calls{"look_for_dead", "multicast 4 0 of 2", "multicast 4 0 of 2"});
}

TEST_CASE("a transport goes after its channel is closed and before the channel does", "[decorator]") {
  Calls calls;
  {
    auto channel = start_control();
    auto spy = std::make_unique<SpyTransport>(calls);
    spy->use_control(*channel);
    control::Control* const own = channel.get();
    ControlTransport stack(std::move(channel), std::move(spy));
    CHECK(stack.control() == own);
    CHECK(stack.card() == own->card());
    check_unchanged(stack, calls);
  }
  CHECK(calls == Calls{"~ channel closed"});
}
