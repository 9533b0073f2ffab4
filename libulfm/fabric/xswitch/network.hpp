// The production model of a network of X-Switches: exact to the unit and the cycle, paid for by events.
//
// An arena of indices without pointers: the same bytes serve live traffic in a shared segment, mapped
// anywhere, and tests on the heap. It moves counts and states; the bytes of a frame stay where the sender put
// them. What happens in a cycle, and in which order, is written in reference.hpp; this model does the same
// without going through the cycles.
//
// A queue of units changes evenly between events (see Fifo), so it is brought up to a cycle only when
// something happens to it. Each port has at most one coming event of each kind: in a wheel of the next cycles, or in
// a heap when that is further off. Within a cycle events are handled in three phases, which keep what the order of a
// cycle in reference.hpp makes visible:
//
//   arrivals    a run of units begins, resumes or pauses at the end of a link; ID-STOP and ID-GO take effect
//   turns       a poll finds a head; an ID-EOF leaves; a queue runs dry
//   thresholds  a FIFO's occupancy at the end of the cycle asks for ID-STOP or ID-GO
//
// Nothing that happens in a phase depends on another event of the same phase and cycle, so their order does
// not matter. On a link with a rate of its own each unit is a run. A run is announced to the other end as soon
// as it is certain that the cycle before ends well; a command that arrives in that very cycle takes it back, for it has
// not left yet.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.hpp"
#include "fabric/model.hpp"
#include "fabric/xswitch/arena.hpp"
#include "fabric/xswitch/units.hpp"

namespace ulfm::fabric::xswitch {

/// Most data units of one frame.
inline constexpr std::uint32_t kMostDataUnits = 1u << 30;

/// Told what the channels carry, as runs. A channel has the index of the port it leaves: switch * ports +
/// port, then the nodes. Runs are announced late, but all of those before now() by Network::settle().
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

  Network(Network&&) noexcept = default;
  Network& operator=(Network&&) noexcept = default;

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
  bool damaged() const noexcept { return header().damaged != 0; }
  /// Nothing moves, and nothing will without inject() or stall().
  bool idle() const noexcept { return is_quiet() && header().alone == kNone && header().ended.empty(); }
  /// Frames injected whose ending has not been handed out.
  std::uint32_t frames_inside() const noexcept { return header().inside; }
  /// The cycle everything before which has happened. The first is 1.
  std::uint64_t now() const noexcept { return header().now; }
  /// Events handled so far.
  std::uint64_t events() const noexcept { return header().events; }

  SwitchPortCounters counters(SwitchPort port) { return counters_at(end_of(port)); }
  SwitchPortCounters node_counters(std::uint32_t node) { return counters_at(end_of_node(node)); }
  std::uint32_t check_units() const noexcept { return geometry().parameters.check_units; }
  /// Cycles for which a unit keeps the link of a port, or of a node, busy.
  std::uint32_t unit_cycles(SwitchPort port) const noexcept { return arena_.unit_cycles(end_of(port)); }
  std::uint32_t unit_cycles_of_node(std::uint32_t node) const noexcept { return arena_.unit_cycles(end_of_node(node)); }
  /// What is at the other end of the link of a port, or of a node.
  LinkEnd peer(SwitchPort port) const { return peer_at(end_of(port)); }
  LinkEnd peer_of_node(std::uint32_t node) const { return peer_at(end_of_node(node)); }
  /// Counted anew over the whole network; Balance::holds() is false only after damage to the arena.
  Balance balance();

  /// Tells `tracer`, which outlives the network or its replacement; nullptr: nobody.
  void trace(Tracer* tracer) noexcept { tracer_ = tracer; }
  /// Brings everything that is kept lazily up to now(); changes nothing that can be seen otherwise.
  void settle();

