// An ideal network under the simulator: what contention costs elsewhere.
#include "fabric/ideal/model.hpp"
#include "fabric/ideal/network.hpp"
#include "fabric/ideal/reference.hpp"
#include "network.hpp"

namespace sim {
namespace {

namespace ideal = ulfm::fabric::ideal;

template <typename Model>
class IdealCounted : public SubjectNetwork {
 public:
  IdealCounted(const Topology& topology, Model model) : t_(topology), model_(std::move(model)) {}

  bool inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t units, Way) override {
    return model_.inject(frame, from, to, units);
  }
  std::uint64_t inside() override { return model_.inside(); }
  std::string imbalance() override {
    return model_.taken() == model_.ended() + model_.inside() ? ""
                                                              : "messages taken are not those that ended or are there";
  }
  std::vector<std::uint64_t> busy() override {
    std::vector<std::uint64_t> cycles(channels(t_) - t_.nodes(), 0);
    for (std::uint32_t n = 0; n < t_.nodes(); ++n) cycles.push_back(model_.busy(n));
    return cycles;
  }
  std::uint64_t unit_hops() override { return model_.ended_bytes(); }

 protected:
  const Topology& t_;
  Model model_;
};

class IdealProduction final : public IdealCounted<ideal::Network> {
 public:
  IdealProduction(const Topology& topology, Memory memory, const ideal::Network& model)
      : IdealCounted(topology, model), memory_(std::move(memory)) {}
  void run(std::uint64_t until, std::vector<Ending>& endings) override {
    if (until <= model_.now()) return;
    collect_(endings, [&](std::span<Ending> room) { return model_.run(kNoBudget, room, until); });
  }

 private:
  Collector collect_;
  Memory memory_;
};

class IdealStepByStep final : public IdealCounted<ideal::Reference> {
 public:
  using IdealCounted::IdealCounted;
  void run(std::uint64_t until, std::vector<Ending>& endings) override {
    while (model_.now() < until) model_.step();
    const auto& all = model_.endings();
    endings.insert(endings.end(), all.begin() + static_cast<std::ptrdiff_t>(seen_), all.end());
    seen_ = all.size();
  }

 private:
  std::size_t seen_ = 0;
};

class Ideal final : public Subject {
 public:
  Ideal(const Topology& topology, const ideal::Parameters& parameters) : t_(topology), p_(parameters) {}

  Result<std::unique_ptr<SubjectNetwork>> make(std::uint32_t frames, ModelForm form) const override {
    if (form == ModelForm::reference) return std::make_unique<IdealStepByStep>(t_, ideal::Reference(t_.nodes(), p_));
    const std::size_t bytes = ideal::Network::bytes(t_.nodes(), frames);
    Memory memory(bytes);
    if (memory.data() == nullptr) return no_memory(bytes);
    auto model = ideal::Network::create(memory.data(), t_.nodes(), frames, p_);
    if (!model) return fail(std::move(model.error()));
    return std::make_unique<IdealProduction>(t_, std::move(memory), *model);
  }
  std::uint64_t zero_load(std::uint32_t, std::uint32_t, std::uint32_t units, const Route&,
                          std::uint64_t) const override {
    return ideal::transit(p_, units);
  }
  std::vector<Use> uses(std::uint32_t from, std::uint32_t, std::uint32_t units, const Route&) const override {
    return {{channels(t_) - t_.nodes() + from, static_cast<double>(ideal::spacing(p_, units))}};
  }
  std::uint32_t window(std::uint32_t units, std::uint32_t) const override {
    return static_cast<std::uint32_t>(ideal::transit(p_, units) / ideal::spacing(p_, units)) + 3;
  }
  std::uint32_t most_units() const override { return 1u << 20; }
  std::uint32_t usual_units() const override { return 16; }
  const char* unit() const override { return "byte"; }
  double cycle_ns() const override { return 1; }
  bool routed() const override { return false; }

 private:
  const Topology& t_;
  ideal::Parameters p_;
};

}  // namespace

Result<std::unique_ptr<Subject>> make_ideal(std::string_view options, const Topology& topology) {
  auto parameters = ideal::parameters_from(options);
  if (!parameters) return fail(std::move(parameters.error()));
  return std::make_unique<Ideal>(topology, *parameters);
}

}  // namespace sim
