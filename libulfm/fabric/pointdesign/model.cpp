#include "fabric/pointdesign/model.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.hpp"
#include "fabric/kit/schedule.hpp"
#include "fabric/pointdesign/network.hpp"
#include "fabric/pointdesign/order.hpp"
#include "fabric/topology/timeline.hpp"

namespace ulfm::fabric::pointdesign {
namespace {

constexpr std::uint32_t kWireBytes = 16;                      // a message on a line: header and data, 64 bits each
constexpr std::uint32_t kBroadcasts = 16;                     // there is room for at one time, besides all frames
constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 40;  // events
constexpr std::uint64_t kPointMagic = 0x3164'6f6d'6564'7470;

// head | scheduled changes | the network's arena | frames in their order.
struct PointHead {
  std::uint64_t magic;
  std::uint32_t steps;
  std::uint32_t flights;  ///< of frames for several: see Order
};
enum PointPart : std::uint32_t { kLine, kCard, kProcessor };
struct PointStep {
  std::uint64_t at;
  std::uint32_t what, up;
  std::uint32_t number;     ///< card or node
  std::uint32_t direction;  ///< of a line
};

constexpr std::size_t kStepsAt = up_to_line(sizeof(PointHead));
constexpr std::size_t network_at(std::uint32_t steps) { return kStepsAt + Schedule<PointStep>::bytes(steps); }

constexpr Options::Row kOptions[] = {{"frame", 1024, 65536},
                                     {"switching", 0, 1, "store|wormhole"},
                                     {"priority", 0, 3, "farthest|longest|history|through"},
                                     {"timeout", 1, 1 << 30},
                                     {"flits", 1, kMostFlits},
                                     {"buffer", 0, 1024},
                                     {"queues", 0, 4096},
                                     {"speed", 0, 4096},
                                     {"dma", 1, 1 << 20},
                                     {"cycle", 1, 1000000}};

// The thesis's cycle; everything else is ours.
constexpr Preset kPresets[] = {
    {"pointdesign",
     {.cycle_ps = 10000, .send_ns = 500, .receive_ns = 500, .local_ns = 200, .local_byte_ps = 125, .look_ns = 50}}};

// The option "cycle" is in nanoseconds; cycle_ps, which every model has, is the more exact of the two.
void take_cycle(const Options& given, Durations& durations) {
  const std::int64_t cycle = given.number("cycle", -1);
  if (cycle >= 0 && given.number("cycle_ps", -1) < 0)
    durations.cycle = static_cast<std::uint64_t>(cycle) * kPicosecondsPerNanosecond;
}

Result<std::vector<PointStep>> steps_of(const Topology& topology, std::span<const FaultEvent> events) {
  auto changes = timeline(topology, events);
  if (!changes) return fail(changes.error());
  const std::uint32_t directions = topology.dimension * topology.radix;
  std::vector<PointStep> steps;
  for (const TopologyChange& change : *changes) {
    if (change.dead_switch >= 0)
      steps.push_back({change.at, kCard, change.up, static_cast<std::uint32_t>(change.dead_switch), 0});
    for (const SwitchPort& link : change.links)
      if (link.port < directions) steps.push_back({change.at, kLine, change.up, link.at, link.port});
      else steps.push_back({change.at, kProcessor, change.up, topology.end(link).index, 0});
  }
  if (auto ok = check_steps(steps.size()); !ok) return fail(std::move(ok.error()));
  return steps;
}

std::size_t order_at(std::uint32_t steps, const Parameters& p) { return network_at(steps) + Network::bytes(p); }
std::size_t bytes_of(std::uint32_t steps, const Parameters& p, std::uint32_t flights) {
  return order_at(steps, p) + Order::bytes(p.geometry().nodes(), p.frames, flights);
}
std::uint32_t flights_of(const ModelPlan& asked, const Parameters& p) {
  return kBroadcasts * std::min(asked.endpoints, p.geometry().nodes());
}

Result<PlannedModel> make_plan(const ModelPlan& asked) {
  auto parameters = parameters_for(asked.topology, asked.options);
  if (!parameters) return fail(parameters.error());
  Parameters p = *parameters;
  p.frames = asked.frames;
  p.copies = asked.frames + kBroadcasts * p.geometry().cards;
  if (auto ok = check(p); !ok) return fail(std::move(ok.error()).within("pointdesign"));
  auto steps = steps_of(asked.topology, asked.events);
  if (!steps) return fail(steps.error());
  const auto count = static_cast<std::uint32_t>(steps->size());
  const std::uint32_t flights = flights_of(asked, p);
  return PlannedModel{bytes_of(count, p, flights),
                      [p, count, flights, steps = std::move(*steps)](std::byte* memory) -> Result<void> {
                        *reinterpret_cast<PointHead*>(memory) = {kPointMagic, count, flights};
                        Schedule<PointStep>::write(memory + kStepsAt, steps);
                        Network::create(memory + network_at(count), p);
                        return {};
                      }};
}

class PointModel final : public Model, private ModelCycles, private ModelMulticast {
 public:
  PointModel(std::byte* memory, std::uint32_t steps, std::uint32_t flights, Network network)
      : schedule_(memory + kStepsAt, steps),
        network_(std::move(network)),
        order_(memory + order_at(steps, network_.parameters()), network_.geometry().nodes(),
               network_.parameters().frames, flights) {}

