// Links with a latency and a rate of their own: what a file may say, closed forms without load, and half the rate.
#include "fabric/models.hpp"
#include "network.hpp"
#include "xswitch_pair.hpp"

using namespace test;
using namespace test::xswitch;

namespace {

/// Nodes at both ends of a chain of three switches, and one in the middle.
constexpr char kChain[] =
    "switches = 3\nlinks = [\"s0.B - s1.A\", \"s1.B - s2.A\"]\nnodes = [\"s0.C\", \"s2.C\", \"s1.C\"]\n";

ulfm::Result<Topology> chain_with(const std::string& more) { return read_topology_text(kChain + more, "chain.toml"); }

std::string refusal(const std::string& more) {
  const auto read = chain_with(more);
  return read ? "" : read.error().what;
}

/// Cycles of frames of so many bytes from n0 to n1, one behind the other.
std::uint64_t cycles(const Topology& t, std::uint32_t frames, std::uint32_t bytes, bool live) {
  const Route way = compute_routes(t).value().between(0, 1);
  const auto subject = sim::make_subject("xswitch", t).value();
  const auto network = subject->make(frames, live ? sim::ModelForm::production : sim::ModelForm::reference).value();
  for (FrameId f = 0; f < frames; ++f) REQUIRE(network->inject(f, 0, 1, bytes, way));
  std::vector<Ending> endings;
  for (std::uint64_t until = 1000; endings.size() < frames; until += 1000) network->run(until, endings);
  CHECK(network->imbalance() == "");
  if (frames == 1) CHECK(endings.back().cycle == subject->zero_load(0, 1, bytes, way, 1));
  return endings.back().cycle;
}

}  // namespace

TEST_CASE("a file gives single links a latency and a rate", "[topology][rate]") {
  const Topology t = chain_with("latency = [\"s1.A: 4\"]\nrate = [\"s0.B: 3\", \"s2.C: 2\"]\n").value();
  for (const SwitchPort end : {SwitchPort{0, 1}, SwitchPort{1, 0}}) {
    CHECK(t.unit_cycles(end) == 3);
    CHECK(t.link_cycles(end, 9) == 4 + 3 - 1);
  }
  CHECK(t.unit_cycles({2, 2}) == 2);
  CHECK(t.link_cycles({2, 2}, 9) == 9 + 2 - 1);
  CHECK(t.unit_cycles({1, 1}) == 1);
  CHECK(t.link_cycles({1, 1}, 9) == 9);
  CHECK(t.most_unit_cycles() == 3);
  CHECK(t.most_link_cycles(1) == 6);
  CHECK(t.most_link_cycles(9) == 10);
}

TEST_CASE("a rate that cannot be is refused with its place", "[topology][rate]") {
  CHECK_THAT(refusal("rate = [\"s0.B: 0\"]\n"), Catch::Contains("chain.toml:4:9: rate") && Catch::Contains("1 to 32"));
  CHECK_THAT(refusal("rate = [\"s0.B: 33\"]\n"), Catch::Contains("1 to 32"));
  CHECK_THAT(refusal("rate = [\"s0.B 2\"]\n"), Catch::Contains("needs a port with a link"));
  CHECK_THAT(refusal("rate = [\"s0.E: 2\"]\n"), Catch::Contains("no link is at port s0.E"));
  CHECK_THAT(refusal("rate = [\"s9.B: 2\"]\n"), Catch::Contains("s9"));
  CHECK_THAT(refusal("rate = [\"s0.B: 2\", \"s1.A: 2\"]\n"), Catch::Contains("has one already"));
  CHECK_THAT(refusal("rate = 2\n"), Catch::Contains("array of strings"));
  CHECK_THAT(refusal("rates = [\"s0.B: 2\"]\n"), Catch::Contains("did you mean rate?"));
  const Topology slow = chain_with("latency = [\"s0.B: 64\"]\nrate = [\"s0.B: 2\"]\n").value();
  CHECK_THAT(sim::make_subject("xswitch", slow).error().what, Catch::Contains("1 to 64 cycles, not 65"));
}

TEST_CASE("models without links of their own refuse a file's latencies and rates", "[topology][rate]") {
  for (const char* more : {"latency = [\"s0.B: 4\"]\n", "rate = [\"s0.B: 2\"]\n"}) {
    const Topology t = chain_with(more).value();
    for (const ModelKind* kind : kModels)
      CHECK(check_links(*kind, t).has_value() == (kind->name == std::string("xswitch")));
    CHECK_THAT(sim::make_subject("ideal", t).error().what, Catch::Contains("no latency and no rate of single links"));
  }
}

TEST_CASE("one frame takes what the closed form says over links of any rates", "[sim][rate]") {
  const char* const all[] = {"rate = [\"s0.B: 2\"]\n",
                             "rate = [\"s0.C: 3\"]\n",
                             "rate = [\"s2.C: 5\"]\n",
                             "rate = [\"s0.C: 2\", \"s0.B: 7\", \"s1.B: 3\", \"s2.C: 4\"]\n",
                             "rate = [\"s0.B: 32\", \"s1.B: 16\"]\n",
                             "latency = [\"s0.B: 9\"]\nrate = [\"s0.B: 2\", \"s2.C: 6\"]\n"};
  for (const char* more : all)
    for (const std::uint32_t bytes : {0u, 1u, 2u, 30u, 500u, 4000u})
      for (const bool live : {true, false}) {
        INFO(more << ", " << bytes << " bytes, " << (live ? "live" : "reference"));
        (void)cycles(chain_with(more).value(), 1, bytes, live);
      }
}

TEST_CASE("half the rate of one link on the way takes twice the time", "[sim][rate]") {
  const Topology full = chain_with("").value();
  for (const char* link : {"s0.C", "s0.B", "s1.B", "s2.C"}) {
    INFO(link);
    const Topology half = chain_with("rate = [\"" + std::string(link) + ": 2\"]\n").value();
    const auto ratio = [&](std::uint32_t frames, std::uint32_t bytes) {
      return static_cast<double>(cycles(half, frames, bytes, true)) /
             static_cast<double>(cycles(full, frames, bytes, true));
    };
    CHECK(ratio(1, 20000) == Approx(2).epsilon(0.01));
    CHECK(ratio(20, 2000) == Approx(2).epsilon(0.01));
  }
}
