#include "transport/direct/inlet.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/wait.hpp"
#include "job/liveness.hpp"

namespace ulfm::direct {

Result<std::unique_ptr<DirectInlet>> DirectInlet::create(std::uint16_t number, const PortGeometry& wanted,
                                                         std::uint64_t token, std::function<void()> on_close) {
  std::unique_ptr<DirectInlet> inlet(new DirectInlet(normalised(wanted)));
  const Layout& at = inlet->layout_;
  auto segment = Segment::create(fmt::format("ulfm-port-{}", number), at.end);
  if (!segment) return fail(segment.error());
  inlet->segment_ = std::move(*segment);
  if (auto ok = inlet->segment_.commit(0, at.peers); !ok) return fail(ok.error());
  inlet->segment_.prefault(0, std::min(at.peers, kMostPrefault));

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
  for (const auto& one : pools_)
    for (std::uint32_t buffer = 0; buffer < kPoolBuffers; ++buffer) one->pool.release(buffer, one->member);
  if (on_close_) on_close_();
}

// To whoever asked for the next frame, from a lane.
inline void DirectInlet::hand_out(std::uint32_t slot, Frame& frame) {
  frame.source = slot;
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
  const Peek peek = take_from(lane, frame);
  if (peek == Peek::nothing) {
    if (lane.consumer.publish() && lane.exchange) {
      const std::uint32_t turns = lane.exchange->paused();
      if (counters_ != nullptr) counters_->common_frames.add(turns);
    }
    if (lane.held != 0) pin(lane);
    return false;
  }
  const bool own = peek == Peek::frame && frame.origin == lane.origin;
  if (own && (frame.kind == kCellPool || frame.kind == kCellExchange)) {
    if (frame.kind == kCellPool) adopt_pool(frame);
    else adopt_exchange(lane, frame);
    lane.consumer.release(frame);
    return next_in_lane(index, frame);
  }
  const bool nowhere = own && frame.kind == kCellShared && !locate_shared(frame);
  if (!own || nowhere || frame.kind == kCellLane) {
    frame.source = slot;
    return no_message(index, nowhere ? Peek::broken : peek, frame);
  }
  if (frame.kind == Kind::bye) origins_[frame.origin].said_bye = true;
  if (lane.exchange && frame.length >= kLeastExchanged) lane.exchange->heard();
  hand_out(slot, frame);
  return true;
}

// ---- memory in which both directions take turns ---------------------------------------------------------------------

void DirectInlet::adopt_exchange(const Lane& lane, const Frame& frame) {
  ExchangeNotice notice;
  if (!lane.exchange || frame.length != sizeof notice) return;
  std::memcpy(&notice, frame.data, sizeof notice);
  lane.exchange->adopt(notice, opener_, record(lane.origin).card);
}

// The next frame of a lane, with its data wherever they lie.
Peek DirectInlet::take_from(Lane& lane, Frame& frame) {
  const Peek peek = lane.consumer.next(frame);
  if (peek != Peek::elsewhere) return peek;
  frame.data = lane.exchange ? lane.exchange->locate(lane.consumer.place(), frame.length) : nullptr;
  if (frame.data == nullptr) return Peek::broken;
  prefetch_body(frame.data, frame.length);
  return Peek::frame;
}

// ---- pools of groups ------------------------------------------------------------------------------------------------

// A sender has a pool. Whether it can be read here is its to know before it puts anything of ours into it.
void DirectInlet::adopt_pool(const Frame& frame) {
  PoolNotice notice;
  if (frame.length != sizeof notice) return;
  std::memcpy(&notice, frame.data, sizeof notice);
  drop_pools(frame.origin);
  auto pool = opener_.open_pool(record(frame.origin).card, notice);
  if (!pool) return;
  pools_.push_back(std::make_unique<ReadPool>(ReadPool{std::move(*pool), notice.token, frame.origin, notice.member}));
  const Pool& read = pools_.back()->pool;
  read.attached(notice.member).store(1, std::memory_order_relaxed);
}

// A reference becomes the frame that it refers to. False when there is no such thing.
bool DirectInlet::locate_shared(Frame& frame) {
  PoolReference reference;
  if (frame.length != sizeof reference) return false;
  std::memcpy(&reference, frame.data, sizeof reference);
  const auto it = std::find_if(pools_.begin(), pools_.end(), [&](const auto& one) {
    return one->token == reference.token && one->origin == frame.origin;
  });
  const auto kind = static_cast<Kind>(reference.kind);
  if (it == pools_.end() || reference.buffer >= kPoolBuffers || reference.length > kPoolBuffer ||
      (kind != Kind::first && kind != Kind::more))
    return false;
  frame.data = (*it)->pool.buffer(reference.buffer);
  frame.length = reference.length;
  frame.kind = kind;
  ++(*it)->held;
  return true;
}

void DirectInlet::release_shared(const Frame& frame) {
  for (const auto& one : pools_) {
    const std::int64_t buffer = one->pool.buffer_at(frame.data);
    if (buffer < 0) continue;
    one->pool.release(static_cast<std::uint32_t>(buffer), one->member);
    --one->held;
    return;
  }
}

// Those that are over and not held, when nothing in a lane can refer to them: everything older from `origin` has been
// taken.
void DirectInlet::drop_pools(std::uint32_t origin) {
  std::erase_if(pools_, [&](const auto& one) {
    const bool over = one->pool.header().closed.load(std::memory_order_relaxed) != 0;
    return one->held == 0 && over && (one->origin == origin || !origins_[one->origin].connected);
  });
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

// next() sweeps a few lanes only, so it is told where to go: whoever looked has no time for a sweep of its own. Until
// its next turn on the core it would not find what is there.
bool DirectInlet::look() {
  const auto ready =
      std::find_if(active_.begin(), active_.end(), [&](std::uint32_t slot) { return lanes_[slot]->consumer.ready(); });
  if (ready == active_.end()) return open_.ready();
  hot_ = static_cast<std::uint32_t>(ready - active_.begin());
  return true;
}

// A held frame can stop the lane. The sender goes round it by the open ring once it knows that all else is taken.
void DirectInlet::pin(const Lane& lane) {
  pin_lane(lane_control(segment_.base(), layout_, lane.number).pinned, lane.consumer);
}

// What was found in the lane is a mark, or nonsense. True when a frame behind the mark was taken.
bool DirectInlet::no_message(std::uint32_t index, Peek peek, Frame& frame) {
  const std::uint32_t slot = active_[index], origin = lanes_[slot]->origin;
  if (peek == Peek::frame && frame.origin == origin) return pass_mark(slot, frame) && next_in_lane(index, frame);
  origins_[origin].unreadable = true;
  cut_off(origin);
  return false;
}

// The sender has been away and come back. What is behind the mark was sent after what went by the open ring, and may
// have been seen before it: then it has to wait. False when it does.
bool DirectInlet::pass_mark(std::uint32_t slot, const Frame& frame) {
  Lane& lane = *lanes_[slot];
  lane.turns.marked();
  lane.consumer.release(frame);
  lane.consumer.publish();
  if (lane.turns.is_read()) return true;
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
        if (frame.kind == Kind::bye) origins_[frame.origin].said_bye = true;
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
  if (origin.dropped && frame.kind == Kind::bye) origin.said_bye = true;
  if (origin.cut_off || origin.dropped) return false;
  if (!origin.connected) {
    if (record(index).state.load(std::memory_order_acquire) != peer_word(PeerState::ready)) return false;
    origin.connected = true;
    origin.fresh = true;
    if (exchanges_) origin.exchange = exchanges_->with(record(index).card.token, record(index).port);
    if (origin.exchange && !origin.exchange->add_origin()) origin.exchange.reset();
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
  lane->consumer = LaneConsumer(lane_memory(number));
  lane->number = number;
  lane->origin = frame.origin;
  lane->exchange = std::move(origin.exchange);
  if (lane->exchange) lane->consumer.use_common(lane->exchange->common(), frame.origin);
  std::uint32_t slot = 0;
  while (slot < lanes_.size() && lanes_[slot]) ++slot;
  if (slot == lanes_.size()) lanes_.emplace_back();
  lanes_[slot] = std::move(lane);
  origin.lane = static_cast<std::int32_t>(slot);
  active_.push_back(slot);
  if (counters_ != nullptr) counters_->lanes_granted.add();
  hot_ = static_cast<std::uint32_t>(active_.size()) - 1;
  return true;
}

// The sender has gone round its lane: nothing more comes there until it says so.
void DirectInlet::leave_lane(const Frame& frame) {
  const std::int32_t slot = origins_[frame.origin].lane;
  Lane& lane = *lanes_[static_cast<std::size_t>(slot)];
  if (lane.turns.is_read()) deactivate(slot);
  lane.turns.went_round();
}

bool DirectInlet::return_to_lane(std::int32_t slot, std::uint32_t number) {
  Lane& lane = *lanes_[static_cast<std::size_t>(slot)];
  if (lane.number != number) return false;
  const bool was_read = lane.turns.is_read();
  lane.turns.returned();
  if (was_read) return true;  // it turned round before it sent anything the other way
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
  if (lane.exchange && frame.length >= kLeastExchanged) lane.exchange->release(frame.data);
  if (!pools_.empty()) [[unlikely]]
    release_shared(frame);
  if (!lane.turns.is_read())
    lane.consumer.publish();  // nobody polls it now, and the sender waits for this to come back
  if (--lane.held == 0 && lane.leaving) drop_lane(frame.source);
}

OriginInfo DirectInlet::origin(std::uint32_t index) const {
  if (index >= origins_.size() || !origins_[index].connected) return {};
  const PeerRecord& of = record(index);
  const std::size_t length = std::min<std::size_t>(of.hello_length, kHelloLimit);
  return {encode(of.card), of.port, {.number = of.card.pid}, {of.hello, length}};
}

// A sender that neither said bye nor has ended may still write. Its record is marked, and it keeps record and lane
// until it has left; otherwise its frames would be taken for those of the next owner.
void DirectInlet::drop_origin(std::uint32_t index) {
  if (index >= origins_.size() || !origins_[index].connected || origins_[index].dropped) return;
  Origin& origin = origins_[index];
  origin.dropped = true;
  if (origin.lane >= 0) deactivate(origin.lane);
  std::uint32_t ready = peer_word(PeerState::ready);
  // Publishes nothing: the sender only learns that it need not go on.
  if (!origin.said_bye)
    record(index).state.compare_exchange_strong(ready, peer_word(PeerState::refused), std::memory_order_relaxed);
  dropped_.push_back(index);
  settle(index);
}

// Forgets a dropped origin when nothing of it can come any more.
void DirectInlet::settle(std::uint32_t index) {
  discard_lane(index);
  if (!origins_[index].said_bye && !has_ended(index)) return;
  if (open_.has_frames_of(index)) return;
  std::erase(dropped_, index);
  clear_origin(index);
}

void DirectInlet::settle_dropped() {
  for (std::size_t i = dropped_.size(); i != 0; --i) settle(dropped_[i - 1]);
}

// What a dropped sender has written goes, so that its goodbye is found.
void DirectInlet::discard_lane(std::uint32_t index) {
  Origin& origin = origins_[index];
  if (origin.lane < 0 || origin.unreadable) return;
  Lane& lane = *lanes_[static_cast<std::size_t>(origin.lane)];
  Frame frame;
  Peek peek = Peek::nothing;
  for (std::uint32_t n = 0; n < geometry_.lane_cells; ++n) {
    peek = take_from(lane, frame);
    if (peek != Peek::frame) break;
    if (frame.kind == Kind::bye) origin.said_bye = true;
    if (frame.kind == kCellShared && locate_shared(frame)) release_shared(frame);
    if (lane.exchange) lane.exchange->release(frame.data);
    lane.consumer.release(frame);
  }
  origin.unreadable = peek == Peek::broken;
  lane.consumer.publish();
}

// It writes nothing any more: by its own word, or because its process has ended.
bool DirectInlet::has_ended(std::uint32_t index) const {
  const PeerRecord& of = record(index);
  if (of.state.load(std::memory_order_acquire) == peer_word(PeerState::left)) return true;  // pairs with ~DirectOutlet
  return !is_alive(of.card.pid, of.card.started);
}

bool DirectInlet::has_frame_of(std::uint32_t index) {
  const Origin& origin = origins_[index];
  return open_.has_frames_of(index) ||
         (origin.lane >= 0 && !origin.unreadable && lanes_[static_cast<std::size_t>(origin.lane)]->consumer.ready());
}

// Record and lanes are free for the next sender: the lane when nothing of it is held any more.
void DirectInlet::clear_origin(std::uint32_t index) {
  const std::int32_t slot = origins_[index].lane;
  origins_[index] = Origin{};
  const std::uint32_t own = slot >= 0 ? lanes_[static_cast<std::size_t>(slot)]->number : geometry_.lanes;
  // A process may end between its claim of a lane and its word about it.
  const std::uint32_t used = std::min(header().lanes_used.load(std::memory_order_relaxed), geometry_.lanes);
  for (std::uint32_t i = 0; i < used; ++i)
    if (i != own && lane_control(segment_.base(), layout_, i).owner.load(std::memory_order_relaxed) == index + 1)
      free_lane(i);
  if (slot >= 0) {
    Lane& lane = *lanes_[static_cast<std::size_t>(slot)];
    lane.leaving = true;
    if (lane.held != 0) return;
    drop_lane(static_cast<std::uint32_t>(slot));
  } else {
    free_record(index);
  }
}

void DirectInlet::deactivate(std::int32_t slot) {
  std::erase(active_, static_cast<std::uint32_t>(slot));
  hot_ = sweep_ = 0;
}

void DirectInlet::free_record(std::uint32_t index) {
  // Release pairs with DirectOutlet::claim_record.
  record(index).state.store(peer_word(PeerState::free), std::memory_order_release);
  header().peers_freed.fetch_add(1, std::memory_order_release);
}

void DirectInlet::drop_lane(std::uint32_t slot) {
  const std::uint32_t number = lanes_[slot]->number;
  const std::uint32_t origin = lanes_[slot]->origin;
  lanes_[slot].reset();
  free_lane(number);
  free_record(origin);
}

// The next owner starts at position 0 of cells that are valid for no position.
void DirectInlet::free_lane(std::uint32_t number) {
  if (!segment_.decommit(layout_.lanes + number * layout_.lane_size, layout_.lane_size)) {
    Cell* cells = lane_memory(number).cells;
    for (std::uint32_t i = 0; i < geometry_.lane_cells; ++i) cells[i].word.store(0, std::memory_order_relaxed);
  }
  LaneControl& control = lane_control(segment_.base(), layout_, number);
  control.consumed.store(0, std::memory_order_relaxed);
  control.pinned.store(0, std::memory_order_relaxed);
  control.room.awaited.store(0, std::memory_order_relaxed);
  control.owner.store(0, std::memory_order_release);  // pairs with DirectOutlet::claim_lane_number
  header().lanes_freed.fetch_add(1, std::memory_order_release);
}

void DirectInlet::cut_off(std::uint32_t index) {
  if (index >= origins_.size()) return;
  if (std::exchange(origins_[index].cut_off, true)) return;
  if (origins_[index].lane >= 0) deactivate(origins_[index].lane);
  broken_.push_back(index);
}

bool DirectInlet::has_frame() {
  if (open_.ready()) return true;
  for (const std::uint32_t slot : active_) {
    lanes_[slot]->consumer.publish();
    if (lanes_[slot]->consumer.ready()) return true;
  }
  return false;
}

std::int64_t DirectInlet::take_broken() {
  if (broken_.empty()) return -1;
  const std::uint32_t index = broken_.back();
  broken_.pop_back();
  return index;
}

std::int64_t DirectInlet::find_dead() {
  std::uint32_t stuck = 0;
  if (open_.stuck_on(stuck) && stuck < geometry_.peers) {
    const DirectCard& card = record(stuck).card;
    if (!is_alive(card.pid, card.started)) open_.skip_claim(stuck);
  }
  settle_dropped();
  // A few per call: this is called again and again while someone waits.
  for (int looks = 0; looks < 4 && !origins_.empty(); ++looks) {
    check_next_ = check_next_ + 1 < origins_.size() ? check_next_ + 1 : 0;
    if (!origins_[check_next_].connected || origins_[check_next_].dropped) continue;
    const DirectCard& card = record(check_next_).card;
    // What it has written is read first. What others write holds up nobody's death.
    if (!is_alive(card.pid, card.started) && !has_frame_of(check_next_)) return check_next_;
  }
  return -1;
}

}  // namespace ulfm::direct
