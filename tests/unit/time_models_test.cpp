// Models in virtual time: what a frame takes when nobody else is there, and that they stand where the clock stands.
#include <algorithm>
#include <bit>
#include <map>
#include <vector>

#include "fabric/durations.hpp"
#include "fabric/engine/engine.hpp"
#include "fabric/model.hpp"
#include "fabric/pcie/parameters.hpp"
#include "property.hpp"

using namespace ulfm;
using namespace ulfm::fabric;

namespace {

constexpr std::uint64_t kPeriod = 1000;
constexpr std::uint32_t kFrames = 256;

/// A model as a job in virtual time has it.
struct Timed {
  Timed(const std::string& transport, const std::string& shape) : topology(read_topology(shape).value()) {
    const std::string name = transport.substr(0, transport.find(','));
    options = transport.size() > name.size() ? transport.substr(name.size() + 1) : "";
    const ModelKind* kind = find_model(name);
    REQUIRE(kind != nullptr);
    REQUIRE(kind->timed);
    const ModelPlan plan{topology, options, kFrames, {}, 16, kPeriod};
    const std::size_t bytes = kind->arena_bytes(plan).value();
    memory.resize(bytes / 64 + 2);
    auto* at = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64);
    REQUIRE(kind->create(at, plan));
    model = kind->attach(at, bytes).value();
  }
  bool send(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes) {
    return model->inject_between({from, to, 1, false}, frame, from, to, bytes);
  }
  /// Cycles from now, which is a whole cycle, to the end of the one frame that is on its way.
  std::uint64_t alone(std::uint64_t now, std::uint32_t from, std::uint32_t to, std::uint32_t bytes) {
    Ending ending;
    CHECK_FALSE(model->run_until(now * kPeriod, kPeriod, ending));
    REQUIRE(send(0, from, to, bytes));
    REQUIRE(model->run_until((now + 100'000'000) * kPeriod, kPeriod, ending));
    CHECK(ending.delivered);
    CHECK(ending.node == to);
    if (model->has_pools()) model->release(to, 1, bytes);
    return ending.cycle - now;
  }

  Topology topology;
  std::string options;
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> memory;
  std::unique_ptr<Model> model;
};

const std::vector<std::uint32_t> kSizes{0, 1, 7, 8, 9, 100, 256, 257, 1000, 4096};

}  // namespace

TEST_CASE("zero load: ideal is (k - 1) G + L, and o is the processes'", "[time]") {
  Timed ideal("ideal,latency=1000,overhead=70,gap=5,byte=3", "single:4");
  for (std::uint64_t now = 1; const std::uint32_t bytes : kSizes)
    CHECK(ideal.alone(now += 1'000'000, 0, 3, bytes) == 1000 + 3ull * (bytes == 0 ? 0 : bytes - 1));
}

TEST_CASE("zero load: pcie is a control packet, permission, and the data twice", "[time]") {
  for (const std::uint32_t lanes : {1u, 4u, 16u}) {
    const std::string options = "pcie,fragment=256,latency=9,lanes=" + std::to_string(lanes);
    const auto cycles = [&](std::uint32_t n) { return pcie::link_cycles(n, lanes); };
    for (const bool whole : {true, false}) {
      Timed boards(options + (whole ? ",mode=store" : ",mode=cut-through"), "boards:2x4");
      for (std::uint64_t now = 1; const std::uint32_t bytes : kSizes) {
        // Up: all fragments, one behind the other. Down: all of them again, or the last one alone.
        const std::uint32_t fragments = pcie::fragments_of(bytes, 256);
        std::uint64_t up = 0, last = 0;
        for (std::uint32_t i = 0; i < fragments; ++i) up += last = cycles(16 + pcie::fragment_bytes(bytes, 256, i));
        const std::uint64_t full = cycles(16 + 256);
        // A short last fragment waits until the one before it has gone down.
        const std::uint64_t down = whole ? up : last + (fragments > 1 ? full - std::min(full, last) : 0);
        CHECK(boards.alone(now += 1'000'000, 0, 1, bytes) == cycles(20) + 9 + 9 + up + 9 + down + 9);
      }
    }
  }
}

TEST_CASE("zero load: the point design takes f cycles a line and what fetching takes", "[time]") {
  for (const std::uint32_t flits : {1u, 4u}) {
    Timed point("pointdesign,dma=2,flits=" + std::to_string(flits), "gh:2x4x2");
    const auto of = [&](std::uint32_t hops, std::uint32_t bytes) {
      return 1 + flits * hops + (bytes > 8 ? (((bytes + 7) / 8) + 1) / 2 : 0u);
    };
    for (std::uint64_t now = 1; const std::uint32_t bytes : kSizes) {
      CHECK(point.alone(now += 1'000'000, 0, 2, bytes) == of(1, bytes));
      CHECK(point.alone(now += 1'000'000, 0, 10, bytes) == of(2, bytes));
    }
  }
}

