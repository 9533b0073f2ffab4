#include "fabric/pointdesign/reference.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace ulfm::fabric::pointdesign {

Reference::Reference(const Parameters& parameters) : p_(parameters), g_(parameters.geometry()) {
  cards_.resize(g_.cards);
  processors_.resize(g_.nodes());
  for (Processor& one : processors_) one.ports.resize(g_.ports());
  lines_.resize(g_.lines());
  for (Line& one : lines_) one.queues.resize(p_.processors + 1);
}

bool Reference::line_works(std::uint32_t line) const {
  return !lines_[line].dead && !cards_[g_.line_source(line)].dead && !cards_[g_.line_target(line)].dead;
}

bool Reference::reaches(std::uint32_t from, std::uint32_t to) {
  if (from >= g_.nodes() || to >= g_.nodes() || from == to) return false;
  const std::uint32_t here = g_.card_of(from), there = g_.card_of(to);
  return !processors_[from].dead && !processors_[to].dead && !cards_[here].dead && !cards_[there].dead &&
         ways_.reaches(here, there);
}

// ---- decoders -------------------------------------------------------------------------------------------------------

TreePass Reference::decode(const Cimf& m, const CardGeometry& g, std::uint32_t port, std::uint32_t own) {
  const std::uint32_t section = port / g.section_ports(), first = port % g.section_ports() * kPortCards;
  const bool varies_dd0 = g.dimensions == 1 || section == 1;
  // What a queue's place in the machine says about a header.
  const auto is_meant = [&](std::uint32_t queue) {
    const std::uint32_t card = first + queue;
    if (card >= g.radix) return false;
    switch (m.cdd) {
      case Reach::unicast: return card == (varies_dd0 ? m.dd0 : m.dd1);
      case Reach::multicast_dd0: return varies_dd0 && (m.mask() >> queue & 1) != 0;
      case Reach::multicast_dd1: return !varies_dd0 && (m.mask() >> queue & 1) != 0;
      default: return card != own;
    }
  };
  TreePass pass;
  for (std::uint32_t upper = 0; upper < 2; ++upper) {
    bool handed_on = false;
    for (std::uint32_t lower = 2 * upper; lower < 2 * upper + 2; ++lower) {
      const bool left = is_meant(2 * lower), right = is_meant(2 * lower + 1);
      if (left) pass.queues = static_cast<std::uint8_t>(pass.queues | 1u << 2 * lower);
      if (right) pass.queues = static_cast<std::uint8_t>(pass.queues | 2u << 2 * lower);
      if (!left && !right) continue;
      pass.lower = static_cast<std::uint8_t>(pass.lower | 1u << lower);
      handed_on = true;
    }
    if (handed_on) pass.upper = static_cast<std::uint8_t>(pass.upper | 1u << upper);
  }
  return pass;
}

// ---- what a processor sends -----------------------------------------------------------------------------------------

bool Reference::has_room(FrameId frame, std::uint32_t from, std::uint32_t copies) const {
  return frame < p_.frames && !messages_.contains(frame) && reserved_ + copies <= p_.copies && from < g_.nodes() &&
         !processors_[from].dead && !cards_[g_.card_of(from)].dead;
}

std::uint64_t Reference::begin(FrameId frame, std::uint32_t from, std::uint32_t node, std::uint32_t bytes,
                               std::uint32_t copies, std::uint32_t commands) {
  messages_[frame] = {from, node, bytes, copies, 1, false};
  reserved_ += copies;
  ++totals_.entered;
  totals_.commands += commands;
  std::uint64_t& free = processors_[from].coprocessor_free;
  free = std::max(free, now_) + commands;
  return free;
}

bool Reference::inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes) {
  if (!has_room(frame, from, 1) || !reaches(from, to)) return false;
  const std::uint64_t ready = begin(frame, from, to, bytes, 1, 1);
  const std::uint32_t here = g_.card_of(from), there = g_.card_of(to);
  Outgoing one;
  one.who.dp = static_cast<std::uint8_t>(g_.processor_of(to));
  one.card = there;
  one.port = g_.port_of(g_.digit(there, 0));
  for (std::uint32_t s = g_.dimensions; s-- > 0;)
    if (g_.digit(here, s) != g_.digit(there, s)) one.port = g_.port_of(s * g_.radix + g_.digit(there, s));
  send(frame, one, ready);
  close(frame);
  return true;
}

