#include "transport/emulated/multicast.hpp"

#include "base/copy.hpp"
#include "transport/emulated/outlet.hpp"

namespace ulfm::emulated {

using fabric::Receiver;
using fabric::ReceiverState;
using fabric::Slot;
using fabric::SlotShare;

namespace {
// What the lists of so many receivers take of a slot.
std::size_t lists_of(std::size_t receivers, std::size_t header) {
  return receivers * (sizeof(Receiver) + header) + alignof(Receiver);
}

EmulatedOutlet& at(const std::vector<Outlet*>& outlets, std::uint32_t i) {
  return *static_cast<EmulatedOutlet*>(outlets[i]);
}
}  // namespace

EmulatedMulticast::EmulatedMulticast(fabric::FabricEngine& engine, std::span<Outlet* const> outlets)
    : engine_(engine), outlets_(outlets.begin(), outlets.end()), sender_(engine.slots().add_sender()) {}

EmulatedMulticast::~EmulatedMulticast() { engine_.slots().remove_sender(sender_); }

std::unique_ptr<Multicast> EmulatedMulticast::make(fabric::FabricEngine& engine, std::span<Outlet* const> outlets) {
  if (frame(engine, outlets.size(), 0) == 0) return nullptr;
  return std::unique_ptr<Multicast>(new EmulatedMulticast(engine, outlets));
}

std::size_t EmulatedMulticast::frame(fabric::FabricEngine& engine, std::size_t receivers, std::size_t header) {
  if (engine.model().multicast() == nullptr) return 0;
  return frame(engine.arena().sizes().slot_bytes, receivers, header);
}

std::size_t EmulatedMulticast::frame(std::size_t slot_bytes, std::size_t receivers, std::size_t header) noexcept {
  const std::size_t beside = lists_of(receivers, header);
  return beside <= slot_bytes - slot_bytes / 4 ? slot_bytes - beside : 0;
}

std::size_t EmulatedMulticast::max_frame(std::size_t header) const {
  const std::size_t all = engine_.arena().sizes().slot_bytes;
  return std::max(kLeastFrame, all - std::min(all, lists_of(outlets_.size(), header)));
}

std::int64_t EmulatedMulticast::take_slot() {
  const std::int64_t index = engine_.slots().take(sender_);
  if (index >= 0 || engine_.clock() == nullptr) return index;
  engine_.clock()->look();  // what has been given back by now is back then
  return engine_.slots().take(sender_);
}

// All or nothing: the slots are this process's own, whoever the receivers are.
bool EmulatedMulticast::push(Kind kind, const Headers& headers, Gather& data, std::size_t length,
                             std::vector<std::uint32_t>& who) {
  fabric::FabricArena& arena = engine_.arena();
  PortCounters& counters = at(outlets_, who.front()).counters();
  const std::size_t stride = headers.stride == 0 ? 0 : headers.length;
  const std::size_t lists = who.size() * sizeof(Receiver) + (stride == 0 ? headers.length : who.size() * stride);
  if (fabric::FabricArena::receivers_at(length) + lists > arena.sizes().slot_bytes) {
    data.skip(length);
    return true;  // headers as nobody has them: each by itself
  }
  const std::int64_t index = take_slot();
  if (index < 0) {
    if (engine_.clock() != nullptr) engine_.clock()->want_room();
    counters.full.add();
    return false;
  }
  Slot& slot = arena.slot(static_cast<std::uint32_t>(index));
  if (length != 0) data.copy(arena.body(slot), length);
  slot.length = static_cast<std::uint32_t>(length);
  slot.to = slot.port = 0;
  slot.kind = static_cast<std::uint8_t>(kind);
  slot.header = static_cast<std::uint8_t>(headers.length);
  slot.goes_on = kind == Kind::more ? 1 : 0;
  slot.receivers = static_cast<std::uint16_t>(who.size());
  auto* share = new (slot.bytes) SlotShare{};
  share->left.store(slot.receivers, std::memory_order_relaxed);
  share->stride = static_cast<std::uint32_t>(stride);
  auto* list = reinterpret_cast<Receiver*>(arena.body(slot) + fabric::FabricArena::receivers_at(length));
  auto* header = reinterpret_cast<std::byte*>(list + who.size());
  for (std::size_t i = 0; i < who.size(); ++i) {
    at(outlets_, who[i]).describe(*new (list + i) Receiver{});
    if (i == 0 || stride != 0) copy_bytes(header + i * stride, headers.of(who[i]).data(), headers.length);
  }
  counters.open_frames.add();
  EmulatedOutlet::submit(engine_, static_cast<std::uint32_t>(index), kind, headers.length + length);
  who.clear();
  return true;
}

}  // namespace ulfm::emulated
