#include "fabric/xswitch/model.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>

#include <fmt/core.h>

#include "fabric/kit/changes.hpp"
#include "fabric/xswitch/network.hpp"

namespace ulfm::fabric::xswitch {
namespace {

constexpr char kRoutingWords[] = "ordered|updown";
enum RoutingWord : std::uint32_t { kOrdered, kUpDown };

constexpr Options::Row kOptions[] = {{"frame", 64, 65536},
                                     {"fifo", 2, kMostFifoUnits},
                                     {"stop", 1, kMostFifoUnits},
                                     {"go", 0, kMostFifoUnits},
                                     {"link", 1, kMostLinkCycles},
                                     {"check", 0, kMostCheckUnits},
                                     {"arbitration", 0, 0, "circulating|fixed"},
                                     {"routing", 0, 0, kRoutingWords},
                                     kUnreadRow};

constexpr Preset kPresets[] = {
    // Fitted to the two figures of Zhou et al. 1999, section 4: 16 B in 6 us and 2 KB at 40.26 MB/s, one way, user to
    // user through one switch. How the time is shared between software, cards and link is ours.
    {"thgbnet",
     {.cycle_ps = 8000,
      .send_ns = 1500,
      .receive_ns = 1442,
      .card_ns = 1200,
      .card_byte_ps = 7040,
      .local_ns = 500,
      .local_byte_ps = 1000,
      .look_ns = 100}},
    // The same two figures, with cards that have a PCI bus of 32 bits at 33 MHz to themselves; the link has the rest.
    // The paper of THNPC-II has no figures in its text.
    {"thnpc2",
     {.cycle_ps = 6928,
      .send_ns = 1500,
      .receive_ns = 1476,
      .card_ns = 1200,
      .card_byte_ps = 7576,
      .local_ns = 500,
      .local_byte_ps = 1000,
      .look_ns = 100}},
};

// What the model keeps in front of the network: the routes that hold from the start and those that hold after each
// scheduled fault. All are computed before the job begins; a fault only switches to the next table.
//
// Ways are between nodes that have processes, the ends: all of a large network would take gigabytes.
//
//   Head | scheduled changes | names of switches | ends | tables of ways | ports on the ways | the network
struct Head {
  std::uint32_t nodes, switches, ports, ends;
  Changes::Size changes;
  std::uint64_t names_at, ends_at, ways_at, ports_at, ports_bytes, network_at;
};
constexpr std::uint32_t kNoEnd = ~std::uint32_t{0};
struct Way {
  std::uint32_t from;    ///< in the ports
  std::uint32_t length;  ///< 0: there is none
};
struct Name {
  char text[24];
};

constexpr std::size_t kChangesAt = up_to_line(sizeof(Head));

}  // namespace

Result<Parameters> parameters_from(ModelOptions options, const Topology& topology) {
  auto given = read_options(model_kind, options);
  if (!given) return fail(given.error());
  Parameters parameters;
  given->set(parameters.link_cycles, "link");
  const std::uint32_t slowest = topology.most_link_cycles(parameters.link_cycles);
  parameters.fifo_units = std::max(parameters.fifo_units, 4 * headroom(slowest));
  given->set(parameters.fifo_units, "fifo");
  parameters.stop_at = parameters.fifo_units * 3 / 4;
  given->set(parameters.stop_at, "stop");
  parameters.go_at = std::min(parameters.fifo_units / 4, parameters.stop_at - 1);
  given->set(parameters.go_at, "go");
  given->set(parameters.check_units, "check");
  given->set(parameters.arbitration, "arbitration");
  Parameters with_slowest = parameters;
  with_slowest.link_cycles = slowest;
  if (auto ok = check(with_slowest); !ok) return fail(std::move(ok.error()).within("xswitch"));
  return parameters;
}

namespace {

// Everything there is to know before the arena is laid out.
struct Plan {
  Parameters parameters;
  std::vector<TopologyChange> changes;
  std::vector<std::uint32_t> ends;  ///< nodes with processes, rising
  std::vector<Routes> tables;       ///< between these by their places there; at the start, and after each change
};

Result<Routes> routes_between(const std::vector<std::uint32_t>& ends, const Topology& topology, const DeadPorts& dead) {
  if (ends.size() == topology.nodes()) return compute_routes(topology, dead);
  Routes routes{static_cast<std::uint32_t>(ends.size()), {}};
  for (const std::uint32_t from : ends) {
    auto ways = compute_routes_from(topology, from, dead);
    for (const std::uint32_t to : ends) routes.way.push_back(std::move(ways[to]));
  }
  return routes;
}

/// The topology whose ways the option `routing` asks for: up*/down* is what shapes have that have no ways of their own.
Topology routed(const ModelPlan& asked) {
  Topology topology = asked.topology;
  const auto given = read_options(model_kind, asked.options);
  if (given && given->number("routing", kOrdered) == kUpDown) topology.shape = Shape::other;
  return topology;
}

Result<Plan> find_ways(const ModelPlan& asked) {
  Plan plan;
  if (asked.topology.shape == Shape::boards)
    return fail(Errc::invalid,
                fmt::format("topology {}: the boards of one host have no switches between them; take --transport pcie",
                            asked.topology.name));
  if (asked.topology.shape == Shape::hypercube)
    return fail(Errc::invalid,
                fmt::format("topology {}: a card of a generalized hypercube is no switch; take --transport pointdesign",
                            asked.topology.name));
  auto parameters = parameters_from(asked.options, asked.topology);
  if (!parameters) return fail(parameters.error());
  plan.parameters = *parameters;
  auto changes = timeline(asked.topology, asked.events);
  if (!changes) return fail(changes.error());
  plan.changes = std::move(*changes);
  if (auto ok = check_steps(plan.changes.size()); !ok) return fail(std::move(ok.error()));
  plan.ends.assign(asked.ends.begin(), asked.ends.end());
  if (plan.ends.empty()) {
    plan.ends.resize(asked.topology.nodes());
    std::iota(plan.ends.begin(), plan.ends.end(), 0u);
  }
  const DeadPorts dead;
  const Topology topology = routed(asked);
  for (std::size_t i = 0; i <= plan.changes.size(); ++i) {
    auto routes = routes_between(plan.ends, topology, i == 0 ? dead : plan.changes[i - 1].dead);
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
  head.ends = static_cast<std::uint32_t>(plan.ends.size());
  head.changes = Changes::Size::of(plan.changes);
  std::size_t ports = 0;
  for (const Routes& routes : plan.tables)
    for (const Route& way : routes.way) ports += way.size();
  head.names_at = kChangesAt + head.changes.bytes();
  head.ends_at = head.names_at + up_to_line(head.switches * sizeof(Name));
  head.ways_at = head.ends_at + up_to_line(head.nodes * sizeof(std::uint32_t));
  head.ports_at = head.ways_at + up_to_line(plan.tables.size() * std::size_t{head.ends} * head.ends * sizeof(Way));
  head.ports_bytes = ports;
  head.network_at = head.ports_at + up_to_line(ports);
  return head;
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

// By node, its place among the ends.
void write_ends(std::byte* memory, const Head& head, const std::vector<std::uint32_t>& ends) {
  auto* const end = reinterpret_cast<std::uint32_t*>(memory + head.ends_at);
  std::fill_n(end, head.nodes, kNoEnd);
  for (std::uint32_t i = 0; i < head.ends; ++i) end[ends[i]] = i;
}

Result<void> create(std::byte* memory, const Topology& topology, const Plan& plan, std::uint32_t frames) {
  const Head head = layout(topology, plan);
  *reinterpret_cast<Head*>(memory) = head;
  Changes::write(memory + kChangesAt, plan.changes);
  write_ends(memory, head, plan.ends);
  write_ways(memory, head, plan.tables);
  for (std::uint32_t s = 0; s < head.switches; ++s)
    std::snprintf(reinterpret_cast<Name*>(memory + head.names_at)[s].text, sizeof(Name), "%s",
                  switch_name(topology, s).c_str());
  auto network = Network::create(memory + head.network_at, topology, plan.parameters, frames);
  if (!network) return fail(network.error());
  return {};
}

Result<PlannedModel> make_plan(const ModelPlan& asked) {
  auto plan = find_ways(asked);
  if (!plan) return fail(plan.error());
  const std::size_t bytes =
      layout(asked.topology, *plan).network_at + Network::bytes(asked.topology, plan->parameters, asked.frames);
  return PlannedModel{bytes, [&topology = asked.topology, frames = asked.frames, plan = std::move(*plan)](
                                 std::byte* memory) { return create(memory, topology, plan, frames); }};
}

class XSwitchModel final : public Model, private ModelCycles, private ModelBackPressure {
 public:
  XSwitchModel(std::byte* memory, const Head& head, Network network)
      : memory_(memory), head_(head), changes_(memory + kChangesAt, head.changes), network_(std::move(network)) {}

  bool reaches(std::uint32_t from, std::uint32_t to) const override { return !way(from, to).empty(); }
  bool inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes) override {
    return network_.inject(frame, from, way(from, to), bytes);
  }
  std::size_t run(std::uint64_t budget, std::span<Ending> endings) override { return network_.run(budget, endings); }
  bool idle() const override { return network_.idle(); }
  std::uint32_t check_units() const override { return network_.check_units(); }

  ModelBackPressure* back_pressure() override { return this; }
  void stall(std::uint32_t node) override { network_.stall(node, kNever); }
  void resume(std::uint32_t node) override { network_.stall(node, 0); }

  ModelCycles* cycles() override { return this; }
  bool run_until(std::uint64_t time, std::uint64_t period, Ending& ending) override {
    const std::uint64_t until = time == kNothingDue ? kNever : cycle_from(time, period);
    return network_.run(kUnlimited, {&ending, 1}, until) != 0;
  }

  std::vector<LinkUse> links(std::uint64_t period) override {
    std::vector<LinkUse> all;
    for (std::uint32_t n = 0; n < head_.nodes; ++n)
      add_link(all, fmt::format("node {}", n), network_.node_counters(n), network_.peer_of_node(n), period,
               network_.unit_cycles_of_node(n));
    for (std::uint32_t s = 0; s < head_.switches; ++s)
      for (std::uint32_t p = 0; p < head_.ports; ++p)
        add_link(all, fmt::format("{}.{}", name(s), port_letter(p)), network_.counters({s, p}), network_.peer({s, p}),
                 period, network_.unit_cycles({s, p}));
    return all;
  }

  std::uint64_t due() const override { return changes_.due(); }

  void advance(std::uint64_t nanoseconds) override {
    changes_.advance(
        nanoseconds, [](std::uint64_t) {}, [this](std::uint32_t at, bool up) { network_.set_switch(at, up); },
        [this](const SwitchPort& link, bool up) { network_.set_link(link, up); });
  }

  std::string statistics() override {
    const Balance balance = network_.balance();
    std::string text = fmt::format(
        "ulfm: stats xswitch: cycles {} events {}, units entered {} inserted {} left {} stripped {} lost {} "
        "present {}{}\n",
        network_.now(), network_.events(), balance.entered, balance.inserted, balance.left, balance.stripped,
        balance.lost, balance.present, balance.holds() ? "" : ", which do not balance");
    for (std::uint32_t n = 0; n < head_.nodes; ++n)
      text += counted(fmt::format("node {}", n), network_.node_counters(n));
    for (std::uint32_t s = 0; s < head_.switches; ++s)
      for (std::uint32_t p = 0; p < head_.ports; ++p)
        text += counted(fmt::format("port {}.{}", name(s), port_letter(p)), network_.counters({s, p}));
    return text;
  }

 private:
  static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

  // A link that has carried something. Waiting is counted where it leads to: for the output behind it.
  void add_link(std::vector<LinkUse>& all, const std::string& from, const SwitchPortCounters& c, const LinkEnd& to,
                std::uint64_t period, std::uint64_t unit_cycles) {
    const ChannelCounters& out = c.out;
    if (out.frames == 0) return;
    const bool leads_on = to.kind == LinkEnd::Kind::switch_port;
    const std::uint64_t waited =
        leads_on ? network_.counters({to.index, to.port}).in.arbitration_cycles : std::uint64_t{0};
    const std::string there =
        leads_on ? fmt::format("{}.{}", name(to.index), port_letter(to.port)) : fmt::format("node {}", to.index);
    const std::uint64_t units = out.data_units + out.routing_units + out.frames;
    all.push_back({from, there, units * unit_cycles * period, waited * period, out.data_units});
  }

  // A line for what something has moved; none for what has moved nothing.
  static std::string counted(const std::string& what, const SwitchPortCounters& c) {
    if (c.out.frames == 0 && c.out.stops == 0 && c.in.arbitration_cycles == 0 && c.out.lost_units == 0) return "";
    std::string text = fmt::format(
        "ulfm: stats xswitch {}: out frames {} data {} routing {} stops {} gos {} wait cycles {} lost frames {} "
        "units {}, in arbitration cycles {} bad ends {} lost units {}, occupancy",
        what, c.out.frames, c.out.data_units, c.out.routing_units, c.out.stops, c.out.gos, c.out.wait_cycles,
        c.out.lost_frames, c.out.lost_units, c.in.arbitration_cycles, c.in.bad_ends, c.in.lost_units);
    for (const std::uint64_t cycles : c.in.occupancy) text += fmt::format(" {}", cycles);
    return fmt::format("{}\n", text);
  }

  // What lies in front of the network may be written to by others: what is read stays within the arena.
  std::string name(std::uint32_t s) const {
    const Name& name = reinterpret_cast<const Name*>(memory_ + head_.names_at)[s];
    return {name.text, strnlen(name.text, sizeof name.text)};
  }
  std::span<const std::uint8_t> way(std::uint32_t from, std::uint32_t to) const {
    if (from >= head_.nodes || to >= head_.nodes) return {};
    const auto* const end = reinterpret_cast<const std::uint32_t*>(memory_ + head_.ends_at);
    const std::uint32_t first = end[from], last = end[to];
    if (first >= head_.ends || last >= head_.ends) return {};
    const std::size_t index = (std::size_t{changes_.next()} * head_.ends + first) * head_.ends + last;
    const Way way = reinterpret_cast<const Way*>(memory_ + head_.ways_at)[index];
    if (way.from > head_.ports_bytes || way.length > head_.ports_bytes - way.from) return {};
    return {reinterpret_cast<const std::uint8_t*>(memory_ + head_.ports_at) + way.from, way.length};
  }

  std::byte* memory_;
  Head head_;  // a copy: the shared one could be changed under us
  Changes changes_;
  Network network_;
};

bool is_sane(const Head& h, std::size_t bytes) {
  const std::uint64_t ways = (std::uint64_t{h.changes.steps} + 1) * h.ends * h.ends * sizeof(Way);
  return h.nodes >= 1 && h.nodes <= 65536 && h.switches <= 65536 && h.ports <= kMaxBoards && h.ends <= h.nodes &&
         h.changes.is_sane() && h.names_at == kChangesAt + h.changes.bytes() && h.names_at <= bytes &&
         h.ends_at == h.names_at + up_to_line(h.switches * sizeof(Name)) &&
         h.ways_at == h.ends_at + up_to_line(h.nodes * sizeof(std::uint32_t)) && ways <= bytes &&
         h.ways_at <= bytes - ways && h.ports_at == h.ways_at + up_to_line(ways) && h.ports_bytes <= bytes &&
         h.ports_at <= bytes - h.ports_bytes && h.network_at == h.ports_at + up_to_line(h.ports_bytes) &&
         h.network_at <= bytes;
}

Result<std::unique_ptr<Model>> attach(std::byte* memory, std::size_t bytes) {
  const Head head = *reinterpret_cast<const Head*>(memory);
  if (bytes < kChangesAt || !is_sane(head, bytes))
    return fail(Errc::protocol, "the emulated interconnect of this job holds no network of X-Switches");
  auto network = Network::attach(memory + head.network_at, bytes - head.network_at);
  if (!network) return fail(network.error());
  return std::make_unique<XSwitchModel>(memory, head, std::move(*network));
}

}  // namespace

const ModelKind model_kind{.name = "xswitch",
                           .summary = "emulated network of X-Switches (THNPC-II, TH-GBNet)",
                           .default_topology = "th8",
                           .options = kOptions,
                           .frame = 8192,
                           .unread = kUnread,
                           .plan = make_plan,
                           .attach = attach,
                           .presets = kPresets,
                           .own_links = true,
                           .link_faults = true};

}  // namespace ulfm::fabric::xswitch
