#include "fabric/ideal/model.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "fabric/ideal/network.hpp"

namespace ulfm::fabric::ideal {
namespace {

constexpr Options::Row kOptions[] = {{"frame", 64, 65536},
                                     {"latency", 1, kMostCycles},
                                     {"overhead", 0, kMostCycles},
                                     {"gap", 0, kMostCycles},
                                     {"byte", 0, kMostCycles}};

// A cycle is a nanosecond. LogGP's o is the software of a message.
constexpr Preset kPresets[] = {{"loggp", {.cycle_ps = 1000, .local_ns = 200, .local_byte_ps = 125, .look_ns = 50}}};

void take_overhead(const Options& given, Durations& durations) {
  const std::int64_t cycles = given.number("overhead", Parameters{}.overhead);
  durations.send = durations.receive = static_cast<std::uint64_t>(cycles) * durations.cycle;
  durations.system_send = durations.system_receive = durations.send;
}

Result<PlannedModel> make_plan(const ModelPlan& asked) {
  if (!asked.events.empty())
    return fail(Errc::invalid,
                "ideal: an ideal network has no links and switches that could fail; take --transport "
                "xswitch for scheduled faults");
  auto parameters = parameters_from(asked.options);
  if (!parameters) return fail(std::move(parameters.error()));
  // In virtual time o is the time of the processes themselves (durations.cpp), so the network has no part in it. A node
  // has several processes then, so it needs a gap.
  if (asked.period != 0) parameters->overhead = 0, parameters->gap = std::max(parameters->gap, 1u);
  const std::uint32_t nodes = asked.topology.nodes(), frames = asked.frames;
  return PlannedModel{Network::bytes(nodes, frames), [=, p = *parameters](std::byte* memory) -> Result<void> {
                        auto network = Network::create(memory, nodes, frames, p);
                        if (!network) return fail(std::move(network.error()));
                        return {};
                      }};
}

class IdealModel final : public Model, private ModelCycles {
 public:
  explicit IdealModel(const Network& network) : network_(network) {}

  bool reaches(std::uint32_t from, std::uint32_t to) const override {
    return from != to && from < network_.nodes() && to < network_.nodes();
  }
  bool inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes) override {
    return network_.inject(frame, from, to, bytes);
  }
  std::size_t run(std::uint64_t budget, std::span<Ending> endings) override { return network_.run(budget, endings); }
  bool idle() const override { return network_.idle(); }

  ModelCycles* cycles() override { return this; }
  bool run_until(std::uint64_t time, std::uint64_t period, Ending& ending) override {
    const std::uint64_t until = time == kNothingDue ? kNever : cycle_from(time, period);
    return network_.run(1, {&ending, 1}, until) != 0;
  }
  // There is nothing to wait for in an ideal network but the node's own earlier messages.
  std::vector<LinkUse> links(std::uint64_t period) override {
    std::vector<LinkUse> all;
    for (std::uint32_t n = 0; n < network_.nodes(); ++n)
      if (network_.busy(n) != 0)
        all.push_back({fmt::format("node {}", n), "network", network_.busy(n) * period, network_.waited(n) * period,
                       network_.sent_bytes(n)});
    return all;
  }

  std::uint64_t due() const override { return kNothingDue; }
  void advance(std::uint64_t) override {}
  std::string statistics() override {
    return fmt::format("ulfm: stats ideal: cycles {}, messages taken {} ended {} present {}, bytes {}{}\n",
                       network_.now(), network_.taken(), network_.ended(), network_.inside(), network_.ended_bytes(),
                       network_.taken() == network_.ended() + network_.inside() ? "" : ", which do not balance");
  }

 private:
  Network network_;
};

Result<std::unique_ptr<Model>> attach(std::byte* memory, std::size_t bytes) {
  auto network = Network::attach(memory, bytes);
  if (!network) return fail(std::move(network.error()).within("the emulated interconnect of this job"));
  return std::make_unique<IdealModel>(*network);
}

}  // namespace

Result<Parameters> parameters_from(ModelOptions options) {
  auto given = read_options(model_kind, options);
  if (!given) return fail(std::move(given.error()));
  Parameters p;
  given->set(p.latency, "latency");
  given->set(p.overhead, "overhead");
  given->set(p.gap, "gap");
  given->set(p.byte, "byte");
  if (auto ok = check(p); !ok) return fail(std::move(ok.error()).within("ideal"));
  return p;
}

const ModelKind model_kind{.name = "ideal",
                           .summary = "emulated ideal network: LogGP, no contention",
                           .default_topology = "single:8",
                           .options = kOptions,
                           .frame = 8192,
                           .plan = make_plan,
                           .attach = attach,
                           .presets = kPresets,
                           .adjust_durations = take_overhead};

}  // namespace ulfm::fabric::ideal
