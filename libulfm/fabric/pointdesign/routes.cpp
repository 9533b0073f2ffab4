#include "fabric/pointdesign/routes.hpp"

namespace ulfm::fabric::pointdesign {
namespace {
constexpr std::uint16_t kFar = 0xffff;
}

// Lines die both ways, so the distances to a card are those from it.
const std::vector<std::uint16_t>& Ways::distances(std::uint32_t target) {
  if (version_ != health_.version() || distance_.empty()) {
    version_ = health_.version();
    distance_.assign(g_.cards, {});
  }
  std::vector<std::uint16_t>& distance = distance_[target];
  if (!distance.empty()) return distance;
  distance.assign(g_.cards, kFar);
  distance[target] = 0;
  std::vector<std::uint32_t> queue{target};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const std::uint32_t card = queue[i];
    for (std::uint32_t d = 0; d < g_.directions(); ++d) {
      const std::uint32_t to = g_.neighbour(card, g_.section_of(d), d % g_.radix);
      if (to == card || distance[to] != kFar || !works(card, d)) continue;
      distance[to] = static_cast<std::uint16_t>(distance[card] + 1);
      queue.push_back(to);
    }
  }
  return distance;
}

std::uint32_t Ways::next(std::uint32_t card, std::uint32_t target) {
  if (card == target) return kNone;
  if (!health_.any_dead()) {
    for (std::uint32_t s = 0; s < g_.dimensions; ++s)
      if (g_.digit(card, s) != g_.digit(target, s)) return s * g_.radix + g_.digit(target, s);
    return kNone;
  }
  const std::vector<std::uint16_t>& distance = distances(target);
  if (distance[card] == kFar) return kNone;
  for (std::uint32_t d = 0; d < g_.directions(); ++d) {
    const std::uint32_t to = g_.neighbour(card, g_.section_of(d), d % g_.radix);
    if (to != card && distance[to] + 1 == distance[card] && works(card, d)) return d;
  }
  return kNone;
}

std::uint32_t Ways::other(std::uint32_t card, std::uint32_t target, std::uint32_t tried, std::uint32_t times) {
  for (std::uint32_t i = 1; i < g_.dimensions; ++i) {
    const std::uint32_t s = (g_.section_of(tried) + i) % g_.dimensions;
    const std::uint32_t d = s * g_.radix + g_.digit(target, s);
    if (g_.digit(card, s) != g_.digit(target, s) && works(card, d) &&
        reaches(g_.neighbour(card, s, g_.digit(target, s)), target))
      return d;
  }
  const std::uint32_t s = g_.section_of(tried);
  for (std::uint32_t i = 0; i < g_.radix; ++i) {
    const std::uint32_t j = (tried % g_.radix + times + i) % g_.radix;
    const std::uint32_t d = s * g_.radix + j, to = g_.neighbour(card, s, j);
    if (d != tried && to != card && works(card, d) && reaches(to, target)) return d;
  }
  return next(card, target);
}

}  // namespace ulfm::fabric::pointdesign
