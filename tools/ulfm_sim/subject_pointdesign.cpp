// Point designs under the simulator. A unit is a 64-bit word; a message has one, and more are fetched from the sender.
#include "fabric/pointdesign/model.hpp"
#include "fabric/pointdesign/network.hpp"
#include "fabric/pointdesign/reference.hpp"
#include "network.hpp"

namespace sim {
namespace {

namespace pointdesign = ulfm::fabric::pointdesign;
using pointdesign::kMessageBytes;

template <typename Model>
class PointCounted : public SubjectNetwork {
 public:
  template <typename... Made>
  PointCounted(const Topology& topology, const pointdesign::Parameters& parameters, Made&&... made)
      : t_(topology), p_(parameters), g_(parameters.geometry()), model_(std::forward<Made>(made)...) {}

  bool inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t units, Way) override {
    return model_.inject(frame, from, to, units * kMessageBytes);
  }
  std::uint64_t inside() override {
    const pointdesign::Totals& t = model_.totals();
    return t.entered - t.left - t.lost;
  }
  std::vector<std::uint64_t> busy() override {
    std::vector<std::uint64_t> cycles(channels(t_), 0);
    for (std::uint32_t line = 0; line < g_.lines(); ++line)
      if (!g_.is_own(line))
        cycles[std::size_t{g_.line_source(line)} * t_.ports + g_.line_direction(line)] =
            model_.line(line).messages * p_.flits;
    for (std::uint32_t node = 0; node < g_.nodes(); ++node)
      for (std::uint32_t port = 0; port < g_.ports(); ++port)
        cycles[std::size_t{t_.switches} * t_.ports + node] += model_.port(node, port).unicasts;
    return cycles;
  }
  std::uint64_t unit_hops() override {
    std::uint64_t sum = 0;
    for (std::uint32_t line = 0; line < g_.lines(); ++line) sum += model_.line(line).messages * p_.flits;
    return sum;
  }

 protected:
  const Topology& t_;
  const pointdesign::Parameters p_;
  const pointdesign::CardGeometry g_;
  Model model_;
};

pointdesign::Network network_in(const Memory& memory, const pointdesign::Parameters& parameters) {
  pointdesign::Network::create(memory.data(), parameters);
  return std::move(*pointdesign::Network::attach(memory.data(), pointdesign::Network::bytes(parameters)));
}

class PointProduction final : public PointCounted<pointdesign::Network> {
 public:
  PointProduction(const Topology& topology, const pointdesign::Parameters& parameters, Memory memory)
      : PointCounted(topology, parameters, network_in(memory, parameters)), memory_(std::move(memory)) {}

  void run(std::uint64_t until, std::vector<Ending>& endings) override {
    if (until <= model_.now() + 1) return;
    collect_(endings, [&](std::span<Ending> room) { return model_.run(kNoBudget, room, until - 1); });
  }
  std::string imbalance() override {
    return model_.inside() == inside() ? "" : "messages entered are not those that left, were lost or are present";
  }

 private:
  Collector collect_;
  Memory memory_;
};

class PointStepByStep final : public PointCounted<pointdesign::Reference> {
 public:
  PointStepByStep(const Topology& topology, const pointdesign::Parameters& parameters)
      : PointCounted(topology, parameters, parameters) {}

  void run(std::uint64_t until, std::vector<Ending>& endings) override {
    while (model_.now() + 1 < until) model_.step();
    const auto& all = model_.endings();
    endings.insert(endings.end(), all.begin() + static_cast<std::ptrdiff_t>(seen_), all.end());
    seen_ = all.size();
  }
  std::string imbalance() override {
    return model_.empty() == (inside() == 0) ? ""
                                             : "messages entered are not those that left, were lost or are present";
  }

 private:
  std::size_t seen_ = 0;
};

class Cards final : public Subject {
 public:
  Cards(const Topology& topology, const pointdesign::Parameters& parameters)
      : t_(topology), p_(parameters), g_(parameters.geometry()) {}

  Result<std::unique_ptr<SubjectNetwork>> make(std::uint32_t frames, ModelForm form) const override {
    pointdesign::Parameters p = p_;
    p.frames = p.copies = frames;
    if (auto ok = pointdesign::check(p); !ok) return fail(std::move(ok.error()).within("pointdesign"));
    if (form == ModelForm::reference) return std::make_unique<PointStepByStep>(t_, p);
    const std::size_t bytes = pointdesign::Network::bytes(p);
    Memory memory(bytes);
    if (memory.data() == nullptr) return no_memory(bytes);
    return std::make_unique<PointProduction>(t_, p, std::move(memory));
  }

  // A message is on its first line in the cycle of its command. With store and forward each line takes all of its
  // flits;
  // a wormhole goes on behind the first. To a processor of the same card it takes its flits through the card. What the
  // message has no room for is fetched when it is there.
  std::uint64_t zero_load(std::uint32_t from, std::uint32_t to, std::uint32_t units, const Route&,
                          std::uint64_t) const override {
    const std::uint32_t lines = g_.hops(g_.card_of(from), g_.card_of(to));
    const std::uint64_t moved = lines == 0                                         ? p_.flits
                                : p_.switching == pointdesign::Switching::wormhole ? lines - 1 + p_.flits
                                                                                   : lines * p_.flits;
    return moved + fetched(units);
  }

  std::vector<Use> uses(std::uint32_t from, std::uint32_t to, std::uint32_t units, const Route&) const override {
    std::vector<Use> uses{
        {std::size_t{t_.switches} * t_.ports + from, static_cast<double>(std::max<std::uint64_t>(1, fetched(units)))}};
    std::uint32_t card = g_.card_of(from);
    for (std::uint32_t s = 0; s < g_.dimensions; ++s) {
      const std::uint32_t j = g_.digit(g_.card_of(to), s);
      if (g_.digit(card, s) == j) continue;
      uses.push_back({std::size_t{card} * t_.ports + s * g_.radix + j, static_cast<double>(p_.flits)});
      card = g_.neighbour(card, s, j);
    }
    return uses;
  }

  std::uint32_t window(std::uint32_t, std::uint32_t) const override { return 256; }
  std::uint32_t most_units() const override { return 65536 / kMessageBytes; }
  std::uint32_t usual_units() const override { return 1; }
  const char* unit() const override { return "word"; }
  double cycle_ns() const override { return p_.cycle; }
  bool routed() const override { return false; }

 private:
  std::uint64_t fetched(std::uint32_t units) const { return units <= 1 ? 0 : p_.fetch_cycles(units * kMessageBytes); }

  const Topology& t_;
  pointdesign::Parameters p_;
  pointdesign::CardGeometry g_;
};

}  // namespace

Result<std::unique_ptr<Subject>> make_pointdesign(std::string_view options, const Topology& topology) {
  auto parameters = pointdesign::parameters_for(topology, options);
  if (!parameters) return fail(std::move(parameters.error()));
  return std::make_unique<Cards>(topology, *parameters);
}

}  // namespace sim
