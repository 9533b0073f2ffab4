#include "fabric/xswitch/engine.hpp"

#include <algorithm>
#include <bit>

namespace ulfm::fabric::xswitch {

SwitchEngine::SwitchEngine(void* memory, const Geometry& geometry)
    : arena_(memory, geometry),
      geometry_(arena_.geometry()),
      header_(arena_.header()),
      ports_(geometry.ports),
      switch_ports_(geometry.switch_ports),
      ends_(geometry.ends) {}

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
void SwitchEngine::settle_fifo(std::uint32_t x, Fifo& fifo, std::uint64_t cycle) {
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
void SwitchEngine::settle_source(std::uint32_t x, Fifo& fifo, std::uint64_t cycle) {
  const std::uint64_t before = std::max(fifo.counted_to, fifo.goes_from - 1);
  if (fifo.going != 0 && fifo.leaving != 0 && before < cycle) {
    const auto units = static_cast<std::uint32_t>(std::min<std::uint64_t>(cycle - before, fifo.leaving));
    left(x, fifo, before + 1, units);
  }
  fifo.counted_to = cycle;
}

/// The first unit goes in `cycle`, in another way than to be sent.
void SwitchEngine::take_first(std::uint32_t x, Fifo& fifo, std::uint64_t cycle) {
  settle(x, fifo, cycle - 1);
  const bool comes = fifo.arriving != 0 && fifo.coming != 0;
  if (comes && --fifo.coming == 0) fifo.arriving = 0;
  if (!comes) add(fifo.occupied, -1, 1);
  if (fifo.occupied > 0) tally(x, fifo.occupied, 0, 1);
  fifo.counted_to = cycle;
}

/// `units` of the first frame left, one a cycle from `cycle` on.
void SwitchEngine::left(std::uint32_t x, Fifo& fifo, std::uint64_t cycle, std::uint32_t units) {
  if (is_source(x) && fifo.leaving == fifo.head_length) arena_.frame(arena_.entry(x, fifo.first).frame).begun = cycle;
  if (fifo.dropping != 0) {
    arena_.channel_tally(fifo.server).counters.lost_units += units;
    header_.lost += units;
  } else if (tracer_ != nullptr && !is_node(x)) {
    trace_run(x, fifo, cycle, units);
  }
  if (is_source(x)) header_.entered += units;
  else if (is_node(x)) header_.left += units;
  fifo.leaving -= units;
}

void SwitchEngine::trace_run(std::uint32_t x, const Fifo& fifo, std::uint64_t cycle, std::uint32_t units) {
  const Entry& head = arena_.entry(x, fifo.first);
  const std::uint32_t gone = is_source(x) ? 0u : head.hop + 1u;
  tracer_->run(fifo.server, cycle, units, head.frame, gone + fifo.head_length - fifo.leaving,
               head.bad != 0 && fifo.leaving == units);
}

void SwitchEngine::tally_high(std::uint32_t x, std::int64_t from, int slope, std::uint64_t cycles) {
  std::uint64_t* buckets = arena_.fifo_tally(x).occupancy;
  const auto run = static_cast<std::int64_t>(cycles);
  const std::int64_t low = std::max<std::int64_t>(1, slope > 0 ? from + 1 : slope < 0 ? from - run : from);
  const std::int64_t high = slope > 0 ? from + run : slope < 0 ? from - 1 : from;
  for (std::size_t i = 1; i < kBuckets; ++i) {
    const std::int64_t below = geometry_.bounds[i - 1], end = geometry_.bounds[i];
    if (low > end) continue;
    const std::int64_t values = std::min(high, end) - std::max(low - 1, below);
    if (values > 0) buckets[i - 1] += slope == 0 ? cycles : static_cast<std::uint64_t>(values);
    if (high <= end) return;
  }
}

void SwitchEngine::settle_command(std::uint32_t end, Output& out, std::uint64_t cycle) {
  if (out.command == 0 || out.command_at > cycle) return;
  const Unit unit = kControl | out.command;
  ChannelCounters& counters = arena_.channel_tally(end).counters;
  ++(unit == kStop ? counters.stops : counters.gos);
  if (tracer_ != nullptr) tracer_->command(end, out.command_at, unit);
  out.command = 0;
}

/// What comes next for a queue by itself, as things stand.
void SwitchEngine::predict(std::uint32_t x, Fifo& fifo) {
  expect(x, kTurn, fifo.turn_at, next_turn(x, fifo));
  if (!is_source(x)) expect(x, kThreshold, fifo.level_at, next_level(x, fifo));
}

std::uint64_t SwitchEngine::next_turn(std::uint32_t x, const Fifo& fifo) const {
  if (fifo.count == 0) return kNever;
  if (fifo.going == 0)
    return fifo.server == kNone && fifo.leaving == 1 ? std::max(fifo.goes_from, header_.now) : kNever;
  const std::uint64_t before = std::max(fifo.counted_to, fifo.goes_from - 1);
  const bool to_its_end = fifo.arriving != 0 || fifo.coming == 0 || fifo.count > 1 || is_source(x);
  if (to_its_end) return before + fifo.leaving;
  return fifo.sending != 0 ? before + static_cast<std::uint32_t>(fifo.occupied) + 1 : kNever;
}

/// The end of which cycle finds the occupancy at the threshold that counts now. Never later than that; when
/// something else comes first it is asked again.
std::uint64_t SwitchEngine::next_level(std::uint32_t x, const Fifo& fifo) const {
  const Parameters& p = geometry_.parameters;
  const std::int64_t occupied = fifo.occupied, stop_at = p.stop_at;
  const std::uint64_t coming = fifo.arriving != 0 ? fifo.coming : 0;
  if (fifo.told_stop == 0 && occupied + static_cast<std::int64_t>(coming) < stop_at) return kNever;
  const std::uint64_t held = fifo.going == 0                        ? kNever
                             : fifo.goes_from > fifo.counted_to + 1 ? fifo.goes_from - 1 - fifo.counted_to
                                                                    : 0;
  const std::uint64_t soonest = std::max(fifo.counted_to, header_.now);
  if (fifo.told_stop == 0) {
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
void SwitchEngine::expect(std::uint32_t port, EventKind kind, std::uint64_t& due, std::uint64_t cycle) {
  cycle = std::min(std::max(cycle, header_.now), kNever);
  if (due == cycle || port >= geometry_.feeders) return;
  if (due < kNever) take_out(port, kind, due);
  due = cycle;
  if (cycle < kNever) put(port, kind, cycle);
}

/// `cycle` is now() or later.
void SwitchEngine::put(std::uint32_t port, EventKind kind, std::uint64_t cycle) {
  if (cycle - header_.now < kWheelCycles) {
    const std::uint32_t slot = slot_of(cycle, kind), word = port / 64;
    arena_.slot(slot)[word] |= std::uint64_t{1} << port % 64;
    arena_.summary(slot)[word / 64] |= std::uint64_t{1} << word % 64;
    header_.busy[kind] |= std::uint64_t{1} << cycle % kWheelCycles;
    return;
  }
  const std::uint32_t size = std::min(header_.heap_size, geometry_.events - 1);
  header_.heap_size = size + 1;
  sift(size, cycle * kEventKinds + kind, port * kEventKinds + kind);
}

void SwitchEngine::take_out(std::uint32_t port, EventKind kind, std::uint64_t cycle) {
  const std::uint32_t slot = slot_of(cycle, kind), word = port / 64;
  std::uint64_t& ports = arena_.slot(slot)[word];
  const std::uint64_t bit = std::uint64_t{1} << port % 64;
  if ((ports & bit) != 0) {
    ports &= ~bit;
    if (ports == 0) clear_slot_word(slot, word);
    return;
  }
  const std::uint32_t event = port * kEventKinds + kind, at = arena_.heap(event).place;
  if (at < std::min(header_.heap_size, geometry_.events) && arena_.heap(at).event == event) unheap(at);
}

/// No port has an event in that word of a slot any more.
void SwitchEngine::clear_slot_word(std::uint32_t slot, std::uint32_t word) {
  std::uint64_t* const summary = arena_.summary(slot);
  summary[word / 64] &= ~(std::uint64_t{1} << word % 64);
  for (std::uint32_t i = 0; i < geometry_.summary_words; ++i)
    if (summary[i] != 0) return;
  header_.busy[slot / kWheelCycles] &= ~(std::uint64_t{1} << slot % kWheelCycles);
}

/// All events in the wheel are of the kWheelCycles cycles from now() on.
std::uint64_t SwitchEngine::next_cycle() const {
  const std::uint64_t now = header_.now, heap = header_.heap_size != 0 ? arena_.heap(0).key / kEventKinds : kNever;
  const std::uint64_t busy =
      header_.busy[kArrival] | header_.busy[kGrant] | header_.busy[kTurn] | header_.busy[kThreshold];
  if (busy == 0) return heap;
  const std::uint64_t turned = std::rotr(busy, static_cast<int>(now % kWheelCycles));
  return std::min(heap, now + static_cast<std::uint32_t>(std::countr_zero(turned)));
}

/// The hole at `at`, below the heap's size, takes the item, or moves up or down first.
void SwitchEngine::sift(std::uint32_t at, std::uint64_t key, std::uint32_t event) {
  HeapItem* const heap = arena_.heap_items();
  const std::uint32_t size = std::min(header_.heap_size, geometry_.events);
  const auto move_to = [&](std::uint32_t to, std::uint64_t moved_key, std::uint32_t moved) {
    heap[to].key = moved_key;
    heap[to].event = moved;
    if (moved < geometry_.events) heap[moved].place = to;
  };
  while (at != 0) {
    const HeapItem& parent = heap[(at - 1) / 2];
    if (parent.key <= key) break;
    move_to(at, parent.key, parent.event);
    at = (at - 1) / 2;
  }
  for (std::uint32_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
    if (child + 1 < size && heap[child + 1].key < heap[child].key) ++child;
    if (heap[child].key >= key) break;
    move_to(at, heap[child].key, heap[child].event);
    at = child;
  }
  move_to(at, key, event);
}

/// Takes the item at `at`, below the heap's size, out.
void SwitchEngine::unheap(std::uint32_t at) {
  const std::uint32_t last = std::min(header_.heap_size, geometry_.events) - 1;
  header_.heap_size = last;
  if (at == last) return;
  const HeapItem moved = arena_.heap(last);
  sift(at, moved.key, moved.event);
}

}  // namespace ulfm::fabric::xswitch
