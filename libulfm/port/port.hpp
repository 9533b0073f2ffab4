// A uport: send buffers, receive buffers, and what the interface needs to know about them.
//
// Sending: compose() hands out a free send buffer, post() tags it and pushes the port number into the node's send
// queue; the interface (Node::drive) takes the number, finds the buffer through the port table and moves the data.
// Receiving: poll() hands out arrivals in place; while `depth` of them are held, what arrives goes to the message
// cache. Receive buffers *are* the slots of the transport, so nothing is copied that is read in time.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/counters.hpp"
#include "base/error.hpp"
#include "port/address.hpp"
#include "port/message_cache.hpp"
#include "port/tag.hpp"
#include "port/tree.hpp"
#include "proto/framing.hpp"
#include "proto/multicast.hpp"
#include "transport/contract.hpp"

namespace ulfm {

class Node;

/// A message handed to the application.
struct Arrival {
  std::span<const std::byte> bytes;
  PortAddress source;
  std::uint64_t handle = 0;  ///< receive buffer it occupies, and which of its uses
};

class PortCore {
 public:
  PortCore(Node& node, std::uint16_t number, std::unique_ptr<Inlet> inlet, std::uint32_t depth,
           std::uint32_t slot_bytes, std::size_t cache_limit);
  ~PortCore();

  std::uint16_t number() const noexcept { return number_; }
  std::uint32_t depth() const noexcept { return depth_; }

  // Application side, one thread at a time.
  // The try_ forms are what the usual message takes; when one says no, the other form does it or says why not.
  std::byte* try_compose(std::size_t size) noexcept;
  Result<std::span<std::byte>> compose(std::size_t size);
  bool try_post(PortAddress to) noexcept;
  /// Sends a message from where it lies. False with nothing done when it cannot go at once and in one frame, or the
  /// address cannot be reached.
  bool send_pieces(PortAddress to, std::span<const iovec> pieces, std::size_t size);
  Result<void> post(PortAddress to);
  Result<void> discard();
  /// Connects to the addresses, doubles once, as one destination. The number stands for it until close_group(), and is
  /// not given out again.
  /// With `as_tree` members send on what comes to them, where the transport has no better way.
  Result<std::uint64_t> open_group(std::span<const PortAddress> members, bool as_tree = false);
  /// What has been posted to it is still sent.
  Result<void> close_group(std::uint64_t group);
  Result<void> post_group(std::uint64_t group);
  bool poll(Arrival& arrival);
  bool try_release(std::uint64_t handle) noexcept;
  Result<void> release(std::uint64_t handle);
  /// Messages posted that have not gone. The application's thread.
  std::uint32_t unsent() const noexcept { return given_ - gone_.load(std::memory_order_acquire); }
  bool all_sent() const noexcept {
    return gone_.load(std::memory_order_acquire) == given_ && !passing_.load(std::memory_order_acquire);
  }

  /// Moves arrivals to the message cache so that their senders can go on; for a process that sends and does not read.
  void absorb();
  /// A failure nobody asked about yet: a peer that died, a message that could not be delivered.
  bool take_failure(Error& error);
  /// Frames that have come so far, of whole messages and of parts.
  std::uint64_t frames_received() const noexcept { return frames_received_; }
  /// Frames that have gone so far, of whole messages and of parts.
  std::uint64_t frames_sent() const noexcept { return counters_.open_frames.get() + counters_.lane_frames.get(); }
  /// Lines for a report about a wait that does not end, each behind `who`. Application side; `sends` under the node's
  /// lock too, else what waits to be sent is left out.
  std::string stall_lines(const std::string& who, bool sends);
  /// Housekeeping of a long wait.
  void look_for_dead();
  /// The same, if the last time is 20 ms ago: it costs system calls.
  void look_for_dead_at(std::chrono::steady_clock::time_point now);
  /// How long waits in a row have been in vain: nothing has come since. A program may wait in many short steps.
  std::chrono::nanoseconds waited_in_vain() const noexcept {
    return frames_of_waits_ == frames_received_ ? in_vain_ : std::chrono::nanoseconds(0);
  }
  void note_wait_in_vain(std::chrono::nanoseconds time) noexcept {
    in_vain_ = waited_in_vain() + time;
    frames_of_waits_ = frames_received_;
  }

  Inlet& inlet() noexcept { return *inlet_; }
  PortCounters& counters() noexcept { return counters_; }

