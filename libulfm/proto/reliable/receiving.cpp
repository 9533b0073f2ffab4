// What comes in: damaged, an acknowledgement, a frame for those above, or a goodbye; in order and once, with an answer
// when one is due. And whom it comes from.
#include <algorithm>

#include "proto/reliable/port.hpp"

namespace ulfm::reliable {
namespace {
constexpr std::uint32_t kTimersEvery = 64;  // frames taken in without an idle turn, and the time is looked at anyway
constexpr std::uint32_t kMostKeptInPlace = 4;
}  // namespace

bool ReliablePort::next(Frame& frame) {
  std::lock_guard lock(lock_);
  polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  while (ready_.empty())
    if (!take_frame()) {
      idle();
      if (ready_.empty()) return false;
    }
  hand_out(frame);
  return true;
}

// Takes one frame from the transport; false when there is none.
bool ReliablePort::take_frame() {
  Frame frame;
  if (!inlet_->next(frame)) return false;
  take_in(frame);
  if (++since_idle_ >= kTimersEvery) idle();
  return true;
}

// Takes everything. A transport may look in a part of its places at a time, so one miss does not say that all are
// empty.
void ReliablePort::absorb() {
  for (int misses = 0; misses < 2;) misses = take_frame() ? 0 : misses + 1;
  idle();
}

// What the frame is: damaged, an acknowledgement, a frame for those above, or a goodbye. It is released unless it goes
// up or has to wait.
void ReliablePort::take_in(const Frame& frame) {
  if (frame.fresh && frame.origin < incoming_.size() && incoming_[frame.origin]) drop_incoming(frame.origin);
  Incoming* incoming = frame.origin < incoming_.size() ? incoming_[frame.origin].get() : nullptr;
  if (incoming == nullptr) incoming = on_connect(frame.origin);
  if (frame.kind == Kind::bye) {
    inlet_->release(frame);
    if (incoming == nullptr) return;
    incoming->parted = true;
    if (incoming->forgotten || !incoming->has_stream) abandon(frame.origin);
    return;
  }
  WireHeader wire;
  if (incoming == nullptr || !decode(frame, wire)) {
    inlet_->release(frame);
    count(counters().corrupted);
    return;
  }
  if (wire.has_ack)
    if (const auto sender = senders_.find(wire.ack.stream); sender != senders_.end())
      unsettled_ |= sender->second->take(wire.ack, looked_at_);
  if (wire.payload == Payload::none) {
    inlet_->release(frame);
    if (wire.probe && incoming->has_stream && incoming->stream == wire.stream) incoming->ack_now = true;
  } else {
    if (closing_) heard_at_ = settings().clock->now();
    take_payload(frame, wire, *incoming);
  }
  if (incoming->ack_now) acknowledge(*incoming);
}

Incoming* ReliablePort::on_connect(std::uint32_t origin) {
  const OriginInfo info = inlet_->origin(origin);
  // One without a port could never be answered; such a sender does not speak this protocol.
  if (!info.process || info.port == kNoPort) return nullptr;
  if (origin >= incoming_.size()) incoming_.resize(origin + 1);
  Peer& from = peer(info.card, info.port);
  incoming_[origin] = std::make_unique<Incoming>(from);
  incoming_[origin]->stopped = closing_;
  from.incoming.push_back(incoming_[origin].get());
  from.no_way_until = {};
  return incoming_[origin].get();
}

void ReliablePort::take_payload(const Frame& whole, const WireHeader& wire, Incoming& incoming) {
  if (!incoming.has_stream) {
    incoming.has_stream = true;
    incoming.stream = wire.stream;
    share_out();
  }
  if (incoming.stream != wire.stream) return inlet_->release(whole);
  Frame frame = whole;
  const std::size_t own = wire.size();
  if (wire.header_in_data) {
    frame.header = frame.data;
    frame.data += wire.header;
    frame.length -= wire.header;
  } else {
    frame.header += own;
  }
  frame.header_length = wire.header;
  frame.kind = wire.payload == Payload::bye ? Kind::bye : wire.payload == Payload::more ? Kind::more : Kind::first;
  unsettled_ = true;
  ++incoming.unacked;
  switch (incoming.classify(wire, frame)) {
    case Verdict::deliver:
      deliver(frame, incoming);
      if (wire.probe || wire.payload == Payload::bye || incoming.unacked >= settings().ack_every ||
          incoming.runs_short(share_))
        incoming.ack_now = true;
      return;
    case Verdict::keep:
      incoming.ack_now = true;  // the sender learns of the gap
      return keep(frame, wire, incoming);
    case Verdict::duplicate:
      incoming.ack_now = true;  // our answer was lost, or the sender did not wait for it long enough
      incoming.twice = true;
      count(counters().duplicates);
      return inlet_->release(whole);
    case Verdict::drop: return inlet_->release(whole);
  }
}

void ReliablePort::keep(Frame frame, const WireHeader& wire, Incoming& incoming) {
  // Where it is, if it may stay there: the frame it waits for needs room in the transport too.
  if (frame.shared_room || incoming.kept_in_place >= kMostKeptInPlace) {
    if (!take_out(frame)) return inlet_->release(frame);  // without memory it comes again
  } else {
    ++incoming.kept_in_place;
  }
  incoming.keep(wire.number, frame);
  count(counters().kept);
}

// The frame and those kept behind it go up.
void ReliablePort::deliver(const Frame& first, Incoming& incoming) {
  Frame frame = first;
  do {
    count(counters().delivered);
    if (frame.kind == Kind::bye) incoming.said_bye = true;
    if (incoming.forgotten || closing_) {
      give_back(frame);
      continue;
    }
    ++incoming.queued;
    // Behind others that nobody takes, it holds room that its sender may need for its answers.
    if (frame.shared_room && !ready_.empty()) (void)take_out(frame);
    ready_.push(frame);
  } while (incoming.follow(frame));
  if (!incoming.keeps()) incoming.kept_in_place = 0;
}

bool ReliablePort::take_out(Frame& frame) {
  const Frame original = frame;
  if (!pool_.copy(frame)) return false;
  inlet_->release(original);
  return true;
}

void ReliablePort::give_back(const Frame& frame) {
  if (frame.source == kDecoratorSource) pool_.release(frame);
  else inlet_->release(frame);
}

// The oldest ready frame, for those above. Of one origin they may hold half a share in the transport's memory, so that
// it always has room to go on; the others are copies.
void ReliablePort::hand_out(Frame& frame) {
  frame = ready_.pop();
  Incoming& incoming = *incoming_[frame.origin];
  --incoming.queued;
  frame.fresh = !std::exchange(incoming.met, true);
  if (frame.source != kDecoratorSource && !frame.shared_room) {
    if (incoming.in_place < share_ / 2 || !take_out(frame)) ++incoming.in_place;
  }
  if (incoming.runs_short(share_)) acknowledge(incoming);
}

void ReliablePort::release(const Frame& frame) {
  std::lock_guard lock(lock_);
  if (frame.source == kDecoratorSource) return pool_.release(frame);
  const bool counted = !frame.shared_room;
  inlet_->release(frame);
  if (!counted || frame.origin >= incoming_.size() || !incoming_[frame.origin]) return;
  Incoming& incoming = *incoming_[frame.origin];
  if (incoming.in_place != 0) --incoming.in_place;
  if (incoming.runs_short(share_)) acknowledge(incoming);
}

bool ReliablePort::spin(std::uint32_t turns) {
  for (; turns != 0; --turns) {
    std::lock_guard lock(lock_);  // for one look: others send meanwhile
    if (!ready_.empty() || inlet_->spin(1)) return true;
  }
  return false;
}

bool ReliablePort::look() {
  std::lock_guard lock(lock_);
  return !ready_.empty() || inlet_->look();
}

bool ReliablePort::has_frame() {
  std::lock_guard lock(lock_);
  return !ready_.empty() || inlet_->has_frame();
}

// ---- origins --------------------------------------------------------------------------------------------------------

OriginInfo ReliablePort::origin(std::uint32_t index) {
  std::lock_guard lock(lock_);
  return is_shown(index) ? inlet_->origin(index) : OriginInfo{};
}

// Those above know the origin and have not forgotten it.
bool ReliablePort::is_shown(std::uint32_t index) const noexcept {
  return index < incoming_.size() && incoming_[index] && incoming_[index]->met && !incoming_[index]->forgotten;
}

void ReliablePort::drop_origin(std::uint32_t index) {
  std::lock_guard lock(lock_);
  if (!is_shown(index)) return;
  if (!incoming_[index]->said_bye || incoming_[index]->parted) return abandon(index);
  // It may not know yet that its goodbye has arrived. The transport's goodbye will say that it does.
  incoming_[index]->forgotten = true;
  unsettled_ = true;
  share_out();
}

// Drops an origin, here and in the transport.
void ReliablePort::abandon(std::uint32_t index) {
  if (index < incoming_.size() && incoming_[index]) drop_incoming(index);
  inlet_->drop_origin(index);
}

void ReliablePort::drop_incoming(std::uint32_t index) {
  Incoming& incoming = *incoming_[index];
  incoming.release_all([this](const Frame& frame) { give_back(frame); });
  for (std::size_t i = ready_.size(); i != 0; --i) {
    const Frame frame = ready_.pop();
    if (frame.origin == index) give_back(frame);
    else ready_.push(frame);
  }
  Peer& from = incoming.peer;
  std::erase(from.incoming, &incoming);
  incoming_[index].reset();
  drop_peer_if_idle(from);
  share_out();
}

// A port promises so many frames to all its senders together, which share alike.
void ReliablePort::share_out() {
  std::uint32_t streams = 0;
  for (const auto& incoming : incoming_)
    if (incoming && incoming->has_stream && !incoming->forgotten) ++streams;
  share_ = std::clamp(settings().promised / std::max(streams, 1u), kLeastShare, kMostWindow);
}

std::int64_t ReliablePort::find_dead() {
  std::lock_guard lock(lock_);
  const std::int64_t dead = inlet_->find_dead();
  if (dead < 0) return dead;
  const auto index = static_cast<std::uint32_t>(dead);
  const bool known = index < incoming_.size() && incoming_[index];
  if (known && incoming_[index]->queued != 0) return -1;  // what it sent is read first
  if (is_shown(index)) return dead;
  abandon(index);
  return -1;
}

std::int64_t ReliablePort::take_broken() {
  std::lock_guard lock(lock_);
  const std::int64_t broken = inlet_->take_broken();
  if (broken < 0) return broken;
  const auto index = static_cast<std::uint32_t>(broken);
  if (is_shown(index)) return broken;
  abandon(index);
  return -1;
}

}  // namespace ulfm::reliable
