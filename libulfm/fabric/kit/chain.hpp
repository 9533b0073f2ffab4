// Lists of messages in the arena of a model: those that have ended and are to be handed out.
#pragma once

#include <cstdint>

namespace ulfm::fabric {

/// A list in the order in which its messages came. They are chained by their numbers; next(number) is where the number
/// behind one is. A message is in one list at a time.
struct Chain {
  static constexpr std::uint32_t kEnd = ~std::uint32_t{0};
  std::uint32_t first, last, count;

  bool empty() const noexcept { return count == 0; }
  void clear() noexcept { first = last = kEnd, count = 0; }
  template <typename Next>
  void append(std::uint32_t number, Next next) noexcept {
    next(number) = kEnd;
    if (count++ == 0) first = number;
    else next(last) = number;
    last = number;
  }
  /// Takes the first off, of a list that is not empty.
  template <typename Next>
  std::uint32_t take(Next next) noexcept {
    const std::uint32_t number = first;
    first = next(number);
    if (--count == 0) first = last = kEnd;
    return number;
  }
};

}  // namespace ulfm::fabric
