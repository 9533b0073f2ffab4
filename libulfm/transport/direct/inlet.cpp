#include "transport/direct/inlet.hpp"

#include <algorithm>
#include <utility>

#include "base/wait.hpp"
#include "job/liveness.hpp"

namespace ulfm::direct {

Result<std::unique_ptr<DirectInlet>> DirectInlet::create(std::uint16_t number, const PortGeometry& wanted,
                                                         std::uint64_t token, std::function<void()> on_close) {
  std::unique_ptr<DirectInlet> inlet(new DirectInlet(normalised(wanted)));
  const Layout& at = inlet->layout_;
  auto segment = Segment::create("ulfm-port-" + std::to_string(number), at.end);
  if (!segment) return fail(segment.error());
  inlet->segment_ = std::move(*segment);
  for (auto [from, bytes] : {std::pair{std::size_t{0}, at.peers}, std::pair{at.slots, at.lanes - at.slots}})
    if (auto ok = inlet->segment_.commit(from, bytes); !ok) return fail(ok.error());

  PortHeader& header = inlet->header();
  header.version = kVersion;
  header.number = number;
  header.token = token;
  header.geometry = inlet->geometry_;
  const OpenMemory memory = open_memory(inlet->segment_.base(), inlet->geometry_, at);
  OpenConsumer::initialise(memory);
  inlet->open_ = OpenConsumer(memory);
  header.magic = kMagic;
  inlet->wake_source_ = DoorbellSource(header.doorbell);
  inlet->on_close_ = std::move(on_close);
  return inlet;
}

DirectInlet::~DirectInlet() {
  if (segment_) header().closed.store(1, std::memory_order_release);
  if (on_close_) on_close_();
}

// To whoever asked for the next frame, from a lane.
inline void DirectInlet::hand_out(std::uint32_t slot, Frame& frame) {
  frame.source = slot;
  frame.shared_room = false;
  frame.fresh = std::exchange(origins_[frame.origin].fresh, false);
  ++lanes_[slot]->held;
}

// The lane that spoke last is the likeliest to speak again, but not for ever while others wait.
bool DirectInlet::next(Frame& frame) {
  if (burst_ < kBurst && !active_.empty()) [[likely]] {
    const std::uint32_t slot = active_[hot_];
    Lane& lane = *lanes_[slot];
    if (lane.consumer.next_small(frame, lane.origin)) {
      hand_out(slot, frame);
      ++burst_;
      return true;
    }
  }
  return next_any(frame);
}

bool DirectInlet::next_in_lane(std::uint32_t index, Frame& frame) {
  const std::uint32_t slot = active_[index];
  Lane& lane = *lanes_[slot];
  const Peek peek = lane.consumer.next(frame);
  if (peek == Peek::nothing) {
    lane.consumer.publish();
    if (lane.held != 0) pin(lane);
    return false;
  }
  if (peek != Peek::frame || frame.origin != lane.origin || frame.kind == kCellLane) {
    frame.source = slot;
    return no_message(index, peek, frame);
  }
  hand_out(slot, frame);
  return true;
}

[[gnu::noinline]] bool DirectInlet::next_any(Frame& frame) {
  if (burst_ < kBurst && !active_.empty() && next_in_lane(hot_, frame)) {
    ++burst_;
    return true;
  }
  const auto lanes = static_cast<std::uint32_t>(active_.size());
  const bool burst_was_over = burst_ >= kBurst;
  burst_ = 0;
  if (next_in_open_ring(frame)) return true;
  // A bounded number of looks, so that an idle turn costs the same whatever the number of lanes.
  const std::uint32_t looks = lanes > 1 ? std::min<std::uint32_t>(lanes, 8) : burst_was_over ? lanes : 0;
  for (std::uint32_t i = 0; i < looks; ++i) {
    sweep_ = sweep_ + 1 < static_cast<std::uint32_t>(active_.size()) ? sweep_ + 1 : 0;
    if (sweep_ < active_.size() && next_in_lane(sweep_, frame)) {
      hot_ = sweep_;
      return true;
    }
  }
  return false;
}

bool DirectInlet::spin(std::uint32_t turns) {
  if (active_.empty()) {
    for (; turns != 0; --turns, after_look())
      if (open_.ready()) return true;
    return false;
  }
  const LaneConsumer& hot = lanes_[active_[hot_]]->consumer;
  for (; turns != 0; --turns, after_look())
    if (hot.ready() || open_.ready()) return true;
  return false;
}

bool DirectInlet::look() {
  return open_.ready() || std::any_of(active_.begin(), active_.end(),
                                      [&](std::uint32_t slot) { return lanes_[slot]->consumer.ready(); });
}

// A held frame can stop the lane. The sender goes round it by the open ring once it knows that all else is taken.
void DirectInlet::pin(const Lane& lane) {
  lane_control(segment_.base(), layout_, lane.number)
      .pinned.store(lane.consumer.pinned(), std::memory_order_release);  // pairs with DirectOutlet::may_detour
}

// What was found in the lane is a mark, or nonsense. True when a frame behind the mark was taken.
bool DirectInlet::no_message(std::uint32_t index, Peek peek, Frame& frame) {
  const std::uint32_t slot = active_[index], origin = lanes_[slot]->origin;
  if (peek == Peek::frame && frame.origin == origin) return pass_mark(slot, frame) && next_in_lane(index, frame);
  cut_off(origin);
  return false;
}

// The sender has been away and come back. What is behind the mark was sent after what went by the open ring, and may have
// been seen before it: then it has to wait. False when it does.
bool DirectInlet::pass_mark(std::uint32_t slot, const Frame& frame) {
  Lane& lane = *lanes_[slot];
  ++lane.marks;
  lane.consumer.release(frame);
  lane.consumer.publish();
  if (lane.marks <= lane.returns) return true;
  lane.ahead = true;
  deactivate(static_cast<std::int32_t>(slot));
  return false;
}

bool DirectInlet::next_in_open_ring(Frame& frame) {
  for (;;) {
    const Peek peek = open_.next(frame);
    if (peek == Peek::nothing) return false;
    frame.source = kOpenSource;
    frame.shared_room = true;
    if (peek == Peek::frame && frame.kind != kCellSkip && adopt(frame)) {
      if (frame.kind != kCellLane) {
        if (origins_[frame.origin].lane >= 0) leave_lane(frame);
        frame.fresh = std::exchange(origins_[frame.origin].fresh, false);
        return true;
      }
      if (!accept_lane(frame)) cut_off(frame.origin);
    } else if (peek == Peek::broken && frame.origin < origins_.size()) {
      cut_off(frame.origin);
    }
    open_.release(frame);
  }
}

// Is the frame from an origin that is connected and not cut off? The first frame connects it.
bool DirectInlet::adopt(Frame& frame) {
  const std::uint32_t index = frame.origin;
  if (index >= geometry_.peers) return false;
  if (index >= origins_.size()) origins_.resize(index + 1);
  Origin& origin = origins_[index];
  if (origin.cut_off) return false;
  if (!origin.connected) {
    if (peer_record(segment_.base(), layout_, index).state.load(std::memory_order_acquire) != PeerState::ready)
      return false;
    origin.connected = true;
    origin.fresh = true;
  }
  return true;
}

bool DirectInlet::accept_lane(const Frame& frame) {
  std::uint32_t number = 0;
  if (frame.length != sizeof number) return false;
  std::memcpy(&number, frame.data, sizeof number);
  Origin& origin = origins_[frame.origin];
  if (origin.lane >= 0) return return_to_lane(origin.lane, number);
  if (number >= geometry_.lanes) return false;
  // A check against nonsense: the frame that announces the lane came after the claim.
  if (lane_control(segment_.base(), layout_, number).owner.load(std::memory_order_acquire) != frame.origin + 1)
    return false;
  auto lane = std::make_unique<Lane>();
  lane->consumer = LaneConsumer(lane_memory(segment_.base(), geometry_, layout_, number));
  lane->number = number;
  lane->origin = frame.origin;
  std::uint32_t slot = 0;
  while (slot < lanes_.size() && lanes_[slot]) ++slot;
  if (slot == lanes_.size()) lanes_.emplace_back();
  lanes_[slot] = std::move(lane);
  origin.lane = static_cast<std::int32_t>(slot);
  active_.push_back(slot);
  ++lanes_granted_;
  hot_ = static_cast<std::uint32_t>(active_.size()) - 1;
  return true;
}

// The sender has gone round its lane: nothing more comes there until it says so.
void DirectInlet::leave_lane(const Frame& frame) {
  const std::int32_t slot = origins_[frame.origin].lane;
  Lane& lane = *lanes_[static_cast<std::size_t>(slot)];
  if (!lane.away && !lane.ahead) deactivate(slot);
  lane.away = true;
}

bool DirectInlet::return_to_lane(std::int32_t slot, std::uint32_t number) {
  Lane& lane = *lanes_[static_cast<std::size_t>(slot)];
  if (lane.number != number) return false;
  ++lane.returns;
  if (!lane.away && !lane.ahead) return true;  // it turned round before it sent anything the other way
  lane.away = lane.ahead = false;
  active_.push_back(static_cast<std::uint32_t>(slot));
  return true;
}

void DirectInlet::release(const Frame& frame) {
  if (frame.source == kOpenSource) {
    open_.release(frame);
    header().open_room.ring();
    return;
  }
  Lane& lane = *lanes_[frame.source];
  lane.consumer.release(frame);
  if (lane.away || lane.ahead)
    lane.consumer.publish();  // nobody polls it now, and the sender waits for this to come back
  if (--lane.held == 0 && lane.leaving) drop_lane(frame.source);
}

OriginInfo DirectInlet::origin(std::uint32_t index) const {
  if (index >= origins_.size() || !origins_[index].connected) return {};
  const PeerRecord& record = peer_record(segment_.base(), layout_, index);
  const std::size_t length = std::min<std::size_t>(record.hello_length, kHelloLimit);
  return {encode(record.card), record.port, {.number = record.card.pid}, {record.hello, length}};
}

void DirectInlet::drop_origin(std::uint32_t index) {
  if (index >= origins_.size() || !origins_[index].connected) return;
  const std::int32_t slot = origins_[index].lane;
  origins_[index] = Origin{};
  if (slot < 0) return free_record(index);
  deactivate(slot);
  Lane& lane = *lanes_[static_cast<std::size_t>(slot)];
  lane.leaving = true;
  if (lane.held == 0) drop_lane(static_cast<std::uint32_t>(slot));
}

void DirectInlet::deactivate(std::int32_t slot) {
  std::erase(active_, static_cast<std::uint32_t>(slot));
  hot_ = sweep_ = 0;
}

void DirectInlet::free_record(std::uint32_t index) {
  PeerRecord& record = peer_record(segment_.base(), layout_, index);
  record.state.store(PeerState::free, std::memory_order_release);  // pairs with DirectOutlet::claim_record
  header().peers_freed.fetch_add(1, std::memory_order_release);
}

void DirectInlet::drop_lane(std::uint32_t slot) {
  const std::uint32_t number = lanes_[slot]->number;
  const std::uint32_t origin = lanes_[slot]->origin;
  lanes_[slot].reset();
  // The next owner starts at position 0 of zeroed memory.
  segment_.decommit(layout_.lanes + number * layout_.lane_size, layout_.lane_size);
  LaneControl& control = lane_control(segment_.base(), layout_, number);
  control.consumed.store(0, std::memory_order_relaxed);
  control.pinned.store(0, std::memory_order_relaxed);
  control.room.awaited.store(0, std::memory_order_relaxed);
  control.owner.store(0, std::memory_order_release);  // pairs with DirectOutlet::claim_lane_number
  header().lanes_freed.fetch_add(1, std::memory_order_release);
  free_record(origin);
}

void DirectInlet::cut_off(std::uint32_t index) {
  if (index >= origins_.size()) return;
  if (origins_[index].lane >= 0) deactivate(origins_[index].lane);
  origins_[index].cut_off = true;
  broken_ = index;
}

bool DirectInlet::has_frame() {
  if (open_.ready()) return true;
  for (const std::uint32_t slot : active_) {
    lanes_[slot]->consumer.publish();
    if (lanes_[slot]->consumer.ready()) return true;
  }
  return false;
}

std::int64_t DirectInlet::take_broken() { return std::exchange(broken_, -1); }

std::int64_t DirectInlet::find_dead() {
  std::uint32_t stuck = 0;
  if (open_.stuck_on(stuck) && stuck < geometry_.peers) {
    const Card& card = peer_record(segment_.base(), layout_, stuck).card;
    if (!is_alive(card.pid, card.started)) open_.skip_claim(stuck);
  }
  // A few per call: this is called again and again while someone waits.
  for (int looks = 0; looks < 4 && !origins_.empty(); ++looks) {
    check_next_ = check_next_ + 1 < origins_.size() ? check_next_ + 1 : 0;
    if (!origins_[check_next_].connected) continue;
    const Card& card = peer_record(segment_.base(), layout_, check_next_).card;
    if (!is_alive(card.pid, card.started) && !has_frame()) return check_next_;
  }
  return -1;
}

}  // namespace ulfm::direct