TEST_CASE("zero load: dcm is 49 cycles, 20 a further channel and 10 a word of 32 bits", "[time]") {
  Timed cube("dcm", "cube:4");
  for (std::uint64_t now = 1; const std::uint32_t bytes : kSizes)
    for (const std::uint32_t to : {1u, 3u, 7u, 15u}) {
      const auto hops = static_cast<std::uint32_t>(std::popcount(to));
      CHECK(cube.alone(now += 1'000'000, 0, to, bytes) == 49 + 20 * (hops - 1) + 10 * ((bytes + 3) / 4));
    }
}

TEST_CASE("zero load: xswitch is a cycle a unit, and a poll a switch", "[time]") {
  Timed line("xswitch", "chain:4");
  const std::uint32_t far = line.topology.nodes() - 1;
  for (std::uint64_t now = 1; const std::uint32_t bytes : kSizes) {
    const std::uint64_t near = line.alone(now += 1'000'000, 0, 1, bytes),
                        end = line.alone(now += 1'000'000, 0, far, bytes);
    CHECK(near >= bytes + 7);
    CHECK(near <= bytes + 7 + 8);
    CHECK(end >= near);
    CHECK(end <= near + 3 * (8 + 4));
  }
}

TEST_CASE("what an ending causes enters in its moment, although nobody bounds the network", "[time]") {
  for (const auto& [transport, shape] : std::map<std::string, std::string>{{"ideal", "single:4"},
                                                                           {"pcie", "boards:2x4"},
                                                                           {"pointdesign", "gh:2x4x2"},
                                                                           {"dcm", "cube:2"},
                                                                           {"xswitch", "th8"}}) {
    INFO(transport);
    Timed timed(transport, shape);
    const std::uint64_t once = timed.alone(1, 0, 1, 100);
    // As long again when the answer leaves at once, whatever was said about how far the network might go.
    Ending ending;
    REQUIRE(timed.send(1, 1, 0, 100));
    REQUIRE(timed.model->run_until(1'000'000'000 * kPeriod, kPeriod, ending));
    CHECK(ending.cycle <= 1 + 2 * once + 16);
  }
}

TEST_CASE("boards in virtual time: every message once, those of a pair in order, and all balances", "[time]") {
  test::property("timed boards", [](test::Draw& draw) {
    const char* const options[] = {"pcie,fragment=64,pool=1024,memory=2048,frame=1024", "pcie,mode=cut-through,lanes=1",
                                   "pcie,latency=1000,fragment=128,frame=1024,pool=1024"};
    Timed boards(options[draw.below(3)], "boards:3x2");
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<FrameId>> order;
    std::map<FrameId, std::pair<std::uint32_t, std::uint32_t>> ends;
    std::map<FrameId, std::uint32_t> sizes;
    std::uint64_t now = 0;
    const auto hear = [&](const Ending& ending) {
      test::must(ends.count(ending.frame) == 1, "a frame ended that was not on its way");
      const auto pair = ends[ending.frame];
      test::must(ending.delivered && ending.cycle <= now, "it ended in time, at its board");
      test::must(order[pair].front() == ending.frame, "one of a pair overtook another");
      order[pair].erase(order[pair].begin());
      ends.erase(ending.frame);
      if (boards.model->release(pair.second, 1, sizes[ending.frame])) boards.model->woken(pair.second);
    };
    for (FrameId frame = 0; (frame < kFrames && draw.more()) || !ends.empty();) {
      Ending ending;
      while (boards.model->run_until(now * kPeriod, kPeriod, ending)) hear(ending);
      if (frame < kFrames && draw.more() && draw.one_in(2)) {
        const std::uint32_t from = draw.below(3), to = (from + 1 + draw.below(2)) % 3;
        sizes[frame] = draw.below(1025);
        test::must(boards.send(frame, from, to, sizes[frame]), "a frame was not taken");
        order[{from, to}].push_back(frame);
        ends[frame++] = {from, to};
      }
      now += draw.more() ? draw.below(400) : 1000;
      test::must(now < 10'000'000, "something never ends");
    }
    test::must(boards.model->idle(), "it does not come to rest");
    test::must(boards.model->statistics().find("do not balance") == std::string::npos, "it does not balance");
  });
}