  // Interface side, under the node's lock.
  /// Connects to an address; errors go back to the caller of post.
  Result<void> connect(PortAddress to);
  Result<void> connect(std::span<const PortAddress> all);
  /// Sends the oldest posted message as far as there is room; true when it has gone (or failed).
  bool transmit();
  /// Sends what most messages are, one frame with nothing waiting before it, at once or not at all.
  bool send_at_once(PortAddress to, Gather& data, std::size_t size);
  /// Says goodbye to everyone it has talked to. False when somebody who listens has no room for it now.
  bool send_byes();
  std::uint32_t posted = 0;  ///< numbers taken from the send queue whose messages have not gone
  /// Messages of others wait to be sent on.
  bool is_passing_on() const noexcept { return passing_.load(std::memory_order_relaxed); }
  /// Sends on what there is room for.
  void pass_on();
  /// One more to send on.
  void pass_on(const std::shared_ptr<Tree>& tree, HeapBytes bytes, std::size_t size);

 private:
  struct Group {
    std::vector<PortAddress> members;
    std::vector<std::shared_ptr<Outlet>> outlets;  ///< of the message that is being sent, or was last
    std::unique_ptr<GroupSender> sender;
    bool as_tree = false;
    std::shared_ptr<Tree> tree;  ///< when it is sent that way
  };
  struct GroupPlace {
    std::uint32_t uses = 0;  ///< the upper half of a group's number
    std::shared_ptr<Group> group;
  };
  struct SendBuffer {
    Tag tag;
    HeapBytes bytes;
    std::size_t capacity = 0;
    std::size_t size = 0;
    PortAddress to;
    std::shared_ptr<Group> group;  ///< instead of `to`
  };
  struct ReceiveBuffer {
    Tag tag;
    bool in_slot = false;   ///< in the transport's slot; otherwise in `heap`
    std::uint32_t use = 0;  ///< counts its messages, so that a handle cannot mean a later one
    Frame frame;
    HeapBytes heap;
  };
  struct Origin {
    FrameReader reader;
    HeapBytes partial;
    PortAddress source;
    bool connected = false;
    bool losing = false;  ///< its message found no memory: the rest of it goes
    /// The connection is one of a tree: whose messages come by it, and whom they go to from here.
    std::optional<PortAddress> root;
    std::shared_ptr<Tree> tree;
  };
  enum class Taken { nothing, in_place, assembled };
  static constexpr std::size_t kFirstSweep = 16;
  static constexpr std::size_t kMostPassing = std::size_t{16} << 20;  // bytes to send on; beyond, nothing more is taken

  void give(PortAddress to) noexcept;
  void hand_over(SendBuffer& buffer) noexcept;
  Result<GroupPlace*> place_of(std::uint64_t group);
  bool poll_cache(Arrival& arrival);
  bool poll_on(Arrival& arrival, ReceiveBuffer& buffer);
  Taken take_message(Frame& frame, CachedMessage& whole);
  Taken take_frame(const Frame& frame, CachedMessage& whole);
  void fail_broken_origins();
  void give_back_spent() noexcept;
  bool has_much_to_pass_on() const noexcept { return passing_bytes_.load(std::memory_order_relaxed) >= kMostPassing; }
  void take_bye(const Frame& frame);
  bool take_out(const Frame& frame, CachedMessage& whole);
  Taken take_of_tree(const Frame& frame, CachedMessage& whole);
  Taken take_branch(std::uint32_t origin, CachedMessage& whole);
  void take_list(std::uint32_t origin, std::string_view text);
  void begin_message(const Frame& frame, Origin& origin);
  bool assemble(const Frame& frame, FrameReader::Step step, CachedMessage& whole);
  void on_connect(const Frame& frame);
  void fail_origin(std::uint32_t origin, const std::string& why);
  void hand_out(Arrival& arrival, std::span<const std::byte> bytes, PortAddress source) noexcept;
  void hand_out(Arrival& arrival, CachedMessage&& whole) noexcept;
  ReceiveBuffer& free_receive_buffer() noexcept;
  void note_failure(Errc code, std::string what);
  Outlet* outlet_for(PortAddress to, Error* why = nullptr);
  void find_dead_receiver();
  bool is_sending_by(const std::shared_ptr<Outlet>& outlet) const;
  void drop_outlets_to(ProcessId who);
  void drop_closed_outlets();
  bool transmit_any(SendBuffer& buffer);
  bool transmit_one(SendBuffer& buffer);
  bool transmit_group(SendBuffer& buffer);
  bool transmit_tree(SendBuffer& buffer);
  void begin_group(SendBuffer& buffer);
  void make_sender(Group& group);
  void drop_tree(Origin& origin);
  void end_tree(std::shared_ptr<Tree> tree);
  void end_trees();
  bool time_to_look();
  void undeliverable(const SendBuffer& buffer, PortAddress to, const std::string& why);

