// The simulator: closed forms without load, books that balance, bounds that hold, results that can be had again.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <set>

#include "child.hpp"
#include "curves.hpp"
#include "report.hpp"

using namespace sim;

namespace {

Options small(const std::string& transport, const std::string& topology, const std::string& rate) {
  Options o;
  o.setting.transport = transport;
  o.setting.topology = topology;
  o.rate = rate;
  o.warmup = 500, o.measure = 2000, o.drain = 4000;
  o.threads = 2;
  return o;
}

Curves simulated(const Options& options) {
  auto curves = make_curves(options);
  if (!curves) FAIL(curves.error().what);
  const auto ok = simulate(*curves, options, [](std::size_t, std::size_t) {});
  if (!ok) FAIL(ok.error().what);
  return std::move(*curves);
}

std::string refusal(const Options& options) {
  auto curves = make_curves(options);
  return curves ? "" : curves.error().what;
}

}  // namespace

TEST_CASE("without load every pair needs what the closed form says", "[sim]") {
  const std::pair<const char*, const char*> all[] = {{"xswitch", "mesh:4x4"},
                                                     {"xswitch,link=3", "torus:3x3"},
                                                     {"xswitch", "tree:2"},
                                                     {"xswitch", "fattree:2x3"},
                                                     {"xswitch", "dragonfly:1x2x1"},
                                                     {"xswitch", "hyperx:3x3x2"},
                                                     {"xswitch", "single:8"},
                                                     {"dcm", "cube:4"},
                                                     {"dcm,hop=3", "cube:3"},
                                                     {"dcm", "cube:1"},
                                                     {"dcm,pace=ipsc2", "cube:2"},
                                                     {"pcie", "boards:5x1"},
                                                     {"pcie,mode=cut-through", "boards:5x1"},
                                                     {"pointdesign", "gh:2x3x2"},
                                                     {"pointdesign,flits=3,dma=2", "gh:3x2x2"},
                                                     {"pointdesign,switching=wormhole,flits=4", "gh:3x3x1"},
                                                     {"pointdesign,queues=2,speed=1", "gh:1x5x2"},
                                                     {"ideal", "single:5"},
                                                     {"ideal,latency=7,overhead=0,gap=1,byte=3", "single:3"}};
  for (const auto& [transport, topology] : all)
    for (const char* model : {"production", "reference"})
      for (const char* length : {"1", "2", "3"}) {
        INFO(transport << " over " << topology << ", " << model << ", length " << length);
        Options o = small(transport, topology, "0.01");
        o.setting.model = model;
        o.setting.length = length;
        const auto zero = run_zero(o);
        REQUIRE(zero);
        INFO(zero->text);
        CHECK(zero->pairs > 1);
        CHECK(zero->differ == 0);
      }
}

TEST_CASE("both models of a network give the same curve", "[sim]") {
  const Options all[] = {small("xswitch", "mesh:3x3", "0.1:0.5:0.2"),
                         small("xswitch,fifo=24,link=2", "torus:3x3", "0.2"),
                         small("dcm", "cube:3", "0.02:0.08:0.03"),
                         small("pcie", "boards:6x1", "0.2:0.6:0.2"),
                         small("pcie,mode=cut-through,pool=16384", "boards:4x1", "0.4"),
                         small("pointdesign,flits=2", "gh:2x3x2", "0.1:0.5:0.2"),
                         small("pointdesign,switching=wormhole,flits=3,buffer=0", "gh:2x3x2", "0.2"),
                         small("ideal", "single:6", "0.2:0.8:0.3")};
  for (Options o : all) {
    INFO(o.setting.transport << " over " << o.setting.topology);
    const auto production = simulated(o);
    o.setting.model = "reference";
    const auto reference = simulated(o);
    for (std::size_t i = 0; i < production[0]->rows.size(); ++i) {
      const Row &a = production[0]->rows[i], &b = reference[0]->rows[i];
      CHECK(a.messages > 10);
      CHECK(a.messages == b.messages);
      CHECK(a.accepted == b.accepted);
      CHECK(a.latency.mean == b.latency.mean);
      CHECK(a.latency.p99 == b.latency.p99);
      CHECK(a.network == Approx(b.network));
      CHECK(a.unit_hops == b.unit_hops);
      CHECK(a.settled == b.settled);
    }
  }
}

