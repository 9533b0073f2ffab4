#include "fabric/pcie/reference.hpp"

#include <algorithm>

namespace ulfm::fabric::pcie {

Reference::Reference(const Parameters& parameters)
    : parameters_(parameters), alive_(parameters.boards, true), boards_(parameters.boards) {}

bool Reference::post(FrameId frame, const Shipment& shipment) {
  if (frame >= parameters_.frames || !is_sound(shipment, parameters_) || messages_.count(frame) != 0) return false;
  if (!host_alive_ || !alive_[shipment.from_board] || !alive_[shipment.to_board]) return false;
  Message message;
  message.frame = frame;
  message.shipment = shipment;
  message.sequence = posted_++ << place_bits(parameters_.frames) | frame;
  message.fragments = fragments_of(shipment.bytes, parameters_.fragment);
  messages_[frame] = message;
  boards_[shipment.from_board].control.push_back(frame);
  ++host_.entered, ++host_.present;
  return true;
}

void Reference::release(std::uint32_t process, std::uint32_t port, std::uint64_t bytes) {
  Pool& pool = pools_[pool_of(process, port)];
  pool.used -= bytes;
  unblock(pool_of(process, port));
}

PoolCounters Reference::pool(std::uint32_t process, std::uint32_t port) const {
  const auto found = pools_.find(pool_of(process, port));
  return found != pools_.end() ? found->second.counters : PoolCounters{};
}

bool Reference::moves() const {
  return !granting_.empty() || std::any_of(boards_.begin(), boards_.end(), [](const Board& b) {
    return !b.control.empty() || !b.sending.empty() || !b.down.empty();
  });
}

void Reference::turn() {
  ++now_;
  for (std::uint32_t b = 0; b < parameters_.boards; ++b) up(b);
  for (std::uint32_t b = 0; b < parameters_.boards; ++b) down(b);
  grant();
}

void Reference::up(std::uint32_t b) {
  Board& board = boards_[b];
  if (!board.control.empty()) {
    const Message& message = messages_[board.control.front()];
    board.control.pop_front();
    const Shipment& s = message.shipment;
    const auto wire =
        encode(ControlPacket{static_cast<std::uint8_t>(s.to_port), message.sequence, static_cast<std::uint16_t>(b),
                             static_cast<std::uint16_t>(s.to_board), static_cast<std::uint16_t>(s.from_process),
                             static_cast<std::uint16_t>(s.to_process), s.bytes});
    by_sequence_[message.sequence] = message.frame;
    ControlPacket packet;
    if (decode(wire, packet)) control_arrives(b, packet);
    return;
  }
  if (board.sending.empty()) return;
  const std::uint32_t process = board.sending.front();
  board.sending.pop_front();
  auto& permitted = permitted_[process];
  Message& message = messages_[permitted.front()];
  const std::uint32_t length = fragment_bytes(message.shipment.bytes, parameters_.fragment, message.sent);
  ++message.sent;
  const std::uint32_t number = message.fragments == 1 ? 0 : message.sent;
  const auto wire = encode(DataHeader{message.sequence, static_cast<std::uint16_t>(number), length});
  if (message.sent == message.fragments) permitted.pop_front();
  if (!permitted.empty()) board.sending.push_back(process);
  DataHeader header;
  if (decode(wire, header)) data_arrives(b, header);
}

void Reference::control_arrives(std::uint32_t b, const ControlPacket& packet) {
  ++boards_[b].counters.control_packets;
  Message& message = messages_[by_sequence_[packet.sequence]];
  message.announced = now_;
  const PoolId id = pool_of(packet.destination_process, packet.inner_port);
  Pool& pool = pools_[id];
  if (pool.waiting.empty()) granting_.push_back(id);
  pool.waiting.push_back(message.frame);
}

void Reference::data_arrives(std::uint32_t b, const DataHeader& header) {
  Message& message = messages_[by_sequence_[header.sequence]];
  BoardCounters& sender = boards_[b].counters;
  ++sender.data_packets;
  sender.bytes_up += header.length;
  host_.bytes_in += header.length;
  host_.stored += header.length;
  host_.most_stored = std::max(host_.most_stored, host_.stored);
  Board& to = boards_[message.shipment.to_board];
  to.counters.stored += header.length;
  to.counters.most_stored = std::max(to.counters.most_stored, to.counters.stored);
  ++message.gathered;
  if (!parameters_.cut_through && message.gathered < message.fragments) return;
  const PoolId id = pool_of(message.shipment.to_process, message.shipment.to_port);
  Pool& pool = pools_[id];
  if (std::find(pool.ready.begin(), pool.ready.end(), message.frame) != pool.ready.end()) return;
  if (pool.ready.empty()) to.down.push_back(id);
  pool.ready.push_back(message.frame);
}

// The first message of a pool goes on until nothing of it is there to send, so that messages of one sender, whose data
// come one message after the other, arrive in order.
void Reference::down(std::uint32_t b) {
  Board& board = boards_[b];
  if (board.down.empty()) return;
  const PoolId id = board.down.front();
  board.down.pop_front();
  Pool& pool = pools_[id];
  Message& message = messages_[pool.ready.front()];
  const std::uint32_t length = fragment_bytes(message.shipment.bytes, parameters_.fragment, message.forwarded);
  ++message.forwarded;
  ++board.counters.packets_down;
  board.counters.bytes_down += length;
  board.counters.stored -= length;
  host_.bytes_out += length;
  host_.stored -= length;
  if (message.forwarded == message.gathered) pool.ready.pop_front();
  if (!pool.ready.empty()) board.down.push_back(id);
  if (message.forwarded < message.fragments) return;
  PoolCounters& counters = pool.counters;
  const std::uint64_t delay = now_ - message.announced;
  ++counters.messages;
  counters.bytes += message.shipment.bytes;
  counters.delay += delay;
  counters.most_delay = std::max(counters.most_delay, delay);
  end(message, true);
}

void Reference::grant() {
  while (!granting_.empty()) {
    const PoolId id = granting_.front();
    Pool& pool = pools_[id];
    Message& message = messages_[pool.waiting.front()];
    const std::uint32_t bytes = message.shipment.bytes;
    if (pool.used + bytes > parameters_.pool) {
      granting_.pop_front();
      pool.blocked = true;
      ++pool.counters.full;
      continue;
    }
    if (host_.reserved + bytes > parameters_.memory) return;
    granting_.pop_front();
    pool.waiting.pop_front();
    if (!pool.waiting.empty()) granting_.push_back(id);
    pool.used += bytes;
    pool.counters.most_used = std::max(pool.counters.most_used, pool.used);
    pool.counters.waited += now_ - message.announced;
    host_.reserved += bytes;
    host_.most_reserved = std::max(host_.most_reserved, host_.reserved);
    message.granted = true;
    const std::uint32_t process = message.shipment.from_process;
    if (permitted_[process].empty()) boards_[message.shipment.from_board].sending.push_back(process);
    permitted_[process].push_back(message.frame);
  }
}

void Reference::unblock(PoolId id) {
  Pool& pool = pools_[id];
  if (!pool.blocked) return;
  pool.blocked = false;
  if (!pool.waiting.empty()) granting_.push_back(id);
}

void Reference::end(Message& message, bool delivered) {
  --host_.present;
  ++(delivered ? host_.left : host_.lost);
  if (message.granted) host_.reserved -= message.shipment.bytes;
  if (!delivered) ++boards_[message.shipment.from_board].counters.lost_messages;
  endings_.push_back(
      {message.frame, delivered ? message.shipment.to_board : message.shipment.from_board, now_, delivered});
  by_sequence_.erase(message.sequence);
  messages_.erase(message.frame);
}

// ---- what dies ------------------------------------------------------------------------------------------------------

// A board that dies takes with it what is on its way to it, and what the host has not got whole from it.
void Reference::set_board(std::uint32_t b, bool alive) {
  if (b >= parameters_.boards) return;
  alive_[b] = alive;
  if (alive) return;
  for (FrameId frame = 0; frame < parameters_.frames; ++frame) {
    const auto found = messages_.find(frame);
    if (found == messages_.end()) continue;
    const Message& m = found->second;
    if (m.shipment.to_board == b || (m.shipment.from_board == b && m.gathered < m.fragments)) lose(frame);
  }
}

void Reference::set_host(bool alive) {
  host_alive_ = alive;
  if (alive) return;
  for (FrameId frame = 0; frame < parameters_.frames; ++frame)
    if (messages_.count(frame) != 0) lose(frame);
}

void Reference::lose(FrameId frame) {
  Message& message = messages_[frame];
  const Shipment& s = message.shipment;
  Board& from = boards_[s.from_board];
  Board& to = boards_[s.to_board];
  const PoolId id = pool_of(s.to_process, s.to_port);
  Pool& pool = pools_[id];
  std::erase(from.control, frame);
  if (std::erase(pool.waiting, frame) != 0 && pool.waiting.empty()) std::erase(granting_, id), pool.blocked = false;
  if (std::erase(permitted_[s.from_process], frame) != 0 && permitted_[s.from_process].empty())
    std::erase(from.sending, s.from_process);
  if (std::erase(pool.ready, frame) != 0 && pool.ready.empty()) std::erase(to.down, id);
  for (std::uint32_t i = message.forwarded; i < message.gathered; ++i) {
    const std::uint32_t length = fragment_bytes(s.bytes, parameters_.fragment, i);
    host_.stored -= length;
    host_.bytes_lost += length;
    to.counters.stored -= length;
  }
  if (message.granted) pool.used -= s.bytes;
  end(message, false);
  unblock(id);
}

}  // namespace ulfm::fabric::pcie
