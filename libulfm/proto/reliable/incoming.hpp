// The receiving half of a reliable connection: what is next, what came before its turn, what is unacked to the sender.
#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "base/room.hpp"
#include "proto/reliable/settings.hpp"
#include "proto/reliable/wire.hpp"
#include "transport/contract.hpp"

namespace ulfm::reliable {

class Peer;

/// Frames taken out of a transport's memory. The buffers are used again and again.
class CopyPool {
 public:
  /// Turns `frame` into a copy of itself; false, with nothing changed, without memory.
  bool copy(Frame& frame) noexcept {
    const std::size_t size = frame.header_length + frame.length;
    const std::uint32_t index = take(size);
    if (index == kNone) return false;
    std::byte* to = buffers_[index].bytes.get();
    copy_bytes(to, frame.header, frame.header_length);
    copy_bytes(to + frame.header_length, frame.data, frame.length);
    frame.header = to;
    frame.data = to + frame.header_length;
    frame.source = kDecoratorSource;
    frame.shared_room = false;
    frame.position = index;
    return true;
  }
  void release(const Frame& frame) noexcept {
    Buffer& buffer = buffers_[frame.position];
    buffer.next_free = free_;
    free_ = static_cast<std::uint32_t>(frame.position);
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  struct Buffer {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t capacity = 0;
    std::uint32_t next_free = kNone;
  };
  std::uint32_t take(std::size_t size) noexcept {
    if (free_ == kNone) {
      if (!make_room_for_one(buffers_)) return kNone;
      free_ = static_cast<std::uint32_t>(buffers_.size());
      buffers_.emplace_back();
    }
    Buffer& buffer = buffers_[free_];
    if (buffer.capacity < size || !buffer.bytes) {
      std::unique_ptr<std::byte[]> bytes(new (std::nothrow) std::byte[std::bit_ceil(std::max<std::size_t>(size, 256))]);
      if (!bytes) return kNone;
      buffer.bytes = std::move(bytes);
      buffer.capacity = std::bit_ceil(std::max<std::size_t>(size, 256));
    }
    const std::uint32_t index = free_;
    free_ = buffer.next_free;
    return index;
  }

  std::vector<Buffer> buffers_;
  std::uint32_t free_ = kNone;
};

/// Frames in order, first in first out; its memory stays.
class FrameQueue {
 public:
  bool empty() const noexcept { return head_ == tail_; }
  std::size_t size() const noexcept { return tail_ - head_; }
  void push(const Frame& frame) {
    if (tail_ - head_ == frames_.size()) grow();
    frames_[tail_++ & (frames_.size() - 1)] = frame;
  }
  Frame pop() noexcept { return frames_[head_++ & (frames_.size() - 1)]; }

 private:
  void grow() {
    std::vector<Frame> larger(frames_.size() * 2);
    for (std::size_t i = 0; i < frames_.size(); ++i) larger[i] = frames_[(head_ + i) & (frames_.size() - 1)];
    frames_ = std::move(larger);
    tail_ -= head_;
    head_ = 0;
  }
  std::vector<Frame> frames_ = std::vector<Frame>(16);
  std::size_t head_ = 0, tail_ = 0;
};

/// What is to be done with a frame that arrived.
enum class Verdict {
  deliver,    ///< it is the next one, or a piece of it: what is left of it goes up
  keep,       ///< ahead of its turn
  duplicate,  ///< was here before
  drop,       ///< too far ahead, or a piece without the one before it: comes again
};

/// One origin of a port. Under the lock of its port.
class Incoming {
 public:
  explicit Incoming(Peer& from) : peer(from) {}

  /// Judges a frame by its number; for `deliver` it is cut to what has not been delivered yet.
  Verdict classify(const WireHeader& wire, Frame& frame) noexcept {
    const std::uint32_t ahead = wire.number - next_;
    if (ahead == 0) return wire.part ? classify_part(wire, frame) : classify_whole(frame);
    if (before(wire.number, next_)) return Verdict::duplicate;
    if (ahead >= kMostWindow || wire.part) return Verdict::drop;
    return held_ >> (ahead - 1) & 1 ? Verdict::duplicate : Verdict::keep;
  }
  /// For Verdict::keep, when the frame has been put where it can stay.
  void keep(std::uint32_t number, const Frame& frame) noexcept {
    kept_[number % kMostWindow] = frame;
    held_ |= std::uint64_t{1} << (number - next_ - 1);
  }
  /// After a delivery: the frame whose turn it is now, if it was kept.
  bool follow(Frame& frame) noexcept {
    if (!complete_) return false;
    complete_ = false;
    const bool there = held_ & 1;
    ++next_;
    done_ = 0;
    held_ >>= 1;
    if (!there) return false;
    frame = kept_[next_ % kMostWindow];
    complete_ = true;
    return true;
  }
  /// Hands out every kept frame, for an origin that is dropped.
  template <typename Release>
  void release_all(Release release) {
    for (std::uint32_t i = 0; held_ != 0; ++i, held_ >>= 1)
      if (held_ & 1) release(kept_[(next_ + 1 + i) % kMostWindow]);
  }

