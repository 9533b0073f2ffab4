#include "fabric/shared/model.hpp"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <type_traits>

#include <fmt/core.h>

#include "base/last_words.hpp"
#include "fabric/kit/shelf.hpp"
#include "fabric/shared/object.hpp"

namespace ulfm::fabric::shared {
namespace {

constexpr std::uint64_t kMagic = 0x6c65'646f'6d20'6f73;
constexpr std::uint64_t kForeverCycle = std::uint64_t{1} << 60;
constexpr std::size_t kMostBytes = std::size_t{1} << 36;

/// What `call` returns. Models must not throw; an error names the one that does.
template <typename Call, typename Value = std::invoke_result_t<Call>>
Result<Value> without_throwing(const char* model, const char* name, Call call) {
  try {
    if constexpr (std::is_void_v<Value>) return call(), Result<Value>{};
    else return call();
  } catch (const std::exception& thrown) {
    return fail(Errc::invalid, fmt::format("{}: {} throws an exception, {}", model, name, thrown.what()));
  } catch (...) {
    return fail(Errc::invalid, fmt::format("{}: {} throws an exception", model, name));
  }
}

/// For a model that breaks its contract while it moves messages: it has no state from which anybody could go on.
[[noreturn]] void end_for(const std::string& why) {
  say_before_the_end(why);
  std::_Exit(1);
}

// head | what is known of each message | the model's own memory. Whatever a model says, no message ends that was not
// sent, and none ends twice.
struct SharedHead {
  std::uint64_t magic;
  std::uint32_t nodes, messages;
  std::uint64_t sent, ended, bytes;
};
struct Flight {
  std::uint32_t to, bytes;
  std::uint32_t used;
};
struct SharedPlaces {
  explicit SharedPlaces(std::uint32_t messages) {
    Shelf shelf;
    shelf.put<SharedHead>(1);
    flights = shelf.put<Flight>(messages);
    model = shelf.end();
  }
  std::size_t flights = 0, model = 0;
};

class SharedModel final : public Model, private ModelCycles {
 public:
  SharedModel(const model::Description& description, std::byte* memory, std::unique_ptr<model::Interconnect> model)
      : name_(description.name),
        head_(*reinterpret_cast<SharedHead*>(memory)),
        nodes_(head_.nodes),
        messages_(head_.messages),
        flights_(reinterpret_cast<Flight*>(memory + SharedPlaces(messages_).flights)),
        model_(std::move(model)) {}

  bool reaches(std::uint32_t from, std::uint32_t to) const override {
    return from != to && from < nodes_ && to < nodes_;
  }
  bool inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes) override {
    if (frame >= messages_ || !reaches(from, to) || flights_[frame].used != 0) return false;
    const model::Message message{frame, from, to, bytes};
    const auto taken = without_throwing(name_, "send", [&] { return model_->send(message); });
    if (!taken) end_for(taken.error().what);
    if (!*taken) return false;
    flights_[frame] = {to, bytes, 1};
    ++head_.sent;
    return true;
  }
  std::size_t run(std::uint64_t budget, std::span<Ending> endings) override {
    std::size_t n = 0;
    while (n < endings.size() && n < budget && step(kForeverCycle, endings[n])) ++n;
    return n;
  }
  bool idle() const override { return inside() == 0; }
  std::uint64_t due() const override { return kNothingDue; }
  void advance(std::uint64_t) override {}

  ModelCycles* cycles() override { return this; }
  bool run_until(std::uint64_t time, std::uint64_t period, Ending& ending) override {
    return step(time == kNothingDue ? kForeverCycle : cycle_from(time, period), ending);
  }
  std::uint64_t alone(std::uint32_t from, std::uint32_t to, std::uint32_t bytes) const override {
    return model_->alone(from, to, bytes);
  }

  std::string statistics() override {
    const std::string own = model_->counters();
    return fmt::format("ulfm: stats {}: cycles {}, messages sent {} arrived {} present {}, bytes {}{}\n", name_,
                       model_->now(), head_.sent, head_.ended, inside(), head_.bytes,
                       own.empty() ? "" : fmt::format(", {}", own));
  }

