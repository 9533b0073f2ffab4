// The sink of a node: its FIFO, whether it is ready, and the node that takes.
#include <algorithm>

#include "fabric/dcm/network.hpp"

namespace ulfm::fabric::dcm {

/// Words that the FIFO of the message's sink has been given up to that cycle, the probe among them.
std::uint32_t Network::arrived(const CubeMessage& m, std::uint64_t cycle) const noexcept {
  return 1 + std::min(m.total - 1, begun(m, at_source(cycle, m.hops) - (kWordNibbles - 1)));
}

// A node that has caught up takes each pair of words in the first cycle it can: no more than one comes in
// between.
void Network::settle(std::uint32_t index, std::uint64_t t) {
  Out& out = arena_.out(index);
  if (out.holder >= g_.frames || out.settled >= t) return;
  const CubeMessage& m = arena_.message(out.holder);
  const std::uint32_t before = out.taken;
  std::uint64_t tick = tick_from(std::max(out.settled + 1, out.stalled_until));
  for (std::uint32_t turns = 0; tick <= t; tick += p_.dma_cycles) {
    const std::uint32_t there = arrived(m, tick) - out.taken;
    if (there < 4) {
      out.taken = arrived(m, t / p_.dma_cycles * p_.dma_cycles) & ~1u;
      break;
    }
    out.taken += 2;
    if (++turns > kMostFifoWords) return damage();
  }
  out.settled = t;
  header().left += out.taken - before;
}

// ---- what comes next
// ------------------------------------------------------------------------------------------------

std::uint64_t Network::next_stop(const Out& out, const CubeMessage& m, std::uint64_t t) const {
  std::uint64_t cycle = t + 1;
  if (out.stalled_until > cycle) {
    const std::uint32_t word = p_.stop_at + out.taken - 1;
    const std::uint64_t start = word < m.total ? begins_word(m, word) : kNever;
    const std::uint64_t there = start + kWordNibbles - 1 + std::uint64_t{m.hops} * p_.hop_cycles;
    if (start < kNever && there < out.stalled_until) return std::max(there, cycle);
    if (out.stalled_until >= kNever) return kNever;
    cycle = out.stalled_until;
  }
  // It takes two words before the second next one comes: what is well below the threshold stays below.
  std::uint32_t taken = out.taken;
  for (int turns = 0; turns < 64; ++turns, ++cycle) {
    const std::uint32_t there = arrived(m, cycle);
    if (cycle % p_.dma_cycles == 0 && there - taken >= 2) taken += 2;
    if (there - taken >= p_.stop_at) return cycle;
    if (there - taken + 4 <= p_.stop_at) break;
  }
  return kNever;
}

std::uint64_t Network::next_go(const Out& out, const CubeMessage& m, std::uint64_t t) const {
  if (out.stalled_until >= kNever) return kNever;
  std::uint64_t tick = tick_from(std::max(t + 1, out.stalled_until));
  std::uint32_t taken = out.taken;
  for (std::uint32_t turns = 0; turns < 4 * kMostFifoWords; ++turns, tick += p_.dma_cycles) {
    const std::uint32_t there = arrived(m, tick);
    if (there - taken >= 2) taken += 2;
    if (there - taken <= p_.go_at) return tick;
  }
  return kNever;
}

std::uint64_t Network::next_end(const Out& out, const CubeMessage& m, std::uint64_t t) const {
  if (out.done_at != 0) return out.done_at;
  const std::uint64_t awake = std::max(t + 1, out.stalled_until);
  if (awake >= kNever) return kNever;
  const std::uint32_t left = m.total - out.taken;
  return left < 2 ? awake : tick_from(awake) + std::uint64_t{left / 2 - 1} * p_.dma_cycles;
}

// Looks ahead from what is settled, on the understanding that the serializer goes on as it does now.
void Network::plan(FrameId frame, std::uint64_t t) {
  const CubeMessage& m = arena_.message(frame);
  if (m.at_sink == 0) return;
  settle(m.out, t - 1);
  const Out& out = arena_.out(m.out);
  if (out.holder != frame) return damage();
  const std::uint64_t from = out.settled;
  std::uint64_t next = kNever;
  if (out.ended != 0) {
    next = next_end(out, m, from);
  } else {
    next = out.accept != 0 ? next_stop(out, m, from) : next_go(out, m, from);
    const std::uint64_t checksum = m.finished_at - 1 + std::uint64_t{m.hops} * p_.hop_cycles;
    if (m.finished != 0) next = std::min(next, std::max(checksum, from + 1));
  }
  schedule(timer(frame, kSink), next, kTake);
}

// ---- taking
// ---------------------------------------------------------------------------------------------------------

void Network::take(FrameId frame, std::uint64_t t) {
  CubeMessage& m = arena_.message(frame);
  if (m.at_sink == 0 || !is_sink(m.out) || m.out >= g_.outs) return damage();
  Out& out = arena_.out(m.out);
  settle(m.out, t);
  if (out.ended == 0 && m.finished != 0 && t >= m.finished_at - 1 + std::uint64_t{m.hops} * p_.hop_cycles) {
    out.ended = 1;
    ++header().stripped;
  }
  if (out.ended == 0) {
    const std::uint32_t there = arrived(m, t) - out.taken;
    if (out.accept != 0 && there >= p_.stop_at) {
      ++out.counters.throttles;
      set_accept(frame, out, false, t);
    } else if (out.accept == 0 && there <= p_.go_at) {
      set_accept(frame, out, true, t);
    }
  } else if (out.done_at == 0 && out.taken == m.total && t >= out.stalled_until) {
    out.done_at = t + (m.begins != 0 ? p_.receive_cycles : 0);
  }
  if (out.done_at != 0 && t >= out.done_at) return deliver(frame, t);
  plan(frame, t);
}

void Network::set_accept(FrameId frame, Out& out, bool accept, std::uint64_t t) {
  out.accept = accept ? 1 : 0;
  const CubeMessage& m = arena_.message(frame);
  if (m.hops != 0) send_ready(frame, m.hops - 1u, accept, t + 1);
  else set_ready(frame, accept, t + 1);
}

void Network::deliver(FrameId frame, std::uint64_t t) {
  CubeMessage& m = arena_.message(frame);
  Out& out = arena_.out(m.out);
  out.counters.words += m.total;
  out.accept = 1;
  free_out(m.out, t, t + 1);
  header().entered += m.total + 1;
  hand_over(frame, true, t);
}

void Network::hand_over(FrameId frame, bool delivered, std::uint64_t t) {
  CubeHeader& h = header();
  CubeMessage& m = arena_.message(frame);
  for (std::uint32_t i = 0; i < kTimers; ++i) cancel(timer(frame, static_cast<Timer>(i)));
  m.used = 2;
  m.delivered = delivered ? 1 : 0;
  m.ended_at = t;
  h.ended.append(frame, next_message());
}

void Network::stall(std::uint32_t end, std::uint64_t cycles) {
  if (end >= 2 * g_.routers) return;
  CubeHeader& h = header();
  const std::uint32_t index = out_index(end % g_.routers, source_way(end));
  Out& out = arena_.out(index);
  settle(index, h.now - 1);
  out.stalled_until = cycles >= kNever ? kNever : h.now + cycles;
  if (out.holder < g_.frames) plan(out.holder, h.now);
}

}  // namespace ulfm::fabric::dcm
