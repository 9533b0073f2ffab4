// One buffer that all receivers read: the sender of a group keeps a pool of them, and what it puts into the lane of
// each receiver is a reference.
//
//   PoolHeader | attached, a word to each member | holders, bits to each buffer | buffers ...
//
// A receiver maps the pool when the sender announces it, and answers whether it could. Only those that could get
// references, so a message outlives its sender; the others, and those whose lane has no room, get copies. A buffer is
// free when nobody holds it. A bit of a receiver that has died is cleared by the sender.
#pragma once

#include <chrono>
#include <vector>

#include "transport/direct/outlet.hpp"

namespace ulfm::direct {

inline constexpr std::uint64_t kPoolMagic = 0x3130'6c6f'6f70'6c75ull;
inline constexpr std::uint32_t kPoolBuffers = 128;
inline constexpr std::uint32_t kPoolBuffer = 32 * 1024;
inline constexpr std::uint32_t kMostMembers = 4096;

struct PoolHeader {
  std::uint64_t magic;
  std::uint64_t token;
  std::uint32_t members;
  std::atomic<std::uint32_t> closed;  ///< by the sender: nothing more comes. Publishes nothing.
};

/// The announcement of a pool to a receiver.
struct PoolNotice {
  std::uint64_t token;
  std::int32_t fd;
  std::uint32_t what;  ///< its number on the control channel
  std::uint32_t members;
  std::uint32_t member;  ///< the receiver's own
};

/// What is in the cell of a frame whose data are in a pool.
struct PoolReference {
  std::uint64_t token;
  std::uint32_t length;
  std::uint16_t buffer;
  std::uint8_t kind;
};

/// Offsets within a pool.
struct PoolLayout {
  explicit PoolLayout(std::uint32_t members_) : members(members_), words((members_ + 63) / 64) {
    holders = up_to(sizeof(PoolHeader) + members * sizeof(std::uint32_t), 64);
    buffers = up_to(holders + std::size_t{kPoolBuffers} * words * sizeof(std::uint64_t), kPage);
    end = buffers + std::size_t{kPoolBuffers} * kPoolBuffer;
  }
  std::uint32_t members, words;
  std::size_t holders, buffers, end;
};

/// A pool as one process maps it.
class Pool {
 public:
  Pool(Segment segment, std::uint32_t members) : segment_(std::move(segment)), at_(members) {}

  PoolHeader& header() const noexcept { return *segment_.at<PoolHeader>(0); }
  /// 1: that receiver has mapped it. Orders nothing: what it reads comes by its lane.
  std::atomic<std::uint32_t>& attached(std::uint32_t member) const noexcept {
    return segment_.at<std::atomic<std::uint32_t>>(sizeof(PoolHeader))[member];
  }
  std::byte* buffer(std::uint32_t i) const noexcept {
    return segment_.base() + at_.buffers + std::size_t{i} * kPoolBuffer;
  }
  bool is_free(std::uint32_t buffer) const noexcept;
  void acquire(std::uint32_t buffer, std::uint32_t member) const noexcept;
  void release(std::uint32_t buffer, std::uint32_t member) const noexcept;
  /// The buffer that an address lies in; -1 for none.
  std::int64_t buffer_at(const std::byte* address) const noexcept;
  Result<void> commit(std::uint32_t buffer) {
    return segment_.commit(at_.buffers + std::size_t{buffer} * kPoolBuffer, kPoolBuffer);
  }
  const Segment& segment() const noexcept { return segment_; }

 private:
  /// A receiver's release pairs with is_free(): it has read the buffer.
  std::atomic<std::uint64_t>& word(std::uint32_t buffer, std::uint32_t member) const noexcept {
    return segment_.at<std::atomic<std::uint64_t>>(at_.holders)[std::size_t{buffer} * at_.words + member / 64];
  }
  Segment segment_;
  PoolLayout at_;
};

/// A pool that a receiver reads from.
struct ReadPool {
  Pool pool;
  std::uint64_t token;
  std::uint32_t origin, member;
  std::uint32_t held = 0;
};

class DirectMulticast final : public Multicast {
 public:
  /// `outlets` of other transports are left to themselves. nullptr without two of this one, or without a pool.
  static std::unique_ptr<Multicast> make(std::span<Outlet* const> outlets, PassedDescriptors& passed);
  ~DirectMulticast() override;

  bool push(Kind kind, const Headers& headers, Gather& data, std::size_t length,
            std::vector<std::uint32_t>& who) override;
  std::size_t max_frame(std::size_t) const override { return kPoolBuffer; }
  void look_for_dead() override;

 private:
  DirectMulticast(std::vector<DirectOutlet*> outlets, Pool pool, PassedDescriptors& passed);
  void announce(std::uint32_t member);
  bool may_share(std::uint32_t member);
  std::int64_t take_buffer();

  std::vector<DirectOutlet*> outlets_;  // nullptr for one of another transport
  std::vector<std::uint8_t> announced_;
  Pool pool_;
  PassedDescriptors& passed_;
  std::uint32_t what_;
  std::uint32_t next_ = 0, committed_ = 0;
  std::chrono::steady_clock::time_point looked_{};
};

}  // namespace ulfm::direct
