#include "fabric/xswitch/network.hpp"

#include <algorithm>
#include <bit>

namespace ulfm::fabric::xswitch {

Network::Network(void* memory, const Geometry& geometry)
    : arena_(memory, geometry), ports_(geometry.ports), switch_ports_(geometry.switch_ports), ends_(geometry.ends) {}

namespace {

/// `value` changes by `slope` for each of `units`; without overflow in the sense of the language whatever it
/// was.
void add(std::int32_t& value, int slope, std::uint32_t units) {
  value = static_cast<std::int32_t>(static_cast<std::uint32_t>(value) + static_cast<std::uint32_t>(slope) * units);
}

}  // namespace

// Time between events.

/// There is no event of the queue before the end of `cycle`, so a few even pieces are all: units only come, then come
/// and leave, then only leave.
void Network::settle_fifo(std::uint32_t x, Fifo& fifo, std::uint64_t cycle) {
  std::uint64_t rest = cycle - fifo.counted_to;
  std::uint32_t coming = fifo.arriving != 0 ? fifo.coming : 0, sent = 0;
  const std::uint32_t came = coming, leaving = fifo.going != 0 ? fifo.leaving : 0;
  std::int32_t occupied = fifo.occupied;
  const auto only_come = [&](std::uint64_t cycles) {
    const auto units = static_cast<std::uint32_t>(std::min<std::uint64_t>(cycles, coming));
    if (units != 0) tally(x, occupied, 1, units);
    add(occupied, 1, units);
    coming -= units;
    if (cycles != units && occupied > 0) tally(x, occupied, 0, cycles - units);
    rest -= cycles;
  };
  if (leaving == 0) only_come(rest);
  else if (fifo.goes_from > fifo.counted_to + 1) only_come(std::min(rest, fifo.goes_from - 1 - fifo.counted_to));
  if (rest != 0) {
    const std::uint64_t from = cycle - rest + 1;
    sent = static_cast<std::uint32_t>(std::min<std::uint64_t>(rest, std::min(coming, leaving)));
    if (sent != 0 && occupied > 0) tally(x, occupied, 0, sent);
    coming -= sent;
    rest -= sent;
    if (rest != 0 && coming == 0 && occupied > 0 && sent != leaving) {
      const std::uint64_t most = std::min(static_cast<std::uint32_t>(occupied), leaving - sent);
      const auto units = static_cast<std::uint32_t>(std::min(rest, most));
      tally(x, occupied, -1, units);
      add(occupied, -1, units);
      sent += units;
      rest -= units;
    }
    if (sent != 0) left(x, fifo, from, sent);
    if (rest != 0) only_come(rest);
  }
  if (came != 0) {
    fifo.coming -= came - coming;
    if (fifo.coming == 0) fifo.arriving = 0;
  }
  fifo.occupied = occupied;
  fifo.counted_to = cycle;
}

/// The frames that a node has to send: always there, and not counted as a FIFO.
void Network::settle_source(std::uint32_t x, Fifo& fifo, std::uint64_t cycle) {
  const std::uint64_t before = std::max(fifo.counted_to, fifo.goes_from - 1);
  if (fifo.going != 0 && fifo.leaving != 0 && before < cycle) {
    const auto units = static_cast<std::uint32_t>(std::min<std::uint64_t>(cycle - before, fifo.leaving));
    left(x, fifo, before + 1, units);
  }
  fifo.counted_to = cycle;
}

/// The first unit goes in `cycle`, in another way than to be sent.
void Network::take_first(std::uint32_t x, Fifo& fifo, std::uint64_t cycle) {
  settle(x, fifo, cycle - 1);
  const bool comes = fifo.arriving != 0 && fifo.coming != 0;
  if (comes && --fifo.coming == 0) fifo.arriving = 0;
  if (!comes) add(fifo.occupied, -1, 1);
  if (fifo.occupied > 0) tally(x, fifo.occupied, 0, 1);
  fifo.counted_to = cycle;
}

/// `units` of the first frame left, one a cycle from `cycle` on.
void Network::left(std::uint32_t x, Fifo& fifo, std::uint64_t cycle, std::uint32_t units) {
  if (is_source(x) && fifo.leaving == fifo.head_length) arena_.frame(arena_.entry(x, fifo.first).frame).begun = cycle;
  if (fifo.dropping != 0) {
    arena_.channel_tally(fifo.server).counters.lost_units += units;
    header().lost += units;
  } else if (tracer_ != nullptr && !is_node(x)) {
    trace_run(x, fifo, cycle, units);
  }
  if (is_source(x)) header().entered += units;
  else if (is_node(x)) header().left += units;
  fifo.leaving -= units;
}

void Network::trace_run(std::uint32_t x, const Fifo& fifo, std::uint64_t cycle, std::uint32_t units) {
  const Entry& head = arena_.entry(x, fifo.first);
  const std::uint32_t gone = is_source(x) ? 0u : head.hop + 1u;
  tracer_->run(fifo.server, cycle, units, head.frame, gone + fifo.head_length - fifo.leaving,
               head.bad != 0 && fifo.leaving == units);
}

void Network::tally_high(std::uint32_t x, std::int64_t from, int slope, std::uint64_t cycles) {
  std::uint64_t* buckets = arena_.fifo_tally(x).occupancy;
  const auto run = static_cast<std::int64_t>(cycles);
  const std::int64_t low = std::max<std::int64_t>(1, slope > 0 ? from + 1 : slope < 0 ? from - run : from);
  const std::int64_t high = slope > 0 ? from + run : slope < 0 ? from - 1 : from;
  for (std::size_t i = 1; i < kBuckets; ++i) {
    const std::int64_t below = geometry().bounds[i - 1], end = geometry().bounds[i];
    if (low > end) continue;
    const std::int64_t values = std::min(high, end) - std::max(low - 1, below);
    if (values > 0) buckets[i - 1] += slope == 0 ? cycles : static_cast<std::uint64_t>(values);
    if (high <= end) return;
  }
}

void Network::settle_command(std::uint32_t end, Output& out, std::uint64_t cycle) {
  if (out.command == 0 || out.command_at > cycle) return;
  const Unit unit = kControl | out.command;
  ChannelCounters& counters = arena_.channel_tally(end).counters;
  ++(unit == kStop ? counters.stops : counters.gos);
  if (tracer_ != nullptr) tracer_->command(end, out.command_at, unit);
  out.command = 0;
}

/// What comes next for a queue by itself, as things stand.
void Network::predict(std::uint32_t x, Fifo& fifo) {
  expect(x, kTurn, fifo.turn_at, next_turn(x, fifo));
  if (!is_source(x)) expect(x, kThreshold, fifo.level_at, next_level(x, fifo));
}

std::uint64_t Network::next_turn(std::uint32_t x, const Fifo& fifo) const {
  if (fifo.count == 0) return kNever;
  if (fifo.going == 0)
    return fifo.server == kNone && fifo.leaving == 1 ? std::max(fifo.goes_from, header().now) : kNever;
  const std::uint64_t before = std::max(fifo.counted_to, fifo.goes_from - 1);
  if (is_slow(x, fifo)) {
    const bool has = is_source(x) || fifo.occupied > 0 || (fifo.arriving != 0 && fifo.coming != 0);
    return has ? before + 1 : kNever;
  }
  const bool to_its_end = fifo.arriving != 0 || fifo.coming == 0 || fifo.count > 1 || is_source(x);
  if (to_its_end) return before + fifo.leaving;
  return fifo.sending != 0 ? before + static_cast<std::uint32_t>(fifo.occupied) + 1 : kNever;
}

/// The end of which cycle finds the occupancy at the threshold that counts now. Never later than that; when
/// something else comes first it is asked again.
std::uint64_t Network::next_level(std::uint32_t x, const Fifo& fifo) const {
  const Parameters& p = geometry().parameters;
  const std::int64_t occupied = fifo.occupied, stop_at = p.stop_at;
  const std::uint64_t coming = fifo.arriving != 0 ? fifo.coming : 0;
  if (fifo.stop_sent == 0 && occupied + static_cast<std::int64_t>(coming) < stop_at) return kNever;
  const std::uint64_t held = fifo.going == 0                        ? kNever
                             : fifo.goes_from > fifo.counted_to + 1 ? fifo.goes_from - 1 - fifo.counted_to
                                                                    : 0;
  const std::uint64_t soonest = std::max(fifo.counted_to, header().now);
  if (fifo.stop_sent == 0) {
    if (occupied + static_cast<std::int64_t>(std::min(coming, held)) < stop_at) return kNever;
    if (occupied >= stop_at) return soonest;
    return std::max(soonest, fifo.counted_to + static_cast<std::uint64_t>(stop_at - occupied));
  }
  if (arena_.port(x).out.dead != 0) return kNever;
  if (occupied <= std::int64_t{p.go_at}) return soonest;
  if (held == kNever) return kNever;
  const std::uint64_t most = static_cast<std::uint64_t>(occupied) + std::min(coming, held);
  return fifo.counted_to + std::max(coming, held) + most - p.go_at;
}

// The wheel, and the heap behind it.

/// The port has that event in `cycle`, and no other of its kind. kNever: it has none. `due` says so for its kind.
void Network::expect(std::uint32_t port, EventKind kind, std::uint64_t& due, std::uint64_t cycle) {
  cycle = std::min(std::max(cycle, header().now), kNever);
  if (due == cycle || port >= geometry().feeders) return;
  if (due < kNever) take_out(port, kind, due);
  due = cycle;
  if (cycle < kNever) put(port, kind, cycle);
}

/// `cycle` is now() or later.
void Network::put(std::uint32_t port, EventKind kind, std::uint64_t cycle) {
  if (cycle - header().now < kWheelCycles) {
    const std::uint32_t slot = slot_of(cycle, kind), word = port / 64;
    arena_.slot(slot)[word] |= std::uint64_t{1} << port % 64;
    arena_.summary(slot)[word / 64] |= std::uint64_t{1} << word % 64;
    header().busy[kind] |= std::uint64_t{1} << cycle % kWheelCycles;
    return;
  }
  (void)arena_.heap().put(port * kEventKinds + kind, cycle * kEventKinds + kind);
}

void Network::take_out(std::uint32_t port, EventKind kind, std::uint64_t cycle) {
  const std::uint32_t slot = slot_of(cycle, kind), word = port / 64;
  std::uint64_t& ports = arena_.slot(slot)[word];
  const std::uint64_t bit = std::uint64_t{1} << port % 64;
  if ((ports & bit) != 0) {
    ports &= ~bit;
    if (ports == 0) clear_slot_word(slot, word);
    return;
  }
  (void)arena_.heap().remove(port * kEventKinds + kind);
}

/// No port has an event in that word of a slot any more.
void Network::clear_slot_word(std::uint32_t slot, std::uint32_t word) {
  std::uint64_t* const summary = arena_.summary(slot);
  summary[word / 64] &= ~(std::uint64_t{1} << word % 64);
  for (std::uint32_t i = 0; i < geometry().summary_words; ++i)
    if (summary[i] != 0) return;
  header().busy[slot / kWheelCycles] &= ~(std::uint64_t{1} << slot % kWheelCycles);
}

/// All events in the wheel are of the kWheelCycles cycles from now() on.
std::uint64_t Network::next_cycle() const {
  const IndexedHeap far = arena_.heap();
  const std::uint64_t now = header().now, heap = far.empty() ? kNever : far.least_key() / kEventKinds;
  const std::uint64_t busy =
      header().busy[kArrival] | header().busy[kGrant] | header().busy[kTurn] | header().busy[kThreshold];
  if (busy == 0) return heap;
  const std::uint64_t turned = std::rotr(busy, static_cast<int>(now % kWheelCycles));
  return std::min(heap, now + static_cast<std::uint32_t>(std::countr_zero(turned)));
}

}  // namespace ulfm::fabric::xswitch
