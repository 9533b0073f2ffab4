// Message ids: a limited number of them, handed out in turn so that one that was released is not at once
// another's.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "message.hpp"

namespace nx2 {

class MessageIds {
 public:
  static constexpr std::int32_t kMost = 8192;

  /// A fresh request under a new id; nullptr when all are in use ("Too many requests").
  Request* take() {
    for (std::int32_t looks = 0; looks < kMost; ++looks) {
      last_ = last_ % kMost + 1;
      auto& slot = slots_[static_cast<std::size_t>(last_ - 1)];
      if (slot.used) continue;
      if (!slot.request) slot.request = std::make_unique<Request>();
      *slot.request = Request{};
      slot.request->id = last_;
      slot.used = slot.named = true;
      return slot.request.get();
    }
    return nullptr;
  }

  /// The request of an id that the program may use.
  Request* find(std::int32_t id) {
    if (id < 1 || id > kMost) return nullptr;
    auto& slot = slots_[static_cast<std::size_t>(id - 1)];
    return slot.named ? slot.request.get() : nullptr;
  }

  /// The id is not the program's any more; its request stays until release().
  void take_name(const Request& request) { slot_of(request).named = false; }

  void release(const Request& request) { slot_of(request) = {std::move(slot_of(request).request), false, false}; }

 private:
  struct Slot {
    std::unique_ptr<Request> request;
    bool used = false, named = false;
  };
  Slot& slot_of(const Request& request) { return slots_[static_cast<std::size_t>(request.id - 1)]; }

  std::array<Slot, kMost> slots_;
  std::int32_t last_ = 0;
};

}  // namespace nx2
