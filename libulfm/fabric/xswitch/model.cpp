#include "fabric/xswitch/model.hpp"

#include <cstring>

#include "fabric/options.hpp"
#include "fabric/xswitch/network.hpp"

namespace ulfm::fabric::xswitch {
namespace {

constexpr std::uint32_t kDefaultFrame = 2048;

// head | ways by source and destination | the ports on them | the network
struct Head {
  std::uint32_t nodes;
  std::uint32_t frames;
  std::uint64_t ports_at;
  std::uint64_t ports_bytes;
  std::uint64_t network_at;
};
struct Way {
  std::uint32_t from;    ///< in the ports
  std::uint32_t length;  ///< 0: there is none
};
constexpr std::size_t kHeadBytes = 64;
static_assert(sizeof(Head) <= kHeadBytes);

constexpr std::size_t up_to_line(std::size_t n) { return (n + 63) / 64 * 64; }

Result<Parameters> parameters_from(ModelOptions options) {
  auto given = Options::parse(options, {{"frame", 64, 65536}, {"fifo", 16, 65536}});
  if (!given) return fail(std::move(given.error()).within("xswitch"));
  Parameters parameters;
  parameters.fifo_units = static_cast<std::uint32_t>(given->number("fifo", parameters.fifo_units));
  parameters.stop_at = parameters.fifo_units * 3 / 4;
  parameters.go_at = parameters.fifo_units / 4;
  return parameters;
}

Result<std::uint32_t> frame_bytes(ModelOptions options) {
  auto given = Options::parse(options, {{"frame", 64, 65536}, {"fifo", 16, 65536}});
  if (!given) return fail(std::move(given.error()).within("xswitch"));
  return static_cast<std::uint32_t>(given->number("frame", kDefaultFrame));
}

std::size_t longest_way(const Routes& routes) {
  std::size_t longest = 0;
  for (const Route& way : routes.way) longest = std::max(longest, way.size());
  return longest;
}

// Room for ways twice as long as the longest: a way round a dead link must fit too.
Head layout(const Topology& topology, const Routes& routes, std::uint32_t frames) {
  Head head{};
  head.nodes = topology.nodes();
  head.frames = frames;
  const std::size_t ways = std::size_t{head.nodes} * head.nodes;
  head.ports_at = kHeadBytes + up_to_line(ways * sizeof(Way));
  head.ports_bytes = up_to_line(ways * (2 * longest_way(routes) + 2));
  head.network_at = head.ports_at + head.ports_bytes;
  return head;
}

Result<std::size_t> arena_bytes(const Topology& topology, ModelOptions options, std::uint32_t frames) {
  auto parameters = parameters_from(options);
  if (!parameters) return fail(parameters.error());
  auto routes = compute_routes(topology);
  if (!routes) return fail(routes.error());
  return layout(topology, *routes, frames).network_at + Network::bytes(topology, *parameters, frames);
}

void write_routes(std::byte* memory, const Routes& routes) {
  const Head& head = *reinterpret_cast<const Head*>(memory);
  auto* ways = reinterpret_cast<Way*>(memory + kHeadBytes);
  std::uint32_t at = 0;
  for (std::size_t i = 0; i < routes.way.size(); ++i) {
    const Route& route = routes.way[i];
    if (at + route.size() > head.ports_bytes) {
      ways[i] = {0, 0};
      continue;
    }
    ways[i] = {at, static_cast<std::uint32_t>(route.size())};
    if (!route.empty()) std::memcpy(memory + head.ports_at + at, route.data(), route.size());
    at += ways[i].length;
  }
}

Result<void> create(std::byte* memory, const Topology& topology, ModelOptions options, std::uint32_t frames) {
  auto parameters = parameters_from(options);
  if (!parameters) return fail(parameters.error());
  auto routes = compute_routes(topology);
  if (!routes) return fail(routes.error());
  *reinterpret_cast<Head*>(memory) = layout(topology, *routes, frames);
  write_routes(memory, *routes);
  auto network =
      Network::create(memory + reinterpret_cast<Head*>(memory)->network_at, topology, *parameters, frames);
  if (!network) return fail(network.error());
  return {};
}

class XSwitchModel final : public Model {
 public:
  XSwitchModel(std::byte* memory, const Head& head, Network network)
      : memory_(memory), head_(head), network_(std::move(network)) {}

  bool reaches(std::uint32_t from, std::uint32_t to) const override { return !way(from, to).empty(); }

  bool inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes) override {
    return network_.inject(frame, from, way(from, to), bytes);
  }

  std::size_t run(std::uint64_t budget, std::span<Ending> endings) override {
    return network_.run(budget, endings);
  }
  bool idle() const override { return network_.idle(); }
  std::string statistics() const override { return ""; }

 private:
  // Where the routes lie may be written to by others: what is read stays within the arena whatever it says.
  std::span<const std::uint8_t> way(std::uint32_t from, std::uint32_t to) const {
    if (from >= head_.nodes || to >= head_.nodes) return {};
    const Way way = reinterpret_cast<const Way*>(memory_ + kHeadBytes)[std::size_t{from} * head_.nodes + to];
    if (way.from > head_.ports_bytes || way.length > head_.ports_bytes - way.from) return {};
    return {reinterpret_cast<const std::uint8_t*>(memory_ + head_.ports_at) + way.from, way.length};
  }

  std::byte* memory_;
  Head head_;
  Network network_;
};

Result<std::unique_ptr<Model>> attach(std::byte* memory, std::size_t bytes) {
  const Head head = *reinterpret_cast<const Head*>(memory);
  const std::size_t ways = std::size_t{head.nodes} * head.nodes * sizeof(Way);
  if (bytes < kHeadBytes || head.nodes > 65536 || ways > bytes || head.ports_at != kHeadBytes + up_to_line(ways) ||
      head.ports_bytes > bytes - ways || head.network_at != head.ports_at + head.ports_bytes || head.network_at > bytes)
    return fail(Errc::protocol, "the emulated interconnect of this job holds no network of X-Switches");
  auto network = Network::attach(memory + head.network_at, bytes - head.network_at);
  if (!network) return fail(network.error());
  return std::make_unique<XSwitchModel>(memory, head, std::move(*network));
}

}  // namespace

const ModelKind model_kind{"xswitch", "th8", frame_bytes, arena_bytes, create, attach};

}  // namespace ulfm::fabric::xswitch
