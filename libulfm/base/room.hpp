// Room in lists for what cannot be taken back once it has happened: it is made before, where a lack of memory may be
// answered.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <vector>

namespace ulfm {

/// Makes room for `n` in all, and for more than that soon. Throws std::bad_alloc.
template <typename T>
void make_room_for(std::vector<T>& list, std::size_t n) {
  constexpr std::size_t kLeast = 8;
  if (n > list.capacity()) list.reserve(std::max({kLeast, n, 2 * list.capacity()}));
}

/// For one more at the end. False: there is no memory.
template <typename T>
[[nodiscard]] bool make_room_for_one(std::vector<T>& list) noexcept try {
  make_room_for(list, list.size() + 1);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace ulfm
