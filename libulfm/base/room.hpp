// Room in lists for what cannot be taken back once it has happened: it is made before, where a lack of memory may be
// answered.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <vector>

namespace ulfm {

/// Makes room for one more at the end, so that adding it cannot fail. False: there is no memory.
template <typename T>
[[nodiscard]] bool make_room_for_one(std::vector<T>& list) noexcept {
  constexpr std::size_t kLeast = 8;
  if (list.size() < list.capacity()) return true;
  try {
    list.reserve(std::max(kLeast, 2 * list.size()));
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

}  // namespace ulfm