TEST_CASE("both models of X-Switches give the same curve for any traffic", "[sim]") {
  const std::tuple<const char*, const char*, const char*, const char*, const char*> all[] = {
      // Long messages: events that are far off, and FIFOs that stop their senders.
      {"xswitch", "mesh:3x3", "uniform", "300", "bernoulli"},
      {"xswitch,fifo=32", "tree:2", "uniform", "1-400", "bernoulli"},
      {"xswitch,link=40", "torus:3x3", "tornado", "4:0.9,256:0.1", "bernoulli"},
      {"xswitch", "hyperx:3x3x2", "hotspot:2:0.2", "16", "burst:40:160"},
      {"xswitch", "fattree:2x3", "incast:3", "16", "periodic"}};
  for (const auto& [transport, topology, pattern, length, source] : all) {
    INFO(transport << " over " << topology << ", " << pattern << ", " << length << ", " << source);
    Options o = small(transport, topology, "0.05:0.25:0.2");
    o.setting.pattern = pattern;
    o.setting.length = length;
    o.setting.source = source;
    o.verify = true;  // simulate() fails when a figure differs
    CHECK(simulated(o)[0]->rows[0].messages > 0);
  }
  Options o = small("xswitch", "mesh:3x3", "0.1");
  const Row one = simulated(o)[0]->rows[0];
  CHECK(difference(one, one).empty());
  o.setting.seed = 2;
  CHECK_THAT(difference(one, simulated(o)[0]->rows[0]), Catch::Contains("made: "));
}

TEST_CASE("the result does not depend on the number of threads, and does on the seed", "[sim]") {
  Options o = small("xswitch", "mesh:3x3", "0.05:0.3:0.05");
  o.saturation = true;
  o.threads = 1;
  const std::string one = json_of(simulated(o), o);
  o.threads = 3;
  CHECK(json_of(simulated(o), o) == one);
  o.setting.seed = 2;
  CHECK(json_of(simulated(o), o) != one);
}

TEST_CASE("a channel carries no more than the textbook says, and the network no more than the channel", "[sim]") {
  struct Known {
    const char *topology, *pattern;
    double load;  // Dally and Towles 2004, chapters 3 and 8: messages over the busiest channel for each one sent
  };
  const Known all[] = {{"mesh:4x4", "uniform", 16 * 4 / 4.0 / 15},
                       {"mesh:4x4", "transpose", 3},
                       {"mesh:4x4", "complement", 2},
                       {"mesh:8x8", "uniform", 64 * 8 / 4.0 / 63},
                       {"mesh:8x8", "transpose", 7},
                       {"mesh:8x8", "complement", 4},
                       {"cube:4", "uniform", 1},
                       {"cube:4", "complement", 1}};
  for (const Known& known : all) {
    INFO(known.topology << ", " << known.pattern);
    Options o = small("xswitch", known.topology, "0.001");
    o.setting.pattern = known.pattern;
    o.measure = 4000;
    auto curves = make_curves(o).value();
    Curve& c = *curves[0];
    CHECK(c.bound.channel_load == Approx(known.load));
    // Behind saturation the flows of transpose that do not cross the busiest channels get more than the others, so that
    // the mean says little there; what is never exceeded is a unit a cycle on each channel.
    const bool alike = std::string(known.pattern) != "transpose";
    for (const double times : {0.5, 1.0, 1.6}) {
      const auto row = run_point(c.load, times * c.bound.rate, true);
      REQUIRE(row);
      CHECK(*std::max_element(row->use.begin(), row->use.end()) <= 1);
      if (alike) CHECK(row->accepted < 1.03 * c.bound.rate);
      if (times < 1) CHECK(row->settled);
      if (times > 1) CHECK_FALSE(row->settled);
    }
  }
}

