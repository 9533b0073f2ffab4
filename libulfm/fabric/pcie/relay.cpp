// Packets and permissions: what a step is.
#include "fabric/pcie/relay.hpp"

#include <algorithm>
#include <bit>

namespace ulfm::fabric::pcie {
void Relay::build() {
  const Queue none{kNone, kNone};
  Memory& memory = arena_.edit(arena_.memory());
  memory.granting = memory.ended = none;
  arena_.commit();
  for (std::uint32_t b = 0; b <= p_.boards; ++b) {
    Board& board = arena_.edit_queues(arena_.board(b));
    board.control = board.sending = board.down = none;
    arena_.commit();
  }
  for (std::uint32_t i = 0; i <= p_.processes; ++i) arena_.edit(arena_.process(i)).permitted = none, arena_.commit();
  for (std::uint32_t i = 0; i <= arena_.pools(); ++i) {
    RelayPool& pool = arena_.edit(arena_.pool(i));
    pool.waiting = pool.ready = none;
    arena_.commit();
  }
}

bool Relay::reaches(std::uint32_t from, std::uint32_t to) const {
  const RelayClock& clock = arena_.clock();
  return from < p_.boards && to < p_.boards && from != to && clock.host_dead == 0 &&
         (clock.dead & (bit(from) | bit(to))) == 0;
}

bool Relay::post(FrameId frame, const Shipment& s) {
  if (frame >= p_.frames || !is_sound(s, p_) || is_used(frame) || !reaches(s.from_board, s.to_board)) return false;
  begin();
  RelayClock& clock = arena_.edit(arena_.clock());
  RelayMessage& message = arena_.edit(arena_.message(frame));
  message = {};
  message.sequence = clock.posted++ << bits_ | frame;
  message.bytes = s.bytes;
  message.from_board = static_cast<std::uint16_t>(s.from_board);
  message.to_board = static_cast<std::uint16_t>(s.to_board);
  message.from_process = static_cast<std::uint16_t>(s.from_process);
  message.to_process = static_cast<std::uint16_t>(s.to_process);
  message.to_port = static_cast<std::uint16_t>(s.to_port);
  message.fragments = static_cast<std::uint16_t>(fragments_of(s.bytes, p_.fragment));
  message.phase = Phase::posted;
  message.pool = pool_of(s.to_process, s.to_port);
  push_message(arena_.edit_queues(arena_.board(s.from_board)).control, frame, message);
  clock.up |= bit(s.from_board);
  ++clock.present;
  ++arena_.edit(arena_.totals()).entered;
  commit();
  return true;
}

bool Relay::idle() const {
  const RelayClock& clock = arena_.clock();
  const Memory& memory = arena_.memory();
  return (clock.up | clock.down) == 0 && clock.part == Part::between && memory.granting.first == kNone &&
         memory.ended.first == kNone && (p_.lanes == 0 || !wires_busy());
}

HostCounters Relay::host() const {
  const RelayTotals& t = arena_.totals();
  const Memory& m = arena_.memory();
  return {t.entered, t.left,        t.lost,     arena_.clock().present, t.bytes_in, t.bytes_out, t.bytes_lost,
          m.stored,  m.most_stored, m.reserved, m.most_reserved};
}

// ---- time -----------------------------------------------------------------------------------------------------------

std::size_t Relay::run(std::uint64_t budget, std::span<Ending> endings, std::uint64_t until) {
  const RelayClock& clock = arena_.clock();
  const std::uint64_t most = std::max<std::uint64_t>(budget, 1);
  const std::uint64_t limit = clock.steps + most < most ? kNever : clock.steps + most;
  for (;;) {
    if (clock.part == Part::between) {
      const bool moves = (clock.up | clock.down) != 0 || arena_.memory().granting.first != kNone;
      if (!moves && until != kNever && clock.now < until) skip_to(until);
      if (!moves || clock.steps >= limit || clock.now >= until) return hand_out(endings);
      if (until == kNever && is_alone()) {
        pass_alone();
        continue;
      }
    }
    step();
  }
}

/// Nothing moves in the turns before.
void Relay::skip_to(std::uint64_t turn) {
  begin();
  arena_.edit(arena_.clock()).now = turn;
  commit();
}

std::size_t Relay::hand_out(std::span<Ending> endings) const {
  std::size_t count = 0;
  for (std::uint32_t f = arena_.memory().ended.first; f < p_.frames && count < endings.size();
       f = arena_.message(f).next) {
    const RelayMessage& m = arena_.message(f);
    endings[count++] = {f, m.delivered != 0 ? m.to_board : std::uint32_t{m.from_board}, m.ended_at, m.delivered != 0};
  }
  return count;
}

void Relay::settle(FrameId frame) {
  if (arena_.memory().ended.first != frame || frame >= p_.frames) return;
  begin();
  RelayMessage& message = arena_.edit(arena_.message(frame));
  pop(arena_.edit(arena_.memory()).ended, message.next);
  message.phase = Phase::unused;
  commit();
}

void Relay::step() {
  begin();
  RelayClock& clock = arena_.edit(arena_.clock());
  ++clock.steps;
  const auto next_board = [&] {
    const auto board = static_cast<std::uint32_t>(std::countr_zero(clock.left));
    clock.left &= clock.left - 1;
    return board;
  };
  if (clock.part == Part::between) ++clock.now, clock.part = Part::up, clock.left = clock.up;
  if (clock.part == Part::up && clock.left != 0) return up(next_board(), clock), commit();
  if (clock.part == Part::up) clock.part = Part::down, clock.left = clock.down;
  if (clock.part == Part::down && clock.left != 0) return down(next_board(), clock), commit();
  if (clock.part == Part::down) clock.part = Part::grant;
  if (!grant(clock)) clock.part = Part::between;
  commit();
}

// ---- from a board to the host ---------------------------------------------------------------------------------------

void Relay::up(std::uint32_t b, RelayClock& clock) {
  const Board& board = arena_.board(b);
  if (board.control.first != kNone) announce(take_control(b), clock);
  else if (board.sending.first != kNone) gather(take_data(b), clock);
  if (board.control.first == kNone && board.sending.first == kNone) clock.up &= ~bit(b);
}

// What goes over the link is what was encoded.
ControlPacket Relay::take_control(std::uint32_t b) {
  Board& board = arena_.edit_queues(arena_.board(b));
  const RelayMessage& message = arena_.message(board.control.first);
  const auto wire =
      encode(ControlPacket{static_cast<std::uint8_t>(message.to_port), message.sequence, static_cast<std::uint16_t>(b),
                           message.to_board, message.from_process, message.to_process, message.bytes});
  pop(board.control, message.next);
  ++arena_.edit_counters(board).control_packets;
  ControlPacket packet;
  (void)decode(wire, packet);
  return packet;
}

// The host finds the message by its sequence number alone.
void Relay::announce(const ControlPacket& packet, const RelayClock& clock) {
  const std::uint32_t frame = packet.sequence & ((1u << bits_) - 1);
  RelayMessage& message = arena_.edit(arena_.message(frame));
  if (message.sequence != packet.sequence || message.phase != Phase::posted) return;
  message.phase = Phase::announced;
  message.announced = clock.now;
  message.pool = pool_of(packet.destination_process, packet.inner_port);
  RelayPool& pool = arena_.edit(arena_.pool(message.pool));
  if (pool.waiting.first == kNone) push_granting(arena_.edit(arena_.memory()).granting, message.pool, pool);
  push_message(pool.waiting, frame, message);
}

DataHeader Relay::take_data(std::uint32_t b) {
  Board& board = arena_.edit_queues(arena_.board(b));
  const std::uint32_t id = board.sending.first;
  RelayProcess& process = arena_.edit(arena_.process(id));
  pop(board.sending, process.next);
  RelayMessage& message = arena_.edit(arena_.message(process.permitted.first));
  const auto index = static_cast<std::uint32_t>(message.sent++);
  const std::uint32_t length = fragment_bytes(message.bytes, p_.fragment, index);
  const std::uint32_t number = message.fragments == 1 ? 0 : index + 1;
  const auto wire = encode(DataHeader{message.sequence, static_cast<std::uint16_t>(number), length});
  if (index + 1 == message.fragments) pop(process.permitted, message.next);
  if (process.permitted.first != kNone) push_process(board.sending, id, process);
  BoardCounters& counters = arena_.edit_counters(board);
  ++counters.data_packets;
  counters.bytes_up += length;
  DataHeader header;
  (void)decode(wire, header);
  return header;
}

void Relay::gather(const DataHeader& header, RelayClock& clock) {
  const std::uint32_t frame = header.sequence & ((1u << bits_) - 1);
  RelayMessage& message = arena_.edit(arena_.message(frame));
  if (message.sequence != header.sequence || message.phase != Phase::permitted) return;
  Memory& memory = arena_.edit(arena_.memory());
  arena_.edit(arena_.totals()).bytes_in += header.length;
  memory.stored += header.length;
  memory.most_stored = std::max(memory.most_stored, memory.stored);
  const Board& to = arena_.board(message.to_board);
  BoardCounters& slot = arena_.edit_counters(to);
  slot.stored += header.length;
  slot.most_stored = std::max(slot.most_stored, slot.stored);
  ++message.gathered;
  if ((!p_.cut_through && message.gathered < message.fragments) || message.is_ready != 0) return;
  message.is_ready = 1;
  message.since = clock.now;
  RelayPool& pool = arena_.edit(arena_.pool(message.pool));
  if (pool.ready.first == kNone) push_down(arena_.edit_queues(to).down, message.pool, pool);
  push_ready(pool.ready, frame, message);
  clock.down |= bit(message.to_board);
}

// ---- from the host to a board ---------------------------------------------------------------------------------------

void Relay::down(std::uint32_t b, RelayClock& clock) {
  if (arena_.board(b).down.first == kNone) {
    clock.down &= ~bit(b);
    return;
  }
  const Taken taken = take_down(b, clock);
  if (!taken.last) return;
  RelayMessage& message = arena_.edit(arena_.message(taken.frame));
  count_arrival(message, clock.now);
  end(message, taken.frame, true, clock.now, arena_.edit(arena_.memory()), clock);
}

Relay::Taken Relay::take_down(std::uint32_t b, RelayClock& clock) {
  Board& board = arena_.edit_queues(arena_.board(b));
  const std::uint32_t id = board.down.first;
  RelayPool& pool = arena_.edit(arena_.pool(id));
  pop(board.down, pool.next_down);
  const std::uint32_t frame = pool.ready.first;
  RelayMessage& message = arena_.edit(arena_.message(frame));
  const std::uint32_t length = fragment_bytes(message.bytes, p_.fragment, message.forwarded++);
  BoardCounters& counters = arena_.edit_counters(board);
  ++counters.packets_down;
  counters.bytes_down += length;
  counters.stored -= length;
  arena_.edit(arena_.totals()).bytes_out += length;
  Memory& memory = arena_.edit(arena_.memory());
  memory.stored -= length;
  if (message.forwarded == message.gathered) {
    pop(pool.ready, message.next_down);
    message.is_ready = 0;
  }
  if (pool.ready.first != kNone) push_down(board.down, id, pool);
  if (board.down.first == kNone) clock.down &= ~bit(b);
  return {frame, length, message.forwarded == message.fragments};
}

void Relay::count_arrival(const RelayMessage& message, std::uint64_t cycle) {
  PoolCounters& counters = arena_.edit_counters(arena_.pool(message.pool));
  const std::uint64_t delay = cycle - message.announced;
  ++counters.messages;
  counters.bytes += message.bytes;
  counters.delay += delay;
  counters.most_delay = std::max(counters.most_delay, delay);
}

void Relay::end(RelayMessage& message, std::uint32_t frame, bool delivered, std::uint64_t cycle, Memory& memory,
                RelayClock& clock) {
  RelayTotals& totals = arena_.edit(arena_.totals());
  ++(delivered ? totals.left : totals.lost);
  if (message.phase == Phase::permitted) memory.reserved -= message.bytes;
  if (!delivered) ++arena_.edit_counters(arena_.board(message.from_board)).lost_messages;
  --clock.present;
  message.phase = Phase::ended;
  message.delivered = delivered;
  message.ended_at = cycle;
  push_message(memory.ended, frame, message);
}

// ---- permission -----------------------------------------------------------------------------------------------------

bool Relay::has_room(const RelayPool& pool, std::uint32_t bytes) const {
  const std::uint64_t read = pool.read.load(std::memory_order_seq_cst);  // pairs with release()
  return pool.promised <= read || pool.promised - read + bytes <= p_.pool;
}

/// One permission, or one pool found full; false when the turn is over.
bool Relay::grant(RelayClock& clock) {
  const std::uint32_t id = arena_.memory().granting.first;
  if (id == kNone) return false;
  const RelayMessage& message = arena_.message(arena_.pool(id).waiting.first);
  if (!has_room(arena_.pool(id), message.bytes)) {
    // Either the reader sees that it is awaited, or what it has read is seen here.
    arena_.reader(id).awaited.store(1, std::memory_order_seq_cst);
    if (!has_room(arena_.pool(id), message.bytes)) {
      block(id, arena_.edit(arena_.pool(id)), arena_.edit(arena_.memory()));
      return true;
    }
    arena_.reader(id).awaited.store(0, std::memory_order_relaxed);
  }
  if (arena_.memory().reserved + message.bytes > p_.memory) return false;
  permit(id, arena_.edit(arena_.pool(id)), arena_.edit(arena_.memory()), clock);
  return true;
}

void Relay::block(std::uint32_t id, RelayPool& pool, Memory& memory) {
  pop(memory.granting, pool.next_grant);
  pool.blocked = 1;
  ++arena_.edit_counters(pool).full;
  arena_.edit(arena_.process(id / kPortsPerProcess)).blocked |= std::uint64_t{1} << id % kPortsPerProcess;
}

void Relay::permit(std::uint32_t id, RelayPool& pool, Memory& memory, RelayClock& clock) {
  pop(memory.granting, pool.next_grant);
  const std::uint32_t frame = pool.waiting.first;
  RelayMessage& message = arena_.edit(arena_.message(frame));
  pop(pool.waiting, message.next);
  if (pool.waiting.first != kNone) push_granting(memory.granting, id, pool);
  message.phase = Phase::permitted;
  message.since = clock.now + p_.latency;
  pool.promised += message.bytes;
  PoolCounters& counters = arena_.edit_counters(pool);
  const std::uint64_t read = pool.read.load(std::memory_order_relaxed);
  if (pool.promised > read) counters.most_used = std::max(counters.most_used, pool.promised - read);
  counters.waited += clock.now - message.announced;
  if (p_.lanes != 0) arena_.up(message.from_board).waited += clock.now - message.announced;
  memory.reserved += message.bytes;
  memory.most_reserved = std::max(memory.most_reserved, memory.reserved);
  RelayProcess& process = arena_.edit(arena_.process(message.from_process));
  if (process.permitted.first == kNone) {
    push_process(arena_.edit_queues(arena_.board(message.from_board)).sending, message.from_process, process);
    clock.up |= bit(message.from_board);
  }
  push_message(process.permitted, frame, message);
}

bool Relay::release(std::uint32_t process, std::uint32_t port, std::uint64_t bytes) {
  if (process >= p_.processes || port >= kPortsPerProcess) return false;
  RelayPool& pool = arena_.reader(pool_of(process, port));
  pool.read.fetch_add(bytes, std::memory_order_seq_cst);  // pairs with has_room()
  return pool.awaited.load(std::memory_order_seq_cst) != 0 && pool.awaited.exchange(0, std::memory_order_seq_cst) != 0;
}

void Relay::woken(std::uint32_t process) {
  for (std::uint64_t ports = arena_.process(process).blocked; ports != 0; ports &= ports - 1) {
    const std::uint32_t id = pool_of(process, static_cast<std::uint32_t>(std::countr_zero(ports)));
    if (arena_.pool(id).awaited.load(std::memory_order_seq_cst) != 0) continue;
    begin();
    unblock(id, arena_.edit(arena_.pool(id)));
    commit();
  }
}

// ---- a message that has the host to itself --------------------------------------------------------------------------

bool Relay::is_alone() const {
  const RelayClock& clock = arena_.clock();
  if (clock.present != 1 || !std::has_single_bit(clock.up) || clock.down != 0) return false;
  const std::uint32_t frame = arena_.board(static_cast<std::uint32_t>(std::countr_zero(clock.up))).control.first;
  const RelayMessage& message = arena_.message(frame);
  return frame != kNone && message.phase == Phase::posted && has_room(arena_.pool(message.pool), message.bytes);
}

/// All its packets at once: the control packet in the next turn, then a fragment a turn, and on to its board.
void Relay::pass_alone() {
  begin();
  RelayClock& clock = arena_.edit(arena_.clock());
  Memory& memory = arena_.edit(arena_.memory());
  Board& from = arena_.edit(arena_.board(static_cast<std::uint32_t>(std::countr_zero(clock.up))));
  const std::uint32_t frame = from.control.first;
  RelayMessage& message = arena_.edit(arena_.message(frame));
  const std::uint32_t fragments = message.fragments, bytes = message.bytes;
  pop(from.control, message.next);
  clock.up = 0;
  ++clock.steps;
  message.announced = clock.now + 1;
  clock.now += p_.cut_through ? fragments + 1 : 2 * fragments;
  message.gathered = message.forwarded = message.fragments;
  message.phase = Phase::permitted;
  ++from.counters.control_packets;
  from.counters.data_packets += fragments;
  from.counters.bytes_up += bytes;
  BoardCounters& to = arena_.edit_counters(arena_.board(message.to_board));
  const std::uint64_t stored = p_.cut_through ? std::min(bytes, p_.fragment) : bytes;
  to.packets_down += fragments;
  to.bytes_down += bytes;
  to.most_stored = std::max(to.most_stored, stored);
  memory.most_stored = std::max(memory.most_stored, stored);
  memory.reserved += bytes;
  memory.most_reserved = std::max(memory.most_reserved, memory.reserved);
  RelayPool& pool = arena_.edit(arena_.pool(message.pool));
  pool.promised += bytes;
  const std::uint64_t read = pool.read.load(std::memory_order_relaxed);
  PoolCounters& counters = arena_.edit_counters(pool);
  if (pool.promised > read) counters.most_used = std::max(counters.most_used, pool.promised - read);
  RelayTotals& totals = arena_.edit(arena_.totals());
  totals.bytes_in += bytes;
  totals.bytes_out += bytes;
  count_arrival(message, clock.now);
  end(message, frame, true, clock.now, memory, clock);
  commit();
}

}  // namespace ulfm::fabric::pcie
