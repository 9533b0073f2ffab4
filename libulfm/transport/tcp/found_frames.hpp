// Frames that were found and wait to be taken, the first first. Room for one is made before it is found, so that none
// is lost for want of memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/room.hpp"
#include "transport/tcp/link.hpp"

namespace ulfm::tcp {

/// A frame that was found.
struct ReceivedFrame {
  TcpLink* link;
  Block* block;  ///< none: the data lie in their place already
  const std::byte* header_at;
  const std::byte* at;  ///< of the data
  std::uint32_t origin, length;
  std::uint8_t header;
  Kind kind;
};

class FoundFrames {
 public:
  bool empty() const noexcept { return first_ == frames_.size(); }
  /// For one more. False: there is no memory.
  [[nodiscard]] bool make_room() noexcept {
    if (frames_.size() == frames_.capacity() && 2 * first_ >= frames_.size()) {
      frames_.erase(frames_.begin(), begin());
      first_ = 0;
    }
    return make_room_for_one(frames_);
  }
  void add(const ReceivedFrame& one) { frames_.push_back(one); }
  ReceivedFrame take() noexcept {
    const ReceivedFrame one = frames_[first_++];
    if (empty()) {
      frames_.clear();
      first_ = 0;
    }
    return one;
  }
  std::vector<ReceivedFrame>::iterator begin() noexcept {
    return frames_.begin() + static_cast<std::ptrdiff_t>(first_);
  }
  std::vector<ReceivedFrame>::iterator end() noexcept { return frames_.end(); }
  /// Those for which `is_to_go` is true.
  template <typename IsToGo>
  void drop_if(IsToGo is_to_go) {
    frames_.erase(std::remove_if(begin(), end(), is_to_go), end());
  }

 private:
  std::vector<ReceivedFrame> frames_;
  std::size_t first_ = 0;
};

}  // namespace ulfm::tcp
