// Memory of a sender's unacknowledged frames: contiguous pieces, given back in the order they were taken.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>

namespace ulfm::reliable {

/// Grows, up to its limit, only at moments when nothing is in it, so that no piece ever moves.
class ByteRing {
 public:
  explicit ByteRing(std::size_t limit) : limit_(limit) {}

  /// A piece of `size` bytes (at most the limit); nullptr when there is no room or no memory now.
  std::byte* take(std::size_t size) noexcept {
    if (pieces_ == 0) {
      head_ = tail_ = 0;
      if (wanted_ < size) wanted_ = size;
      if (wanted_ > capacity_ && !grow()) return nullptr;
    }
    std::size_t at = head_;
    if (pieces_ != 0 && head_ <= tail_) {
      if (tail_ - head_ < size) return refuse();
    } else if (capacity_ - head_ < size) {
      if (tail_ < size) return refuse();
      at = 0;
    }
    head_ = at + size;
    ++pieces_;
    return bytes_.get() + at;
  }

  /// The oldest piece, which ends at `end`, is not needed any more.
  void give_back(const std::byte* end) noexcept {
    tail_ = static_cast<std::size_t>(end - bytes_.get());
    --pieces_;
  }
  /// The newest piece, which begins at `begin`, was not needed.
  void undo(const std::byte* begin) noexcept {
    head_ = static_cast<std::size_t>(begin - bytes_.get());
    --pieces_;
  }
  std::size_t capacity() const noexcept { return capacity_; }

 private:
  std::byte* refuse() noexcept {
    wanted_ = std::min(limit_, 2 * capacity_);
    return nullptr;
  }
  bool grow() noexcept {
    constexpr std::size_t kFirst = 16 * 1024;
    const std::size_t size = std::min(limit_, std::max(wanted_, kFirst));
    std::unique_ptr<std::byte[]> bytes(new (std::nothrow) std::byte[size]);
    if (!bytes) return capacity_ != 0 && wanted_ <= capacity_;
    bytes_ = std::move(bytes);
    capacity_ = size;
    return true;
  }

  std::unique_ptr<std::byte[]> bytes_;
  std::size_t limit_, capacity_ = 0, wanted_ = 0;
  std::size_t head_ = 0, tail_ = 0;
  std::size_t pieces_ = 0;
};

}  // namespace ulfm::reliable
