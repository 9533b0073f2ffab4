#include "transport/emulated/inlet.hpp"

#include <utility>

#include "transport/emulated/card.hpp"

namespace ulfm::emulated {

using fabric::Record;
using fabric::Slot;
using fabric::SlotState;

EmulatedInlet::EmulatedInlet(fabric::FabricEngine& engine, std::uint16_t number)
    : engine_(engine),
      arena_(engine.arena()),
      number_(number),
      box_(arena_.box(engine.self(), number)),
      wake_source_(box_.bell),
      position_(box_.delivered),
      held_(arena_.sizes().endpoints, 0) {
  box_.bell.cancel();
  if (fabric::VirtualClock* clock = engine_.clock(); clock != nullptr) {
    box_.opened_at = clock->now();
    clock->opened(number, box_.delivered);
  }
  arena_.endpoint(engine_.self()).generation[number].fetch_add(1, std::memory_order_release);  // pairs with connect
}

EmulatedInlet::~EmulatedInlet() {
  if (fabric::VirtualClock* clock = engine_.clock(); clock != nullptr) {
    clock->look();  // what has come by now has come to an open port
    clock->looked_at(number_, box_.delivered);
    box_.closed_at = clock->now();
  }
  // Pairs with EmulatedOutlet::port_closed.
  arena_.endpoint(engine_.self()).generation[number_].fetch_add(1, std::memory_order_release);
  engine_.quiesce();  // after this nothing more is put into the box
  drain();
  for (std::uint32_t i = 0; i < origins_.size(); ++i) drop_origin(i);
}

void EmulatedInlet::drain() {
  for (; ready(); ++position_) {
    const std::uint32_t entry =
        box_.entries[position_ & (arena_.sizes().box_entries - 1)].load(std::memory_order_relaxed);
    const std::uint32_t index = entry & fabric::kSlotMask;
    if (index >= arena_.sizes().all_slots()) continue;
    // The first frame of a connection, which this port would have met with it and forgotten with the others.
    const RecordUse use = record_of(arena_.slot(index));
    if (use.record < arena_.sizes().records && meet_record(arena_, use)) give_back_record(arena_, use);
    give_back(index);
  }
}

RecordUse EmulatedInlet::record_of(Slot& slot) const {
  if (slot.receivers == 0) return {slot.record, slot.record_generation};
  const std::int64_t mine = place_in(slot);
  if (mine < 0) return {};
  const fabric::Receiver& self = arena_.receivers(slot)[static_cast<std::size_t>(mine)];
  return {self.record, self.record_generation};
}

// ---- frames ---------------------------------------------------------------------------------------------------------

// Pairs with FabricEngine::put_into_box. Whoever takes the entry after this reads it relaxed.
bool EmulatedInlet::ready() const {
  const std::uint32_t count = arena_.sizes().box_entries;
  const std::uint32_t entry = box_.entries[position_ & (count - 1)].load(std::memory_order_acquire);
  return entry == fabric::queue_entry(position_, count, entry & fabric::kSlotMask);
}

bool EmulatedInlet::next(Frame& frame) {
  if (fabric::VirtualClock* clock = engine_.clock(); clock != nullptr) [[unlikely]]
    return next_timed(*clock, frame);
  if (take(frame)) return true;
  engine_.progress();
  if (take(frame)) return true;
  if (engine_.is_stalled()) [[unlikely]]
    engine_.admit_more();
  return false;
}

bool EmulatedInlet::next_awaited(Frame& frame) {
  fabric::VirtualClock* const clock = engine_.clock();
  return clock != nullptr ? take_timed(*clock, frame) : next(frame);
}

// What arrives by this process's time, and nothing later, has arrived after a look. What lies there has come by then,
// and nothing can come before it.
bool EmulatedInlet::next_timed(fabric::VirtualClock& clock, Frame& frame) {
  if (take_timed(clock, frame)) return true;
  clock.look();
  clock.looked_at(number_, box_.delivered);
  if (take_timed(clock, frame)) return true;
  if (engine_.is_stalled()) [[unlikely]]
    engine_.admit_more();
  return false;
}

bool EmulatedInlet::take_timed(fabric::VirtualClock& clock, Frame& frame) {
  if (!take(frame)) return false;
  clock.looked_at(number_, position_);
  const fabric::Durations& d = clock.costs();
  const std::uint8_t noted = arena_.slot(static_cast<std::uint32_t>(frame.position)).goes_on;
  const std::uint64_t software = (noted & fabric::kNoSoftware) != 0      ? 0
                                 : (noted & fabric::kSystemMessage) != 0 ? d.system_receive
                                                                         : d.receive;
  clock.spend(software + (frame.header_length + frame.length) * d.receive_byte + 1, VirtualTime::Spent::messages);
  return true;
}

bool EmulatedInlet::spin(std::uint32_t turns) {
  for (; turns != 0; --turns) {
    if (ready()) return true;
    engine_.progress();
  }
  return ready();
}

bool EmulatedInlet::take(Frame& frame) {
  const std::uint32_t count = arena_.sizes().box_entries;
  while (ready()) {
    const std::uint32_t index =
        box_.entries[position_++ & (count - 1)].load(std::memory_order_relaxed) & fabric::kSlotMask;
    if (index >= arena_.sizes().all_slots()) continue;
    if (describe(index, frame)) return true;
    give_back(index);
  }
  return false;
}

// The frame in a slot. False when it is nobody's, or makes no sense.
bool EmulatedInlet::describe(std::uint32_t index, Frame& frame) {
  Slot& slot = arena_.slot(index);
  frame.source = 0;
  frame.position = index;
  frame.kind = static_cast<Kind>(slot.kind);
  frame.header_length = slot.header;
  frame.length = slot.length;
  if (!(slot.receivers != 0 ? locate_share(slot, frame) : locate(slot, frame))) return false;
  frame.fresh = std::exchange(origins_[frame.origin].fresh, false);
  frame.shared_room = engine_.has_pools() || is_scarce(index);
  ++held_[index / arena_.sizes().slots];
  return true;
}

// A slot is a credit of its sender: of those that this port holds too many whoever keeps the frame should copy it. The
// receivers of a frame for several may each hold other ones, so together they hold those of the first quarter.
bool EmulatedInlet::is_scarce(std::uint32_t index) const {
  const std::uint32_t count = arena_.sizes().slots, held = held_[index / count];
  return held >= count / 4 || (arena_.slot(index).receivers != 0 && held >= kHeldOfMany && index % count >= count / 4);
}

bool EmulatedInlet::locate(Slot& slot, Frame& frame) {
  if (!adopt({slot.record, slot.record_generation}, frame)) return false;
  const bool is_known = frame.kind == Kind::first || frame.kind == Kind::more || frame.kind == Kind::bye;
  if (!is_known || frame.length > arena_.sizes().slot_bytes ||
      frame.header_length + frame.length > arena_.sizes().slot_bytes) {
    cut_off(frame.origin);
    return false;
  }
  const bool in_line = frame.header_length + frame.length <= fabric::kSlotInline;
  frame.header = in_line ? slot.bytes : arena_.body(slot);
  frame.data = frame.header + frame.header_length;
  return true;
}

// Data that several have, with the header for this port.
bool EmulatedInlet::locate_share(Slot& slot, Frame& frame) {
  const std::int64_t mine = place_in(slot);
  if (mine < 0) return false;
  const fabric::Receiver& self = arena_.receivers(slot)[static_cast<std::size_t>(mine)];
  if (!adopt({self.record, self.record_generation}, frame)) return false;
  frame.header = arena_.header_for(slot, static_cast<std::size_t>(mine));
  frame.data = arena_.body(slot);
  if ((frame.kind == Kind::first || frame.kind == Kind::more) && frame.header != nullptr) return true;
  cut_off(frame.origin);
  return false;
}

// This port among the receivers of a frame; -1 when it is none of them.
std::int64_t EmulatedInlet::place_in(Slot& slot) const {
  const auto all = arena_.receivers(slot);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].to == engine_.self() && all[i].port == number_) return static_cast<std::int64_t>(i);
  return -1;
}

