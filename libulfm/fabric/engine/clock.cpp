#include "fabric/engine/clock.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "base/last_words.hpp"
#include "base/trace.hpp"
#include "base/wait.hpp"
#include "fabric/engine/engine.hpp"
#include "job/liveness.hpp"

namespace ulfm::fabric {
namespace {

constexpr long kLookForDead = 200'000'000;  // nanoseconds of the host between two looks of who sleeps
// Looks, about 20 us. Mostly the turn comes back sooner, and in a virtual machine an idle core takes longer to wake.
constexpr std::uint32_t kLooksBeforeSleep = 2000;
constexpr std::uint32_t kLooksOfTurn = 16;    // between two yields where cores are shared
constexpr std::uint32_t kLooksForLock = 300;  // about 3 us: it is held for one, unless its holder has lost its core
constexpr std::uint64_t kSuspicion = 1'000'000'000;   // picoseconds: when a wait that others may end looks again
constexpr std::uint32_t kMostSuspicions = 2000;       // such looks in a row before it is a deadlock
constexpr std::uint32_t kSequenceBits = 44;           // of SlotTime::order
constexpr std::uint64_t kLastMoment = kNoMoment / 2;  // picoseconds: 106 days, and room for what is reckoned behind it
constexpr std::uint64_t kPlaceTime = 1000;            // picoseconds: of who starts another process, or ends it

/// False when the time is up.
bool futex_wait(void* word, std::uint32_t value, long nanoseconds) noexcept {
  const timespec limit{0, nanoseconds};
  return syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, nullptr, 0) == 0 || errno != ETIMEDOUT;
}
void futex_wake(void* word, int how_many) noexcept {
  syscall(SYS_futex, word, FUTEX_WAKE, how_many, nullptr, nullptr, 0);
}

}  // namespace

VirtualClock::VirtualClock(FabricEngine& engine, FabricArena& arena, Model& model, std::uint32_t self)
    : engine_(engine), arena_(arena), model_(model), cycles_(*model.cycles()), time_(arena.header().time), self_(self) {
  lock();
  ProcessClock& c = mine();
  c.tid = static_cast<std::uint32_t>(getpid());
  if (c.state.load(std::memory_order_relaxed) != ClockState::runs) {
    // One that the job did not begin with: nobody may have passed the moment at which it begins.
    // With everybody at a standstill that is the latest of their times.
    std::uint64_t latest = 0;
    for (std::uint32_t e = 0; e < used(); ++e)
      latest = std::max(latest, arena_.clock(e).now.load(std::memory_order_relaxed));
    c.now.store(std::min(latest, time_.passed.load(std::memory_order_relaxed)), std::memory_order_relaxed);
    c.state.store(ClockState::runs, std::memory_order_release);
  }
  set_bounding(self_, true);
  arrivals_seen_ = arrivals_reported_ = c.arrived.load(std::memory_order_relaxed);
  unlock();
  begin_gaps();
  of_process_ = this;
}

VirtualClock::~VirtualClock() {
  of_process_ = nullptr;
  end_gaps();
  lock();
  mine().state.store(ClockState::ended, std::memory_order_release);
  set_bounding(self_, false);
  ++time_.ended;
  drive();
  unlock();
}

// ---- the lock -------------------------------------------------------------------------------------------------------

void VirtualClock::expect_processes(bool begin) noexcept {
  lock();
  if (begin) ++time_.expecting;
  else if (time_.expecting != 0) --time_.expecting;
  unlock();
}

// Drepper's second mutex ("Futexes are tricky"), with the name of its holder in it, so that the death of one is seen
// whenever it comes. An observer from outside holds the engine while it copies the model.
void VirtualClock::lock() noexcept {
  const std::uint32_t me = self_ + 1;
  std::uint32_t found = 0;
  for (std::uint32_t look = kLooksForLock; look != 0; --look, after_look())
    if (time_.lock.load(std::memory_order_relaxed) == 0) break;  // the exchange acquires it
  // A process that has slept for the lock does not know whether others still sleep, so it keeps the mark.
  for (std::uint32_t mine = me; !time_.lock.compare_exchange_strong(found, mine, std::memory_order_acquire);) {
    if (found != 0 && ((found & kAwaited) != 0 ||
                       time_.lock.compare_exchange_strong(found, found | kAwaited, std::memory_order_relaxed))) {
      const std::uint32_t holder = found & ~kAwaited;
      if (!futex_wait(&time_.lock, holder | kAwaited, kLookForDead)) end_if_dead(holder);
      mine = me | kAwaited;
    }
    found = 0;
  }
  std::uint32_t nobody = 0;
  while (!arena_.header().holder.compare_exchange_strong(nobody, me, std::memory_order_acquire)) {
    if (nobody != 0) end_if_broken();
    nobody = 0;
    yield_now();
  }
}

