// Links and switches that die and come back, between cycles.
#include <algorithm>

#include "fabric/xswitch/network.hpp"

namespace ulfm::fabric::xswitch {

/// Units on the channel to input d that are sure to arrive: sent before now() and not there yet.
std::uint64_t Network::in_flight(std::uint32_t d) const {
  const Port& port = arena_.port(d);
  const std::uint64_t end = header().now + arena_.link_cycles(d);
  std::uint64_t at = std::max(header().now, port.in.counted_to + 1), units = 0;
  std::uint64_t coming = port.in.arriving != 0 ? port.in.coming : 0, rest = port.in.coming;
  const auto go_on_to = [&](std::uint64_t cycle) {
    const std::uint64_t n = cycle > at ? std::min(coming, cycle - at) : 0;
    units += n;
    coming -= n;
    rest -= n;
    at = std::max(at, cycle);
  };
  for (std::uint32_t i = 0; i < port.out.flight_count; ++i) {
    const StateChange& change = arena_.change(d, port.out.flight_first + i);
    if (change.at >= end || change.kind > StateChange::pause) continue;
    go_on_to(change.at);
    if (change.kind == StateChange::begin) rest = change.length;
    coming = change.kind == StateChange::pause ? 0 : rest;
  }
  go_on_to(end);
  return units;
}

/// What is left of that frame to send is this output's.
bool Network::sending_piece_of(const Output& out, std::uint32_t frame) const {
  if (out.feeder == kNone) return false;
  const Fifo& fifo = arena_.port(out.feeder).in;
  return fifo.count != 0 && fifo.announced != 0 && fifo.dropping == 0 && fifo.leaving != 0 &&
         arena_.entry(out.feeder, fifo.first).frame == frame;
}

/// The channel from output u goes dead. Both ends of the link are marked already.
void Network::cut(std::uint32_t u) {
  Output& out = arena_.port(u).out;
  const std::uint32_t d = out.peer;
  settle(d, arena_.port(d).in, header().now - 1);
  if (out.feeder != kNone) settle(out.feeder, arena_.port(out.feeder).in, header().now - 1);
  settle_command(u, out, header().now - 1);
  out.command = 0;
  out.command_at = std::min(out.command_at, header().now - 1);
  lose_in_flight(u, d);
  end_arrival(u, d);
  drop_rest(u);
}

/// Frames that are on the channel as a whole, or with everything but what is still to be sent.
void Network::lose_in_flight(std::uint32_t u, std::uint32_t d) {
  const Output& out = arena_.port(u).out;
  const Port& to = arena_.port(d);
  ChannelCounters& counters = arena_.channel_tally(u).counters;
  const std::uint64_t units = to.in.ending != 0 && to.in.coming != 0 ? 0 : in_flight(d);
  counters.lost_units += units;
  header().lost += units;
  for (std::uint32_t i = 0; i < to.out.flight_count; ++i) {
    const StateChange& change = arena_.change(d, to.out.flight_first + i);
    if (change.kind != StateChange::begin || change.at >= header().now + arena_.link_cycles(d)) continue;
    arena_.frame(change.frame).cut = 1;
    if (sending_piece_of(out, change.frame)) continue;
    ++counters.lost_frames;
    piece_gone(change.frame, header().now);
  }
}

/// The input that has part of a frame ends it, in the coming cycle.
void Network::end_arrival(std::uint32_t u, std::uint32_t d) {
  Port& port = arena_.port(d);
  Fifo& fifo = port.in;
  port.out.flight_count = 0;
  expect(d, kArrival, port.out.arrival_at, kNever);
  fifo.stop_sent = 1;
  if (fifo.coming != 0 && fifo.ending == 0 && fifo.count != 0) {
    const std::uint32_t frame = arena_.entry(d, fifo.first + fifo.count - 1u).frame;
    FrameSlot& slot = arena_.frame(frame);
    slot.cut = 1;
    if (sending_piece_of(arena_.port(u).out, frame)) ++slot.pieces;
    else ++arena_.channel_tally(u).counters.lost_frames;
    ++arena_.fifo_tally(d).bad_ends;
    ++header().inserted;
    fifo.ending = 1;
    shorten(d, fifo.coming - 1);
    fifo.arriving = 1;
    if (!is_node(d)) start(d, fifo, std::max(header().now, fifo.goes_from));
  } else if (fifo.ending == 0) {
    fifo.arriving = 0;
  }
  predict(d, fifo);
}

/// The last frame of FIFO x is so many units shorter than was known, and all who know it are told, down its
/// way.
void Network::shorten(std::uint32_t x, std::uint32_t by) {
  for (std::uint32_t step = 0; step <= geometry().route_capacity; ++step) {
    Fifo& fifo = arena_.port(x).in;
    settle(x, fifo, header().now - 1);
    Entry& last = arena_.entry(x, fifo.first + fifo.count - 1u);
    last.length -= by;
    last.bad = 1;
    fifo.coming -= by;
    const bool first_too = fifo.count == 1;
    if (first_too) {
      fifo.leaving -= by;
      fifo.head_length -= by;
    }
    predict(x, fifo);
    if (!first_too || is_node(x) || fifo.server == kNone || fifo.dropping != 0 || fifo.announced == 0) return;
    x = arena_.port(fifo.server).out.peer;
    const Output& next = arena_.port(x).out;
    for (std::uint32_t i = 0; i < next.flight_count; ++i) {
      StateChange& change = arena_.change(x, next.flight_first + i);
      if (change.kind != StateChange::begin || change.frame != last.frame) continue;
      change.length -= by;
      change.bad = 1;
      return;
    }
  }
}

/// The frame that output u is sending vanishes from here on, to its end.
void Network::drop_rest(std::uint32_t u) {
  Output& out = arena_.port(u).out;
  out.stopped = 0;
  if (out.feeder == kNone) {
    if (out.polls_from <= header().now) return;
    out.polls_from = header().now;  // a slow link is not busy any more
    return expect(u, kGrant, out.grant_at, next_grant(out));
  }
  Fifo& fifo = arena_.port(out.feeder).in;
  end_waiting(u, out, header().now);
  fifo.going = 1;
  fifo.goes_from = header().now;
  if (fifo.count == 0) return;
  if (fifo.dropping == 0) count_sent(out.feeder, fifo, arena_.channel_tally(u).counters);
  fifo.dropping = 1;
  fifo.sending = 0;
  start(out.feeder, fifo, header().now);
  predict(out.feeder, fifo);
}

/// The channel from output u lives again. It is stopped until the other end says ID-GO.
void Network::mend(std::uint32_t u) {
  Port& port = arena_.port(u);
  port.out.stopped = 1;
  predict(u, port.in);
  const std::uint32_t x = port.out.feeder;
  if (x == kNone || !is_source(x)) return;
  Fifo& fifo = arena_.port(x).in;
  settle(x, fifo, header().now - 1);
  if (fifo.leaving != fifo.head_length) return;  // the rest of a frame goes on vanishing
  fifo.going = fifo.sending = fifo.announced = fifo.dropping = 0;
  if (fifo.count != 0) port.out.waits_since = header().now;
  predict(x, fifo);
}

void Network::refresh_link(std::uint32_t end) {
  Output& one = arena_.port(end).out;
  if (one.peer == kNone) return;
  Output& other = arena_.port(one.peer).out;
  const std::uint8_t dead = one.off | other.off | one.unpowered | other.unpowered;
  if (dead == one.dead) return;
  one.dead = other.dead = dead;
  dead != 0 ? ++header().dead_links : --header().dead_links;
  for (const std::uint32_t u : {end, one.peer}) dead != 0 ? cut(u) : mend(u);
}

void Network::set_link(SwitchPort end, bool up) {
  begin_alone();
  const std::uint64_t index = std::uint64_t{end.at} * ports_ + end.port;
  if (end.port >= ports_ || index >= switch_ports_) return;
  Output& out = arena_.port(static_cast<std::uint32_t>(index)).out;
  if (out.peer == kNone) return;
  out.off = arena_.port(out.peer).out.off = !up;
  refresh_link(static_cast<std::uint32_t>(index));
}

void Network::set_switch(std::uint32_t index, bool alive) {
  begin_alone();
  if (index >= switch_ports_ / ports_) return;
  const std::uint32_t first = index * ports_;
  for (std::uint32_t i = first; i < first + ports_; ++i) {
    arena_.port(i).out.unpowered = !alive;
    refresh_link(i);
  }
  if (alive) return;
  for (std::uint32_t i = first; i < first + ports_; ++i) arena_.port(i).out.waiting = 0;
  for (std::uint32_t i = first; i < first + ports_; ++i) empty_input(i);
}

/// All that a dead switch's FIFO holds is lost; its links are down already, so every frame in it has an end.
void Network::empty_input(std::uint32_t x) {
  Output& out = arena_.port(x).out;
  expect(x, kGrant, out.grant_at, kNever);
  Fifo& fifo = arena_.port(x).in;
  settle(x, fifo, header().now - 1);
  if (fifo.count == 0) return;
  const std::uint64_t units = static_cast<std::uint32_t>(fifo.occupied) + std::uint64_t{fifo.coming};
  arena_.fifo_tally(x).lost_units += units;
  header().lost += units;
  if (fifo.server == kNone && fifo.leaving > 1)
    arena_.fifo_tally(x).arbitration_cycles += header().now - std::min(header().now, fifo.goes_from);
  if (fifo.server != kNone) release(fifo.server, x - out.first_port, header().now - 1);
  const std::uint32_t first = fifo.first, count = fifo.count;
  fifo.occupied = 0;
  fifo.coming = fifo.leaving = fifo.head_length = 0;
  fifo.first = fifo.count = 0;
  fifo.arriving = fifo.going = fifo.sending = fifo.announced = fifo.ending = fifo.dropping = 0;
  fifo.server = kNone;
  predict(x, fifo);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t frame = arena_.entry(x, first + i).frame;
    arena_.frame(frame).cut = 1;
    piece_gone(frame, header().now);
  }
}

void Network::stall(std::uint32_t node, std::uint64_t cycles) {
  if (node >= geometry().nodes) return;
  begin_alone();
  Fifo& fifo = arena_.port(switch_ports_ + node).in;
  settle(switch_ports_ + node, fifo, header().now - 1);
  fifo.goes_from = std::min(header().now + std::min(cycles, kNever), kNever);
  predict(switch_ports_ + node, fifo);
}

void Network::settle() {
  for (std::uint32_t x = 0; x < geometry().feeders; ++x) {
    settle(x, arena_.port(x).in, header().now - 1);
    settle_command(x, arena_.port(x).out, header().now - 1);
  }
}

}  // namespace ulfm::fabric::xswitch
