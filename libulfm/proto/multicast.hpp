// A message to several ports: frames that the transport sends to all of them at once where it can, and to each by
// itself where it cannot.
//
// Members are at the same frame as a rule. One that had no room, or that the transport left to its own outlet, catches
// up by frames of its own, and the next frame for all waits for it. When that takes long the others go on without it.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "proto/framing.hpp"
#include "transport/contract.hpp"

namespace ulfm {

/// The members of a group, and how far each is with the message. One thread at a time.
class GroupSender {
 public:
  /// Without room for so long, and members that have some go on alone.
  static constexpr std::chrono::milliseconds kPatience{2};

  /// `multicast` may be nullptr. The outlets belong to somebody else; one that is gone is nullptr (drop()).
  GroupSender(const std::vector<Outlet*>& outlets, std::unique_ptr<Multicast> multicast);

  void begin(const std::byte* bytes, std::size_t size);
  /// Sends what there is room for; true when all members have the whole message.
  bool advance(PortCounters& counters);
  /// The transport has a way to send to several at once.
  bool has_multicast() const noexcept { return multicast_ != nullptr; }
  std::size_t size() const noexcept { return members_.size(); }
  Outlet* outlet(std::size_t member) const noexcept { return members_[member].outlet; }
  /// The member does not have all of the message yet.
  bool is_behind(std::size_t member) const noexcept { return members_[member].outlet != nullptr && !done(member); }
  /// Nothing more is sent to it.
  void drop(std::size_t member) noexcept { members_[member].outlet = nullptr; }
  void look_for_dead() {
    if (multicast_) multicast_->look_for_dead();
  }

 private:
  struct Member {
    Outlet* outlet = nullptr;
    std::size_t sent = 0;
    bool begun = false;  ///< the first frame has gone, which may have no data
  };
  bool done(std::size_t member) const noexcept { return members_[member].begun && members_[member].sent == size_; }
  bool catch_up(Member& member, PortCounters& counters);
  bool push_singly(Member& member, std::size_t most);
  bool push_front(PortCounters& counters);
  bool patience_is_out();

  std::vector<Member> members_;
  std::unique_ptr<Multicast> multicast_;
  std::vector<std::uint32_t> who_, before_;
  const std::byte* bytes_ = nullptr;
  std::size_t size_ = 0, front_ = 0;
  bool front_begun_ = false;
  bool apart_ = false;
  std::chrono::nanoseconds stalled_since_{};
};

}  // namespace ulfm