void VirtualClock::unlock() noexcept {
  const std::vector<std::uint32_t> woken = std::move(to_wake_);
  to_wake_.clear();
  arena_.header().holder.store(0, std::memory_order_release);
  if ((time_.lock.exchange(0, std::memory_order_release) & kAwaited) != 0) futex_wake(&time_.lock, 1);
  for (const std::uint32_t endpoint : woken) futex_wake(&arena_.clock(endpoint).state, 1);
}

// Whoever died with the lock may have left anything half done.
void VirtualClock::end_if_dead(std::uint32_t holder) noexcept {
  if (holder != 0 && holder != self_ + 1 && !engine_.runs(holder - 1))
    arena_.header().broken.store(holder, std::memory_order_relaxed);
  end_if_broken();
}

void VirtualClock::end_if_broken() noexcept {
  const std::string why = engine_.why_broken();
  if (why.empty()) return;
  say_before_the_end(why);
  std::_Exit(1);
}

// ---- this process's time --------------------------------------------------------------------------------------------

// Either whoever moves the network reads the new time, or this reads the moment up to which it came: full barriers on
// both sides.
void VirtualClock::spend(std::uint64_t picoseconds, Spent on) noexcept {
  if (picoseconds == 0) return;
  ProcessClock& c = mine();
  const std::uint64_t before = now(), after = before + picoseconds;
  if (after < before || after > kLastMoment) end_behind_last_moment();
  (on == Spent::computing ? c.computing : on == Spent::messages ? c.messages : c.waiting) += picoseconds;
  c.now.store(after, std::memory_order_seq_cst);
  if (before + 1 > time_.passed.load(std::memory_order_seq_cst)) return;  // not for this one have they waited
  if (after >= time_.alarm.load(std::memory_order_seq_cst)) go_on();
}

void VirtualClock::end_behind_last_moment() const noexcept {
  say_before_the_end(fmt::format("--time virtual: {} goes beyond 106 days, where virtual time ends, in {}",
                                 arena_.sizes().name_of(self_), mine().call));
  std::_Exit(1);
}

void VirtualClock::go_on() noexcept {
  lock();
  drive();
  unlock();
}

void VirtualClock::look() noexcept {
  if (time_.passed.load(std::memory_order_acquire) <= now()) (void)wait_for(now(), nothing);
}

VirtualTime::Woken VirtualClock::wait(std::uint64_t until, Patience patience) noexcept {
  std::uint32_t wants = patience == Patience::others_too ? traffic | others : traffic;
  if (std::exchange(wants_room_, false)) wants |= room;
  if (has_places_) wants |= places;
  return wait_for(std::max(until, now()), wants);
}

VirtualTime::Woken VirtualClock::wait_for(std::uint64_t until, std::uint32_t wants) noexcept {
  ProcessClock& c = mine();
  const std::uint64_t before = now();
  lock();
  if (has_come(wants)) return unlock(), Woken::arrival;
  c.wants = wants;
  // A process may wait without a check before. Its node accepts more when a check now would find nothing.
  c.looks = (wants & traffic) != 0 && engine_.has_back_pressure() ? 1 : 0;
  c.then_until = until;
  c.state.store(ClockState::waits, std::memory_order_relaxed);
  wait_until(self_, c.looks != 0 ? before : until);
  drive();
  unlock();
  sleep();
  c.waiting += now() - before;
  trace::note_virtual_wait(before / 1000);
  // A look, for room say, reports nothing: whether it had to wait at all is the host's affair.
  if ((wants & traffic) != 0)
    arrivals_reported_ = std::max(arrivals_reported_, c.arrived.load(std::memory_order_relaxed));
  return static_cast<Woken>(c.woken);
}