 private:
  Network(void* memory, const Geometry& geometry);
  /// Makes the arena's network; the memory is zero.
  void build(const Topology& topology, std::uint32_t link_cycles);
  Header& header() const noexcept { return arena_.header(); }
  const Geometry& geometry() const noexcept { return arena_.geometry(); }
  // Of a switch's port, or of a node behind those.
  SwitchPortCounters counters_at(std::uint32_t end);
  LinkEnd peer_at(std::uint32_t end) const;
  /// The end that a port is; that of none when there is no such port.
  std::uint32_t end_of(SwitchPort port) const noexcept;
  std::uint32_t end_of_node(std::uint32_t node) const noexcept;

  /// No event will come.
  bool is_quiet() const noexcept {
    return (header().busy[kArrival] | header().busy[kGrant] | header().busy[kTurn] | header().busy[kThreshold]) == 0 &&
           arena_.heap().empty();
  }

  // time.cpp: time between events, the wheel and the heap.
  bool is_node(std::uint32_t end) const noexcept { return end >= switch_ports_ && end < ends_; }
  bool is_source(std::uint32_t x) const noexcept { return x >= ends_; }
  /// What leaves the queue goes by a link that each unit keeps busy for more than a cycle.
  bool is_slow(std::uint32_t x, const Fifo& fifo) const noexcept {
    return geometry().parameters.unit_cycles != 1 && !is_node(x) && fifo.server != kNone &&
           arena_.unit_cycles(fifo.server) != 1;
  }
  /// Brings a queue up to the end of `cycle`.
  void settle(std::uint32_t x, Fifo& fifo, std::uint64_t cycle) {
    if (fifo.counted_to >= cycle) return;
    if (is_source(x)) settle_source(x, fifo, cycle);
    else if (fifo.arriving == 0 && fifo.occupied <= 0) fifo.counted_to = cycle;
    else settle_fifo(x, fifo, cycle);
  }
  void settle_fifo(std::uint32_t x, Fifo& fifo, std::uint64_t cycle);
  void settle_source(std::uint32_t x, Fifo& fifo, std::uint64_t cycle);
  void take_first(std::uint32_t x, Fifo& fifo, std::uint64_t cycle);
  void left(std::uint32_t x, Fifo& fifo, std::uint64_t cycle, std::uint32_t units);
  /// Adds cycles to the occupancy's histogram: it was `from` at the end of the cycle before the first of them.
  void tally(std::uint32_t x, std::int32_t from, int slope, std::uint64_t cycles) {
    const std::int64_t run = static_cast<std::int64_t>(cycles), high = slope > 0 ? from + run : from - (slope < 0);
    if (high > geometry().bounds[1]) return tally_high(x, from, slope, cycles);
    arena_.fifo_tally(x).occupancy[0] += static_cast<std::uint64_t>(slope == 0 ? run : std::min(run, high));
  }
  void tally_high(std::uint32_t x, std::int64_t from, int slope, std::uint64_t cycles);
  void trace_run(std::uint32_t x, const Fifo& fifo, std::uint64_t cycle, std::uint32_t units);
  void settle_command(std::uint32_t end, Output& out, std::uint64_t cycle);
  void predict(std::uint32_t x, Fifo& fifo);
  std::uint64_t next_turn(std::uint32_t x, const Fifo& fifo) const;
  std::uint64_t next_level(std::uint32_t x, const Fifo& fifo) const;
  void expect(std::uint32_t port, EventKind kind, std::uint64_t& due, std::uint64_t cycle);
  std::uint32_t slot_of(std::uint64_t cycle, std::uint32_t kind) const noexcept {
    return kind * kWheelCycles + static_cast<std::uint32_t>(cycle % kWheelCycles);
  }
  void put(std::uint32_t port, EventKind kind, std::uint64_t cycle);
  void take_out(std::uint32_t port, EventKind kind, std::uint64_t cycle);
  void clear_slot_word(std::uint32_t slot, std::uint32_t word);
  /// Cycle of the next event; kNever when there is none.
  std::uint64_t next_cycle() const;

