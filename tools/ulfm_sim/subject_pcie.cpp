// Boards in a PC host under the simulator. A unit is a packet of data, a cycle a turn; what arrives is read at once.
#include "fabric/pcie/model.hpp"
#include "fabric/pcie/reference.hpp"
#include "fabric/pcie/relay.hpp"
#include "network.hpp"

namespace sim {
namespace {

namespace pcie = ulfm::fabric::pcie;

template <typename Model>
class BoardsCounted : public SubjectNetwork {
 public:
  template <typename... Made>
  explicit BoardsCounted(const pcie::Parameters& parameters, Made&&... made)
      : p_(parameters), model_(std::forward<Made>(made)...) {}

  bool inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t units, Way) override {
    return model_.post(frame, {from, to, from, to, 0, units * p_.fragment});
  }
  std::uint64_t inside() override { return model_.host().present; }
  std::string imbalance() override {
    return model_.host().balances() ? "" : "messages or bytes that came in are not those that went out or are there";
  }
  std::vector<std::uint64_t> busy() override {
    std::vector<std::uint64_t> packets;
    for (std::uint32_t b = 0; b < p_.boards; ++b) packets.push_back(model_.board(b).packets_down);
    for (std::uint32_t b = 0; b < p_.boards; ++b)
      packets.push_back(model_.board(b).control_packets + model_.board(b).data_packets);
    return packets;
  }
  std::uint64_t unit_hops() override {
    std::uint64_t sum = 0;
    for (std::uint32_t b = 0; b < p_.boards; ++b) sum += model_.board(b).data_packets + model_.board(b).packets_down;
    return sum;
  }

 protected:
  const pcie::Parameters p_;
  Model model_;
};

class BoardsProduction final : public BoardsCounted<pcie::Relay> {
 public:
  BoardsProduction(const pcie::Parameters& parameters, Memory memory)
      : BoardsCounted(parameters, memory.data(), parameters), memory_(std::move(memory)) {
    model_.build();
    bytes_.resize(parameters.frames);
    to_.resize(parameters.frames);
  }

  bool inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t units, Way way) override {
    bytes_[frame] = units * p_.fragment;
    to_[frame] = to;
    return BoardsCounted::inject(frame, from, to, units, way);
  }

  // Turn by turn: what has arrived is read before the next one.
  void run(std::uint64_t until, std::vector<Ending>& endings) override {
    while (model_.now() + 1 < until) {
      const std::uint64_t next = model_.idle() ? until - 1 : model_.now() + 1;
      const std::size_t before = endings.size();
      collect_(endings, [&](std::span<Ending> room) {
        const std::size_t got = model_.run(kNoBudget, room, next);
        for (std::size_t i = 0; i < got; ++i) model_.settle(room[i].frame);
        return got;
      });
      for (std::size_t i = before; i < endings.size(); ++i) {
        const FrameId frame = endings[i].frame;
        if (model_.release(to_[frame], 0, bytes_[frame])) model_.woken(to_[frame]);
      }
    }
  }

 private:
  Collector collect_;
  Memory memory_;
  std::vector<std::uint32_t> bytes_, to_;
};

class BoardsStepByStep final : public BoardsCounted<pcie::Reference> {
 public:
  explicit BoardsStepByStep(const pcie::Parameters& parameters) : BoardsCounted(parameters, parameters) {
    bytes_.resize(parameters.frames);
  }

  bool inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t units, Way way) override {
    bytes_[frame] = units * p_.fragment;
    return BoardsCounted::inject(frame, from, to, units, way);
  }
  void run(std::uint64_t until, std::vector<Ending>& endings) override {
    while (model_.now() + 1 < until) {
      model_.turn();
      for (; seen_ < model_.endings().size(); ++seen_) {
        const Ending ending = model_.endings()[seen_];
        endings.push_back(ending);
        model_.release(ending.node, 0, bytes_[ending.frame]);
      }
    }
  }

 private:
  std::vector<std::uint32_t> bytes_;
  std::size_t seen_ = 0;
};

class Boards final : public Subject {
 public:
  Boards(const Topology& topology, const pcie::Parameters& parameters) : t_(topology), p_(parameters) {}

  Result<std::unique_ptr<SubjectNetwork>> make(std::uint32_t frames, ModelForm form) const override {
    pcie::Parameters parameters = p_;
    parameters.frames = frames;
    if (form == ModelForm::reference) return std::make_unique<BoardsStepByStep>(parameters);
    const std::size_t bytes = pcie::Relay::bytes(parameters);
    Memory memory(bytes);
    if (memory.data() == nullptr) return no_memory(bytes);
    return std::make_unique<BoardsProduction>(parameters, std::move(memory));
  }

  // A turn for the control packet, with the permission; then the packets, which the host passes on as they come
  // (cut-through) or, the first of them in the turn of the last one's coming, when it has all.
  std::uint64_t zero_load(std::uint32_t, std::uint32_t, std::uint32_t units, const Route&,
                          std::uint64_t) const override {
    return p_.cut_through ? std::uint64_t{units} + 1 : 2 * std::uint64_t{units};
  }

  std::vector<Use> uses(std::uint32_t from, std::uint32_t to, std::uint32_t units, const Route&) const override {
    return {{std::size_t{t_.ports} + from, units + 1.0}, {to, static_cast<double>(units)}};
  }

  std::uint32_t window(std::uint32_t, std::uint32_t) const override { return 64; }
  std::uint32_t most_units() const override { return p_.message / p_.fragment; }
  std::uint32_t usual_units() const override { return 1; }
  const char* unit() const override { return "packet"; }
  double cycle_ns() const override { return 1000; }
  bool routed() const override { return false; }

 private:
  const Topology& t_;
  pcie::Parameters p_;
};

}  // namespace

Result<std::unique_ptr<Subject>> make_pcie(std::string_view options, const Topology& topology) {
  auto parameters = pcie::parameters_from(options, topology, topology.nodes(), 1);
  if (!parameters) return fail(std::move(parameters.error()));
  return std::make_unique<Boards>(topology, *parameters);
}

}  // namespace sim