// What is waited for has come behind the last look and before this wait: the process's time went on in between. Whether
// the network has done it already or would do it now is the host's affair, and must make no difference.
bool VirtualClock::has_come(std::uint32_t wants) noexcept {
  const ProcessClock& c = mine();
  if ((wants & room) != 0 && c.returned.load(std::memory_order_relaxed) != returned_seen_) return true;
  const std::uint64_t arrived = c.arrived.load(std::memory_order_relaxed);
  if ((wants & traffic) == 0 || arrived == arrivals_reported_ ||
      arrived == arrivals_seen_.load(std::memory_order_relaxed))
    return false;
  arrivals_reported_ = arrived;
  return true;
}

// For some microseconds; true when it has come. Nobody's turn is taken by looking where each process has a core. Where
// they have not, as many as there are cores look between yields: an idle core takes longer to wake than another turn.
bool VirtualClock::look_for_turn() noexcept {
  const ProcessClock& c = mine();
  const bool own_core = engine_.has_own_core() && used() <= arena_.sizes().processes;
  const bool may_look = own_core || time_.lookers.fetch_add(1, std::memory_order_relaxed) < time_.cores;
  bool came = false;
  for (std::uint32_t look = may_look ? kLooksBeforeSleep : 0; look != 0 && !came; --look) {
    came = c.state.load(std::memory_order_acquire) != ClockState::waits;  // pairs with wake()
    if (own_core || look % kLooksOfTurn != 0) after_look();
    else yield_now();
  }
  if (!own_core) time_.lookers.fetch_sub(1, std::memory_order_relaxed);
  return came;
}

void VirtualClock::sleep() noexcept {
  ProcessClock& c = mine();
  if (look_for_turn()) return;
  while (c.state.load(std::memory_order_acquire) == ClockState::waits) {  // pairs with wake()
    if (!futex_wait(&c.state, static_cast<std::uint32_t>(ClockState::waits), kLookForDead) &&
        c.state.load(std::memory_order_acquire) == ClockState::waits)
      look_for_dead();
  }
}

// The last one wakes the others, at its own time or theirs, whichever is latest. They are all bounds again before
// anybody goes on.
void VirtualClock::barrier() noexcept {
  ProcessClock& c = mine();
  const std::uint64_t before = now();
  if (self_ >= arena_.sizes().processes) return;  // not one of those that the job began with
  lock();
  c.wants = barrier_end;
  c.looks = 0;
  c.state.store(ClockState::waits, std::memory_order_relaxed);
  wait_until(self_, kNoMoment);
  time_.barrier_at = std::max(time_.barrier_at, before);
  if (++time_.in_barrier == arena_.sizes().processes) {
    for (std::uint32_t e = 0; e < arena_.sizes().processes; ++e)
      if (const ProcessClock& other = arena_.clock(e);
          other.state.load(std::memory_order_relaxed) == ClockState::waits && other.wants == barrier_end)
        wake(e, time_.barrier_at, Woken::arrival);
    time_.in_barrier = 0;
    time_.barrier_at = 0;
  }
  drive();
  unlock();
  sleep();
  c.waiting += now() - before;
}

// The host's affair: a process that died is nobody's bound. Its end is found out in host time and changes no time.
void VirtualClock::look_for_dead() noexcept {
  end_if_broken();
  lock();
  bool died = false;
  for (std::uint32_t e = 0; e < used(); ++e) {
    ProcessClock& c = arena_.clock(e);
    const ClockState state = c.state.load(std::memory_order_relaxed);
    if (c.tid == 0 || e == self_ || state == ClockState::unused || state == ClockState::ended || engine_.runs(e))
      continue;
    end_clock(e);
    died = true;
  }
  if (died) drive();
  unlock();
}

void VirtualClock::end_clock(std::uint32_t endpoint) noexcept {
  arena_.clock(endpoint).state.store(ClockState::ended, std::memory_order_relaxed);
  set_bounding(endpoint, false);
  ++time_.ended;
  engine_.admit_timed(endpoint, Unread::all);
}

// ---- processes that this one starts ---------------------------------------------------------------------------------