 private:
  std::uint64_t inside() const { return head_.sent - head_.ended; }
  bool step(std::uint64_t until, Ending& ending) {
    model::Arrival arrival{};
    if (inside() == 0 && until == kForeverCycle) return false;
    const auto arrived = without_throwing(name_, "run", [&] { return model_->run(until, arrival); });
    if (!arrived) end_for(arrived.error().what);
    if (!*arrived) return false;
    check(arrival, until);
    Flight& flight = flights_[arrival.number];
    flight.used = 0;
    ++head_.ended;
    head_.bytes += flight.bytes;
    ending = {arrival.number, std::min(flight.to, nodes_ - 1), arrival.cycle, true, arrival.begun};
    return true;
  }

  void check(const model::Arrival& arrival, std::uint64_t until) const {
    if (arrival.number >= messages_ || flights_[arrival.number].used == 0)
      end_for(fmt::format("{}: run says that message {} has arrived, which is not on its way", name_, arrival.number));
    if (arrival.begun > arrival.cycle || arrival.cycle >= until)
      end_for(
          fmt::format("{}: run was asked for what happens before cycle {}, and has a message that begins in cycle "
                      "{} and arrives in cycle {}",
                      name_, until, arrival.begun, arrival.cycle));
  }

  const char* name_;
  SharedHead& head_;
  std::uint32_t nodes_, messages_;  // copies: the shared ones could be changed under us
  Flight* flights_;
  std::unique_ptr<model::Interconnect> model_;
};

}  // namespace

Result<PlannedModel> plan_model(const ModelKind& kind, const model::Description& d, const ModelPlan& asked) {
  if (!asked.events.empty())
    return fail(Errc::invalid,
                fmt::format("{}: a model from a shared object has no scheduled faults; leave them out, or "
                            "take one of the library's models",
                            d.name));
  auto given = read_options(kind, asked.options);
  if (!given) return fail(std::move(given.error()));
  auto tables = std::make_shared<const NetTables>(asked.topology);
  auto values = std::make_shared<const std::vector<std::int64_t>>(values_of(d, *given));
  const model::Plan plan{tables->net(), asked.frames, values->data()};
  const auto why = without_throwing(d.name, "refuse", [&] { return d.refuse != nullptr ? d.refuse(plan) : nullptr; });
  if (!why) return fail(why.error());
  if (*why != nullptr) return fail(Errc::invalid, fmt::format("{}: {}", d.name, *why));
  const auto own = without_throwing(d.name, "bytes", [&] { return d.bytes(plan); });
  if (!own) return fail(own.error());
  if (*own > kMostBytes) return fail(Errc::too_large, fmt::format("{}: asks for {} bytes of memory", d.name, *own));
  const auto create = [&d, tables, values, frames = asked.frames](std::byte* memory) {
    *reinterpret_cast<SharedHead*>(memory) = {kMagic, tables->net().nodes, frames, 0, 0, 0};
    const model::Plan plan{tables->net(), frames, values->data()};
    return without_throwing(d.name, "create", [&] { d.create(memory + SharedPlaces(frames).model, plan); });
  };
  return PlannedModel{SharedPlaces(asked.frames).model + up_to_line(*own), create};
}

Result<std::unique_ptr<Model>> attach_model(const model::Description& d, std::byte* memory, std::size_t bytes) {
  const SharedHead head = bytes < sizeof(SharedHead) ? SharedHead{} : *reinterpret_cast<const SharedHead*>(memory);
  if (head.magic != kMagic || head.nodes == 0 || head.messages == 0 || SharedPlaces(head.messages).model > bytes)
    return fail(Errc::protocol, fmt::format("the emulated interconnect of this job holds no {}", d.name));
  const auto made =
      without_throwing(d.name, "attach", [&] { return d.attach(memory + SharedPlaces(head.messages).model); });
  if (!made) return fail(made.error());
  if (*made == nullptr) return fail(Errc::invalid, fmt::format("{}: attach gave no interconnect", d.name));
  return std::make_unique<SharedModel>(d, memory, std::unique_ptr<model::Interconnect>(*made));
}

}  // namespace ulfm::fabric::shared
