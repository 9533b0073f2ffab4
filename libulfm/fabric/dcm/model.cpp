#include "fabric/dcm/model.hpp"

#include <algorithm>
#include <cstdio>

#include "fabric/dcm/network.hpp"
#include "fabric/dcm/words.hpp"
#include "fabric/options.hpp"
#include "fabric/topology/timeline.hpp"

namespace ulfm::fabric::dcm {
namespace {

constexpr std::uint32_t kDefaultFrame = 16384;
constexpr std::uint32_t kMostEvents = 256;
// Software of 1988: what is left of 350 us when the hardware has had its part, half at each side.
constexpr std::uint32_t kSoftwareCycles = 165 * kCyclesPerMicrosecond;

// What the model keeps in front of the network:
//
//   Head | scheduled changes | links that change | the network
struct Head {
  std::uint32_t dimension;
  std::uint32_t paced;
  std::uint32_t steps;      ///< scheduled changes
  std::uint32_t next_step;  ///< the first that has not happened
  std::uint64_t links_at, links, network_at;
};
struct Step {
  std::uint64_t at;
  std::int64_t dead_router;
  std::uint32_t first_link, links;
  std::uint32_t up;
};

constexpr std::size_t up_to_line(std::size_t n) { return (n + 63) / 64 * 64; }
constexpr std::size_t kStepsAt = up_to_line(sizeof(Head));

struct Asked {
  Parameters parameters;
  std::uint32_t frame = kDefaultFrame;
  bool paced = false;
};

Result<Asked> read_options(ModelOptions options) {
  auto given = Options::parse(
      options,
      {{"frame", 64, 65536}, {"fifo", 16, kMostFifoWords}, {"hop", 1, kMostHopCycles}, {"pace", 0, 0, "ipsc2"}});
  if (!given) return fail(std::move(given.error()).within("dcm"));
  Asked asked;
  Parameters& p = asked.parameters;
  p.hop_cycles = static_cast<std::uint32_t>(given->number("hop", p.hop_cycles));
  p.fifo_words = static_cast<std::uint32_t>(given->number("fifo", p.fifo_words));
  p.stop_at = p.fifo_words - std::min(p.fifo_words, headroom(p.hop_cycles) + p.fifo_words / 4);
  p.go_at = p.stop_at / 2;
  asked.frame = static_cast<std::uint32_t>(given->number("frame", kDefaultFrame));
  asked.paced = given->number("pace", -1) >= 0;
  if (asked.paced) p.send_cycles = p.receive_cycles = kSoftwareCycles;
  if (auto ok = check(p); !ok) return fail(std::move(ok.error()).within("dcm"));
  return asked;
}

Result<std::uint32_t> frame_bytes(ModelOptions options) {
  auto asked = read_options(options);
  if (!asked) return fail(asked.error());
  return asked->frame;
}

struct Plan {
  Asked asked;
  std::vector<TopologyChange> changes;
  Head head{};
};

Result<Plan> make_plan(const ModelPlan& given) {
  if (given.topology.shape != Shape::cube)
    return fail(Errc::invalid,
                "dcm: Direct-Connect routers are linked as a hypercube; the topology must be cube:0 to "
                "cube:7, not " +
                    given.topology.name);
  Plan plan;
  auto asked = read_options(given.options);
  if (!asked) return fail(asked.error());
  plan.asked = *asked;
  auto changes = timeline(given.topology, given.events);
  if (!changes) return fail(changes.error());
  plan.changes = std::move(*changes);
  if (plan.changes.size() > kMostEvents)
    return fail(Errc::too_large, std::to_string(plan.changes.size()) + " scheduled changes; at most " +
                                     std::to_string(kMostEvents) + " can be planned");
  Head& head = plan.head;
  head.dimension = given.topology.dimension;
  head.paced = plan.asked.paced ? 1 : 0;
  head.steps = static_cast<std::uint32_t>(plan.changes.size());
  for (const TopologyChange& change : plan.changes) head.links += change.links.size();
  head.links_at = kStepsAt + up_to_line(plan.changes.size() * sizeof(Step));
  head.network_at = head.links_at + up_to_line(head.links * sizeof(SwitchPort));
  return plan;
}

Result<std::size_t> arena_bytes(const ModelPlan& given) {
  auto plan = make_plan(given);
  if (!plan) return fail(plan.error());
  return plan->head.network_at + Network::bytes(plan->head.dimension, given.frames);
}

Result<void> create(std::byte* memory, const ModelPlan& given) {
  auto plan = make_plan(given);
  if (!plan) return fail(plan.error());
  *reinterpret_cast<Head*>(memory) = plan->head;
  auto* steps = reinterpret_cast<Step*>(memory + kStepsAt);
  auto* links = reinterpret_cast<SwitchPort*>(memory + plan->head.links_at);
  std::uint32_t link = 0;
  for (const TopologyChange& change : plan->changes) {
    *steps++ = {change.at, change.dead_switch, link, static_cast<std::uint32_t>(change.links.size()), change.up};
    for (const SwitchPort& port : change.links) links[link++] = port;
  }
  auto network =
      Network::create(memory + plan->head.network_at, plan->head.dimension, plan->asked.parameters, given.frames);
  if (!network) return fail(network.error());
  return {};
}

/// The first cycle that is not over at that time.
std::uint64_t cycle_at(std::uint64_t nanoseconds) {
  return nanoseconds / 1000 * kCyclesPerMicrosecond + nanoseconds % 1000 * kCyclesPerMicrosecond / 1000 + 1;
}
/// When a cycle is over.
std::uint64_t time_of(std::uint64_t cycle) {
  return (cycle * 1000 + kCyclesPerMicrosecond - 1) / kCyclesPerMicrosecond;
}

class DcmModel final : public Model {
 public:
  DcmModel(std::byte* memory, const Head& head, Network network)
      : memory_(memory), head_(head), network_(std::move(network)) {}

