// What enters a point design, and how it gets into the queues.
#include "fabric/pointdesign/network.hpp"

#include <algorithm>
#include <bit>

namespace ulfm::fabric::pointdesign {
namespace {
constexpr std::uint64_t kNetworkMagic = 0x6e67'6973'6564'7470;
constexpr std::size_t kPlansKept = 64;
}  // namespace

void Network::create(std::byte* memory, const Parameters& p) {
  const PointArena arena(memory, p);
  PointHeader& h = arena.header();
  h.magic = kNetworkMagic;
  h.parameters = p;
  h.ended.clear();
  h.free_copy = h.there_first = h.there_last = kNone;
  const CardGeometry g = p.geometry();
  for (std::uint32_t i = 0; i < g.lines(); ++i) arena.line(i).current = arena.line(i).claimed = kNone;
  for (std::uint32_t i = 0; i < g.lines() * (p.processors + 1); ++i) arena.mini(i).first = arena.mini(i).last = kNone;
}

Result<Network> Network::attach(std::byte* memory, std::size_t bytes) {
  const auto wrong = [] { return fail(Errc::protocol, "the emulated interconnect of this job holds no point design"); };
  if (bytes < sizeof(PointHeader)) return wrong();
  const auto* h = reinterpret_cast<const PointHeader*>(memory);
  if (h->magic != kNetworkMagic) return wrong();
  const Parameters p = h->parameters;
  if (!check(p) || Network::bytes(p) > bytes) return wrong();
  return Network(memory, p);
}

bool Network::line_works(std::uint32_t line) const {
  if (header().dead == 0) return true;
  return arena_.line(line).dead == 0 && arena_.card(g_.line_source(line)).dead == 0 &&
         arena_.card(g_.line_target(line)).dead == 0;
}

bool Network::reaches(std::uint32_t from, std::uint32_t to) {
  if (from >= g_.nodes() || to >= g_.nodes() || from == to) return false;
  if (!any_dead()) return true;
  const std::uint32_t here = g_.card_of(from), there = g_.card_of(to);
  return arena_.processor(from).dead == 0 && arena_.processor(to).dead == 0 && arena_.card(here).dead == 0 &&
         arena_.card(there).dead == 0 && ways_.reaches(here, there);
}

// ---- what a processor sends -----------------------------------------------------------------------------------------

bool Network::is_free(std::uint32_t frame, std::uint32_t from, std::uint32_t copies) const {
  if (frame >= p_.frames || from >= g_.nodes() || arena_.message(frame).used != 0) return false;
  if (copies > p_.copies || header().reserved > p_.copies - copies) return false;
  return arena_.processor(from).dead == 0 && arena_.card(g_.card_of(from)).dead == 0;
}

/// The first cycle in which what the command asks for may leave.
std::uint64_t Network::begin(FrameId frame, std::uint32_t from, std::uint32_t node, std::uint32_t bytes,
                             std::uint32_t copies, std::uint32_t commands) {
  PointHeader& h = header();
  PointMessage& m = arena_.message(frame);
  m = {};
  m.source = from, m.node = node, m.bytes = bytes, m.reserved = copies, m.used = 1;
  ++m.outstanding;  // until all its copies are made: what is lost at once does not end it
  h.reserved += copies;
  ++h.inside;
  ++h.totals.entered;
  h.totals.commands += commands;
  Processor& processor = arena_.processor(from);
  processor.commands += commands;
  processor.coprocessor_free = std::max(h.now, processor.coprocessor_free) + commands;
  return processor.coprocessor_free;
}

bool Network::inject(FrameId frame, std::uint32_t from, std::uint32_t to, std::uint32_t bytes) {
  if (!is_free(frame, from, 1) || !reaches(from, to)) return false;
  Outgoing one;
  one.who.dp = static_cast<std::uint8_t>(g_.processor_of(to));
  one.card = g_.card_of(to);
  const std::uint32_t here = g_.card_of(from);
  std::uint32_t s = 0;
  while (s + 1 < g_.dimensions && g_.digit(here, s) == g_.digit(one.card, s)) ++s;
  if (here == one.card) s = 0;
  one.port = g_.port_of(s * g_.radix + g_.digit(one.card, s));
  const std::uint64_t ready = begin(frame, from, to, bytes, 1, 1);
  send(frame, one, ready);
  made(frame);
  return true;
}

// The search for the fewest messages takes much longer than sending them.
const std::vector<Outgoing>& Network::plan_for(std::uint32_t from, std::span<const std::uint32_t> to) {
  std::vector<std::uint32_t> key{from};
  key.insert(key.end(), to.begin(), to.end());
  if (const auto known = plans_.find(key); known != plans_.end()) return known->second;
  if (plans_.size() >= kPlansKept) plans_.clear();
  return plans_.emplace(std::move(key), plan(g_, from, to)).first->second;
}

bool Network::inject_multicast(FrameId frame, std::uint32_t from, std::span<const std::uint32_t> to,
                               std::uint32_t bytes, bool each) {
  if (from >= g_.nodes() || to.empty()) return false;
  for (const std::uint32_t node : to)
    if (node >= g_.nodes()) return false;
  const std::vector<Outgoing>& messages = plan_for(from, to);
  if (messages.empty()) return false;
  std::uint32_t copies = 0, items = 0;
  for (const Outgoing& m : messages) {
    const std::uint32_t cards = m.reach == Reach::broadcast ? g_.cards
                                : m.reach == Reach::unicast ? 1
                                                            : static_cast<std::uint32_t>(std::popcount(m.mask));
    copies += cards, items += m.reach == Reach::broadcast ? 1 : cards;
  }
  if (!is_free(frame, from, copies)) return false;
  const std::uint32_t commands = bytes > kMessageBytes || items <= 2 ? 1 : 2 + (items - 2 + 5) / 6;
  const std::uint64_t ready = begin(frame, from, from, bytes, copies, commands);
  arena_.message(frame).each = each ? 1 : 0;
  for (const Outgoing& m : messages)
    if (m.reach == Reach::broadcast) send_broadcast(frame, processors_of(m.who, p_.processors), ready);
    else send(frame, m, ready);
  made(frame);
  return true;
}

bool Network::inject_broadcast(FrameId frame, std::uint32_t from, std::uint32_t bytes) {
  if (!is_free(frame, from, g_.cards) || g_.nodes() < 2) return false;
  const std::uint64_t ready = begin(frame, from, from, bytes, g_.cards, 1);
  send_broadcast(frame, (1u << p_.processors) - 1, ready);
  made(frame);
  return true;
}

// ---- ports, decoders and queues -------------------------------------------------------------------------------------

void Network::count(PointPort& port, Reach reach, std::uint8_t queues) {
  const TreePass pass = pass_to(queues);
  ++(reach == Reach::unicast     ? port.counters.unicasts
     : reach == Reach::broadcast ? port.counters.broadcasts
                                 : port.counters.multicasts);
  port.counters.upper += static_cast<std::uint32_t>(std::popcount(pass.upper));
  port.counters.lower += static_cast<std::uint32_t>(std::popcount(pass.lower));
  port.counters.copies += static_cast<std::uint32_t>(std::popcount(queues));
}

/// A unicast or a multicast, through its port and the decoders behind it.
void Network::send(FrameId frame, const Outgoing& m, std::uint64_t ready) {
  const std::uint32_t source = arena_.message(frame).source, here = g_.card_of(source);
  const std::uint32_t section = m.port / g_.section_ports(), first = m.port % g_.section_ports() * kPortCards;
  PointPort& port = arena_.port(source * g_.ports() + m.port);
  ready = std::max(ready, port.free);
  port.free = ready + 1;
  ++header().totals.messages;
  std::uint32_t who = processors_of(m.who, p_.processors);
  std::uint8_t queues = m.reach == Reach::unicast
                            ? static_cast<std::uint8_t>(1u << (g_.digit(m.card, section) - first) % kPortCards)
                            : m.mask;
  if (g_.fits_formats()) {  // by way of the bits that the decoders see
    const Cimf cimf = decode_cimf(encode(to_cimf(m, g_, source, arena_.message(frame).bytes > kMessageBytes, frame)));
    queues = queues_of(cimf, g_, m.port, g_.digit(here, section));
    who = processors_of(cimf.who, p_.processors);
  }
  count(port, m.reach, queues);
  for (std::uint32_t left = queues; left != 0; left &= left - 1) {
    const std::uint32_t j = first + static_cast<std::uint32_t>(std::countr_zero(left));
    const std::uint32_t card = m.reach == Reach::unicast ? m.card : g_.neighbour(here, section, j);
    const std::uint32_t copy = make_copy(frame, card, who, kSingle, ready);
    if (card == here) schedule(ready + p_.flits - 1, copy);
    else dispatch(copy, here, g_.processor_of(source));
  }
}

/// Through all ports at once, to the cards of the row and the column; those spread it along the sections that are left.
void Network::send_broadcast(FrameId frame, std::uint32_t who, std::uint64_t ready) {
  const std::uint32_t source = arena_.message(frame).source, here = g_.card_of(source), q = g_.processor_of(source);
  Outgoing m;
  m.reach = Reach::broadcast;
  write_processors(who, p_.processors, m.who);
  const Cimf cimf = decode_cimf(encode(to_cimf(m, g_, source, arena_.message(frame).bytes > kMessageBytes, frame)));
  for (std::uint32_t p = 0; p < g_.ports(); ++p) ready = std::max(ready, arena_.port(source * g_.ports() + p).free);
  for (std::uint32_t p = 0; p < g_.ports(); ++p) {
    PointPort& port = arena_.port(source * g_.ports() + p);
    port.free = ready + 1;
    count(port, Reach::broadcast, queues_of(cimf, g_, p, g_.digit(here, p / g_.section_ports())));
  }
  ++header().totals.messages;
  if (const std::uint32_t others = who & ~(1u << q); others != 0)
    schedule(ready + p_.flits - 1, make_copy(frame, here, others, kSingle, ready));
  spread(frame, here, kNone, who, q, ready);
}

/// Copies to the neighbours in all sections above one.
void Network::spread(FrameId frame, std::uint32_t card, std::uint32_t from_section, std::uint32_t who, std::uint32_t q,
                     std::uint64_t ready) {
  for (std::uint32_t s = from_section + 1; s < g_.dimensions; ++s) {  // kNone + 1 is 0
    const std::uint32_t own = g_.digit(card, s);
    for (std::uint32_t j = 0; j < g_.radix; ++j) {
      if (j == own) continue;
      const std::uint32_t direction = s * g_.radix + j, line = g_.line_from(card, direction);
      const std::uint32_t copy = make_copy(frame, g_.line_target(line), who, kSpreading, ready);
      if (line_works(line)) push(copy, line, q);
      else send_one_by_one(copy, card, direction, q);
    }
  }
}

/// A broadcast's copy whose line is dead becomes messages to each of the cards that it would have got to.
void Network::send_one_by_one(std::uint32_t copy, std::uint32_t card, std::uint32_t direction, std::uint32_t q) {
  const Copy old = arena_.copy(copy);
  ++arena_.message(old.frame).outstanding;
  release(copy);
  const std::uint32_t section = g_.section_of(direction), lower = g_.weight[section] * g_.radix;
  for (std::uint32_t to = old.target % lower; to < g_.cards; to += lower)
    dispatch(make_copy(old.frame, to, old.who, kSingle, old.ready), card, q);
  made(old.frame);
}

std::uint32_t Network::make_copy(FrameId frame, std::uint32_t target, std::uint32_t who, CopyKind kind,
                                 std::uint64_t ready) {
  PointHeader& h = header();
  std::uint32_t i = h.free_copy;
  if (i != kNone) h.free_copy = arena_.copy(i).next;
  else i = h.copies_used++;
  ++arena_.message(frame).outstanding;
  arena_.copy(i) = {frame, target, kNone, kNone, ready, static_cast<std::uint8_t>(who), kind, 0, 0};
  return i;
}

/// All copies of a message have been made: the last one that ends is its end.
void Network::made(FrameId frame) {
  if (--arena_.message(frame).outstanding == 0) end(frame);
}

/// Others take its place.
void Network::release(std::uint32_t copy) {
  --arena_.message(arena_.copy(copy).frame).outstanding;
  arena_.copy(copy).next = header().free_copy;
  header().free_copy = copy;
}

void Network::dispatch(std::uint32_t copy, std::uint32_t card, std::uint32_t q) {
  const std::uint32_t direction = ways_.next(card, arena_.copy(copy).target);
  if (direction == kNone) return lose(copy, card);
  push(copy, g_.line_from(card, direction), q);
}

void Network::push(std::uint32_t copy, std::uint32_t line, std::uint32_t q) {
  Mini& mini = arena_.mini(mini_of(line, q));
  arena_.copy(copy).next = kNone;
  if (mini.first == kNone) mini.first = copy;
  else arena_.copy(mini.last).next = copy;
  mini.last = copy;
  mini.counters.most = std::max(mini.counters.most, ++mini.count);
  Line& l = arena_.line(line);
  if (l.waiting == 0) arena_.active().add(line);
  l.waiting = static_cast<std::uint16_t>(l.waiting | 1u << q);
  ++header().waiting;
  if (q < p_.processors) ++arena_.processor(g_.line_source(line) * p_.processors + q).waiting;
}

std::uint32_t Network::pop(std::uint32_t line, std::uint32_t q) {
  Mini& mini = arena_.mini(mini_of(line, q));
  const std::uint32_t copy = mini.first;
  Copy& c = arena_.copy(copy);
  mini.first = c.next;
  --mini.count;
  Line& l = arena_.line(line);
  if (mini.first == kNone) mini.last = kNone, l.waiting = static_cast<std::uint16_t>(l.waiting & ~(1u << q));
  if (l.waiting == 0) arena_.active().remove(line);
  --header().waiting;
  if (q < p_.processors) --arena_.processor(g_.line_source(line) * p_.processors + q).waiting;
  if (c.line_in != kNone) --arena_.line(c.line_in).stored, c.line_in = kNone;
  return copy;
}

// ---- faults ---------------------------------------------------------------------------------------------------------

void Network::set_line(std::uint32_t card, std::uint32_t direction, bool up) {
  if (card >= g_.cards || direction >= g_.directions()) return;
  const std::uint32_t there = g_.line_from(card, direction), target = g_.line_target(there);
  if (target == card) return;
  const std::uint32_t back =
      g_.line_from(target, g_.section_of(direction) * g_.radix + g_.digit(card, g_.section_of(direction)));
  if ((arena_.line(there).dead == 0) == up) return;
  arena_.line(there).dead = arena_.line(back).dead = up ? 0 : 1;
  change(up);
}

void Network::set_card(std::uint32_t card, bool up) {
  if (card >= g_.cards || (arena_.card(card).dead == 0) == up) return;
  arena_.card(card).dead = up ? 0 : 1;
  change(up);
}

void Network::set_processor(std::uint32_t node, bool up) {
  if (node >= g_.nodes() || (arena_.processor(node).dead == 0) == up) return;
  arena_.processor(node).dead = up ? 0 : 1;
  change(up);
}

void Network::change(bool up) {
  PointHeader& h = header();
  h.dead += up ? -1u : 1u;
  ++h.version;
  if (!up) reroute();
}

void Network::reroute() {
  for (std::uint32_t line = 0; line < g_.lines(); ++line) {
    if (arena_.line(line).waiting == 0 || line_works(line)) continue;
    const std::uint32_t card = g_.line_source(line);
    for (std::uint32_t q = 0; q <= p_.processors; ++q)
      while (arena_.mini(mini_of(line, q)).first != kNone) {
        const std::uint32_t copy = pop(line, q);
        Copy& c = arena_.copy(copy);
        c.ready = std::max(c.ready, header().now + 1);
        if (arena_.card(card).dead != 0) {
          lose(copy, card);
          continue;
        }
        ++arena_.card(card).counters.rerouted;
        if (c.kind == kSpreading) send_one_by_one(copy, card, g_.line_direction(line), q);
        else dispatch(copy, card, q);
      }
  }
}

}  // namespace ulfm::fabric::pointdesign
