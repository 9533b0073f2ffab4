// What the engine asks of a model of an interconnect. A model moves counts and states between nodes; where the bytes
// of a frame lie is not its business.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.hpp"
#include "base/fault_plan.hpp"
#include "fabric/topology/topology.hpp"

namespace ulfm::fabric {

/// A frame given to a model, by number: below the number the arena was made for, and not in use twice at one time.
using FrameId = std::uint32_t;

/// How a frame ended. Nothing of it is in the network any more and its number is free.
struct Ending {
  FrameId frame = 0;
  std::uint32_t node = 0;   ///< where it arrived; the sender when it was not delivered
  std::uint64_t cycle = 0;  ///< in which the node took the last of it, or the last unit of it was lost
  bool delivered = false;   ///< false: the network lost some of it, or all
  friend bool operator==(const Ending&, const Ending&) = default;
};

/// Nanoseconds since the job began at which nothing is due any more.
inline constexpr std::uint64_t kNothingDue = ~std::uint64_t{0};

/// One process's view of a model that lives in an arena. Used by one process at a time: whoever holds the engine.
class Model {
 public:
  virtual ~Model() = default;
  /// There is a way from one node to the other now.
  virtual bool reaches(std::uint32_t from, std::uint32_t to) const = 0;
  /// Puts a frame of so many data bytes behind those that wait to leave `from`. False, with nothing taken, when that
  /// cannot be: there is no way, or the frame is on its way already.
  virtual bool inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes) = 0;
  /// The same for a frame that goes on with the message of the frame before it.
  virtual bool inject_rest(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes) {
    return inject(frame, from, to, bytes);
  }
  /// It keeps to real time: nothing happens before advance() has said that its time has come.
  virtual bool paced() const { return false; }
  /// Goes on for about `budget` events, until `endings` is full, or until nothing moves. How many frames ended.
  virtual std::size_t run(std::uint64_t budget, std::span<Ending> endings) = 0;
  /// Nothing moves, and nothing will without inject(); with a paced model also when nothing will for now.
  virtual bool idle() const = 0;
  /// When the next scheduled fault begins or ends, or the next event of a paced model happens, in nanoseconds since the
  /// job began; kNothingDue for never.
  virtual std::uint64_t due() const = 0;
  /// Lets everything happen that is due by then.
  virtual void advance(std::uint64_t nanoseconds) = 0;
  /// Counters as lines of text, each beginning with "ulfm: stats".
  virtual std::string statistics() = 0;
};

/// Settings of one model: what `--transport NAME,option=value` has behind the name.
using ModelOptions = std::string_view;

/// What a model is made for.
struct ModelPlan {
  const Topology& topology;
  ModelOptions options;
  std::uint32_t frames = 0;  ///< on their way at one time, at most
  std::span<const FaultEvent> events;
};

/// What a model is, as data.
struct ModelKind {
  const char* name;
  const char* default_topology;
  /// Largest frame of data the network carries; messages are divided.
  Result<std::uint32_t> (*frame_bytes)(ModelOptions options);
  /// Bytes of arena it needs. Errors speak of options, of the topology, and of events that it does not have.
  Result<std::size_t> (*arena_bytes)(const ModelPlan& plan);
  /// Makes it in zeroed memory of so many bytes.
  Result<void> (*create)(std::byte* memory, const ModelPlan& plan);
  /// The view of a process that has mapped the arena.
  Result<std::unique_ptr<Model>> (*attach)(std::byte* memory, std::size_t bytes);
};

}  // namespace ulfm::fabric