  Ack ack(std::uint32_t share) const noexcept {
    return {stream, next_, held_, static_cast<std::uint16_t>(credit(share)), twice};
  }
  void acknowledged(const Ack& ack) noexcept {
    if (before(granted, ack.next + ack.credit)) granted = ack.next + ack.credit;
    unacked = 0;
    twice = false;
    ack_now = false;
    ack_at = nanoseconds(0);
  }
  /// The sender should hear from us without delay, by what it may still send.
  bool runs_short(std::uint32_t share) const noexcept {
    const std::uint32_t left = granted - next_;
    return left <= share / 2 && credit(share) > left;
  }
  bool ack_pending() const noexcept { return unacked != 0 || ack_now; }

  /// Frames ahead of their turn are kept.
  bool keeps() const noexcept { return held_ != 0; }

  Peer& peer;
  bool has_stream = false;
  std::uint32_t stream = 0;
  bool met = false;        ///< something of it has been handed up
  bool said_bye = false;   ///< its goodbye has been delivered
  bool parted = false;     ///< its transport has said goodbye: it needs no answer any more
  bool forgotten = false;  ///< by those above; still answered, for its last acknowledgement may get lost
  nanoseconds forgotten_at{0};
  std::uint32_t queued = 0;         ///< frames ready and not taken
  std::uint32_t in_place = 0;       ///< handed up and not released, in the transport's memory
  std::uint32_t kept_in_place = 0;  ///< ahead of their turn, in the transport's memory; counted until none is kept
  std::uint32_t unacked = 0;        ///< frames since the last acknowledgement
  bool twice = false;               ///< something has come that was there already, since the last acknowledgement
  bool ack_now = false;
  nanoseconds ack_at{0};                 ///< 0: to be set
  std::uint32_t granted = kFirstCredit;  ///< numbers below it have been allowed
  /// The port closes: nothing beyond `granted` may come but a goodbye, or a stream would keep the port from its end.
  /// Whoever has more to send finds the port closed soon.
  bool stopped = false;

 private:
  // How many frames may come, from the next one on.
  std::uint32_t credit(std::uint32_t share) const noexcept {
    const std::uint32_t room = share - std::min(share, queued + in_place);
    return !stopped ? room : before(next_, granted) ? std::min(room, granted - next_) : 0;
  }
  Verdict classify_whole(Frame& frame) noexcept {
    cut(frame, done_);
    complete_ = true;
    return Verdict::deliver;
  }
  Verdict classify_part(const WireHeader& wire, Frame& frame) noexcept {
    const std::uint64_t end = std::uint64_t{wire.offset} + frame.length;
    if (wire.offset > done_) return Verdict::drop;
    if (end <= done_) return Verdict::duplicate;
    cut(frame, done_ - wire.offset);
    done_ = static_cast<std::uint32_t>(end);
    complete_ = wire.last;
    return Verdict::deliver;
  }
  // Takes off what was delivered before; what is left continues a message, whatever the frame began.
  static void cut(Frame& frame, std::uint32_t bytes) noexcept {
    if (bytes == 0) return;
    bytes = std::min(bytes, frame.length);
    frame.data += bytes;
    frame.length -= bytes;
    frame.header_length = 0;
    frame.kind = Kind::more;
  }

  std::uint32_t next_ = 0;
  std::uint32_t done_ = 0;  // bytes of frame next_ that went up in pieces
  bool complete_ = false;   // the frame next_ has been delivered to its end
  std::uint64_t held_ = 0;  // bit i: next_ + 1 + i is kept
  std::array<Frame, kMostWindow> kept_{};
};

}  // namespace ulfm::reliable
