// What the engine asks of a model of an interconnect. A model moves counts and states between nodes; where the bytes
// of a frame lie is not its business.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/fault_plan.hpp"
#include "fabric/abilities.hpp"
#include "fabric/durations.hpp"
#include "fabric/options.hpp"
#include "fabric/topology/topology.hpp"

namespace ulfm::fabric {

/// How a frame ended. Nothing of it is in the network any more and its number is free.
struct Ending {
  FrameId frame = 0;
  std::uint32_t node = 0;   ///< where it arrived; the sender when it was not delivered
  std::uint64_t cycle = 0;  ///< in which the node took the last of it, or the last unit of it was lost
  bool delivered = false;   ///< false: the network lost some of it, or all
  std::uint64_t begun = 0;  ///< in which its first unit left the sender; 0: none did, or the model does not say
  friend bool operator==(const Ending&, const Ending&) = default;
};

/// The processes at the ends of a frame, by endpoint, and the port at the far one.
struct Parties {
  std::uint32_t from = 0, to = 0;
  std::uint32_t to_port = 0;
  bool goes_on = false;  ///< with the message of the frame before
};

/// The first cycle that begins at `time` or later; cycles count from 1.
constexpr std::uint64_t cycle_from(std::uint64_t time, std::uint64_t period) noexcept {
  return time / period + (time % period != 0 ? 1 : 0) + 1;
}

/// Option "unread" of models with back-pressure: bytes that a process may leave unread, and what that is without it.
inline constexpr std::uint32_t kUnread = 64 * 1024;
inline constexpr Options::Row kUnreadRow{"unread", 0, 1 << 30};

/// Nanoseconds since the job began at which nothing is due any more.
inline constexpr std::uint64_t kNothingDue = ~std::uint64_t{0};

/// One process's view of a model that lives in an arena. Used by one process at a time: the one that holds the engine.
class Model {
 public:
  virtual ~Model() = default;
  /// There is a way from one node to the other now.
  virtual bool reaches(std::uint32_t from, std::uint32_t to) const = 0;
  /// Puts a frame of so many data bytes behind those that wait to leave `from`. False, with nothing taken, when that
  /// cannot be: there is no way, or the frame is on its way already.
  virtual bool inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes) = 0;
  /// The same for a model that keeps processes or messages apart.
  virtual bool inject_between(const Parties&, FrameId frame, std::uint32_t from, std::uint32_t to,
                              std::uint32_t bytes) {
    return inject(frame, from, to, bytes);
  }
  /// Goes on for about `budget` events, until `endings` is full, or until nothing moves. How many frames ended.
  virtual std::size_t run(std::uint64_t budget, std::span<Ending> endings) = 0;
  /// Nothing moves, and nothing will without inject(); in a model with a pace also when nothing will for now.
  virtual bool idle() const = 0;
  /// When the next scheduled fault begins or ends, in nanoseconds since the job began; kNothingDue for never.
  virtual std::uint64_t due() const = 0;
  /// Lets the scheduled faults begin and end that are due by then.
  virtual void advance(std::uint64_t nanoseconds) = 0;
  /// Check units behind the data of a frame: a card that is told to expect noise fills them in, and the other verifies.
  virtual std::uint32_t check_units() const { return 0; }
  /// Counters as lines of text, each beginning with "ulfm: stats".
  virtual std::string statistics() = 0;

  // What the model can do besides (abilities.hpp). nullptr: it cannot. The answer never changes.

  virtual ModelCycles* cycles() { return nullptr; }
  virtual ModelPace* pace() { return nullptr; }
  virtual ModelMulticast* multicast() { return nullptr; }
  virtual ModelBackPressure* back_pressure() { return nullptr; }
  virtual ModelPools* pools() { return nullptr; }
  virtual ModelRecovery* recovery() { return nullptr; }
};

/// Settings of one model: what `--transport NAME,option=value` has behind the name.
using ModelOptions = std::string_view;

