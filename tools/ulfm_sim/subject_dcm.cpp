// Direct-Connect routers under the simulator. A unit is a 16-bit word.
#include "fabric/dcm/model.hpp"

#include <fmt/core.h>

#include "fabric/dcm/network.hpp"
#include "fabric/dcm/reference.hpp"
#include "fabric/dcm/words.hpp"
#include "network.hpp"

namespace sim {
namespace {

namespace dcm = ulfm::fabric::dcm;

constexpr std::uint32_t kNodeWay = 8;  // of a router: its node's sink
constexpr std::uint32_t kWordBytes = 2;

template <typename Model>
class CubeCounted : public SubjectNetwork {
 public:
  CubeCounted(const Topology& topology, Model model) : t_(topology), model_(std::move(model)) {}

  bool inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t units, Way) override {
    if (!model_.inject(frame, from, to, units * kWordBytes)) return false;
    ++injected_;
    return true;
  }
  std::uint64_t inside() override { return injected_ - ended_; }
  std::string imbalance() override {
    if (!model_.balance().holds())
      return "words entered are not those that left, were stripped, were lost or are present";
    if (inside() == 0 && model_.balance().present != 0) return "words are present that belong to no message";
    return "";
  }
  // A message keeps its channels from the grant to the end of its tail.
  std::vector<std::uint64_t> busy() override {
    std::vector<std::uint64_t> cycles;
    for (std::uint32_t r = 0; r < t_.switches; ++r)
      for (std::uint32_t p = 0; p < t_.ports; ++p)
        cycles.push_back(p < t_.dimension    ? model_.counters(r, p).held_cycles
                         : p == t_.dimension ? model_.counters(r, kNodeWay).held_cycles
                                             : 0);
    cycles.resize(channels(t_), 0);
    return cycles;
  }
  std::uint64_t unit_hops() override {
    std::uint64_t sum = 0;
    for (std::uint32_t r = 0; r < t_.switches; ++r)
      for (std::uint32_t way = 0; way <= kNodeWay; ++way) sum += model_.counters(r, way).words;
    return sum;
  }

 protected:
  const Topology& t_;
  Model model_;
  std::uint64_t injected_ = 0, ended_ = 0;
};

class CubeProduction final : public CubeCounted<dcm::Network> {
 public:
  CubeProduction(const Topology& topology, Memory memory, dcm::Network model)
      : CubeCounted(topology, std::move(model)), memory_(std::move(memory)) {}

  void run(std::uint64_t until, std::vector<Ending>& endings) override {
    if (until <= model_.now()) return;
    const std::size_t before = endings.size();
    collect_(endings, [&](std::span<Ending> room) { return model_.run(kNoBudget, room, until); });
    ended_ += endings.size() - before;
  }
  std::uint64_t inside() override { return model_.frames_inside(); }
  std::string imbalance() override {
    return model_.damaged() ? "the network's memory is damaged" : CubeCounted::imbalance();
  }

 private:
  Collector collect_;
  Memory memory_;
};

class CubeStepByStep final : public CubeCounted<dcm::Reference> {
 public:
  CubeStepByStep(const Topology& topology, const dcm::Parameters& parameters)
      : CubeCounted(topology, dcm::Reference(topology.dimension, parameters)) {}

  void run(std::uint64_t until, std::vector<Ending>& endings) override {
    while (model_.now() < until) model_.step();
    const auto& all = model_.endings();
    endings.insert(endings.end(), all.begin() + static_cast<std::ptrdiff_t>(ended_), all.end());
    ended_ = all.size();
  }
  std::string imbalance() override { return model_.wrong().empty() ? CubeCounted::imbalance() : model_.wrong(); }
};

class Routers final : public Subject {
 public:
  Routers(const Topology& topology, const dcm::Parameters& parameters) : t_(topology), p_(parameters) {}

