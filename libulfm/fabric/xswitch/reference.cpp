#include "fabric/xswitch/reference.hpp"

#include <fmt/format.h>

namespace ulfm::fabric::xswitch {

std::vector<Unit> units_of(FrameId frame, std::span<const std::uint8_t> route, std::uint32_t data_units,
                           std::uint32_t check_units) {
  std::vector<Unit> units;
  for (const std::uint8_t port : route) units.push_back(route_to(port));
  for (std::uint32_t i = 0; i < data_units + check_units; ++i)
    units.push_back(static_cast<Unit>((31 * frame + i) % kControl));
  units.push_back(kEnd);
  return units;
}

Reference::Reference(const Topology& topology, const Parameters& parameters)
    : parameters_(parameters),
      ports_(topology.ports),
      switch_ports_(std::size_t{topology.switches} * topology.ports),
      ends_(switch_ports_ + topology.nodes()),
      alive_(topology.switches, true),
      sent_(ends_.size(), kIdle) {
  for (std::size_t i = 0; i < switch_ports_; ++i) {
    const LinkEnd& other = topology.ends[i];
    if (other.kind == LinkEnd::Kind::switch_port) ends_[i].peer = index({other.index, other.port});
    if (other.kind == LinkEnd::Kind::node) ends_[i].peer = switch_ports_ + other.index;
  }
  for (std::size_t node = 0; node < topology.nodes(); ++node)
    ends_[switch_ports_ + node].peer = index(topology.attachment[node]);
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    const auto port = static_cast<std::uint32_t>(i % ports_), at = static_cast<std::uint32_t>(i / ports_);
    const SwitchPort named = i < switch_ports_ ? SwitchPort{at, port} : topology.attachment[i - switch_ports_];
    ends_[i].channel.resize(topology.link_cycles(named, parameters.link_cycles));
    ends_[i].unit_cycles = topology.unit_cycles(named);
  }
}

void Reference::inject(FrameId frame, std::uint32_t node, std::span<const std::uint8_t> route,
                       std::uint32_t data_units) {
  if (frames_.size() <= frame) frames_.resize(frame + 1);
  std::deque<Moving> units;
  for (const Unit unit : units_of(frame, route, data_units, parameters_.check_units)) units.push_back({unit, frame});
  frames_[frame] = {units.size(), units.size() - route.size(), node, 0};
  ends_[switch_ports_ + node].waiting.push_back(std::move(units));
  ++frames_inside_;
}

void Reference::stall(std::uint32_t node, std::uint64_t cycles) {
  ends_[switch_ports_ + node].stalled_until = now_ + cycles;
}

void Reference::step() {
  for (End& end : ends_) {
    if (!end.peer) continue;
    arrive(ends_[*end.peer], end.channel.front());
    end.channel.pop_front();
  }
  for (std::size_t i = 0; i < switch_ports_; ++i) poll(i);
  for (std::size_t i = 0; i < switch_ports_; ++i) look_at_head(ends_[i]);
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    End& end = ends_[i];
    Moving moving = next_to_send(i);
    const bool of_frame = is_data(moving.unit) || is_route(moving.unit) || is_end(moving.unit);
    if (of_frame) end.free_at = now_ + end.unit_cycles;
    if (of_frame && end.dropping) {
      if (is_end(moving.unit)) end.dropping = false;
      lose(moving, end.counters.out.lost_units, &end.counters.out.lost_frames);
      moving = {};
    }
    sent_[i] = moving.unit;
    count_sent(end, moving.unit);
    if (end.peer) end.channel.push_back(moving);
  }
  for (std::size_t i = switch_ports_; i < ends_.size(); ++i) take(i);
  for (End& end : ends_) decide(end);
  ++now_;
}

// 1. Arrival.

void Reference::arrive(End& end, const Moving& moving) {
  if (end.bad_end) {
    enter(end, {kBadEnd, *end.bad_end});
    end.bad_end.reset();
  }
  if (moving.unit == kStop) end.stopped = true;
  else if (moving.unit == kGo) end.stopped = false;
  else if (moving.unit != kIdle) enter(end, moving);
}

