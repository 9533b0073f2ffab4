// Messages of any length as frames, and back.
//
// The first frame's header is 8 bytes, the length of the whole message, little-endian; `more` frames follow without a
// header until that many bytes have come. Frames of one sender arrive in order, so nothing else is needed. What belongs
// to a tree (port/tree.hpp) has 8 bytes more, which say what it is.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "transport/contract.hpp"

namespace ulfm {

inline constexpr std::size_t kMessageHeader = 8, kTreeHeader = 16;

/// What a message is: one of its sender, the list of ports that its receiver is to serve, or one that goes to these
/// too.
enum class Meaning : std::uint8_t { message, list, branch };

// Not byte by byte: GCC 12 leaves that as it is, and it is on the way of every message.
constexpr std::uint64_t little_endian(std::uint64_t n) noexcept {
  return std::endian::native == std::endian::little ? n : __builtin_bswap64(n);
}
inline void put_length(std::byte* to, std::uint64_t length) noexcept {
  length = little_endian(length);
  std::memcpy(to, &length, sizeof length);
}
inline std::uint64_t get_length(const std::byte* from) noexcept {
  std::uint64_t length = 0;
  std::memcpy(&length, from, sizeof length);
  return little_endian(length);
}

/// Sends a message of one frame: at most kLeastFrame bytes, which any can carry, or what the outlet's do. False without
/// room.
inline bool push_whole(Outlet& outlet, Gather& data, std::size_t size) noexcept {
  std::byte header[kMessageHeader];
  put_length(header, size);
  return outlet.push(Kind::first, header, data, size);
}
inline bool push_whole(Outlet& outlet, const std::byte* bytes, std::size_t size) noexcept {
  const iovec piece{const_cast<std::byte*>(bytes), size};
  Gather data(std::span(&piece, 1));
  return push_whole(outlet, data, size);
}

/// Sends a message piece by piece.
class FrameSender {
 public:
  FrameSender() = default;
  FrameSender(const std::byte* bytes, std::size_t size, Meaning meaning = Meaning::message)
      : bytes_(bytes), size_(size), meaning_(meaning) {}

  /// Pushes as many frames as there is room for; true when the whole message has gone.
  bool advance(Outlet& outlet) noexcept {
    if (size_ <= kLeastFrame && meaning_ == Meaning::message) return push_whole(outlet, bytes_, size_);
    std::byte header[kTreeHeader];
    put_length(header, size_);
    put_length(header + kMessageHeader, static_cast<std::uint64_t>(meaning_));
    const std::size_t all = meaning_ == Meaning::message ? kMessageHeader : kTreeHeader;
    while (!begun_ || sent_ < size_) {
      const std::size_t head = begun_ ? 0 : all;
      const std::size_t length = std::min(size_ - sent_, begun_ ? outlet.max_frame(head) : outlet.max_begin(head));
      const iovec piece{const_cast<std::byte*>(bytes_) + sent_, length};
      Gather data(std::span(&piece, 1));
      if (!outlet.push(begun_ ? Kind::more : Kind::first, std::span(header, head), data, length)) return false;
      begun_ = true;
      sent_ += length;
    }
    return true;
  }

 private:
  const std::byte* bytes_ = nullptr;
  std::size_t size_ = 0, sent_ = 0;
  bool begun_ = false;
  Meaning meaning_ = Meaning::message;
};

/// What the next frame of a sender means, given where its message stands.
class FrameReader {
 public:
  enum class Step { whole, begins, continues, completes, broken };

  /// The frame is a message, which most are; nothing is noted.
  bool is_whole(const Frame& frame) const noexcept {
    return frame.kind == Kind::first && frame.header_length == kMessageHeader && got_ == total_ &&
           get_length(frame.header) == frame.length;
  }

  /// Looks at a frame. For `whole` the frame is the message. For the others the caller copies the frame's data to
  /// offset() of a buffer of total() bytes.
  Step step(const Frame& frame) noexcept {
    offset_ = got_;
    if (frame.kind == Kind::first) {
      if (got_ != total_ || !read_meaning(frame)) return Step::broken;
      total_ = get_length(frame.header);
      offset_ = 0;
      if (frame.length > total_ || (frame.length == 0 && total_ != 0)) return Step::broken;
      got_ = frame.length;
      return got_ == total_ ? Step::whole : Step::begins;
    }
    if (frame.kind != Kind::more || frame.header_length != 0 || frame.length == 0 || frame.length > total_ - got_)
      return Step::broken;
    got_ += frame.length;
    return got_ == total_ ? Step::completes : Step::continues;
  }
  std::uint64_t total() const noexcept { return total_; }
  std::uint64_t received() const noexcept { return got_; }
  std::uint64_t offset() const noexcept { return offset_; }
  /// Of the message that step() looked at last.
  Meaning meaning() const noexcept { return meaning_; }

 private:
  bool read_meaning(const Frame& frame) noexcept {
    meaning_ = Meaning::message;
    if (frame.header_length == kMessageHeader) return true;
    if (frame.header_length != kTreeHeader) return false;
    const std::uint64_t what = get_length(frame.header + kMessageHeader);
    meaning_ = what == static_cast<std::uint64_t>(Meaning::list) ? Meaning::list : Meaning::branch;
    return what == static_cast<std::uint64_t>(meaning_);
  }

  std::uint64_t total_ = 0, got_ = 0, offset_ = 0;
  Meaning meaning_ = Meaning::message;
};

}  // namespace ulfm