  Result<std::unique_ptr<SubjectNetwork>> make(std::uint32_t frames, ModelForm form) const override {
    if (form == ModelForm::reference) return std::make_unique<CubeStepByStep>(t_, p_);
    const std::size_t bytes = dcm::Network::bytes(t_.dimension, frames);
    Memory memory(bytes);
    if (memory.data() == nullptr) return no_memory(bytes);
    auto model = dcm::Network::create(memory.data(), t_.dimension, p_, frames);
    if (!model) return fail(std::move(model.error()));
    return std::make_unique<CubeProduction>(t_, std::move(memory), std::move(*model));
  }

  // The probe finds its way, the answer that the sink is ready comes back, and then the words go.
  std::uint64_t zero_load(std::uint32_t, std::uint32_t, std::uint32_t units, const Route& way,
                          std::uint64_t) const override {
    const auto hops = static_cast<std::uint32_t>(way.size() - 1);
    return requests(hops) + answer(hops) + serialization(units) + std::uint64_t{hops} * p_.hop_cycles +
           p_.receive_cycles;
  }

  // A channel is taken when the probe asks for it and free when the tail has passed it.
  std::vector<Use> uses(std::uint32_t from, std::uint32_t, std::uint32_t units, const Route& way) const override {
    std::vector<Use> uses;
    std::uint32_t at = t_.attachment[from].at;
    const auto hops = static_cast<std::uint32_t>(way.size() - 1);
    const std::uint64_t sent = requests(hops) + answer(hops) + serialization(units);
    uses.push_back({std::size_t{t_.switches} * t_.ports + from, static_cast<double>(sent)});
    for (std::uint32_t hop = 0; hop <= hops; ++hop) {
      const std::uint64_t free = sent + std::uint64_t{hop} * p_.hop_cycles + (hop == hops ? p_.receive_cycles : 0);
      uses.push_back({std::size_t{at} * t_.ports + way[hop], static_cast<double>(free - requests(hop))});
      at = t_.end({at, way[hop]}).index;
    }
    return uses;
  }

  // One message at a time leaves a node; those before it wait at sinks for the software at most.
  std::uint32_t window(std::uint32_t, std::uint32_t) const override { return t_.nodes() + 3; }
  std::uint32_t most_units() const override { return 1u << 20; }
  std::uint32_t usual_units() const override { return 16; }
  const char* unit() const override { return "word"; }
  double cycle_ns() const override { return 1000.0 / static_cast<double>(dcm::kCyclesPerMicrosecond); }

 private:
  /// Cycles from the start until the probe asks for the way out behind so many channels.
  std::uint64_t requests(std::uint32_t hops) const {
    const std::uint64_t each = std::uint64_t{p_.hop_cycles} + p_.route_cycles;
    const std::uint64_t probes = hops == 0 ? 0 : dcm::kWordNibbles + std::uint64_t{hops - 1} * dcm::kShortProbeNibbles;
    return std::uint64_t{p_.send_cycles} + p_.dma_cycles + p_.route_cycles + probes + hops * each;
  }
  std::uint64_t answer(std::uint32_t hops) const { return hops == 0 ? 1 : std::uint64_t{hops} * p_.hop_cycles; }
  static std::uint64_t serialization(std::uint32_t units) {
    return std::uint64_t{dcm::kWordNibbles} * (dcm::words_behind_probe(units * kWordBytes) + 1);
  }

  const Topology& t_;
  dcm::Parameters p_;
};

}  // namespace

Result<std::unique_ptr<Subject>> make_dcm(std::string_view options, const Topology& topology) {
  if (topology.shape != Shape::cube)
    return fail(
        Errc::invalid,
        fmt::format(
            "dcm: Direct-Connect routers are linked as a hypercube; the topology must be cube:0 to cube:7, not {}",
            topology.name));
  auto parameters = dcm::parameters_from(options);
  if (!parameters) return fail(std::move(parameters.error()));
  return std::make_unique<Routers>(topology, *parameters);
}

}  // namespace sim