// The new process is a bound from the moment at which it was started, before it has joined. The caller's time advances
// a little: the process exists for all who ask later, and does not for those who asked before.
void VirtualClock::begin_place(std::uint32_t place, std::int32_t pid) noexcept {
  if (place >= arena_.sizes().processes || place == self_) return;
  lock();
  Endpoint& endpoint = arena_.endpoint(place);
  endpoint.pid = pid;  // as it will write itself; others check by it whether it still runs
  endpoint.started = start_time(pid);
  ProcessClock& c = arena_.clock(place);
  c.now.store(now(), std::memory_order_relaxed);
  c.tid = static_cast<std::uint32_t>(pid);
  c.begun_by = self_ + 1;
  c.call[0] = 0;
  c.state.store(ClockState::runs, std::memory_order_release);
  set_bounding(place, true);
  has_places_ = true;
  unlock();
  spend(kPlaceTime, Spent::messages);
}

// Whoever ended at this very moment may or may not have done so yet.
bool VirtualClock::place_has_ended(std::uint32_t place) noexcept {
  if (place >= arena_.sizes().processes) return false;
  lock();
  ProcessClock& c = arena_.clock(place);
  const bool ended =
      c.state.load(std::memory_order_relaxed) == ClockState::ended && c.now.load(std::memory_order_relaxed) < now();
  if (ended) c.begun_by = 0;
  unlock();
  return ended;
}

void VirtualClock::end_place(std::uint32_t place) noexcept {
  if (place >= arena_.sizes().processes || place == self_) return;
  lock();
  ProcessClock& c = arena_.clock(place);
  if (const ClockState state = c.state.load(std::memory_order_relaxed);
      state == ClockState::runs || state == ClockState::waits) {
    c.now.store(std::min(c.now.load(std::memory_order_relaxed), now()), std::memory_order_relaxed);
    end_clock(place);
    drive();
  }
  unlock();
  spend(kPlaceTime, Spent::messages);
}

// ---- the network, under the lock ------------------------------------------------------------------------------------

std::uint32_t VirtualClock::used() const noexcept {
  return std::min(arena_.header().endpoints_used.load(std::memory_order_acquire), arena_.sizes().endpoints);
}

void VirtualClock::set_bounding(std::uint32_t endpoint, bool bounds) noexcept {
  const std::uint64_t bit = std::uint64_t{1} << endpoint % 64;
  std::uint64_t& word = arena_.header().bounding[endpoint / 64];
  word = bounds ? word | bit : word & ~bit;
}

// A process that waits for a moment, or for those that it started, may still send before anything comes to it.
void VirtualClock::wait_until(std::uint32_t endpoint, std::uint64_t until) noexcept {
  ProcessClock& c = arena_.clock(endpoint);
  c.until = until;
  set_bounding(endpoint, until != kNoMoment || (c.wants & places) != 0);
}

/// Processes that run, and those that wait for a moment: of many that wait, most do for what is sent to them.
template <typename Visit>
void VirtualClock::each_bounding(Visit visit) const noexcept {
  for (std::uint32_t w = 0; w < (used() + 63) / 64; ++w)
    for (std::uint64_t bits = arena_.header().bounding[w]; bits != 0; bits &= bits - 1)
      visit(w * 64 + static_cast<std::uint32_t>(std::countr_zero(bits)));
}

// Whatever is still to be sent is stamped with this moment or a later one.
std::uint64_t VirtualClock::bound() const noexcept {
  std::uint64_t least = kNoMoment;
  each_bounding([&](std::uint32_t e) {
    const ProcessClock& c = arena_.clock(e);
    switch (c.state.load(std::memory_order_acquire)) {
      case ClockState::runs: least = std::min(least, c.now.load(std::memory_order_seq_cst) + 1); break;
      case ClockState::waits:
        if (const std::uint64_t until = moment_of(c); until != kNoMoment) least = std::min(least, until + 1);
        break;
      default: break;
    }
  });
  return least;
}

// The moment at which a wait ends by itself: its own, or just behind the first end of a process that the waiter began.
std::uint64_t VirtualClock::moment_of(const ProcessClock& waiter) const noexcept {
  std::uint64_t moment = waiter.until;
  if ((waiter.wants & places) == 0) return moment;
  const auto parent = static_cast<std::uint32_t>(&waiter - &arena_.clock(0)) + 1;
  for (std::uint32_t e = 0; e < arena_.sizes().processes; ++e)
    if (const ProcessClock& c = arena_.clock(e);
        c.begun_by == parent && c.state.load(std::memory_order_relaxed) == ClockState::ended)
      moment = std::min(
          moment, std::max(c.now.load(std::memory_order_relaxed) + 1, waiter.now.load(std::memory_order_relaxed)));
  return moment;
}

