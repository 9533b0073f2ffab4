#include "fabric/pcie/model.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "fabric/kit/schedule.hpp"
#include "fabric/pcie/relay.hpp"
#include "fabric/topology/timeline.hpp"

namespace ulfm::fabric::pcie {
namespace {

constexpr std::uint32_t kDefaultFrame = 16384;
constexpr std::uint32_t kDefaultFragment = 4096;
constexpr std::uint64_t kDefaultPool = 512 * 1024;
constexpr std::uint64_t kDefaultMemory = 16 * 1024 * 1024;
constexpr std::uint32_t kDefaultLanes = 4;     // in virtual time
constexpr std::uint32_t kDefaultLatency = 50;  // cycles
constexpr std::int32_t kHost = -1;
constexpr std::int32_t kNothing = -2;  // a change without an effect
constexpr std::uint64_t kMagic = 0x6579'616c'6572'3350;

constexpr Options::Row kOptions[] = {{"frame", 1024, kMostMessage},
                                     {"fragment", 64, kMostMessage},
                                     {"pool", 1024, std::int64_t{1} << 30},
                                     {"memory", 1024, std::int64_t{1} << 34},
                                     {"mode", 0, 1, "store|cut-through"},
                                     {"lanes", 1, kMostLanes},
                                     {"latency", 0, 1 << 20}};

// A generation of PCI Express.
constexpr Times generation(std::uint64_t byte_ps) {
  return {
      .cycle_ps = byte_ps, .send_ns = 1000, .receive_ns = 1000, .local_ns = 500, .local_byte_ps = 250, .look_ns = 50};
}

// A byte on one lane: 8 of 10 bits are data, and 128 of 130 in the third generation. The software is ours.
constexpr Preset kPresets[] = {{"gen2", generation(2000)}, {"gen1", generation(4000)}, {"gen3", generation(1016)}};

// In front of the relay's arena: head | scheduled changes.
struct RelayHead {
  std::uint64_t magic;
  Parameters parameters;
  std::uint32_t steps;
};
/// A board, or the host, that goes away or comes back.
struct BoardStep {
  std::uint64_t at;
  std::int32_t board;  ///< or kHost, kNothing
  std::uint32_t up;
};

constexpr std::size_t kStepsAt = up_to_line(sizeof(RelayHead));
constexpr std::size_t relay_at(std::uint32_t steps) { return kStepsAt + Schedule<BoardStep>::bytes(steps); }

}  // namespace

Result<Parameters> parameters_from(ModelOptions options, const Topology& topology, std::uint32_t processes,
                                   std::uint32_t frames) {
  if (topology.shape != Shape::boards)
    return fail(
        Errc::invalid,
        fmt::format("topology {}: pcie has boards in the slots of a host; write boards:BxP, such as boards:8x16",
                    topology.name));
  auto given = read_options(model_kind, options);
  if (!given) return fail(given.error());
  Parameters p;
  p.boards = topology.nodes();
  p.processes = processes;
  p.frames = frames;
  p.message = static_cast<std::uint32_t>(given->number("frame", kDefaultFrame));
  p.fragment = static_cast<std::uint32_t>(given->number("fragment", std::min(kDefaultFragment, p.message)));
  p.pool = static_cast<std::uint64_t>(given->number("pool", kDefaultPool));
  p.memory = static_cast<std::uint64_t>(given->number("memory", kDefaultMemory));
  p.cut_through = given->number("mode", 0) == 1;
  if (auto ok = check(p); !ok) return fail(std::move(ok.error()).within("pcie"));
  return p;
}

namespace {

// The only links there are lead to a board each.
BoardStep step_of(const TopologyChange& change) {
  const std::int32_t board = change.dead_switch >= 0 ? kHost
                             : change.links.empty()  ? kNothing
                                                     : static_cast<std::int32_t>(change.links[0].port);
  return {change.at, board, change.up};
}

Result<PlannedModel> make_plan(const ModelPlan& asked) {
  auto parameters = parameters_from(asked.options, asked.topology, std::max(asked.endpoints, 1u), asked.frames);
  if (!parameters) return fail(parameters.error());
  if (asked.period != 0) {
    auto given = read_options(model_kind, asked.options);
    if (!given) return fail(given.error());
    parameters->lanes = static_cast<std::uint8_t>(given->number("lanes", kDefaultLanes));
    parameters->latency = static_cast<std::uint32_t>(given->number("latency", kDefaultLatency));
  }
  auto changes = timeline(asked.topology, asked.events);
  if (!changes) return fail(changes.error());
  if (auto ok = check_steps(changes->size()); !ok) return fail(std::move(ok.error()));
  std::vector<BoardStep> steps;
  for (const TopologyChange& change : *changes) steps.push_back(step_of(change));
  const auto count = static_cast<std::uint32_t>(steps.size());
  return PlannedModel{relay_at(count) + Relay::bytes(*parameters),
                      [p = *parameters, steps = std::move(steps), count](std::byte* memory) -> Result<void> {
                        *reinterpret_cast<RelayHead*>(memory) = {kMagic, p, count};
                        Schedule<BoardStep>::write(memory + kStepsAt, steps);
                        Relay(memory + relay_at(count), p).build();
                        return {};
                      }};
}

class PcieModel final : public Model, private ModelCycles, private ModelPools, private ModelRecovery {
 public:
  PcieModel(std::byte* memory, const Parameters& parameters, std::uint32_t steps)
      : p_(parameters), schedule_(memory + kStepsAt, steps), relay_(memory + relay_at(steps), parameters) {}

