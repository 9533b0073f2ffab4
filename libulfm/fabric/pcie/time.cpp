// The relay in virtual time: packets take as long as their bytes take on the lanes of a link, and arrive a latency
// later.
//
// The rules of relay.cpp for turns decide which board sends next, which one may, and in what order. A link begins its
// next packet when the last one has left it. Cycle 0 is the first moment: what happens "at cycle c" happens when c
// of them are over. At one moment arrivals come first, then permissions, then what leaves, board by board.
#include <algorithm>
#include <bit>

#include "fabric/pcie/relay.hpp"

namespace ulfm::fabric::pcie {
namespace {

const RelayWire::Packet& first_of(const RelayWire& wire) { return wire.packets[wire.first % RelayWire::kRoom]; }

}  // namespace

bool Relay::wires_busy() const {
  for (std::uint32_t b = 0; b < p_.boards; ++b)
    if (arena_.up(b).count + arena_.down(b).count != 0) return true;
  return false;
}

bool Relay::run_timed(std::uint64_t until, Ending& ending) {
  for (;;) {
    if (hand_out({&ending, 1}) != 0) return settle(ending.frame), true;
    const std::uint64_t at = next_moment();
    if (at >= until) break;
    happen_at(at);
  }
  if (until != kNever && arena_.clock().now < until) skip_to(until);
  return false;
}

// ---- when -----------------------------------------------------------------------------------------------------------

/// When a board begins with its next packet; kNever: it has none, or its link holds no more.
std::uint64_t Relay::next_up(std::uint32_t b) const {
  const RelayClock& clock = arena_.clock();
  const RelayWire& wire = arena_.up(b);
  const Board& board = arena_.board(b);
  if ((clock.up & bit(b)) == 0 || wire.count == RelayWire::kRoom) return kNever;
  const std::uint64_t free = std::max(clock.now, wire.free_at);
  if (board.control.first != kNone) return free;
  if (board.sending.first == kNone) return kNever;
  return std::max(free, arena_.message(arena_.process(board.sending.first).permitted.first).since);
}

std::uint64_t Relay::next_down(std::uint32_t b) const {
  const RelayClock& clock = arena_.clock();
  const RelayWire& wire = arena_.down(b);
  if (arena_.board(b).down.first == kNone || wire.count == RelayWire::kRoom) return kNever;
  return std::max(clock.now, wire.free_at);
}

std::uint64_t Relay::next_moment() const {
  const RelayClock& clock = arena_.clock();
  const Memory& memory = arena_.memory();
  if (memory.granting.first != kNone) {
    const RelayMessage& message = arena_.message(arena_.pool(memory.granting.first).waiting.first);
    if (memory.reserved + message.bytes <= p_.memory) return clock.now;
  }
  std::uint64_t least = kNever;
  for (std::uint32_t b = 0; b < p_.boards; ++b) {
    least = std::min({least, next_up(b), next_down(b)});
    for (const RelayWire* wire : {&arena_.up(b), &arena_.down(b)})
      if (wire->count != 0) least = std::min(least, std::max(clock.now, first_of(*wire).at));
  }
  return least;
}

// ---- what -----------------------------------------------------------------------------------------------------------

void Relay::happen_at(std::uint64_t cycle) {
  if (arena_.clock().now != cycle) skip_to(cycle);
  for (std::uint32_t b = 0; b < p_.boards; ++b) {
    while (arena_.up(b).count != 0 && first_of(arena_.up(b)).at <= cycle) end_up(b);
    while (arena_.down(b).count != 0 && first_of(arena_.down(b)).at <= cycle) end_down(b);
  }
  for (bool granted = true; granted;) {
    begin();
    granted = grant(arena_.edit(arena_.clock()));
    commit();
  }
  for (std::uint32_t b = 0; b < p_.boards; ++b) {
    if (next_up(b) == cycle) begin_up(b);
    if (next_down(b) == cycle) begin_down(b);
  }
}

void Relay::put_on(RelayWire& wire, std::uint64_t bytes, RelayWire::Packet packet) {
  const std::uint64_t now = arena_.clock().now, cycles = link_cycles(bytes, p_.lanes);
  wire.free_at = now + cycles;
  wire.busy += cycles;
  wire.bytes += bytes;
  packet.at = now + cycles + p_.latency;
  wire.packets[(wire.first + wire.count++) % RelayWire::kRoom] = packet;
}

void Relay::begin_up(std::uint32_t b) {
  begin();
  RelayClock& clock = arena_.edit(arena_.clock());
  const Board& board = arena_.board(b);
  if (board.control.first != kNone) {
    const ControlPacket packet = take_control(b);
    put_on(arena_.up(b), kControlBytes, {0, packet.sequence, 0, 1, 0});
  } else {
    const DataHeader header = take_data(b);
    put_on(arena_.up(b), kDataHeaderBytes + header.length, {0, header.sequence, header.length, 0, 0});
  }
  if (board.control.first == kNone && board.sending.first == kNone) clock.up &= ~bit(b);
  commit();
}

void Relay::end_up(std::uint32_t b) {
  begin();
  RelayWire& wire = arena_.up(b);
  const RelayWire::Packet packet = first_of(wire);
  ++wire.first, --wire.count;
  RelayClock& clock = arena_.edit(arena_.clock());
  ++clock.steps;
  ControlPacket control;
  control.sequence = packet.sequence;
  const std::uint32_t frame = packet.sequence & ((1u << bits_) - 1);
  if (packet.control != 0) {
    const RelayMessage& message = arena_.message(frame);
    control.destination_process = message.to_process;
    control.inner_port = static_cast<std::uint8_t>(message.to_port);
    announce(control, clock);
  } else {
    gather({packet.sequence, 0, packet.length}, clock);
  }
  commit();
}

void Relay::begin_down(std::uint32_t b) {
  begin();
  RelayClock& clock = arena_.edit(arena_.clock());
  const Taken taken = take_down(b, clock);
  RelayWire& wire = arena_.down(b);
  const RelayMessage& message = arena_.message(taken.frame);
  if (message.forwarded == 1) wire.waited += clock.now - message.since;
  put_on(wire, kDataHeaderBytes + taken.length, {0, message.sequence, taken.length, 0, taken.last});
  commit();
}

/// What was lost meanwhile has ended already.
void Relay::end_down(std::uint32_t b) {
  begin();
  RelayWire& wire = arena_.down(b);
  const RelayWire::Packet packet = first_of(wire);
  ++wire.first, --wire.count;
  RelayClock& clock = arena_.edit(arena_.clock());
  ++clock.steps;
  const std::uint32_t frame = packet.sequence & ((1u << bits_) - 1);
  RelayMessage& message = arena_.edit(arena_.message(frame));
  if (packet.last != 0 && message.sequence == packet.sequence && message.phase == Phase::permitted) {
    count_arrival(message, clock.now);
    end(message, frame, true, clock.now, arena_.edit(arena_.memory()), clock);
  }
  commit();
}

}  // namespace ulfm::fabric::pcie