bool Reference::inject_multicast(FrameId frame, std::uint32_t from, const std::vector<std::uint32_t>& to,
                                 std::uint32_t bytes) {
  if (from >= g_.nodes()) return false;
  for (const std::uint32_t node : to)
    if (node >= g_.nodes()) return false;
  const std::vector<Outgoing> messages = plan(g_, from, to);
  std::uint32_t copies = 0;
  std::vector<Destination> list;
  for (const Outgoing& m : messages)
    if (m.reach == Reach::broadcast) copies += g_.cards, list.emplace_back();
    else
      for (std::uint32_t i = 0; i < (m.reach == Reach::unicast ? 1u : unsigned(std::popcount(m.mask))); ++i)
        ++copies, list.emplace_back();
  if (messages.empty() || !has_room(frame, from, copies)) return false;
  const auto commands = static_cast<std::uint32_t>(command(list, 0, 0, bytes > kMessageBytes).size());
  const std::uint64_t ready = begin(frame, from, from, bytes, copies, commands);
  for (const Outgoing& m : messages)
    if (m.reach == Reach::broadcast) send_broadcast(frame, m.who, ready);
    else send(frame, m, ready);
  close(frame);
  return true;
}

bool Reference::inject_broadcast(FrameId frame, std::uint32_t from, std::uint32_t bytes) {
  if (!has_room(frame, from, g_.cards) || g_.nodes() < 2) return false;
  send_broadcast(frame, {0, false, Processors::code}, begin(frame, from, from, bytes, g_.cards, 1));
  close(frame);
  return true;
}

void Reference::send(FrameId frame, const Outgoing& m, std::uint64_t ready) {
  const Message& message = messages_[frame];
  const std::uint32_t here = g_.card_of(message.source), section = m.port / g_.section_ports();
  const std::uint32_t first = m.port % g_.section_ports() * kPortCards;
  Port& port = processors_[message.source].ports[m.port];
  ready = std::max(ready, port.free);
  port.free = ready + 1;
  ++totals_.messages;
  ++(m.reach == Reach::unicast ? port.counters.unicasts : port.counters.multicasts);
  TreePass pass = pass_to(m.reach == Reach::unicast
                              ? static_cast<std::uint8_t>(1u << (g_.digit(m.card, section) - first) % kPortCards)
                              : m.mask);
  if (g_.fits_formats())
    pass = decode(to_cimf(m, g_, message.source, message.bytes > kMessageBytes, frame), g_, m.port,
                  g_.digit(here, section));
  port.counters.upper += static_cast<std::uint32_t>(std::popcount(pass.upper));
  port.counters.lower += static_cast<std::uint32_t>(std::popcount(pass.lower));
  for (std::uint32_t queue = 0; queue < kPortCards; ++queue) {
    if ((pass.queues >> queue & 1) == 0) continue;
    ++port.counters.copies;
    Copy copy;
    copy.frame = frame, copy.who = processors_of(m.who, p_.processors), copy.ready = ready;
    copy.target = m.reach == Reach::unicast ? m.card : g_.neighbour(here, section, first + queue);
    ++messages_[frame].outstanding;
    if (copy.target == here) events_.push_back({ready + p_.flits - 1, copy, false});
    else dispatch(copy, here, g_.processor_of(message.source));
  }
}

void Reference::send_broadcast(FrameId frame, const Processors& who, std::uint64_t ready) {
  const std::uint32_t source = messages_[frame].source, here = g_.card_of(source), q = g_.processor_of(source);
  Outgoing m;
  m.reach = Reach::broadcast, m.who = who;
  const Cimf cimf = to_cimf(m, g_, source, false, frame);
  for (const Port& port : processors_[source].ports) ready = std::max(ready, port.free);
  for (std::uint32_t p = 0; p < g_.ports(); ++p) {
    Port& port = processors_[source].ports[p];
    port.free = ready + 1;
    const TreePass pass = decode(cimf, g_, p, g_.digit(here, p / g_.section_ports()));
    ++port.counters.broadcasts;
    port.counters.upper += static_cast<std::uint32_t>(std::popcount(pass.upper));
    port.counters.lower += static_cast<std::uint32_t>(std::popcount(pass.lower));
    port.counters.copies += static_cast<std::uint32_t>(std::popcount(pass.queues));
  }
  ++totals_.messages;
  Copy copy;
  copy.frame = frame, copy.ready = ready, copy.who = processors_of(who, p_.processors);
  if (Copy own = copy; (own.who &= ~(1u << q)) != 0) {
    own.target = here;
    ++messages_[frame].outstanding;
    events_.push_back({ready + p_.flits - 1, own, false});
  }
  spread(copy, here, 0, q, ready);
}

