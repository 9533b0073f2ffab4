// Sizes of a host with boards, the messages it is given, and what it counts.
#pragma once

#include <cstdint>

#include "base/error.hpp"
#include "base/frame.hpp"
#include "fabric/model.hpp"

namespace ulfm::fabric::pcie {

inline constexpr std::uint32_t kPortsPerProcess = ulfm::kPortsPerProcess;  // a pool of the host for each
inline constexpr std::uint32_t kMostFragments = 1024;
inline constexpr std::uint32_t kMostMessage = 65536;

/// Bytes, except for counts. The paper gives none of them; these are ours.
struct Parameters {
  std::uint32_t boards = 0;
  std::uint32_t processes = 0;  ///< on all boards
  std::uint32_t frames = 0;     ///< messages on their way at one time, at most
  std::uint32_t message = 0;    ///< largest
  std::uint32_t fragment = 0;   ///< most data in a packet
  std::uint64_t pool = 0;       ///< of a port of a process on its board
  std::uint64_t memory = 0;     ///< of the host, for data
  bool cut_through = false;     ///< fragments go on as they come; otherwise when all have come
  // In virtual time (time.cpp); a cycle is the time of a byte on a lane.
  std::uint8_t lanes = 0;     ///< of a link; 0: time is turns
  std::uint32_t latency = 0;  ///< cycles: of a byte's way over a link
};

inline constexpr std::uint32_t kMostLanes = 32;
inline constexpr std::uint32_t kPayload = 256;  ///< bytes of a packet of the link itself; ours are divided into these
inline constexpr std::uint32_t kFraming = 24;   ///< what each costs beside: framing, sequence, header and CRC

/// Cycles that a packet of so many bytes, header included, keeps a link busy.
constexpr std::uint64_t link_cycles(std::uint64_t bytes, std::uint32_t lanes) noexcept {
  const std::uint64_t all = bytes + (bytes + kPayload - 1) / kPayload * kFraming;
  return (all + lanes - 1) / lanes;
}

/// Errc::invalid when a message could never get through.
Result<void> check(const Parameters& parameters);

/// A message on its way from one board to another.
struct Shipment {
  std::uint32_t from_board = 0, to_board = 0;
  std::uint32_t from_process = 0, to_process = 0;
  std::uint32_t to_port = 0;
  std::uint32_t bytes = 0;
};

/// Names what is wrong with one: nothing, most of the time.
constexpr bool is_sound(const Shipment& s, const Parameters& p) noexcept {
  return s.from_board < p.boards && s.to_board < p.boards && s.from_board != s.to_board &&
         s.from_process < p.processes && s.to_process < p.processes && s.to_port < kPortsPerProcess &&
         s.bytes <= p.message;
}

/// The number behind that many of a message's fragments; an empty message has one fragment without data.
constexpr std::uint32_t fragments_of(std::uint32_t bytes, std::uint32_t fragment) noexcept {
  return bytes == 0 ? 1 : (bytes + fragment - 1) / fragment;
}
/// Bytes of a fragment, counted from 0.
constexpr std::uint32_t fragment_bytes(std::uint32_t bytes, std::uint32_t fragment, std::uint32_t index) noexcept {
  return bytes - index * fragment < fragment ? bytes - index * fragment : fragment;
}

/// Low bits of a sequence number that hold the message's place among all frames; the others count messages.
constexpr std::uint32_t place_bits(std::uint32_t frames) noexcept {
  std::uint32_t bits = 1;
  while (bits < 31 && (std::uint32_t{1} << bits) < frames) ++bits;
  return bits;
}

/// A board: its link to the host, and its slot there.
struct BoardCounters {
  std::uint64_t control_packets = 0;  ///< to the host
  std::uint64_t data_packets = 0;     ///< to the host
  std::uint64_t bytes_up = 0;         ///< data in them
  std::uint64_t packets_down = 0;     ///< from the host
  std::uint64_t bytes_down = 0;
  std::uint64_t lost_messages = 0;  ///< of those the board sent
  std::uint64_t stored = 0;         ///< bytes for this board in the host's memory now
  std::uint64_t most_stored = 0;
  friend bool operator==(const BoardCounters&, const BoardCounters&) = default;
};

/// The pool of one port of a process.
struct PoolCounters {
  std::uint64_t messages = 0, bytes = 0;  ///< arrived
  std::uint64_t most_used = 0;            ///< bytes, of arrivals not read and of messages that may come
  std::uint64_t full = 0;                 ///< times the next message found no room
  std::uint64_t waited = 0;      ///< turns between control packet and permission to send, all messages together
  std::uint64_t delay = 0;       ///< turns between control packet and arrival, all messages together
  std::uint64_t most_delay = 0;  ///< of one message
  friend bool operator==(const PoolCounters&, const PoolCounters&) = default;
};

/// The host, and where everything has gone.
struct HostCounters {
  std::uint64_t entered = 0, left = 0, lost = 0, present = 0;  ///< messages
  std::uint64_t bytes_in = 0, bytes_out = 0, bytes_lost = 0;   ///< data that came, went on, and went with a dead board
  std::uint64_t stored = 0, most_stored = 0;                   ///< bytes of data in memory
  std::uint64_t reserved = 0, most_reserved = 0;               ///< bytes of memory promised to messages
  bool balances() const noexcept {
    return entered == left + lost + present && bytes_in == bytes_out + bytes_lost + stored;
  }
  friend bool operator==(const HostCounters&, const HostCounters&) = default;
};

}  // namespace ulfm::fabric::pcie
