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
  explicit ByteRing(std::size_t limit) : limit_(rounded(limit)) {}

  /// A piece of `size` bytes (at most the limit); nullptr when there is no room or no memory now.
  std::byte* take(std::size_t size) noexcept {
    size = rounded(size);
    if (pieces_ == 0) {
      head_ = tail_ = 0;
      if (wanted_ < size) wanted_ = size;
      if (wanted_ > capacity_ && !grow() && capacity_ < size) return nullptr;
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

  /// The oldest piece is not needed any more.
  void give_back(const std::byte* piece, std::size_t size) noexcept {
    tail_ = static_cast<std::size_t>(piece - bytes_.get()) + rounded(size);
    --pieces_;
  }
  /// The newest piece, which begins at `begin`, was not needed.
  void undo(const std::byte* begin) noexcept {
    head_ = static_cast<std::size_t>(begin - bytes_.get());
    --pieces_;
  }
  std::size_t capacity() const noexcept { return capacity_; }

 private:
  // Whole lines of 16, so that even an empty piece has a place of its own.
  static constexpr std::size_t rounded(std::size_t size) noexcept {
    return (std::max<std::size_t>(size, 1) + 15) & ~std::size_t{15};
  }
  std::byte* refuse() noexcept {
    wanted_ = std::min(limit_, 2 * capacity_);
    return nullptr;
  }
  bool grow() noexcept {
    constexpr std::size_t kFirst = 16 * 1024;
    const std::size_t size = std::min(limit_, std::max(wanted_, kFirst));
    std::unique_ptr<std::byte[]> bytes(new (std::nothrow) std::byte[size]);
    if (!bytes) return false;
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
