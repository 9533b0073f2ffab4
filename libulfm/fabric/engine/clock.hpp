// Virtual time for live processes: a conservative parallel discrete-event simulation (Chandy and Misra 1979) whose
// processes are programs. docs/time.md has the rules and why they hold.
//
// One lock for all of it. A process that has to wait works first: the network goes on to the least moment at which a
// process could still put something into it, and the processes whose waits end are woken. A process that only sends
// takes no lock.
#pragma once

#include <array>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/virtual_time.hpp"
#include "fabric/engine/arena.hpp"
#include "job/stall_board.hpp"

namespace ulfm::fabric {

class FabricEngine;

class VirtualClock final : public VirtualTime {
 public:
  enum Wants : std::uint32_t { nothing = 0, traffic = 1, barrier_end = 2, others = 4, room = 8, places = 16 };

  /// For the process that has that endpoint. The engine outlives it.
  VirtualClock(FabricEngine& engine, FabricArena& arena, Model& model, std::uint32_t self);
  ~VirtualClock() override;

  std::uint64_t now() const noexcept override { return mine().now.load(std::memory_order_relaxed); }
  void spend(std::uint64_t picoseconds, Spent on) noexcept override;
  void look() noexcept override;
  void spend_look() noexcept override { spend(costs().look, Spent::messages); }
  Woken wait(std::uint64_t until, Patience patience) noexcept override;
  void barrier() noexcept override;
  void enter(const char* call) noexcept override;
  void leave() noexcept override;
  bool outside() const noexcept override;
  void begin_place(std::uint32_t place, std::int32_t pid) noexcept override;
  bool place_has_ended(std::uint32_t place) noexcept override;
  void end_place(std::uint32_t place) noexcept override;
  bool has_places() const noexcept override { return has_places_; }

  /// Stamps a slot that has been filled: it is sent when `cost` has been spent. Then it goes into the sending queue.
  void stamp(std::uint32_t slot, std::uint64_t cost) noexcept;
  /// It is in the queue: the cost is spent, and the frame begins its way if nobody can precede it.
  void sent(std::uint64_t cost) noexcept;
  /// There was no room for a frame by this time: the next wait ends when there may be.
  void want_room() noexcept {
    wants_room_ = true;
    returned_seen_ = mine().returned.load(std::memory_order_relaxed);
  }
  /// A port was opened, or looked at, when so many frames had ever been put into its box. What comes behind the last
  /// look at its port ends the next wait, although it may have come before that begins.
  void opened(std::uint32_t port, std::uint64_t delivered) noexcept { delivered_[port % kPorts] = delivered; }
  void looked_at(std::uint32_t port, std::uint64_t delivered) noexcept {
    std::uint64_t& seen = delivered_[port % kPorts];
    if (delivered > seen)
      arrivals_seen_.fetch_add(delivered - std::exchange(seen, delivered), std::memory_order_relaxed);
  }
  /// A slot that had arrived has been read: its sender has it back a moment later.
  void give_back(std::uint32_t slot) noexcept;
  /// The same for one of several receivers of a frame; and for a caller that has the lock.
  void give_back_share(std::uint32_t slot, Receiver& receiver) noexcept;
  void give_back_locked(std::uint32_t slot) noexcept { push(now() + 1, TimedEvent::room, slot); }
  /// Something is still to happen to a slot. Under the lock.
  bool has_event(std::uint32_t slot) const noexcept;

  /// That process has ended by this one's time; look() first.
  bool has_ended(std::uint32_t endpoint) const noexcept {
    const ProcessClock& c = arena_.clock(endpoint);
    return c.state.load(std::memory_order_acquire) == ClockState::ended &&
           c.now.load(std::memory_order_relaxed) <= now();
  }

  /// See FabricEngine::admit_more().
  void admit_more() noexcept;

  const Durations& costs() const noexcept { return time_.costs; }

  /// While somebody expects processes, they may still join: nothing that stands still is a deadlock.
  void expect_processes(bool begin) noexcept override;

  /// For what only one process may look at or change at a time.
  void lock() noexcept;
  void unlock() noexcept;