TEST_CASE("rings that are opened carry less than the textbook's", "[sim]") {
  // A closed ring of eight: 1 for uniform traffic (k / 8), 3 for tornado (k / 2 - 1).
  const std::tuple<const char*, const char*, double> all[] = {
      {"torus:1x8", "uniform", 8 / 8.0}, {"torus:1x8", "tornado", 3}, {"torus:4x4", "uniform", 4 / 8.0}};
  for (const auto& [topology, pattern, load] : all) {
    Options o = small("xswitch", topology, "0.001");
    o.setting.pattern = pattern;
    const auto curves = make_curves(o).value();
    CHECK(curves[0]->bound.channel_load >= load);
  }
}

TEST_CASE("saturation is found below the bound", "[sim]") {
  Options o = small("xswitch", "mesh:3x3", "0.05");
  o.saturation = true;
  const auto curves = simulated(o);
  CHECK(curves[0]->saturation > 0.4 * curves[0]->bound.rate);
  CHECK(curves[0]->saturation <= curves[0]->bound.rate);
}

namespace {

/// Says that it has a message more than it has, or hands one out late.
class Liar final : public SubjectNetwork {
 public:
  Liar(std::unique_ptr<SubjectNetwork> honest, int lie) : honest_(std::move(honest)), lie_(lie) {}
  bool inject(FrameId f, std::uint32_t from, std::uint32_t to, std::uint32_t units, Way way) override {
    return honest_->inject(f, from, to, units, way);
  }
  void run(std::uint64_t until, std::vector<Ending>& endings) override {
    honest_->run(until, endings);
    if (lie_ == 2)
      for (Ending& ending : endings) ending.cycle -= 30;
  }
  std::uint64_t inside() override { return honest_->inside() + (lie_ == 1 ? 1 : 0); }
  std::string imbalance() override { return lie_ == 3 ? "units are missing" : honest_->imbalance(); }
  std::vector<std::uint64_t> busy() override { return honest_->busy(); }
  std::uint64_t unit_hops() override { return honest_->unit_hops(); }

 private:
  std::unique_ptr<SubjectNetwork> honest_;
  int lie_;
};

class Lying final : public Subject {
 public:
  Lying(const Subject& honest, int lie) : honest_(honest), lie_(lie) {}
  Result<std::unique_ptr<SubjectNetwork>> make(std::uint32_t frames, ModelForm form) const override {
    return std::make_unique<Liar>(std::move(honest_.make(frames, form).value()), lie_);
  }
  std::uint64_t zero_load(std::uint32_t from, std::uint32_t to, std::uint32_t units, const Route& way,
                          std::uint64_t start) const override {
    return honest_.zero_load(from, to, units, way, start);
  }
  std::vector<Use> uses(std::uint32_t from, std::uint32_t to, std::uint32_t units, const Route& way) const override {
    return honest_.uses(from, to, units, way);
  }
  std::uint32_t window(std::uint32_t units, std::uint32_t longest) const override {
    return honest_.window(units, longest);
  }
  std::uint32_t most_units() const override { return honest_.most_units(); }
  std::uint32_t usual_units() const override { return honest_.usual_units(); }
  const char* unit() const override { return honest_.unit(); }
  double cycle_ns() const override { return honest_.cycle_ns(); }

 private:
  const Subject& honest_;
  int lie_;
};

}  // namespace

TEST_CASE("a model whose books are wrong is found out", "[sim]") {
  const auto curves = make_curves(small("xswitch", "mesh:3x3", "0.2")).value();
  Load load = curves[0]->load;
  for (const int lie : {0, 1, 2, 3}) {
    INFO("lie " << lie);
    const Lying lying(*curves[0]->subject, lie);
    load.subject = &lying;
    CHECK(run_point(load, 0.2).has_value() == (lie == 0));
  }
}

