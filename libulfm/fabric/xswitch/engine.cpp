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
      ends_(geometry.ends),
      link_cycles_(geometry.parameters.link_cycles) {}

namespace {

/// `value` changes by `slope` for each of `units`; without overflow in the sense of the language whatever it
/// was.
void add(std::int32_t& value, int slope, std::uint32_t units) {
  value = static_cast<std::int32_t>(static_cast<std::uint32_t>(value) + static_cast<std::uint32_t>(slope) * units);
}

}  // namespace

// Time between events.

/// There is no event of the queue before the end of `cycle`, so a few even pieces are all.
void SwitchEngine::settle_fifo(std::uint32_t x, Fifo& fifo, std::uint64_t cycle) {
  for (int piece = 0; piece < 8 && fifo.counted_to < cycle; ++piece) {
    std::uint64_t n = cycle - fifo.counted_to;
    const bool comes = fifo.arriving != 0 && fifo.coming != 0;
    bool leaves = fifo.going != 0 && fifo.leaving != 0 && (comes || fifo.occupied > 0);
    if (leaves && fifo.goes_from > fifo.counted_to + 1) {
      n = std::min(n, fifo.goes_from - 1 - fifo.counted_to);
      leaves = false;
    }
    if (comes) n = std::min<std::uint64_t>(n, fifo.coming);
    else if (leaves) n = std::min<std::uint64_t>(n, static_cast<std::uint32_t>(fifo.occupied));
    if (leaves) n = std::min<std::uint64_t>(n, fifo.leaving);
    const int slope = int{comes} - int{leaves};
    if (fifo.occupied > 0 || slope > 0) tally(x, fifo.occupied, slope, n);
    const auto units = static_cast<std::uint32_t>(n);
    if (leaves) left(x, fifo, fifo.counted_to + 1, units);
    if (comes && (fifo.coming -= units) == 0) fifo.arriving = 0;
    add(fifo.occupied, slope, units);
    fifo.counted_to += n;
  }
  fifo.counted_to = std::max(fifo.counted_to, cycle);
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

/// Adds cycles to the occupancy's histogram: it was `from` at the end of the cycle before the first of them.
void SwitchEngine::tally(std::uint32_t x, std::int64_t from, int slope, std::uint64_t cycles) {
  std::uint64_t* buckets = arena_.fifo_tally(x).occupancy;
  const auto run = static_cast<std::int64_t>(cycles);
  if (slope == 0 && from > 0 && from <= geometry_.bounds[1]) {
    buckets[0] += cycles;
    return;
  }
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
  look_ahead(x, fifo);
  touch(x);
}

void SwitchEngine::look_ahead(std::uint32_t x, Fifo& fifo) {
  fifo.turn_at = fifo.level_at = kNever;
  if (fifo.count != 0) {
    if (fifo.going != 0) {
      const std::uint64_t before = std::max(fifo.counted_to, fifo.goes_from - 1);
      const bool to_its_end = fifo.arriving != 0 || fifo.coming == 0 || fifo.count > 1 || is_source(x);
      if (to_its_end) fifo.turn_at = before + fifo.leaving;
      else if (fifo.sending != 0) fifo.turn_at = before + static_cast<std::uint32_t>(fifo.occupied) + 1;
    } else if (fifo.server == kNone && fifo.leaving == 1) {
      fifo.turn_at = std::max(fifo.goes_from, header_.now);
    }
  }
  if (!is_source(x)) fifo.level_at = next_level(x, fifo);
}

/// The end of which cycle finds the occupancy at the threshold that counts now. Never later than that; when
/// something else comes first it is asked again.
std::uint64_t SwitchEngine::next_level(std::uint32_t x, const Fifo& fifo) const {
  const Parameters& p = geometry_.parameters;
  const std::int64_t occupied = fifo.occupied, stop_at = p.stop_at, go_at = p.go_at;
  const std::uint64_t coming = fifo.arriving != 0 ? fifo.coming : 0;
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
  if (occupied <= go_at) return soonest;
  if (held == kNever) return kNever;
  const std::uint64_t most = static_cast<std::uint64_t>(occupied) + std::min(coming, held);
  return fifo.counted_to + std::max(coming, held) + most - p.go_at;
}

// The wheel, and the heap behind it.

/// Puts a port where its next event belongs.
void SwitchEngine::touch(std::uint32_t port) {
  if (port >= geometry_.feeders) return;
  const auto& [fifo, out] = arena_.port(port);
  std::uint64_t key = std::min(fifo.turn_at, out.grant_at) << 2 | turns;
  key = std::min(key, fifo.level_at << 2 | thresholds);
  if (out.flight_count != 0) key = std::min(key, arena_.change(port, out.flight_first).at << 2 | arrivals);
  key = std::min(key, kNoEvent);
  WheelItem& item = arena_.wheel(port);
  if (item.key == key) return;
  if (item.key != kNoEvent) take_out(port, item);
  item.key = key;
  if (key != kNoEvent) put(port, item, key);
}

void SwitchEngine::put(std::uint32_t port, WheelItem& item, std::uint64_t key) {
  const std::uint64_t cycle = std::max(key >> 2, header_.now);
  if (cycle - header_.now < kWheelCycles) {
    const std::uint32_t slot = slot_of(cycle, key & 3);
    WheelItem& head = arena_.wheel(slot);
    header_.busy[key & 3] |= std::uint64_t{1} << cycle % kWheelCycles;
    item.before = slot;
    item.next = head.next;
    arena_.wheel(head.next).before = port;
    head.next = port;
    return;
  }
  item.next = kNone;
  const std::uint32_t size = std::min(header_.heap_size, geometry_.feeders - 1);
  header_.heap_size = size + 1;
  sift(size, key, port);
}

void SwitchEngine::take_out(std::uint32_t port, WheelItem& item) {
  if (item.next == kNone) {
    const std::uint32_t at = arena_.heap(port).place;
    if (at < std::min(header_.heap_size, geometry_.feeders) && arena_.heap(at).port == port) unheap(at);
    return;
  }
  arena_.wheel(item.before).next = item.next;
  arena_.wheel(item.next).before = item.before;
  const std::uint32_t slot = item.next - geometry_.feeders;
  if (item.next == item.before && slot < kWheelSlots)
    header_.busy[slot / kWheelCycles] &= ~(std::uint64_t{1} << slot % kWheelCycles);
}

/// All events in the wheel are of the kWheelCycles cycles from now() on.
SwitchEngine::Due SwitchEngine::next_due() const {
  const std::uint64_t now = header_.now;
  Due due{kNoEvent, kNone};
  std::uint32_t slot = kNone;
  for (std::uint32_t phase = 0; phase < 3; ++phase) {
    if (header_.busy[phase] == 0) continue;
    const std::uint64_t turned = std::rotr(header_.busy[phase], static_cast<int>(now % kWheelCycles));
    const std::uint64_t cycle = now + static_cast<std::uint32_t>(std::countr_zero(turned));
    if ((cycle << 2 | phase) >= due.key) continue;
    due.key = cycle << 2 | phase;
    slot = slot_of(cycle, phase);
  }
  if (header_.heap_size != 0 && arena_.heap(0).key < due.key) return {arena_.heap(0).key, arena_.heap(0).port};
  if (slot == kNone) return due;
  due.port = arena_.wheel(slot).next;
  return due;
}

SwitchEngine::Due SwitchEngine::due_in(std::uint64_t cycle) const {
  const std::uint64_t bit = std::uint64_t{1} << cycle % kWheelCycles;
  Due due{kNoEvent, kNone};
  for (std::uint32_t phase = 0; phase < 3; ++phase)
    if ((header_.busy[phase] & bit) != 0) {
      due = {cycle << 2 | phase, arena_.wheel(slot_of(cycle, phase)).next};
      break;
    }
  if (header_.heap_size != 0 && arena_.heap(0).key < due.key) return {arena_.heap(0).key, arena_.heap(0).port};
  return due;
}

/// The hole at `at`, below the heap's size, takes the item, or moves up or down first.
void SwitchEngine::sift(std::uint32_t at, std::uint64_t key, std::uint32_t port) {
  HeapItem* const heap = arena_.heap_items();
  const std::uint32_t size = std::min(header_.heap_size, geometry_.feeders);
  const auto move_to = [&](std::uint32_t to, std::uint64_t moved_key, std::uint32_t moved) {
    heap[to].key = moved_key;
    heap[to].port = moved;
    if (moved < geometry_.feeders) heap[moved].place = to;
  };
  while (at != 0) {
    const HeapItem& parent = heap[(at - 1) / 2];
    if (parent.key <= key) break;
    move_to(at, parent.key, parent.port);
    at = (at - 1) / 2;
  }
  for (std::uint32_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
    if (child + 1 < size && heap[child + 1].key < heap[child].key) ++child;
    if (heap[child].key >= key) break;
    move_to(at, heap[child].key, heap[child].port);
    at = child;
  }
  move_to(at, key, port);
}

/// Takes the item at `at`, below the heap's size, out.
void SwitchEngine::unheap(std::uint32_t at) {
  const std::uint32_t last = std::min(header_.heap_size, geometry_.feeders) - 1;
  header_.heap_size = last;
  if (at == last) return;
  const HeapItem moved = arena_.heap(last);
  sift(at, moved.key, moved.port);
}

}  // namespace ulfm::fabric::xswitch
