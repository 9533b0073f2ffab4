// The engine of an emulated interconnect: takes slots from the sending queues, moves the model, and puts what has
// arrived into port boxes.
//
// There is no thread behind it. A process that sends or waits acquires the engine when it is free, moves the model
// while there is work, and releases it. The model's state is many cache lines, so it should stay with one core: a
// process that waits with a core of its own becomes the *poller*, looks all the time, and others leave the work to it
// as long as it does. With ULFM_ENGINE=process a process of its own is the poller for the whole job.
//
// The machine had a card in each node that did this (Zhou et al. 1999, section 3); the order of events is the model's,
// whoever moves it. Its parts are in files of their own: endpoints.cpp, send_slots.cpp, lock.cpp (and who polls),
// dispatch.cpp, back_pressure.cpp, pacing.cpp; many.cpp for frames for several, unread.cpp for what the dead left,
// recovery.cpp for what a dead holder began.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/wait.hpp"
#include "fabric/engine/arena.hpp"
#include "fabric/engine/clock.hpp"
#include "fabric/engine/send_slots.hpp"

namespace ulfm::fabric {

class FabricEngine {
 public:
  /// Joins the interconnect of this job as the process whose rank is in the environment.
  static Result<std::unique_ptr<FabricEngine>> join();
  /// Joins one at hand; `process` is the process's place in the job, which says on what node it is.
  static Result<std::unique_ptr<FabricEngine>> join_as(Result<FabricArena> arena, std::uint32_t process);
  /// For the engine process, which is on no node.
  static Result<std::unique_ptr<FabricEngine>> over(Result<FabricArena> arena);
  ~FabricEngine();

  FabricArena& arena() noexcept { return arena_; }
  std::uint32_t self() const noexcept { return self_; }

  /// There was a core for each process when the job began.
  bool has_own_core() const noexcept { return own_core_; }
  /// Room for what this process sends.
  SendSlots& slots() noexcept { return slots_; }
  /// Arrivals take room in a pool until they have been read: see read_out().
  bool has_pools() const noexcept { return pools_ != nullptr; }
  /// The engine counts what each process leaves unread, and stalls nodes for it.
  bool has_back_pressure() const noexcept { return back_pressure_ != nullptr; }
  /// A slot that had arrived at a port of ours has been read; it is still ours. True: call room_made() once it is free.
  bool read_out(std::uint32_t slot, std::uint32_t port) noexcept { return read_out_by(self_, slot, port); }
  void room_made() noexcept { notify(); }
  /// The node of this process takes nothing because too much of what came for it is unread.
  bool is_stalled() const noexcept { return is_stalled(self_); }
  bool is_stalled(std::uint32_t endpoint) const noexcept {
    return has_back_pressure() && arena_.endpoint(endpoint).unread.stalled.load(std::memory_order_relaxed) != 0;
  }
  /// A look has found nothing at a port, so this process waits for something that may be behind all that is unread at
  /// another one, or on its way to another process of its node: as much again comes in. See came().
  void admit_more() noexcept;
  /// For the clock, at its moment: a frame for that process has come through the network, or has been read.
  void came_timed(std::uint32_t slot, std::uint32_t to) noexcept { came(to, bytes_of(slot)); }
  void read_timed(std::uint32_t slot, std::uint32_t to) noexcept;
  void admit_timed(std::uint32_t endpoint, Unread::Asks asks) noexcept;
  /// Slots of ours that wait only for receivers which have died come back. Costs system calls.
  void reclaim();
  /// The same if somebody has found no slot since this was asked last.
  void reclaim_when_full() {
    if (slots_.were_full()) reclaim();
  }
  /// The sending card's part where noise may change a frame's bytes on its way: fills in the check units of a slot that
  /// has been filled. The receiving card verifies them, and the network has lost a frame whose bytes do not fit them.
  void seal(std::uint32_t slot) noexcept;
  /// A slot has been filled: it goes into the sending queue, and on its way if nobody else sees to it.
  void submit(std::uint32_t slot);
  /// The clock of a job in virtual time; nullptr without.
  VirtualClock* clock() noexcept { return clock_.get(); }
  /// For the clock: a frame has come to its end, and goes into its port's box. False when it does not.
  bool finish_timed(std::uint32_t slot, bool delivered) noexcept;
  /// The same for a frame for several: for those it has not been lost for. `arrived` gets their endpoints.
  void finish_many_timed(std::uint32_t slot, std::vector<std::uint32_t>& arrived) noexcept;
  /// It was lost on its way to that node.
  void lose_for(std::uint32_t slot, std::uint32_t node) noexcept;
  /// The nodes, each once, that a frame for several goes to through the network.
  std::vector<std::uint32_t> nodes_of(std::uint32_t slot);
  /// A turn of a process that waits and has found nothing.
  void progress() noexcept;
  /// This process looks no more for a while: it computes, or is about to sleep.
  void retire() noexcept;
  /// There is something to do.
  bool has_work() const noexcept;
  /// How long a sleep may be: until shortly before a paced model brings this process something. The largest there is
  /// when nothing is on its way here; others look after what concerns them.
  std::chrono::nanoseconds next_deadline() const noexcept;
  /// Moves what there is to move, if the engine is free. False when another has it.
  bool step() noexcept;

