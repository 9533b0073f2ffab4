// Zero load in virtual time: a message that has an interconnect to itself takes what the closed form says, for each
// model, by hops and by bytes (ulfm-time(7), Zero load).
#include <bit>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "arena_memory.hpp"
#include "fabric/engine/host.hpp"
#include "fabric/models.hpp"
#include "fabric/pcie/packet.hpp"
#include "fabric/pcie/parameters.hpp"
#include "fabric/topology/shapes.hpp"

using namespace ulfm::fabric;

namespace {

constexpr std::uint64_t kPeriod = 1000;
constexpr std::uint32_t kFrames = 16;

/// A model of that name, in its arena.
class Alone {
 public:
  Alone(const std::string& name, const std::string& shape, const std::string& options)
      : topology_(make_shape(shape).value()), options_(options) {
    const ModelKind* const kind = find_model(name).value();
    const ModelPlan asked{topology_, options_, kFrames, {}, topology_.nodes(), kPeriod};
    auto planned = kind->plan(asked);
    REQUIRE(planned);
    memory_ = std::make_unique<test::ArenaMemory>(planned->bytes);
    REQUIRE(planned->create(memory_->get()));
    model_ = std::move(kind->attach(memory_->get(), planned->bytes).value());
  }

  const Topology& topology() const { return topology_; }

  /// Cycles that are over when a message that begins at 0 has arrived.
  std::uint64_t cycles(std::uint32_t from, std::uint32_t to, std::uint32_t bytes) {
    Ending ending;
    REQUIRE(model_->inject_between({from, to, 1, false}, 0, from, to, bytes));
    REQUIRE(model_->cycles()->run_until(kNothingDue, kPeriod, ending));
    REQUIRE(ending.delivered);
    REQUIRE(ending.node == to);
    return ending.cycle;
  }

 private:
  Topology topology_;
  std::string options_;
  std::unique_ptr<test::ArenaMemory> memory_;
  std::unique_ptr<Model> model_;
};

std::uint64_t alone(const std::string& name, const std::string& shape, const std::string& options, std::uint32_t from,
                    std::uint32_t to, std::uint32_t bytes) {
  return Alone(name, shape, options).cycles(from, to, bytes);
}

constexpr std::uint32_t kSizes[] = {0, 1, 4, 8, 9, 100, 1000, 4096, 4097, 8192, 16000};

}  // namespace

TEST_CASE("zero load: ideal", "[time]") {
  for (const std::uint32_t bytes : {1u, 2u, 1000u, 8192u})
    CHECK(alone("ideal", "th8", "latency=700,byte=3", 0, 5, bytes) == (bytes - 1) * 3 + 700);
}

TEST_CASE("zero load: a cube, by channels and words", "[time]") {
  for (const std::uint32_t to : {1u, 3u, 7u, 15u, 31u})
    for (const std::uint32_t bytes : kSizes) {
      const auto hops = static_cast<std::uint32_t>(std::popcount(to));
      CHECK(alone("dcm", "cube:5", "", 0, to, bytes) == 49 + 20 * (hops - 1) + 10 * ((bytes + 3) / 4));
    }
}

TEST_CASE("zero load: the host of a cube is as far from a node as node 0 is", "[time]") {
  constexpr std::uint32_t kGatewayOfNode0 = 32;
  for (const std::uint32_t node : {1u, 3u, 31u})
    for (const std::uint32_t bytes : kSizes) {
      const std::uint64_t from_node = alone("dcm", "cube:5", "", 0, node, bytes);
      CHECK(alone("dcm", "cube:5", "", kGatewayOfNode0, node, bytes) == from_node);
      CHECK(alone("dcm", "cube:5", "", node, kGatewayOfNode0, bytes) == from_node);
    }
}

