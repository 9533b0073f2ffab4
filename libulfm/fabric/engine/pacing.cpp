// Of a model that keeps to real time (`pace`): who must look again when, and how late it has been.
#include <fmt/core.h>

#include "fabric/engine/engine.hpp"

namespace ulfm::fabric {
namespace {

// A sleep ends late by the system's timer slack and the time to wake; a paced model is to be on time, so the last of a
// wait is awake.
constexpr std::uint64_t kWakeEarly = 100'000;  // nanoseconds
constexpr std::uint64_t kLate = 100'000;       // nanoseconds that a paced model may be late without a word

}  // namespace

// Without pacing no clock is read: nothing is ever noted.
bool FabricEngine::is_due() const noexcept {
  const std::uint64_t due = arena_.header().due.load(std::memory_order_relaxed);
  return due != 0 && monotonic_now() >= due;
}

std::chrono::nanoseconds FabricEngine::next_deadline() const noexcept {
  const std::uint64_t due = arena_.header().due.load(std::memory_order_acquire);  // pairs with note_due()
  if (due == 0 || (process_ && self_ != kEngineProcess)) return std::chrono::nanoseconds::max();
  if (self_ != kEngineProcess && arena_.endpoint(self_).coming.load(std::memory_order_relaxed) == 0)
    return std::chrono::nanoseconds::max();
  const std::uint64_t wake = due - std::min(due, kWakeEarly), now = monotonic_now();
  return std::chrono::nanoseconds(wake > now ? wake - now : 0);
}

std::uint64_t FabricEngine::next_due() const noexcept { return std::min(model_->due(), pace_->next_event()); }

void FabricEngine::catch_up() noexcept {
  ArenaHeader& h = arena_.header();
  const std::uint64_t now = monotonic_now() - h.began;
  if (pace_ == nullptr) return model_->advance(now);
  if (const std::uint64_t due = next_due(); due < now && now - due > kLate) {
    ++h.late;
    h.most_late = std::max(h.most_late, now - due);
  }
  pace_->advance_all(now);
}

std::string FabricEngine::how_late() const {
  const ArenaHeader& h = arena_.header();
  if (pace_ == nullptr || h.late == 0) return "";
  return fmt::format(
      "fell behind its pace {} times, by {} us at most: frames came that much later than the machine's; --time virtual "
      "does not depend on this host",
      h.late, h.most_late / 1000);
}

// For those who wait: when somebody must look again.
void FabricEngine::note_due() noexcept {
  ArenaHeader& h = arena_.header();
  const std::uint64_t due = next_due();
  h.due.store(due == kNothingDue ? 0 : h.began + due, std::memory_order_release);  // pairs with next_deadline()
}

// A frame has begun its way over a paced model. Its receiver may be asleep and not know that it must look again; from
// here to note_due() it finds something to do.
void FabricEngine::announce(const Destination& to) noexcept {
  arena_.header().due.store(1, std::memory_order_release);  // pairs with next_deadline()
  if (arena_.endpoint(to.endpoint).generation[to.port].load(std::memory_order_acquire) % 2 == 1)
    arena_.box(to.endpoint, to.port).bell.ring();
}

void FabricEngine::count_coming(std::uint32_t to, std::int32_t more) noexcept {
  if (to >= arena_.sizes().endpoints) return;
  std::atomic<std::uint32_t>& coming = arena_.endpoint(to).coming;
  coming.store(coming.load(std::memory_order_relaxed) + static_cast<std::uint32_t>(more), std::memory_order_relaxed);
}

}  // namespace ulfm::fabric
