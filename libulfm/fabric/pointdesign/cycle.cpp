// A cycle of a point design.
#include <algorithm>
#include <array>
#include <bit>
#include <tuple>
#include <utility>

#include "fabric/kit/heap.hpp"
#include "fabric/pointdesign/network.hpp"

namespace ulfm::fabric::pointdesign {
namespace {

/// Who sends first: heads that are too old before others, the oldest first; then by the policy; then the highest
/// number, as a priority encoder has it (thesis, table 10).
struct Rank {
  bool late = false;
  std::uint64_t value = 0;
  std::uint32_t number = 0;
  friend auto operator<=>(const Rank&, const Rank&) = default;
};

}  // namespace

std::size_t Network::run(std::uint64_t budget, std::span<Ending> endings, std::uint64_t until) {
  PointHeader& h = header();
  const std::uint64_t limit = h.events + std::max<std::uint64_t>(budget, 1);
  while (h.ended.count + h.there < endings.size() && h.now < until && h.events < limit && h.inside > h.ended.count) {
    if (h.waiting == 0 && h.on_lines == 0 && h.heap_size != 0)
      h.now = std::max(h.now, std::min(arena_.heap(0).cycle, until) - 1);
    step();
  }
  // Not behind an ending that is about to be reported: what it causes may enter before that cycle.
  if (h.inside == h.ended.count && until != kNever && h.now < until && h.ended.count < endings.size()) h.now = until;
  return hand_out(endings);
}

std::size_t Network::hand_out(std::span<Ending> endings) {
  PointHeader& h = header();
  std::size_t count = hand_out_arrivals(endings);
  for (; count < endings.size() && !h.ended.empty(); ++count) {
    const std::uint32_t frame = h.ended.take(next_message());
    PointMessage& m = arena_.message(frame);
    endings[count] = {frame, m.lost != 0 ? m.source : m.node, m.cycle, m.lost == 0};
    m.used = 0;
    if (m.each != 0) h.reserved -= m.reserved;
    --h.inside;
  }
  return count;
}

/// A message ends as a whole behind all of these, so it keeps its copies until then.
std::size_t Network::hand_out_arrivals(std::span<Ending> endings) {
  PointHeader& h = header();
  std::size_t count = 0;
  for (; count < endings.size() && h.there_first != kNone; ++count) {
    const std::uint32_t i = h.there_first;
    Copy& c = arena_.copy(i);
    const auto q = static_cast<std::uint32_t>(std::countr_zero(std::uint32_t{c.who}));
    endings[count] = {c.frame, c.target * p_.processors + q, c.ready, true};
    --h.there;
    c.who = static_cast<std::uint8_t>(c.who & (c.who - 1));
    if (c.who != 0) continue;
    h.there_first = c.next;
    if (h.there_first == kNone) h.there_last = kNone;
    c.next = h.free_copy;
    h.free_copy = i;
  }
  return count;
}

void Network::step() {
  PointHeader& h = header();
  ++h.now;
  if (p_.switching == Switching::wormhole)
    arena_.heads(h.now).each([&](std::uint32_t line) {  // so far those that were claimed
      Line& l = arena_.line(line);
      l.current = std::exchange(l.claimed, kNone);
    });
  if (p_.queues != 0) offer();
  arena_.active().each([&](std::uint32_t line) { choose(line); });
  if (p_.switching == Switching::wormhole)
    arena_.heads(h.now).take_each([&](std::uint32_t line) { arrive_head(line); });
  arena_.tails(h.now).take_each([&](std::uint32_t line) { arrive(line); });
  while (h.heap_size != 0 && arena_.heap(0).cycle <= h.now) happen(unschedule().copy);
}

// ---- who sends ------------------------------------------------------------------------------------------------------

std::uint32_t Network::distance(std::uint32_t line, const Copy& copy) const {
  const std::uint32_t card = g_.line_source(line);
  if (copy.kind == kSingle) return g_.distance(card, copy.target);
  return g_.distance(card, g_.line_target(line)) + (g_.dimensions - 1 - g_.line_section(line)) * (g_.radix - 1);
}

std::uint64_t Network::value(std::uint32_t line, std::uint32_t q, const Copy& head) const {
  const Mini& mini = arena_.mini(mini_of(line, q));
  switch (p_.policy) {
    case Policy::farthest: return distance(line, head);
    case Policy::history: return mini.counters.sent;
    case Policy::through: return (q == p_.processors ? std::uint64_t{1} << 32 : 0) + mini.count;
    default: return mini.count;
  }
}

/// Which of their mini queues the queues of processors let send.
void Network::offer() {
  for (std::uint32_t node = 0; node < g_.nodes(); ++node) {
    if (arena_.processor(node).waiting == 0) continue;
    for (std::uint32_t queue = 0; queue < p_.queues; ++queue)
      offer_queue(g_.card_of(node), g_.processor_of(node), queue);
  }
}

void Network::offer_queue(std::uint32_t card, std::uint32_t q, std::uint32_t queue) {
  const std::uint64_t now = header().now;
  const std::uint32_t minis = p_.minis(), first = queue * minis, last = std::min(first + minis, g_.directions());
  const auto next_best = [&] {
    Rank best;
    std::uint32_t found = kNone;
    for (std::uint32_t d = first; d < last; ++d) {
      const std::uint32_t line = g_.line_from(card, d);
      const Mini& mini = arena_.mini(mini_of(line, q));
      if (mini.first == kNone || mini.offered == static_cast<std::uint32_t>(now)) continue;
      const Copy& head = arena_.copy(mini.first);
      if (head.ready > now || arena_.line(line).busy_until > now) continue;
      const bool late = now - head.ready >= p_.timeout;
      const Rank rank{late, late ? ~head.ready : value(line, q, head), d};
      if (found == kNone || rank > best) best = rank, found = d;
    }
    return found;
  };
  for (std::uint32_t sends = p_.speed == 0 ? minis : p_.speed; sends != 0; --sends) {
    const std::uint32_t d = next_best();
    if (d == kNone) return;
    arena_.mini(mini_of(g_.line_from(card, d), q)).offered = static_cast<std::uint32_t>(now);
  }
}

void Network::choose(std::uint32_t line) {
  const std::uint64_t now = header().now;
  const Line& l = arena_.line(line);
  if (l.busy_until > now) return;
  Rank best;
  std::uint32_t chosen = kNone;
  for (std::uint32_t left = l.waiting; left != 0; left &= left - 1) {
    const auto q = static_cast<std::uint32_t>(std::countr_zero(left));
    const Mini& mini = arena_.mini(mini_of(line, q));
    const Copy& head = arena_.copy(mini.first);
    if (head.ready > now) continue;
    if (p_.queues != 0 && q < p_.processors && mini.offered != static_cast<std::uint32_t>(now)) continue;
    const bool late = now - head.ready >= p_.timeout;
    const Rank rank{late, late ? ~head.ready : value(line, q, head), q};
    if (chosen == kNone || rank > best) best = rank, chosen = q;
  }
  if (chosen == kNone) return;
  QueueCounters& counters = arena_.mini(mini_of(line, chosen)).counters;
  const std::uint32_t copy = pop(line, chosen);
  ++counters.sent;
  counters.waited += now - arena_.copy(copy).ready;
  if (best.late) ++counters.timeouts;
  start(copy, line, now);
}

void Network::start(std::uint32_t copy, std::uint32_t line, std::uint64_t cycle) {
  Line& l = arena_.line(line);
  (cycle == header().now ? l.current : l.claimed) = copy;  // what it carries now may end in this cycle
  l.busy_until = cycle + p_.flits;
  ++l.counters.messages;
  ++header().on_lines;
  ++header().events;
  if (p_.switching == Switching::wormhole) arena_.heads(cycle).add(line);
  arena_.tails(cycle + p_.flits - 1).add(line);
}

// ---- what arrives ---------------------------------------------------------------------------------------------------

/// Wormhole: a message that ends elsewhere goes on before the rest of it is there.
void Network::arrive_head(std::uint32_t line) {
  Line& l = arena_.line(line);
  const std::uint32_t copy = l.current, card = g_.line_target(line);
  Copy& c = arena_.copy(copy);
  if (c.kind == kSpreading || c.target == card || arena_.card(card).dead != 0) return;
  const std::uint32_t direction = ways_.next(card, c.target);
  if (direction == kNone) return;
  const std::uint32_t next = g_.line_from(card, direction);
  const bool forced = l.stored >= p_.buffer && c.refusals >= kMostRefusals;
  if (!pass_at_once(copy, next)) {
    if (l.stored >= p_.buffer && !forced) return turn_away(copy, line);
    if (forced) ++l.counters.forced;
    c.ready = header().now + 1;
    c.line_in = line;
    ++l.stored;
    push(copy, next, p_.processors);
  }
  ++arena_.card(card).counters.through;
  l.current = kNone;
  --header().on_lines;
}

/// Onto the next line without a wait, when its port is free and nobody has waited for it too long.
bool Network::pass_at_once(std::uint32_t copy, std::uint32_t line) {
  const std::uint64_t next = header().now + 1;
  const Line& l = arena_.line(line);
  if (l.busy_until > next || (l.waiting >> p_.processors & 1) != 0 || has_late(line, next)) return false;
  start(copy, line, next);
  return true;
}

bool Network::has_late(std::uint32_t line, std::uint64_t cycle) const {
  for (std::uint32_t left = arena_.line(line).waiting; left != 0; left &= left - 1) {
    const Mini& mini = arena_.mini(mini_of(line, static_cast<std::uint32_t>(std::countr_zero(left))));
    const std::uint64_t ready = arena_.copy(mini.first).ready;
    if (ready <= cycle && cycle - ready >= p_.timeout) return true;
  }
  return false;
}

/// No room at the end of the line: back to the card it comes from, which sends it another way.
void Network::turn_away(std::uint32_t copy, std::uint32_t line) {
  Line& l = arena_.line(line);
  Copy& c = arena_.copy(copy);
  const std::uint64_t now = header().now;
  const std::uint32_t card = g_.line_source(line);
  arena_.tails(now + p_.flits - 1).remove(line);
  l.current = kNone;
  l.busy_until = now + 1;
  --header().on_lines;
  ++l.counters.refused;
  ++c.refusals;
  c.ready = now + 1;
  if (arena_.card(card).dead != 0) return lose(copy, card);
  const std::uint32_t direction = ways_.other(card, c.target, g_.line_direction(line), c.refusals);
  if (direction == kNone) return lose(copy, card);
  push(copy, g_.line_from(card, direction), p_.processors);
}

/// A whole message at the end of a line.
void Network::arrive(std::uint32_t line) {
  Line& l = arena_.line(line);
  const std::uint32_t copy = l.current;
  if (copy == kNone) return;  // it has gone on already
  l.current = kNone;
  --header().on_lines;
  const std::uint32_t card = g_.line_target(line);
  Copy& c = arena_.copy(copy);
  if (arena_.card(card).dead != 0) return lose(copy, card);
  if (c.kind == kSpreading) {
    c.kind = kSingle;
    spread(c.frame, card, g_.line_section(line), c.who, p_.processors, header().now + 1);
  }
  if (c.target == card) return deliver(copy, card);
  c.ready = header().now + 1;
  const std::uint32_t direction = ways_.next(card, c.target);
  if (direction == kNone) return lose(copy, card);
  ++arena_.card(card).counters.through;
  push(copy, g_.line_from(card, direction), p_.processors);
}

/// At its card: to its processors, after the data have been fetched, once for all of them, if they did not come along.
void Network::deliver(std::uint32_t copy, std::uint32_t card) {
  Copy& c = arena_.copy(copy);
  const PointMessage& m = arena_.message(c.frame);
  PointCard& counted = arena_.card(card);
  std::uint32_t alive = 0;
  for (std::uint32_t q = 0; q < p_.processors; ++q)
    if ((c.who >> q & 1) != 0 && card * p_.processors + q != m.source &&
        arena_.processor(card * p_.processors + q).dead == 0)
      alive |= 1u << q;
  if (counted.dead != 0 || alive == 0) return lose(copy, card);
  c.who = static_cast<std::uint8_t>(alive);
  ++counted.counters.arrived;
  if (m.bytes <= kMessageBytes) return finish(copy, true, card);
  Processor& source = arena_.processor(m.source);
  const std::uint64_t begin = std::max(header().now + 1, source.memory_free);
  source.memory_free = begin + p_.fetch_cycles(m.bytes);
  c.fetching = 1;
  schedule(source.memory_free - 1, copy);
}

void Network::happen(std::uint32_t copy) {
  const Copy& c = arena_.copy(copy);
  if (c.fetching == 0) return deliver(copy, c.target);
  const PointMessage& m = arena_.message(c.frame);
  CardCounters& counters = arena_.card(c.target).counters;
  if (arena_.card(c.target).dead != 0 || arena_.card(g_.card_of(m.source)).dead != 0) return lose(copy, c.target);
  ++counters.fetches;
  counters.fetched_bytes += m.bytes;
  finish(copy, true, c.target);
}

void Network::finish(std::uint32_t copy, bool delivered, std::uint32_t card) {
  const Copy& c = arena_.copy(copy);
  const FrameId frame = c.frame;
  PointMessage& m = arena_.message(frame);
  CardCounters& counters = arena_.card(card).counters;
  ++header().events;
  if (delivered) counters.delivered += static_cast<std::uint32_t>(std::popcount(c.who));
  else ++counters.lost, m.lost = 1;
  if (delivered && m.each != 0) report_arrival(copy);
  else release(copy);
  if (m.outstanding == 0) end(frame);
}

void Network::report_arrival(std::uint32_t copy) {
  PointHeader& h = header();
  Copy& c = arena_.copy(copy);
  --arena_.message(c.frame).outstanding;
  c.ready = h.now;
  c.next = kNone;
  h.there += static_cast<std::uint32_t>(std::popcount(c.who));
  if (h.there_first == kNone) h.there_first = copy;
  else arena_.copy(h.there_last).next = copy;
  h.there_last = copy;
}

void Network::end(FrameId frame) {
  PointHeader& h = header();
  PointMessage& m = arena_.message(frame);
  m.cycle = h.now;
  m.ended = 1;
  ++(m.lost != 0 ? h.totals.lost : h.totals.left);
  if (m.each == 0) h.reserved -= m.reserved;
  h.ended.append(frame, next_message());
}

// ---- the heap -------------------------------------------------------------------------------------------------------

void Network::schedule(std::uint64_t cycle, std::uint32_t copy) {
  PointHeader& h = header();
  const std::uint32_t hole = h.heap_size++;
  put_in_heap(hole, {cycle, h.sequence++, copy});
}

TimedCopy Network::unschedule() {
  const TimedCopy first = arena_.heap(0), last = arena_.heap(--header().heap_size);
  put_in_heap(0, last);
  return first;
}

void Network::put_in_heap(std::uint32_t hole, const TimedCopy& item) {
  fill_hole(
      header().heap_size, hole, item, [this](std::uint32_t i) -> const TimedCopy& { return arena_.heap(i); },
      [this](std::uint32_t i, const TimedCopy& moved) { arena_.heap(i) = moved; },
      [](const TimedCopy& a, const TimedCopy& b) {
        return std::tie(a.cycle, a.sequence) < std::tie(b.cycle, b.sequence);
      });
}

}  // namespace ulfm::fabric::pointdesign
