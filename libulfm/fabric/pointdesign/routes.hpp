// The next card on the way, also where lines and cards are dead.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fabric/pointdesign/geometry.hpp"

namespace ulfm::fabric::pointdesign {

/// Dead lines, cards and processors. Both directions of a line die together.
class Health {
 public:
  virtual ~Health() = default;
  virtual bool line_works(std::uint32_t line) const = 0;  ///< and both its cards do
  virtual bool any_dead() const = 0;
  virtual std::uint64_t version() const = 0;  ///< another one after each change
};

/// Shortest ways. With everything alive a message goes along the sections in rising order; around what is dead it takes
/// the first direction that is on a shortest way left. Every line it takes brings it nearer, so it cannot go in circles
/// while nothing changes. One thread at a time.
class Ways {
 public:
  Ways(const CardGeometry& geometry, const Health& health) : g_(geometry), health_(health) {}
  /// Direction to leave `card` by towards another card; kNone: there is no way.
  std::uint32_t next(std::uint32_t card, std::uint32_t target);
  /// Another one, for a message that was turned away `times` times, last at direction `tried`: the next section that
  /// brings it nearer, then other cards of the same section in turn. next() again when there is no other.
  std::uint32_t other(std::uint32_t card, std::uint32_t target, std::uint32_t tried, std::uint32_t times);
  bool reaches(std::uint32_t card, std::uint32_t target) { return card == target || next(card, target) != kNone; }

 private:
  bool works(std::uint32_t card, std::uint32_t direction) const {
    return health_.line_works(g_.line_from(card, direction));
  }
  const std::vector<std::uint16_t>& distances(std::uint32_t target);

  CardGeometry g_;
  const Health& health_;
  std::uint64_t version_ = 0;
  std::vector<std::vector<std::uint16_t>> distance_;  ///< by target, where it was asked for
};

}  // namespace ulfm::fabric::pointdesign