  // events.cpp: what happens.
  void arrive(std::uint32_t d, std::uint64_t cycle);
  void run_arrives(std::uint32_t d, const StateChange& change, std::uint64_t cycle);
  void stop_arrives(std::uint32_t end, std::uint64_t cycle);
  void go_arrives(std::uint32_t end, std::uint64_t cycle);
  void head_ready(std::uint32_t x, Fifo& fifo, std::uint64_t cycle);
  void grant(std::uint32_t y, std::uint64_t cycle);
  void turn(std::uint32_t x, std::uint64_t cycle);
  void throw_away(std::uint32_t x, Fifo& fifo, std::uint64_t cycle);
  void finish(std::uint32_t x, Fifo& fifo, std::uint64_t cycle);
  void finish_at_node(std::uint32_t x, Fifo& fifo, std::uint64_t cycle);
  void next_from_source(std::uint32_t x, Fifo& fifo, std::uint64_t cycle);
  void threshold(std::uint32_t x, std::uint64_t cycle);
  void start(std::uint32_t x, Fifo& fifo, std::uint64_t cycle);
  void begin_run(std::uint32_t x, Fifo& fifo, std::uint64_t cycle);
  void send_slowly(std::uint32_t x, Fifo& fifo, std::uint64_t cycle);
  void pause(std::uint32_t x, Fifo& fifo, std::uint64_t cycle);
  void push(std::uint32_t d, const StateChange& change);
  void pop_frame(Fifo& fifo);
  void load_head(std::uint32_t x, Fifo& fifo);
  void release(std::uint32_t y, std::uint32_t input, std::uint64_t cycle);
  void count_sent(std::uint32_t x, const Fifo& fifo, ChannelCounters& counters) const;
  void end_waiting(std::uint32_t y, Output& out, std::uint64_t cycle);
  void piece_gone(std::uint32_t frame, std::uint64_t cycle);
  std::uint32_t position(const Output& out, std::uint64_t cycle) const;
  std::uint64_t next_poll(const Output& out, std::uint32_t input, std::uint64_t cycle) const;
  std::uint64_t next_grant(const Output& out) const;

  // alone.cpp: a frame that has the network to itself.
  bool pass_alone(std::uint32_t frame);
  std::uint64_t pass_switch(std::uint32_t x, std::uint32_t y, std::uint64_t cycle, std::uint32_t length);
  void begin_alone();
  void enqueue(std::uint32_t frame);
  std::uint32_t destination(std::uint32_t node, std::span<const std::uint8_t> route) const;
  Entry whole(std::uint32_t frame) const;
  void handle_cycle(std::uint64_t cycle);
  template <EventKind kind>
  void handle_kind(std::uint64_t cycle, std::uint64_t most);
  template <EventKind kind>
  void handle(std::uint32_t x, std::uint64_t cycle);
  std::size_t hand_out(std::span<Ending> endings);
  /// Somebody has written into the arena: nothing happens any more.
  void damage();
  auto next_frame() const noexcept {
    return [this](std::uint32_t i) -> std::uint32_t& { return arena_.frame(i).next; };
  }

  // faults.cpp
  void cut(std::uint32_t u);
  void lose_in_flight(std::uint32_t u, std::uint32_t d);
  void end_arrival(std::uint32_t u, std::uint32_t d);
  void drop_rest(std::uint32_t u);
  bool sending_piece_of(const Output& out, std::uint32_t frame) const;
  void shorten(std::uint32_t x, std::uint32_t by);
  void mend(std::uint32_t u);
  void refresh_link(std::uint32_t end);
  void empty_input(std::uint32_t x);
  std::uint64_t in_flight(std::uint32_t d) const;

  SwitchArena arena_;
  std::uint32_t ports_, switch_ports_, ends_;
  Tracer* tracer_ = nullptr;
};

}  // namespace ulfm::fabric::xswitch
