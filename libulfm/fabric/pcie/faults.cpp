// What dies, and what a dead process has left in the middle.
#include "fabric/pcie/relay.hpp"

namespace ulfm::fabric::pcie {

void Relay::set_board(std::uint32_t b, bool alive) {
  if (b >= p_.boards) return;
  begin();
  RelayClock& clock = arena_.edit(arena_.clock());
  const std::uint32_t mask = std::uint32_t{1} << b;
  clock.dead = alive ? clock.dead & ~mask : clock.dead | mask;
  commit();
  if (alive) return;
  for (std::uint32_t frame = 0; frame < p_.frames; ++frame) {
    const RelayMessage& m = arena_.message(frame);
    if (m.phase == Phase::unused || m.phase == Phase::ended) continue;
    if (m.to_board == b || (m.from_board == b && m.gathered < m.fragments)) lose(frame);
  }
}

void Relay::set_host(bool alive) {
  begin();
  arena_.edit(arena_.clock()).host_dead = !alive;
  commit();
  if (alive) return;
  for (std::uint32_t frame = 0; frame < p_.frames; ++frame) {
    const Phase phase = arena_.message(frame).phase;
    if (phase != Phase::unused && phase != Phase::ended) lose(frame);
  }
}

void Relay::lose(std::uint32_t frame) {
  begin();
  RelayClock& clock = arena_.edit(arena_.clock());
  Memory& memory = arena_.edit(arena_.memory());
  RelayMessage& message = arena_.edit(arena_.message(frame));
  RelayPool& pool = arena_.edit(arena_.pool(message.pool));
  leave_queues(message, frame, pool, memory, clock);
  if (message.phase == Phase::permitted) {
    lose_data(message, memory, arena_.edit(arena_.totals()));
    pool.promised -= message.bytes;
  }
  end(message, frame, false, clock.now, memory, clock);
  if (pool.blocked != 0) unblock(message.pool, pool);
  commit();
}

void Relay::leave_queues(RelayMessage& message, std::uint32_t frame, RelayPool& pool, Memory& memory,
                         RelayClock& clock) {
  Board& from = arena_.edit_queues(arena_.board(message.from_board));
  remove(arena_, from.control, frame, &RelayMessage::next, messages(), p_.frames);
  if (remove(arena_, pool.waiting, frame, &RelayMessage::next, messages(), p_.frames) && pool.waiting.first == kNone) {
    remove(arena_, memory.granting, message.pool, &RelayPool::next_grant, pools(), arena_.pools());
    if (pool.blocked != 0) unblock(message.pool, pool);
  }
  RelayProcess& process = arena_.edit(arena_.process(message.from_process));
  if (remove(arena_, process.permitted, frame, &RelayMessage::next, messages(), p_.frames) &&
      process.permitted.first == kNone)
    remove(arena_, from.sending, message.from_process, &RelayProcess::next, processes(), p_.processes);
  if (from.control.first == kNone && from.sending.first == kNone) clock.up &= ~(std::uint32_t{1} << message.from_board);
  Board& to = arena_.edit_queues(arena_.board(message.to_board));
  if (remove(arena_, pool.ready, frame, &RelayMessage::next_down, messages(), p_.frames) && pool.ready.first == kNone)
    remove(arena_, to.down, message.pool, &RelayPool::next_down, pools(), arena_.pools());
  if (to.down.first == kNone) clock.down &= ~(std::uint32_t{1} << message.to_board);
}

void Relay::lose_data(const RelayMessage& message, Memory& memory, RelayTotals& totals) {
  BoardCounters& slot = arena_.edit_counters(arena_.board(message.to_board));
  for (std::uint32_t i = message.forwarded; i < message.gathered; ++i) {
    const std::uint32_t length = fragment_bytes(message.bytes, p_.fragment, i);
    memory.stored -= length;
    totals.bytes_lost += length;
    slot.stored -= length;
  }
}

/// The next message of a pool may try again.
void Relay::unblock(std::uint32_t id, RelayPool& pool) {
  arena_.edit(arena_.process(id / kPortsPerProcess)).blocked &= ~(std::uint64_t{1} << id % kPortsPerProcess);
  pool.blocked = 0;
  arena_.reader(id).awaited.store(0, std::memory_order_relaxed);
  if (pool.waiting.first != kNone) push_granting(arena_.edit(arena_.memory()).granting, id, pool);
}

bool Relay::recover() {
  if (!arena_.roll_back()) return false;
  // The process that was notified of a pool that has been read may have died before it acted on that.
  for (std::uint32_t i = 0; i < p_.processes; ++i) woken(i);
  return host().balances();
}

}  // namespace ulfm::fabric::pcie