TEST_CASE("patterns send where they say", "[sim]") {
  const auto topology = ulfm::fabric::read_topology("mesh:4x4").value();
  for (const char* text : {"uniform", "transpose", "complement", "reversal", "shuffle", "tornado", "neighbour",
                           "hotspot:3:0.25", "incast:5"}) {
    INFO(text);
    const auto pattern = Pattern::make(text, topology).value();
    Random random(7, 0);
    std::set<std::uint32_t> ends;
    for (std::uint32_t n = 0; n < 16; ++n) {
      double all = 0;
      for (std::uint32_t to = 0; to < 16; ++to) all += pattern.share(n, to);
      if (pattern.sends(n)) CHECK(all == Approx(1));
      const std::uint32_t to = pattern.destination(n, random);
      CHECK(to < 16);
      if (pattern.sends(n)) CHECK(pattern.share(n, to) > 0);
      ends.insert(to);
    }
    const bool one_to_one = pattern.is_fixed() && std::string(text) != "incast:5";
    if (one_to_one) CHECK(ends.size() == 16);
  }
  CHECK(Pattern::make("transpose", topology)->senders() == 12);
  CHECK(Pattern::make("complement", topology)->share(1, 14) == 1);
  CHECK(Pattern::make("tornado", topology)->share(0, 5) == 1);
}

TEST_CASE("sources make as much as they are asked for", "[sim]") {
  for (const char* text : {"bernoulli", "periodic", "burst:40:160"}) {
    INFO(text);
    const auto timing = Timing::make(text).value();
    double made = 0;
    for (std::uint32_t node = 0; node < 50; ++node) {
      Source source(timing, 0.02, 3, node);
      for (std::uint64_t cycle = source.next(), last = 0; cycle <= 40000; cycle = source.next(), ++made) {
        REQUIRE(cycle > last);
        last = cycle;
      }
    }
    CHECK(made / 50 / 40000 == Approx(0.02).epsilon(0.05));
  }
}

TEST_CASE("ways of every routing arrive and never turn from down to up", "[sim]") {
  for (const char* form : {"mesh:4x4", "torus:4x4x3", "fattree:2x3", "dragonfly:1x2x1", "hyperx:3x3x2", "tree:3"})
    for (const char* text : {"default", "updown", "nonminimal:3"}) {
      INFO(form << ", " << text);
      const auto t = ulfm::fabric::read_topology(form).value();
      const auto routing = make_routing(text, t).value();
      Random random(1, 1);
      for (int round = 0; round < 5; ++round) {
        ulfm::fabric::Routes routes{t.nodes(), {}};
        std::size_t longest = 0, wrong = 0;
        for (std::uint32_t a = 0; a < t.nodes(); ++a)
          for (std::uint32_t b = 0; b < t.nodes(); ++b) {
            Route way;
            if (a != b) routing->way(a, b, random, way);
            longest = std::max(longest, way.size());
            std::uint32_t at = t.attachment[a].at;
            for (std::size_t i = 0; i < way.size(); ++i) {
              const LinkEnd end = t.end({at, way[i]});
              if (i + 1 == way.size()) wrong += end == LinkEnd{LinkEnd::Kind::node, b, end.port} ? 0 : 1;
              else wrong += end.kind == LinkEnd::Kind::switch_port ? 0 : 1;
              at = end.index;
            }
            routes.way.push_back(std::move(way));
          }
        CHECK(wrong == 0);
        CHECK(longest <= routing->longest());
        CHECK(ulfm::fabric::dependency_cycle(t, routes).empty());
      }
    }
}

