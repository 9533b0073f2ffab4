#include "fabric/dcm/model.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "fabric/dcm/network.hpp"
#include "fabric/dcm/words.hpp"
#include "fabric/kit/changes.hpp"

namespace ulfm::fabric::dcm {
namespace {

// Software of 1988: what is left of 350 us when the hardware has had its part, half at each side.
constexpr std::uint32_t kSoftwareCycles = 165 * kCyclesPerMicrosecond;

constexpr Options::Row kOptions[] = {{"frame", 64, 65536},
                                     {"fifo", 16, kMostFifoWords},
                                     {"stop", 5, kMostFifoWords},
                                     {"go", 1, kMostFifoWords},
                                     {"hop", 1, kMostHopCycles},
                                     {"route", 0, 1 << 20},
                                     {"dma", 1, 5},
                                     {"pace", 0, 0, "ipsc2"},
                                     kUnreadRow};

constexpr Preset kPresets[] = {
    // Pierce: about 350 us for a message without data, 95 % of it software, and less for the system's own messages; how
    // much less the text does not have. The channels are the model's own.
    {"ipsc2",
     {.cycle_ps = 142857,
      .send_ns = 165000,
      .receive_ns = 165000,
      .system_ns = 70000,
      .local_ns = 100000,
      .local_byte_ps = 100000,
      .look_ns = 10000}},
    // Store and forward by the nodes on the way, five times the latency of ipsc2 (Nugent: it has "less than one-fifth"
    // of its predecessor's). Channels of 10 Mbit/s, and what a node on the way takes, are ours.
    {"ipsc1",
     {.cycle_ps = 320000,
      .send_ns = 860000,
      .receive_ns = 860000,
      .system_ns = 400000,
      .local_ns = 100000,
      .local_byte_ps = 100000,
      .look_ns = 10000,
      .forward_ns = 860000}},
};

// In front of the network: head | scheduled changes.
struct CubeHead {
  std::uint32_t dimension;
  std::uint32_t paced;
  Changes::Size changes;
};
constexpr std::size_t kChangesAt = up_to_line(sizeof(CubeHead));

struct Asked {
  Parameters parameters;
  bool paced = false;
};

Result<Asked> read(ModelOptions options) {
  auto given = read_options(model_kind, options);
  if (!given) return fail(std::move(given.error()));
  Asked asked;
  Parameters& p = asked.parameters;
  given->set(p.hop_cycles, "hop");
  given->set(p.fifo_words, "fifo");
  p.stop_at = p.fifo_words - std::min(p.fifo_words, headroom(p.hop_cycles) + p.fifo_words / 4);
  given->set(p.stop_at, "stop");
  p.go_at = p.stop_at / 2;
  given->set(p.go_at, "go");
  given->set(p.route_cycles, "route");
  given->set(p.dma_cycles, "dma");
  asked.paced = given->number("pace", -1) >= 0;
  if (asked.paced) p.send_cycles = p.receive_cycles = kSoftwareCycles;
  if (auto ok = check(p); !ok) return fail(std::move(ok.error()).within("dcm"));
  return asked;
}

Result<PlannedModel> make_plan(const ModelPlan& given) {
  if (given.topology.shape != Shape::cube)
    return fail(
        Errc::invalid,
        fmt::format(
            "dcm: Direct-Connect routers are linked as a hypercube; the topology must be cube:0 to cube:7, not {}",
            given.topology.name));
  auto asked = read(given.options);
  if (!asked) return fail(asked.error());
  auto changes = timeline(given.topology, given.events);
  if (!changes) return fail(changes.error());
  if (auto ok = check_steps(changes->size()); !ok) return fail(std::move(ok.error()));
  const CubeHead head{given.topology.dimension, asked->paced ? 1u : 0u, Changes::Size::of(*changes)};
  const std::size_t network_at = kChangesAt + head.changes.bytes();
  return PlannedModel{network_at + Network::bytes(head.dimension, given.frames),
                      [head, network_at, p = asked->parameters, frames = given.frames,
                       changes = std::move(*changes)](std::byte* memory) -> Result<void> {
                        *reinterpret_cast<CubeHead*>(memory) = head;
                        Changes::write(memory + kChangesAt, changes);
                        auto network = Network::create(memory + network_at, head.dimension, p, frames);
                        if (!network) return fail(network.error());
                        return {};
                      }};
}

/// The first cycle that is not over at that time.
std::uint64_t cycle_at(std::uint64_t nanoseconds) {
  return nanoseconds / 1000 * kCyclesPerMicrosecond + nanoseconds % 1000 * kCyclesPerMicrosecond / 1000 + 1;
}
/// When a cycle is over.
std::uint64_t time_of(std::uint64_t cycle) {
  return (cycle * 1000 + kCyclesPerMicrosecond - 1) / kCyclesPerMicrosecond;
}

class DcmModel final : public Model, private ModelCycles, private ModelPace, private ModelBackPressure {
 public:
  DcmModel(std::byte* memory, const CubeHead& head, Network network)
      : head_(head), changes_(memory + kChangesAt, head.changes), network_(std::move(network)) {}

  bool reaches(std::uint32_t from, std::uint32_t to) const override { return network_.reaches(from, to); }
  bool inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes) override {
    return network_.inject(frame, from, to, bytes, true);
  }
  bool inject_between(const Parties& parties, FrameId frame, std::uint32_t from, std::uint32_t to,
                      std::uint32_t bytes) override {
    return network_.inject(frame, from, to, bytes, !parties.goes_on);
  }
  std::size_t run(std::uint64_t budget, std::span<Ending> endings) override {
    return network_.run(budget, endings, is_paced() ? network_.now() : kNever);
  }
  bool idle() const override { return is_paced() ? network_.ended() == 0 : network_.idle(); }

