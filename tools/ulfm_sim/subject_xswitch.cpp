// X-Switches under the simulator.
#include <algorithm>

#include <fmt/core.h>

#include "fabric/xswitch/model.hpp"
#include "fabric/xswitch/network.hpp"
#include "fabric/xswitch/reference.hpp"
#include "network.hpp"
#include "xswitch_flow.hpp"

namespace sim {
namespace {

namespace xswitch = ulfm::fabric::xswitch;

std::uint64_t units_of(const xswitch::ChannelCounters& c) { return c.data_units + c.routing_units + c.frames; }

/// What both models have alike: counters by channel, and a balance.
template <typename Model>
class SwitchesCounted : public SubjectNetwork {
 public:
  SwitchesCounted(const Topology& topology, Model model) : topology_(topology), model_(std::move(model)) {}

  std::string imbalance() override {
    if (model_.balance().holds()) return "";
    return "units entered are not those that left, were stripped, were lost or are present";
  }
  std::vector<std::uint64_t> busy() override {
    std::vector<std::uint64_t> cycles;
    cycles.reserve(channels(topology_));
    each_channel([&](std::uint64_t units, std::uint32_t each) { cycles.push_back(units * each); });
    return cycles;
  }
  std::uint64_t unit_hops() override {
    std::uint64_t sum = 0;
    each_channel([&](std::uint64_t units, std::uint32_t) { sum += units; });
    return sum;
  }

 protected:
  const Topology& topology_;
  Model model_;

 private:
  /// visit(units that it has carried, cycles of each)
  template <typename Visit>
  void each_channel(Visit visit) {
    for (std::uint32_t s = 0; s < topology_.switches; ++s)
      for (std::uint32_t p = 0; p < topology_.ports; ++p)
        visit(units_of(model_.counters({s, p}).out), topology_.unit_cycles({s, p}));
    for (std::uint32_t n = 0; n < topology_.nodes(); ++n)
      visit(units_of(model_.node_counters(n).out), topology_.unit_cycles(topology_.attachment[n]));
  }
};

class SwitchesProduction final : public SwitchesCounted<xswitch::Network> {
 public:
  SwitchesProduction(const Topology& topology, Memory memory, xswitch::Network model)
      : SwitchesCounted(topology, std::move(model)), memory_(std::move(memory)) {}

  bool inject(FrameId frame, std::uint32_t from, std::uint32_t, std::uint32_t units, Way way) override {
    return model_.inject(frame, from, way, units);
  }
  void run(std::uint64_t until, std::vector<Ending>& endings) override {
    if (until <= model_.now()) return;
    collect_(endings, [&](std::span<Ending> room) { return model_.run(kNoBudget, room, until); });
  }
  std::uint64_t inside() override { return model_.frames_inside(); }
  std::string imbalance() override {
    return model_.damaged() ? "the network's memory is damaged" : SwitchesCounted::imbalance();
  }

 private:
  Collector collect_;
  Memory memory_;
};

class SwitchesStepByStep final : public SwitchesCounted<xswitch::Reference> {
 public:
  SwitchesStepByStep(const Topology& topology, const xswitch::Parameters& parameters)
      : SwitchesCounted(topology, xswitch::Reference(topology, parameters)) {}

  bool inject(FrameId frame, std::uint32_t from, std::uint32_t, std::uint32_t units, Way way) override {
    model_.inject(frame, from, way, units);
    ++injected_;
    return true;
  }
  void run(std::uint64_t until, std::vector<Ending>& endings) override {
    while (model_.now() < until) model_.step();
    const auto& all = model_.endings();
    endings.insert(endings.end(), all.begin() + static_cast<std::ptrdiff_t>(seen_), all.end());
    seen_ = all.size();
  }
  std::uint64_t inside() override { return injected_ - model_.endings().size(); }

 private:
  std::uint64_t injected_ = 0;
  std::size_t seen_ = 0;
};

class Switches final : public Subject {
 public:
  Switches(const Topology& topology, const xswitch::Parameters& parameters) : t_(topology), p_(parameters) {}

  Result<std::unique_ptr<SubjectNetwork>> make(std::uint32_t frames, ModelForm form) const override {
    if (form == ModelForm::reference) return std::make_unique<SwitchesStepByStep>(t_, p_);
    if (form == ModelForm::production && !t_.has_own_links()) return make_flow(t_, p_, frames);
    const std::size_t bytes = xswitch::Network::bytes(t_, p_, frames);
    Memory memory(bytes);
    if (memory.data() == nullptr) return no_memory(bytes);
    auto model = xswitch::Network::create(memory.data(), t_, p_, frames);
    if (!model) return fail(std::move(model.error()));
    return std::make_unique<SwitchesProduction>(t_, std::move(memory), std::move(*model));
  }

