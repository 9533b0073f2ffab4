// Generalized hypercubes of cards: "gh:NxKxP".
#include <string>

#include <fmt/core.h>

#include "fabric/topology/shapes.hpp"

namespace ulfm::fabric {

// Card numbers in radix k are their coordinates. Port s * k + j of a card leads, along section s, to the card whose
// digit of weight k^s is j; one port of each section would lead to the card itself and has nothing. The processors are
// behind them.
Result<Topology> make_hypercube(std::string_view description, std::span<const std::uint32_t> sizes) {
  const auto refuse = [&](const std::string& why) {
    return fail(Errc::invalid, fmt::format("topology \"{}\": {}", description.substr(0, 80), why));
  };
  if (sizes.size() != 3) return refuse("needs dimensions, cards in each, and processors a card, as in gh:2x4x8");
  const std::uint32_t n = sizes[0], k = sizes[1], p = sizes[2];
  std::uint64_t cards = 1;
  for (std::uint32_t s = 0; s < n && cards <= kMaxSwitches; ++s) cards *= k;
  if (n < 1 || n > 8 || k < 2 || p < 1 || p > 8 || cards > kMaxSwitches || n * k + p > 255)
    return refuse(
        "a generalized hypercube has 1 to 8 dimensions with 2 or more cards in each and 1 to 8 processors a "
        "card; up to 4096 cards, with up to 255 ports each");
  Topology t = bare_topology(std::string(description), Shape::hypercube, n * k + p, static_cast<std::uint32_t>(cards));
  t.dimension = n, t.radix = k, t.card_processors = p;
  for (std::uint32_t card = 0; card < t.switches; ++card) {
    std::string& name = t.switch_names.emplace_back("c");
    for (std::uint32_t s = n, weight = t.switches; s-- > 0;)
      weight /= k, name += fmt::format("{}{}", card / weight % k, s == 0 ? "" : "_");
    for (std::uint32_t s = 0, weight = 1; s < n; ++s, weight *= k) {
      const std::uint32_t own = card / weight % k;
      for (std::uint32_t j = own + 1; j < k; ++j) join(t, {card, s * k + j}, {card + (j - own) * weight, s * k + own});
    }
    for (std::uint32_t q = 0; q < p; ++q) attach_node(t, {card, n * k + q});
  }
  return t;
}

}  // namespace ulfm::fabric
