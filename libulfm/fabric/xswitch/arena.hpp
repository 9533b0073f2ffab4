// The memory of the production model: what lies where, and views of it that stay inside whatever it contains.
//
//   Header | Port | FifoTally | ChannelTally | queue entries | units on links | wheel | its summaries | heap |
//   cycles of links | cycles of units | frames
//            one of each for every port of a switch, every node, and every node's queue of frames to send
//
// Another process of the same user may write anything into it, so sizes are not read from it again after
// attach, and every index read from it goes through a check or a mask.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "fabric/kit/chain.hpp"
#include "fabric/kit/heap.hpp"
#include "fabric/topology/topology.hpp"
#include "fabric/xswitch/counters.hpp"
#include "fabric/xswitch/parameters.hpp"

namespace ulfm::fabric::xswitch {

/// A cycle that never comes.
inline constexpr std::uint64_t kNever = std::uint64_t{1} << 60;
inline constexpr std::uint32_t kNone = ~std::uint32_t{0};

/// What a port can have an event of, each at most once, in the order of a cycle; see network.hpp.
enum EventKind : std::uint32_t {
  kArrival = 0,    ///< the first change on its way to the port
  kGrant = 1,      ///< a poll of its output finds a head
  kTurn = 2,       ///< of its queue an ID-EOF leaves, nothing is left to send, or a headless rest is thrown away
  kThreshold = 3,  ///< its queue's occupancy reaches the threshold that counts now
};
inline constexpr std::uint32_t kEventKinds = 4;

/// Sizes that follow from the topology, the parameters and the number of frames.
struct Geometry {
  std::uint32_t ports = 0;         ///< of a switch
  std::uint32_t switch_ports = 0;  ///< of all switches
  std::uint32_t nodes = 0;
  std::uint32_t frames = 0;
  Parameters parameters;

  std::uint32_t ends = 0;                                 ///< switch ports, then nodes
  std::uint32_t feeders = 0;                              ///< ends, then the queues of the nodes
  std::uint32_t events = 0;                               ///< kEventKinds of each feeder
  std::uint32_t slot_words = 0, summary_words = 0;        ///< of a slot of the wheel
  std::uint32_t queue_capacity = 0, flight_capacity = 0;  ///< powers of two
  std::uint32_t route_capacity = 0, frame_bytes = 0;
  std::uint32_t bounds[kBuckets] = {};
  std::size_t ports_at = 0, fifo_tallies_at = 0, channel_tallies_at = 0, queues_at = 0, flights_at = 0, wheel_at = 0,
              summaries_at = 0, heap_at = 0, links_at = 0, rates_at = 0, frames_at = 0, bytes = 0;

  static Geometry of(std::uint32_t ports, std::uint32_t switches, std::uint32_t nodes, std::uint32_t frames,
                     const Parameters& parameters);
};

struct Header {
  std::uint64_t magic;
  std::uint32_t ports, switches, nodes, frames;
  Parameters parameters;
  std::uint32_t padding;

  alignas(64) std::uint64_t now;
  std::uint64_t events;
  std::uint64_t entered, inserted, left, stripped, lost;
  std::uint32_t heap_size;
  std::uint32_t inside;             ///< frames injected and not handed out
  std::uint64_t busy[kEventKinds];  ///< slots of the wheel that have events, a bit each

