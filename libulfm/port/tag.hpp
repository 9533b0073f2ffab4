// The tag of a buffer: 0 = free, 1 = holds valid data (paper 2.3, figure 5).
//
//   send buffer:     the application sets it before it pushes the port number; the interface clears it when the data
//                    have left.
//   receive buffer:  the interface sets it when data have arrived; the application clears it when it has read them.
#pragma once

#include <atomic>
#include <cstdint>

namespace ulfm {

class Tag {
 public:
  /// 0 -> 1. False when the buffer holds valid data already: it must not be overwritten.
  bool set() noexcept {
    if (value_.load(std::memory_order_acquire) != 0) return false;  // pairs with clear()
    value_.store(1, std::memory_order_release);                     // pairs with valid(): the data come before the tag
    return true;
  }
  /// 1 -> 0. False when it is free already.
  bool clear() noexcept {
    if (value_.load(std::memory_order_relaxed) == 0) return false;
    value_.store(0, std::memory_order_release);  // pairs with set(), valid(): reading comes before writing
    return true;
  }
  bool valid() const noexcept { return value_.load(std::memory_order_acquire) != 0; }

 private:
  std::atomic<std::uint32_t> value_{0};
};

}  // namespace ulfm
