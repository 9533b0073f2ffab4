// Establishing a path and releasing it.
#include "fabric/dcm/network.hpp"

namespace ulfm::fabric::dcm {

bool Network::inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes, bool begins) {
  CubeHeader& h = header();
  if (frame >= g_.frames || from >= 2 * g_.routers || to >= 2 * g_.routers || from == to || bytes > kMostBytes ||
      h.damaged != 0)
    return false;
  CubeMessage& m = arena_.message(frame);
  if (m.used != 0 || is_down(out_index(from % g_.routers, source_way(from)))) return false;
  m = CubeMessage{};
  m.used = 1;
  m.from = from, m.to = to;
  m.begins = begins;
  m.total = words_behind_probe(bytes) + 1;
  m.probe = routing_probe(from, to, g_.routers);
  m.next = kNone;
  ++h.inside;
  const std::uint32_t index = source_index(from);
  Source& source = arena_.source(index);
  if (source.first == kNone) source.first = frame;
  else arena_.message(source.last).next = frame;
  source.last = frame;
  if (source.current == kNone) schedule(starter(index), h.now, kBegin);
  return true;
}

void Network::begin(std::uint32_t index, std::uint64_t t) {
  Source& source = arena_.source(index);
  const FrameId frame = source.first;
  if (source.current != kNone || frame == kNone) return;
  if (frame >= g_.frames) return damage();
  CubeMessage& m = arena_.message(frame);
  source.current = frame;
  source.first = m.next;
  m.router = m.from & (g_.routers - 1);
  m.in = static_cast<std::uint8_t>(source_way(m.from));
  schedule(timer(frame, kPath), t + (m.begins != 0 ? p_.send_cycles : 0) + p_.dma_cycles + p_.route_cycles, kRequest);
}

void Network::path(FrameId frame, std::uint64_t t) {
  if (arena_.message(frame).finished != 0) release(frame, t);
  else request(frame, t);
}

void Network::request(FrameId frame, std::uint64_t t) {
  CubeMessage& m = arena_.message(frame);
  if (m.router >= g_.routers || m.in >= kWays) return damage();
  m.out = out_index(m.router, requested(m.probe, m.in));
  if (m.out % kWays < kGateway && m.out % kWays >= g_.dimension) return damage();
  if (is_down(m.out)) return lose(frame, t);
  Out& out = arena_.out(m.out);
  m.requests = 1;
  out.asking = static_cast<std::uint16_t>(out.asking | 1u << m.in);
  out.asking_frame[m.in] = frame;
  out.asked[m.in] = t;
  schedule(arbiter(m.out), t, kArbitrate);
}

void Network::arbitrate(std::uint32_t index, std::uint64_t t) {
  Out& out = arena_.out(index);
  const std::uint32_t asking = out.asking & requesters(index % kWays);
  if (asking == 0) return;
  if (out.holder == kNone && t < out.busy_until)  // a lost message's word is still filled up
    schedule(arbiter(index), out.busy_until, kArbitrate);
  else if (out.holder == kNone) grant(index, next_in_turn(asking, out.last & 15), t);
  for (std::uint32_t in = 0; in < kWays; ++in)
    if ((out.asking >> in & 1) != 0 && out.asked[in] == t) ++out.counters.blocked;
}

void Network::grant(std::uint32_t index, std::uint32_t in, std::uint64_t t) {
  Out& out = arena_.out(index);
  const FrameId frame = in < kWays ? out.asking_frame[in] : kNone;
  if (frame >= g_.frames) return damage();
  CubeMessage& m = arena_.message(frame);
  out.last = static_cast<std::uint8_t>(in);
  out.asking = static_cast<std::uint16_t>(out.asking & ~(1u << in));
  out.holder = frame;
  out.hop = m.hops;
  out.granted = t;
  out.counters.blocked_cycles += t - out.asked[in];
  ++out.counters.messages;
  m.requests = 0;
  m.entered = 1;
  if (is_sink(index)) grant_sink(frame, index, t);
  else grant_channel(frame, index, t);
}

void Network::grant_channel(FrameId frame, std::uint32_t index, std::uint64_t t) {
  CubeMessage& m = arena_.message(frame);
  if (m.hops >= kMaxDimensions) return damage();
  Out& out = arena_.out(index);
  const bool whole = m.in >= kGateway;
  const std::uint32_t nibbles = whole ? kWordNibbles : kShortProbeNibbles;
  ++(whole ? out.counters.probes : out.counters.short_probes);
  out.busy_from = t + 1;
  out.busy_until = t + 1 + nibbles;
  m.way[m.hops++] = index;
  const std::uint32_t channel = index % kWays;
  m.router = (index / kWays ^ 1u << channel) & (g_.routers - 1);
  m.in = static_cast<std::uint8_t>(channel);
  schedule(timer(frame, kPath), t + nibbles + p_.hop_cycles + p_.route_cycles, kRequest);
}

void Network::grant_sink(FrameId frame, std::uint32_t index, std::uint64_t t) {
  CubeMessage& m = arena_.message(frame);
  Out& out = arena_.out(index);
  ++out.counters.probes;
  out.taken = 0;
  out.settled = t;
  out.done_at = 0;
  out.ended = 0;
  m.at_sink = 1;
  plan(frame, t);
  if (m.hops != 0) send_ready(frame, m.hops - 1u, true, t);
  else set_ready(frame, true, t + 1);
}

// The tail has passed: hop by hop the channels are free.
void Network::release(FrameId frame, std::uint64_t t) {
  CubeMessage& m = arena_.message(frame);
  if (m.released >= m.hops) return;
  const std::uint32_t index = way_of(m, m.released);
  Out& out = arena_.out(index);
  out.counters.words += m.total;
  out.counters.throttles += m.older_runs + m.run_count - 1u;
  free_out(index, t, t);
  ++m.released;
  if (m.released < m.hops) schedule(timer(frame, kPath), t + p_.hop_cycles, kRelease);
}

/// Free at the end of cycle `t` or before; requests are looked at in cycle `again`.
void Network::free_out(std::uint32_t index, std::uint64_t t, std::uint64_t again) {
  Out& out = arena_.out(index);
  out.counters.held_cycles += t - out.granted;
  out.holder = kNone;
  if (out.asking != 0) schedule(arbiter(index), again, kArbitrate);
}

}  // namespace ulfm::fabric::dcm
