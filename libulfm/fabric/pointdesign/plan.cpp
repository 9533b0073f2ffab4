#include "fabric/pointdesign/plan.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <map>

namespace ulfm::fabric::pointdesign {
namespace {

// Sets of processors that one DP can name, each once, the largest first.
std::vector<std::uint32_t> nameable(std::uint32_t processors) {
  std::vector<std::uint32_t> sets;
  for (std::uint32_t set = 1; set < 1u << processors; ++set) {
    Processors ignored;
    if (write_processors(set, processors, ignored)) sets.push_back(set);
  }
  std::sort(sets.begin(), sets.end(), [](std::uint32_t a, std::uint32_t b) {
    return std::pair(-std::popcount(a), a) < std::pair(-std::popcount(b), b);
  });
  return sets;
}

// Depth first: the lowest processor of the first set that is not made up yet needs some name.
class Search {
 public:
  Search(std::span<const std::uint32_t> sets, std::uint32_t processors)
      : left_(sets.begin(), sets.end()), names_(nameable(processors)) {}

  std::vector<std::uint32_t> best() {
    for (limit_ = 1; limit_ <= kMostProcessors; ++limit_)
      if (go(0)) return chosen_;
    return chosen_;
  }

 private:
  bool go(std::size_t at) {
    while (at < left_.size() && left_[at] == 0) ++at;
    if (at == left_.size()) return true;
    const std::uint32_t lowest = left_[at] & ~(left_[at] - 1), before = left_[at];
    for (const std::uint32_t name : names_) {
      if ((name & lowest) == 0 || (name & ~before) != 0) continue;
      const bool known = std::find(chosen_.begin(), chosen_.end(), name) != chosen_.end();
      if (!known && chosen_.size() == limit_) continue;
      left_[at] = before & ~name;
      if (!known) chosen_.push_back(name);
      if (go(at)) return true;
      if (!known) chosen_.pop_back();
      left_[at] = before;
    }
    return false;
  }

  std::vector<std::uint32_t> left_, names_, chosen_;
  std::size_t limit_ = 0;
};

// Which of the names make up the set, each processor once; the search has found that some do.
bool compose(std::uint32_t set, std::span<const std::uint32_t> names, std::vector<std::uint32_t>& out) {
  if (set == 0) return true;
  for (const std::uint32_t name : names) {
    if ((name & (set & ~(set - 1))) == 0 || (name & ~set) != 0) continue;
    out.push_back(name);
    if (compose(set & ~name, names, out)) return true;
    out.pop_back();
  }
  return false;
}

Processors written(std::uint32_t set, std::uint32_t processors) {
  Processors who;
  write_processors(set, processors, who);
  return who;
}

// Cards of one port, and the processors that are meant on each.
struct Group {
  std::uint32_t port = 0, cards[kPortCards] = {}, sets[kPortCards] = {};
};

class Planner {
 public:
  Planner(const CardGeometry& geometry, std::uint32_t source)
      : g_(geometry), card_(geometry.card_of(source)), mine_(1u << geometry.processor_of(source)) {}

  std::vector<Outgoing> run(std::uint32_t source, std::span<const std::uint32_t> to) {
    for (const std::uint32_t node : to)
      if (node != source) sets_[g_.card_of(node)] |= 1u << g_.processor_of(node);
    if (!sets_.empty()) try_with_broadcasts(common(), nameable(g_.processors), {});
    return best_;
  }

 private:
  // Processors that are meant on each card there is. The source itself may be reached besides: it takes nothing.
  std::uint32_t common() const {
    if (sets_.size() + 1 < g_.cards || g_.cards == 1) return 0;
    std::uint32_t set = (1u << g_.processors) - 1;
    for (std::uint32_t card = 0; card < g_.cards; ++card) {
      const auto it = sets_.find(card);
      set &= (it == sets_.end() ? 0 : it->second) | (card == card_ ? mine_ : 0);
    }
    return set;
  }

  // Some of what all cards have in common by broadcasts, everything else card by card and port by port.
  void try_with_broadcasts(std::uint32_t left, std::span<const std::uint32_t> names,
                           const std::vector<Outgoing>& broadcasts) {
    auto rest = sets_;
    for (const Outgoing& one : broadcasts)
      for (auto& [card, set] : rest) set &= ~processors_of(one.who, g_.processors);
    std::erase_if(rest, [](const auto& one) { return one.second == 0; });
    // Table 1 has a card's own place behind a port of each section.
    for (std::uint32_t section = 0; section < (rest.contains(card_) ? g_.dimensions : 1); ++section) {
      auto all = broadcasts;
      add_all(rest, section, all);
      if (best_.empty() || all.size() < best_.size()) best_ = std::move(all);
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      if ((names[i] & ~left) != 0 || broadcasts.size() + 1 >= best_.size()) continue;
      auto more = broadcasts;
      more.push_back({Reach::broadcast, written(names[i], g_.processors)});
      try_with_broadcasts(left & ~names[i], names.subspan(i + 1), more);
    }
  }

