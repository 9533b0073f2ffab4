#include "base/copy.hpp"

namespace ulfm {

void copy_by_moves(std::byte* to, const std::byte* from, std::size_t n) noexcept {
  using Move [[gnu::vector_size(16)]] = unsigned char;
  constexpr std::size_t kMove = sizeof(Move), kTurn = 4 * kMove;
  for (; n >= kTurn; n -= kTurn, to += kTurn, from += kTurn) {
    Move a, b, c, d;
    std::memcpy(&a, from, kMove);
    std::memcpy(&b, from + kMove, kMove);
    std::memcpy(&c, from + 2 * kMove, kMove);
    std::memcpy(&d, from + 3 * kMove, kMove);
    std::memcpy(to, &a, kMove);
    std::memcpy(to + kMove, &b, kMove);
    std::memcpy(to + 2 * kMove, &c, kMove);
    std::memcpy(to + 3 * kMove, &d, kMove);
  }
  std::memcpy(to, from, n);
}

}  // namespace ulfm
