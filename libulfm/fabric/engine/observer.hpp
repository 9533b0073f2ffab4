// Reads the counters of an emulated interconnect while it runs, from outside the job.
//
// The observer takes the engine for as long as it takes to copy the model, changes nothing, and works on the copy. If
// it dies meanwhile nothing is lost: a process that waits for the engine detects the death and takes the engine
// (FabricEngine::why_broken()).
#pragma once

#include <string>
#include <vector>

#include "fabric/engine/arena.hpp"
#include "fabric/model.hpp"

namespace ulfm::fabric {

/// A job on this host that has an emulated interconnect, and a process that holds it open.
struct RunningFabric {
  std::int32_t pid = 0;
  std::int32_t fd = -1;
  std::string title;  ///< "xswitch mesh:4x4"
  std::uint32_t processes = 0;
};

/// Those that this user may look at, in the order of their process numbers. One that ends meanwhile is left out.
std::vector<RunningFabric> running_fabrics();

/// The card of a process: what it has sent, and how full its send control table is.
struct CardUse {
  std::uint32_t card = 0, node = 0;
  std::int32_t process = 0;
  std::uint64_t sent = 0;
  std::uint32_t used = 0, slots = 0;
};

/// What a job's interconnect counted up to one moment.
struct FabricReading {
  std::string time;            ///< whose time the counters belong to, for people
  std::vector<CardUse> cards;  ///< of the processes that have joined
  std::string text;            ///< the model's counters: lines, each beginning with "ulfm: stats"
  std::vector<LinkUse> links;  ///< of models that know cycles; times are cycles. Empty otherwise.
};

class Observer {
 public:
  /// Errc::unavailable when the process may not be looked at, Errc::protocol when it holds no such thing.
  static Result<Observer> open(const RunningFabric& fabric);

  /// Counters of the model and of the card of each process, as they were at one moment. Errc::unavailable when the
  /// model is not released for ten seconds.
  /// Any number of observers, each used by one thread at a time.
  Result<FabricReading> read();

  /// A process of the job still runs.
  bool is_running() const;

 private:
  explicit Observer(FabricArena arena) : arena_(std::move(arena)) {}
  Result<void> copy_model(std::vector<std::uint64_t>& copy);
  std::vector<CardUse> cards() const;
  std::string what_time_it_is() const;

  FabricArena arena_;
};

}  // namespace ulfm::fabric