TEST_CASE("what cannot be simulated is refused with what would be right", "[sim]") {
  const auto with = [](auto change) {
    Options o;
    change(o);
    return refusal(o);
  };
  CHECK_THAT(with([](Options& o) { o.setting.transport = "xswich"; }), Catch::Contains("take xswitch, dcm"));
  CHECK_THAT(with([](Options& o) { o.setting.transport = "dcm"; }), Catch::Contains("cube:0 to cube:7"));
  CHECK_THAT(with([](Options& o) { o.setting.transport = "pcie"; }), Catch::Contains("write boards:BxP"));
  CHECK_THAT(with([](Options& o) { o.setting.transport = "ideal,latency=0"; }), Catch::Contains("latency"));
  CHECK_THAT(with([](Options& o) { o.setting.pattern = "uniformm"; }), Catch::Contains("is none of uniform"));
  CHECK_THAT(with([](Options& o) { o.setting.topology = "mesh:3x4", o.setting.pattern = "transpose"; }),
             Catch::Contains("square number"));
  CHECK_THAT(with([](Options& o) { o.setting.topology = "mesh:3x4", o.setting.pattern = "shuffle"; }),
             Catch::Contains("power of two"));
  CHECK_THAT(with([](Options& o) { o.setting.topology = "cube:3", o.setting.pattern = "tornado"; }),
             Catch::Contains("to itself"));
  CHECK_THAT(with([](Options& o) { o.setting.length = "0"; }), Catch::Contains("write 16, 4-64"));
  CHECK_THAT(with([](Options& o) { o.setting.source = "poisson"; }), Catch::Contains("write bernoulli"));
  CHECK_THAT(with([](Options& o) { o.setting.routing = "nonminimal:x"; }), Catch::Contains("take default"));
  CHECK_THAT(with([](Options& o) { o.rate = "0.5:0.1"; }), Catch::Contains("FROM:TO"));
  CHECK_THAT(with([](Options& o) { o.rate = "17"; }), Catch::Contains("at most one message a cycle"));
  CHECK_THAT(with([](Options& o) { o.sweep = {"fifo"}; }), Catch::Contains("key=value"));
  CHECK_THAT(with([](Options& o) { o.sweep = {"fifoo=32|64"}; }), Catch::Contains("fifo"));
}

TEST_CASE("sweeps make a curve of every combination", "[sim]") {
  Options o = small("xswitch", "mesh:3x3", "0.1");
  o.sweep = {"fifo=32|64", "length=8|16"};
  o.compare = {"topology=torus:3x3 pattern=neighbour"};
  const auto curves = simulated(o);
  REQUIRE(curves.size() == 5);
  CHECK(curves[1]->label == "fifo=32 length=16");
  CHECK(curves[1]->setting.transport == "xswitch,fifo=32");
  CHECK(curves[4]->topology.shape == Shape::torus);
  CHECK_THAT(svg_of(curves), Catch::Contains("fifo=64 length=8"));
  CHECK_THAT(csv_of(curves), Catch::Contains("\"topology=torus:3x3 pattern=neighbour\""));
}

namespace {
const std::string kModels = ULFM_TEST_MODELS "/";
}

TEST_CASE("whatever makes a curve can be swept", "[sim]") {
  Options o = small("xswitch", "mesh:3x3", "0.1");
  o.sweep = {"rate=0.05|0.1:0.3:0.1", "measure=1000|2000", "warmup=0|300", "drain=900|4000"};
  const auto curves = simulated(o);
  REQUIRE(curves.size() == 16);
  CHECK(curves[0]->rows.size() == 1);
  CHECK(curves[8]->rates == std::vector<double>{0.1, 0.2, 0.3});
  CHECK(curves[0]->load.warmup == 0);
  CHECK(curves[2]->load.warmup == 300);
  CHECK(curves[0]->load.measure == 1000);
  CHECK(curves[4]->load.measure == 2000);
  CHECK(curves[1]->load.drain == 4000);
  CHECK(curves[0]->rows[0].messages != curves[4]->rows[0].messages);
  const auto refused = [&](const char* text) {
    o.sweep = {text};
    return refusal(o);
  };
  CHECK_THAT(refused("measure=5|1000"), Catch::Contains("measure \"5\" is no whole number from 100"));
  CHECK_THAT(refused("drain=0"), Catch::Contains("from 1"));
  CHECK_THAT(refused("warmup=-1"), Catch::Contains("whole number"));
  CHECK_THAT(refused("rate=0.2:0.1"), Catch::Contains("FROM:TO"));
}

