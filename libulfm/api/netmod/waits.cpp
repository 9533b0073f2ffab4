// A turn of a wait in MPI: what to do while nothing has come, and the looks around that cost system calls.
#include <cstdlib>

#include <fmt/core.h>

#include "api/netmod/channel.hpp"
#include "base/last_words.hpp"
#include "base/virtual_time.hpp"

namespace ulfm::netmod {
namespace {

// Looks for closed and dead peers cost system calls: at most so often, however long the wait.
constexpr std::uint32_t kLookTurns = 1024;
constexpr auto kLookEvery = std::chrono::milliseconds(20);
// Without a core of one's own: yields with a look behind each before MPICH's progress has its turn, which costs two to
// three times a yield. A wait that something else may end has that turn sooner.
constexpr int kYieldsOfBlock = 64, kYieldsOfWait = 4;

void park(ulfm_nm* nm, std::chrono::nanoseconds limit, bool sends_waiting) {
  if (!nm->busy.empty()) return sleep_for_calls(*nm, limit);
  Outlet* full = sends_waiting && nm->full != nullptr ? nm->full->outlet.get() : nullptr;
  Inlet* const inlet = nm->inlet.get();
  Process::park(std::span(&inlet, 1), limit, full);
}

// The receiver of what we sent has stopped to take it. True once for each connection.
bool find_cut_off(ulfm_nm* nm) {
  bool found = false;
  for (ulfm_nm_vc* vc : nm->vcs)
    if (!vc->cut_off && vc->outlet->cut_off()) {
      found = vc->cut_off = true;
      say_before_the_end(
          fmt::format("{}: {} takes nothing from this one any more; what was sent to it last may be lost",
                      nm->process->name(), vc->outlet->peer().text()));
    }
  return found;
}

int look_around(ulfm_nm* nm) {
  if (const std::string why = nm->inlet->why_broken(); !why.empty()) {
    // Nothing will ever arrive again, so no MPI call can end: the launcher ends the others.
    say_before_the_end(fmt::format("{}: {}", nm->process->name(), why));
    if (control::Control* control = nm->process->transport().control()) control->abort(1, why);
    std::_Exit(1);
  }
  nm->dead = nm->inlet->find_dead();
  for (ulfm_coll* coll : nm->busy) coll->collective->look_for_dead();
  // What waits for room may wait for what the dead hold.
  for (ulfm_nm_group* group : nm->groups)
    for (const ulfm_nm_group::Part& part : group->parts)
      if (nm->sends_waiting) part.multicast->look_for_dead();
  int news = std::exchange(nm->lost_way, false) || find_cut_off(nm) ? ULFM_NM_GIVEN_UP : ULFM_NM_LOOK;
  for (Error error; nm->inlet->take_given_up(error); news = ULFM_NM_GIVEN_UP)
    say_before_the_end(fmt::format("{}: {}", nm->process->name(), error.what));  // MPI's own error has a rank only
  return news;
}

// Something that can end the wait is there.
bool has_come(ulfm_nm* nm, bool sends_waiting) {
  if (!nm->busy.empty() && advance_calls(*nm)) return true;
  return nm->inlet->look() || (sends_waiting && nm->full != nullptr && nm->full->outlet->has_room());
}

// With a core of one's own the answer, or room, is best awaited here, a look at a time. True when it is there.
bool look_on(ulfm_nm* nm, bool sends_waiting) {
  const bool awaits_room = sends_waiting && nm->full != nullptr;
  if (!awaits_room && nm->busy.empty()) return nm->inlet->spin(kSpinTurns);
  for (std::uint32_t turn = 0; turn < kSpinTurns; ++turn)
    if (nm->inlet->spin(1) || advance_calls(*nm) || (awaits_room && nm->full->outlet->has_room())) return true;
  return false;
}

int look_around_now_and_then(ulfm_nm* nm) {
  const auto now = std::chrono::steady_clock::now();
  if (now - nm->looked < kLookEvery) return 0;
  nm->looked = now;
  if (nm->idle_since == std::chrono::steady_clock::time_point{}) {
    nm->idle_since = now;
    nm->stall.reset();
  }
  report_stalls(*nm, now);
  return look_around(nm);
}

// In virtual time nobody spins and nobody naps: a wait ends with an arrival. The caller charges for a test, because
// only it knows that it was one; here it may be a turn of a wait, which costs the least there is.
// A test costs its look where MPI is called. MPICH has loops of tests of its own within one call, which go on until
// something comes: whoever tests again and again, with nothing between, pays a look each time, or the moment at which
// it comes would be a picosecond nearer with each turn.
void spend_test(ulfm_nm* nm, VirtualTime& time) {
  constexpr std::uint32_t kTestsOfACall = 8;
  nm->tests_in_a_row = time.now() == nm->tested_at ? nm->tests_in_a_row + 1 : 0;
  if (nm->tests_in_a_row < kTestsOfACall) time.spend(1, VirtualTime::Spent::messages);
  else time.spend_look();
  nm->tested_at = time.now();
}

// With threads a wait lets others of its process have their turn: it is made of looks. Each look is agreed upon with
// all other processes, so while nobody of this one does anything in between they become rarer. What arrives ends the
// wait between two of them, so the time at which it is seen is the same.
int idle_threaded(ulfm_nm* nm, VirtualTime& time) {
  constexpr std::uint32_t kMostLooks = 64;
  const std::uint64_t before = time.now();
  nm->looks_at_once = before == nm->tested_at ? std::min(2 * nm->looks_at_once, kMostLooks) : 1;
  time.spend_look();
  const std::uint64_t further = (time.now() - before) * (nm->looks_at_once - 1);
  const bool ended =
      further != 0 && time.wait(time.now() + further, VirtualTime::Patience::others_too) == VirtualTime::Woken::ended;
  nm->tested_at = time.now();
  if (++nm->idle_turns % kLookTurns == 0) yield_now();
  return ended ? look_around(nm) : 0;
}

int idle_timed(ulfm_nm* nm, VirtualTime& time, int how) {
  if (how == ULFM_NM_IDLE_TEST) return spend_test(nm, time), 0;
  if (how == ULFM_NM_IDLE_AGAIN) return 0;
  if (how == ULFM_NM_IDLE_THREADED) return idle_threaded(nm, time);
  const auto patience =
      how == ULFM_NM_IDLE_WAIT ? VirtualTime::Patience::others_too : VirtualTime::Patience::only_arrivals;
  const std::uint64_t until = moment_after(time.now(), nm->inlet->next_deadline());
  return wait_timed(*nm, time, until, patience) ? look_around(nm) : 0;
}

}  // namespace

int idle(ulfm_nm* nm, int how, int sends_waiting) {
  nm->idle_how = how;
  nm->sends_waiting = sends_waiting != 0;
  if (VirtualTime* time = VirtualTime::of_process(); time != nullptr) [[unlikely]]
    return idle_timed(nm, *time, how);
  const bool own_core = nm->has_core_to_itself();
  const std::uint32_t every_so_many = own_core ? kLookTurns : kLookTurns / kYieldsOfBlock;
  const int look = ++nm->idle_turns % every_so_many == 0 ? look_around_now_and_then(nm) : 0;
  if (how == ULFM_NM_IDLE_TEST || how == ULFM_NM_IDLE_AGAIN || how == ULFM_NM_IDLE_THREADED) {
    // The caller has its own loop, which may be a busy one: let others have the core from time to time.
    // With threads the caller holds a lock that others want, and lets go of it itself: a yield here helps nobody.
    // Where the core turned out to be shared, a wait that comes again soon yields anyway; a test yields only here.
    const bool yields = how == ULFM_NM_IDLE_TEST ? !own_core : how == ULFM_NM_IDLE_AGAIN && !nm->own_core;
    const std::uint32_t every = yields ? 16 : 1024;
    if (nm->idle_turns % every == 0) yield_and_learn(nm->process->wait_policy(), std::chrono::steady_clock::now());
    return look;
  }
  // What is to be told of peers is told although something has come: room may come again and again and be taken by
  // others.
  const int arrived = look != 0 ? look : ULFM_NM_ARRIVED;
  if (own_core && look_on(nm, sends_waiting != 0)) return arrived;
  for (int turns = how == ULFM_NM_IDLE_BLOCK ? kYieldsOfBlock : kYieldsOfWait; !nm->waiter.step();) {
    if (own_core || --turns == 0) return look;
    if (has_come(nm, sends_waiting != 0)) return arrived;
  }
  if (how == ULFM_NM_IDLE_WAIT || sends_waiting) {
    // Something else may end this wait without ringing.
    park(nm, kShortNap, sends_waiting != 0);
  } else {
    park(nm, nm->process->wait_policy().park_limit, false);
  }
  return look_around_now_and_then(nm);
}

}  // namespace ulfm::netmod
