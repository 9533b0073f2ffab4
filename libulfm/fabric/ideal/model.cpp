#include "fabric/ideal/model.hpp"

#include <fmt/format.h>

#include "fabric/ideal/network.hpp"

namespace ulfm::fabric::ideal {
namespace {

constexpr Options::Row kOptions[] = {{"frame", 64, 65536},
                                     {"latency", 1, kMostCycles},
                                     {"overhead", 0, kMostCycles},
                                     {"gap", 0, kMostCycles},
                                     {"byte", 0, kMostCycles}};

Result<PlannedModel> make_plan(const ModelPlan& asked) {
  if (!asked.events.empty())
    return fail(Errc::invalid,
                "ideal: an ideal network has no links and switches that could fail; take --transport "
                "xswitch for scheduled faults");
  auto parameters = parameters_from(asked.options);
  if (!parameters) return fail(std::move(parameters.error()));
  const std::uint32_t nodes = asked.topology.nodes(), frames = asked.frames;
  return PlannedModel{Network::bytes(nodes, frames), [=, p = *parameters](std::byte* memory) -> Result<void> {
                        auto network = Network::create(memory, nodes, frames, p);
                        if (!network) return fail(std::move(network.error()));
                        return {};
                      }};
}

class IdealModel final : public Model {
 public:
  explicit IdealModel(Network network) : network_(std::move(network)) {}

  bool reaches(std::uint32_t from, std::uint32_t to) const override {
    return from != to && from < network_.nodes() && to < network_.nodes();
  }
  bool inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes) override {
    return network_.inject(frame, from, to, bytes);
  }
  std::size_t run(std::uint64_t budget, std::span<Ending> endings) override { return network_.run(budget, endings); }
  bool idle() const override { return network_.idle(); }
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
  return std::make_unique<IdealModel>(std::move(*network));
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
                           .attach = attach};

}  // namespace ulfm::fabric::ideal