  // A unit needs `link_cycles` for each link. A head waits at each switch for the poll that finds it: an output that
  // has served nobody looked at its input 0 in cycle 1. Taking it off takes the cycle of that poll.
  std::uint64_t zero_load(std::uint32_t from, std::uint32_t, std::uint32_t units, const Route& way,
                          std::uint64_t start) const override {
    if (!t_.rate.empty()) return zero_load_of_rates(from, units, way, start);
    SwitchPort in = t_.attachment[from];
    std::uint64_t cycle = start + t_.link_cycles(in, p_.link_cycles);
    for (const std::uint8_t out : way) {
      const auto polled = static_cast<std::uint32_t>((cycle - 1) % t_.ports);
      cycle += (in.port + t_.ports - polled) % t_.ports + 1 + t_.link_cycles({in.at, out}, p_.link_cycles);
      const LinkEnd& end = t_.end({in.at, out});
      in = {end.index, end.port};
    }
    return cycle + units + p_.check_units + 1 - start;
  }

  // The same with links of which each has cycles a unit of its own. `leaves[j]` is when unit j, routing characters
  // counted, leaves for the next link: behind the unit before it, and when it has come over the last one. From the
  // first unit behind a head on, what one link needs for all units decides; which one, the longest of these ways tells.
  std::uint64_t zero_load_of_rates(std::uint32_t from, std::uint32_t units, const Route& way,
                                   std::uint64_t start) const {
    const std::size_t hops = way.size(), last = hops + units + p_.check_units;
    SwitchPort at = t_.attachment[from];
    std::vector<std::uint64_t> first{start}, leaves(hops + 1), rate{t_.unit_cycles(at)},
        latency{t_.link_cycles(at, p_.link_cycles)};
    for (std::size_t j = 0; j <= hops; ++j) leaves[j] = start + j * rate[0];
    for (std::size_t i = 0; i < hops; ++i) {
      const SwitchPort out{at.at, way[i]};
      const std::uint64_t comes = leaves[i] + latency[i];
      const std::uint64_t polled = comes + (at.port + t_.ports - (comes - 1) % t_.ports) % t_.ports;
      rate.push_back(t_.unit_cycles(out));
      latency.push_back(t_.link_cycles(out, p_.link_cycles));
      std::uint64_t free = polled + 1;
      for (std::size_t j = i + 1; j <= hops; ++j) {
        leaves[j] = std::max(free, leaves[j] + latency[i]);
        free = leaves[j] + rate[i + 1];
      }
      first.push_back(leaves[i + 1]);
      at = {t_.end(out).index, t_.end(out).port};
    }
    std::uint64_t end = 0, behind = 0;
    for (std::size_t i = hops + 1; i-- > 0;) {
      behind += latency[i];
      end = std::max(end, first[i] + (last - i) * rate[i] + behind);
    }
    return end + 1 - start;
  }

  // An output serves a frame from the poll that takes its head off to its ID-EOF.
  std::vector<Use> uses(std::uint32_t from, std::uint32_t, std::uint32_t units, const Route& way) const override {
    std::vector<Use> uses;
    std::uint32_t at = t_.attachment[from].at;
    const double body = units + p_.check_units + 1.0;
    uses.push_back({std::size_t{t_.switches} * t_.ports + from,
                    (body + static_cast<double>(way.size())) * t_.unit_cycles(t_.attachment[from])});
    for (std::size_t hop = 0; hop < way.size(); ++hop) {
      uses.push_back({std::size_t{at} * t_.ports + way[hop],
                      (body + static_cast<double>(way.size() - hop)) * t_.unit_cycles({at, way[hop]})});
      at = t_.end({at, way[hop]}).index;
    }
    return uses;
  }

  std::uint32_t window(std::uint32_t units, std::uint32_t longest_way) const override {
    const std::uint64_t room =
        std::uint64_t{longest_way + 1} * (p_.fifo_units + 2 * t_.most_link_cycles(p_.link_cycles));
    return static_cast<std::uint32_t>(room / (units + p_.check_units + 1) + 3);
  }
  std::uint32_t most_units() const override { return 1u << 20; }
  std::uint32_t usual_units() const override { return 16; }
  const char* unit() const override { return "byte"; }
  double cycle_ns() const override { return 25; }

 private:
  const Topology& t_;
  xswitch::Parameters p_;
};

}  // namespace

Result<std::unique_ptr<Subject>> make_xswitch(std::string_view options, const Topology& topology) {
  if (topology.shape == Shape::boards)
    return fail(Errc::invalid,
                fmt::format("topology {}: the boards of one host have no switches between them; take --transport pcie",
                            topology.name));
  if (options.find("routing=") != options.npos)
    return fail(Errc::invalid, "xswitch: the simulator has routings of its own; in place of routing= take --routing");
  auto parameters = xswitch::parameters_from(options, topology);
  if (!parameters) return fail(std::move(parameters.error()));
  return std::make_unique<Switches>(topology, *parameters);
}

}  // namespace sim
