#include "proto/multicast.hpp"

#include <algorithm>

#include "base/virtual_time.hpp"

namespace ulfm {

GroupSender::GroupSender(const std::vector<Outlet*>& outlets, std::unique_ptr<Multicast> multicast)
    : multicast_(std::move(multicast)) {
  for (Outlet* outlet : outlets) members_.push_back({outlet});
}

void GroupSender::begin(const std::byte* bytes, std::size_t size) {
  bytes_ = bytes, size_ = size;
  front_ = 0;
  front_begun_ = apart_ = false;
  stalled_since_ = {};
  for (Member& member : members_) member.sent = 0, member.begun = false;
}

bool GroupSender::advance(PortCounters& counters) {
  for (;;) {
    bool together = true, moved = false, all = true;
    for (Member& member : members_) {
      if (member.outlet == nullptr) continue;
      const std::size_t sent = member.sent;
      const bool caught_up = catch_up(member, counters);
      moved = moved || member.sent != sent;
      together = together && caught_up;
      all = all && member.begun && member.sent == size_;
    }
    if (all) return true;
    const bool at_end = front_begun_ && front_ == size_;
    if (!at_end && (together || apart_ || patience_is_out()) && push_front(counters)) moved = true;
    if (!moved) return false;
    stalled_since_ = {};
  }
}

// Up to where the others are. True when it is there.
bool GroupSender::catch_up(Member& member, PortCounters& counters) {
  while (front_begun_ && (!member.begun || member.sent < front_)) {
    if (!push_singly(member, front_ - member.sent)) return false;
    counters.group_singles.add();
  }
  return true;
}

bool GroupSender::push_singly(Member& member, std::size_t most) {
  std::byte header[kMessageHeader];
  put_length(header, size_);
  const std::size_t head = member.begun ? 0 : kMessageHeader;
  const std::size_t length = most <= kLeastFrame ? most : std::min(most, member.outlet->max_frame(head));
  const iovec piece{const_cast<std::byte*>(bytes_) + member.sent, length};
  Gather data(std::span(&piece, 1));
  if (!member.outlet->push(member.begun ? Kind::more : Kind::first, std::span(header, head), data, length))
    return false;
  member.begun = true;
  member.sent += length;
  return true;
}

// The next frame, for those who are there. True when it has gone or is left to the members themselves.
bool GroupSender::push_front(PortCounters& counters) {
  who_.clear();
  for (std::uint32_t i = 0; i < members_.size(); ++i)
    if (members_[i].outlet != nullptr && members_[i].begun == front_begun_ && members_[i].sent == front_)
      who_.push_back(i);
  if (who_.empty()) return false;
  std::byte header[kMessageHeader];
  put_length(header, size_);
  const std::size_t head = front_begun_ ? 0 : kMessageHeader;
  std::size_t length = size_ - front_;
  if (multicast_ && who_.size() > 1) {
    length = length <= kLeastFrame ? length : std::min(length, multicast_->max_frame(head));
    const iovec piece{const_cast<std::byte*>(bytes_) + front_, length};
    Gather data(std::span(&piece, 1));
    before_ = who_;
    // Room that receivers hold for long is room of the multicast only: each outlet has some of its own.
    if (!multicast_->push(front_begun_ ? Kind::more : Kind::first, {header, head, 0}, data, length, who_) && !apart_)
      return false;
    if (before_.size() != who_.size()) {
      counters.group_frames.add();
      counters.group_copies.add(before_.size() - who_.size());
    }
    for (const std::uint32_t member : before_) {
      if (std::find(who_.begin(), who_.end(), member) != who_.end()) continue;
      members_[member].begun = true;
      members_[member].sent += length;
    }
  }
  front_begun_ = true;
  front_ += length;
  return true;
}

// The clock is read only when there was no room.
bool GroupSender::patience_is_out() {
  const std::chrono::nanoseconds now = clock_of_job().now();
  if (stalled_since_ == std::chrono::nanoseconds{}) stalled_since_ = now;
  return apart_ = now - stalled_since_ >= kPatience;
}

}  // namespace ulfm