void Reference::spread(const Copy& copy, std::uint32_t card, std::uint32_t first_section, std::uint32_t q,
                       std::uint64_t ready) {
  for (std::uint32_t direction = first_section * g_.radix; direction < g_.directions(); ++direction) {
    const std::uint32_t line = g_.line_from(card, direction);
    if (g_.is_own(line)) continue;
    Copy one = copy;
    one.target = g_.line_target(line), one.spreading = true, one.ready = ready;
    ++messages_[copy.frame].outstanding;
    if (line_works(line)) put(one, line, q);
    else send_one_by_one(one, card, direction, q);
  }
}

void Reference::send_one_by_one(const Copy& copy, std::uint32_t card, std::uint32_t direction, std::uint32_t q) {
  for (std::uint32_t to = 0; to < g_.cards; ++to) {
    bool behind = true;
    for (std::uint32_t s = 0; s <= g_.section_of(direction); ++s)
      behind = behind && g_.digit(to, s) == g_.digit(copy.target, s);
    if (!behind) continue;
    Copy one = copy;
    one.target = to, one.spreading = false, one.refusals = 0;
    ++messages_[copy.frame].outstanding;
    dispatch(one, card, q);
  }
  close(copy.frame);
}

void Reference::dispatch(const Copy& copy, std::uint32_t card, std::uint32_t q) {
  const std::uint32_t direction = ways_.next(card, copy.target);
  if (direction == kNone) finish(copy, false, card);
  else put(copy, g_.line_from(card, direction), q);
}

void Reference::put(const Copy& copy, std::uint32_t line, std::uint32_t q) {
  Queue& queue = lines_[line].queues[q];
  queue.copies.push_back(copy);
  queue.counters.most = std::max(queue.counters.most, static_cast<std::uint32_t>(queue.copies.size()));
}

Reference::Copy Reference::take(std::uint32_t line, std::uint32_t q) {
  Queue& queue = lines_[line].queues[q];
  Copy copy = queue.copies.front();
  queue.copies.pop_front();
  if (copy.stored_at != kNone) --lines_[copy.stored_at].stored;
  copy.stored_at = kNone;
  return copy;
}

// ---- a cycle --------------------------------------------------------------------------------------------------------

void Reference::step() {
  ++now_;
  if (p_.queues != 0)
    for (std::uint32_t card = 0; card < g_.cards; ++card)
      for (std::uint32_t q = 0; q < p_.processors; ++q)
        for (std::uint32_t queue = 0; queue < p_.queues; ++queue) offer(card, q, queue);
  for (std::uint32_t line = 0; line < lines_.size(); ++line) {
    Line& l = lines_[line];
    if (!l.claimed.empty()) l.carries = {{l.claimed.front(), 0, false}}, l.claimed.clear();
    else if (l.carries.empty()) choose(line);
    if (!l.carries.empty()) ++l.carries.front().flits;
  }
  if (p_.switching == Switching::wormhole)
    for (std::uint32_t line = 0; line < lines_.size(); ++line)
      if (!lines_[line].carries.empty() && lines_[line].carries.front().flits == 1) head(line);
  for (std::uint32_t line = 0; line < lines_.size(); ++line)
    if (!lines_[line].carries.empty() && lines_[line].carries.front().flits == p_.flits) tail(line);
  for (std::size_t i = 0; i < events_.size();) {
    // What becomes due in the meantime is later than this cycle.
    const auto due = std::min_element(events_.begin(), events_.end(),
                                      [](const Event& a, const Event& b) { return a.cycle < b.cycle; });
    if (due->cycle > now_) break;
    const Event event = *due;
    events_.erase(due);
    happen(event);
  }
}

std::uint64_t Reference::value(std::uint32_t line, std::uint32_t q) const {
  const Queue& queue = lines_[line].queues[q];
  const Copy& first = queue.copies.front();
  if (p_.policy == Policy::history) return queue.counters.sent;
  if (p_.policy == Policy::through && q == p_.processors) return (std::uint64_t{1} << 32) + queue.copies.size();
  if (p_.policy != Policy::farthest) return queue.copies.size();
  const std::uint32_t card = g_.line_source(line);
  if (!first.spreading) return g_.distance(card, first.target);
  std::uint64_t far = g_.distance(card, first.target);
  for (std::uint32_t s = g_.line_section(line) + 1; s < g_.dimensions; ++s) far += g_.radix - 1;
  return far;
}

