// A model that breaks the rules of <ulfm/model.hpp>: its option says which. Otherwise it delivers one message after the
// other, each in ten cycles.
#include <stdexcept>

#include <ulfm/model.hpp>

namespace {

using namespace ulfm::model;

enum Lie : std::int64_t {
  none,
  in_refuse,  // throws there
  in_bytes,
  in_create,
  in_attach,
  in_send,
  in_run,
  unknown,   // says that a message has arrived that nobody sent
  twice,     // says so again of the last one
  too_late,  // says so of a cycle that it was not asked for
};
const Option kOptions[] = {{"lie", none, too_late, none}};

struct State {
  std::int64_t lie;
  std::uint64_t now;
  std::uint32_t inside, last, messages;
  std::uint32_t& queued(std::uint32_t place) { return reinterpret_cast<std::uint32_t*>(this + 1)[place]; }
};

void throw_in(std::int64_t lie, Lie here) {
  if (lie == here) throw std::runtime_error("as it was told to");
}

class Liar final : public Interconnect {
 public:
  explicit Liar(State& state) : s_(state) {}
  std::uint64_t now() const override { return s_.now; }
  bool send(const Message& message) override {
    throw_in(s_.lie, in_send);
    s_.queued(s_.inside++) = message.number;
    return true;
  }
  bool run(std::uint64_t until, Arrival& arrival) override {
    throw_in(s_.lie, in_run);
    if (s_.inside == 0 || s_.now + 10 >= until) {
      if (s_.now < until) s_.now = until;
      return false;
    }
    arrival = {s_.queued(0), s_.now, s_.now + 9};
    if (s_.lie == unknown) arrival.number = s_.messages;
    if (s_.lie == twice && s_.last != s_.messages) arrival.number = s_.last;
    if (s_.lie == too_late) arrival.cycle = until;
    s_.last = s_.queued(0);
    --s_.inside;
    for (std::uint32_t i = 0; i < s_.inside; ++i) s_.queued(i) = s_.queued(i + 1);
    s_.now += 10;
    return true;
  }

 private:
  State& s_;
};

}  // namespace

ULFM_MODEL({.name = "liar",
            .summary = "for tests: breaks the rules",
            .topology = "single:4",
            .cycle_ns = 10,
            .options = kOptions,
            .option_count = 1,
            .refuse = [](const Plan& plan) -> const char* { return throw_in(plan.options[0], in_refuse), nullptr; },
            .bytes =
                [](const Plan& plan) {
                  throw_in(plan.options[0], in_bytes);
                  return sizeof(State) + plan.messages * sizeof(std::uint32_t);
                },
            .create =
                [](void* memory, const Plan& plan) {
                  throw_in(plan.options[0], in_create);
                  *static_cast<State*>(memory) = {plan.options[0], 1, 0, plan.messages, plan.messages};
                },
            .attach = [](void* memory) -> Interconnect* {
              throw_in(static_cast<State*>(memory)->lie, in_attach);
              return new Liar(*static_cast<State*>(memory));
            }})
