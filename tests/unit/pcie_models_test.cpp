// The production model of a host with boards against the reference: random traffic, readers, faults, and deaths in the
// middle of a step.
#include <span>

#include "pcie_pair.hpp"

using namespace test;
using namespace test::pcie;

namespace {

constexpr std::uint32_t kFrames = 24;

Parameters draw_parameters(Draw& draw) {
  Parameters p;
  p.boards = 2 + draw.below(4);
  p.processes = p.boards + draw.below(6);
  p.frames = kFrames;
  p.message = 1 + draw.below(200);
  p.fragment = 1 + draw.below(draw.one_in(2) ? 20 : 200);
  p.pool = p.message + draw.below(draw.one_in(2) ? 100 : 1000);
  p.memory = p.message + draw.below(draw.one_in(2) ? 100 : 2000);
  p.cut_through = draw.one_in(2);
  return p;
}

/// One random step. `faults`: boards and the host may die and come back.
void act(Draw& draw, Pair& pair, const Parameters& p, bool faults) {
  switch (draw.below(faults ? 14 : 12)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5: {
      const std::uint32_t from = draw.below(p.processes), to = draw.below(p.processes);
      if (pair.has_frame()) pair.post(from, to, draw.below(3), draw.below(p.message + 1));
      break;
    }
    case 6:
    case 7: pair.run(1 + draw.below(draw.one_in(2) ? 3 : 100), 1 + draw.below(5)); break;
    case 8: pair.read(draw.below(4)); break;
    case 9: pair.read(); break;
    case 10: pair.drain(); break;
    case 11:
      if (draw.one_in(3)) pair.read_all();
      break;
    case 12: pair.set_board(draw.below(p.boards), draw.one_in(2)); break;
    default:
      if (draw.one_in(3)) pair.set_host(draw.one_in(2));
  }
}

void finish(Pair& pair, const Parameters& p) {
  pair.set_host(true);
  for (std::uint32_t b = 0; b < p.boards; ++b) pair.set_board(b, true);
  for (std::uint32_t round = 0; round < 10000 && (pair.in_flight() != 0 || pair.unread() != 0); ++round) {
    pair.drain();
    pair.read_all();
  }
  must(pair.in_flight() == 0, "a message is left");
  must(pair.relay.host().reserved == 0 && pair.relay.host().stored == 0, "memory is left in use");
}

void run_both(Draw& draw, bool faults) {
  const Parameters p = draw_parameters(draw);
  must(check(p).has_value(), "the parameters are refused");
  Pair pair(p);
  while (draw.more()) {
    act(draw, pair, p, faults);
    if (draw.one_in(10)) pair.move_elsewhere();
    if (draw.one_in(10)) pair.advance(draw.below(draw.one_in(2) ? 3 : 50));
  }
  finish(pair, p);
}

/// Puts a copy of the arena, as a process would leave it that dies before its step is done, back to what it was.
class Deaths final : public StepObserver {
 public:
  Deaths(const Pair& pair, const Parameters& p)
      : memory_(pair.memory(), pair.memory_bytes()), copy_(memory_.size()), p_(p) {}
  void before_step() override { before_.assign(memory_.begin(), memory_.end()); }
  void before_commit() override {
    std::memcpy(copy_.get(), memory_.data(), memory_.size());
    const BoardArena arena(copy_.get(), p_);
    must(arena.roll_back(), "the journal makes no sense");
    ++steps;
    // What a reader writes, and what is for it, is not in the journal; nor is the journal itself.
    for (std::uint32_t i = 0; i <= arena.pools(); ++i)
      arena.reader(i).awaited.store(
          reinterpret_cast<const RelayPool*>(before_.data() + offset(arena, i))->awaited.load());
    must(std::memcmp(copy_.get() + sizeof(Journal), before_.data() + sizeof(Journal),
                     before_.size() - sizeof(Journal)) == 0,
         "a step has changed what is not in its journal");
  }
  std::uint64_t steps = 0;

 private:
  std::ptrdiff_t offset(const BoardArena& arena, std::uint32_t pool) const {
    return reinterpret_cast<const std::byte*>(&arena.pool(pool)) - copy_.get();
  }
  std::span<const std::byte> memory_;
  ArenaMemory copy_;
  Parameters p_;
  std::vector<std::byte> before_;
};

}  // namespace

TEST_CASE("both models of a host with boards do the same in every turn", "[pcie]") {
  property(
      "traffic and readers", [](Draw& draw) { run_both(draw, false); }, 12);
}

TEST_CASE("both models of a host with boards do the same when boards and the host die", "[pcie]") {
  property(
      "traffic, readers and faults", [](Draw& draw) { run_both(draw, true); }, 12);
}

TEST_CASE("a step that is not done can be put back, whatever it was", "[pcie]") {
  property("traffic, readers and faults", [](Draw& draw) {
    const Parameters p = draw_parameters(draw);
    Pair pair(p);
    Deaths deaths(pair, p);
    pair.relay.observe(&deaths);
    while (draw.more()) act(draw, pair, p, true);
    must(pair.relay.recover(), "nothing was to recover, and it failed");
    finish(pair, p);
  });
}

TEST_CASE("messages of one sender to one port arrive in order", "[pcie]") {
  property("order", [](Draw& draw) {
    const Parameters p = draw_parameters(draw);
    Pair pair(p);
    std::map<std::uint32_t, std::uint32_t> next;  // by sender and port: number of the next arrival
    std::map<FrameId, std::pair<std::uint32_t, std::uint32_t>> number;
    std::map<std::uint32_t, std::uint32_t> posted;
    std::size_t seen = 0;
    const auto look = [&] {
      for (; seen < pair.reference.endings().size(); ++seen) {
        const auto [key, expected] = number[pair.reference.endings()[seen].frame];
        must(next[key]++ == expected, "one has overtaken another");
      }
    };
    while (draw.more()) {
      const std::uint32_t from = draw.below(p.processes), port = draw.below(2);
      if (pair.has_frame() && pair.post(from, 0, port, draw.below(p.message + 1)))
        number[pair.last] = {from * 2 + port, posted[from * 2 + port]++};
      if (draw.one_in(3)) pair.run(1 + draw.below(40)), look();
      if (draw.one_in(3)) pair.read(), look();
    }
    finish(pair, p);
    look();
  });
}