// A process sees the end of a process that it began once. True when there was one before that moment.
bool VirtualClock::forget_ends(std::uint32_t endpoint, std::uint64_t moment) noexcept {
  bool found = false;
  if ((arena_.clock(endpoint).wants & places) == 0) return false;
  for (std::uint32_t e = 0; e < arena_.sizes().processes; ++e) {
    ProcessClock& c = arena_.clock(e);
    if (c.begun_by != endpoint + 1 || c.state.load(std::memory_order_relaxed) != ClockState::ended ||
        c.now.load(std::memory_order_relaxed) >= moment)
      continue;
    c.begun_by = 0;
    found = true;
  }
  return found;
}

void VirtualClock::drive() noexcept {
  for (;;) {
    limit_ = bound();
    take_in();  // behind bound(): a process whose clock was read has published what it sent before
    // Meanwhile the clocks of others only advance, and a process that is woken lowers the limit itself, so the limit
    // need not be computed again.
    for (; step(limit_); ++time_.handled) time_.idle_rounds = time_.standstills = 0;
    const std::uint64_t before = limit_;
    time_.passed.store(before, std::memory_order_seq_cst);
    const std::uint64_t next = wake_moments(before);
    time_.alarm.store(std::min(next, next_event()), std::memory_order_seq_cst);
    if (before == kNoMoment && wake_stuck()) continue;
    if (bound() <= before) return;  // nobody's time has gone on meanwhile
  }
}

// Waits whose moment has passed end. Returns the least moment that somebody still waits for.
std::uint64_t VirtualClock::wake_moments(std::uint64_t before) noexcept {
  std::uint64_t next = kNoMoment;
  each_bounding([&](std::uint32_t e) {
    const ProcessClock& c = arena_.clock(e);
    if (c.state.load(std::memory_order_relaxed) != ClockState::waits) return;
    if (c.looks != 0 && c.until < before) wait_on(e);
    const std::uint64_t moment = moment_of(c);
    if (moment == kNoMoment) return;
    if (moment < before) wake(e, moment, forget_ends(e, moment) ? Woken::ended : Woken::moment);
    else next = std::min(next, moment);
  });
  return next;
}

// Nothing has come by the moment at which its wait began, as a look would have found: see admit_more().
void VirtualClock::wait_on(std::uint32_t endpoint) noexcept {
  ProcessClock& c = arena_.clock(endpoint);
  c.looks = 0;
  if (engine_.is_stalled(endpoint)) admit_more_to(endpoint, c.until);
  wait_until(endpoint, c.then_until);
}

// Everybody waits for somebody else, and nothing is on its way. True when somebody looks again.
bool VirtualClock::wake_stuck() noexcept {
  bool woken = false, waits = false, suspects = false;
  for (std::uint32_t e = 0; e < used(); ++e) {
    ProcessClock& c = arena_.clock(e);
    if (c.state.load(std::memory_order_relaxed) != ClockState::waits) continue;
    waits = true;
    suspects = suspects || (c.wants & others) != 0;
    if (c.ended_seen == time_.ended || (c.wants & traffic) == 0) continue;
    c.ended_seen = time_.ended;
    wake(e, c.now.load(std::memory_order_relaxed), Woken::ended);
    woken = true;
  }
  if (woken || !waits || time_.expecting != 0) return woken;
  if (!suspects || ++time_.idle_rounds > kMostSuspicions) {
    if (!ask_for_whom()) end_deadlocked();
    return true;
  }
  for (std::uint32_t e = 0; e < used(); ++e) {
    const ProcessClock& c = arena_.clock(e);
    if (c.state.load(std::memory_order_relaxed) == ClockState::waits && (c.wants & others) != 0)
      wake(e, c.now.load(std::memory_order_relaxed) + kSuspicion, Woken::moment);
  }
  return true;
}

// Of the ranks that the job began with.
Result<StallBoard> VirtualClock::stall_board() const {
  const ArenaSizes& sizes = arena_.sizes();
  return StallBoard::attach(static_cast<int>(self_), static_cast<int>(sizes.processes - sizes.hosts));
}

