// Any model that knows cycles, by way of what it is as a transport: those of shared objects, and those of the list that
// have no subject of their own. A unit is a byte; its channels are unknown, and so is the bound.
#include "fabric/shared/object.hpp"

#include <fmt/core.h>

#include "network.hpp"

namespace sim {
namespace {

using ulfm::fabric::Model;
using ulfm::fabric::ModelKind;
using ulfm::fabric::ModelPlan;

constexpr std::uint64_t kPeriod = 1;  // picoseconds of a cycle, of which cycle 1 begins at 0

class AnyNetwork final : public SubjectNetwork {
 public:
  AnyNetwork(const Topology& topology, Memory memory, std::unique_ptr<Model> model)
      : channels_(channels(topology)), memory_(std::move(memory)), model_(std::move(model)) {}

  bool inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t units, Way) override {
    if (!model_->inject(frame, from, to, units)) return false;
    if (bytes_.size() <= frame) bytes_.resize(frame + 1);
    bytes_[frame] = units;
    ++injected_;
    return true;
  }
  void run(std::uint64_t until, std::vector<Ending>& endings) override {
    for (Ending ending; model_->cycles()->run_until((until - 1) * kPeriod, kPeriod, ending); ++ended_) {
      endings.push_back(ending);
      if (ending.frame < bytes_.size()) bytes_moved_ += bytes_[ending.frame];
    }
  }
  std::uint64_t inside() override { return injected_ - ended_; }
  std::string imbalance() override {
    return model_->idle() == (inside() == 0) ? "" : "the model is idle with messages inside, or not idle without";
  }
  std::vector<std::uint64_t> busy() override { return std::vector<std::uint64_t>(channels_, 0); }
  std::uint64_t unit_hops() override { return bytes_moved_; }

 private:
  std::size_t channels_;
  Memory memory_;
  std::unique_ptr<Model> model_;
  std::vector<std::uint32_t> bytes_;
  std::uint64_t injected_ = 0, ended_ = 0, bytes_moved_ = 0;
};

class Any final : public Subject {
 public:
  Any(const ModelKind& kind, std::string_view options, const Topology& topology)
      : kind_(kind), options_(options), t_(topology) {}

  Result<std::unique_ptr<SubjectNetwork>> make(std::uint32_t frames, ModelForm form) const override {
    if (form == ModelForm::reference) return fail(Errc::invalid, fmt::format("{} has no reference model", kind_.name));
    auto memory = prepare(frames);
    if (!memory) return fail(std::move(memory.error()));
    auto model = kind_.attach(memory->data(), memory->size());
    if (!model) return fail(std::move(model.error()));
    return std::make_unique<AnyNetwork>(t_, std::move(*memory), std::move(*model));
  }
  /// Asks the model itself once, with room for one message.
  Result<void> check() {
    auto memory = prepare(1);
    if (!memory) return fail(std::move(memory.error()));
    auto model = kind_.attach(memory->data(), memory->size());
    if (!model) return fail(std::move(model.error()));
    memory_.emplace(std::move(*memory));
    model_ = std::move(*model);
    return {};
  }
  std::uint64_t zero_load(std::uint32_t from, std::uint32_t to, std::uint32_t units, const Route&,
                          std::uint64_t) const override {
    return model_->cycles()->alone(from, to, units);
  }
  std::vector<Use> uses(std::uint32_t, std::uint32_t, std::uint32_t, const Route&) const override { return {}; }
  std::uint32_t window(std::uint32_t, std::uint32_t) const override { return 64; }
  std::uint32_t most_units() const override { return 1u << 20; }
  std::uint32_t usual_units() const override { return 16; }
  const char* unit() const override { return "byte"; }
  double cycle_ns() const override {
    const auto* const description = ulfm::fabric::shared::description_of(kind_);
    return description != nullptr ? description->cycle_ns : 1;
  }
  bool routed() const override { return false; }

 private:
  Result<Memory> prepare(std::uint32_t frames) const {
    auto planned = kind_.plan(ModelPlan{t_, options_, frames, {}, t_.nodes()});
    if (!planned) return fail(std::move(planned.error()));
    Memory memory(planned->bytes);
    if (memory.data() == nullptr) return no_memory(planned->bytes);
    if (auto ok = planned->create(memory.data()); !ok) return fail(std::move(ok.error()));
    return memory;
  }

  const ModelKind& kind_;
  std::string options_;
  const Topology& t_;
  std::optional<Memory> memory_;
  std::unique_ptr<Model> model_;
};

}  // namespace

Result<std::unique_ptr<Subject>> make_any(const ModelKind& kind, std::string_view options, const Topology& topology) {
  if (kind.presets.empty() && kind.object == nullptr)
    return fail(Errc::invalid,
                fmt::format("{} does not say in which cycle a message ends, and has no subject_*.cpp in tools/ulfm_sim",
                            kind.name));
  auto subject = std::make_unique<Any>(kind, options, topology);
  if (auto ok = subject->check(); !ok) return fail(std::move(ok.error()));
  return subject;
}

}  // namespace sim