  bool reaches(std::uint32_t from, std::uint32_t to) const override { return network_.reaches(from, to); }
  bool inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes) override {
    return network_.inject(frame, from, to, bytes, true);
  }
  bool inject_between(const Parties& parties, FrameId frame, std::uint32_t from, std::uint32_t to,
                      std::uint32_t bytes) override {
    return network_.inject(frame, from, to, bytes, !parties.goes_on);
  }
  bool paced() const override { return head_.paced != 0; }

  std::size_t run(std::uint64_t budget, std::span<Ending> endings) override {
    return network_.run(budget, endings, paced() ? network_.now() : kNever);
  }
  bool idle() const override { return paced() ? network_.ended() == 0 : network_.idle(); }

  bool run_until(std::uint64_t time, std::uint64_t period, Ending& ending) override {
    const std::uint64_t until = time == kNothingDue ? kNever : cycle_from(time, period);
    return network_.run(std::uint64_t{1} << 40, {&ending, 1}, until) != 0;
  }

  std::vector<LinkUse> links(std::uint64_t period) override {
    std::vector<LinkUse> all;
    for (std::uint32_t router = 0; router < 1u << head_.dimension; ++router)
      for (std::uint32_t way = 0; way < kWays; ++way) {
        const ChannelCounters c = network_.counters(router, way);
        if (c.messages == 0) continue;
        const std::string to = way == kNode      ? "node " + std::to_string(router)
                               : way == kGateway ? "gateway " + std::to_string(router)
                                                 : "router " + std::to_string(router ^ 1u << way);
        all.push_back(
            {"router " + std::to_string(router), to, c.held_cycles * period, c.blocked_cycles * period, c.words * 2});
      }
    return all;
  }

  std::uint64_t due() const override {
    const std::uint64_t fault = next_step() < head_.steps ? step(next_step()).at : kNothingDue;
    const std::uint64_t next = paced() ? network_.next_event() : kNever;
    return next == kNever ? fault : std::min(fault, time_of(next));
  }

  void advance(std::uint64_t nanoseconds) override {
    while (next_step() < head_.steps && step(next_step()).at <= nanoseconds) {
      if (paced()) network_.catch_up(cycle_at(step(next_step()).at));
      change(step(next_step()));
      ++shared().next_step;
    }
    if (paced()) network_.catch_up(cycle_at(nanoseconds));
  }

