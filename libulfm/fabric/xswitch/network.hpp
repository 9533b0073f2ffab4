// The production model of a network of X-Switches: exact to the unit and the cycle, paid for by events.
//
// An arena of indices without pointers: the same bytes serve live traffic in a shared segment, mapped
// anywhere, and tests on the heap. It moves counts and states; the bytes of a frame stay where the sender put
// them. What happens in a cycle, and in which order, is written in reference.hpp; this model does the same
// without going through the cycles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/error.hpp"
#include "fabric/model.hpp"
#include "fabric/xswitch/counters.hpp"
#include "fabric/xswitch/parameters.hpp"
#include "fabric/xswitch/units.hpp"

namespace ulfm::fabric::xswitch {

/// A cycle that never comes.
inline constexpr std::uint64_t kNever = std::uint64_t{1} << 60;

/// Most data units of one frame.
inline constexpr std::uint32_t kMostDataUnits = 1u << 30;

/// Told what the channels carry, as runs. A channel has the index of the port it leaves: switch * ports +
/// port, then the nodes. Runs are told late, but all of those before now() by Network::settle().
class Tracer {
 public:
  virtual ~Tracer() = default;
  /// `units` units of a frame, one a cycle from `cycle` on. `first` counts from the first unit that the
  /// sender sent; `bad_end`: the last of them is a bad ID-EOF.
  virtual void run(std::uint32_t channel, std::uint64_t cycle, std::uint32_t units, FrameId frame, std::uint32_t first,
                   bool bad_end) = 0;
  /// ID-STOP or ID-GO.
  virtual void command(std::uint32_t channel, std::uint64_t cycle, Unit unit) = 0;
};

class SwitchEngine;

/// One thread at a time, of any process that maps the arena. No call allocates except create() and attach().
class Network {
 public:
  /// Bytes of the arena for that many frames at a time.
  static std::size_t bytes(const Topology& topology, const Parameters& parameters, std::uint32_t frames);
  /// Makes a network of idle switches in zeroed memory of bytes(), 64-byte aligned. Errc::invalid when the
  /// parameters cannot work (see check()) or the topology's tables do not fit each other.
  static Result<Network> create(void* memory, const Topology& topology, const Parameters& parameters,
                                std::uint32_t frames);
  /// The network that is there already, made by any process. Errc::protocol when `bytes` of memory do not
  /// hold one.
  static Result<Network> attach(void* memory, std::size_t bytes);

  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;
  ~Network();

  /// Puts a frame behind those that wait to leave `node`: one routing unit for each switch, data, check,
  /// ID-EOF. False, with nothing taken, when the frame's name is unknown or in use, the node is unknown,
  /// there are more than kMostDataUnits, or the route does not end at a node. Links that are down do not
  /// matter here.
  bool inject(FrameId frame, std::uint32_t node, std::span<const std::uint8_t> route, std::uint32_t data_units);

  /// Goes on, whole cycle by whole cycle, until `budget` events have been handled, `endings` is full, nothing
  /// moves, or cycle `until` comes. Returns how many ended.
  std::size_t run(std::uint64_t budget, std::span<Ending> endings, std::uint64_t until = kNever);

  /// The node takes nothing out of its FIFO for so many cycles from now(); kNever: until told otherwise, 0:
  /// takes on.
  void stall(std::uint32_t node, std::uint64_t cycles);

  /// A link, named by either end, goes down or comes back before cycle now(). Does nothing for a port without
  /// one.
  void set_link(SwitchPort end, bool up);
  /// A switch dies with all that is in it, or comes back empty; its links go and come with it.
  void set_switch(std::uint32_t index, bool alive);

  /// Somebody wrote into the arena: the network stands still for good. Not every write is noticed; none makes
  /// it leave the arena, and frames and nodes in endings are always those of the network.
  bool damaged() const noexcept;
  /// Nothing moves, and nothing will without inject() or stall().
  bool idle() const noexcept;
  /// Frames injected whose ending has not been handed out.
  std::uint32_t frames_inside() const noexcept;
  /// The cycle everything before which has happened. The first is 1.
  std::uint64_t now() const noexcept;
  /// Events handled so far.
  std::uint64_t events() const noexcept;

  SwitchPortCounters counters(SwitchPort port);
  SwitchPortCounters node_counters(std::uint32_t node);
  /// What is at the other end of the link of a port, or of a node.
  LinkEnd peer(SwitchPort port) const;
  LinkEnd peer_of_node(std::uint32_t node) const;
  /// Counted anew over the whole network; Balance::holds() is false only after damage to the arena.
  Balance balance();

  /// Tells `tracer`, which outlives the network or its replacement; nullptr: nobody.
  void trace(Tracer* tracer) noexcept;
  /// Brings everything that is kept lazily up to now(); changes nothing that can be seen otherwise.
  void settle();

 private:
  explicit Network(std::unique_ptr<SwitchEngine> engine) noexcept;
  std::unique_ptr<SwitchEngine> engine_;
};

}  // namespace ulfm::fabric::xswitch