 private:
  ProcessClock& mine() const noexcept { return arena_.clock(self_); }
  std::uint32_t used() const noexcept;
  std::uint64_t bound() const noexcept;
  void set_bounding(std::uint32_t endpoint, bool bounds) noexcept;
  void wait_until(std::uint32_t endpoint, std::uint64_t until) noexcept;
  template <typename Visit>
  void each_bounding(Visit visit) const noexcept;
  void admit_more_to(std::uint32_t endpoint, std::uint64_t moment) noexcept;
  void wait_on(std::uint32_t endpoint) noexcept;
  std::uint64_t moment_of(const ProcessClock& waiter) const noexcept;
  bool forget_ends(std::uint32_t endpoint, std::uint64_t moment) noexcept;
  void end_clock(std::uint32_t endpoint) noexcept;
  void drive() noexcept;
  bool step(std::uint64_t before) noexcept;
  void go_on() noexcept;
  [[noreturn]] void end_behind_last_moment() const noexcept;
  Woken wait_for(std::uint64_t until, std::uint32_t wants) noexcept;
  std::uint64_t wake_moments(std::uint64_t before) noexcept;
  std::uint64_t next_event() const noexcept;
  void happen(const TimedEvent& event) noexcept;
  void end_if_broken() noexcept;
  bool has_come(std::uint32_t wants) noexcept;
  void end_if_dead(std::uint32_t holder) noexcept;
  bool wake_stuck() noexcept;
  Result<StallBoard> stall_board() const;
  bool ask_for_whom() noexcept;
  [[noreturn]] void end_deadlocked() noexcept;
  void wake(std::uint32_t endpoint, std::uint64_t at, Woken why) noexcept;
  bool look_for_turn() noexcept;
  void sleep() noexcept;
  void look_for_dead() noexcept;
  void take_in() noexcept;
  void take_queue(std::uint32_t endpoint) noexcept;
  void send(std::uint32_t endpoint, std::uint32_t slot) noexcept;
  void enter_network(std::uint32_t slot, std::uint64_t at) noexcept;
  std::uint32_t next_stop(std::uint32_t here, std::uint32_t there) const noexcept;
  bool forward(std::uint32_t slot, std::uint32_t node, std::uint64_t at) noexcept;
  void enter_for_many(std::uint32_t slot, std::uint64_t at) noexcept;
  void ended(const Ending& ending, std::uint64_t not_before) noexcept;
  void ended_for_many(std::uint32_t slot, const Ending& ending) noexcept;
  void arrive_at_many(const TimedEvent& event) noexcept;
  bool is_behind_refused(std::uint32_t slot) const noexcept;
  void arrive(const TimedEvent& event) noexcept;
  bool overtakes(std::uint32_t slot) const noexcept;
  bool have_receiver_in_common(std::uint32_t a, std::uint32_t b) const noexcept;
  void arrive_in_order(const TimedEvent& event) noexcept;
  void make_room(std::uint32_t slot, std::uint64_t at) noexcept;
  void leave_pool(std::uint32_t slot, std::uint64_t at) noexcept;
  void push(std::uint64_t at, TimedEvent::Kind kind, std::uint32_t slot) noexcept;
  TimedEvent pop() noexcept;
  void begin_gaps();
  void end_gaps() noexcept;
  void spend_gap() noexcept;

  FabricEngine& engine_;
  FabricArena& arena_;
  Model& model_;
  ModelCycles& cycles_;
  TimeHeader& time_;
  std::uint32_t self_;
  std::vector<std::uint32_t> to_wake_;  // under the lock; woken when it is let go
  std::uint64_t limit_ = 0;             // under the lock: what is sent from now on is stamped with this or more
  bool wants_room_ = false;
  bool has_places_ = false;
  std::uint64_t returned_seen_ = 0;
  std::array<std::uint64_t, kPorts> delivered_{};
  std::atomic<std::uint64_t> arrivals_seen_{0};  // of ProcessClock::arrived; threads have ports of their own
  std::uint64_t arrivals_reported_ = 0;          // under the lock: a wait has ended because of them, read or not
  std::mutex gaps_lock_;
  std::vector<std::uint64_t> gaps_;  // recorded ones, to read or to write
  std::size_t next_gap_ = 0;
};

/// Who used how much time, for people and as JSON; of a job that is over.
std::string time_report(const FabricArena& arena, double host_seconds);
std::string time_json(const FabricArena& arena, Model& model, double host_seconds);

}  // namespace ulfm::fabric