  ModelBackPressure* back_pressure() override { return this; }
  void stall(std::uint32_t node) override { network_.stall(node, kNever); }
  void resume(std::uint32_t node) override { network_.stall(node, 0); }

  ModelPace* pace() override { return is_paced() ? this : nullptr; }
  std::uint64_t next_event() const override {
    const std::uint64_t cycle = network_.next_event();
    return cycle == kNever ? kNothingDue : time_of(cycle);
  }
  void advance_all(std::uint64_t nanoseconds) override {
    const auto catch_up = [this](std::uint64_t time) { network_.catch_up(cycle_at(time)); };
    change(nanoseconds, catch_up);
    catch_up(nanoseconds);
  }

  ModelCycles* cycles() override { return this; }
  bool run_until(std::uint64_t time, std::uint64_t period, Ending& ending) override {
    const std::uint64_t until = time == kNothingDue ? kNever : cycle_from(time, period);
    return network_.run(std::uint64_t{1} << 40, {&ending, 1}, until) != 0;
  }

  std::vector<LinkUse> links(std::uint64_t period) override {
    std::vector<LinkUse> all;
    for (std::uint32_t router = 0; router < 1u << head_.dimension; ++router)
      for (std::uint32_t way = 0; way < kWays; ++way) {
        const CircuitCounters c = network_.counters(router, way);
        if (c.messages == 0) continue;
        const std::string to = way == kNode      ? fmt::format("node {}", router)
                               : way == kGateway ? fmt::format("gateway {}", router)
                                                 : fmt::format("router {}", router ^ 1u << way);
        all.push_back(
            {fmt::format("router {}", router), to, c.held_cycles * period, c.blocked_cycles * period, c.words * 2});
      }
    return all;
  }

  std::uint64_t due() const override { return changes_.due(); }
  void advance(std::uint64_t nanoseconds) override {
    change(nanoseconds, [](std::uint64_t) {});
  }

  std::string statistics() override {
    const WordBalance balance = network_.balance();
    std::string text =
        fmt::format("ulfm: stats dcm: cycles {} events {}, words entered {} left {} stripped {} lost {} present {}{}\n",
                    network_.now(), network_.events(), balance.entered, balance.left, balance.stripped, balance.lost,
                    balance.present, balance.holds() ? "" : ", which do not balance");
    for (std::uint32_t router = 0; router < 1u << head_.dimension; ++router)
      for (std::uint32_t way = 0; way < kWays; ++way) text += counted(router, way, network_.counters(router, way));
    return text;
  }

 private:
  bool is_paced() const { return head_.paced != 0; }

  // Scheduled faults; `catch_up` brings the network to the moment of each.
  template <typename CatchUp>
  void change(std::uint64_t nanoseconds, CatchUp catch_up) {
    changes_.advance(
        nanoseconds, catch_up, [this](std::uint32_t router, bool up) { network_.set_router(router, up); },
        [this](const SwitchPort& link, bool up) {
          network_.set_channel(link.at, link.port == head_.dimension ? kNode : link.port, up);
        });
  }

  // A line for what something has moved; none for what has moved nothing.
  static std::string counted(std::uint32_t router, std::uint32_t way, const CircuitCounters& c) {
    if (c.messages == 0 && c.blocked == 0) return "";
    const std::string name = way == kNode ? "sink" : way == kGateway ? "gateway" : fmt::format("channel {}", way);
    return fmt::format(
        "ulfm: stats dcm router {} {}: messages {} words {} probes {} short probes {} held cycles {} blocked {} for "
        "cycles {} throttles {} lost messages {}\n",
        router, name, c.messages, c.words, c.probes, c.short_probes, c.held_cycles, c.blocked, c.blocked_cycles,
        c.throttles, c.lost);
  }

  CubeHead head_;  // a copy: the shared one could be changed under us
  Changes changes_;
  Network network_;
};

Result<std::unique_ptr<Model>> attach(std::byte* memory, std::size_t bytes) {
  const CubeHead head = *reinterpret_cast<const CubeHead*>(memory);
  const std::size_t network_at = kChangesAt + head.changes.bytes();
  if (bytes < kChangesAt || head.dimension > kMaxDimensions || !head.changes.is_sane() || network_at > bytes)
    return fail(Errc::protocol, "the emulated interconnect of this job holds no Direct-Connect routers");
  auto network = Network::attach(memory + network_at, bytes - network_at);
  if (!network) return fail(network.error());
  return std::make_unique<DcmModel>(memory, head, std::move(*network));
}

}  // namespace

Result<Parameters> parameters_from(ModelOptions options) {
  auto asked = read(options);
  if (!asked) return fail(std::move(asked.error()));
  return asked->parameters;
}

const ModelKind model_kind{
    .name = "dcm",
    .summary = "emulated hypercube of Direct-Connect routers (iPSC/2)",
    .default_topology = "cube:7",
    .options = kOptions,
    .frame = 16384,
    .unread = kUnread,
    .plan = make_plan,
    .attach = attach,
    .presets = kPresets,
    // The iPSC/2 sent the whole of a message in one: as few pieces as memory for send buffers allows.
    .piece = 512 * 1024,
    .forwards = true,
    .gateways = true,
    .link_faults = true};

}  // namespace ulfm::fabric::dcm
