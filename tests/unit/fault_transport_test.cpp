// The interceptor alone, over a network of the test's own.
#include "transport/fault/fault.hpp"

#include "fake_network.hpp"
#include "pattern.hpp"
#include "property.hpp"

using namespace ulfm;
using namespace std::chrono_literals;

namespace {

struct Bench {
  explicit Bench(const std::string& expression, int rank = 0, std::size_t room = 100000)
      : clock(0ns),
        faults(std::make_unique<test::FakeTransport>(network, 1), parse_fault_plan(expression).value(), rank, clock) {
    network->room = room;
    inlet = faults.open(1, InletOptions{}).value();
    outlet = faults.connect("fake:1", 1, 1, {}, counters).value();
  }
  bool send(std::uint32_t seed, std::size_t size = 64) {
    const auto bytes = test::pattern_bytes(seed, size);
    const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
    Gather data(std::span(&piece, 1));
    const bool sent = outlet->push(Kind::first, std::as_bytes(std::span(&seed, 1)), data, size);
    CHECK(test::matches(bytes, seed));  // damage is done to a copy
    return sent;
  }
  /// Numbers in the order they arrive, until nothing more comes; -1 for one that is not as it was sent.
  std::vector<std::int64_t> receive() {
    std::vector<std::int64_t> got;
    Frame frame;
    while (inlet->next(frame) || inlet->next(frame)) {  // the first look may have moved what was held
      std::uint32_t seed = 0;
      REQUIRE(frame.header_length == sizeof seed);
      std::memcpy(&seed, frame.header, sizeof seed);
      got.push_back(test::matches({frame.data, frame.length}, seed) && seed < 1000000 ? std::int64_t{seed} : -1);
      inlet->release(frame);
    }
    return got;
  }
  std::vector<std::int64_t> run(std::uint32_t frames) {
    for (std::uint32_t i = 0; i < frames; ++i) REQUIRE(send(i));
    clock.advance(1s);
    return receive();
  }

  test::FakeClock clock;
  std::shared_ptr<test::FakeNetwork> network = std::make_shared<test::FakeNetwork>();
  FaultTransport faults;
  PortCounters counters;
  std::unique_ptr<Inlet> inlet;
  std::unique_ptr<Outlet> outlet;
};

constexpr std::uint32_t kFrames = 20000;

bool near(double value, double expected) { return value > expected * 0.8 && value < expected * 1.2; }

std::vector<std::int64_t> counting(std::int64_t n) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < n; ++i) all.push_back(i);
  return all;
}

}  // namespace

TEST_CASE("a plan of nothing changes nothing", "[fault]") {
  Bench bench("");
  CHECK(bench.run(1000) == counting(1000));
}

TEST_CASE("frames are dropped at the rate asked for", "[fault]") {
  Bench bench("drop=0.05");
  const auto got = bench.run(kFrames);
  CHECK(near(static_cast<double>(kFrames - got.size()), 0.05 * kFrames));
  CHECK(std::is_sorted(got.begin(), got.end()));
  CHECK(got.size() + bench.faults.counters().dropped == kFrames);
}

TEST_CASE("frames are damaged at the rate asked for, the sender's bytes never", "[fault]") {
  Bench bench("corrupt=0.05");
  const auto got = bench.run(kFrames);
  CHECK(got.size() == kFrames);
  CHECK(near(static_cast<double>(std::count(got.begin(), got.end(), -1)), 0.05 * kFrames));
  CHECK(near(static_cast<double>(bench.faults.counters().corrupted), 0.05 * kFrames));
}

TEST_CASE("1 to 4 bits are turned, and an empty frame has none", "[fault]") {
  Bench bench("corrupt=1");
  std::map<int, int> seen;
  for (std::uint32_t i = 0; i < 400; ++i) {
    REQUIRE(bench.send(i, 30));
    Frame frame;
    REQUIRE(bench.inlet->next(frame));
    int turned = 0;
    const auto count = [&](const std::byte* bytes, const std::vector<std::byte>& sent) {
      for (std::size_t k = 0; k < sent.size(); ++k) turned += std::popcount(static_cast<unsigned>(bytes[k] ^ sent[k]));
    };
    std::vector<std::byte> header(sizeof i);
    std::memcpy(header.data(), &i, sizeof i);
    count(frame.header, header);
    count(frame.data, test::pattern_bytes(i, 30));
    ++seen[turned];
    bench.inlet->release(frame);
  }
  for (int bits = 1; bits <= 4; ++bits) CHECK(seen[bits] > 50);
  CHECK(seen.size() == 4);
  Gather none;
  CHECK(bench.outlet->push(Kind::first, {}, none, 0));
  CHECK(bench.faults.counters().corrupted == 400);
}

TEST_CASE("frames are doubled at the rate asked for", "[fault]") {
  Bench bench("duplicate=0.05");
  auto got = bench.run(kFrames);
  CHECK(near(static_cast<double>(got.size() - kFrames), 0.05 * kFrames));
  got.erase(std::unique(got.begin(), got.end()), got.end());
  CHECK(got == counting(kFrames));
}