  const std::vector<Processors>& codes_of(std::uint32_t set) {
    std::vector<Processors>& known = codes_[set];
    if (known.empty()) known = fewest_codes(std::array{set}, g_.processors);
    return known;
  }

  void add_all(const std::map<std::uint32_t, std::uint32_t>& sets, std::uint32_t section, std::vector<Outgoing>& all) {
    std::map<std::uint32_t, Group> groups;
    for (const auto& [card, set] : sets) {
      const std::uint32_t hops = g_.hops(card_, card);
      if (hops > 1) {
        for (const Processors& who : codes_of(set)) all.push_back(far(card, who));
        continue;
      }
      std::uint32_t s = section;
      for (std::uint32_t i = 0; i < g_.dimensions && hops == 1; ++i)
        if (g_.digit(card, i) != g_.digit(card_, i)) s = i;
      const std::uint32_t direction = s * g_.radix + g_.digit(card, s), port = g_.port_of(direction);
      Group& group = groups[port];
      group.port = port;
      group.cards[direction % g_.radix % kPortCards] = card;
      group.sets[direction % g_.radix % kPortCards] = set;
    }
    for (const auto& [port, group] : groups) add(group, all);
  }

  Outgoing far(std::uint32_t card, const Processors& who) const {
    Outgoing one;
    one.who = who, one.card = card;
    for (std::uint32_t s = g_.dimensions; s-- > 0;)
      if (g_.digit(card, s) != g_.digit(card_, s)) one.port = g_.port_of(s * g_.radix + g_.digit(card, s));
    return one;
  }

  void add(const Group& group, std::vector<Outgoing>& all) const {
    const std::vector<std::uint32_t> names = Search(group.sets, g_.processors).best();
    std::map<std::uint32_t, std::uint8_t> masks;
    for (std::uint32_t i = 0; i < kPortCards; ++i) {
      std::vector<std::uint32_t> parts;
      compose(group.sets[i], names, parts);
      for (const std::uint32_t part : parts) masks[part] = static_cast<std::uint8_t>(masks[part] | 1u << i);
    }
    for (const auto& [set, mask] : masks) {
      Outgoing one;
      one.who = written(set, g_.processors), one.port = group.port;
      if (std::has_single_bit(mask)) {
        one.card = group.cards[std::countr_zero(mask)];
      } else {
        const std::uint32_t section = group.port / g_.section_ports();
        one.reach = g_.dimensions == 1 || section == 1 ? Reach::multicast_dd0 : Reach::multicast_dd1;
        one.mask = mask;
      }
      all.push_back(one);
    }
  }

  CardGeometry g_;
  std::uint32_t card_, mine_;
  std::map<std::uint32_t, std::uint32_t> sets_;  // by card: processors that are meant
  std::map<std::uint32_t, std::vector<Processors>> codes_;
  std::vector<Outgoing> best_;
};

}  // namespace

std::vector<Processors> fewest_codes(std::span<const std::uint32_t> sets, std::uint32_t processors) {
  std::vector<Processors> all;
  for (const std::uint32_t set : Search(sets, processors).best()) all.push_back(written(set, processors));
  return all;
}

std::vector<Outgoing> plan(const CardGeometry& geometry, std::uint32_t source, std::span<const std::uint32_t> to) {
  return Planner(geometry, source).run(source, to);
}

Cimf to_cimf(const Outgoing& m, const CardGeometry& g, std::uint32_t source, bool dma, std::uint32_t address) {
  Cimf c;
  c.dma = dma, c.who = m.who, c.cdd = m.reach, c.ma = address;
  const std::uint32_t card = m.reach == Reach::unicast ? m.card : g.card_of(source);
  c.dd0 = dd0_of(g, card), c.dd1 = dd1_of(g, card);
  if (m.reach == Reach::broadcast) {
    c.bc = c.dd0 = c.dd1 = kBroadcast;
    if (m.who.cdp == Processors::all) c.who = {0, false, Processors::code};  // as the thesis writes it
  } else if (m.reach != Reach::unicast) {
    (m.reach == Reach::multicast_dd0 ? c.dd0 : c.dd1) = m.mask >> 2;
    c.xdd = m.mask & 3;
  }
  return c;
}

Dmf to_dmf(const Cimf& m, const CardGeometry& g, std::uint32_t source, std::uint32_t section,
           std::uint32_t coordinate) noexcept {
  Dmf d;
  const std::uint32_t card = g.card_of(source);
  d.sd0 = dd0_of(g, card), d.sd1 = dd1_of(g, card), d.sp = static_cast<std::uint8_t>(g.processor_of(source));
  d.dd0 = m.dd0, d.dd1 = m.dd1, d.dma = m.dma, d.who = m.who, d.ma = m.ma, d.data = m.data;
  if (m.cdd == Reach::multicast_dd0 || m.cdd == Reach::multicast_dd1)
    (g.dimensions == 1 || section == 1 ? d.dd0 : d.dd1) = static_cast<std::uint8_t>(coordinate);
  return d;
}

}  // namespace ulfm::fabric::pointdesign