  alignas(64) Chain ended;  ///< frames to hand out
  std::uint32_t alone;      ///< the only frame inside, not begun; kNone
  std::uint32_t dead_links;
  std::uint32_t damaged;  ///< an event came again and again: somebody wrote into the arena
};

/// A queue of units with whoever empties it: the FIFO of an input port with the output that serves it, the
/// FIFO of a node, or a node's frames to send. `occupied`, `coming` and `leaving` are those at the end of
/// cycle `counted_to`; from there they change by at most one a cycle, evenly, until the next event.
struct alignas(64) Fifo {
  std::uint64_t counted_to;
  std::uint64_t goes_from;     ///< served: the first cycle in which it may send; waiting: when its head was first there
  std::uint64_t turn_at;       ///< kTurn is due; kNever
  std::uint64_t level_at;      ///< kThreshold is due; kNever
  std::int32_t occupied;       ///< -1 for a moment: a head that is stripped in the cycle in which it arrives
  std::uint32_t coming;        ///< units of the last frame that have not arrived
  std::uint32_t leaving;       ///< units of the first frame that have not left
  std::uint32_t head_length;   ///< units of the first frame that leave this way, in all
  std::uint32_t server;        ///< the output that serves it, kNone
  std::uint16_t first, count;  ///< frames in it: a piece of the ring of its queue entries
  std::uint8_t arriving;       ///< a unit arrives in each cycle until `coming` is 0
  std::uint8_t going;          ///< served, and the output is not stopped
  std::uint8_t sending;        ///< the other end of the link knows that a unit comes in each cycle
  std::uint8_t announced;      ///< the other end knows of the first frame
  std::uint8_t stop_sent;      ///< the last command was ID-STOP
  std::uint8_t ending;         ///< what comes is a bad ID-EOF
  std::uint8_t dropping;       ///< what leaves vanishes: the first frame met a dead link
};
static_assert(sizeof(Fifo) == 64);

/// The sending half of a port.
struct alignas(64) Output {
  std::uint64_t polls_from;   ///< the cycle in which it polls input `polled`, then one after the other
  std::uint64_t grant_at;     ///< kGrant is due; kNever
  std::uint64_t arrival_at;   ///< kArrival is due; kNever
  std::uint64_t command_at;   ///< cycle of the last ID-STOP or ID-GO
  std::uint64_t waits_since;  ///< in a Wait state; kNever
  std::uint32_t waiting;      ///< inputs whose head names this output, a bit each
  std::uint32_t peer;         ///< the port at the other end of the link, kNone
  std::uint32_t feeder;       ///< the queue it serves, kNone
  std::uint32_t first_port;   ///< of the same switch
  std::uint8_t polled;
  std::uint8_t stopped, dead;
  std::uint8_t command;  ///< kStop or kGo without its top bit, not yet counted; 0
  std::uint8_t off, unpowered;
  std::uint8_t flight_first, flight_count;  ///< a piece of the ring of changes on the way to this port
};
static_assert(sizeof(Output) == 64);

struct Port {
  Fifo in;
  Output out;
};

struct alignas(64) FifoTally {
  std::uint64_t arbitration_cycles;
  std::uint64_t occupancy[kBuckets - 1];  ///< without the empty bucket, which is the rest of the time
  std::uint64_t bad_ends, lost_units;
};

struct alignas(64) ChannelTally {
  ChannelCounters counters;
};
static_assert(sizeof(ChannelTally) == 64);

/// A frame in a FIFO.
struct Entry {
  std::uint32_t frame, length;
  std::uint16_t hop;     ///< routing characters gone when it came
  std::uint8_t bad;      ///< its ID-EOF is a bad one
  std::uint8_t routing;  ///< routing characters that it came with
};
static_assert(sizeof(Entry) == 12);

/// A change of what a channel carries, on its way.
struct StateChange {
  enum Kind : std::uint8_t { begin, resume, pause, command_stop, command_go };
  std::uint64_t at;  ///< the cycle in which it arrives
  std::uint32_t frame, length;
  std::uint16_t hop;
  std::uint8_t bad, routing;
  Kind kind;
};
static_assert(sizeof(StateChange) == 24);

/// Cycles from now() on whose events are in the wheel; later ones are in the heap.
inline constexpr std::uint32_t kWheelCycles = 64;
inline constexpr std::uint32_t kWheelSlots = kEventKinds * kWheelCycles;  ///< one for each kind in a cycle

struct FrameSlot {
  std::uint64_t end_cycle;
  std::uint64_t begun;  ///< the cycle in which its first unit left the node; 0
  std::uint32_t next;   ///< behind it in a node's queue or in the list of those that ended
  std::uint32_t data_units;
  std::uint32_t from, to;  ///< nodes
  std::uint16_t route_length;
  std::uint16_t pieces;  ///< into which cuts have divided it, less those that are gone
  std::uint8_t used, cut, delivered;
  std::uint8_t route[1];  ///< Geometry::route_capacity of them
};

/// The arena as one process sees it.
class SwitchArena {
 public:
  SwitchArena(void* memory, const Geometry& geometry);

