#include "transport/emulated/records.hpp"

#include <algorithm>
#include <vector>

#include <fmt/core.h>

#include "base/claim.hpp"
#include "transport/contract.hpp"

namespace ulfm::emulated {

using fabric::FabricArena;
using fabric::FabricEngine;
using fabric::Record;
using fabric::RecordState;

namespace {

constexpr std::uint64_t word(std::uint32_t generation, RecordState state) {
  return std::uint64_t{generation} << 32 | static_cast<std::uint32_t>(state);
}
constexpr RecordState state_in(std::uint64_t use) { return static_cast<RecordState>(static_cast<std::uint32_t>(use)); }
constexpr std::uint32_t generation_in(std::uint64_t use) { return static_cast<std::uint32_t>(use >> 32); }

// Release pairs with claiming: what was read of the record has been read.
bool free_record(FabricArena& arena, std::uint32_t index, std::uint64_t expected) noexcept {
  const std::uint64_t after = word(generation_in(expected), RecordState::free);
  if (!arena.record(index).use.compare_exchange_strong(expected, after, std::memory_order_release,
                                                       std::memory_order_relaxed))
    return false;
  arena.header().records_freed.fetch_add(1, std::memory_order_release);
  return true;
}

// Finds records whose end nobody will tell. Each process is looked at once: its token stands for it, since its endpoint
// may go to another one meanwhile.
class Leftovers {
 public:
  explicit Leftovers(FabricEngine& engine)
      : engine_(engine), arena_(engine.arena()), processes_(arena_.sizes().endpoints, Process{}) {}

  std::uint32_t give_back() {
    std::uint32_t found = 0;
    const std::uint32_t used =
        std::min(arena_.header().records_used.load(std::memory_order_acquire), arena_.sizes().records);
    for (std::uint32_t i = 0; i < used; ++i) {
      const std::uint64_t use = arena_.record(i).use.load(std::memory_order_acquire);  // shown: filled in
      if (is_over(arena_.record(i), state_in(use)) && free_record(arena_, i, use)) ++found;
    }
    return found;
  }

 private:
  struct Process {
    bool known = false;
    std::uint64_t token = 0;
    bool alive = false, left_nothing = false;
  };

  const Process& look_at(std::uint32_t endpoint) {
    Process& process = processes_[endpoint];
    const std::uint64_t token = arena_.endpoint(endpoint).token;
    if (!process.known || process.token != token)
      process = {true, token, engine_.is_alive(endpoint), engine_.may_reuse(endpoint)};
    return process;
  }

  // Nobody has met it and nobody will, or whoever has met it is gone. A port that is being closed forgets by itself
  // what it has met; what it has not met it may meet and forget just now, and one of both finds this use over.
  bool is_over(const Record& record, RecordState state) {
    if (state != RecordState::ready && state != RecordState::known) return false;
    if (record.to >= processes_.size() || record.from >= processes_.size()) return false;
    const fabric::Endpoint& to = arena_.endpoint(record.to);
    if (to.token != record.to_token || !look_at(record.to).alive) return true;
    if (state == RecordState::known) return false;
    if (record.to_port < kPortsPerProcess &&
        to.generation[record.to_port].load(std::memory_order_acquire) != record.to_generation)
      return true;
    return arena_.endpoint(record.from).token != record.from_token || look_at(record.from).left_nothing;
  }

  FabricEngine& engine_;
  FabricArena& arena_;
  std::vector<Process> processes_;
};

Result<std::int64_t> claim_any(FabricArena& arena, std::uint32_t& generation) {
  fabric::ArenaHeader& h = arena.header();
  return claim_place(
      {h.records_used, h.records_freed}, arena.sizes().records,
      [&](std::uint32_t i) {
        std::uint64_t use = arena.record(i).use.load(std::memory_order_relaxed);
        generation = generation_in(use) + 1;
        // Acquire pairs with free_record(). Whoever dies before it shows the record takes it along.
        return state_in(use) == RecordState::free &&
               arena.record(i).use.compare_exchange_strong(use, word(generation, RecordState::claimed),
                                                           std::memory_order_acquire, std::memory_order_relaxed);
      },
      [&](std::uint32_t i) { return arena.commit_record(i); });
}

}  // namespace

Result<RecordUse> claim_record(FabricEngine& engine) {
  FabricArena& arena = engine.arena();
  std::uint32_t generation = 0;
  auto index = claim_any(arena, generation);
  if (index && *index < 0 && Leftovers(engine).give_back() != 0) index = claim_any(arena, generation);
  if (!index) return fail(index.error());
  if (*index < 0)
    return fail(Errc::full,
                fmt::format("the emulated interconnect of this job holds {} connections, and all are in use",
                            arena.sizes().records));
  return RecordUse{static_cast<std::uint32_t>(*index), generation};
}

void show_record(FabricArena& arena, RecordUse use) noexcept {
  arena.record(use.record).use.store(word(use.generation, RecordState::ready), std::memory_order_release);
}

bool meet_record(FabricArena& arena, RecordUse use) noexcept {
  std::uint64_t shown = word(use.generation, RecordState::ready);
  return arena.record(use.record)
      .use.compare_exchange_strong(shown, word(use.generation, RecordState::known), std::memory_order_acq_rel,
                                   std::memory_order_relaxed);
}

bool has_record(const FabricArena& arena, RecordUse use) noexcept {
  const std::uint64_t now = arena.record(use.record).use.load(std::memory_order_acquire);
  return now == word(use.generation, RecordState::ready) || now == word(use.generation, RecordState::known);
}

void give_back_record(FabricArena& arena, RecordUse use) noexcept {
  (void)free_record(arena, use.record, word(use.generation, RecordState::known));
}

void give_back_unmet(FabricArena& arena, RecordUse use) noexcept {
  (void)free_record(arena, use.record, word(use.generation, RecordState::ready));
}

}  // namespace ulfm::emulated
