// What a process of a job has once, however it is programmed: its settings, its stack of transports, the way it waits,
// the reports about waits that do not end, and its statistics. Ports (port/node.hpp) and MPI (api/netmod/) stand on it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/config.hpp"
#include "base/virtual_time.hpp"
#include "base/wait.hpp"
#include "base/wait_word.hpp"
#include "coll/counts.hpp"
#include "job/stall.hpp"
#include "job/stall_board.hpp"
#include "proto/stack.hpp"
#include "transport/registry.hpp"

namespace ulfm {

/// Any thread after start(), unless said otherwise.
class Process {
 public:
  /// Its place in a job: `sharing` processes share the host's cores; one that is `alone` takes no part in tables of
  /// the job.
  struct Place {
    int rank = 0, size = 1, sharing = 2;
    bool alone = true;
    int first = 0;  ///< rank of the process that prints what all have in common: warnings, counters of the network
    std::string name = {};  ///< for statistics and messages; "": "rank N"
  };
  /// Makes the stack that the settings ask for. Errors: those of select_transport() and make_stack().
  static Result<std::unique_ptr<Process>> start(Config config, const Place& place);

  int rank() const noexcept { return rank_; }
  /// "rank 3", or what Place::name says: the name of this process in statistics and messages.
  const std::string& name() const noexcept { return name_; }
  const Config& config() const noexcept { return config_; }
  const TransportDescriptor& descriptor() const noexcept { return *descriptor_; }
  Transport& transport() noexcept { return *stack_.transport; }
  const Transport& transport() const noexcept { return *stack_.transport; }
  /// With its decorators.
  const std::string& transport_name() const noexcept { return stack_.name; }
  const WaitPolicy& wait_policy() const noexcept { return policy_; }

  /// Opens a port of the transport. A process that shares its core sleeps often, and its inlets know that.
  Result<std::unique_ptr<Inlet>> open(std::uint16_t number, const InletOptions& options);

  /// Sleeps until one of the inlets rings or `limit` is over, not at all when something is there already; `full`, if
  /// any, ends the sleep too when it has room. True when something has come.
  static bool park(std::span<Inlet* const> inlets, std::chrono::nanoseconds limit, Outlet* full = nullptr);
  /// The same, and `other`, which the caller has armed, ends the sleep too; `look` says whether it should have.
  static bool park(std::span<Inlet* const> inlets, std::chrono::nanoseconds limit, WaitWord other, const Look& look);

  /// For a wait: one StallWatch each, or one for a series of waits without news.
  StallWatch new_stall_watch() const noexcept { return StallWatch{stall_seconds_}; }
  /// Takes part in the job's table of waits with what `state()` returns; where there is none `text(time)` is written
  /// when the watch says so. `since`: of the wait.
  template <typename State, typename Text>
  void report_stalls(StallWatch& watch, StallWatch::Clock::time_point since, StallWatch::Clock::time_point now,
                     State state, Text text) {
    const bool due = watch.due(since, now);
    if (stall_board_) take_part(*stall_board_, due, now, state);
    else if (due) write_stall_report(text(now - since));
  }
  /// Waits in virtual time; true when processes have ended, and the caller has to look. When everybody waits, `state`
  /// says for the job's table what this one waits for.
  template <typename State>
  bool wait_timed(VirtualTime& time, std::uint64_t until, VirtualTime::Patience patience, State state) {
    auto woken = time.wait(until, patience);
    if (woken == VirtualTime::Woken::standstill) {
      if (stall_board_) stall_board_->answer(state());
      woken = time.wait(until, patience);
    }
    return woken == VirtualTime::Woken::ended;
  }
  /// "ulfm: stall rank 3 (process 4711): ", before each line of such a text.
  std::string stall_prefix() const;

  /// For the statistics: a collective call of that kind went that way (ULFM_COLL_). One thread at a time.
  void count_collective(int kind, int way) noexcept { collectives_.count(kind, way); }
  /// Somebody wants to know counters.
  bool counts() const;
  /// The counters of a port that is being closed, for the end. One thread at a time.
  void note_closed_port(std::uint16_t number, const PortCounters& counters);
  /// Writes the statistics that ULFM_STATS and ULFM_STATS_FILE ask for. When all ports are closed; closes the control
  /// channel. Once.
  void report_statistics();

 private:
  Process(Config config, const TransportDescriptor& descriptor, TransportStack stack, const Place& place,
          WaitPolicy policy);

  Config config_;
  const TransportDescriptor* descriptor_;
  TransportStack stack_;
  int rank_;
  bool first_;
  std::string name_;
  WaitPolicy policy_;
  std::int64_t stall_seconds_;             // each wait asks
  std::optional<StallBoard> stall_board_;  // none: this process reports for itself
  coll::Counts collectives_;
  std::string closed_ports_;
};

/// The settings of the WAIT rows on top of the policy for that many processes.
WaitPolicy wait_policy_from(const Config& config, int processes);

/// Until when a wait in virtual time may last that has this deadline of its transport; `now` in picoseconds.
std::uint64_t moment_after(std::uint64_t now, std::chrono::nanoseconds deadline);

}  // namespace ulfm