TEST_CASE("a reordered frame is overtaken by 1 to 8 others and not lost", "[fault]") {
  Bench bench("reorder=0.02");
  auto got = bench.run(kFrames);
  REQUIRE(got.size() == kFrames);
  std::size_t moved = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::int64_t late = static_cast<std::int64_t>(i) - got[i];
    CHECK(late <= 16);  // a few held at one time push each other on
    moved += late > 0;
  }
  CHECK(near(static_cast<double>(moved), 0.02 * kFrames));
  std::sort(got.begin(), got.end());
  CHECK(got == counting(kFrames));
}

TEST_CASE("a held frame leaves by itself when its time has come", "[fault]") {
  SECTION("reordered, with nothing behind it") {
    Bench bench("reorder=1");
    REQUIRE(bench.send(7));
    CHECK(bench.receive().empty());
    CHECK(bench.inlet->next_deadline() == FaultTransport::kReorderLimit);
    bench.clock.advance(FaultTransport::kReorderLimit);
    CHECK(bench.inlet->next_deadline() == 0ns);
    CHECK(bench.receive() == std::vector<std::int64_t>{7});
    CHECK(bench.inlet->next_deadline() == kForever);
  }
  SECTION("delayed") {
    Bench bench("delay=1:200us");
    REQUIRE(bench.send(7));
    bench.clock.advance(199us);
    CHECK(bench.receive().empty());
    bench.clock.advance(1us);
    CHECK(bench.receive() == std::vector<std::int64_t>{7});
  }
  SECTION("at the goodbye, before it") {
    Bench bench("delay=1:1s");
    REQUIRE(bench.send(7));
    REQUIRE(bench.outlet->bye());
    Frame frame;
    REQUIRE(bench.inlet->next(frame));
    CHECK(frame.kind == Kind::first);
    bench.inlet->release(frame);
    REQUIRE(bench.inlet->next(frame));
    CHECK(frame.kind == Kind::bye);
    bench.inlet->release(frame);
  }
}

TEST_CASE("the same seed, rank and connection bring the same faults; others bring others", "[fault]") {
  const std::string plan = "drop=0.1,duplicate=0.1,reorder=0.1,corrupt=0.1,seed=";
  const auto first = Bench(plan + "5").run(500);
  CHECK(first == Bench(plan + "5").run(500));
  CHECK(first != Bench(plan + "6").run(500));
  CHECK(first != Bench(plan + "5", 1).run(500));
}

TEST_CASE("one rate does not change what another does", "[fault]") {
  Bench alone("drop=0.1"), both("drop=0.1,delay=0.5:1us");
  const auto a = alone.run(1000);
  auto b = both.run(1000);
  std::sort(b.begin(), b.end());
  CHECK(a == b);
}

TEST_CASE("a frame without room keeps its fate", "[fault]") {
  Bench free("drop=0.3,corrupt=0.3,seed=9"), tight("drop=0.3,corrupt=0.3,seed=9", 0, 2);
  const auto expected = free.run(300);
  std::vector<std::int64_t> got;
  for (std::uint32_t i = 0; i < 300; ++i)
    while (!tight.send(i))
      for (const std::int64_t n : tight.receive()) got.push_back(n);
  for (const std::int64_t n : tight.receive()) got.push_back(n);
  CHECK(got == expected);
  CHECK(tight.faults.counters().dropped == free.faults.counters().dropped);
}

TEST_CASE("a frame cut for more room than those held back have left waits", "[fault]") {
  Bench bench("delay=0.5:1us", 0, 2);
  bench.network->when_full = 200;
  std::size_t sent = 0, got = 0, refused = 0;
  for (std::uint32_t i = 0; i < 2000; ++i) {
    bench.clock.advance(1us);
    const std::size_t most = bench.outlet->max_frame(sizeof i);
    if (bench.send(i, most)) {  // the network throws when it is given more than it takes
      ++sent;
      continue;
    }
    if (bench.outlet->max_frame(sizeof i) < most) ++refused;
    got += bench.receive().size();
    bench.network->max_frame = 1000;
  }
  while (bench.inlet->next_deadline() != kForever) {  // what finds no room is tried again
    bench.clock.advance(1s);
    got += bench.receive().size();
  }
  CHECK(refused != 0);
  CHECK(got + bench.faults.counters().dropped == sent);  // held ones that fitted once are lost
}

TEST_CASE("the interceptor's counters balance whatever happens", "[fault]") {
  test::property("balance", [](test::Draw& draw) {
    const auto rate = [&](const char* name) {
      return std::string(name) + "=0." + std::to_string(draw.below(10)) + ",";
    };
    Bench bench(rate("drop") + rate("corrupt") + rate("duplicate") + rate("reorder") + rate("delay"), 0,
                1 + draw.below(50));
    std::uint32_t sent = 0;
    std::size_t got = 0;
    while (draw.more()) {
      if (draw.one_in(3)) got += bench.receive().size();
      else sent += bench.send(sent, draw.below(200));
      bench.clock.advance(std::chrono::microseconds(draw.below(300)));
    }
    for (std::size_t more = 1; more != 0 || bench.inlet->next_deadline() != kForever; got += more) {
      bench.clock.advance(1s);
      more = bench.receive().size();
    }
    const FaultCounters& c = bench.faults.counters();
    test::must(c.frames == sent, "every frame taken is counted");
    test::must(c.forwarded == got, "what was forwarded has arrived");
    test::must(c.frames + c.duplicated == c.dropped + c.forwarded, "nothing is made, nothing is lost in silence");
  });
}
