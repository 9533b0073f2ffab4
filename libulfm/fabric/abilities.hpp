// What only some models of interconnects can do. Each ability is an interface of its own, and Model hands out the ones
// that a model has. An ability belongs to its model: it lives as long, and only the process that holds the engine uses
// it unless a call says otherwise.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ulfm::fabric {

/// A frame given to a model, by number: below the number the arena was made for, and not in use twice at one time.
using FrameId = std::uint32_t;

struct Ending;

/// What a link has carried, one direction. Times are picoseconds.
struct LinkUse {
  std::string from, to;
  std::uint64_t busy = 0;   ///< units went over it
  std::uint64_t wait = 0;   ///< a frame at its end waited for what it needs next
  std::uint64_t bytes = 0;  ///< of data and check
};

/// The model counts cycles, so it can run in virtual time. The first cycle begins at 0, and each takes `period`
/// picoseconds.
class ModelCycles {
 public:
  virtual ~ModelCycles() = default;
  /// Lets every cycle happen that begins before `time` (picoseconds), until one in which a frame ends. True: `ending`
  /// is that frame's; call again. False: nothing has ended, and what is injected now begins with the first cycle that
  /// begins at `time` or later.
  virtual bool run_until(std::uint64_t time, std::uint64_t period, Ending& ending) = 0;
  /// What each link has carried so far. Empty: the model does not count that.
  virtual std::vector<LinkUse> links(std::uint64_t /*period*/) { return {}; }
  /// Cycles from the first to the last, both counted, of a message that has the network to itself, by a closed form.
  /// 0: the model has none.
  virtual std::uint64_t alone(std::uint32_t /*from*/, std::uint32_t /*to*/, std::uint32_t /*bytes*/) const { return 0; }
};

/// The model keeps to real time: nothing happens in it before its moment has come. Times are nanoseconds since the job
/// began.
class ModelPace {
 public:
  virtual ~ModelPace() = default;
  /// When the next event happens by itself; kNothingDue: none will. Scheduled faults are Model::due().
  virtual std::uint64_t next_event() const = 0;
  /// Lets everything happen that is due by then, scheduled faults too, each at its own moment. Called instead of
  /// Model::advance().
  virtual void advance_all(std::uint64_t nanoseconds) = 0;
};

/// The network copies a frame for several receivers.
class ModelMulticast {
 public:
  virtual ~ModelMulticast() = default;
  /// Bytes of a message for several that leave its sender in a cycle, for one of the nodes. Not 0.
  virtual std::uint32_t bytes_per_cycle() const = 0;
  /// Cards, or nodes: the bytes go to each of them once, for all nodes there.
  virtual std::uint32_t places() const = 0;
  /// Puts one frame behind those that wait to leave `from`, for several other nodes, each of them once. It ends once
  /// for each of them: the ending's node is that one, also when it was not delivered there. False, with nothing taken,
  /// when there is no room now; an idle model has room.
  virtual bool inject_multicast(FrameId frame, std::uint32_t from, std::span<const std::uint32_t> to,
                                std::uint32_t bytes) = 0;
};

/// A node that takes nothing stalls the network before it, by the network's own flow control.
class ModelBackPressure {
 public:
  virtual ~ModelBackPressure() = default;
  /// The node takes nothing from now on.
  virtual void stall(std::uint32_t node) = 0;
  /// It takes again.
  virtual void resume(std::uint32_t node) = 0;
};

/// The arrivals of each process take room in a pool until they have been read.
class ModelPools {
 public:
  virtual ~ModelPools() = default;
  /// So many bytes that had arrived have been read, or thrown away. True when the model waits for that: woken() is due.
  /// Any process may call it at any time.
  virtual bool release(std::uint32_t process, std::uint32_t port, std::uint32_t bytes) = 0;
  /// There is room again in pools of that process.
  virtual void woken(std::uint32_t process) = 0;
};

/// The model can go on after the death of a process that moved it. Its endings are kept until they are settled:
/// Model::run() hands out again those that were not.
class ModelRecovery {
 public:
  virtual ~ModelRecovery() = default;
  /// Undoes the step that the dead process began. False when too much is lost.
  virtual bool recover() = 0;
  /// An ending has been dealt with, and its frame's number is free.
  virtual void settle(FrameId frame) = 0;
  /// The frame has been injected and has not been settled.
  virtual bool has_frame(FrameId frame) const = 0;
};

}  // namespace ulfm::fabric