// Whose frame it is. The first one of a connection makes its origin known.
bool EmulatedInlet::adopt(RecordUse use, Frame& frame) {
  if (use.record >= arena_.sizes().records) return false;
  if (use.record >= by_record_.size()) by_record_.resize(use.record + 1, 0);
  std::uint32_t& known = by_record_[use.record];
  if (known == 0) {
    if (!meet_record(arena_, use)) return false;
    if (unused_.empty()) {
      unused_.push_back(static_cast<std::uint32_t>(origins_.size()));
      origins_.emplace_back();
    }
    origins_[unused_.back()] = {use, true, true, false};
    known = unused_.back() + 1;
    unused_.pop_back();
  }
  frame.origin = known - 1;
  const Origin& origin = origins_[frame.origin];
  return origin.use.generation == use.generation && !origin.cut_off;
}

void EmulatedInlet::cut_off(std::uint32_t origin) {
  origins_[origin].cut_off = true;
  broken_.push_back(origin);
}

void EmulatedInlet::release(const Frame& frame) {
  const auto index = static_cast<std::uint32_t>(frame.position);
  if (index < arena_.sizes().all_slots()) --held_[index / arena_.sizes().slots];
  give_back(index);
}

void EmulatedInlet::give_back(std::uint32_t slot) {
  if (slot >= arena_.sizes().all_slots()) return;
  if (arena_.slot(slot).receivers != 0) return give_back_share(slot);
  if (fabric::VirtualClock* clock = engine_.clock(); clock != nullptr) [[unlikely]]
    return clock->give_back(slot);
  const bool awaited = (engine_.has_pools() || engine_.has_back_pressure()) && engine_.read_out(slot, number_);
  arena_.slot(slot).state.store(SlotState::free, std::memory_order_release);  // pairs with SendSlots::take
  if (awaited) engine_.room_made();
}