  bool reaches(std::uint32_t from, std::uint32_t to) const override { return relay_.reaches(from, to); }
  bool inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes) override {
    return relay_.post(frame, {from, to, 0, 0, 0, bytes});
  }
  bool inject_between(const Parties& parties, FrameId frame, std::uint32_t from, std::uint32_t to,
                      std::uint32_t bytes) override {
    return relay_.post(frame, {from, to, parties.from, parties.to, parties.to_port, bytes});
  }
  std::size_t run(std::uint64_t budget, std::span<Ending> endings) override { return relay_.run(budget, endings); }
  bool idle() const override { return relay_.idle(); }

  ModelCycles* cycles() override { return this; }
  bool run_until(std::uint64_t time, std::uint64_t period, Ending& ending) override {
    return relay_.run_timed(time == kNothingDue ? Relay::kNever : cycle_from(time, period) - 1, ending);
  }
  std::vector<LinkUse> links(std::uint64_t period) override;

  ModelPools* pools() override { return this; }
  bool release(std::uint32_t process, std::uint32_t port, std::uint32_t bytes) override {
    return relay_.release(process, port, bytes);
  }
  void woken(std::uint32_t process) override { relay_.woken(process); }

  ModelRecovery* recovery() override { return this; }
  bool recover() override { return relay_.recover(); }
  void settle(FrameId frame) override { relay_.settle(frame); }
  bool has_frame(FrameId frame) const override { return relay_.is_used(frame); }

  std::uint64_t due() const override { return schedule_.due(); }
  void advance(std::uint64_t nanoseconds) override {
    schedule_.advance(nanoseconds, [this](const BoardStep& now) {
      if (now.board == kHost) relay_.set_host(now.up != 0);
      else if (now.board != kNothing) relay_.set_board(static_cast<std::uint32_t>(now.board), now.up != 0);
    });
  }

  std::string statistics() override;

 private:
  Parameters p_;  // a copy: the shared one could be changed under us
  Schedule<BoardStep> schedule_;
  Relay relay_;
};

std::vector<LinkUse> PcieModel::links(std::uint64_t period) {
  std::vector<LinkUse> all;
  for (std::uint32_t b = 0; b < p_.boards && p_.lanes != 0; ++b)
    for (const bool up : {true, false}) {
      const RelayWire& wire = relay_.wire(b, up);
      const std::string board = fmt::format("board {}", b);
      if (wire.bytes != 0)
        all.push_back({up ? board : "host", up ? "host" : board, wire.busy * period, wire.waited * period, wire.bytes});
    }
  return all;
}

std::string board_line(std::uint32_t board, const BoardCounters& c) {
  return fmt::format(
      "ulfm: stats pcie board {}: control packets {} data packets {} bytes up {}, packets down {} bytes down {}, lost "
      "messages {}\nulfm: stats pcie slot {}: stored {} most stored {}\n",
      board, c.control_packets, c.data_packets, c.bytes_up, c.packets_down, c.bytes_down, c.lost_messages, board,
      c.stored, c.most_stored);
}

std::string pool_line(std::uint32_t process, std::uint32_t port, const PoolCounters& c) {
  return fmt::format(
      "ulfm: stats pcie pool {}.{}: messages {} bytes {} most used {} full {} waited turns {} delay turns {} most "
      "delay "
      "{}\n",
      process, port, c.messages, c.bytes, c.most_used, c.full, c.waited, c.delay, c.most_delay);
}

std::string PcieModel::statistics() {
  const HostCounters h = relay_.host();
  std::string text = fmt::format(
      "ulfm: stats pcie: turns {} steps {}, messages entered {} left {} lost {} present {}, bytes in {} out {} lost {} "
      "stored {}, most stored {} most reserved {} of {}{}\n",
      relay_.now(), relay_.steps(), h.entered, h.left, h.lost, h.present, h.bytes_in, h.bytes_out, h.bytes_lost,
      h.stored, h.most_stored, h.most_reserved, p_.memory, h.balances() ? "" : ", which do not balance");
  for (std::uint32_t b = 0; b < p_.boards; ++b)
    if (const BoardCounters c = relay_.board(b); c.control_packets + c.packets_down + c.lost_messages != 0)
      text += board_line(b, c);
  for (std::uint32_t process = 0; process < p_.processes; ++process)
    for (std::uint32_t port = 0; port < kPortsPerProcess; ++port)
      if (const PoolCounters c = relay_.pool(process, port); c.messages + c.full != 0)
        text += pool_line(process, port, c);
  return text;
}

Result<std::unique_ptr<Model>> attach(std::byte* memory, std::size_t bytes) {
  const auto* head = reinterpret_cast<const RelayHead*>(memory);
  const auto wrong = [] {
    return fail(Errc::protocol, "the emulated interconnect of this job holds no host with boards");
  };
  if (bytes < kStepsAt || head->magic != kMagic) return wrong();
  const Parameters parameters = head->parameters;
  const std::uint32_t steps = head->steps;
  if (steps > kMostSteps || !check(parameters) || relay_at(steps) + Relay::bytes(parameters) > bytes) return wrong();
  return std::make_unique<PcieModel>(memory, parameters, steps);
}

}  // namespace

const ModelKind model_kind{.name = "pcie",
                           .summary = "emulated boards in the slots of a PC, whose host passes messages on",
                           .default_topology = "boards:2x64",
                           .options = kOptions,
                           .frame = kDefaultFrame,
                           .plan = make_plan,
                           .attach = attach,
                           .divides = true,
                           .program = "ulfm_hostd",
                           .presets = kPresets,
                           .control = true,  // Fang and Lei 2017, section 3: two channels
                           .link_faults = true};

}  // namespace ulfm::fabric::pcie