  Node& node_;
  std::uint16_t number_;
  PortCounters counters_;  // before the inlet, whose last frames count too
  std::unique_ptr<Inlet> inlet_;

  const std::uint32_t depth_;  // buffers of either kind
  std::vector<SendBuffer> send_;
  std::uint32_t compose_at_ = 0;   // application: next buffer to compose in
  std::uint32_t transmit_at_ = 0;  // interface: oldest posted buffer
  bool composing_ = false;
  std::uint32_t given_ = 0;             // application: messages posted
  std::atomic<std::uint32_t> gone_{0};  // interface: messages that have left, or were given up and noted
  FrameSender sender_;
  bool sending_ = false;
  std::unordered_map<std::uint64_t, std::shared_ptr<Outlet>> outlets_;
  std::size_t sweep_at_ = kFirstSweep;  // outlets there are when those to closed ports are next looked for
  std::size_t look_at_ = 0;             // the outlet whose receiver was looked at last
  std::uint64_t last_key_ = ~std::uint64_t{0};
  Outlet* last_outlet_ = nullptr;
  std::uint64_t posted_key_ = ~std::uint64_t{0};  // application's copy: known to be connected
  std::chrono::steady_clock::time_point stalled_since_{};

  std::vector<GroupPlace> groups_;  // application

  std::vector<std::shared_ptr<Tree>> passing_trees_;  // interface: with something to send on
  std::vector<std::shared_ptr<Tree>> ended_trees_;    // interface: there was no room for a goodbye yet
  std::atomic<bool> passing_{false};                  // there are some to send on
  std::atomic<std::size_t> passing_bytes_{0};
  std::chrono::steady_clock::time_point passing_since_{};

  std::vector<ReceiveBuffer> receive_;
  std::uint32_t held_ = 0;
  ReceiveBuffer* spent_ = nullptr;  // released, and its room is given back at the next look: the answer goes first
  std::uint32_t receive_at_ = 0;
  std::vector<Origin> origins_;
  MessageCache cache_;
  std::uint64_t frames_received_ = 0;
  std::uint64_t frames_of_waits_ = 0;  // received before the last wait in vain
  std::chrono::nanoseconds in_vain_{0};
  std::chrono::steady_clock::time_point looked_for_dead_{};
  std::mutex failures_lock_;  // the interface may be another thread
  std::deque<Error> failures_;
  std::atomic<std::uint32_t> failure_count_{0};  // spares the lock, which orders the failures
};

inline std::byte* PortCore::try_compose(std::size_t size) noexcept {
  SendBuffer& buffer = send_[compose_at_];
  if (composing_ || buffer.tag.valid() || buffer.capacity < size || buffer.bytes == nullptr) return nullptr;
  composing_ = true;
  buffer.size = size;
  return buffer.bytes.get();
}

inline bool PortCore::try_post(PortAddress to) noexcept {
  if (!composing_ || to.key() != posted_key_) return false;
  give(to);
  return true;
}

inline bool PortCore::try_release(std::uint64_t handle) noexcept {
  const std::uint32_t index = static_cast<std::uint32_t>(handle);
  if (index >= depth_) return false;
  ReceiveBuffer& buffer = receive_[index];
  if (buffer.use != handle >> 32 || !buffer.tag.clear()) return false;
  if (!buffer.in_slot) {
    buffer.heap.reset();
  } else if (buffer.frame.shared_room) [[unlikely]] {
    inlet_->release(buffer.frame);
  } else {
    give_back_spent();
    spent_ = &buffer;
  }
  --held_;
  return true;
}

inline void PortCore::give_back_spent() noexcept {
  if (spent_ != nullptr) inlet_->release(std::exchange(spent_, nullptr)->frame);
}

}  // namespace ulfm