void Reference::offer(std::uint32_t card, std::uint32_t q, std::uint32_t queue) {
  std::vector<std::array<std::uint64_t, 3>> ranks;  // late, value, direction
  const std::uint32_t minis = p_.minis();
  for (std::uint32_t d = queue * minis; d < std::min((queue + 1) * minis, g_.directions()); ++d) {
    const std::uint32_t line = g_.line_from(card, d);
    const Line& l = lines_[line];
    Queue& mini = lines_[line].queues[q];
    mini.offered = false;
    if (mini.copies.empty() || mini.copies.front().ready > now_ || !l.carries.empty() || !l.claimed.empty()) continue;
    const Copy& first = mini.copies.front();
    const bool late = is_late(first, now_);
    ranks.push_back({late, late ? ~first.ready : value(line, q), d});
  }
  std::sort(ranks.rbegin(), ranks.rend());
  for (std::size_t i = 0; i < ranks.size() && i < (p_.speed == 0 ? minis : p_.speed); ++i)
    lines_[g_.line_from(card, static_cast<std::uint32_t>(ranks[i][2]))].queues[q].offered = true;
}

void Reference::choose(std::uint32_t line) {
  Line& l = lines_[line];
  std::vector<std::array<std::uint64_t, 3>> ranks;  // late, value, queue
  for (std::uint32_t q = 0; q < l.queues.size(); ++q) {
    const Queue& queue = l.queues[q];
    if (queue.copies.empty() || queue.copies.front().ready > now_) continue;
    if (p_.queues != 0 && q < p_.processors && !queue.offered) continue;
    const bool late = is_late(queue.copies.front(), now_);
    ranks.push_back({late, late ? ~queue.copies.front().ready : value(line, q), q});
  }
  if (ranks.empty()) return;
  const auto best = *std::max_element(ranks.begin(), ranks.end());
  const auto q = static_cast<std::uint32_t>(best[2]);
  const Copy copy = take(line, q);
  ++l.queues[q].counters.sent;
  l.queues[q].counters.waited += now_ - copy.ready;
  if (best[0] != 0) ++l.queues[q].counters.timeouts;
  ++l.counters.messages;
  l.carries = {{copy, 0, false}};
}

void Reference::head(std::uint32_t line) {
  Line& l = lines_[line];
  Copy copy = l.carries.front().copy;
  const std::uint32_t card = g_.line_target(line), before = g_.line_source(line);
  if (copy.spreading || copy.target == card || cards_[card].dead) return;
  const std::uint32_t direction = ways_.next(card, copy.target);
  if (direction == kNone) return;
  const std::uint32_t next = g_.line_from(card, direction);
  Line& onward = lines_[next];
  bool claims = onward.claimed.empty() && onward.queues[p_.processors].copies.empty() &&
                (onward.carries.empty() || onward.carries.front().flits == p_.flits);
  for (const Queue& queue : onward.queues)
    if (!queue.copies.empty() && is_late(queue.copies.front(), now_ + 1)) claims = false;
  copy.ready = claims ? copy.ready : now_ + 1;
  if (claims) {
    onward.claimed = {copy};
    ++onward.counters.messages;
  } else if (l.stored < p_.buffer || copy.refusals >= kMostRefusals) {
    if (l.stored >= p_.buffer) ++l.counters.forced;
    copy.stored_at = line;
    ++l.stored;
    put(copy, next, p_.processors);
  } else {
    l.carries.clear();
    ++l.counters.refused;
    ++copy.refusals;
    const std::uint32_t other =
        cards_[before].dead ? kNone : ways_.other(before, copy.target, g_.line_direction(line), copy.refusals);
    if (other == kNone) finish(copy, false, before);
    else put(copy, g_.line_from(before, other), p_.processors);
    return;
  }
  l.carries.front().gone_on = true;
  ++cards_[card].counters.through;
}