void Reference::enter(End& end, const Moving& moving) {
  if (end.fifo.size() >= parameters_.fifo_units) overflowed_ = true;
  end.fifo.push_back(moving);
  end.within_frame = !is_end(moving.unit);
  end.arriving = moving.frame;
}

// 2. Poll.

void Reference::poll(std::size_t output) {
  End& out = ends_[output];
  if (out.machine != Machine::poll || now_ < out.free_at) return;
  const std::size_t first = output - output % ports_;
  End& in = ends_[first + out.input];
  const Unit mine = route_to(static_cast<std::uint32_t>(output % ports_));
  if (!in.taken && !in.fifo.empty() && in.fifo.front().unit == mine) {
    const Moving head = in.fifo.front();
    in.fifo.pop_front();
    in.taken = true;
    out.machine = Machine::tran;
    out.granted_in = now_;
    out.dropping = out.dead;
    ++stripped_;
    gone(head, 0, false);
  } else {
    out.input = (out.input + 1) % ports_;
  }
}

void Reference::look_at_head(End& end) {
  if (end.taken || end.fifo.empty()) return;
  if (!is_end(end.fifo.front().unit)) {
    ++end.counters.in.arbitration_cycles;
    return;
  }
  const Moving moving = end.fifo.front();
  end.fifo.pop_front();
  lose(moving, end.counters.in.lost_units, nullptr);
}

// 3. Sending.

Reference::Moving Reference::next_to_send(std::size_t output) {
  End& end = ends_[output];
  const bool held = end.stopped && !end.dropping;
  if (is_node(output)) {
    if (held && !end.waiting.empty()) ++end.counters.out.wait_cycles;
  } else if (end.machine != Machine::poll && end.granted_in != now_) {
    end.machine = held ? Machine::wait : Machine::tran;
    if (held) ++end.counters.out.wait_cycles;
  }
  if (end.command) {
    const Unit command = *end.command;
    end.command.reset();
    return {command, 0};
  }
  if (held || now_ < end.free_at) return {};
  return is_node(output) ? send_from_node(end) : send_from_switch(output);
}

Reference::Moving Reference::send_from_switch(std::size_t output) {
  End& out = ends_[output];
  if (out.machine != Machine::tran || out.granted_in == now_) return {};
  End& in = ends_[output - output % ports_ + out.input];
  if (in.fifo.empty()) return {};
  const Moving moving = in.fifo.front();
  in.fifo.pop_front();
  if (is_end(moving.unit)) {
    in.taken = false;
    out.machine = Machine::poll;
    out.input = polled_behind(parameters_, out.input, ports_);
  }
  return moving;
}

Reference::Moving Reference::send_from_node(End& end) {
  if (end.waiting.empty()) return {};
  if (!end.within_sending) end.dropping = end.dead;
  std::deque<Moving>& frame = end.waiting.front();
  const Moving moving = frame.front();
  if (!end.within_sending) frames_[moving.frame].begun = now_;
  frame.pop_front();
  end.within_sending = !frame.empty();
  if (frame.empty()) end.waiting.pop_front();
  ++entered_;
  return moving;
}

void Reference::take(std::size_t index) {
  End& end = ends_[index];
  if (now_ < end.stalled_until || end.fifo.empty()) return;
  const Moving moving = end.fifo.front();
  end.fifo.pop_front();
  ++left_;
  gone(moving, static_cast<std::uint32_t>(index - switch_ports_), true);
}

void Reference::count_sent(End& end, Unit unit) {
  ChannelCounters& out = end.counters.out;
  if (is_end(unit)) ++out.frames;
  else if (is_data(unit)) ++out.data_units;
  else if (is_route(unit)) ++out.routing_units;
  else if (unit == kStop) ++out.stops;
  else if (unit == kGo) ++out.gos;
}

// 4. Thresholds.

void Reference::decide(End& end) {
  std::size_t bucket = 0;
  while (end.fifo.size() > bucket_end(bucket, parameters_.fifo_units) && bucket + 1 < kBuckets) ++bucket;
  ++end.counters.in.occupancy[bucket];
  if (!end.peer || end.dead) return;
  if (!end.stop_sent && end.fifo.size() >= parameters_.stop_at) {
    end.stop_sent = true;
    end.command = kStop;
  } else if (end.stop_sent && end.fifo.size() <= parameters_.go_at) {
    end.stop_sent = false;
    end.command = kGo;
  }
}