  const Geometry& geometry() const noexcept { return geometry_; }
  Header& header() const noexcept { return *header_; }
  Port& port(std::uint32_t i) const noexcept { return ports_[i < geometry_.feeders ? i : 0]; }
  FifoTally& fifo_tally(std::uint32_t i) const noexcept { return fifo_tallies_[i < geometry_.feeders ? i : 0]; }
  ChannelTally& channel_tally(std::uint32_t i) const noexcept {
    return channel_tallies_[i < geometry_.feeders ? i : 0];
  }
  // The first places of all rings lie together: few are ever used, and rings side by side would share cache sets.
  Entry& entry(std::uint32_t i, std::uint32_t place) const noexcept {
    return queues_[std::size_t{place & (geometry_.queue_capacity - 1)} * geometry_.feeders +
                   (i < geometry_.feeders ? i : 0)];
  }
  StateChange& change(std::uint32_t i, std::uint32_t place) const noexcept {
    return flights_[std::size_t{place & (geometry_.flight_capacity - 1)} * geometry_.ends +
                    (i < geometry_.ends ? i : 0)];
  }
  /// Of a slot of the wheel: a bit for each port that has an event there, Geometry::slot_words of them.
  std::uint64_t* slot(std::uint32_t i) const noexcept { return wheel_ + std::size_t{i} * geometry_.slot_words; }
  /// And a bit for each of those words that has one, Geometry::summary_words of them.
  std::uint64_t* summary(std::uint32_t i) const noexcept {
    return summaries_ + std::size_t{i} * geometry_.summary_words;
  }
  /// Events that are further off: their owners are port * kEventKinds + kind, their keys cycle * kEventKinds + kind.
  IndexedHeap heap() const noexcept { return {heap_, geometry_.events, header_->heap_size}; }
  /// Cycles of a unit's way over the link at an end: 1 to that of the slowest link, Parameters::link_cycles.
  std::uint32_t link_cycles(std::uint32_t end) const noexcept {
    return std::clamp<std::uint32_t>(links_[end < geometry_.ends ? end : 0], 1, geometry_.parameters.link_cycles);
  }
  void set_link_cycles(std::uint32_t end, std::uint32_t cycles) noexcept {
    links_[end] = static_cast<std::uint8_t>(cycles);
  }
  /// Cycles for which a unit keeps it busy: 1 to Parameters::unit_cycles.
  std::uint32_t unit_cycles(std::uint32_t end) const noexcept {
    if (geometry_.parameters.unit_cycles == 1) [[likely]]
      return 1;
    return std::clamp<std::uint32_t>(rates_[end < geometry_.ends ? end : 0], 1, geometry_.parameters.unit_cycles);
  }
  void set_unit_cycles(std::uint32_t end, std::uint32_t cycles) noexcept {
    rates_[end] = static_cast<std::uint8_t>(cycles);
  }
  FrameSlot& frame(std::uint32_t i) const noexcept {
    return *reinterpret_cast<FrameSlot*>(frames_ + std::size_t{i < geometry_.frames ? i : 0} * geometry_.frame_bytes);
  }
  /// The output port that the routing character of that hop names, at the switch of port `in`.
  std::uint32_t output(const FrameSlot& frame, std::uint32_t hop, const Output& at) const noexcept {
    const std::uint8_t named = frame.route[hop < geometry_.route_capacity ? hop : 0];
    return at.first_port + (named < geometry_.ports ? named : 0);
  }

 private:
  Geometry geometry_;
  Header* header_;
  Port* ports_;
  FifoTally* fifo_tallies_;
  ChannelTally* channel_tallies_;
  Entry* queues_;
  StateChange* flights_;
  std::uint64_t* wheel_;
  std::uint64_t* summaries_;
  HeapItem* heap_;
  std::uint8_t* links_;
  std::uint8_t* rates_;
  std::byte* frames_;
};

}  // namespace ulfm::fabric::xswitch
