// The message cache: messages that arrived while every receive buffer of the port held valid data (paper 2.3, 2.4).
// Never lost, never overwritten, in order. Bounded by a number of bytes; a full cache leaves arrivals where they are,
// which stops their senders.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <span>

#include "port/address.hpp"

namespace ulfm {

/// Bytes from malloc, so that a failure is a null and not an exception.
struct FreeDeleter {
  void operator()(std::byte* p) const noexcept { std::free(p); }
};
using HeapBytes = std::unique_ptr<std::byte, FreeDeleter>;

inline HeapBytes allocate_bytes(std::size_t n) noexcept {
  return HeapBytes(static_cast<std::byte*>(std::malloc(n == 0 ? 1 : n)));
}

struct CachedMessage {
  HeapBytes bytes;
  std::size_t size = 0;
  PortAddress source;
};

class MessageCache {
 public:
  /// `limit` 0: what memory allows.
  explicit MessageCache(std::size_t limit = 0) : limit_(limit) {}

  bool empty() const noexcept { return messages_.empty(); }
  std::size_t bytes() const noexcept { return held_; }

  /// Room for that many bytes more. A single message above the limit is taken by an empty cache, or nobody could.
  bool has_room(std::size_t size) const noexcept { return limit_ == 0 || messages_.empty() || held_ + size <= limit_; }

  /// Takes a copy. False, with nothing taken, without room or memory.
  bool add(std::span<const std::byte> bytes, PortAddress source) {
    if (!has_room(bytes.size())) return false;
    HeapBytes copy = allocate_bytes(bytes.size());
    if (!copy) return false;
    if (!bytes.empty()) std::memcpy(copy.get(), bytes.data(), bytes.size());
    add(CachedMessage{std::move(copy), bytes.size(), source});
    return true;
  }
  /// Takes a message that lies in memory of its own already.
  void add(CachedMessage message) {
    held_ += message.size;
    messages_.push_back(std::move(message));
  }

  /// The oldest; the cache is not empty.
  CachedMessage take() {
    CachedMessage message = std::move(messages_.front());
    messages_.pop_front();
    held_ -= message.size;
    return message;
  }

 private:
  std::deque<CachedMessage> messages_;
  std::size_t limit_;
  std::size_t held_ = 0;
};

}  // namespace ulfm
