#include <algorithm>
#include <bit>

#include "fabric/xswitch/network.hpp"

namespace ulfm::fabric::xswitch {

// Arrivals.

void Network::arrive(std::uint32_t d, std::uint64_t cycle) {
  Output& out = arena_.port(d).out;
  while (out.flight_count != 0 && arena_.change(d, out.flight_first).at <= cycle) {
    const StateChange change = arena_.change(d, out.flight_first);
    ++out.flight_first;
    if (--out.flight_count == 0) out.flight_first = 0;
    if (change.kind == StateChange::command_stop) stop_arrives(d, cycle);
    else if (change.kind == StateChange::command_go) go_arrives(d, cycle);
    else run_arrives(d, change, cycle);
  }
  if (out.flight_count != 0) expect(d, kArrival, out.arrival_at, arena_.change(d, out.flight_first).at);
}

void Network::run_arrives(std::uint32_t d, const StateChange& change, std::uint64_t cycle) {
  Fifo& fifo = arena_.port(d).in;
  settle(d, fifo, cycle - 1);
  fifo.arriving = change.kind != StateChange::pause;
  if (change.kind == StateChange::begin && fifo.count < geometry().queue_capacity) {
    fifo.coming = change.length;
    fifo.ending = 0;
    arena_.entry(d, fifo.first + fifo.count) = {change.frame, change.length, change.hop, change.bad, change.routing};
    if (++fifo.count == 1) {
      load_head(d, fifo);
      if (!is_node(d)) head_ready(d, fifo, cycle);
    }
  }
  if (fifo.arriving != 0 && !is_node(d)) start(d, fifo, std::max(cycle, fifo.goes_from));
  predict(d, fifo);
}

void Network::stop_arrives(std::uint32_t end, std::uint64_t cycle) {
  Output& out = arena_.port(end).out;
  out.stopped = 1;
  if (out.feeder == kNone) return;
  Fifo& fifo = arena_.port(out.feeder).in;
  if (fifo.dropping != 0) return;
  settle(out.feeder, fifo, cycle - 1);
  fifo.going = 0;
  pause(out.feeder, fifo, cycle);
  if (fifo.count != 0) out.waits_since = cycle;
  predict(out.feeder, fifo);
}

void Network::go_arrives(std::uint32_t end, std::uint64_t cycle) {
  Output& out = arena_.port(end).out;
  out.stopped = 0;
  if (out.feeder == kNone) return;
  Fifo& fifo = arena_.port(out.feeder).in;
  if (fifo.dropping != 0) return;
  end_waiting(end, out, cycle);
  settle(out.feeder, fifo, cycle - 1);
  fifo.going = 1;
  fifo.goes_from = std::max({cycle, out.command_at + 1, fifo.goes_from});
  start(out.feeder, fifo, fifo.goes_from);
  predict(out.feeder, fifo);
}

/// The first frame of a switch's FIFO may be polled from `cycle` on.
void Network::head_ready(std::uint32_t x, Fifo& fifo, std::uint64_t cycle) {
  fifo.goes_from = cycle;
  if (fifo.leaving <= 1) return;  // no head: predict() has it thrown away
  const Entry& head = arena_.entry(x, fifo.first);
  const std::uint32_t y = arena_.output(arena_.frame(head.frame), head.hop, arena_.port(x).out);
  Output& out = arena_.port(y).out;
  const std::uint32_t input = x - out.first_port;
  out.waiting |= 1u << (input % 32);
  if (out.feeder != kNone) return;
  const std::uint64_t at = next_poll(out, input, cycle);
  if (at < out.grant_at) expect(y, kGrant, out.grant_at, at);
}

// Polling.

/// The input that an output polls in a cycle.
std::uint32_t Network::position(const Output& out, std::uint64_t cycle) const {
  const std::uint64_t turned = cycle - out.polls_from + out.polled;
  return static_cast<std::uint32_t>(ports_ == 5 ? turned % 5 : ports_ == 8 ? turned % 8 : turned % ports_);
}

std::uint64_t Network::next_poll(const Output& out, std::uint32_t input, std::uint64_t cycle) const {
  const std::uint64_t from = std::max(cycle, out.polls_from);
  const std::uint32_t now = position(out, from);
  return from + (input >= now ? input - now : input + ports_ - now);
}

/// The first poll that finds one of the heads that wait, from the beginning of a polling on.
std::uint64_t Network::next_grant(const Output& out) const {
  const std::uint32_t waiting = out.waiting & ((1u << ports_) - 1);
  if (waiting == 0) return kNever;
  const std::uint32_t behind = waiting >> (out.polled % 32);
  if (behind != 0) return out.polls_from + static_cast<std::uint32_t>(std::countr_zero(behind));
  return out.polls_from + ports_ - out.polled + static_cast<std::uint32_t>(std::countr_zero(waiting));
}

void Network::grant(std::uint32_t y, std::uint64_t cycle) {
  Output& out = arena_.port(y).out;
  out.grant_at = kNever;
  const std::uint32_t input = position(out, cycle), x = out.first_port + input;
  Fifo& fifo = arena_.port(x).in;
  if ((out.waiting >> input & 1) == 0 || fifo.leaving == 0) return;
  out.waiting &= ~(1u << input);
  arena_.fifo_tally(x).arbitration_cycles += cycle - fifo.goes_from;
  take_first(x, fifo, cycle);
  --fifo.leaving;
  --fifo.head_length;
  ++header().stripped;
  out.feeder = x;
  fifo.server = y;
  fifo.dropping = out.dead;
  fifo.going = out.stopped == 0 || out.dead != 0;
  fifo.goes_from = cycle + 1;
  fifo.sending = fifo.announced = 0;
  if (fifo.going == 0) out.waits_since = cycle + 1;
  start(x, fifo, cycle + 1);
  predict(x, fifo);
}

/// An output polls again, from the cycle behind `cycle` on; `input` is the one that it has served.
void Network::release(std::uint32_t y, std::uint32_t input, std::uint64_t cycle) {
  Output& out = arena_.port(y).out;
  out.feeder = kNone;
  out.polls_from = cycle + 1;
  out.polled = static_cast<std::uint8_t>(polled_behind(geometry().parameters, input, ports_));
  out.waits_since = kNever;
  expect(y, kGrant, out.grant_at, next_grant(out));
}

// Runs.

/// A queue that is served and has something sends from `cycle` on; the other end is notified. On a slow link
/// each unit is a run by itself, which turn() starts.
void Network::start(std::uint32_t x, Fifo& fifo, std::uint64_t cycle) {
  if (!is_slow(x, fifo)) begin_run(x, fifo, cycle);
}

void Network::begin_run(std::uint32_t x, Fifo& fifo, std::uint64_t cycle) {
  const bool has = is_source(x) || fifo.occupied > 0 || (fifo.arriving != 0 && fifo.coming != 0);
  if (fifo.going == 0 || fifo.sending != 0 || fifo.leaving == 0 || !has) return;
  fifo.sending = 1;
  if (fifo.dropping != 0) return;
  const Entry& head = arena_.entry(x, fifo.first);
  const auto hop = static_cast<std::uint16_t>(is_source(x) ? 0 : head.hop + 1);
  const StateChange::Kind kind = fifo.announced != 0 ? StateChange::resume : StateChange::begin;
  fifo.announced = 1;
  const auto routing = static_cast<std::uint8_t>(head.routing - (is_source(x) ? 0 : 1));
  push(arena_.port(fifo.server).out.peer,
       {cycle + arena_.link_cycles(fifo.server), head.frame, fifo.leaving, hop, head.bad, routing, kind});
}

/// It does not send in `cycle`. A start that was announced for then or later is revoked.
void Network::pause(std::uint32_t x, Fifo& fifo, std::uint64_t cycle) {
  if (fifo.sending == 0) return;
  fifo.sending = 0;
  if (fifo.dropping != 0) return;
  const std::uint32_t d = arena_.port(fifo.server).out.peer;
  const std::uint64_t arrives = cycle + arena_.link_cycles(fifo.server);
  Output& out = arena_.port(d).out;
  if (out.flight_count != 0) {
    const StateChange& last = arena_.change(d, out.flight_first + out.flight_count - 1u);
    if (last.kind <= StateChange::resume && last.at >= arrives) {
      if (last.kind == StateChange::begin) fifo.announced = 0;
      if (--out.flight_count == 0) expect(d, kArrival, out.arrival_at, kNever);
      return;
    }
  }
  push(d, {arrives, arena_.entry(x, fifo.first).frame, 0, 0, 0, 0, StateChange::pause});
}

void Network::push(std::uint32_t d, const StateChange& change) {
  Output& out = arena_.port(d).out;
  if (d >= ends_ || out.flight_count >= geometry().flight_capacity) return;
  arena_.change(d, out.flight_first + out.flight_count) = change;
  if (++out.flight_count == 1) expect(d, kArrival, out.arrival_at, change.at);
}

// Turns.

void Network::turn(std::uint32_t x, std::uint64_t cycle) {
  Fifo& fifo = arena_.port(x).in;
  if (fifo.server == kNone && !is_node(x)) return throw_away(x, fifo, cycle);
  if (is_slow(x, fifo)) return send_slowly(x, fifo, cycle);
  settle(x, fifo, cycle);
  if (fifo.leaving == 0) return finish(x, fifo, cycle);
  if (fifo.occupied <= 0 && fifo.arriving == 0) pause(x, fifo, cycle);
  predict(x, fifo);
}

/// One unit leaves in `cycle`, and keeps its link busy for some more.
void Network::send_slowly(std::uint32_t x, Fifo& fifo, std::uint64_t cycle) {
  settle(x, fifo, cycle - 1);
  begin_run(x, fifo, cycle);
  settle(x, fifo, cycle);
  if (fifo.leaving == 0) return finish(x, fifo, cycle);
  fifo.goes_from = cycle + arena_.unit_cycles(fifo.server);
  pause(x, fifo, cycle + 1);
  predict(x, fifo);
}

/// The first frame was cut within its head: its ID-EOF stands alone.
void Network::throw_away(std::uint32_t x, Fifo& fifo, std::uint64_t cycle) {
  take_first(x, fifo, cycle);
  ++arena_.fifo_tally(x).lost_units;
  ++header().lost;
  const std::uint32_t frame = arena_.entry(x, fifo.first).frame;
  pop_frame(fifo);
  if (fifo.count != 0) {
    load_head(x, fifo);
    head_ready(x, fifo, cycle + 1);
  }
  predict(x, fifo);
  piece_gone(frame, cycle);
}

/// The ID-EOF of the first frame left in `cycle`.
void Network::finish(std::uint32_t x, Fifo& fifo, std::uint64_t cycle) {
  if (is_node(x)) return finish_at_node(x, fifo, cycle);
  const std::uint32_t frame = arena_.entry(x, fifo.first).frame, y = fifo.server;
  if (fifo.dropping != 0) {
    ++arena_.channel_tally(y).counters.lost_frames;
    arena_.frame(frame).cut = 1;
  } else {
    count_sent(x, fifo, arena_.channel_tally(y).counters);
  }
  const bool dropped = fifo.dropping != 0;
  fifo.sending = fifo.announced = fifo.dropping = 0;
  if (is_source(x)) {
    next_from_source(x, fifo, cycle);
  } else {
    fifo.server = kNone;
    fifo.going = 0;
    pop_frame(fifo);
    release(y, x - arena_.port(y).out.first_port, cycle + arena_.unit_cycles(y) - 1);
    if (fifo.count != 0) {
      load_head(x, fifo);
      head_ready(x, fifo, cycle + 1);
    }
  }
  predict(x, fifo);
  if (dropped) piece_gone(frame, cycle);
}

void Network::finish_at_node(std::uint32_t x, Fifo& fifo, std::uint64_t cycle) {
  const std::uint32_t frame = arena_.entry(x, fifo.first).frame;
  pop_frame(fifo);
  if (fifo.count != 0) load_head(x, fifo);
  predict(x, fifo);
  piece_gone(frame, cycle);
}

void Network::next_from_source(std::uint32_t x, Fifo& fifo, std::uint64_t cycle) {
  Entry& head = arena_.entry(x, 0);
  const std::uint32_t next = arena_.frame(head.frame).next;
  fifo.goes_from = cycle + arena_.unit_cycles(fifo.server);
  if (next >= geometry().frames) {
    pop_frame(fifo);
    return;
  }
  const Output& out = arena_.port(fifo.server).out;
  head = whole(next);
  load_head(x, fifo);
  fifo.dropping = out.dead;
  fifo.going = out.stopped == 0 || out.dead != 0;
  if (fifo.going == 0) arena_.port(fifo.server).out.waits_since = cycle + 1;
  start(x, fifo, fifo.goes_from);
}

void Network::pop_frame(Fifo& fifo) {
  if (fifo.count != 0) --fifo.count;
  fifo.first = fifo.count == 0 ? 0 : fifo.first + 1;
  fifo.leaving = fifo.head_length = 0;
}

void Network::load_head(std::uint32_t x, Fifo& fifo) {
  fifo.leaving = fifo.head_length = arena_.entry(x, fifo.first).length;
}

/// Adds what has been sent of the first frame.
void Network::count_sent(std::uint32_t x, const Fifo& fifo, ChannelCounters& counters) const {
  const Entry& head = arena_.entry(x, fifo.first);
  const std::uint32_t ended = fifo.leaving == 0 ? 1 : 0;
  const std::uint32_t units = fifo.head_length - fifo.leaving - ended;
  const std::uint32_t routing = std::min(units, head.routing - (is_source(x) ? 0u : 1u));
  counters.frames += ended;
  counters.routing_units += routing;
  counters.data_units += units - routing;
}

void Network::end_waiting(std::uint32_t y, Output& out, std::uint64_t cycle) {
  if (out.waits_since < cycle) arena_.channel_tally(y).counters.wait_cycles += cycle - out.waits_since;
  out.waits_since = kNever;
}

/// Nothing is left of one piece of a frame; without others the frame has ended.
void Network::piece_gone(std::uint32_t frame, std::uint64_t cycle) {
  FrameSlot& slot = arena_.frame(frame);
  if (slot.used == 0 || slot.pieces == 0 || --slot.pieces != 0) return;
  slot.end_cycle = cycle;
  header().ended.append(frame, next_frame());
}

// Thresholds.

void Network::threshold(std::uint32_t x, std::uint64_t cycle) {
  Port& port = arena_.port(x);
  Fifo& fifo = port.in;
  Output& out = port.out;
  settle(x, fifo, cycle);
  const Parameters& p = geometry().parameters;
  const bool stop = fifo.stop_sent == 0 && fifo.occupied >= static_cast<std::int32_t>(p.stop_at);
  const bool go = fifo.stop_sent != 0 && fifo.occupied <= static_cast<std::int32_t>(p.go_at);
  if (!stop && !go) return predict(x, fifo);
  fifo.stop_sent = stop;
  settle_command(x, out, cycle);
  out.command = static_cast<std::uint8_t>((stop ? kStop : kGo) & 0xff);
  out.command_at = cycle + 1;
  Fifo* fed = out.feeder == kNone ? nullptr : &arena_.port(out.feeder).in;
  if (fed != nullptr) {
    settle(out.feeder, *fed, cycle);
    pause(out.feeder, *fed, cycle + 1);
  }
  push(out.peer,
       {cycle + 1 + arena_.link_cycles(x), 0, 0, 0, 0, 0, stop ? StateChange::command_stop : StateChange::command_go});
  if (fed != nullptr) {
    fed->goes_from = std::max(fed->goes_from, cycle + 2);
    start(out.feeder, *fed, cycle + 2);
    predict(out.feeder, *fed);
  }
  predict(x, fifo);
}

}  // namespace ulfm::fabric::xswitch