  bool reaches(std::uint32_t from, std::uint32_t to) const override { return network_.reaches(from, to); }
  bool inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes) override {
    if (!network_.inject(frame, from, to, bytes)) return false;
    order_.add(frame, from, to);
    return true;
  }
  std::size_t run(std::uint64_t budget, std::span<Ending> endings) override {
    if (order_.empty()) {
      const std::size_t ended = network_.run(budget, endings);
      for (std::size_t i = 0; i < ended; ++i) order_.ended(endings[i]);
    }
    return order_.take(endings);
  }
  bool idle() const override { return network_.idle() && order_.empty(); }

  ModelMulticast* multicast() override { return this; }
  std::uint32_t bytes_per_cycle() const override { return 8 * network_.parameters().dma; }
  std::uint32_t places() const override { return network_.geometry().cards; }
  bool inject_multicast(FrameId frame, std::uint32_t from, std::span<const std::uint32_t> to,
                        std::uint32_t bytes) override;

  ModelCycles* cycles() override { return this; }
  bool run_until(std::uint64_t time, std::uint64_t period, Ending& ending) override {
    const std::uint64_t until = time == kNothingDue ? kNever : cycle_from(time, period) - 1;
    while (order_.take({&ending, 1}) == 0) {
      if (network_.run(kUnlimited, {&ending, 1}, until) == 0) return false;
      order_.ended(ending);
    }
    return true;
  }
  std::vector<LinkUse> links(std::uint64_t period) override;

  std::uint64_t due() const override { return schedule_.due(); }
  void advance(std::uint64_t nanoseconds) override {
    schedule_.advance(nanoseconds, [this](const PointStep& now) {
      if (now.what == kCard) network_.set_card(now.number, now.up != 0);
      else if (now.what == kLine) network_.set_line(now.number, now.direction, now.up != 0);
      else network_.set_processor(now.number, now.up != 0);
    });
  }

  std::string statistics() override;

 private:
  std::string card_name(std::uint32_t card) const;
  std::string card_lines(std::uint32_t card) const;
  std::string port_lines(std::uint32_t node) const;
  std::string line_lines(std::uint32_t line) const;