TEST_CASE("patterns have the names that others give them", "[sim]") {
  const auto topology = ulfm::fabric::read_topology("mesh:4x4").value();
  const std::pair<const char*, const char*> all[] = {{"bit-complement", "complement"},
                                                     {"bit_reversal", "reversal"},
                                                     {"bitcomplement", "complement"},
                                                     {"neighbor", "neighbour"},
                                                     {"bit-shuffle", "shuffle"}};
  for (const auto& [other, usual] : all) {
    const auto a = Pattern::make(other, topology).value(), b = Pattern::make(usual, topology).value();
    for (std::uint32_t n = 0; n < 16; ++n)
      for (std::uint32_t to = 0; to < 16; ++to) CHECK(a.share(n, to) == b.share(n, to));
  }
  CHECK(Pattern::make("hot-spot:3:0.5", topology)->share(0, 3) > 0.5);
  CHECK_FALSE(Pattern::make("bit", topology));
}

TEST_CASE("thousands of nodes of any shape are simulated", "[sim]") {
  for (const char* topology :
       {"torus:24x24x22", "fattree:24x3", "dragonfly:8x16x8", "hyperx:24x24x22", "fullmesh:128x100"}) {
    INFO(topology);
    Options o = small("xswitch", topology, "0.01");
    o.warmup = 50, o.measure = 150, o.drain = 100;
    const auto curves = simulated(o);
    CHECK(curves[0]->topology.nodes() >= 12600);
    CHECK(curves[0]->rows[0].messages > 300);
  }
  Options o = small("xswitch", "fullmesh:128x100", "0.01");
  o.setting.model = "live";
  auto live = make_curves(o).value();
  CHECK_THAT(simulate(live, o, [](std::size_t, std::size_t) {}).error().what, Catch::Contains("2 to 26 ports"));
}

TEST_CASE("known cases saturate below the textbook's bound", "[sim]") {
  const std::tuple<const char*, const char*, double> all[] = {
      {"torus:1x8", "uniform", 1},  {"torus:1x8", "tornado", 3},   {"torus:4x4", "tornado", 1},
      {"mesh:4x4", "transpose", 3}, {"mesh:4x4", "complement", 2}, {"cube:4", "uniform", 1}};
  for (const auto& [topology, pattern, load] : all) {
    INFO(topology << ", " << pattern);
    Options o = small("xswitch", topology, "0.02");
    o.setting.pattern = pattern;
    o.saturation = true;
    const auto curves = simulated(o);
    CHECK(curves[0]->saturation <= curves[0]->bound.rate);
    CHECK(curves[0]->bound.rate < 1 / load);  // headers and check units take their share
    CHECK(curves[0]->saturation > 0.25 * curves[0]->bound.rate);
  }
}

TEST_CASE("a model and a routing function from shared objects", "[sim][shared]") {
  Options o = small(kModels + "ulfm_example_bus.so,width=2", "single:5", "0.05:0.2:0.05");
  const auto zero = run_zero(o);
  REQUIRE(zero);
  CHECK(zero->pairs == 20);
  CHECK(zero->differ == 0);
  CHECK_THAT(zero->text, Catch::Contains("10 to 10 cycles"));  // 2 to arbitrate, 16 bytes by 2
  const auto curves = simulated(o);
  for (const Row& row : curves[0]->rows) {
    INFO(row.offered);
    CHECK(row.settled);
    CHECK(row.latency.mean >= 10);
  }
  o.rate = "0.5";  // 5 nodes share 2 bytes a cycle less arbitration: 16 in 10 cycles, 0.32 to each
  CHECK_FALSE(simulated(o)[0]->rows[0].settled);

  Options routed = small("xswitch", "mesh:4x4", "0.1");
  routed.setting.pattern = "hotspot:5:0.2";
  const auto usual = simulated(routed);
  routed.setting.routing = kModels + "ulfm_example_routing.so";
  const auto other = simulated(routed);
  CHECK(other[0]->rows[0].hops == Approx(usual[0]->rows[0].hops).epsilon(0.01));
  CHECK(other[0]->rows[0].latency.mean != usual[0]->rows[0].latency.mean);
}

