// Events of virtual time: what processes send enters the model at its moment, and what comes out arrives at its own.
#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "fabric/engine/clock.hpp"
#include "fabric/engine/engine.hpp"

namespace ulfm::fabric {
namespace {

bool is_before(const TimedEvent& a, const TimedEvent& b) noexcept {
  // At one moment: what happens to frames, then what is sent, each in the order of ranks.
  const bool a_sends = a.kind == TimedEvent::send, b_sends = b.kind == TimedEvent::send;
  return std::tie(a.time, a_sends, a.order) < std::tie(b.time, b_sends, b.order);
}

}  // namespace

// What processes have sent becomes events. FabricEngine::submit() sets the bit when the entry is there, and the clock
// advances after that, so a process that has seen the clock sees the entry.
void VirtualClock::take_in() noexcept {
  ArenaHeader& h = arena_.header();
  for (std::uint32_t w = 0; w < (used() + 63) / 64; ++w) {
    if (h.pending[w].load(std::memory_order_seq_cst) == 0) continue;
    for (std::uint64_t bits = h.pending[w].exchange(0, std::memory_order_seq_cst); bits != 0; bits &= bits - 1)
      take_queue(w * 64 + static_cast<std::uint32_t>(std::countr_zero(bits)));
  }
}

void VirtualClock::take_queue(std::uint32_t e) noexcept {
  if (e >= arena_.sizes().endpoints) return;
  const std::uint32_t count = arena_.sizes().slots;
  for (Endpoint& endpoint = arena_.endpoint(e);; ++endpoint.taken) {
    const std::uint32_t entry =
        arena_.sending_queue(e)[endpoint.taken & (count - 1)].load(std::memory_order_acquire);  // pairs with submit
    const std::uint32_t slot = entry & kSlotMask;
    if (entry != queue_entry(endpoint.taken, count, slot)) return;
    if (slot / count == e) push(arena_.slot_time(slot).stamp, TimedEvent::send, slot);
  }
}

std::uint64_t VirtualClock::next_event() const noexcept {
  if (!model_.idle()) return 0;
  return time_.events != 0 ? arena_.event(0).time : kNoMoment;
}

// The first event, if it is before that moment; before others of that moment, what becomes of the network.
bool VirtualClock::step(std::uint64_t before) noexcept {
  const std::uint64_t fault = model_.due() == kNothingDue ? kNoMoment : model_.due() * 1000;
  const std::uint64_t event = time_.events != 0 ? arena_.event(0).time : kNoMoment;
  const bool on_the_way = !model_.idle();
  // A fault alone is no reason to go on: without frames nobody would see it.
  const bool fault_counts = fault < before && (before != kNoMoment || on_the_way || event != kNoMoment);
  const std::uint64_t until = std::min({before, event, fault_counts ? fault : kNoMoment});
  Ending ending;
  if (on_the_way && cycles_.run_until(until, costs().cycle, ending)) return ended(ending, 0), true;
  if (until == before) return false;
  if (until == fault && fault_counts) return model_.advance(fault / 1000), true;
  return happen(pop()), true;
}

void VirtualClock::happen(const TimedEvent& event) noexcept {
  switch (event.kind) {
    case TimedEvent::enter: return enter_network(event.slot, event.time);
    case TimedEvent::arrive: return arrive(event);
    case TimedEvent::room: return make_room(event.slot, event.time);
    case TimedEvent::send: return send(event.slot / arena_.sizes().slots, event.slot);
  }
}

// The card takes a frame at its stamp; one of the same node goes no further than memory.
void VirtualClock::send(std::uint32_t endpoint, std::uint32_t index) noexcept {
  const ArenaSizes& sizes = arena_.sizes();
  const Durations& d = costs();
  const Slot& slot = arena_.slot(index);
  const std::uint64_t stamp = arena_.slot_time(index).stamp;
  const std::uint32_t to = slot.receivers != 0 ? endpoint : slot.to;
  const std::uint32_t bytes = std::uint32_t{slot.header} + slot.length;
  const bool far = slot.receivers != 0 && !engine_.nodes_of(index).empty();
  if (to >= sizes.endpoints || slot.port >= kPorts || bytes > sizes.slot_bytes) {
    arena_.header().refused.fetch_add(1, std::memory_order_relaxed);
    return push(stamp, TimedEvent::room, index);
  }
  SlotProgress& progress = arena_.slot_progress(index);
  progress = {1, 0, slot.receivers != 0 ? kMany : static_cast<std::uint16_t>(to), 0, 0, 0};
  const std::uint32_t here = arena_.endpoint(endpoint).node, there = arena_.endpoint(to).node;
  const bool local = here == there && !far;
  progress.here = static_cast<std::uint16_t>(here);
  std::uint64_t& free = local ? arena_.clock(endpoint).local_free : arena_.card_times(here).sends;
  free = std::max(free, stamp) + (local ? d.local + bytes * d.local_byte : d.card + bytes * d.card_byte);
  push(free, local ? TimedEvent::arrive : TimedEvent::enter, index);
}

// One frame goes in, and the network copies it. All of its receivers have it when the last one does.
void VirtualClock::enter_for_many(std::uint32_t index, std::uint64_t at) noexcept {
  const ArenaSizes& sizes = arena_.sizes();
  Slot& slot = arena_.slot(index);
  Ending none;
  (void)cycles_.run_until(at, costs().cycle, none);
  const std::vector<std::uint32_t> nodes = engine_.nodes_of(index);
  const std::uint32_t here = arena_.endpoint(index / sizes.slots).node;
  ModelMulticast* const multicast = model_.multicast();
  ProcessClock& sender = arena_.clock(index / sizes.slots);
  sender.refused = 0;
  const std::uint32_t bytes = std::uint32_t{slot.header} + slot.length;
  if (multicast == nullptr || !multicast->inject_multicast(index * sizes.pieces(), here, nodes, bytes)) {
    if (multicast != nullptr && !model_.idle()) {
      sender.refused = arena_.slot_time(index).order + 1;
      sender.again = at + costs().cycle;
      return push(sender.again, TimedEvent::enter, index);  // it has no room now
    }
    for (const std::uint32_t node : nodes) engine_.lose_for(index, node);
    return push(at, TimedEvent::arrive, index);
  }
  arena_.slot_progress(index).pieces = static_cast<std::uint16_t>(nodes.size());
  arena_.slot_time(index).stamp = at;
}

// What a process sends goes in in its order, also when there is no room for a frame for many.
bool VirtualClock::is_behind_refused(std::uint32_t index) const noexcept {
  const std::uint64_t first = arena_.clock(index / arena_.sizes().slots).refused;
  return first != 0 && arena_.slot_time(index).order >= first;
}

void VirtualClock::ended_for_many(std::uint32_t index, const Ending& ending) noexcept {
  const Slot& slot = arena_.slot(index);
  std::uint64_t at = ending.cycle * costs().cycle;
  if (ending.delivered && ending.node < arena_.sizes().nodes) {
    std::uint64_t& free = arena_.card_times(ending.node).receives;
    at = free = std::max(free, at) + costs().card + (std::uint32_t{slot.header} + slot.length) * costs().card_byte;
  } else {
    engine_.lose_for(index, ending.node);
  }
  std::uint64_t& last = arena_.slot_time(index).stamp;
  last = std::max(last, at);
  // One stays until it has arrived.
  if (arena_.slot_progress(index).pieces > 1) --arena_.slot_progress(index).pieces;
  else push(last, TimedEvent::arrive, index);
}

void VirtualClock::arrive_at_many(const TimedEvent& event) noexcept {
  std::vector<std::uint32_t> arrived;
  engine_.finish_many_timed(event.slot, arrived);
  for (const std::uint32_t to : arrived) {
    const ProcessClock& c = arena_.clock(to);
    if (c.state.load(std::memory_order_relaxed) == ClockState::waits && (c.wants & traffic) != 0)
      wake(to, event.time, Woken::arrival);
  }
}

void VirtualClock::enter_network(std::uint32_t index, std::uint64_t at) noexcept {
  if (is_behind_refused(index)) return push(arena_.clock(index / arena_.sizes().slots).again, TimedEvent::enter, index);
  if (arena_.slot_progress(index).to == kMany) return enter_for_many(index, at);
  const ArenaSizes& sizes = arena_.sizes();
  const Slot& slot = arena_.slot(index);
  const std::uint32_t bytes = std::uint32_t{slot.header} + slot.length;
  const std::uint32_t from = index / sizes.slots;
  SlotProgress& progress = arena_.slot_progress(index);
  const std::uint32_t here = progress.here, there = next_stop(here, arena_.endpoint(progress.to).node);
  if (!model_.reaches(here, there)) {
    progress.lost = 1;
    return push(at, TimedEvent::arrive, index);
  }
  // The network stands at that moment, which matters when nothing was on its way.
  Ending none;
  (void)cycles_.run_until(at, costs().cycle, none);
  progress.pieces = static_cast<std::uint16_t>(bytes == 0 ? 1 : (bytes + sizes.frame_bytes - 1) / sizes.frame_bytes);
  Parties parties{from, slot.to, slot.port, (slot.goes_on & kGoesOn) != 0};
  const std::uint32_t pieces = progress.pieces;
  std::uint32_t left = bytes;
  for (std::uint32_t piece = 0; piece < pieces; ++piece) {
    const std::uint32_t length = std::min(left, sizes.frame_bytes), frame = index * sizes.pieces() + piece;
    if (!model_.inject_between(parties, frame, here, there, length)) ended({frame, here}, at);
    parties.goes_on = true;
    left -= length;
  }
}

// With store and forward a frame goes to a neighbour on the cube at a time, by rising dimensions; to and from a gateway
// by way of its node.
std::uint32_t VirtualClock::next_stop(std::uint32_t here, std::uint32_t there) const noexcept {
  if (costs().forward + costs().forward_byte == 0 || here == there) return there;
  const std::uint32_t cube = arena_.sizes().nodes - arena_.sizes().gateways;
  if (here >= cube) return here - cube;
  const std::uint32_t by = there < cube ? there : there - cube;
  return here == by ? there : here ^ 1u << std::countr_zero(here ^ by);
}

// A node on the way has got it, and sends it on.
bool VirtualClock::forward(std::uint32_t index, std::uint32_t node, std::uint64_t at) noexcept {
  SlotProgress& progress = arena_.slot_progress(index);
  if (node == arena_.endpoint(progress.to).node) return false;
  const Slot& slot = arena_.slot(index);
  progress.here = static_cast<std::uint16_t>(node);
  std::uint64_t& free = arena_.card_times(node).sends;
  free = std::max(free, at) + costs().forward + (std::uint32_t{slot.header} + slot.length) * costs().forward_byte;
  push(free, TimedEvent::enter, index);
  return true;
}

void VirtualClock::ended(const Ending& ending, std::uint64_t not_before) noexcept {
  const std::uint32_t index = ending.frame / arena_.sizes().pieces();
  if (index >= arena_.sizes().all_slots()) return;
  SlotProgress& progress = arena_.slot_progress(index);
  if (progress.to == kMany) return ended_for_many(index, ending);
  if (!ending.delivered) ++progress.lost;
  if (progress.pieces > 1) {
    --progress.pieces;
    return;
  }
  const Slot& slot = arena_.slot(index);
  const std::uint64_t at = std::max(not_before, ending.cycle * costs().cycle);
  if (progress.lost != 0 || ending.node >= arena_.sizes().nodes) return push(at, TimedEvent::arrive, index);
  if (forward(index, ending.node, at)) return;
  const std::uint32_t bytes = std::uint32_t{slot.header} + slot.length;
  progress.in_pool = engine_.has_pools() || engine_.has_back_pressure() ? 1 : 0;
  if (engine_.has_back_pressure()) engine_.came_timed(index, progress.to);
  std::uint64_t& free = arena_.card_times(ending.node).receives;
  free = std::max(free, at) + costs().card + bytes * costs().card_byte;
  push(free, TimedEvent::arrive, index);
}

// A frame for many comes when its last receiver has it, and may go by other links than one for a single port. It keeps
// its place among its sender's all the same.
void VirtualClock::arrive(const TimedEvent& event) noexcept {
  SlotProgress& progress = arena_.slot_progress(event.slot);
  if (model_.multicast() == nullptr) return arrive_in_order(event);
  if (overtakes(event.slot)) {
    progress.held = 1;
    return;
  }
  arrive_in_order(event);
  const std::uint32_t slots = arena_.sizes().slots, first = event.slot / slots * slots;
  for (std::uint32_t s = first; s < first + slots; ++s)
    if (std::exchange(arena_.slot_progress(s).held, 0) != 0) push(event.time, TimedEvent::arrive, s);
}

// An earlier frame of its sender, for one of its receivers, has not arrived; and one of the two is for many.
bool VirtualClock::overtakes(std::uint32_t index) const noexcept {
  const std::uint32_t slots = arena_.sizes().slots, first = index / slots * slots;
  const bool is_for_many = arena_.slot_progress(index).to == kMany;
  for (std::uint32_t s = first; s < first + slots; ++s) {
    const SlotProgress& other = arena_.slot_progress(s);
    if (s != index && other.pieces != 0 && (is_for_many || other.to == kMany) &&
        arena_.slot_time(s).order < arena_.slot_time(index).order && have_receiver_in_common(s, index))
      return true;
  }
  return false;
}

bool VirtualClock::have_receiver_in_common(std::uint32_t a, std::uint32_t b) const noexcept {
  const auto is_for = [this](std::uint32_t index, std::uint32_t to) {
    if (arena_.slot_progress(index).to != kMany) return arena_.slot_progress(index).to == to;
    const auto all = arena_.receivers(arena_.slot(index));
    return std::ranges::any_of(all, [to](const Receiver& one) { return one.to == to; });
  };
  if (arena_.slot_progress(a).to != kMany) return is_for(b, arena_.slot_progress(a).to);
  const auto all = arena_.receivers(arena_.slot(a));
  return std::ranges::any_of(all, [&](const Receiver& one) { return is_for(b, one.to); });
}

void VirtualClock::arrive_in_order(const TimedEvent& event) noexcept {
  SlotProgress& progress = arena_.slot_progress(event.slot);
  const std::uint32_t to = progress.to;
  progress.pieces = 0;
  if (to == kMany) return arrive_at_many(event);
  if (!engine_.finish_timed(event.slot, progress.lost == 0)) return push(event.time, TimedEvent::room, event.slot);
  ProcessClock& c = arena_.clock(to);
  c.arrived.store(c.arrived.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (c.state.load(std::memory_order_relaxed) == ClockState::waits && (c.wants & traffic) != 0)
    wake(to, event.time, Woken::arrival);
}

void VirtualClock::make_room(std::uint32_t index, std::uint64_t at) noexcept {
  const std::uint32_t owner = index / arena_.sizes().slots;
  if (std::exchange(arena_.slot_progress(index).in_pool, 0) != 0) leave_pool(index, at);
  arena_.slot(index).state.store(SlotState::free, std::memory_order_release);  // pairs with SendSlots::take
  ProcessClock& c = arena_.clock(owner);
  c.returned.store(c.returned.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (c.state.load(std::memory_order_relaxed) == ClockState::waits && (c.wants & room) != 0)
    wake(owner, at, Woken::arrival);
}

// Room for others in the pool of its receiver, which the network may wait for.
void VirtualClock::leave_pool(std::uint32_t index, std::uint64_t at) noexcept {
  const Slot& slot = arena_.slot(index);
  const std::uint32_t to = arena_.slot_progress(index).to;
  if (engine_.has_back_pressure()) {
    Ending none;
    (void)cycles_.run_until(at, costs().cycle, none);  // it stands at that moment
    return engine_.read_timed(index, to);
  }
  ModelPools* const pools = model_.pools();
  if (pools == nullptr || slot.port >= kPorts ||
      !pools->release(to, slot.port, std::uint32_t{slot.header} + slot.length))
    return;
  Ending none;
  (void)cycles_.run_until(at, costs().cycle, none);  // it stands at that moment
  pools->woken(to);
}

// This process has found nothing at its time, and by that time everything has happened: its card takes in more, behind
// that moment and before anything else.
void VirtualClock::admit_more() noexcept {
  lock();
  admit_more_to(self_, now());
  if (now() + 1 < time_.alarm.load(std::memory_order_relaxed)) time_.alarm.store(now() + 1, std::memory_order_seq_cst);
  unlock();
}

void VirtualClock::admit_more_to(std::uint32_t endpoint, std::uint64_t moment) noexcept {
  Ending none;
  (void)cycles_.run_until(moment + 1, costs().cycle, none);
  engine_.admit_timed(endpoint, Unread::more);
}

// ---- the heap -------------------------------------------------------------------------------------------------------

void VirtualClock::push(std::uint64_t at, TimedEvent::Kind kind, std::uint32_t slot) noexcept {
  if (time_.events >= arena_.sizes().all_slots()) return;
  const TimedEvent event{at, arena_.slot_time(slot).order, slot, kind};
  std::uint32_t place = time_.events++;
  while (place != 0 && is_before(event, arena_.event((place - 1) / 2))) {
    arena_.event(place) = arena_.event((place - 1) / 2);
    place = (place - 1) / 2;
  }
  arena_.event(place) = event;
}

bool VirtualClock::has_event(std::uint32_t slot) const noexcept {
  for (std::uint32_t place = 0; place < time_.events; ++place)
    if (arena_.event(place).slot == slot) return true;
  return false;
}

TimedEvent VirtualClock::pop() noexcept {
  const TimedEvent first = arena_.event(0);
  const TimedEvent last = arena_.event(--time_.events);
  std::uint32_t place = 0;
  for (std::uint32_t child = 1; child < time_.events; child = 2 * place + 1) {
    if (child + 1 < time_.events && is_before(arena_.event(child + 1), arena_.event(child))) ++child;
    if (!is_before(arena_.event(child), last)) break;
    arena_.event(place) = arena_.event(child);
    place = child;
  }
  arena_.event(place) = last;
  return first;
}

}  // namespace ulfm::fabric