/// What a model is made for. What it refers to outlives the plan that is made of it.
struct ModelPlan {
  const Topology& topology;
  ModelOptions options;
  std::uint32_t frames = 0;  ///< on their way at one time, at most
  std::span<const FaultEvent> events;
  std::uint32_t endpoints = 0;  ///< processes there can be
  std::uint64_t period = 0;     ///< in virtual time: of a cycle, picoseconds; 0: without
  /// Nodes that have processes, rising: no others send or receive. Empty: all do.
  std::span<const std::uint32_t> ends = {};
};

/// A model that has been worked out and not been made yet.
struct PlannedModel {
  std::size_t bytes = 0;  ///< of arena it needs
  /// Makes it in zeroed memory of so many bytes, aligned to pages.
  std::function<Result<void>(std::byte* memory)> create;
};

/// What a model is, as data. The transport of its name, its rows of `ulfm_info`, `ulfmrun`'s checks and `ulfm_sim`
/// follow from it and from its line in models.hpp. Models from shared objects have one too, made at run time.
struct ModelKind {
  const char* name;
  const char* summary;           ///< one line, for `ulfm_info`
  const char* default_topology;  ///< "mesh:4x4"
  /// All options it has, but for "preset" and the durations (durations.hpp). One is "frame": the largest frame of data
  /// that the network carries; messages are divided.
  std::span<const Options::Row> options;
  std::uint32_t frame;  ///< when the option is not given
  /// Of models with back-pressure, when the option "unread" is not given: see ArenaSizes::unread.
  std::uint32_t unread = 0;
  /// Errors speak of options, of the topology, and of events that the model does not have.
  std::function<Result<PlannedModel>(const ModelPlan& plan)> plan;
  /// The view of a process that has mapped the arena.
  std::function<Result<std::unique_ptr<Model>>(std::byte* memory, std::size_t bytes)> attach;
  /// Divides frames itself: each frame of a transport goes in whole.
  bool divides = false;
  /// Name of the program that moves it with ULFM_ENGINE=process, begun anew when it dies; nullptr: no such program.
  const char* program = nullptr;
  /// Its models have multicast(). Known before one is made, like the next.
  bool multicast = false;
  /// What the option "preset" may name; the first holds without it. Empty: the kind cannot run in virtual time. Models
  /// of a kind with presets, and those from shared objects, have cycles().
  std::span<const Preset> presets = {};
  /// Applies the kind's own options to the durations, whose cycle is known by then; nullptr: none of them says a time.
  void (*adjust_durations)(const Options& given, Durations& durations) = nullptr;
  /// What suits a library that divides messages itself (ulfm_job_suits): pieces of that size, because each message
  /// costs the machine's software much, and messages to all up to that size by one multicast. 0: nothing in particular.
  std::size_t piece = 0, copies = 0;
  /// Its nodes can store a frame and send it on: forward_ns and forward_byte_ps mean something.
  bool forwards = false;
  /// A topology's latencies and rates of single links count in it.
  bool own_links = false;
  /// Its jobs have a control channel also when nobody asks for one.
  bool control = false;
  /// Each of its nodes has a gateway, an end outside of it: that of node n is the end `nodes + n`. A host is at the one
  /// of node 0.
  bool gateways = false;
  /// Its links, switches and nodes can fail at a moment: plan() takes events. Otherwise it refuses them.
  bool link_faults = false;
  /// Path of the shared object it is from; nullptr: it is in the library.
  const char* object = nullptr;
};

/// The options of such a model. Errc::invalid, with the model's name, says which one is wrong.
Result<Options> read_options(const ModelKind& kind, ModelOptions options);

/// Errc::invalid when the topology gives single links a latency or a rate, and the model knows none of links.
Result<void> check_links(const ModelKind& kind, const Topology& topology);

}  // namespace ulfm::fabric