  Schedule<PointStep> schedule_;
  mutable Network network_;  // remembers ways it has found
  Order order_;
};

std::vector<LinkUse> PointModel::links(std::uint64_t period) {
  const CardGeometry& g = network_.geometry();
  const std::uint64_t flits = network_.parameters().flits;
  std::vector<LinkUse> all;
  for (std::uint32_t line = 0; line < g.lines(); ++line) {
    const std::uint64_t messages = network_.line(line).messages;
    if (messages == 0) continue;
    std::uint64_t waited = 0;
    for (std::uint32_t q = 0; q <= g.processors; ++q) waited += network_.queue(line, q).waited;
    all.push_back({card_name(g.line_source(line)), card_name(g.line_target(line)), messages * flits * period,
                   waited * period, messages * kWireBytes});
  }
  return all;
}

// To one only it is a unicast. Whom there is no way to does not get it, and all others do.
bool PointModel::inject_multicast(FrameId frame, std::uint32_t from, std::span<const std::uint32_t> to,
                                  std::uint32_t bytes) {
  if (!order_.add_many(frame, from, to)) return false;
  std::vector<std::uint32_t> reached;
  std::copy_if(to.begin(), to.end(), std::back_inserter(reached),
               [&](std::uint32_t node) { return network_.reaches(from, node); });
  if (!reached.empty() && !network_.inject_multicast(frame, from, reached, bytes, true)) {
    order_.undo_many(frame);
    return false;
  }
  if (reached.size() != to.size())
    for (const std::uint32_t node : to)
      if (std::find(reached.begin(), reached.end(), node) == reached.end()) order_.lost(frame, node, network_.now());
  return true;
}

// ---- counters as text -----------------------------------------------------------------------------------------------

std::string PointModel::card_name(std::uint32_t card) const {
  const CardGeometry& g = network_.geometry();
  std::string name = "c";
  for (std::uint32_t s = g.dimensions; s-- > 0;) name += fmt::format("{}{}", g.digit(card, s), s == 0 ? "" : "_");
  return name;
}

std::string PointModel::card_lines(std::uint32_t card) const {
  const CardCounters& c = network_.card(card);
  std::string text;
  if (c.arrived + c.through + c.rerouted + c.lost != 0)
    text = fmt::format(
        "ulfm: stats pointdesign card {}: arrived {} delivered {} through {} rerouted {} lost {} fetches {} bytes {}\n",
        card_name(card), c.arrived, c.delivered, c.through, c.rerouted, c.lost, c.fetches, c.fetched_bytes);
  const std::uint32_t processors = network_.geometry().processors;
  for (std::uint32_t q = 0; q < processors; ++q) text += port_lines(card * processors + q);
  return text;
}

std::string PointModel::port_lines(std::uint32_t node) const {
  const CardGeometry& g = network_.geometry();
  std::string text;
  for (std::uint32_t port = 0; port < g.ports(); ++port) {
    const CoprocessorPortCounters& c = network_.port(node, port);
    if (c.unicasts + c.multicasts + c.broadcasts == 0) continue;
    text += fmt::format(
        "ulfm: stats pointdesign port {}.p{} {}: unicasts {} multicasts {} broadcasts {}, decoders upper {} lower {}, "
        "copies {}\n",
        card_name(g.card_of(node)), g.processor_of(node), port, c.unicasts, c.multicasts, c.broadcasts, c.upper,
        c.lower, c.copies);
  }
  return text;
}

std::string PointModel::line_lines(std::uint32_t line) const {
  const CardGeometry& g = network_.geometry();
  const LineCounters& c = network_.line(line);
  if (c.messages == 0) return "";
  const std::string name = fmt::format("{}-{}", card_name(g.line_source(line)), card_name(g.line_target(line)));
  std::string text = fmt::format("ulfm: stats pointdesign line {}: messages {} turned away {} forced {}\n", name,
                                 c.messages, c.refused, c.forced);
  for (std::uint32_t q = 0; q <= g.processors; ++q) {
    const QueueCounters& queue = network_.queue(line, q);
    if (queue.most == 0) continue;
    text += fmt::format("ulfm: stats pointdesign queue {} {}: sent {} waited cycles {} timeouts {} most {} now {}\n",
                        name, q == g.processors ? "through" : fmt::format("p{}", q), queue.sent, queue.waited,
                        queue.timeouts, queue.most, network_.queued(line, q));
  }
  return text;
}

std::string PointModel::statistics() {
  const CardGeometry& g = network_.geometry();
  const Totals& t = network_.totals();
  std::string text = fmt::format(
      "ulfm: stats pointdesign: cycles {}, ns each {}, messages entered {} left {} lost {}, commands {} messages of "
      "the coprocessors {}\n",
      network_.now(), network_.parameters().cycle, t.entered, t.left, t.lost, t.commands, t.messages);
  for (std::uint32_t card = 0; card < g.cards; ++card) text += card_lines(card);
  for (std::uint32_t line = 0; line < g.lines(); ++line) text += line_lines(line);
  return text;
}

Result<std::unique_ptr<Model>> attach(std::byte* memory, std::size_t bytes) {
  const auto* head = reinterpret_cast<const PointHead*>(memory);
  const auto wrong = [] { return fail(Errc::protocol, "the emulated interconnect of this job holds no point design"); };
  if (bytes < kStepsAt || head->magic != kPointMagic || head->steps > kMostSteps || network_at(head->steps) > bytes)
    return wrong();
  const std::uint32_t steps = head->steps;
  auto network = Network::attach(memory + network_at(steps), bytes - network_at(steps));
  if (!network) return fail(network.error());
  if (head->flights > 1u << 20 || bytes_of(steps, network->parameters(), head->flights) > bytes) return wrong();
  return std::make_unique<PointModel>(memory, steps, head->flights, std::move(*network));
}

}  // namespace

Result<Parameters> parameters_for(const Topology& topology, ModelOptions options) {
  if (topology.shape != Shape::hypercube)
    return fail(Errc::invalid,
                fmt::format("topology {}: pointdesign has cards in a generalized hypercube; write gh:NxKxP, such as "
                            "gh:2x4x8 for two dimensions of four cards with eight processors each",
                            topology.name));
  auto given = read_options(model_kind, options);
  if (!given) return fail(given.error());
  Parameters p;
  p.dimensions = topology.dimension, p.radix = topology.radix, p.processors = topology.card_processors;
  given->set(p.switching, "switching");
  given->set(p.policy, "priority");
  given->set(p.timeout, "timeout");
  given->set(p.flits, "flits");
  given->set(p.buffer, "buffer");
  given->set(p.queues, "queues");
  given->set(p.speed, "speed");
  given->set(p.dma, "dma");
  given->set(p.cycle, "cycle");
  if (p.queues > p.dimensions * p.radix)
    return fail(Errc::invalid,
                fmt::format("pointdesign: queues={}: a card sends to {}, and has no more queues than that", p.queues,
                            counted(p.dimensions * p.radix, "card")));
  return p;
}

const ModelKind model_kind{.name = "pointdesign",
                           .summary = "emulated generalized hypercube with multicast (NJIT Point Design)",
                           .default_topology = "gh:2x4x8",
                           .options = kOptions,
                           .frame = 16384,
                           .plan = make_plan,
                           .attach = attach,
                           .divides = true,
                           .multicast = true,
                           .presets = kPresets,
                           .adjust_durations = take_cycle,
                           .copies = 8 * 1024,  // fits into one of its messages beside the list of the receivers
                           .link_faults = true};

}  // namespace ulfm::fabric::pointdesign
