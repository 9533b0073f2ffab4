// The machinery of the production model: events, and what is linear in time between them.
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
// not matter. A run that begins is told to the other end as soon as it is certain that the cycle before ends
// well; a command that arrives in that very cycle takes it back, for it has not left yet.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "fabric/xswitch/arena.hpp"
#include "fabric/xswitch/network.hpp"

namespace ulfm::fabric::xswitch {

class SwitchEngine {
 public:
  SwitchEngine(void* memory, const Geometry& geometry);

  /// Makes the arena's network; the memory is zero.
  void build(const Topology& topology, std::uint32_t link_cycles);

  bool inject(FrameId frame, std::uint32_t node, std::span<const std::uint8_t> route, std::uint32_t data_units);
  std::size_t run(std::uint64_t budget, std::span<Ending> endings, std::uint64_t until);
  void stall(std::uint32_t node, std::uint64_t cycles);
  void set_link(SwitchPort end, bool up);
  void set_switch(std::uint32_t index, bool alive);
  void settle_all();
  SwitchPortCounters counters(std::uint32_t end);
  LinkEnd peer(std::uint32_t end) const;
  Balance balance();

  const Header& header() const noexcept { return header_; }
  const Geometry& geometry() const noexcept { return geometry_; }
  bool idle() const noexcept { return is_quiet() && header_.alone == kNone && header_.ended == 0; }
  void trace(Tracer* tracer) noexcept { tracer_ = tracer; }

 private:
  /// No event will come.
  bool is_quiet() const noexcept {
    return (header_.busy[kArrival] | header_.busy[kGrant] | header_.busy[kTurn] | header_.busy[kThreshold]) == 0 &&
           header_.heap_size == 0;
  }

  // engine.cpp: time between events, the wheel and the heap.
  bool is_node(std::uint32_t end) const noexcept { return end >= switch_ports_ && end < ends_; }
  bool is_source(std::uint32_t x) const noexcept { return x >= ends_; }
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
    if (high > geometry_.bounds[1]) return tally_high(x, from, slope, cycles);
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
  void sift(std::uint32_t at, std::uint64_t key, std::uint32_t event);
  void unheap(std::uint32_t at);

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
  const Geometry& geometry_;
  Header& header_;
  std::uint32_t ports_, switch_ports_, ends_;
  Tracer* tracer_ = nullptr;
};

}  // namespace ulfm::fabric::xswitch
