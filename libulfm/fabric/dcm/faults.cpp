// Channels, routers and nodes that die, and what is lost with them.
#include "fabric/dcm/network.hpp"

namespace ulfm::fabric::dcm {

// Bit 0 of `down`: the channel or what hangs there. Bit 1, kept at the router's sink: the router.
bool Network::is_down(std::uint32_t index) const noexcept {
  const std::uint32_t router = index / kWays, way = index % kWays;
  const auto dead = [&](std::uint32_t r) { return (arena_.out(out_index(r, kNode)).down & 2) != 0; };
  if ((arena_.out(index).down & 1) != 0 || dead(router)) return true;
  return way < g_.dimension && dead(router ^ 1u << way);
}

bool Network::reaches(std::uint32_t from, std::uint32_t to) const noexcept {
  if (from >= 2 * g_.routers || to >= 2 * g_.routers || from == to) return false;
  std::uint32_t router = from % g_.routers, in = source_way(from);
  if (header().down == 0) return true;
  if (is_down(out_index(router, in))) return false;
  const std::uint16_t probe = routing_probe(from, to, g_.routers);
  for (;;) {
    const std::uint32_t way = requested(probe, in);
    if (is_down(out_index(router, way))) return false;
    if (way >= kGateway) return true;
    router ^= 1u << way;
    in = way;
  }
}

// As long as it holds a channel, or its last nibbles are on it.
bool Network::uses_what_is_down(const CubeMessage& m, FrameId frame) const {
  if (arena_.source(source_index(m.from)).current == frame &&
      is_down(out_index(m.from % g_.routers, source_way(m.from))))
    return true;
  if ((m.requests != 0 || m.at_sink != 0) && is_down(m.out)) return true;
  for (std::uint32_t hop = 0; hop < m.hops && hop < kMaxDimensions; ++hop) {
    const bool gone = m.finished != 0 && m.finished_at + std::uint64_t{hop + 1} * p_.hop_cycles <= header().now;
    if (!gone && is_down(way_of(m, hop))) return true;
  }
  return false;
}

void Network::lose_what_is_down() {
  const std::uint64_t now = header().now;
  for (FrameId frame = 0; frame < g_.frames; ++frame) {
    const CubeMessage& m = arena_.message(frame);
    if (m.used == 1 && uses_what_is_down(m, frame)) lose(frame, now);
  }
  for (std::uint32_t i = 0; i < g_.sources; ++i)
    if (is_down(out_index(i / 2, i % 2 == 0 ? kNode : kGateway))) lose_queue(i);
}

void Network::lose_queue(std::uint32_t index) {
  Source& source = arena_.source(index);
  for (std::uint32_t turns = 0; source.first != kNone; ++turns) {
    const FrameId frame = source.first;
    if (frame >= g_.frames || turns >= g_.frames) return damage();
    source.first = arena_.message(frame).next;
    hand_over(frame, false, header().now);
  }
}

// All that a message holds is free, at the beginning of cycle `t` or in its step of requests.
void Network::lose(FrameId frame, std::uint64_t t) {
  CubeMessage& m = arena_.message(frame);
  const std::uint32_t sent = m.entered != 0 ? 1 + begun(m, static_cast<std::int64_t>(t) - 1) : 0;
  for (std::uint32_t hop = m.released; hop < m.hops && hop < kMaxDimensions; ++hop) {
    const std::uint32_t index = way_of(m, hop);
    Out& out = arena_.out(index);
    out.counters.words += begun(m, at_source(t - 1, hop));
    out.counters.throttles += interrupted(m, at_source(t - 1, hop));
    ++out.counters.lost;
    out.busy_until = slot(index, t);
    out.busy_from = 0;
    free_out(index, t, t);
  }
  if (m.requests != 0 && m.in < kWays) {
    Out& out = arena_.out(m.out);
    out.asking = static_cast<std::uint16_t>(out.asking & ~(1u << m.in));
    out.counters.blocked_cycles += t - out.asked[m.in];
  }
  std::uint32_t arrived_well = 0;
  if (m.at_sink != 0) {
    settle(m.out, t - 1);
    Out& out = arena_.out(m.out);
    out.counters.words += arrived(m, t - 1);
    ++out.counters.lost;
    arrived_well = out.taken + out.ended;
    out.accept = 1;
    free_out(m.out, t, t);
  }
  Source& source = arena_.source(source_index(m.from));
  if (source.current == frame) {
    source.current = kNone;
    schedule(starter(source_index(m.from)), t, kBegin);
  }
  header().entered += sent;
  header().lost += sent - arrived_well;
  hand_over(frame, false, t);
}

void Network::set_channel(std::uint32_t router, std::uint32_t way, bool up) {
  if (router >= g_.routers || way >= kWays || (way < kGateway && way >= g_.dimension)) return;
  const auto set = [&](std::uint32_t index) {
    std::uint32_t& down = arena_.out(index).down;
    header().down += (up ? 0u : 1u) - (down & 1);
    down = (down & 2) | (up ? 0u : 1u);
  };
  set(out_index(router, way));
  if (way < kGateway) set(out_index(router ^ 1u << way, way));
  if (!up) lose_what_is_down();
}

void Network::set_router(std::uint32_t router, bool alive) {
  if (router >= g_.routers) return;
  std::uint32_t& down = arena_.out(out_index(router, kNode)).down;
  header().down += (alive ? 0u : 1u) - (down >> 1 & 1);
  down = (down & 1) | (alive ? 0u : 2u);
  if (!alive) lose_what_is_down();
}

}  // namespace ulfm::fabric::dcm
