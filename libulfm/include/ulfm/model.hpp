// Interconnects and routing functions of your own, from a shared object:
//
//   ulfmrun --transport ./mine.so,option=value --topology mesh:4x4 -n 16 PROGRAM
//   ulfm_sim load --transport ./mine.so --topology mesh:4x4
//   ulfm_sim load --routing ./mine.so --topology mesh:4x4
//
// A model decides when a message arrives; where its bytes lie is not its business. Its whole state lies in memory that
// it is given, which all processes of a job map, each at another address: indices instead of pointers, no std::vector,
// no global variables. One process at a time moves it, whichever waits, so it needs no lock.
//
// The shared object is compiled against this header alone (C++20, the compiler that ULFM was built with) and exports
// one description, or both. examples/model has a shared bus, with its lines for Make and CMake. ulfm-model(7) is the
// manual.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ulfm::model {

/// Of this interface. A shared object with another one is refused.
inline constexpr std::uint32_t kVersion = 1;

/// What is at the other end of a port of a switch, or of a node's link.
struct End {
  enum Kind : std::uint32_t { nothing, switch_port, node };
  std::uint32_t kind = nothing;
  std::uint32_t index = 0;  ///< switch or node
  std::uint32_t port = 0;   ///< of that switch
};

/// A topology, as ulfm-topology(5) names it.
struct Net {
  const char* name = "";  ///< "mesh:4x4"
  std::uint32_t nodes = 0, switches = 0;
  std::uint32_t ports = 0;      ///< of each switch
  const End* ends = nullptr;    ///< by switch * ports + port
  const End* places = nullptr;  ///< by node: the port it hangs on
  const End& end(std::uint32_t at, std::uint32_t port) const { return ends[std::size_t{at} * ports + port]; }
};

/// "name=number" behind the comma of --transport.
struct Option {
  const char* name;
  std::int64_t least, most, usual;
};

/// What a model is made for.
struct Plan {
  const Net& net;
  std::uint32_t messages;       ///< that can be on their way at one time: their numbers are below this
  const std::int64_t* options;  ///< in the order of Description::options
};

struct Message {
  std::uint32_t number;  ///< not in use by another message that is on its way
  std::uint32_t from, to;
  std::uint32_t bytes;
};

struct Arrival {
  std::uint32_t number;
  std::uint64_t begun;  ///< the cycle in which it left its sender
  std::uint64_t cycle;  ///< the cycle in which the last of it arrived
};

/// One process's view of an interconnect. Made by Description::attach in each process, and deleted there. Throws
/// nothing. The first cycle is 1.
class Interconnect {
 public:
  virtual ~Interconnect() = default;
  /// The cycle everything before which has happened.
  virtual std::uint64_t now() const = 0;
  /// Takes a message, which may leave its sender in cycle now() or later. Messages of one sender for one receiver
  /// arrive in the order in which they were sent. False, with nothing taken: there is no way for it.
  virtual bool send(const Message& message) = 0;
  /// Lets everything happen before cycle `until`, but stops at the next arrival. True: `arrival` is it, of a cycle
  /// before `until`. False: there is none, and now() is `until`. While nothing is on its way `until` is a cycle that is
  /// near; otherwise it may be one that never comes.
  virtual bool run(std::uint64_t until, Arrival& arrival) = 0;
  /// Counters, one "name value" after the other, for `ulfm_stat` and the statistics at the end of a job.
  virtual std::string counters() const { return {}; }
  /// Cycles from the first to the last, both counted, of a message that has the network to itself; 0: there is no
  /// closed form. For `ulfm_sim zero`.
  virtual std::uint64_t alone(std::uint32_t /*from*/, std::uint32_t /*to*/, std::uint32_t /*bytes*/) const { return 0; }
};

/// A model, as data.
struct Description {
  std::uint32_t version = kVersion;
  const char* name = nullptr;      ///< a word of at most 15 letters, digits and _, and none of ULFM's own models
  const char* summary = nullptr;   ///< one line, for `ulfm_info`
  const char* topology = nullptr;  ///< when --topology is not given
  double cycle_ns = 0;             ///< nanoseconds of a cycle
  const Option* options = nullptr;
  std::uint32_t option_count = 0;
  /// What is wrong with the plan, as a sentence; nullptr: nothing.
  const char* (*refuse)(const Plan& plan) = nullptr;
  /// Bytes of memory for the state.
  std::size_t (*bytes)(const Plan& plan) = nullptr;
  /// Makes it in zeroed memory of so many bytes, aligned to 64.
  void (*create)(void* memory, const Plan& plan) = nullptr;
  /// The view of one process.
  Interconnect* (*attach)(void* memory) = nullptr;
};

/// A routing function, as data. ulfm_sim walks every way and looks for deadlocks before it begins.
struct RoutingDescription {
  std::uint32_t version = kVersion;
  const char* name = nullptr;
  /// Writes the port by which the message leaves each switch, the last of which leads to the node; how many. 0: there
  /// is no way. At most `room`. `from` and `to` are different nodes. Called in any order.
  std::uint32_t (*way)(const Net& net, std::uint32_t from, std::uint32_t to, std::uint8_t* ports,
                       std::uint32_t room) = nullptr;
};

}  // namespace ulfm::model

/// Exports them: at file scope, once each.
#define ULFM_MODEL(...)                                                                    \
  extern "C" {                                                                             \
  extern const ulfm::model::Description ulfm_model __attribute__((visibility("default"))); \
  const ulfm::model::Description ulfm_model = __VA_ARGS__;                                 \
  }
#define ULFM_ROUTING(...)                                                                           \
  extern "C" {                                                                                      \
  extern const ulfm::model::RoutingDescription ulfm_routing __attribute__((visibility("default"))); \
  const ulfm::model::RoutingDescription ulfm_routing = __VA_ARGS__;                                 \
  }