// The last of its receivers gives the slot to its sender.
void EmulatedInlet::give_back_share(std::uint32_t index) {
  Slot& slot = arena_.slot(index);
  const std::int64_t mine = place_in(slot);
  if (mine < 0) return;
  fabric::Receiver& self = arena_.receivers(slot)[static_cast<std::size_t>(mine)];
  if (fabric::VirtualClock* clock = engine_.clock(); clock != nullptr) return clock->give_back_share(index, self);
  if (release_receiver(arena_.share(slot), self))
    slot.state.store(SlotState::free, std::memory_order_release);  // pairs with SendSlots::take
}

// ---- origins --------------------------------------------------------------------------------------------------------

OriginInfo EmulatedInlet::origin(std::uint32_t index) const {
  if (index >= origins_.size() || !origins_[index].connected) return {};
  const Record& record = arena_.record(origins_[index].use.record);
  if (record.from >= arena_.sizes().endpoints) return {};
  const std::size_t length = std::min<std::size_t>(record.hello_length, kHelloLimit);
  return {encode(EmulatedCard{arena_.header().token, record.from, record.from_token}),
          record.from_port,
          {.number = record.from_pid},
          {record.hello, length}};
}

void EmulatedInlet::drop_origin(std::uint32_t index) {
  if (index >= origins_.size() || !origins_[index].connected) return;
  const RecordUse use = origins_[index].use;
  origins_[index] = Origin{};
  by_record_[use.record] = 0;
  unused_.push_back(index);
  give_back_record(arena_, use);
}

// ---- waiting --------------------------------------------------------------------------------------------------------

bool EmulatedInlet::has_frame() {
  if (engine_.clock() != nullptr) engine_.clock()->look();
  if (ready()) return true;
  if (engine_.is_stalled()) [[unlikely]]
    engine_.admit_more();
  engine_.retire();  // from here on senders see to their frames themselves
  if (engine_.has_work()) engine_.step();
  return ready();
}

std::int64_t EmulatedInlet::find_dead() {
  engine_.reclaim_when_full();  // what waits for room may wait for what the dead left unread
  for (int looks = 0; looks < 4 && !origins_.empty(); ++looks) {
    check_next_ = check_next_ + 1 < origins_.size() ? check_next_ + 1 : 0;
    const Origin& origin = origins_[check_next_];
    if (!origin.connected) continue;
    const Record& record = arena_.record(origin.use.record);
    if (record.from >= arena_.sizes().endpoints) continue;
    // Its endpoint goes to another process only when nothing of it is left.
    if (arena_.endpoint(record.from).token != record.from_token) return check_next_;
    // What it sent before it ended arrives first, which may take its time.
    if (!engine_.is_alive(record.from) && !engine_.has_on_the_way(record.from) && !has_frame_of(record.from))
      return check_next_;
  }
  return -1;
}

// A frame of that process is in the box: frames of others do not delay the report of its end.
bool EmulatedInlet::has_frame_of(std::uint32_t from) const {
  const std::uint32_t count = arena_.sizes().box_entries;
  for (std::uint64_t at = position_; at != position_ + count; ++at) {
    const std::uint32_t entry = box_.entries[at & (count - 1)].load(std::memory_order_acquire);  // as in ready()
    if (entry != fabric::queue_entry(at, count, entry & fabric::kSlotMask)) return false;
    if ((entry & fabric::kSlotMask) / arena_.sizes().slots == from) return true;
  }
  return false;
}

std::int64_t EmulatedInlet::take_broken() {
  if (broken_.empty()) return -1;
  const std::uint32_t origin = broken_.back();
  broken_.pop_back();
  return origin;
}

}  // namespace ulfm::emulated
