// Events in the order of their times: binary heaps in the arena of a model.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ulfm::fabric {

/// Puts `item` into a heap of `size` items, least first, whose place `hole` is free; other items move to make room for
/// it. get(i) is the item at a place, put(i, item) puts one there, and before(a, b) is their order. To add an item, the
/// hole is behind the last; to take one out, the last item goes into its hole.
template <typename Item, typename Get, typename Put, typename Before>
void fill_hole(std::uint32_t size, std::uint32_t hole, const Item& item, Get get, Put put, Before before) {
  while (hole != 0) {
    const std::uint32_t parent = (hole - 1) / 2;
    if (!before(item, get(parent))) break;
    put(hole, get(parent));
    hole = parent;
  }
  for (std::uint32_t child = 2 * hole + 1; child < size; child = 2 * hole + 1) {
    if (child + 1 < size && before(get(child + 1), get(child))) ++child;
    if (!before(get(child), item)) break;
    put(hole, get(child));
    hole = child;
  }
  put(hole, item);
}

/// An event of an owner, at a place of an IndexedHeap.
struct HeapItem {
  std::uint64_t key;    ///< the least is the first
  std::uint32_t owner;  ///< below the number of items
  std::uint32_t place;  ///< where the event of the owner with this item's index is; IndexedHeap::kNowhere: it has none
};

/// A heap with at most one event of each owner, which can be found, moved and taken out. A view of memory in an arena;
/// others may write anything there: no call leaves the items.
class IndexedHeap {
 public:
  static constexpr std::uint32_t kNowhere = ~std::uint32_t{0};

  /// `size` is how many events there are; it lies in the arena too.
  IndexedHeap(HeapItem* items, std::uint32_t capacity, std::uint32_t& size) noexcept
      : items_(items), capacity_(capacity), size_(size) {}

  /// In new memory.
  void clear() const noexcept {
    size_ = 0;
    for (std::uint32_t i = 0; i < capacity_; ++i) items_[i].place = kNowhere;
  }
  bool empty() const noexcept { return size_ == 0; }
  std::uint64_t least_key() const noexcept { return items_[0].key; }
  std::uint32_t first_owner() const noexcept { return items_[0].owner; }
  /// The owner has an event.
  bool has(std::uint32_t owner) const noexcept { return owner < capacity_ && items_[owner].place != kNowhere; }

  /// The owner's event has that key from now on. False, with nothing done, when somebody has written into the memory.
  bool put(std::uint32_t owner, std::uint64_t key) const noexcept {
    if (owner >= capacity_) return false;
    std::uint32_t size = size_, hole = items_[owner].place;
    if (hole == kNowhere) hole = size++;
    if (hole >= size || size > capacity_) return false;
    size_ = size;
    fill(size, hole, {key, owner, 0});
    return true;
  }
  /// The owner has no event from now on. False as above.
  bool remove(std::uint32_t owner) const noexcept {
    if (!has(owner)) return owner < capacity_;
    const std::uint32_t hole = items_[owner].place, last = size_ - 1;
    if (hole > last || last >= capacity_ || items_[hole].owner != owner) return false;
    items_[owner].place = kNowhere;
    size_ = last;
    if (hole != last) fill(last, hole, items_[last]);
    return true;
  }

 private:
  void fill(std::uint32_t size, std::uint32_t hole, HeapItem item) const noexcept {
    fill_hole(
        size, hole, item, [this](std::uint32_t i) -> const HeapItem& { return items_[i]; },
        [this](std::uint32_t place, const HeapItem& moved) {
          items_[place].key = moved.key;
          items_[place].owner = moved.owner;
          if (moved.owner < capacity_) items_[moved.owner].place = place;
        },
        [](const HeapItem& a, const HeapItem& b) { return a.key < b.key; });
  }

  HeapItem* items_;
  std::uint32_t capacity_;
  std::uint32_t& size_;
};

}  // namespace ulfm::fabric