TEST_CASE("a host is behind the nodes: at the gateway of node 0 where there are gateways", "[time]") {
  const auto places = [](const char* transport, const char* topology, std::uint32_t nodes) {
    auto host = FabricHost::create({transport, topology, nodes, "", "virtual", {}, true}).value();
    const FabricArena& arena = host.arena();
    std::vector<std::uint32_t> all;
    for (std::uint32_t p = 0; p < arena.sizes().processes; ++p) all.push_back(arena.node_of_rank(p));
    for (std::uint32_t p = 0; p + 1 < arena.sizes().processes; ++p)
      CHECK(arena.clock(p).state.load() == ClockState::unused);  // nothing is loaded yet
    CHECK(arena.clock(arena.sizes().processes - 1).state.load() == ClockState::runs);
    return all;
  };
  using Places = std::vector<std::uint32_t>;
  CHECK(places("dcm", "cube:2", 3) == Places{0, 1, 2, 3, 4});
  CHECK(places("dcm", "cube:0", 2) == Places{0, 0, 1});
  CHECK(places("xswitch", "mesh:2x2", 2) == Places{0, 1, 2, 3, 0});
  CHECK(!FabricHost::create({"dcm", "cube:1", 50, "", "", {}, true}));
}

TEST_CASE("zero load: X-Switches, by switches, polls and links", "[time]") {
  for (const std::uint32_t link : {1u, 5u})
    for (const std::uint32_t to : {1u, 2u, 5u, 10u, 15u})
      for (const std::uint32_t bytes : kSizes) {
        Alone net("xswitch", "mesh:4x4", "frame=65536,link=" + std::to_string(link));
        const Topology& t = net.topology();
        const Route way = compute_routes(t).value().between(0, to);
        // The head comes to a switch in `cycle`; each output polls an input a cycle, from its first one on in cycle 1.
        SwitchPort in = t.attachment[0];
        std::uint64_t cycle = 1 + link;
        for (const std::uint8_t out : way) {
          const auto polled = static_cast<std::uint32_t>((cycle - 1) % t.ports);
          cycle += (in.port + t.ports - polled) % t.ports + 1 + link;
          in = {t.end({in.at, out}).index, t.end({in.at, out}).port};
        }
        CHECK(net.cycles(0, to, bytes) == cycle + bytes + 4);
      }
}

TEST_CASE("zero load: boards, by fragments, lanes and latency", "[time]") {
  using pcie::link_cycles;
  for (const std::uint32_t lanes : {1u, 4u, 16u})
    for (const std::uint32_t latency : {0u, 50u, 700u})
      for (const std::uint32_t bytes : kSizes) {
        const std::string sizes =
            "fragment=4096,lanes=" + std::to_string(lanes) + ",latency=" + std::to_string(latency);
        std::vector<std::uint64_t> packets;  // cycles of each on a link
        for (std::uint32_t left = bytes, first = 1; first != 0 || left != 0; first = 0) {
          const std::uint32_t length = std::min(left, 4096u);
          packets.push_back(link_cycles(pcie::kDataHeaderBytes + length, lanes));
          left -= length;
        }
        std::uint64_t all = 0;
        for (const std::uint64_t cycles : packets) all += cycles;
        // The control packet, its way, and the permission's; then the data up. The host sends them down.
        const std::uint64_t begun = link_cycles(pcie::kControlBytes, lanes) + 2 * latency;
        CHECK(alone("pcie", "boards:2x1", "mode=store," + sizes, 0, 1, bytes) == begun + all + latency + all + latency);
        // Each fragment goes down when it has come, or when the one before it has left.
        std::uint64_t up = begun, down = 0;
        for (const std::uint64_t cycles : packets) down = std::max(down, (up += cycles) + latency) + cycles;
        CHECK(alone("pcie", "boards:2x1", "mode=cut-through," + sizes, 0, 1, bytes) == down + latency);
      }
}

TEST_CASE("zero load: the point design, by lines, flits and words that are fetched", "[time]") {
  for (const bool wormhole : {false, true})
    for (const std::uint32_t flits : {1u, 4u})
      for (const std::uint32_t dma : {1u, 3u})
        for (const std::uint32_t bytes : kSizes) {
          const std::string options = std::string("switching=") + (wormhole ? "wormhole" : "store") +
                                      ",flits=" + std::to_string(flits) + ",dma=" + std::to_string(dma);
          // Eight bytes go with the message; more is fetched behind it from the sender's memory.
          const std::uint64_t fetched = bytes <= 8 ? 0 : ((bytes + 7) / 8 + dma - 1) / dma;
          for (const std::uint32_t lines : {1u, 2u}) {
            const std::uint64_t moved = wormhole ? lines - 1 + flits : lines * flits;
            INFO(options << ", " << lines << " lines, " << bytes << " bytes");
            CHECK(alone("pointdesign", "gh:2x3x1", options, 0, lines == 1 ? 1 : 4, bytes) == moved + fetched);
          }
        }
}