  /// For an engine process that is started in place of a dead one. False when the interconnect cannot go on.
  bool resume();

  /// Counters of the interconnect as lines of text, each beginning with "ulfm: stats".
  std::string statistics();

  /// Something that this endpoint has sent to this process may still be in the interconnect. Waits for the engine.
  bool has_on_the_way(std::uint32_t from);

  /// Waits until the engine has been released: the next process that acquires it sees what was changed before.
  void quiesce();

  /// Why nothing will ever arrive again; empty while all is well. Costs system calls: for long waits.
  std::string why_broken();

  Model& model() noexcept { return *model_; }
  /// The process of that endpoint (or the engine process) still runs.
  bool is_alive(std::uint32_t endpoint) const;
  /// The process that had the endpoint has ended, and nothing of what it has sent is left.
  bool may_reuse(std::uint32_t endpoint) const;
  /// The host's own word for that, whatever the time is.
  bool runs(std::uint32_t endpoint) const;

 private:
  FabricEngine(FabricArena arena, std::unique_ptr<Model> model);
  Result<void> claim_endpoint(std::uint32_t process);
  Result<std::uint32_t> find_endpoint(std::uint32_t process);
  bool has_own_endpoint(std::uint32_t process) const;
  void mark_claimed(std::uint32_t endpoint);
  std::uint32_t reuse_endpoint();
  bool any_pending() const noexcept;
  bool is_due() const noexcept;
  void catch_up() noexcept;
  std::uint64_t next_due() const noexcept;
  std::string how_late() const;
  void note_due() noexcept;
  /// Where a slot's frame goes.
  struct Destination {
    std::uint32_t endpoint, port, generation;
  };
  static Destination destination_of(const Slot& slot) noexcept;
  void announce(const Destination& to) noexcept;
  void count_coming(std::uint32_t to, std::int32_t more) noexcept;
  void replace_observer(std::uint32_t holder) noexcept;
  bool acquire();
  void yield_engine() noexcept;
  void release();
  void notify() noexcept;
  bool is_kept() const;
  bool take_over(std::uint32_t holder);
  bool work() noexcept;
  void take_sending_queues() noexcept;
  void take_sending_queue(std::uint32_t endpoint) noexcept;
  bool send(std::uint32_t slot) noexcept;
  bool send_to_many(std::uint32_t slot) noexcept;
  void end_of_many(std::uint32_t slot, const Ending& ending) noexcept;
  template <typename Which>
  void finish_for(std::uint32_t slot, bool delivered, Which which) noexcept;
  std::uint32_t node_of(const Receiver& receiver) const noexcept;
  void end(const Ending& ending) noexcept;
  void end_whole(const Ending& ending) noexcept;
  void finish(std::uint32_t index, bool delivered) noexcept;
  bool is_intact(std::uint32_t index) noexcept;
  std::uint32_t check_of(Slot& slot, std::size_t bytes) const noexcept;
  bool is_open(const Destination& to) const noexcept;
  void put_into_box(std::uint32_t index, std::uint32_t to, std::uint32_t port) noexcept;
  std::uint32_t bytes_of(std::uint32_t slot) noexcept;
  void came(std::uint32_t to, std::uint32_t bytes) noexcept;
  void settle_stall(std::uint32_t endpoint) noexcept;
  void admit_for_the_dead() noexcept;
  void note_taking(std::uint32_t endpoint, std::uint32_t slot) noexcept;
  void note_delivering(std::uint32_t slot, std::uint32_t to, std::uint32_t port) noexcept;
  void note_nothing() noexcept;
  bool recover() noexcept;
  void give_back(std::uint32_t slot) noexcept;
  bool read_out_by(std::uint32_t reader, std::uint32_t slot, std::uint32_t port) noexcept;
  bool leaves_pool(std::uint32_t reader, std::uint32_t slot, std::uint32_t port) noexcept;
  /// A process that had that endpoint.
  struct Dead {
    std::uint32_t endpoint;
    std::uint64_t token;
    bool is_dead;
  };
  std::vector<Dead> find_dead_receivers(bool& any_earlier);
  bool is_of_earlier(const Destination& to) const noexcept;
  template <typename IsLost>
  void reclaim_one(std::uint32_t slot, const IsLost& is_lost);
  template <typename IsLost>
  void reclaim_share(std::uint32_t slot, const IsLost& is_lost);

  FabricArena arena_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<VirtualClock> clock_;
  std::uint32_t self_ = kEngineProcess;
  SendSlots slots_{arena_};
  std::array<Ending, 64> endings_;          // of the holder, for one round; here, so that nobody clears it anew
  std::atomic<std::uint32_t> patience_{0};  // looks that found work undone; any thread, only a count
  WaitPolicy wait_;
  bool own_core_ = false;
  bool process_ = false;  // a process of its own does the work
  // Abilities of the model; nullptr: it has not got them, or the job does not use them.
  ModelPace* pace_ = nullptr;
  ModelMulticast* multicast_ = nullptr;
  ModelBackPressure* back_pressure_ = nullptr;
  ModelPools* pools_ = nullptr;
  ModelRecovery* recovery_ = nullptr;
};

/// Rings every open port: a process that waits there checks what there is to do.
void wake_all(FabricArena& arena) noexcept;

}  // namespace ulfm::fabric