  std::string statistics() override {
    char line[320];
    const Balance balance = network_.balance();
    std::snprintf(line, sizeof line,
                  "ulfm: stats dcm: cycles %llu events %llu, words entered %llu left %llu stripped %llu lost "
                  "%llu present "
                  "%llu%s\n",
                  value(network_.now()), value(network_.events()), value(balance.entered), value(balance.left),
                  value(balance.stripped), value(balance.lost), value(balance.present),
                  balance.holds() ? "" : ", which do not balance");
    std::string text = line;
    for (std::uint32_t router = 0; router < 1u << head_.dimension; ++router)
      for (std::uint32_t way = 0; way < kWays; ++way) text += counted(router, way, network_.counters(router, way));
    return text;
  }

 private:
  static unsigned long long value(std::uint64_t n) { return n; }

  // A line for what something has moved; none for what has moved nothing.
  static std::string counted(std::uint32_t router, std::uint32_t way, const ChannelCounters& c) {
    if (c.messages == 0 && c.blocked == 0) return "";
    const std::string name = way == kNode ? "sink" : way == kGateway ? "gateway" : "channel " + std::to_string(way);
    char line[320];
    std::snprintf(line, sizeof line,
                  "ulfm: stats dcm router %u %s: messages %llu words %llu probes %llu short probes %llu held "
                  "cycles %llu "
                  "blocked %llu for cycles %llu throttles %llu lost messages %llu\n",
                  router, name.c_str(), value(c.messages), value(c.words), value(c.probes), value(c.short_probes),
                  value(c.held_cycles), value(c.blocked), value(c.blocked_cycles), value(c.throttles), value(c.lost));
    return line;
  }

  void change(const Step& now) {
    const bool up = now.up != 0;
    if (now.dead_router >= 0) network_.set_router(static_cast<std::uint32_t>(now.dead_router), up);
    const auto* links = reinterpret_cast<const SwitchPort*>(memory_ + head_.links_at);
    for (std::uint64_t i = now.first_link;
         i < std::min<std::uint64_t>(head_.links, std::uint64_t{now.first_link} + now.links); ++i)
      network_.set_channel(links[i].at, links[i].port == head_.dimension ? kNode : links[i].port, up);
  }

  // What lies in front of the network may be written to by others: what is read stays within the arena.
  Head& shared() const { return *reinterpret_cast<Head*>(memory_); }
  std::uint32_t next_step() const { return std::min(shared().next_step, head_.steps); }
  const Step& step(std::uint32_t i) const { return reinterpret_cast<const Step*>(memory_ + kStepsAt)[i]; }

  std::byte* memory_;
  Head head_;  // a copy: the shared one could be changed under us
  Network network_;
};

bool is_sane(const Head& h, std::size_t bytes) {
  return h.dimension <= kMaxDimensions && h.steps <= kMostEvents &&
         h.links_at == kStepsAt + up_to_line(h.steps * sizeof(Step)) && h.links <= bytes / sizeof(SwitchPort) &&
         h.network_at == h.links_at + up_to_line(h.links * sizeof(SwitchPort)) && h.network_at <= bytes;
}

Result<std::unique_ptr<Model>> attach(std::byte* memory, std::size_t bytes) {
  const Head head = *reinterpret_cast<const Head*>(memory);
  if (bytes < kStepsAt || !is_sane(head, bytes))
    return fail(Errc::protocol, "the emulated interconnect of this job holds no Direct-Connect routers");
  auto network = Network::attach(memory + head.network_at, bytes - head.network_at);
  if (!network) return fail(network.error());
  return std::make_unique<DcmModel>(memory, head, std::move(*network));
}

}  // namespace

Result<Parameters> parameters_from(ModelOptions options) {
  auto asked = read_options(options);
  if (!asked) return fail(std::move(asked.error()));
  return asked->parameters;
}

const ModelKind model_kind{"dcm", "cube:7", frame_bytes, arena_bytes, create, attach, false, nullptr, true};

}  // namespace ulfm::fabric::dcm
