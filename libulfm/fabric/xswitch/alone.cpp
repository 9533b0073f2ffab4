// Frames on their way in and out, and the short way for a frame that has the network to itself.
#include <algorithm>
#include <bit>

#include "fabric/xswitch/network.hpp"

namespace ulfm::fabric::xswitch {

/// The node at which a route ends, kNone when it does not end at one.
std::uint32_t Network::destination(std::uint32_t node, std::span<const std::uint8_t> route) const {
  std::uint32_t at = arena_.port(switch_ports_ + node).out.peer;
  for (const std::uint8_t named : route) {
    if (at >= switch_ports_ || named >= ports_) return kNone;
    at = arena_.port(arena_.port(at).out.first_port + named).out.peer;
  }
  return is_node(at) ? at - switch_ports_ : kNone;
}

bool Network::inject(FrameId frame, std::uint32_t node, std::span<const std::uint8_t> route, std::uint32_t data_units) {
  if (frame >= geometry().frames || node >= geometry().nodes || data_units > kMostDataUnits ||
      route.size() > geometry().route_capacity)
    return false;
  FrameSlot& slot = arena_.frame(frame);
  const std::uint32_t to = destination(node, route);
  if (slot.used != 0 || to == kNone) return false;
  slot.used = 1;
  slot.cut = 0;
  slot.begun = 0;
  slot.pieces = 1;
  slot.data_units = data_units;
  slot.from = node;
  slot.to = to;
  slot.route_length = static_cast<std::uint16_t>(route.size());
  std::copy(route.begin(), route.end(), slot.route);
  const bool first = header().inside++ == 0 && is_quiet();
  begin_alone();
  if (first) header().alone = frame;
  else enqueue(frame);
  return true;
}

/// The frame that waited for a network to itself goes the ordinary way.
void Network::begin_alone() {
  const std::uint32_t frame = header().alone;
  header().alone = kNone;
  if (frame != kNone) enqueue(frame);
}

/// A frame as its node sends it.
Entry Network::whole(std::uint32_t frame) const {
  const FrameSlot& slot = arena_.frame(frame);
  return {frame, slot.route_length + slot.data_units + geometry().parameters.check_units + 1, 0, 0,
          static_cast<std::uint8_t>(slot.route_length)};
}

void Network::enqueue(std::uint32_t frame) {
  FrameSlot& slot = arena_.frame(frame);
  const std::uint32_t x = ends_ + slot.from;
  Fifo& fifo = arena_.port(x).in;
  slot.next = kNone;
  const std::uint32_t last = fifo.coming;
  fifo.coming = frame;  // a source receives nothing: the last frame of its queue
  if (fifo.count != 0) {
    arena_.frame(last).next = frame;
    return;
  }
  Output& out = arena_.port(fifo.server).out;
  fifo.count = 1;
  fifo.first = 0;
  arena_.entry(x, 0) = whole(frame);
  load_head(x, fifo);
  fifo.counted_to = header().now - 1;
  fifo.dropping = out.dead;
  fifo.going = out.stopped == 0 || out.dead != 0;
  fifo.sending = fifo.announced = 0;
  fifo.goes_from = std::max({header().now, out.command_at + 1, fifo.goes_from});
  if (fifo.going == 0) out.waits_since = header().now;
  start(x, fifo, fifo.goes_from);
  predict(x, fifo);
}

/// Takes the only frame in the network through it at once. Nothing can hold it up, except that outputs may
/// poll another input when it comes. False, with nothing done, when something could.
bool Network::pass_alone(std::uint32_t frame) {
  FrameSlot& slot = arena_.frame(frame);
  const std::uint32_t most_wait = ports_ - 1, node = switch_ports_ + slot.from;
  if (header().dead_links != 0 || geometry().parameters.unit_cycles != 1 || geometry().bounds[1] < most_wait ||
      geometry().parameters.stop_at <= most_wait || arena_.port(switch_ports_ + slot.to).in.goes_from > header().now)
    return false;
  const std::uint32_t hops = std::min<std::uint32_t>(slot.route_length, geometry().route_capacity);
  const std::uint32_t body = slot.data_units + geometry().parameters.check_units;
  std::uint64_t cycle = slot.begun = header().now;
  std::uint32_t from = node;
  for (std::uint32_t hop = 0;; ++hop) {
    ChannelCounters& counters = arena_.channel_tally(from).counters;
    const std::uint32_t routing = hops - hop;
    ++counters.frames;
    counters.data_units += body;
    counters.routing_units += routing;
    if (tracer_ != nullptr) tracer_->run(from, cycle, routing + body + 1, frame, hop, false);
    cycle += arena_.link_cycles(from);
    if (hop == hops) break;
    const Output& at = arena_.port(from).out;
    const std::uint32_t x = at.peer, y = arena_.output(slot, hop, arena_.port(x).out);
    cycle = pass_switch(x, y, cycle, routing + body + 1) + 1;
    from = y;
  }
  header().entered += hops + body + 1;
  header().stripped += hops;
  header().left += body + 1;
  header().events += hops + 1;
  header().now = cycle + body + 1;
  piece_gone(frame, cycle + body);
  return true;
}

/// A frame of `length` units, head included, whose head comes to idle input x in `cycle`: the cycle in which
/// output y takes it.
std::uint64_t Network::pass_switch(std::uint32_t x, std::uint32_t y, std::uint64_t cycle, std::uint32_t length) {
  Output& out = arena_.port(y).out;
  const std::uint32_t input = x - out.first_port;
  const std::uint64_t granted = next_poll(out, input, cycle);
  if (const std::uint64_t waited = granted - cycle; waited != 0) {
    FifoTally& tally = arena_.fifo_tally(x);
    tally.arbitration_cycles += waited;
    tally.occupancy[0] += waited + length - 1;  // never above the first bucket, see pass_alone()
  }
  out.polls_from = granted + length;
  out.polled = static_cast<std::uint8_t>(polled_behind(geometry().parameters, input, ports_));
  return granted;
}

/// All events of a cycle. Some can come twice for a port, none often: if that happens the arena is damaged,
/// and the network stands still for good.
void Network::handle_cycle(std::uint64_t cycle) {
  const std::uint64_t most = header().events + std::uint64_t{16} * geometry().feeders;
  const std::uint64_t bit = std::uint64_t{1} << cycle % kWheelCycles;
  for (int round = 0; round < 16; ++round) {
    handle_kind<kArrival>(cycle, most);
    handle_kind<kGrant>(cycle, most);
    handle_kind<kTurn>(cycle, most);
    handle_kind<kThreshold>(cycle, most);
    if (((header().busy[kArrival] | header().busy[kGrant] | header().busy[kTurn] | header().busy[kThreshold]) & bit) ==
        0)
      return;
  }
  damage();
}

void Network::damage() {
  header().damaged = 1;
  header().heap_size = 0;
  std::fill(std::begin(header().busy), std::end(header().busy), 0);
}

/// The events of one kind that are due in `cycle`: far ones, then those in the wheel, by port. Leaves some when there
/// have been `most` events.
template <EventKind kind>
void Network::handle_kind(std::uint64_t cycle, std::uint64_t most) {
  const IndexedHeap far = arena_.heap();
  while (!far.empty() && far.least_key() <= cycle * kEventKinds + kind && header().events < most) {
    const std::uint32_t event = far.first_owner();
    if (!far.remove(event)) return damage();
    ++header().events;
    handle<kind>(event / kEventKinds, cycle);
  }
  if ((header().busy[kind] >> cycle % kWheelCycles & 1) == 0) return;
  const std::uint32_t slot = slot_of(cycle, kind);
  std::uint64_t* const summary = arena_.summary(slot);
  for (std::uint32_t i = 0; i < geometry().summary_words; ++i)
    for (std::uint64_t words = summary[i]; words != 0; words &= words - 1) {
      const std::uint32_t word = i * 64 + static_cast<std::uint32_t>(std::countr_zero(words));
      if (word >= geometry().slot_words) break;
      std::uint64_t& ports = arena_.slot(slot)[word];
      while (ports != 0 && header().events < most) {
        const auto port = static_cast<std::uint32_t>(std::countr_zero(ports));
        ports &= ports - 1;
        ++header().events;
        handle<kind>(word * 64 + port, cycle);
      }
      if (ports == 0) clear_slot_word(slot, word);
    }
}

/// An event that is due in `cycle`; one that is not, in a damaged arena, is forgotten.
template <EventKind kind>
void Network::handle(std::uint32_t x, std::uint64_t cycle) {
  Port& port = arena_.port(x);
  std::uint64_t& due = kind == kArrival ? port.out.arrival_at
                       : kind == kGrant ? port.out.grant_at
                       : kind == kTurn  ? port.in.turn_at
                                        : port.in.level_at;
  if (due > cycle || x >= geometry().feeders) return;
  due = kNever;
  if constexpr (kind == kArrival) arrive(x, cycle);
  else if constexpr (kind == kGrant) grant(x, cycle);
  else if constexpr (kind == kTurn) turn(x, cycle);
  else threshold(x, cycle);
}

std::size_t Network::run(std::uint64_t budget, std::span<Ending> endings, std::uint64_t until) {
  if (header().alone != kNone && budget != 0 && until == kNever && pass_alone(header().alone)) header().alone = kNone;
  if (until > header().now) begin_alone();
  const std::uint64_t last = header().events + budget < budget ? kNever : header().events + budget;
  while (header().damaged == 0 && header().events < last && header().ended.count < endings.size()) {
    const std::uint64_t cycle = next_cycle();
    if (cycle >= std::min(until, kNever)) break;
    header().now = std::max(header().now, cycle);
    handle_cycle(cycle);
    header().now = std::max(header().now, cycle + 1);
  }
  const bool reached = next_cycle() >= std::min(until, kNever);
  // Not behind an ending that is about to be reported: what it causes may enter before that cycle.
  if (until != kNever && reached && header().ended.count < endings.size()) header().now = std::max(header().now, until);
  return hand_out(endings);
}

std::size_t Network::hand_out(std::span<Ending> endings) {
  std::size_t n = 0;
  while (n < endings.size() && !header().ended.empty() && header().damaged == 0) {
    const std::uint32_t frame = header().ended.take(next_frame());
    FrameSlot& slot = arena_.frame(frame);
    const bool delivered = slot.cut == 0;
    const std::uint32_t node = delivered ? slot.to : slot.from;
    --header().inside;
    slot.used = 0;
    if (frame < geometry().frames && node < geometry().nodes)
      endings[n++] = {frame, node, slot.end_cycle, delivered, slot.begun};
    else header().damaged = 1;
  }
  return n;
}

}  // namespace ulfm::fabric::xswitch
