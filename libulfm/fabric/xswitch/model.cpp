#include "fabric/xswitch/model.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "fabric/options.hpp"
#include "fabric/topology/timeline.hpp"
#include "fabric/xswitch/network.hpp"

namespace ulfm::fabric::xswitch {
namespace {

constexpr std::uint32_t kDefaultFrame = 8192;
constexpr std::uint32_t kMostEvents = 256;

// What the model keeps in front of the network: the routes that hold from the start and those that hold after each
// scheduled fault. All are computed before the job begins, so that whoever moves the network only changes a number.
//
//   Head | steps | links that change | names of switches | tables of ways | ports on the ways | the network
struct Head {
  std::uint32_t nodes, switches, ports;
  std::uint32_t steps;      ///< scheduled changes
  std::uint32_t next_step;  ///< the first that has not happened
  std::uint32_t spare;
  std::uint64_t links_at, names_at, ways_at, ports_at, ports_bytes, network_at;
};
struct Step {
  std::uint64_t at;
  std::int64_t dead_switch;
  std::uint32_t first_link, links;
  std::uint32_t up;
};
struct Way {
  std::uint32_t from;    ///< in the ports
  std::uint32_t length;  ///< 0: there is none
};
struct Name {
  char text[24];
};

constexpr std::size_t up_to_line(std::size_t n) { return (n + 63) / 64 * 64; }
constexpr std::size_t kStepsAt = up_to_line(sizeof(Head));

Result<Options> read_options(ModelOptions options) {
  auto given = Options::parse(options, {{"frame", 64, 65536}, {"fifo", 16, 16384}, {"link", 1, 64}});
  if (!given) return fail(std::move(given.error()).within("xswitch"));
  return given;
}

}  // namespace

Result<Parameters> parameters_from(ModelOptions options) {
  auto given = read_options(options);
  if (!given) return fail(given.error());
  Parameters parameters;
  parameters.link_cycles = static_cast<std::uint32_t>(given->number("link", parameters.link_cycles));
  const std::int64_t fifo = std::max<std::int64_t>(parameters.fifo_units, 4 * headroom(parameters.link_cycles));
  parameters.fifo_units = static_cast<std::uint32_t>(given->number("fifo", fifo));
  parameters.stop_at = parameters.fifo_units * 3 / 4;
  parameters.go_at = parameters.fifo_units / 4;
  if (auto ok = check(parameters); !ok) return fail(std::move(ok.error()).within("xswitch"));
  return parameters;
}

namespace {

Result<std::uint32_t> frame_bytes(ModelOptions options) {
  auto given = read_options(options);
  if (!given) return fail(given.error());
  return static_cast<std::uint32_t>(given->number("frame", kDefaultFrame));
}

// Everything there is to know before the arena is laid out.
struct Plan {
  Parameters parameters;
  std::vector<TopologyChange> changes;
  std::vector<Routes> tables;  ///< at the start, and after each change
};

Result<Plan> make_plan(const ModelPlan& asked) {
  Plan plan;
  if (asked.topology.shape == Shape::boards)
    return fail(Errc::invalid, "topology " + asked.topology.name +
                                   ": the boards of one host have no switches between them; take --transport pcie");
  if (asked.topology.shape == Shape::hypercube)
    return fail(Errc::invalid, "topology " + asked.topology.name +
                                   ": a card of a generalized hypercube is no switch; take --transport pointdesign");
  auto parameters = parameters_from(asked.options);
  if (!parameters) return fail(parameters.error());
  plan.parameters = *parameters;
  auto changes = timeline(asked.topology, asked.events);
  if (!changes) return fail(changes.error());
  plan.changes = std::move(*changes);
  if (plan.changes.size() > kMostEvents)
    return fail(Errc::too_large, std::to_string(plan.changes.size()) + " scheduled changes; at most " +
                                     std::to_string(kMostEvents) + " can be planned");
  DeadPorts dead;
  for (std::size_t i = 0; i <= plan.changes.size(); ++i) {
    auto routes = compute_routes(asked.topology, i == 0 ? dead : plan.changes[i - 1].dead);
    if (!routes) return fail(routes.error());
    plan.tables.push_back(std::move(*routes));
  }
  return plan;
}

Head layout(const Topology& topology, const Plan& plan) {
  Head head{};
  head.nodes = topology.nodes();
  head.switches = topology.switches;
  head.ports = topology.ports;
  head.steps = static_cast<std::uint32_t>(plan.changes.size());
  std::size_t links = 0, ports = 0;
  for (const TopologyChange& change : plan.changes) links += change.links.size();
  for (const Routes& routes : plan.tables)
    for (const Route& way : routes.way) ports += way.size();
  head.links_at = kStepsAt + up_to_line(plan.changes.size() * sizeof(Step));
  head.names_at = head.links_at + up_to_line(links * sizeof(SwitchPort));
  head.ways_at = head.names_at + up_to_line(head.switches * sizeof(Name));
  head.ports_at = head.ways_at + up_to_line(plan.tables.size() * std::size_t{head.nodes} * head.nodes * sizeof(Way));
  head.ports_bytes = ports;
  head.network_at = head.ports_at + up_to_line(ports);
  return head;
}

void write_steps(std::byte* memory, const Head& head, const std::vector<TopologyChange>& changes) {
  auto* steps = reinterpret_cast<Step*>(memory + kStepsAt);
  auto* links = reinterpret_cast<SwitchPort*>(memory + head.links_at);
  std::uint32_t link = 0;
  for (const TopologyChange& change : changes) {
    *steps++ = {change.at, change.dead_switch, link, static_cast<std::uint32_t>(change.links.size()), change.up};
    for (const SwitchPort& port : change.links) links[link++] = port;
  }
}

void write_ways(std::byte* memory, const Head& head, const std::vector<Routes>& tables) {
  auto* way = reinterpret_cast<Way*>(memory + head.ways_at);
  auto* ports = reinterpret_cast<std::uint8_t*>(memory + head.ports_at);
  std::uint32_t at = 0;
  for (const Routes& routes : tables)
    for (const Route& route : routes.way) {
      *way++ = {at, static_cast<std::uint32_t>(route.size())};
      std::copy(route.begin(), route.end(), ports + at);
      at += static_cast<std::uint32_t>(route.size());
    }
}

Result<std::size_t> arena_bytes(const ModelPlan& asked) {
  auto plan = make_plan(asked);
  if (!plan) return fail(plan.error());
  return layout(asked.topology, *plan).network_at + Network::bytes(asked.topology, plan->parameters, asked.frames);
}

Result<void> create(std::byte* memory, const ModelPlan& asked) {
  auto plan = make_plan(asked);
  if (!plan) return fail(plan.error());
  const Head head = layout(asked.topology, *plan);
  *reinterpret_cast<Head*>(memory) = head;
  write_steps(memory, head, plan->changes);
  write_ways(memory, head, plan->tables);
  for (std::uint32_t s = 0; s < head.switches; ++s)
    std::snprintf(reinterpret_cast<Name*>(memory + head.names_at)[s].text, sizeof(Name), "%s",
                  switch_name(asked.topology, s).c_str());
  auto network = Network::create(memory + head.network_at, asked.topology, plan->parameters, asked.frames);
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
  std::size_t run(std::uint64_t budget, std::span<Ending> endings) override { return network_.run(budget, endings); }
  bool idle() const override { return network_.idle(); }

  bool run_until(std::uint64_t time, std::uint64_t period, Ending& ending) override {
    const std::uint64_t until = time == kNothingDue ? kNever : cycle_from(time, period);
    return network_.run(kUnlimited, {&ending, 1}, until) != 0;
  }

  std::vector<LinkUse> links(std::uint64_t period) override {
    std::vector<LinkUse> all;
    for (std::uint32_t n = 0; n < head_.nodes; ++n)
      add_link(all, "node " + std::to_string(n), network_.node_counters(n), network_.peer_of_node(n), period);
    for (std::uint32_t s = 0; s < head_.switches; ++s)
      for (std::uint32_t p = 0; p < head_.ports; ++p)
        add_link(all, name(s) + "." + port_letter(p), network_.counters({s, p}), network_.peer({s, p}), period);
    return all;
  }

  std::uint64_t due() const override { return next_step() < head_.steps ? step(next_step()).at : kNothingDue; }

  void advance(std::uint64_t nanoseconds) override {
    while (due() <= nanoseconds) {
      const Step now = step(next_step());
      const bool up = now.up != 0;
      if (now.dead_switch >= 0) network_.set_switch(static_cast<std::uint32_t>(now.dead_switch), up);
      const auto* links = reinterpret_cast<const SwitchPort*>(memory_ + head_.links_at);
      const std::size_t all = (head_.names_at - head_.links_at) / sizeof(SwitchPort);
      for (std::size_t i = now.first_link; i < std::min<std::size_t>(all, now.first_link + now.links); ++i)
        network_.set_link(links[i], up);
      ++shared().next_step;
    }
  }

  std::string statistics() override {
    std::string text;
    char line[320];
    const Balance balance = network_.balance();
    std::snprintf(line, sizeof line,
                  "ulfm: stats xswitch: cycles %llu events %llu, units entered %llu inserted %llu left %llu stripped "
                  "%llu lost %llu present %llu%s\n",
                  value(network_.now()), value(network_.events()), value(balance.entered), value(balance.inserted),
                  value(balance.left), value(balance.stripped), value(balance.lost), value(balance.present),
                  balance.holds() ? "" : ", which do not balance");
    text += line;
    for (std::uint32_t n = 0; n < head_.nodes; ++n)
      text += counted("node " + std::to_string(n), network_.node_counters(n));
    for (std::uint32_t s = 0; s < head_.switches; ++s)
      for (std::uint32_t p = 0; p < head_.ports; ++p)
        text += counted("port " + name(s) + "." + port_letter(p), network_.counters({s, p}));
    return text;
  }

 private:
  static unsigned long long value(std::uint64_t n) { return n; }
  static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

  // A link that has carried something. Waiting is counted where it leads to: for the output behind it.
  void add_link(std::vector<LinkUse>& all, const std::string& from, const SwitchPortCounters& c, const LinkEnd& to,
                std::uint64_t period) {
    const ChannelCounters& out = c.out;
    if (out.frames == 0) return;
    const bool leads_on = to.kind == LinkEnd::Kind::switch_port;
    const std::uint64_t waited =
        leads_on ? network_.counters({to.index, to.port}).in.arbitration_cycles : std::uint64_t{0};
    const std::string there =
        leads_on ? name(to.index) + "." + port_letter(to.port) : "node " + std::to_string(to.index);
    const std::uint64_t units = out.data_units + out.routing_units + out.frames;
    all.push_back({from, there, units * period, waited * period, out.data_units});
  }

  // A line for what something has moved; none for what has moved nothing.
  static std::string counted(const std::string& what, const SwitchPortCounters& c) {
    if (c.out.frames == 0 && c.out.stops == 0 && c.in.arbitration_cycles == 0 && c.out.lost_units == 0) return "";
    char line[400];
    std::snprintf(line, sizeof line,
                  "ulfm: stats xswitch %s: out frames %llu data %llu routing %llu stops %llu gos %llu wait cycles %llu "
                  "lost frames %llu units %llu, in arbitration cycles %llu bad ends %llu lost units %llu, occupancy",
                  what.c_str(), value(c.out.frames), value(c.out.data_units), value(c.out.routing_units),
                  value(c.out.stops), value(c.out.gos), value(c.out.wait_cycles), value(c.out.lost_frames),
                  value(c.out.lost_units), value(c.in.arbitration_cycles), value(c.in.bad_ends),
                  value(c.in.lost_units));
    std::string text = line;
    for (const std::uint64_t cycles : c.in.occupancy) text += " " + std::to_string(cycles);
    return text + "\n";
  }

  // What lies in front of the network may be written to by others: what is read stays within the arena.
  Head& shared() const { return *reinterpret_cast<Head*>(memory_); }
  std::uint32_t next_step() const { return std::min(shared().next_step, head_.steps); }
  const Step& step(std::uint32_t i) const { return reinterpret_cast<const Step*>(memory_ + kStepsAt)[i]; }
  std::string name(std::uint32_t s) const {
    const Name& name = reinterpret_cast<const Name*>(memory_ + head_.names_at)[s];
    return {name.text, strnlen(name.text, sizeof name.text)};
  }
  std::span<const std::uint8_t> way(std::uint32_t from, std::uint32_t to) const {
    if (from >= head_.nodes || to >= head_.nodes) return {};
    const std::size_t index = (std::size_t{next_step()} * head_.nodes + from) * head_.nodes + to;
    const Way way = reinterpret_cast<const Way*>(memory_ + head_.ways_at)[index];
    if (way.from > head_.ports_bytes || way.length > head_.ports_bytes - way.from) return {};
    return {reinterpret_cast<const std::uint8_t*>(memory_ + head_.ports_at) + way.from, way.length};
  }

  std::byte* memory_;
  Head head_;  // a copy: the shared one could be changed under us
  Network network_;
};

bool is_sane(const Head& h, std::size_t bytes) {
  const std::uint64_t ways = (std::uint64_t{h.steps} + 1) * h.nodes * h.nodes * sizeof(Way);
  return h.nodes >= 1 && h.nodes <= 65536 && h.switches <= 65536 && h.ports <= 8 && h.steps <= kMostEvents &&
         h.links_at == kStepsAt + up_to_line(h.steps * sizeof(Step)) && h.links_at <= h.names_at &&
         h.names_at <= bytes && h.ways_at == h.names_at + up_to_line(h.switches * sizeof(Name)) && ways <= bytes &&
         h.ways_at <= bytes - ways && h.ports_at == h.ways_at + up_to_line(ways) && h.ports_bytes <= bytes &&
         h.ports_at <= bytes - h.ports_bytes && h.network_at == h.ports_at + up_to_line(h.ports_bytes) &&
         h.network_at <= bytes;
}

Result<std::unique_ptr<Model>> attach(std::byte* memory, std::size_t bytes) {
  const Head head = *reinterpret_cast<const Head*>(memory);
  if (bytes < kStepsAt || !is_sane(head, bytes))
    return fail(Errc::protocol, "the emulated interconnect of this job holds no network of X-Switches");
  auto network = Network::attach(memory + head.network_at, bytes - head.network_at);
  if (!network) return fail(network.error());
  return std::make_unique<XSwitchModel>(memory, head, std::move(*network));
}

}  // namespace

const ModelKind model_kind{"xswitch", "th8", frame_bytes, arena_bytes, create, attach, false, nullptr, true};

}  // namespace ulfm::fabric::xswitch