void Reference::tail(std::uint32_t line) {
  const Transit whole = lines_[line].carries.front();
  lines_[line].carries.clear();
  if (whole.gone_on) return;
  const std::uint32_t card = g_.line_target(line);
  Copy copy = whole.copy;
  if (cards_[card].dead) return finish(copy, false, card);
  if (copy.spreading) {
    copy.spreading = false;
    spread(copy, card, g_.line_section(line) + 1, p_.processors, now_ + 1);
  }
  if (copy.target == card) return deliver(copy, card);
  const std::uint32_t direction = ways_.next(card, copy.target);
  if (direction == kNone) return finish(copy, false, card);
  copy.ready = now_ + 1;
  ++cards_[card].counters.through;
  put(copy, g_.line_from(card, direction), p_.processors);
}

void Reference::deliver(Copy copy, std::uint32_t card) {
  const Message& message = messages_[copy.frame];
  for (std::uint32_t q = 0; q < p_.processors; ++q)
    if (const std::uint32_t node = card * p_.processors + q; node == message.source || processors_[node].dead)
      copy.who &= ~(1u << q);
  if (cards_[card].dead || copy.who == 0) return finish(copy, false, card);
  ++cards_[card].counters.arrived;
  if (message.bytes <= kMessageBytes) return finish(copy, true, card);
  std::uint64_t& free = processors_[message.source].memory_free;
  free = std::max(free, now_ + 1) + p_.fetch_cycles(message.bytes);
  events_.push_back({free - 1, copy, true});
}

void Reference::happen(const Event& event) {
  const std::uint32_t card = event.copy.target;
  if (!event.fetching) return deliver(event.copy, card);
  const Message& message = messages_[event.copy.frame];
  if (cards_[card].dead || cards_[g_.card_of(message.source)].dead) return finish(event.copy, false, card);
  ++cards_[card].counters.fetches;
  cards_[card].counters.fetched_bytes += message.bytes;
  finish(event.copy, true, card);
}

void Reference::finish(const Copy& copy, bool delivered, std::uint32_t card) {
  CardCounters& counters = cards_[card].counters;
  if (delivered) counters.delivered += static_cast<std::uint32_t>(std::popcount(copy.who));
  else ++counters.lost, messages_[copy.frame].lost = true;
  for (std::uint32_t q = 0; delivered && q < p_.processors; ++q)
    if ((copy.who >> q & 1) != 0) ++received_[copy.frame][card * p_.processors + q];
  close(copy.frame);
}

void Reference::close(FrameId frame) {
  const auto it = messages_.find(frame);
  Message& m = it->second;
  if (--m.outstanding != 0) return;
  ++(m.lost ? totals_.lost : totals_.left);
  reserved_ -= m.reserved;
  endings_.push_back({frame, m.lost ? m.source : m.node, now_, !m.lost});
  messages_.erase(it);
}

// ---- faults ---------------------------------------------------------------------------------------------------------

void Reference::set_line(std::uint32_t card, std::uint32_t direction, bool up) {
  if (card >= g_.cards || direction >= g_.directions()) return;
  const std::uint32_t line = g_.line_from(card, direction);
  if (g_.is_own(line) || lines_[line].dead != up) return;
  for (std::uint32_t other = 0; other < lines_.size(); ++other)
    if (g_.line_source(other) == g_.line_target(line) && g_.line_target(other) == card &&
        g_.line_section(other) == g_.line_section(line))
      lines_[other].dead = !up;
  lines_[line].dead = !up;
  change(up);
}

void Reference::set_card(std::uint32_t card, bool up) {
  if (card >= g_.cards || cards_[card].dead != up) return;
  cards_[card].dead = !up;
  change(up);
}

void Reference::set_processor(std::uint32_t node, bool up) {
  if (node >= g_.nodes() || processors_[node].dead != up) return;
  processors_[node].dead = !up;
  change(up);
}

void Reference::change(bool up) {
  dead_ += up ? -1u : 1u;
  ++version_;
  for (std::uint32_t line = 0; line < lines_.size() && !up; ++line) {
    if (line_works(line)) continue;
    const std::uint32_t card = g_.line_source(line);
    for (std::uint32_t q = 0; q <= p_.processors; ++q)
      while (!lines_[line].queues[q].copies.empty()) {
        Copy copy = take(line, q);
        copy.ready = std::max(copy.ready, now_ + 1);
        if (cards_[card].dead) {
          finish(copy, false, card);
          continue;
        }
        ++cards_[card].counters.rerouted;
        if (copy.spreading) send_one_by_one(copy, card, g_.line_direction(line), q);
        else dispatch(copy, card, q);
      }
  }
}

}  // namespace ulfm::fabric::pointdesign