// The ends of frames.

void Reference::lose(const Moving& moving, std::uint64_t& units, std::uint64_t* frames) {
  ++units;
  ++lost_;
  if (frames != nullptr && is_end(moving.unit)) ++*frames;
  gone(moving, 0, false);
}

void Reference::gone(const Moving& moving, std::uint32_t node, bool taken_by_node) {
  FrameState& frame = frames_[moving.frame];
  if (taken_by_node && moving.unit != kBadEnd && !is_route(moving.unit)) --frame.to_arrive;
  if (--frame.units != 0) return;
  const bool delivered = frame.to_arrive == 0;
  endings_.push_back({moving.frame, delivered ? node : frame.from, now_, delivered, frame.begun});
  --frames_inside_;
}

// Faults.

void Reference::cut(std::size_t from) {
  End& out = ends_[from];
  End& in = ends_[*out.peer];
  if (in.within_frame) {
    in.within_frame = false;
    in.bad_end = in.arriving;
    ++frames_[in.arriving].units;
    ++inserted_;
    ++in.counters.in.bad_ends;
  }
  for (Moving& moving : out.channel) {
    if (moving.unit != kIdle && moving.unit != kStop && moving.unit != kGo)
      lose(moving, out.counters.out.lost_units, &out.counters.out.lost_frames);
    moving = {};
  }
  out.stopped = false;
  out.command.reset();
  out.free_at = now_;
  if (is_node(from) ? out.within_sending : out.machine != Machine::poll) out.dropping = true;
  in.stop_sent = true;
}

void Reference::refresh_link(std::size_t end) {
  if (!ends_[end].peer) return;
  const std::size_t other = *ends_[end].peer;
  const auto powered = [&](std::size_t i) { return is_node(i) || alive_[i / ports_]; };
  const bool dead = ends_[end].off || ends_[other].off || !powered(end) || !powered(other);
  if (dead == ends_[end].dead) return;
  for (const std::size_t i : {end, other}) {
    ends_[i].dead = dead;
    if (dead) cut(i);
    else ends_[i].stopped = true;
  }
}

void Reference::set_link(SwitchPort port, bool up) {
  End& end = ends_[index(port)];
  if (!end.peer) return;
  end.off = ends_[*end.peer].off = !up;
  refresh_link(index(port));
}

void Reference::set_switch(std::uint32_t at, bool alive) {
  alive_[at] = alive;
  const std::size_t first = std::size_t{at} * ports_;
  for (std::size_t i = first; i < first + ports_; ++i) refresh_link(i);
  if (alive) return;
  for (std::size_t i = first; i < first + ports_; ++i) {
    End& end = ends_[i];
    if (end.bad_end) end.fifo.push_back({kBadEnd, *end.bad_end});
    end.bad_end.reset();
    for (const Moving& moving : end.fifo) lose(moving, end.counters.in.lost_units, nullptr);
    end.fifo.clear();
    end.taken = end.dropping = false;
    if (end.machine == Machine::poll) continue;
    end.machine = Machine::poll;
    end.input = polled_behind(parameters_, end.input, ports_);
    end.free_at = now_;
  }
}

// Looking.

std::string Reference::state(SwitchPort port) const {
  const End& end = ends_[index(port)];
  const char input = static_cast<char>('A' + end.input), output = static_cast<char>('A' + port.port);
  if (end.machine == Machine::poll) return fmt::format("Poll{}", input);
  return fmt::format("{}{}2{}", end.machine == Machine::tran ? "Tran" : "Wait", input, output);
}

Balance Reference::balance() const {
  Balance sum{entered_, inserted_, left_, stripped_, lost_, 0};
  for (const End& end : ends_) {
    sum.present += end.fifo.size() + (end.bad_end ? 1 : 0);
    for (const Moving& moving : end.channel)
      sum.present += is_data(moving.unit) || is_route(moving.unit) || is_end(moving.unit) ? 1 : 0;
  }
  return sum;
}

}  // namespace ulfm::fabric::xswitch