// Each process knows itself for whom it waits. False when that has been asked, or nobody can answer.
bool VirtualClock::ask_for_whom() noexcept {
  bool woken = false;
  if (std::exchange(time_.standstills, 1) != 0) return false;
  if (auto board = stall_board(); board) board->ask(std::chrono::steady_clock::now().time_since_epoch().count());
  for (std::uint32_t e = 0; e < used(); ++e) {
    const ProcessClock& c = arena_.clock(e);
    if (c.state.load(std::memory_order_relaxed) != ClockState::waits || (c.wants & traffic) == 0) continue;
    wake(e, c.now.load(std::memory_order_relaxed), Woken::standstill);
    woken = true;
  }
  return woken;
}

void VirtualClock::end_deadlocked() noexcept {
  const auto board = stall_board();
  const std::vector<StallLine> waits = board ? board->lines() : std::vector<StallLine>{};
  std::string text = "deadlock in virtual time: every process waits and nothing is on its way\n";
  for (std::uint32_t e = 0; e < used(); ++e) {
    const ProcessClock& c = arena_.clock(e);
    const ClockState state = c.state.load(std::memory_order_relaxed);
    if (state == ClockState::unused) continue;
    const std::string does = state == ClockState::ended ? "has ended"
                             : c.wants == barrier_end
                                 ? "in a barrier"
                                 : fmt::format("waits in {:.31}", c.call[0] != 0 ? c.call : "a call");
    text += fmt::format("ulfm:   {} at {:.9f} s: {}", arena_.sizes().is_host(e) ? "host" : fmt::format("rank {}", e),
                        static_cast<double>(c.now.load(std::memory_order_relaxed)) * 1e-12, does);
    if (state == ClockState::waits && e < waits.size()) text += stall_waits(waits[e]);
    text += '\n';
  }
  text += stall_verdict(waits);
  text.pop_back();
  say_before_the_end(text);
  unlock();
  std::_Exit(1);
}

void VirtualClock::wake(std::uint32_t endpoint, std::uint64_t at, Woken why) noexcept {
  ProcessClock& c = arena_.clock(endpoint);
  c.woken = static_cast<std::uint32_t>(why);
  c.now.store(std::max(at, c.now.load(std::memory_order_relaxed)), std::memory_order_relaxed);
  limit_ = std::min(limit_, c.now.load(std::memory_order_relaxed) + 1);
  c.looks = 0;
  set_bounding(endpoint, true);
  c.state.store(ClockState::runs, std::memory_order_release);  // pairs with look_for_turn() and sleep()
  if (endpoint != self_) to_wake_.push_back(endpoint);
}

// ---- slots ----------------------------------------------------------------------------------------------------------

void VirtualClock::stamp(std::uint32_t slot, std::uint64_t cost) noexcept {
  ProcessClock& c = mine();
  arena_.slot_time(slot) = {now() + cost,
                            std::uint64_t{self_} << kSequenceBits | (c.sequence++ & ((1ull << kSequenceBits) - 1))};
}

void VirtualClock::sent(std::uint64_t cost) noexcept {
  const bool bounds = now() + 1 <= time_.passed.load(std::memory_order_relaxed);
  spend(cost, Spent::messages);
  if (bounds) go_on();
}

void VirtualClock::give_back(std::uint32_t slot) noexcept {
  lock();
  push(now() + 1, TimedEvent::room, slot);
  if (now() + 1 < time_.alarm.load(std::memory_order_relaxed)) time_.alarm.store(now() + 1, std::memory_order_seq_cst);
  unlock();
}

// The receiver that is last in the host's time gives the slot back, stamped with the latest virtual time of them all.
void VirtualClock::give_back_share(std::uint32_t slot, Receiver& receiver) noexcept {
  lock();
  SlotShare& share = arena_.share(arena_.slot(slot));
  share.released_at = std::max(share.released_at, now() + 1);
  const std::uint64_t at = share.released_at;
  if (release_receiver(share, receiver)) {
    push(at, TimedEvent::room, slot);
    if (at < time_.alarm.load(std::memory_order_relaxed)) time_.alarm.store(at, std::memory_order_seq_cst);
  }
  unlock();
}

// A heap: no slot has two events, so there is room for each.

}  // namespace ulfm::fabric