TEST_CASE("a model from a shared object that breaks its rules is named, with what it did", "[sim][shared]") {
  const auto lying = [](int lie) {
    return small(kModels + "ulfm_wrong_lying.so,lie=" + std::to_string(lie), "single:4", "0.1");
  };
  CHECK(simulated(lying(0)).size() == 1);
  const auto [lie, what] = GENERATE(table<int, const char*>({{1, "liar: refuse throws an exception, as it was told to"},
                                                             {2, "liar: bytes throws"},
                                                             {3, "liar: create throws"},
                                                             {4, "liar: attach throws"},
                                                             {5, "liar: send throws"},
                                                             {6, "liar: run throws"},
                                                             {7, "which is not on its way"},
                                                             {8, "which is not on its way"},
                                                             {9, "was asked for what happens before cycle"}}));
  const Options options = lying(lie);
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  test::Child child([&](test::Pipe&) {
    dup2(ends[1], STDERR_FILENO);
    std::string said = refusal(options);
    if (said.empty()) {
      auto curves = make_curves(options);
      const auto ok = simulate(*curves, options, [](std::size_t, std::size_t) {});
      if (!ok) said = ok.error().what;
    }
    (void)!write(STDERR_FILENO, said.data(), said.size());
  });
  close(ends[1]);
  std::string said(4096, '\0');
  said.resize(static_cast<std::size_t>(std::max<ssize_t>(read(ends[0], said.data(), said.size()), 0)));
  close(ends[0]);
  CHECK_THAT(said, Catch::Contains(what));
}

TEST_CASE("shared objects that are wrong are refused with what is wrong", "[sim][shared]") {
  const auto transport = [](const std::string& text) { return refusal(small(text, "single:5", "0.1")); };
  CHECK_THAT(transport("./none.so"), Catch::Contains("No such file"));
  CHECK_THAT(transport(kModels + "ulfm_wrong_nothing.so"), Catch::Contains("has no ulfm_model"));
  CHECK_THAT(transport(kModels + "ulfm_wrong_version.so"), Catch::Contains("compile it again"));
  CHECK_THAT(transport(kModels + "ulfm_wrong_options.so"), Catch::Contains("option frame has a name that is taken"));
  CHECK_THAT(transport(kModels), Catch::Contains("is no file"));
  CHECK_THAT(transport(kModels + "CTestTestfile.cmake"), Catch::Contains("cannot be loaded"));
  CHECK_THAT(transport(kModels + "ulfm_example_bus.so,widht=2"), Catch::Contains("width=1..4096"));
  CHECK_THAT(transport(kModels + "ulfm_example_bus.so,width=0"), Catch::Contains("from 1 to 4096"));
  CHECK_THAT(refusal(small(kModels + "ulfm_example_bus.so", "single:1", "0.1")), Catch::Contains("bus"));
  Options o = small("xswitch", "torus:1x5", "0.1");
  o.setting.routing = kModels + "ulfm_wrong_turning.so";
  CHECK_THAT(refusal(o), Catch::Contains("can deadlock"));
  o.setting.topology = "mesh:3x3";
  CHECK_THAT(refusal(o), Catch::Contains("does not end there"));
  o.setting.routing = kModels + "ulfm_example_bus.so";
  CHECK_THAT(refusal(o), Catch::Contains("has no ulfm_routing"));
}
